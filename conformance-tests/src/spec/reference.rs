//! The reference model: every job with all states that it may be in.

use std::collections::BTreeMap;

use bytes::Bytes;
use relq_core::{JobId, NewJob, Receipt, unique::UniqueKey};

use super::{
    batching::Batch,
    inspecting::Reporter,
    possible_state::{End, JobLocation, Lease, Ms, PossibleState},
    pushing::PushCall,
    restoring::Past,
    scheduling::{LostTick, PossibleSchedule},
    sequence::Steps,
};
use crate::spec::{class::Class, ready_order::Moment};

/// How long ids, tokens and cancelled leases are remembered (R4).
pub(crate) const WINDOW: Ms = 5 * 60 * 1000;

/// The result of a check. The error names the rule or check, and what was expected and
/// seen.
pub(crate) type CheckResult = Result<(), String>;

/// Whether a call certainly happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Knowledge {
    Done,
    Maybe,
}

/// A job that was pushed, or that may have been pushed by a call whose reply was lost.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) spec: NewJob,
    /// The id of the job in the store. `None` as long as no call has returned it.
    pub(crate) id: Option<JobId>,
    /// The number of the job's batch. `None` if the job is not a piece of a batch.
    pub(crate) batch: Option<u8>,
    /// Whether that batch was cancelled: certainly, perhaps, or `None` if it was not.
    pub(crate) cancelled: Option<Knowledge>,
    /// The jobs that it may follow: those of the id that its push names which might be
    /// there at its push. Empty for a job that follows none.
    pub(crate) leaders: Vec<usize>,
    /// The first and the last moment at which it may have been pushed. `None` for the
    /// completion job of a batch, which the completion pushes.
    pub(crate) pushed: Option<(Ms, Ms)>,
    /// The earlier life of the job, if it was restored (R34).
    pub(crate) past: Option<Past>,
    /// The number of its push. The jobs of one push are all stored or all not (R5).
    pub(crate) call: u32,
    pub(crate) possible_states: Vec<PossibleState>,
    /// How often the job was delivered. `returns` counts how often it became ready
    /// again for a valid reason (R6).
    pub(crate) runs: u32,
    pub(crate) returns: u32,
    /// How many consecutive claims returned fewer jobs than requested while this job
    /// was ready (R9).
    pub(crate) passed_over: u64,
}

/// A lease that a claim reported.
#[derive(Debug, Clone)]
pub(crate) struct ObservedLease {
    pub(crate) receipt: Receipt,
    pub(crate) job: usize,
    pub(crate) lease: Lease,
}

/// The first push with a token, against which the model checks each repetition (R4).
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) push: PushCall,
    pub(crate) first_at: Ms,
    pub(crate) call: u32,
    /// The first result that a client received. `None` if each reply was lost.
    pub(crate) answers: Option<Vec<relq_core::outcome::Pushed>>,
}

/// All that the reference model knows about one queue.
#[derive(Debug, Clone)]
pub(crate) struct Reference {
    pub(crate) now: Ms,
    /// When the current call began, if that was before `now`.
    pub(crate) call_began: Option<Ms>,
    /// The number of the current operation, by which events are ordered.
    pub(crate) step: u32,
    pub(crate) jobs: Vec<Job>,
    /// The store's time at the start of the run, as far as the times of pushes that were
    /// seen have shown it: the earliest and the latest possible one (ms since 1970).
    pub(crate) started: Option<(i64, i64)>,
    pub(crate) observed: Vec<ObservedLease>,
    pub(crate) calls: BTreeMap<u8, Call>,
    pub(crate) batches: BTreeMap<u8, Batch>,
    /// The possible states of each schedule that a call has named.
    pub(crate) schedules: BTreeMap<u8, Vec<PossibleSchedule>>,
    pub(crate) lost_ticks: Vec<LostTick>,
    /// The workers that have reported, or may have, by the numbers of their runs (R33).
    pub(crate) reporters: BTreeMap<usize, Reporter>,
    /// The possible answers to the question whether claims are paused: both values if
    /// the answer is not known.
    pub(crate) paused: Vec<bool>,
    pub(crate) class: Class,
    pub(crate) steps: Steps,
    /// The number of settlement calls whose reply was lost. Each such call settled all
    /// of its jobs or none, so the possible states of these jobs depend on each other
    /// (R8).
    pub(crate) links: u32,
}

impl Reference {
    pub(crate) fn new(class: Class, steps: Steps) -> Self {
        Self {
            now: 0,
            call_began: None,
            step: 0,
            jobs: Vec::new(),
            started: None,
            observed: Vec::new(),
            calls: BTreeMap::new(),
            batches: BTreeMap::new(),
            schedules: BTreeMap::new(),
            lost_ticks: Vec::new(),
            reporters: BTreeMap::new(),
            paused: vec![false],
            class,
            steps,
            links: 0,
        }
    }

