//! Where each job is found once every lease and delay has ended and the queue was
//! recovered and drained.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::{
    batching::{Phase, PossibleBatch},
    possible_state::{JobLocation, Ms, PossibleState},
    reference::{Job, Knowledge, Reference},
};

/// Where a job is found in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FoundAt {
    /// A claim delivers the job.
    Claim,
    /// The job is among the dead letters.
    DeadLetters,
    Nowhere,
}

impl Reference {
    /// Returns, for each job, where it may be found in the end. Every lease, delay and
    /// expiry that ends within `horizon` from now has ended by then.
    pub(crate) fn drained(&self, horizon: Ms) -> Vec<(Bytes, BTreeSet<FoundAt>)> {
        let end = self.now + horizon;
        let found = |(at, job): (usize, &Job)| {
            let each = job.possible_states.iter();
            let found =
                each.flat_map(|possible| self.found_at((at, job), possible, end));
            (job.spec.payload.clone(), found.collect())
        };
        self.jobs.iter().enumerate().map(found).collect()
    }

    pub(super) fn found_at(
        &self,
        (at, job): (usize, &Job),
        possible: &PossibleState,
        end: Ms,
    ) -> Vec<FoundAt> {
        let claimed = match possible.may_be_expired(end) {
            true => FoundAt::DeadLetters,
            false => FoundAt::Claim,
        };
        match possible.location {
            JobLocation::Absent => self.completed(at),
            JobLocation::Refused | JobLocation::Orphaned | JobLocation::Gone { .. } => {
                vec![FoundAt::Nowhere]
            }
            JobLocation::Held => self.found_held(job, claimed, end),
            JobLocation::Dead => vec![FoundAt::DeadLetters],
            JobLocation::Scheduled { .. }
            | JobLocation::Ready(_)
            | JobLocation::Moved(_) => vec![claimed],
            JobLocation::Leased(_) => {
                let returned =
                    if job.is_last(possible) { FoundAt::DeadLetters } else { claimed };
                match job.is_cancelled(possible) {
                    None => vec![returned],
                    Some(Knowledge::Done) => vec![FoundAt::Nowhere],
                    Some(Knowledge::Maybe) => vec![returned, FoundAt::Nowhere],
                }
            }
        }
    }

    /// Where a job is found that does not exist yet: the completion job of a batch that
    /// gets no more pieces is pushed when all of its pieces have ended (B5).
    fn completed(&self, at: usize) -> Vec<FoundAt> {
        let batches = self.batches.values().flat_map(|batch| &batch.possible_states);
        let its_own = batches.filter(|batch| batch.completion == at);
        let found = |batch: &PossibleBatch| match batch.phase {
            Phase::Sealed | Phase::Cancelled => FoundAt::Claim,
            Phase::Absent | Phase::Open => FoundAt::Nowhere,
        };
        let found: Vec<_> = its_own.map(found).collect();
        if found.is_empty() { vec![FoundAt::Nowhere] } else { found }
    }
}
