//! The rules for an operator's calls: how they change the possible states of jobs.

use relq_core::{
    JobId,
    operator::{Cancelled, JobState, Redriven},
};

use super::{
    last_error::LastError,
    possible_state::{Counted, End, JobLocation, Ms, PossibleState},
    reference::{CheckResult, Job, Knowledge, Reference},
    returning::in_range,
};
use crate::spec::ready_order::ReadyPosition;

impl Reference {
    /// Records a `cancel` that returned, and checks its result.
    pub(crate) fn cancelled(&mut self, id: &JobId, answer: Cancelled) -> CheckResult {
        let now = self.now;
        let is_there = |possible: &PossibleState| match answer {
            Cancelled::Removed(state) => possible.counted() == Counted::In(state),
            Cancelled::NotFound => !is_cancellable(possible),
        };
        let named: Vec<_> = (0..self.jobs.len())
            .filter(|at| self.jobs[*at].id.as_ref() == Some(id))
            .collect();
        let rule = format!("CANCEL: {answer:?}");
        if answer == Cancelled::NotFound {
            return named.into_iter().try_for_each(|at| self.keep(at, &rule, is_there));
        }
        let may_be_it =
            |at: &usize| self.jobs[*at].possible_states.iter().any(is_there);
        let found: Vec<_> = named.into_iter().filter(may_be_it).collect();
        let at = match found[..] {
            [] => return Err(format!("{rule}: {id} is not such a job")),
            [at] => at,
            // A second push of the same id may have stored another job, because its
            // reply was lost. The cancel ended one of the two jobs.
            _ => {
                self.maybe_cancelled(id);
                return Ok(());
            }
        };
        self.keep(at, &rule, is_there)?;
        let possible_states = std::mem::take(&mut self.jobs[at].possible_states);
        for possible in possible_states {
            super::reference::add(
                &mut self.jobs[at].possible_states,
                cancel(&possible, now),
            );
        }
        Ok(())
    }

    /// Records a `cancel` whose reply was lost: the job may be cancelled.
    pub(crate) fn maybe_cancelled(&mut self, id: &JobId) {
        let now = self.now;
        self.maybe(|job, possible| {
            if job.id.as_ref() == Some(id) && is_cancellable(possible) {
                vec![cancel(possible, now)]
            } else {
                Vec::new()
            }
        });
    }

    /// Records a redrive that returned, and checks its counts. `which` is the index of
    /// the one job to redrive, or `None` for all dead letters.
    pub(crate) fn redriven(
        &mut self,
        which: Option<usize>,
        answer: &Redriven,
    ) -> CheckResult {
        let total = self.dead_of(which);
        in_range("R16: redriven", answer.moved + answer.duplicates, total)?;
        let (step, now, contested) = (self.step, self.now, self.contested(which));
        let fates: Vec<_> =
            self.jobs.iter().map(|job| self.fate(job, &contested)).collect();
        let moves = self.count_moves(which, &fates);
        in_range("R16: made ready again", answer.moved, moves)?;
        for (at, fate) in fates.into_iter().enumerate() {
            let is_meant = which.is_none_or(|it| it == at);
            let job = &mut self.jobs[at];
            if !is_meant {
                continue;
            }
            let mut next = Vec::new();
            for possible in &job.possible_states {
                let moved = redrive(possible, step, now);
                if moved.is_empty() || fate != Fate::Moves {
                    super::reference::add(&mut next, *possible);
                }
                if fate != Fate::Stays {
                    job.returns += u32::from(!moved.is_empty());
                    moved
                        .into_iter()
                        .for_each(|it| super::reference::add(&mut next, it));
                }
            }
            job.possible_states = next;
        }
        Ok(())
    }

    /// Records a redrive whose reply was lost: the dead jobs may be ready.
    pub(crate) fn maybe_redriven(&mut self, which: Option<usize>) {
        let (step, now) = (self.step, self.now);
        for at in 0..self.jobs.len() {
            if which.is_some_and(|it| it != at) {
                continue;
            }
            let job = &mut self.jobs[at];
            for possible in job.possible_states.clone() {
                for moved in redrive(&possible, step, now) {
                    job.returns += 1;
                    super::reference::add(&mut job.possible_states, moved);
                }
            }
        }
    }

    /// Records a purge of dead letters that returned, and checks its count.
    pub(crate) fn dead_purged(&mut self, removed: u64) -> CheckResult {
        in_range("R23: dead jobs removed", removed, self.dead_of(None))?;
        let now = self.now;
        self.each(Knowledge::Done, "", |_, possible| match possible.location {
            JobLocation::Dead => vec![possible.ended(End::PurgedDead, now)],
            _ => vec![*possible],
        })
    }

    /// Records a purge of dead letters whose reply was lost: they may be removed.
    pub(crate) fn maybe_dead_purged(&mut self) {
        let now = self.now;
        self.maybe(|_, possible| match possible.location {
            JobLocation::Dead => vec![possible.ended(End::PurgedDead, now)],
            _ => Vec::new(),
        });
    }

