//! The rules for the results of `stats` and `audit` (R23): what they must report.

use relq_core::{
    Stats,
    operator::{Audit, JobState},
};

use super::{
    possible_state::{Counted, PossibleState},
    reference::{CheckResult, Job, Reference},
    returning::in_range,
};

impl Reference {
    /// CONSERVE: checks the stats, which were read while no call was running, and rules
    /// out the possible states that contradict them.
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
        self.stats_add_up(&counts)?;
        for (location, figure) in counts {
            self.rule_out_by(figure, |_, possible| possible.counted() == location);
        }
        let now = self.now;
        let overdue = (
            self.count(|_, possible| possible.overdue(now).is_some()).0,
            self.count(|_, possible| possible.may_be_overdue(now)).1,
        );
        in_range("R23: overdue", stats.overdue, overdue)?;
        if stats.overdue == overdue.1 {
            // A job that is overdue before its lease would have ended was only moved.
            self.rule_out_by(stats.overdue, |_, possible| possible.may_be_overdue(now));
            self.moved_are_overdue();
        }
        if !self.paused.contains(&stats.paused) {
            return Err(format!("R23: paused is {}", stats.paused));
        }
        self.paused = vec![stats.paused];
        Ok(())
    }

    /// CONSERVE: checks that the figures can all be true at once. The stats count each job
    /// once at most, so this holds exactly if it holds for the sum of every set of figures
    /// (Hall's theorem). A job that two figures may count, and that neither counts, is
    /// missing from their sum.
    fn stats_add_up(&self, counts: &[(Counted, u64); 7]) -> CheckResult {
        let masks: Vec<_> =
            self.jobs.iter().map(|job| counted_by(job, counts)).collect();
        let mut sets: Vec<_> = (1..1_u8 << counts.len()).collect();
        // The smallest set that is wrong makes the clearest message.
        sets.sort_by_key(|set| set.count_ones());
        for set in sets {
            let of_set = (0..counts.len()).filter(|at| set & (1 << at) != 0);
            let sum: u64 = of_set.clone().map(|at| counts[at].1).sum();
            let surely = masks.iter().filter(|mask| **mask & !set == 0).count() as u64;
            let maybe = masks.iter().filter(|mask| **mask & set != 0).count() as u64;
            if !(surely..=maybe).contains(&sum) {
                let names = of_set.map(|at| counts[at].0.to_string());
                let names = names.collect::<Vec<_>>().join(" or ");
                let rule = format!("CONSERVE, R23: {names} jobs in the stats");
                in_range(&rule, sum, (surely, maybe))
                    .map_err(|wrong| format!("{wrong}{}", self.tell_unended()))?;
            }
        }
        Ok(())
    }

    /// Checks the audit against the stats that were read at the same moment.
    pub(crate) fn audited(&self, audit: &Audit, stats: &Stats) -> CheckResult {
        Self::is_sound(audit)?;
        let all = stats.unfinished() + stats.dead;
        in_range("CONSERVE, R23: jobs of the audit", audit.jobs, (all, all))
    }

    /// Checks that the audit found no problem.
    pub(crate) fn is_sound(audit: &Audit) -> CheckResult {
        if audit.problems.is_empty() {
            return Ok(());
        }
        Err(format!("CONSERVE, R23: the audit: {:?}", audit.problems))
    }

    /// Prints the stats, and the possible states of each job.
    pub(crate) fn tell(&self, stats: &Stats) {
        println!("after {} ms: {stats:?}", self.now);
        self.jobs.iter().for_each(|job| println!("    {}", job.tell()));
    }

    /// The possible states of each job that may be unfinished or dead, as text for a
    /// message.
    fn tell_unended(&self) -> String {
        let is_in =
            |possible: &PossibleState| matches!(possible.counted(), Counted::In(_));
        let jobs = self.jobs.iter().filter(|job| job.possible_states.iter().any(is_in));
        jobs.map(|job| format!("; {}", job.tell())).collect()
    }

    /// Checks that `figure`, a number from the store, is possible: exactly that many
    /// jobs can meet the condition. Rules out the states that contradict the number.
    pub(crate) fn figure_is(
        &mut self,
        rule: &str,
        figure: u64,
        is_it: impl Fn(&Job, &PossibleState) -> bool,
    ) -> CheckResult {
        in_range(rule, figure, self.count(&is_it))?;
        self.rule_out_by(figure, is_it);
        Ok(())
    }

    /// Rules out states if `figure` is the lowest or the highest possible number of
    /// jobs that meet the condition, because then each job certainly meets it or does
    /// not.
    fn rule_out_by(
        &mut self,
        figure: u64,
        is_it: impl Fn(&Job, &PossibleState) -> bool,
    ) {
        let (surely, maybe) = self.count(&is_it);
        if surely == maybe || (figure != surely && figure != maybe) {
            return;
        }
        for job in &mut self.jobs {
            let is_it = |possible: &PossibleState| is_it(job, possible);
            let (counted, others): (Vec<_>, Vec<_>) =
                job.possible_states.iter().copied().partition(is_it);
            if !counted.is_empty() && !others.is_empty() {
                job.possible_states = if figure == maybe { counted } else { others };
            }
        }
    }
}

/// The bit of a job that none of the stats may count.
const NOWHERE: u8 = 1 << 7;

/// The figures that may count the job: bit `n` stands for `counts[n]`.
fn counted_by(job: &Job, counts: &[(Counted, u64); 7]) -> u8 {
    job.possible_states.iter().fold(0, |mask, possible| {
        let counted = possible.counted();
        let at = counts.iter().position(|(location, _)| *location == counted);
        mask | at.map_or(NOWHERE, |at| 1 << at)
    })
}
