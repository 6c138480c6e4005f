//! The rules for the calls that find jobs, run them now and list workers (R31 to R33).

use relq_core::{
    JobId, WorkerId,
    operator::{JobLookup, JobRecord, RunNow, WorkerView},
};

use super::{
    possible_state::{Counted, End, JobLocation, Ms, PossibleState},
    pushing::ms,
    ready_order::ReadyPosition,
    reference::{CheckResult, Job, Knowledge, Reference, WINDOW, add},
    returning::unless_cancelled,
};

/// How long a worker is listed after a report (R33).
const LISTED: Ms = 60_000;

/// A worker that has reported, or may have.
#[derive(Debug, Clone)]
pub(crate) struct Reporter {
    worker: WorkerId,
    /// Until when it is certainly listed. `None` if it may have been released.
    surely: Option<Ms>,
    /// Until when it may be listed.
    maybe: Ms,
}

impl Reference {
    /// Records a `run_now` that returned, and checks its result.
    pub(crate) fn ran_now(&mut self, id: &JobId, answer: &RunNow) -> CheckResult {
        let named = self.named(id);
        let rule = format!("R32: {answer:?}");
        if *answer == RunNow::NotScheduled {
            let is_so = |possible: &PossibleState| !is_scheduled(possible);
            return named.into_iter().try_for_each(|at| self.keep(at, &rule, is_so));
        }
        let fits = |reference: &Self, at: usize| {
            let job = &reference.jobs[at];
            job.possible_states.iter().any(|possible| job.may_answer(possible, answer))
        };
        let found: Vec<_> = named.into_iter().filter(|at| fits(self, *at)).collect();
        let at = match found[..] {
            [] => return Err(format!("{rule}: {id} is not such a job")),
            [at] => at,
            // A second push of the same id may have stored another job, because its
            // reply was lost.
            _ => {
                self.maybe_ran_now(id);
                return Ok(());
            }
        };
        let job = self.jobs[at].clone();
        self.keep(at, &rule, |possible| job.may_answer(possible, answer))?;
        if *answer == RunNow::Ready {
            let (now, step) = (self.now, self.step);
            let mut next = Vec::new();
            for possible in &job.possible_states {
                let becomes = run(&job, possible, now, step);
                becomes.into_iter().for_each(|it| add(&mut next, it));
            }
            self.jobs[at].possible_states = next;
        }
        Ok(())
    }

    /// Records a `run_now` whose reply was lost: the job may be ready.
    pub(crate) fn maybe_ran_now(&mut self, id: &JobId) {
        let (now, step) = (self.now, self.step);
        self.maybe(|job, possible| {
            if job.id.as_ref() == Some(id) {
                run(job, possible, now, step)
            } else {
                Vec::new()
            }
        });
    }

    /// Checks what a look-up says of a job. If two jobs may have the id, it says too
    /// little to be checked.
    pub(crate) fn found(&mut self, id: &JobId, answer: &JobLookup) -> CheckResult {
        let [at] = self.named(id)[..] else { return Ok(()) };
        let (job, now) = (self.jobs[at].clone(), self.now);
        let rule = format!("R31: the look-up finds {answer:?}");
        match answer {
            JobLookup::Stored(record) => self.recorded(at, record),
            JobLookup::Ended { was_done, .. } => self.keep(at, &rule, |possible| {
                let is_done = |end| matches!(end, End::Finished);
                matches!(possible.location, JobLocation::Gone { end, .. }
                    if end != End::Purged && is_done(end) == *was_done)
            }),
            JobLookup::MaybeReady { followers } => {
                self.keep(at, &rule, |possible| {
                    is_ready(possible)
                        || !job.has_known_end(possible, now) && is_gone(possible)
                })?;
                // The followers of a job that has ended may be on their way out.
                if self.jobs[at].possible_states.iter().all(is_ready) {
                    self.followed_by(id, followers)?;
                }
                Ok(())
            }
            _ => self.keep(at, &rule, |possible| {
                !job.has_known_end(possible, now) && is_gone(possible)
            }),
        }
    }

    /// Checks the record of a stored job.
    fn recorded(&mut self, at: usize, record: &JobRecord) -> CheckResult {
        self.viewed(at, &record.job)?;
        let id = self.jobs[at].id.as_ref();
        id.map_or(Ok(()), |id| self.followed_by(id, &record.followers))
    }

    /// Checks the list of a job's held followers.
    fn followed_by(&self, leader: &JobId, followers: &[JobId]) -> CheckResult {
        for other in &self.jobs {
            let is_follower = other.spec.after.as_ref() == Some(leader);
            let is_listed = other.id.as_ref().is_some_and(|id| followers.contains(id));
            let mut held = other.possible_states.iter().map(is_held);
            if is_follower && !is_listed && other.id.is_some() && held.all(|it| it) {
                return Err(format!("R31: no follower of it is {}", other.tell()));
            }
            let mut held = other.possible_states.iter().map(is_held);
            if is_listed && !(is_follower && held.any(|it| it)) {
                return Err(format!("R31: a follower of it is {}", other.tell()));
            }
        }
        Ok(())
    }

