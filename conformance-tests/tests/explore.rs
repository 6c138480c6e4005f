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
    ClaimRequest, Delivery, Error, JobId, Queue, QueueName, Receipt, Settlement, Stats,
    WorkerId,
    environment::Environment,
    operator::{Cancelled, JobState, JobView, PeekRequest, Redriven, Selection},
    outcome::{Extended, Settled},
};

/// All jobs in a state.
async fn views_of(right: &Right, state: JobState) -> Result<Vec<JobView>, Error> {
    let ask = PeekRequest::new(state, NonZeroU32::new(100).unwrap());
    Ok(right.peek(&ask).await?.jobs)
}

/// The ids of all jobs in a state.
async fn jobs_in(right: &Right, state: JobState) -> Result<Vec<JobId>, Error> {
    let jobs = views_of(right, state).await?;
    Ok(jobs.into_iter().filter_map(|job| job.id).collect())
}

/// Answers that a settlement was applied if its job was leased a moment before, in the
/// attempt of the settlement.
struct SettlesByALook;

#[async_trait]
impl Override for SettlesByALook {
    async fn settle(
        &self,
        right: &Right,
        done: &[Settlement],
    ) -> Result<Vec<Settled>, Error> {
        let overdue = right.stats().await?.overdue;
        let leased = views_of(right, JobState::Leased).await?;
        let answers = right.settle(done).await?;
        let seen = done.iter().zip(answers).map(|(one, answer)| {
            let is_it = |job: &JobView| {
                job.id.as_ref() == Some(one.receipt.job())
                    && job.attempt == one.receipt.attempt()
            };
            let was_leased = leased.iter().any(is_it);
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
        if redriven == Redriven::default() && matches!(which, Selection::All) {
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

/// Counts the ready jobs in one call and all others in another.
struct CountsTwice;

#[async_trait]
impl Override for CountsTwice {
    async fn stats(&self, right: &Right) -> Result<Stats, Error> {
        let ready = right.stats().await?.ready;
        let mut stats = right.stats().await?;
        stats.ready = ready;
        Ok(stats)
    }
}

/// Cancels only a job that is seen a moment before.
struct CancelsByALook;

#[async_trait]
impl Override for CancelsByALook {
    async fn cancel(&self, right: &Right, job: &JobId) -> Result<Cancelled, Error> {
        for state in [JobState::Scheduled, JobState::Ready, JobState::Leased] {
            if jobs_in(right, state).await?.contains(job) {
                return right.cancel(job).await;
            }
        }
        Ok(Cancelled::NotFound)
    }
}

/// Claims if the queue was not paused a moment before.
struct LooksForThePause;

#[async_trait]
impl Override for LooksForThePause {
    async fn claim(
        &self,
        right: &Right,
        ask: &ClaimRequest,
    ) -> Result<Vec<Delivery>, Error> {
        if right.stats().await?.paused {
            Ok(Vec::new())
        } else {
            right.claim(ask).await
        }
    }
}

/// A healthy backend with some of its calls replaced, or a line of a script.
#[derive(Clone, Copy)]
struct Mutant {
    right: &'static dyn Subject,
    overrides: fn() -> Arc<dyn Override>,
    /// A script, the text to replace, and the new text.
    patch: Option<[&'static str; 3]>,
    scene: &'static str,
    /// Words of the failure: the call, or the check.
    words: &'static str,
}

#[async_trait]
impl Subject for Mutant {
    async fn prepare(&self, proxy: &FaultProxy) -> io::Result<()> {
        if let Some([script, old, new]) = self.patch {
            proxy.patch_script(script, old, new);
        }
        Ok(())
    }

    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        let queue = self.right.connect(endpoint, queue, environment).await?;
        let right = Right { queue, environment: environment.clone() };
        Ok(Arc::new(OverriddenQueue::new(right, (self.overrides)())))
    }
}

/// Changes nothing.
struct Nothing;

impl Override for Nothing {}

const NARROW: Mutant = Mutant {
    right: &Zset,
    overrides: || Arc::new(Nothing),
    patch: None,
    scene: "",
    words: "",
};

const MUTANTS: [Mutant; 8] = [
    Mutant {
        overrides: || Arc::new(SettlesByALook),
        scene: "settle_against_recover",
        words: "a settle 0D",
        ..NARROW
    },
    Mutant {
        overrides: || Arc::new(ExtendsByALook),
        scene: "extend_against_recover",
        words: "a extend 0 l0",
        ..NARROW
    },
    Mutant {
        overrides: || Arc::new(RedrivesByALook),
        scene: "redrive_against_purge_of_the_dead",
        words: "o redrive",
        ..NARROW
    },
    Mutant {
        overrides: || Arc::new(PurgesByALook),
        scene: "redrive_against_purge_of_the_dead",
        words: "r purge-dead",
        ..NARROW
    },
    Mutant {
        overrides: || Arc::new(CountsTwice),
        scene: "stats_against_claim",
        words: "o stats",
        ..NARROW
    },
    Mutant {
        overrides: || Arc::new(CancelsByALook),
        scene: "cancel_against_claim",
        words: "CANCEL: NotFound",
        ..NARROW
    },
    Mutant {
        overrides: || Arc::new(LooksForThePause),
        patch: Some([
            "claim",
            "if redis.call('EXISTS', paused) == 1 then return {now_us, 1, -1} end",
            "",
        ]),
        scene: "pause_against_claim",
        words: "a claim 1 l0",
        ..NARROW
    },
    // The stats count the jobs of those workers that were known a command before.
    Mutant {
        right: &ProcessingList,
        patch: Some([
            "stats",
            "if not are_sessions_known(keys.workers, keys.retired, 2) then return false end",
            "",
        ]),
        scene: "stats_against_claim",
        words: "o stats",
        ..NARROW
    },
];

#[test]
fn each_mutant_is_found_in_its_scene() {
    for mutant @ Mutant { scene, words, .. } in MUTANTS {
        let subject: Arc<dyn Subject> = Arc::new(mutant);

        let explored = explore::explore(&subject, scene, 0).unwrap().unwrap();

        let failure = explored.failure.unwrap_or_else(|| panic!("missed in {scene}"));
        assert!(failure.contains(words), "{scene}: {failure}");
        assert!(failure.contains("replay: explore --scene"), "{scene}: {failure}");
    }
}

/// The decisions that a failure prints lead to the same failure.
#[test]
fn a_failure_is_replayed() {
    let [mutant, ..] = MUTANTS;
    let subject: Arc<dyn Subject> = Arc::new(mutant);
    let explored = explore::explore(&subject, mutant.scene, 0).unwrap().unwrap();
    let failure = explored.failure.unwrap();
    let decisions = failure.rsplit('\'').nth(1).unwrap();

    let again = explore::replay(&subject, mutant.scene, decisions).unwrap_err();

    assert_eq!(again.lines().next(), failure.lines().next());
}

/// Random sequences of single calls do not find the mutants.
#[test]
#[ignore = "takes minutes; it shows that the mutants need the search"]
fn the_model_does_not_find_the_mutants() {
    let found = MUTANTS.into_iter().filter_map(|mutant| {
        let judged = spec::judge_random(Arc::new(mutant), Profile::Redis);
        Some((mutant.words, judged.err()?))
    });

    assert_eq!(found.collect::<Vec<_>>(), []);
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
