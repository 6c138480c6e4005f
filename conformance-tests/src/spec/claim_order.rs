//! The rules for claims: which of the ready jobs a claim must return, and in which
//! order.

use super::{
    claiming::Asked,
    possible_state::{JobLocation, PossibleState},
    ready_order::{Ready, ReadyPosition},
    reference::{CheckResult, Reference},
    sequence::Steps,
};
use crate::spec::class::Class;

/// A delivered job, and the positions that it may have had among the ready jobs before
/// its delivery.
pub(super) struct Taken {
    pub(super) job: usize,
    pub(super) places: Vec<Ready>,
}

impl Reference {
    /// R13, R15: checks the order of the jobs that one claim returned.
    pub(super) fn answer_is_in_order(&self, taken: &[Taken]) -> CheckResult {
        // A claim of several steps may return a job that fell due between two of them.
        let may_come_late =
            |one: &Taken| self.steps == Steps::OfOneJob && one.may_have_been_due();
        for (index, late) in taken.iter().enumerate() {
            if may_come_late(late) {
                continue;
            }
            for early in &taken[..index] {
                if late.is_surely_before(early, &self.class) {
                    return Err(format!(
                        "FIFO, R13, R15: before {}: {}",
                        self.jobs[late.job].tell(),
                        self.jobs[early.job].tell(),
                    ));
                }
            }
        }
        Ok(())
    }

    /// R13, R15, B4: checks that the claim left no ready job behind that comes before
    /// one of the jobs that it returned.
    pub(super) fn nobody_was_passed(&mut self, taken: &[Taken]) -> CheckResult {
        let (now, withheld) = (self.now, self.withheld());
        let batch_of = |one: &Taken| self.jobs[one.job].batch;
        let batches: Vec<_> = taken.iter().map(batch_of).collect();
        for at in self.not_in(taken) {
            let job = &self.jobs[at];
            let is_passed = |possible: &PossibleState| {
                let places = self.ready(job, possible, possible.location);
                let may_wait = self.may_wait(at, &withheld)(possible);
                let left = Taken { job: at, places };
                let mut passing = taken.iter().zip(&batches).filter(|(_, batch)| {
                    // The claim took another piece of the same batch. So the batch had
                    // a free slot, and that cannot be the reason why the claim left
                    // this job behind.
                    !may_wait || **batch == job.batch
                });
                !possible.may_be_expired(now)
                    && !self.is_just_released(job, possible)
                    && passing.any(|(one, _)| left.is_surely_before(one, &self.class))
            };
            let passed: Vec<_> = job.possible_states.iter().map(is_passed).collect();
            let passed: Vec<_> = job
                .possible_states
                .iter()
                .zip(passed)
                .filter_map(|(possible, is_passed)| is_passed.then_some(*possible))
                .collect();
            self.keep(at, "FIFO, R13, R15, B4: passed by another", |possible| {
                !passed.contains(possible)
            })?;
        }
        Ok(())
    }

    /// R9: checks how many consecutive claims have left a ready job behind although
    /// they returned fewer jobs than they asked for. The class of the backend sets the
    /// limit.
    pub(super) fn passed_over(&mut self, asked: Asked, taken: &[Taken]) -> CheckResult {
        taken.iter().for_each(|one| self.jobs[one.job].passed_over = 0);
        if taken.len() == asked.max || self.paused.contains(&true) {
            return Ok(());
        }
        let most = self.class.patience(self.unfinished());
        let is_ready = |possible: &PossibleState| {
            matches!(possible.location, JobLocation::Ready(_))
        };
        for at in self.not_in(taken) {
            let job = &mut self.jobs[at];
            if !job.possible_states.iter().all(is_ready) {
                continue;
            }
            job.passed_over += 1;
            if job.passed_over > most {
                return Err(format!("R9: passed over {most} times: {}", job.tell()));
            }
        }
        Ok(())
    }

    pub(super) fn nobody_ready_was_left(&mut self, taken: &[Taken]) -> CheckResult {
        let withheld = self.withheld();
        for at in self.not_in(taken) {
            let may_wait = self.may_be_missed(at, &withheld);
            self.keep(
                at,
                "DRAIN, R1: ready, and left by a claim with room",
                |possible| {
                    may_wait(possible)
                        || !matches!(possible.location, JobLocation::Ready(_))
                },
            )?;
        }
        Ok(())
    }

    /// Records that a claim returned no job. So no job was ready or due, and the claim
    /// has buried the expired jobs.
    pub(super) fn nothing_was_left(&mut self) -> CheckResult {
        if self.paused.contains(&true) {
            return Ok(());
        }
        let (now, withheld) = (self.now, self.withheld());
        for at in 0..self.jobs.len() {
            let may_wait = self.may_be_missed(at, &withheld);
            self.keep(at, "LOST, R1: ready, and a claim finds nothing", |possible| {
                match possible.location {
                    _ if may_wait(possible) => true,
                    JobLocation::Ready(_) => false,
                    JobLocation::Scheduled { due } => due > now,
                    _ => true,
                }
            })?;
        }
        Ok(())
    }

    /// Whether a claim may leave the ready job behind because its batch may be
    /// cancelled or have no free slot (B3, B7).
    fn may_wait(
        &self,
        at: usize,
        withheld: &[u8],
    ) -> impl Fn(&PossibleState) -> bool + use<> {
        let may_be = self.jobs[at].batch.is_some_and(|it| withheld.contains(&it));
        move |possible| may_be && !possible.is_detached
    }

    /// The states of a ready job in which a claim may miss it: because of its batch, or
    /// because the settlement beside the claim has just released it.
    fn may_be_missed(
        &self,
        at: usize,
        withheld: &[u8],
    ) -> impl Fn(&PossibleState) -> bool + use<> {
        let (may_wait, job) = (self.may_wait(at, withheld), &self.jobs[at]);
        let states = job.possible_states.iter();
        let missed = states.filter(|it| self.is_just_released(job, it));
        let missed: Vec<_> = missed.copied().collect();
        move |possible| may_wait(possible) || missed.contains(possible)
    }

    fn not_in(&self, taken: &[Taken]) -> Vec<usize> {
        let is_left = |at: &usize| taken.iter().all(|one| one.job != *at);
        (0..self.jobs.len()).filter(is_left).collect()
    }
}

impl Taken {
    /// Whether the job may have fallen due during the claim.
    fn may_have_been_due(&self) -> bool {
        let was_due = |one: &Ready| {
            matches!(one.position, ReadyPosition::Back { due: Some(_), .. })
        };
        self.places.iter().any(was_due)
    }

    fn is_surely_before(&self, other: &Self, class: &Class) -> bool {
        let is_before =
            |one: &Ready| other.places.iter().all(|it| class.is_first(one, it));
        !self.places.is_empty()
            && !other.places.is_empty()
            && self.places.iter().all(is_before)
    }
}