    /// Replaces each possible state of each job by the states that `becomes` returns. A
    /// state with no successor is ruled out. A job without a possible state breaks the
    /// named rule.
    pub(crate) fn each(
        &mut self,
        known: Knowledge,
        rule: &str,
        mut becomes: impl FnMut(&Job, &PossibleState) -> Vec<PossibleState>,
    ) -> CheckResult {
        for job in &mut self.jobs {
            let mut next = Vec::new();
            let mut returns = false;
            for possible in &job.possible_states {
                let new = becomes(job, possible);
                returns |= possible.lease().is_some() && new.iter().any(is_back);
                let kept = (known == Knowledge::Maybe).then_some(*possible);
                new.into_iter()
                    .chain(kept)
                    .for_each(|possible| add(&mut next, possible));
            }
            if next.is_empty() {
                return Err(format!("{rule}: {}", job.tell()));
            }
            job.possible_states = next;
            job.returns += u32::from(returns);
        }
        Ok(())
    }

    /// Rules out the possible states of one job that do not meet the condition. Fails
    /// with `rule` if none is left.
    pub(crate) fn keep(
        &mut self,
        job: usize,
        rule: &str,
        is_possible: impl Fn(&PossibleState) -> bool,
    ) -> CheckResult {
        let job = &mut self.jobs[job];
        let kept: Vec<_> = job
            .possible_states
            .iter()
            .filter(|possible| is_possible(possible))
            .copied()
            .collect();
        if kept.is_empty() {
            return Err(format!("{rule}: {}", job.tell()));
        }
        job.possible_states = kept;
        Ok(())
    }

    /// Returns how many jobs are certainly in a state that meets the condition, and how
    /// many may be in one.
    pub(crate) fn count(
        &self,
        is_so: impl Fn(&Job, &PossibleState) -> bool,
    ) -> (u64, u64) {
        let (mut surely, mut maybe) = (0, 0);
        for job in &self.jobs {
            surely += u64::from(
                job.possible_states.iter().all(|possible| is_so(job, possible)),
            );
            maybe += u64::from(
                job.possible_states.iter().any(|possible| is_so(job, possible)),
            );
        }
        (surely, maybe)
    }

    /// The number of jobs that may be unfinished.
    pub(crate) fn unfinished(&self) -> u64 {
        let is_unfinished = |possible: &PossibleState| {
            let location = possible.location;
            matches!(
                location,
                JobLocation::Scheduled { .. }
                    | JobLocation::Held
                    | JobLocation::Orphaned
                    | JobLocation::Ready(_)
                    | JobLocation::Leased(_)
                    | JobLocation::Moved(_)
            )
        };
        self.count(|_, possible| is_unfinished(possible)).1
    }

    /// DUP-BOUND, R6: a job is delivered again only for a valid reason.
    pub(crate) fn duplicates_are_bounded(&self) -> CheckResult {
        match self.jobs.iter().find(|job| job.runs > 1 + job.returns) {
            None => Ok(()),
            Some(job) => Err(format!(
                "DUP-BOUND, R6: ran {} times, came back {} times: {}",
                job.runs,
                job.returns,
                job.tell(),
            )),
        }
    }

    pub(crate) fn job_of(&self, payload: &Bytes) -> Option<usize> {
        self.jobs.iter().position(|job| job.spec.payload == *payload)
    }
}

impl Job {
    pub(crate) fn key(&self) -> Option<&UniqueKey> {
        self.spec.unique.as_ref().map(|unique| &unique.key)
    }

    /// Whether a call that ends the job also changes records beside the job. A job has
    /// such records if it has a client's id or a unique key, if it keeps its result, if it
    /// is a piece of a batch, or if it is at its second attempt or later.
    pub(crate) fn has_side_records(&self, possible: &PossibleState) -> bool {
        let NewJob { id, unique, keep_result, .. } = &self.spec;
        let is_piece = self.batch.is_some() && !possible.is_detached;
        let is_indexed = id.is_some() || keep_result.is_some();
        is_indexed || unique.is_some() || possible.attempt > 1 || is_piece
    }

    /// Whether a `Retry` or an expired lease buries the job (R11).
    pub(crate) fn is_last(&self, possible: &PossibleState) -> bool {
        possible.attempt >= u32::from(self.spec.max_attempts.get())
    }

    /// The job and its possible states, as text for a message.
    pub(crate) fn tell(&self) -> String {
        let payload = self.spec.payload.escape_ascii();
        let states = self.possible_states.iter().map(ToString::to_string);
        let states = states.collect::<Vec<_>>().join(", or ");
        format!("job `{payload}`, which by the calls so far is {states}")
    }
}

fn is_back(possible: &PossibleState) -> bool {
    matches!(possible.location, JobLocation::Ready(_) | JobLocation::Scheduled { .. })
}

/// Adds a possible state, unless it is already there.
pub(crate) fn add(possible_states: &mut Vec<PossibleState>, possible: PossibleState) {
    if !possible_states.contains(&possible) {
        possible_states.push(possible);
    }
}

impl Lease {
    /// Returns the location of the leased job after it became ready again at the moment
    /// `back`.
    pub(crate) fn back(&self, class: &Class, back: Moment) -> JobLocation {
        JobLocation::Ready(class.back((self.claim, self.index), self.until, back))
    }
}

/// Whether the id of a job that ended at `at` is still remembered at `now` (R4).
pub(crate) fn is_remembered(end: End, at: Ms, now: Ms) -> bool {
    end != End::Purged && now < at + WINDOW
}
