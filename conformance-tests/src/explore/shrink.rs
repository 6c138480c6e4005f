//! Shrinks a failing run: finds a simpler run that fails in the same way.
//!
//! The first failing run of a search has decisions that the failure does not need. The
//! shrinking leaves out one decision at a time, makes it earlier, or runs its step
//! without draws, and plays the resulting run. It keeps that run if it fails in the same
//! way and is simpler: it has fewer faults, or else fewer decisions, or else fewer draws,
//! or else fewer changes from one actor to another.

use std::time::{Duration, Instant};

use super::{
    choice::Choice,
    faults::Faults,
    search::{Failure, Search},
    world::World,
};

/// How many runs the shrinking of one failure makes at most.
const MOST_RUNS: usize = 300;

/// How long the shrinking of one failure takes at most, so that a failure is shown soon
/// even if each of its runs takes long to judge.
const MOST_TIME: Duration = Duration::from_secs(60);

impl Search<'_> {
    /// Returns a run with the same failure that cannot be made simpler by leaving out
    /// one decision or making it earlier. Returns the simplest run so far after
    /// [`MOST_RUNS`] runs or [`MOST_TIME`].
    pub(super) fn shrunk(&self, mut failure: Failure) -> Failure {
        // If equal decisions lead to different runs, other decisions prove nothing.
        let is_repeatable = kind(&failure.wrong) != "DETERMINISTIC";
        let mut runs = if is_repeatable { 0 } else { MOST_RUNS };
        let end = Instant::now() + MOST_TIME;
        while let Some(simpler) = self.simpler(&failure, &mut runs, end) {
            failure = simpler;
        }
        failure
    }

    fn simpler(
        &self,
        failure: &Failure,
        runs: &mut usize,
        end: Instant,
    ) -> Option<Failure> {
        for wishes in variants(&failure.schedule) {
            if *runs == MOST_RUNS || Instant::now() >= end {
                return None;
            }
            *runs += 1;
            let Some(other) = self.with_wishes(&wishes) else { continue };
            let is_simpler = cost(&other.schedule) < cost(&failure.schedule);
            if is_simpler && kind(&other.wrong) == kind(&failure.wrong) {
                return Some(other);
            }
        }
        None
    }

    /// Plays the scene, and makes each of these decisions as soon as it is possible. In
    /// between, the actor of the last decision continues. Returns the failure, if the
    /// run fails.
    fn with_wishes(&self, wishes: &[Choice]) -> Option<Failure> {
        let mut schedule = Vec::new();
        let run = async {
            let Self { place, subject, scene, .. } = self;
            let faults = Faults::of(wishes);
            let mut world = World::start(place, subject, scene, faults).await?;
            let mut wishes = wishes.iter().copied();
            loop {
                let mut choices = world.choices(self.pruning).await?;
                choices.extend(world.draws().await?);
                let Some(first) = choices.first() else { break };
                let wish = wishes.by_ref().find(|wish| choices.contains(wish));
                let last = schedule.last().copied();
                let goes_on = last
                    .filter(|it| choices.contains(it) && matches!(it, Choice::Pass(_)));
                let choice = wish.or(goes_on).unwrap_or(*first);
                schedule.push(choice);
                world.apply(choice).await?;
            }
            self.judge(world).await
        };
        let wrong = self.judged(run).err()?;
        Some(Failure { wrong, schedule })
    }
}

/// Returns the schedules in which one decision is left out, is made one place earlier,
/// or runs its step without draws.
fn variants(schedule: &[Choice]) -> impl Iterator<Item = Vec<Choice>> {
    let without = (0..schedule.len()).map(|at| {
        let mut wishes = schedule.to_vec();
        wishes.remove(at);
        wishes
    });
    let earlier = (1..schedule.len()).map(|at| {
        let mut wishes = schedule.to_vec();
        wishes.swap(at - 1, at);
        wishes
    });
    let undrawn = (0..schedule.len()).filter_map(|at| {
        let Choice::Draw(step, _) = schedule[at] else { return None };
        let mut wishes = schedule.to_vec();
        wishes[at] = Choice::Pass(step);
        Some(wishes)
    });
    without.chain(earlier).chain(undrawn)
}

/// How complex a run is. The first difference decides which of two runs is simpler.
pub(super) type Cost = [usize; 4];

/// Returns how complex a run is: the number of its faults, of its decisions, of its draws,
/// and of its changes from one actor to another.
pub(super) fn cost(schedule: &[Choice]) -> Cost {
    let Faults { deaths, late, cuts, .. } = Faults::of(schedule);
    let changes = schedule.windows(2).filter(|two| two[0].who() != two[1].who());
    let draws = schedule.iter().map(|choice| match choice {
        Choice::Draw(_, draws) => draws.count(),
        _ => 0,
    });
    [deaths + late + cuts, schedule.len(), draws.sum(), changes.count()]
}

/// Returns the first word of a failure, which names the failed check or call.
pub(super) fn kind(wrong: &str) -> &str {
    wrong.split(':').next().unwrap_or(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::operation::Who;

    #[test]
    fn a_run_with_fewer_faults_and_changes_is_simpler() {
        let pass = |who| Choice::Pass((who, 0));
        let (a, b) = (pass(Who::WorkerA), pass(Who::WorkerB));

        assert!(cost(&[a, b, a, b]) < cost(&[a, Choice::Die(Who::WorkerB)]));
        assert!(cost(&[a, a, b, b]) < cost(&[a, b, a, b]));
        assert!(cost(&[a, a]) < cost(&[a, a, a]));
    }

    #[test]
    fn each_decision_is_left_out_once() {
        let time = Choice::Time;
        let a = Choice::Pass((Who::WorkerA, 0));

        let all: Vec<_> = variants(&[time, a]).collect();

        assert_eq!(all, [vec![a], vec![time], vec![a, time]]);
    }
}
