//! The rules for stats and audit (R23).

use relq_core::{
    JobId, Stats,
    operator::{Audit, JobState},
};

use super::{
    possible_state::{Counted, JobLocation, PossibleState},
    reference::{CheckResult, Reference},
    returning::in_range,
};

impl Reference {
    /// CONSERVE: checks the stats, read while no call is running. They also show which
    /// of the possible effects happened.
    pub(crate) fn counted(&mut self, stats: &Stats) -> CheckResult {
        let counts = [
            (Counted::In(JobState::Ready), stats.ready),
            (Counted::In(JobState::Scheduled), stats.scheduled),
            (Counted::In(JobState::Leased), stats.leased),
            (Counted::In(JobState::Dead), stats.dead),
            (Counted::Finished, stats.finished),
            (Counted::Discarded, stats.discarded),
            (Counted::Cancelled, stats.cancelled),
        ];
        for (location, figure) in counts {
            let range = self.count(|_, possible| possible.counted() == location);
            let observed =
                || format!("CONSERVE, R23: {location:?}{}", self.tell_unended());
            in_range("", figure, range)
                .map_err(|wrong| format!("{}{wrong}", observed()))?;
        }
        for (location, figure) in counts {
            self.sharpen(location, figure)?;
        }
        let now = self.now;
        let overdue = self.count(|_, possible| possible.overdue(now).is_some());
        in_range("R23: overdue", stats.overdue, overdue)?;
        if !self.paused.contains(&stats.paused) {
            return Err(format!("R23: paused is {}", stats.paused));
        }
        self.paused = vec![stats.paused];
        Ok(())
    }

    /// Checks the audit of the same moment.
    pub(crate) fn audited(&self, audit: &Audit, stats: &Stats) -> CheckResult {
        if !audit.problems.is_empty() {
            return Err(format!("CONSERVE, R23: the audit: {:?}", audit.problems));
        }
        let all = stats.unfinished() + stats.dead;
        in_range("CONSERVE, R23: jobs of the audit", audit.jobs, (all, all))
    }

    /// LOST: checks the ids of the dead letters at the end.
    pub(crate) fn dead_are(&self, ids: &[Option<JobId>]) -> CheckResult {
        let is_dead = |possible: &PossibleState| possible.location == JobLocation::Dead;
        for job in &self.jobs {
            let is_listed = job.id.is_some() && ids.contains(&job.id);
            let surely = job.id.is_some() && job.possible_states.iter().all(is_dead);
            if surely && !is_listed {
                return Err(format!("LOST, R1: not among the dead: {}", job.tell()));
            }
        }
        Ok(())
    }

    /// Prints the stats, and the possible states of each job.
    pub(crate) fn tell(&self, stats: &Stats) {
        println!("after {} ms: {stats:?}", self.now);
        self.jobs.iter().for_each(|job| println!("    {}", job.tell()));
    }

    /// The possible states of each job that may be unfinished or dead.
    fn tell_unended(&self) -> String {
        let is_in =
            |possible: &PossibleState| matches!(possible.counted(), Counted::In(_));
        let jobs = self.jobs.iter().filter(|job| job.possible_states.iter().any(is_in));
        jobs.map(|job| format!("; {}", job.tell())).collect()
    }

    /// If the figure equals the minimum or the maximum, rules out the states that
    /// contradict it.
    fn sharpen(&mut self, location: Counted, figure: u64) -> CheckResult {
        let is_it = |possible: &PossibleState| possible.counted() == location;
        let (surely, maybe) = self.count(|_, possible| is_it(possible));
        if surely == maybe || (figure != surely && figure != maybe) {
            return Ok(());
        }
        for at in 0..self.jobs.len() {
            let possible_states = &self.jobs[at].possible_states;
            let is_open =
                possible_states.iter().any(is_it) && !possible_states.iter().all(is_it);
            if is_open {
                self.keep(at, "CONSERVE, R23", |possible| {
                    is_it(possible) == (figure == maybe)
                })?;
            }
        }
        Ok(())
    }
}