    /// Records a report of a worker, which arrived or may have arrived.
    pub(crate) fn reported_worker(
        &mut self,
        run: usize,
        worker: &WorkerId,
        known: Knowledge,
    ) {
        let (began, now) = (self.call_began.unwrap_or(self.now), self.now);
        let reporter = self.reporters.entry(run).or_insert_with(|| Reporter {
            worker: worker.clone(),
            surely: None,
            maybe: 0,
        });
        reporter.maybe = reporter.maybe.max(now + LISTED);
        if known == Knowledge::Done {
            reporter.surely = Some(began + LISTED);
        }
    }

    /// Records that a worker was released, or may have been.
    pub(crate) fn released_worker(&mut self, run: usize, known: Knowledge) {
        match known {
            Knowledge::Done => {
                self.reporters.remove(&run);
            }
            Knowledge::Maybe => {
                if let Some(reporter) = self.reporters.get_mut(&run) {
                    reporter.surely = None;
                }
            }
        }
    }

    /// Records that a purge removed all reports, or may have.
    pub(crate) fn purged_workers(&mut self, known: Knowledge) {
        match known {
            Knowledge::Done => self.reporters.clear(),
            Knowledge::Maybe => {
                self.reporters.values_mut().for_each(|one| one.surely = None);
            }
        }
    }

    /// Checks a list of all workers: each that certainly runs is listed, and none whose
    /// time has passed.
    pub(crate) fn listed_workers(&self, workers: &[WorkerView]) -> CheckResult {
        let began = self.call_began.unwrap_or(self.now);
        for view in workers {
            let mut known = self.reporters.values();
            let may_be =
                known.any(|one| one.worker == view.worker && one.maybe >= began);
            if !may_be {
                return Err(format!("R33: listed, and has not reported: {view:?}"));
            }
        }
        let mut reporters = self.reporters.values();
        let is_missing = |one: &&Reporter| {
            one.surely.is_some_and(|until| until > self.now)
                && !workers.iter().any(|view| view.worker == one.worker)
        };
        match reporters.find(is_missing) {
            Some(missing) => Err(format!("R33: not listed: {missing:?}")),
            None => Ok(()),
        }
    }

    fn named(&self, id: &JobId) -> Vec<usize> {
        (0..self.jobs.len())
            .filter(|at| self.jobs[*at].id.as_ref() == Some(id))
            .collect()
    }
}

impl Job {
    /// Whether a `run_now` of the job may answer this, if the job is scheduled.
    fn may_answer(&self, possible: &PossibleState, answer: &RunNow) -> bool {
        match answer {
            RunNow::Ready => matches!(possible.location, JobLocation::Scheduled { .. }),
            RunNow::Following { leader } => {
                is_held(possible) && self.spec.after.as_ref() == Some(leader)
            }
            RunNow::NotScheduled => !is_scheduled(possible),
        }
    }

    /// Whether the end of the job is certainly remembered. Whether the ids of pieces are
    /// depends on the backend (B1).
    fn has_known_end(&self, possible: &PossibleState, now: Ms) -> bool {
        let kept = self.spec.keep_result.map(ms).unwrap_or_default();
        let is_indexed = self.spec.id.is_some() || self.spec.keep_result.is_some();
        let JobLocation::Gone { end, at } = possible.location else { return false };
        is_indexed
            && self.batch.is_none()
            && end != End::Purged
            && now < at + WINDOW.max(kept)
    }
}

fn is_held(possible: &PossibleState) -> bool {
    matches!(possible.location, JobLocation::Held | JobLocation::Orphaned)
}

fn is_ready(possible: &PossibleState) -> bool {
    matches!(possible.location, JobLocation::Ready(_))
}

fn is_gone(possible: &PossibleState) -> bool {
    !matches!(possible.counted(), Counted::In(_))
}

fn is_scheduled(possible: &PossibleState) -> bool {
    is_held(possible) || matches!(possible.location, JobLocation::Scheduled { .. })
}

/// The possible states of a job after it was run now. Empty if it is not scheduled.
fn run(job: &Job, possible: &PossibleState, now: Ms, step: u32) -> Vec<PossibleState> {
    if !matches!(possible.location, JobLocation::Scheduled { .. }) {
        return Vec::new();
    }
    let position =
        ReadyPosition::Back { from: (step, 0), to: (step, usize::MAX), due: None };
    unless_cancelled(job, possible, possible.at(JobLocation::Ready(position)), now)
}
