//! The search through every order of commands finds races, and leaves no state out.
//!
//! Each of these mutants looks first, acts in a second command, and answers what it saw.
//! In the random sequences no other call runs in between, so only an order of commands
//! shows the difference.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{io, num::NonZeroU32, sync::Arc, time::Duration};

use relq_conformance::{
    Profile, Subject, async_trait, explore,
    overrides::{OverriddenQueue, Override, Right},
    own::{ProcessingList, Zset},
    proxy::FaultProxy,
    spec,
};
use relq_core::{
    Error, JobId, Queue, QueueName, Receipt, Settlement, WorkerId,
    environment::Environment,
    operator::{JobState, PeekRequest, Redriven, Selection},
    outcome::{Extended, Settled},
};

/// The ids of all jobs in a state.
async fn jobs_in(right: &Right, state: JobState) -> Result<Vec<JobId>, Error> {
    let ask = PeekRequest::new(state, NonZeroU32::new(100).unwrap());
    let page = right.peek(&ask).await?;
    Ok(page.jobs.into_iter().filter_map(|job| job.id).collect())
}

/// Answers that a settlement was applied if its job was leased a moment before.
struct SettlesByALook;

#[async_trait]
impl Override for SettlesByALook {
    async fn settle(
        &self,
        right: &Right,
        done: &[Settlement],
    ) -> Result<Vec<Settled>, Error> {
        let overdue = right.stats().await?.overdue;
        let leased = jobs_in(right, JobState::Leased).await?;
        let answers = right.settle(done).await?;
        let seen = done.iter().zip(answers).map(|(one, answer)| {
            let was_leased = leased.contains(one.receipt.job());
            let is_sure = was_leased && overdue == 0 && leased.len() == 1;
            if is_sure { Settled::Applied } else { answer }
        });
        Ok(seen.collect())
    }
}

/// Answers that a lease was extended if its job was leased a moment before.
struct ExtendsByALook;

#[async_trait]
impl Override for ExtendsByALook {
    async fn extend(
        &self,
        right: &Right,
        worker: &WorkerId,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Vec<Extended>, Error> {
        let overdue = right.stats().await?.overdue;
        let leased = jobs_in(right, JobState::Leased).await?;
        let until = right.environment.clock().now().plus(lease);
        let answers = right.extend(worker, held, lease).await?;
        let seen = held.iter().zip(answers).map(|(one, answer)| {
            let is_sure = leased.contains(one.job()) && overdue == 0;
            let is_lost = answer == Extended::LeaseLost && leased.len() == 1;
            if is_sure && is_lost { Extended::Until(until) } else { answer }
        });
        Ok(seen.collect())
    }
}

/// Answers how many dead jobs there were a moment before.
struct RedrivesByALook;

#[async_trait]
impl Override for RedrivesByALook {
    async fn redrive(
        &self,
        right: &Right,
        which: &Selection,
    ) -> Result<Redriven, Error> {
        let dead = right.stats().await?.dead;
        let mut redriven = right.redrive(which).await?;
        if redriven.moved == 0 && matches!(which, Selection::All) {
            redriven.moved = dead;
        }
        Ok(redriven)
    }
}

/// Answers how many dead jobs there were a moment before.
struct PurgesByALook;

#[async_trait]
impl Override for PurgesByALook {
    async fn purge_dead(&self, right: &Right, which: &Selection) -> Result<u64, Error> {
        let dead = right.stats().await?.dead;
        let removed = right.purge_dead(which).await?;
        let is_all = matches!(which, Selection::All);
        Ok(if is_all { dead.max(removed) } else { removed })
    }
}

/// The healthy backend with some of its calls replaced.
struct Mutant(fn() -> Arc<dyn Override>);

#[async_trait]
impl Subject for Mutant {
    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        let queue = Zset.connect(endpoint, queue, environment).await?;
        let right = Right { queue, environment: environment.clone() };
        Ok(Arc::new(OverriddenQueue::new(right, (self.0)())))
    }
}

