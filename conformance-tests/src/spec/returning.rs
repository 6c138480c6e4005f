//! The rules for `release_worker` and `recover`: how they change the possible states.

use relq_core::outcome::Recovered;

use super::{
    batching::dropped,
    possible_state::{JobLocation, PossibleState},
    reference::{CheckResult, Job, Knowledge, Reference},
};
use crate::spec::{
    class::Class,
    ready_order::{LAST, Moment, ReadyPosition},
};

impl Reference {
    /// Records a `release_worker` that returned, and checks the number of jobs that it
    /// reported (R24).
    pub(crate) fn left(&mut self, run: usize, jobs: u64) -> CheckResult {
        self.released_worker(run, Knowledge::Done);
        let now = self.now;
        let is_held = |possible: &PossibleState| is_of(possible, run);
        let is_sure = |possible: &PossibleState| {
            is_held(possible) && !possible.may_be_overdue(now)
        };
        // A piece of a cancelled batch is dropped and not given back.
        let least =
            self.count(|job, possible| is_sure(possible) && job.cancelled.is_none()).0;
        let most = self.count(|_, possible| is_held(possible)).1;
        in_range("R24: jobs given back by leaving", jobs, (least, most))?;
        let back = (self.step, 0);
        let class = self.class.clone();
        self.each(Knowledge::Done, "R24", |_, possible| {
            let mut becomes = given_back(&class, possible, run, back);
            if becomes.is_empty() || possible.overdue(now).is_some() {
                becomes.push(*possible);
            }
            becomes
        })
    }

    /// Records a `release_worker` whose reply was lost: the jobs may be ready again.
    pub(crate) fn maybe_left(&mut self, run: usize) {
        self.released_worker(run, Knowledge::Maybe);
        let (back, class) = ((self.step, 0), self.class.clone());
        self.maybe(|_, possible| given_back(&class, possible, run, back));
    }

    /// Records one page of `recover` that returned, and checks its counts.
    pub(crate) fn recovered(&mut self, page: u64, answer: &Recovered) -> CheckResult {
        let most_requeued = self.check_counts(page, answer)?;
        if !answer.more {
            self.cancels_are_over();
        }
        if u64::from(answer.requeued) == most_requeued {
            self.moved_are_overdue();
        }
        let (now, step) = (self.now, self.step);
        let (more, class) = (answer.more, self.class.clone());
        let taken = self.each(Knowledge::Done, "R9", |job, possible| {
            let mut becomes = taken_back(&class, job, possible, now, step);
            if becomes.is_empty() || (more && becomes[0].location != possible.location)
            {
                super::reference::add(&mut becomes, *possible);
            }
            becomes
        });
        if !answer.more {
            self.orphans_are_gone();
        }
        taken
    }

    /// Checks the counts that a page of `recover` returned. Returns the largest number of
    /// jobs that the page may have made ready.
    fn check_counts(&self, page: u64, answer: &Recovered) -> Result<u64, String> {
        let now = self.now;
        let ends = |job: &Job, possible: &PossibleState, is_last: bool| {
            possible.overdue(now).is_some() && job.is_last(possible) == is_last
        };
        let may_end = |job: &Job, possible: &PossibleState| {
            possible.may_be_overdue(now) && !job.is_last(possible)
        };
        let back = (
            self.count(|job, possible| ends(job, possible, false)).0,
            self.count(may_end).1,
        );
        // The recovery drops a piece of a cancelled batch, and may or may not count it.
        let (least, most) = back;
        let surely = |job: &Job| job.cancelled.is_none();
        let least = least.min(
            self.count(|job, possible| surely(job) && ends(job, possible, false)).0,
        );
        let back =
            (least, most + self.count(|job, it| !surely(job) && ends(job, it, true)).1);
        let may_die = |job: &Job| job.cancelled != Some(Knowledge::Done);
        let buried = (
            self.count(|job, possible| surely(job) && ends(job, possible, true)).0,
            self.count(|job, possible| may_die(job) && ends(job, possible, true)).1,
        );
        let due = self.count(|_, possible| is_due(possible, now));
        let range = |(surely, maybe)| (if answer.more { 0 } else { surely }, maybe);
        let (requeued, dead) = (u64::from(answer.requeued), u64::from(answer.buried));
        in_range("REAP-ONCE, R12: requeued", requeued, range(back))?;
        in_range("R11: buried by recovery", dead, range(buried))?;
        in_range("R14: promoted", u64::from(answer.promoted), range(due))?;
        in_range("R9: recovered by one page", requeued + dead, (0, page))?;
        Ok(back.1)
    }

