//! Random schedules, for scenes with too many orders to try them all.
//!
//! Each run draws a priority for each actor, and the waiting step of the actor with the
//! highest priority runs. At a few random moments the running actor gets the lowest
//! priority, or a fault strikes. A bug that needs `d` steps in a certain order, among `k`
//! steps of `n` actors, shows in a run with a chance of at least `1 / (n * k^(d - 1))`
//! (probabilistic concurrency testing: Burckhardt and others, *ASPLOS* 2010). A uniformly
//! random order has a much smaller chance.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    choice::Choice,
    faults::Faults,
    search::{Failure, Found, Search},
    world::World,
};
use crate::spec::operation::Who;

/// How many times in a run the running actor gets the lowest priority. A bug that needs
/// `d` steps in a certain order needs `d - 1` such changes.
const CHANGES: usize = 3;

/// The assumed number of decisions of the first run, before any run was measured.
const FIRST_LENGTH: u64 = 40;

/// The draws for one run: the priorities, and the moments of changes and faults.
struct Drawn {
    random: Random,
    priorities: BTreeMap<Who, u64>,
    /// The numbers of the decisions after which the running actor gets the lowest
    /// priority.
    changes: BTreeSet<u64>,
    /// The numbers of the decisions at which a fault is injected.
    faults: BTreeSet<u64>,
    lowest: u64,
}

impl Search<'_> {
    /// Plays the scene `runs` times in random orders, which depend only on the seed.
    pub(super) fn random(&self, seed: u64, runs: u64) -> Found {
        let mut found = Found::default();
        for number in 0..runs {
            let length = (found.longest as u64).max(FIRST_LENGTH);
            let drawn =
                Drawn::new(Random(seed.wrapping_add(number)), length, self.faults);
            let mut schedule = Vec::new();
            let ended = self.judged(self.run_drawn(drawn, &mut schedule));
            found.runs += 1;
            found.longest = found.longest.max(schedule.len());
            if let Err(wrong) = ended {
                found.failure = Some(Failure { wrong, schedule });
                break;
            }
        }
        found
    }

    async fn run_drawn(
        &self,
        mut drawn: Drawn,
        schedule: &mut Vec<Choice>,
    ) -> Result<(), String> {
        let Self { place, subject, scene, .. } = self;
        let mut world = World::start(place, subject, scene, self.faults).await?;
        loop {
            let mut choices = world.choices(self.pruning).await?;
            choices.extend(world.draws().await?);
            let Some(choice) = drawn.next(&choices, schedule.len() as u64) else {
                break;
            };
            schedule.push(choice);
            world.apply(choice).await?;
        }
        self.judge(world).await
    }
}

impl Drawn {
    fn new(mut random: Random, length: u64, faults: Faults) -> Self {
        let Faults { deaths, late, cuts, draws } = faults;
        let mut some = |count| (0..count).map(|_| random.below(length)).collect();
        let (changes, faults) = (some(CHANGES), some(deaths + late + cuts + draws));
        let lowest = u64::MAX / 2;
        Self { random, priorities: BTreeMap::new(), changes, faults, lowest }
    }

    fn next(&mut self, choices: &[Choice], decision: u64) -> Option<Choice> {
        let is_fault = |choice: &Choice| Faults::of(&[*choice]) != Faults::default();
        let (faults, steps): (Vec<_>, Vec<_>) =
            choices.iter().copied().partition(is_fault);
        if self.faults.contains(&decision) && !faults.is_empty() {
            return self.random.one_of(&faults);
        }
        let highest = steps
            .iter()
            .map(|step| step.who())
            .max_by_key(|who| self.priority(*who))?;
        let of_highest: Vec<_> =
            steps.into_iter().filter(|step| step.who() == highest).collect();
        if self.changes.contains(&decision) {
            self.lowest -= 1;
            self.priorities.insert(highest, self.lowest);
        }
        self.random.one_of(&of_highest)
    }

    fn priority(&mut self, who: Who) -> u64 {
        let Self { random, priorities, .. } = self;
        *priorities.entry(who).or_insert_with(|| u64::MAX - random.below(1 << 32))
    }
}

/// A pseudo-random sequence (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % limit.max(1)
    }

    fn one_of(&mut self, choices: &[Choice]) -> Option<Choice> {
        let at = self.below(choices.len() as u64);
        choices.get(usize::try_from(at).ok()?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_actor_runs_until_its_priority_falls() {
        let step = |who| Choice::Pass((who, 0));
        let both = [step(Who::WorkerA), step(Who::WorkerB)];
        let mut drawn = Drawn::new(Random(7), 10, Faults::default());
        drawn.changes = BTreeSet::from([2]);

        let ran: Vec<_> = (0..6).map(|at| drawn.next(&both, at).unwrap()).collect();

        assert!(ran[..3].iter().all(|it| *it == ran[0]), "{ran:?}");
        assert!(ran[3..].iter().all(|it| *it != ran[0]), "{ran:?}");
    }

    #[test]
    fn a_seed_draws_the_same_run_again() {
        let step = |who| Choice::Pass((who, 0));
        let all = [step(Who::WorkerA), step(Who::WorkerB), Choice::Die(Who::WorkerA)];
        let run = || {
            let mut drawn = Drawn::new(Random(3), 8, Faults::deaths(1));
            (0..8).map(|at| drawn.next(&all, at).unwrap()).collect::<Vec<_>>()
        };

        assert_eq!(run(), run());
        assert!(run().contains(&all[2]));
    }
}
