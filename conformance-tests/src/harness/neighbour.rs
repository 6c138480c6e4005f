//! Another queue in the store of a case. Its jobs have the ids, the keys and the payloads
//! that many cases use, and are in every state. No call on the queue of the case may touch
//! them (R19).

use std::num::NonZeroU32;

use relq_core::{
    NewJob, Priority,
    batch::{BatchId, NewBatch},
    capabilities::Capability,
    operator::{JobState, PeekRequest},
    schedule::ScheduleName,
};

use super::{
    actor::Actor,
    checks::{dead, id, key, numbered},
    store::Store,
    times::HELD,
};

/// The name of the queue. The names of the queues of some cases begin with it, and it
/// begins with that of most.
const NAME: &str = "jobs2";

const ALL: NonZeroU32 = NonZeroU32::new(100).expect("not zero");

/// The other queue, and what it had at the beginning of the case.
pub(super) struct Neighbour {
    actor: Actor,
    before: Vec<String>,
}

impl Neighbour {
    /// Stores its jobs.
    pub(super) async fn in_store(store: &Store) -> Self {
        let actor = store.actor_on("neighbour", NAME).await;
        let has = |what| actor.capabilities().supports(what);
        actor.store(["dies", "held"]).await;
        let dies = actor.take_one().await;
        actor.say(&dies, dead("no")).await;
        actor.take_one().await;
        actor.store(numbered(3)).await;
        if has(Capability::Priority) {
            actor.store_one(NewJob::new("urgent").priority(Priority::HIGHEST)).await;
        }
        if has(Capability::ClientIds) {
            let mine = NewJob::new("1").id(id("mine"));
            let kept = has(Capability::Results);
            actor.store_one(if kept { mine.keep_result(HELD) } else { mine }).await;
        }
        if has(Capability::Unique) && has(Capability::Delay) {
            let delayed = NewJob::new("job").unique(key("mine")).delay(1000 * HELD);
            actor.store_one(delayed).await;
        }
        if has(Capability::Followers) && has(Capability::ClientIds) {
            actor.store_one(NewJob::new("follower").after(id("mine"))).await;
        }
        let queue = actor.queue();
        if let Some(batches) = queue.batch_queue() {
            for name in ["b", "one"] {
                let batch = BatchId::new(name).expect("a valid id");
                batches.create(&NewBatch::new(batch.clone())).await.expect("made");
                let pieces = ["1", "2"].map(NewJob::from);
                batches.add(&batch, &pieces, None).await.expect("added");
            }
        }
        if let Some(schedules) = queue.schedule_queue() {
            let name = ScheduleName::new("nightly").expect("a valid name");
            schedules.put_schedule(&name, b"neighbour").await.expect("stored");
        }
        let before = seen(&actor).await;
        Self { actor, before }
    }

    /// # Panics
    /// If anything has changed.
    pub(super) async fn assert_untouched(&self) {
        let after = seen(&self.actor).await;
        assert_eq!(after, self.before, "R19: a call on another queue changed this one");
    }
}

/// All that can be read of the queue, but what changes with the time alone.
async fn seen(actor: &Actor) -> Vec<String> {
    let stats = actor.figures().await;
    let counts = [stats.ready, stats.scheduled, stats.leased, stats.dead];
    let ended = [stats.finished, stats.discarded, stats.cancelled];
    let mut seen = vec![format!("{counts:?} {ended:?} {}", stats.paused)];
    for state in
        [JobState::Ready, JobState::Scheduled, JobState::Leased, JobState::Dead]
    {
        let page = actor.peek(&PeekRequest::new(state, ALL)).await.expect("answered");
        seen.extend(page.jobs.iter().map(|job| format!("{job:?}")));
    }
    let queue = actor.queue();
    if let Some(batches) = queue.batch_queue() {
        let listed = batches.list_batches(None, ALL).await.expect("answered");
        seen.extend(listed.iter().map(|batch| format!("{batch:?}")));
    }
    if let Some(schedules) = queue.schedule_queue() {
        let stored = schedules.schedules().await.expect("answered").schedules;
        seen.extend(stored.iter().map(|schedule| format!("{schedule:?}")));
    }
    seen
}