    /// Records that each job that was moved and not leased is overdue now, because as
    /// many jobs are as may be.
    pub(crate) fn moved_are_overdue(&mut self) {
        let now = self.now;
        let all = self.jobs.iter_mut().flat_map(|job| &mut job.possible_states);
        for possible in all {
            if let JobLocation::Moved(lease) = &mut possible.location {
                lease.until = lease.until.min(now);
            }
        }
    }

    /// Records one page of `recover` whose reply was lost.
    pub(crate) fn maybe_recovered(&mut self) {
        let (now, step, class) = (self.now, self.step, self.class.clone());
        self.maybe(|job, possible| taken_back(&class, job, possible, now, step));
    }
}

fn given_back(
    class: &Class,
    possible: &PossibleState,
    run: usize,
    back: Moment,
) -> Vec<PossibleState> {
    match possible.location {
        JobLocation::Leased(lease) if lease.run == run => {
            let attempt = possible.attempt.saturating_sub(1);
            vec![PossibleState { attempt, ..possible.at(lease.back(class, back)) }]
        }
        JobLocation::Moved(lease) if lease.run == run => {
            vec![possible.at(lease.back(class, back))]
        }
        _ => Vec::new(),
    }
}

/// Whether the job is with that run of a worker.
fn is_of(possible: &PossibleState, run: usize) -> bool {
    match possible.location {
        JobLocation::Leased(lease) | JobLocation::Moved(lease) => lease.run == run,
        _ => false,
    }
}

fn is_due(possible: &PossibleState, now: u64) -> bool {
    matches!(possible.location, JobLocation::Scheduled { due } if due <= now)
}

/// The possible states of a job after a recovery has handled it: its lease has expired,
/// or it is due. Empty if a recovery does not change it.
fn taken_back(
    class: &Class,
    job: &Job,
    possible: &PossibleState,
    now: u64,
    step: u32,
) -> Vec<PossibleState> {
    match possible.location {
        JobLocation::Leased(lease) if lease.until <= now => {
            let is_last = job.is_last(possible);
            let back = || lease.back(class, (step, 0));
            let location = if is_last { JobLocation::Dead } else { back() };
            let returned = possible.with_lost_lease().at(location);
            unless_cancelled(job, possible, returned, now)
        }
        JobLocation::Moved(lease) => {
            let returned = possible.at(lease.back(class, (step, 0)));
            let stays = lease.until > now;
            [returned].into_iter().chain(stays.then_some(*possible)).collect()
        }
        JobLocation::Scheduled { due } if due <= now => {
            let position = ReadyPosition::Back {
                from: (step, 0),
                to: (step, usize::MAX),
                due: Some(due),
            };
            vec![possible.at(JobLocation::Ready(position))]
        }
        JobLocation::Ready(ReadyPosition::Back { from, to: LAST, due }) => {
            let position = ReadyPosition::Back { from, to: (step, usize::MAX), due };
            vec![possible.at(JobLocation::Ready(position))]
        }
        _ => Vec::new(),
    }
}

/// The possible states of a job after a recovery: `returned`, or dropped if the job is a
/// piece of a cancelled batch.
pub(super) fn unless_cancelled(
    job: &Job,
    possible: &PossibleState,
    returned: PossibleState,
    now: u64,
) -> Vec<PossibleState> {
    match job.is_cancelled(possible) {
        None => vec![returned],
        Some(Knowledge::Done) => vec![dropped(possible, now)],
        Some(Knowledge::Maybe) => vec![returned, dropped(possible, now)],
    }
}

/// Checks that a number lies between `from` and `to`. The error begins with `rule`.
pub(crate) fn in_range(rule: &str, number: u64, (from, to): (u64, u64)) -> CheckResult {
    if (from..=to).contains(&number) {
        return Ok(());
    }
    let expected =
        if from == to { from.to_string() } else { format!("{from} to {to}") };
    Err(format!("{rule}: {number}, expected {expected}"))
}
