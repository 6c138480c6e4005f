//! The values of the label `kind`. Producers choose the kinds of their jobs, so the number
//! of values and their length have limits.

use std::{
    collections::HashSet,
    sync::{PoisonError, RwLock},
};

use metrics::SharedString;
use relq_worker::{JobContext, MAX_KIND_BYTES};

/// How many kinds have a label value of their own.
pub const MOST_KINDS: usize = 100;

/// The label value of every kind beyond the first [`MOST_KINDS`], and of every kind that is
/// longer than [`MAX_KIND_BYTES`].
pub const OTHER_KIND: &str = "other";

/// The kinds that have a label value of their own.
#[derive(Debug, Default)]
pub(crate) struct Kinds(RwLock<HashSet<SharedString>>);

impl Kinds {
    /// The label value for the kind of the job. `None` if the job has no kind.
    pub(crate) fn label(&self, job: &JobContext) -> Option<SharedString> {
        let kind = job.kind()?;
        if kind.len() > MAX_KIND_BYTES {
            return Some(SharedString::const_str(OTHER_KIND));
        }
        // A poisoned lock is safe to use: no code under it can panic in the middle of a
        // change.
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(kind) = known.get(kind) {
            return Some(kind.clone());
        }
        drop(known);
        Some(self.added(kind))
    }

    fn added(&self, kind: &str) -> SharedString {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(kind) = known.get(kind) {
            return kind.clone();
        }
        if known.len() >= MOST_KINDS {
            return SharedString::const_str(OTHER_KIND);
        }
        let kind = SharedString::from_shared(kind.into());
        known.insert(kind.clone());
        kind
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use relq_core::{Delivery, Headers, JobId, Receipt};
    use relq_worker::KIND_HEADER;

    use super::*;

    fn job(kind: &str) -> JobContext {
        let receipt = Receipt::new(JobId::new("job").unwrap(), 1, "token");
        let mut delivery = Delivery::new(receipt, "", Duration::from_secs(30));
        delivery.headers = Headers::from_iter([(KIND_HEADER, kind)]);
        JobContext::new(delivery)
    }

    /// A producer that makes up kinds must not fill the memory of the recorder.
    #[test]
    fn kinds_beyond_the_limit_share_a_label() {
        let kinds = Kinds::default();
        for number in 0..MOST_KINDS {
            let name = number.to_string();
            assert_eq!(kinds.label(&job(&name)), Some(name.into()));
        }

        assert_eq!(kinds.label(&job("one more")), Some(OTHER_KIND.into()));
        assert_eq!(kinds.label(&job("0")), Some("0".into()));
    }

    /// Every metric of a kind repeats its name, and another client can push a kind of any
    /// length.
    #[test]
    fn a_kind_that_is_too_long_has_no_label_of_its_own() {
        let kinds = Kinds::default();
        let longest = "x".repeat(MAX_KIND_BYTES);

        let longer = format!("{longest}x");
        assert_eq!(kinds.label(&job(&longer)), Some(OTHER_KIND.into()));
        assert!(kinds.0.read().unwrap().is_empty(), "no place is taken");
        assert_eq!(kinds.label(&job(&longest)), Some(longest.into()));
    }
}