/// A processing list whose stats count the jobs of the workers that were known before.
struct CountsKnownWorkers;

#[async_trait]
impl Subject for CountsKnownWorkers {
    async fn prepare(&self, proxy: &FaultProxy) -> io::Result<()> {
        let check = "if not are_sessions_known(keys.workers, keys.retired, 2) then return \
                     false end";
        proxy.patch_script("stats", check, "");
        Ok(())
    }

    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        ProcessingList.connect(endpoint, queue, environment).await
    }
}

/// A mutant: its name, its calls, the scene that shows it, and the call that is named.
type Race = (&'static str, fn() -> Arc<dyn Override>, &'static str, &'static str);

const MUTANTS: [Race; 4] = [
    ("settle", || Arc::new(SettlesByALook), "settle_against_recover", "a settle 0D"),
    ("extend", || Arc::new(ExtendsByALook), "extend_against_recover", "a extend 0 l0"),
    (
        "redrive",
        || Arc::new(RedrivesByALook),
        "redrive_against_purge_of_the_dead",
        "o redrive",
    ),
    (
        "purge-dead",
        || Arc::new(PurgesByALook),
        "redrive_against_purge_of_the_dead",
        "r purge-dead",
    ),
];

#[test]
fn each_mutant_is_found_in_its_scene() {
    for (name, overrides, scene, call) in MUTANTS {
        let subject: Arc<dyn Subject> = Arc::new(Mutant(overrides));

        let explored = explore::explore(&subject, scene, 0).unwrap().unwrap();

        let failure = explored.failure.unwrap_or_else(|| panic!("{name} is missed"));
        assert!(failure.contains(call), "{name}: {failure}");
        assert!(failure.contains("replay: explore --scene"), "{name}: {failure}");
    }
}

/// A job that a worker claims between the two commands of the stats is counted.
#[test]
fn stats_that_miss_a_new_worker_are_found() {
    let subject: Arc<dyn Subject> = Arc::new(CountsKnownWorkers);

    let explored = explore::explore(&subject, "stats_against_claim", 0).unwrap();

    let failure = explored.unwrap().failure.expect("it is missed");
    assert!(failure.contains("o stats") && failure.contains("CONSERVE"), "{failure}");
}

/// The decisions that a failure prints lead to the same failure.
#[test]
fn a_failure_is_replayed() {
    let (_, overrides, scene, _) = MUTANTS[0];
    let subject: Arc<dyn Subject> = Arc::new(Mutant(overrides));
    let explored = explore::explore(&subject, scene, 0).unwrap().unwrap();
    let failure = explored.failure.unwrap();
    let decisions = failure.rsplit('\'').nth(1).unwrap();

    let again = explore::replay(&subject, scene, decisions).unwrap_err();

    assert_eq!(again.lines().next(), failure.lines().next());
}

/// Random sequences of single calls do not find the mutants.
#[test]
#[ignore = "takes minutes; it shows that the mutants need the search"]
fn the_model_does_not_find_the_mutants() {
    for (name, overrides, ..) in MUTANTS {
        let judged = spec::judge_random(Arc::new(Mutant(overrides)), Profile::Redis);

        assert!(judged.is_ok(), "{name}: {judged:?}");
    }
}

/// Runs that end at a known state hide no end of the scene.
#[test]
fn a_pruned_search_finds_the_same_ends() {
    let subject: Arc<dyn Subject> = Arc::new(Zset);
    for (scene, deaths) in
        [("extend_against_recover", 0), ("extend_against_recover", 1)]
    {
        let [pruned, whole] = explore::ends(&subject, scene, deaths).unwrap();

        assert!(pruned.runs < whole.runs, "{scene}: {pruned:?}, {whole:?}");
        assert_eq!(pruned.ends, whole.ends, "{scene}");
    }
}