    /// Records a purge that returned, and checks its count. Every job is removed, and
    /// ids and tokens are forgotten.
    pub(crate) fn purged(&mut self, removed: u64) -> CheckResult {
        let is_in = |_: &Job, possible: &PossibleState| {
            matches!(possible.counted(), Counted::In(_))
        };
        in_range("R23: jobs purged", removed, self.count(is_in))?;
        self.calls.clear();
        self.batches_purged(Knowledge::Done);
        self.purged_workers(Knowledge::Done);
        let now = self.now;
        self.each(Knowledge::Done, "", |_, possible| vec![purge(possible, now)])
    }

    /// Records a purge whose reply was lost: all jobs may be removed.
    pub(crate) fn maybe_purged(&mut self) {
        self.calls.clear();
        self.batches_purged(Knowledge::Maybe);
        self.purged_workers(Knowledge::Maybe);
        let now = self.now;
        self.maybe(|_, possible| vec![purge(possible, now)]);
    }

    /// Records a pause or a resume of claims, which happened or may have happened.
    pub(crate) fn steered(&mut self, paused: bool, known: Knowledge) {
        if known == Knowledge::Done {
            self.paused.clear();
        }
        if !self.paused.contains(&paused) {
            self.paused.push(paused);
        }
    }

    fn dead_of(&self, which: Option<usize>) -> (u64, u64) {
        let is_dead = |possible: &PossibleState| possible.location == JobLocation::Dead;
        let (mut surely, mut maybe) = (0, 0);
        for (at, job) in self.jobs.iter().enumerate() {
            if which.is_none_or(|it| it == at) {
                surely += u64::from(job.possible_states.iter().all(is_dead));
                maybe += u64::from(job.possible_states.iter().any(is_dead));
            }
        }
        (surely, maybe)
    }

    /// Returns the unique keys that a redrive could give to more than one dead job.
    /// Only one of these jobs can get the key.
    fn contested(&self, which: Option<usize>) -> Vec<relq_core::unique::UniqueKey> {
        let wants = |job: &&Job| {
            let may_be_dead =
                job.possible_states.iter().any(|it| it.location == JobLocation::Dead);
            which.is_none() && may_be_dead
        };
        let keys: Vec<_> =
            self.jobs.iter().filter(wants).filter_map(Job::key).collect();
        let is_twice = |key: &&relq_core::unique::UniqueKey| {
            keys.iter().filter(|other| *other == key).count() > 1
        };
        keys.iter().copied().filter(is_twice).cloned().collect()
    }

    fn fate(&self, job: &Job, contested: &[relq_core::unique::UniqueKey]) -> Fate {
        let Some(key) = job.key() else { return Fate::Moves };
        let now = self.now;
        let others = self.jobs.iter().filter(|other| {
            other.key() == Some(key) && other.spec.payload != job.spec.payload
        });
        let mut fate = Fate::Moves;
        for other in others {
            if other.possible_states.iter().all(|possible| possible.holds_key(now)) {
                return Fate::Stays;
            }
            if other.possible_states.iter().any(|possible| possible.may_hold_key(now)) {
                fate = Fate::Either;
            }
        }
        if contested.contains(key) { Fate::Either } else { fate }
    }

    fn count_moves(&self, which: Option<usize>, fates: &[Fate]) -> (u64, u64) {
        let (mut surely, mut maybe) = (0, 0);
        for (at, (job, fate)) in self.jobs.iter().zip(fates).enumerate() {
            if which.is_some_and(|it| it != at) {
                continue;
            }
            let mut dead = job
                .possible_states
                .iter()
                .map(|possible| possible.location == JobLocation::Dead);
            surely += u64::from(*fate == Fate::Moves && dead.clone().all(|it| it));
            maybe += u64::from(*fate != Fate::Stays && dead.any(|it| it));
        }
        (surely, maybe)
    }
}

/// Whether a redrive moves a dead job, leaves it because its key is held, or may do
/// either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Moves,
    Stays,
    Either,
}

fn is_cancellable(possible: &PossibleState) -> bool {
    let states = [JobState::Scheduled, JobState::Ready, JobState::Leased];
    states.into_iter().any(|state| possible.counted() == Counted::In(state))
}

fn cancel(possible: &PossibleState, now: u64) -> PossibleState {
    let lease = possible.lease().and_then(|it| Some((it.receipt?, it.until)));
    possible.ended(End::Cancelled(lease), now)
}

/// Returns the possible states of a job after a redrive. A dead job becomes ready at
/// the back of the queue, like a new job. Its expiry may be dropped if it has passed,
/// and stays otherwise (R17).
fn redrive(possible: &PossibleState, step: u32, now: Ms) -> Vec<PossibleState> {
    if possible.location != JobLocation::Dead {
        return Vec::new();
    }
    let position =
        ReadyPosition::Back { from: (step, 0), to: (step, usize::MAX), due: None };
    let moved = PossibleState {
        attempt: 0,
        last_error: LastError::default(),
        is_detached: true,
        value: 0,
        ..possible.at(JobLocation::Ready(position))
    };
    let mut becomes = vec![moved];
    if possible.may_be_expired(now) {
        becomes.push(PossibleState { expires: None, ..moved });
    }
    becomes
}

fn purge(possible: &PossibleState, now: u64) -> PossibleState {
    match possible.location {
        JobLocation::Absent | JobLocation::Refused => *possible,
        _ => possible.ended(End::Purged, now),
    }
}
