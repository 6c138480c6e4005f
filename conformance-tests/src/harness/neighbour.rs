//! Another queue in the store of a case. Its jobs have the ids, the keys, the payloads and
//! the worker that many cases use, and are in every state. No call on the queue of the case may touch
//! them (R19).

use std::{num::NonZeroU32, time::Duration};

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
};

/// The name of the queue. The names of the queues of some cases begin with it, and it
/// begins with that of most.
const NAME: &str = "jobs2";

/// A time that no case lets pass.
const LONG: Duration = Duration::from_secs(30 * 24 * 60 * 60);

const ALL: NonZeroU32 = NonZeroU32::new(100).expect("not zero");

/// The other queue, and what it had at the beginning of the case.
pub(super) struct Neighbour {
    actor: Actor,
    before: Vec<String>,
}

impl Neighbour {
    /// Stores its jobs. They are held by a worker that has the name of the worker of many
    /// cases.
    pub(super) async fn in_store(store: &Store) -> Self {
        let actor = store.actor_on("worker", NAME).await;
        store_jobs(&actor).await;
        store_batches_and_schedules(&actor).await;
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

/// Stores jobs in every state, with the options that the backend has.
async fn store_jobs(actor: &Actor) {
    let has = |what| actor.capabilities().supports(what);
    let named = |name: &'static str| {
        let mut job = NewJob::new(name);
        if has(Capability::ClientIds) {
            job = job.id(id(name));
        }
        if has(Capability::Results) { job.keep_result(LONG) } else { job }
    };
    actor.store(["dead", "job", "held"].map(named)).await;
    let taken = actor.take(2).await;
    actor.say(&taken[0], dead("no")).await;
    actor.finish(&taken[1]).await;
    actor.take_one().await;
    actor.store(["mine", "leader"].map(named)).await;
    actor.store(numbered(3)).await;
    if has(Capability::Priority) {
        actor.store_one(NewJob::new("urgent").priority(Priority::HIGHEST)).await;
    }
    if has(Capability::Unique) && has(Capability::Delay) {
        let delayed = NewJob::new("job").unique(key("k")).delay(LONG);
        actor.store_one(delayed).await;
    }
    if has(Capability::Followers) && has(Capability::ClientIds) {
        actor.store_one(NewJob::new("follower").after(id("leader"))).await;
    }
}

async fn store_batches_and_schedules(actor: &Actor) {
    let queue = actor.queue();
    if let Some(batches) = queue.batch_queue() {
        for name in ["b", "one"] {
            let batch = BatchId::new(name).expect("a valid id");
            batches.create(&NewBatch::new(batch.clone())).await.expect("made");
            let pieces = ["1", "2"].map(NewJob::from);
            batches.add(&batch, &pieces, None).await.expect("added");
        }
        let cancelled = BatchId::new("cancelled").expect("a valid id");
        batches.create(&NewBatch::new(cancelled.clone())).await.expect("made");
        batches.cancel_batch(&cancelled).await.expect("cancelled");
    }
    if let Some(schedules) = queue.schedule_queue() {
        let name = ScheduleName::new("nightly").expect("a valid name");
        schedules.put_schedule(&name, b"neighbour").await.expect("stored");
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
    if let Some(results) = queue.result_queue() {
        let ids = ["dead", "job", "mine"].map(id);
        let told = results.read_results(&ids).await.expect("answered");
        seen.extend(told.iter().map(|result| format!("{result:?}")));
    }
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
