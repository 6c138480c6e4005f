//! Acts that reach what the plain ones pass by, and what comes before them.

use std::{num::NonZeroU32, time::Duration};

use queue_core::{
    JobState, NewJob, OnDuplicate, PeekRequest, Verdict, Which, WorkerId,
};

use super::{
    crew::{DELAY, Stage},
    outcome::{End, Outcome},
    scenarios::{Done, Scene, id, key},
    victim::Victim,
};

/// Longer than anything is remembered (R4).
const PAST_MEMORY: Duration = Duration::from_secs(6 * 60);

/// Two dead jobs, of which one has an id that is known.
pub(super) async fn two_dead(crew: &Stage, victim: &WorkerId) -> Scene {
    crew.hand.store(&[NewJob::new("a").id(id("mine")), "b".into()]).await;
    let held = crew.hand.claim_for(victim, 2).await;
    crew.hand.say(&held, &Verdict::Dead { error: "no".to_owned() }).await;
    let done = Outcome::delivered(["a"]).and(End::Dead, ["b"]);
    Scene::of(Outcome::dead(["a", "b"]), done)
}

pub(super) async fn redrive_one(victim: Victim) -> Done {
    victim.queue.redrive(&Which::Only(vec![id("mine")])).await.map(drop)
}

/// A scheduled job that holds a unique key.
pub(super) async fn one_to_move(crew: &Stage, _: &WorkerId) -> Scene {
    crew.hand.store(&[NewJob::new("a").unique(key("k")).delay(DELAY)]).await;
    Scene::unchanged(Outcome::delivered(["a"]))
}

pub(super) async fn push_that_moves(victim: Victim) -> Done {
    let later = NewJob::new("b").delay(DELAY / 2);
    let moving = later.unique_or(key("k"), OnDuplicate::Reschedule);
    victim.queue.push(&[moving], None).await.map(drop)
}

/// A worker that holds a job that somebody cancelled.
pub(super) async fn cancelled_held(crew: &Stage, victim: &WorkerId) -> Scene {
    crew.hand.store(&[NewJob::new("go").id(id("mine"))]).await;
    let held = crew.hand.claim_for(victim, 1).await;
    crew.hand.cancel(&id("mine")).await.expect("the hand can cancel");
    crew.hand.store_plain(&["stay"]).await;
    Scene::unchanged(Outcome::delivered(["stay"])).held(held)
}

/// Ids that need not be remembered any longer.
pub(super) async fn old_memories(crew: &Stage, victim: &WorkerId) -> Scene {
    crew.hand.store(&[NewJob::new("gone").id(id("mine"))]).await;
    let held = crew.hand.claim_for(victim, 1).await;
    crew.hand.say(&held, &Verdict::Done).await;
    crew.clock.advance(PAST_MEMORY);
    crew.hand.store_plain(&["a"]).await;
    Scene::unchanged(Outcome::delivered(["a"]))
}

/// A job in each state but leased.
pub(super) async fn each_state(crew: &Stage, victim: &WorkerId) -> Scene {
    crew.hand.store_plain(&["dead"]).await;
    let held = crew.hand.claim_for(victim, 1).await;
    crew.hand.say(&held, &Verdict::Dead { error: "no".to_owned() }).await;
    crew.hand.store(&["ready".into(), NewJob::new("later").delay(DELAY)]).await;
    Scene::unchanged(Outcome::delivered(["ready", "later"]).and(End::Dead, ["dead"]))
}

pub(super) async fn peek_at_each_state(victim: Victim) -> Done {
    let states =
        [JobState::Ready, JobState::Scheduled, JobState::Leased, JobState::Dead];
    for state in states {
        victim.queue.peek(&PeekRequest::new(state, NonZeroU32::MIN)).await?;
    }
    Ok(())
}
