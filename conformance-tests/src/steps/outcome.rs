//! What is in the store in the end: as the act promises, and as it was found.

use std::{collections::BTreeMap, fmt};

use bytes::Bytes;

/// Where a job came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum End {
    /// It was delivered once more and finished.
    Delivered,
    /// It was found among the dead.
    Dead,
}

/// How often each payload came to which end.
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) struct Outcome(BTreeMap<(Bytes, End), usize>);

impl Outcome {
    /// The jobs of these payloads are all delivered.
    pub(crate) fn delivered<const N: usize>(payloads: [&'static str; N]) -> Self {
        Self::default().and(End::Delivered, payloads)
    }

    /// The jobs of these payloads are all dead.
    pub(crate) fn dead<const N: usize>(payloads: [&'static str; N]) -> Self {
        Self::default().and(End::Dead, payloads)
    }

    pub(crate) fn and<const N: usize>(
        mut self,
        end: End,
        payloads: [&'static str; N],
    ) -> Self {
        payloads.into_iter().for_each(|payload| self.add(payload.into(), end));
        self
    }

    pub(crate) fn add(&mut self, payload: Bytes, end: End) {
        *self.0.entry((payload, end)).or_default() += 1;
    }

    fn count(&self, payload: &Bytes, end: End) -> usize {
        self.0.get(&(payload.clone(), end)).copied().unwrap_or(0)
    }

    fn payloads(&self) -> impl Iterator<Item = &Bytes> {
        self.0.keys().map(|(payload, _)| payload)
    }

    /// Whether each job came to an end that it has in one of the two.
    fn is_mixed_of(&self, one: &Self, other: &Self) -> bool {
        let agrees = |payload: &Bytes, with: &Self| {
            let ends = [End::Delivered, End::Dead];
            ends.iter()
                .all(|end| self.count(payload, *end) == with.count(payload, *end))
        };
        let mut all = self.payloads().chain(one.payloads()).chain(other.payloads());
        all.all(|payload| agrees(payload, one) || agrees(payload, other))
    }
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.0.iter().map(|((payload, end), count)| {
            format!("{}x {end:?} {}", count, payload.escape_ascii())
        });
        f.debug_list().entries(lines).finish()
    }
}

/// What the act promises.
#[derive(Debug, Clone)]
pub(crate) struct Promise {
    pub(crate) undone: Outcome,
    pub(crate) done: Outcome,
    /// Whether a part of it may be done and another not.
    pub(crate) parts: Parts,
}

/// Whether what an act does happens as one (R5, R8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parts {
    AllOrNone,
    EachByItself,
}

/// What is known of whether the act happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Knowledge {
    Done,
    Undone,
    Unknown,
}

impl Promise {
    /// The store is the same whether the act happened or not, once all is recovered.
    pub(crate) fn unchanged(outcome: Outcome) -> Self {
        Self { undone: outcome.clone(), done: outcome, parts: Parts::AllOrNone }
    }

    /// Says what is wrong with what was found, if anything is.
    pub(crate) fn judge(
        &self,
        found: &Outcome,
        known: Knowledge,
    ) -> Result<(), String> {
        let Self { undone, done, parts } = self;
        let is_kept = match known {
            Knowledge::Done => found == done,
            Knowledge::Undone => found == undone,
            Knowledge::Unknown if *parts == Parts::AllOrNone => {
                found == done || found == undone
            }
            Knowledge::Unknown => found.is_mixed_of(done, undone),
        };
        if is_kept {
            return Ok(());
        }
        Err(format!(
            "found {found:?}; the act is {known:?}; done is {done:?}, undone {undone:?}"
        ))
    }
}
