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
    /// The victim ran it, whether or not it could say so.
    Ran,
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

    /// Whether each of these jobs, and no other, was run or delivered: once at least
    /// and so often at most.
    fn is_done_at_least_once(&self, jobs: &Self, at_most: usize) -> bool {
        let times = |payload: &Bytes| {
            self.count(payload, End::Ran) + self.count(payload, End::Delivered)
        };
        let is_done = |payload| (1..=at_most).contains(&times(payload));
        let is_known = |payload| jobs.count(payload, End::Delivered) > 0;
        let is_dead = |payload| self.count(payload, End::Dead) > 0;
        jobs.payloads().all(is_done)
            && self.payloads().all(|payload| is_known(payload) && !is_dead(payload))
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
    /// Each is run by the victim or delivered to the survivors, so often at most.
    AtLeastOnce {
        at_most: usize,
    },
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

    /// Each job is run, by the victim or a survivor: once where nothing goes wrong.
    pub(crate) fn run<const N: usize>(payloads: [&'static str; N]) -> Self {
        let parts = Parts::AtLeastOnce { at_most: 1 };
        Self { parts, ..Self::unchanged(Outcome::delivered(payloads)) }
    }

    /// The same promise where something went wrong: one fault justifies one more
    /// delivery of a job, and no loss (DUP-BOUND).
    pub(crate) fn bearing(&self, has_fault: bool) -> Self {
        let mut promise = self.clone();
        if let Parts::AtLeastOnce { at_most } = &mut promise.parts {
            *at_most += usize::from(has_fault);
        }
        promise
    }

    /// Says what is wrong with what was found, if anything is.
    pub(crate) fn judge(
        &self,
        found: &Outcome,
        known: Knowledge,
    ) -> Result<(), String> {
        let Self { undone, done, parts } = self;
        let is_kept = match (*parts, known) {
            (Parts::AtLeastOnce { at_most }, _) => {
                found.is_done_at_least_once(done, at_most)
            }
            (_, Knowledge::Done) => found == done,
            (_, Knowledge::Undone) => found == undone,
            (Parts::AllOrNone, _) => found == done || found == undone,
            (Parts::EachByItself, _) => found.is_mixed_of(done, undone),
        };
        if is_kept {
            return Ok(());
        }
        Err(format!(
            "found {found:?}; the act is {known:?}; done is {done:?}, undone {undone:?}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOBS: [&str; 2] = ["a", "b"];

    fn found(ran: &[&'static str], delivered: &[&'static str]) -> Outcome {
        let mut found = Outcome::default();
        ran.iter().for_each(|one| found.add((*one).into(), End::Ran));
        delivered.iter().for_each(|one| found.add((*one).into(), End::Delivered));
        found
    }

    fn is_kept(has_fault: bool, found: &Outcome) -> bool {
        let promise = Promise::run(JOBS).bearing(has_fault);
        promise.judge(found, Knowledge::Unknown).is_ok()
    }

    #[test]
    fn a_job_is_run_or_delivered() {
        assert!(is_kept(false, &found(&["a"], &["b"])));
        assert!(!is_kept(true, &found(&["a"], &[])), "b is lost");
        assert!(!is_kept(true, &found(&["a", "b"], &["c"])), "c is invented");
    }

    #[test]
    fn one_fault_justifies_one_more_run() {
        let twice = found(&["a", "b"], &["b"]);

        assert!(is_kept(true, &twice));
        assert!(!is_kept(false, &twice));
        assert!(!is_kept(true, &found(&["a", "b", "b"], &["b"])));
    }

    #[test]
    fn a_dead_job_was_not_run() {
        let dead = found(&["a", "b"], &[]).and(End::Dead, ["b"]);

        assert!(!is_kept(true, &dead));
    }
}
