//! The state of the store before each act on batches. The job that a completion pushes
//! shows whether the batch completed: there must be one such job, or none (B5).

use std::num::{NonZeroU16, NonZeroU32};

use relq_core::{
    Disposition, NewJob, QueueName, WorkerId,
    batch::{Added, BatchId, BatchQueue, NewBatch, OnComplete},
};

use crate::sweep::{
    actors::{ELSEWHERE, HealthyActor, PAST_ALL, Survivors},
    promise::{End, StoreContents},
    scenes::{Scene, id},
};

pub(in crate::sweep) fn batch() -> BatchId {
    BatchId::new("b").expect("the id is valid")
}

/// A batch with a completion job.
pub(in crate::sweep) fn telling() -> NewBatch {
    NewBatch::new(batch()).on_complete(OnComplete::new(NewJob::new("complete")))
}

impl HealthyActor {
    fn batches(&self) -> &dyn BatchQueue {
        self.queue.batch_queue().expect("the backend supports batches")
    }

    /// Creates an open batch of these pieces.
    async fn open(&self, new: &NewBatch, pieces: &[NewJob]) {
        self.batches().create(new).await.expect("the healthy actor can make a batch");
        let added = self.batches().add(&new.id, pieces, None).await;
        let added = added.expect("the healthy actor can add");
        assert!(matches!(added, Added::Stored(_)), "{added:?}");
    }

    async fn seal(&self, batch: &BatchId) {
        let sealed =
            self.batches().seal(batch).await.expect("the healthy actor can seal");
        assert!(sealed.is_some(), "the batch is there");
    }

    async fn submit(&self, new: &NewBatch, pieces: &[&'static str]) {
        let pieces: Vec<_> = pieces.iter().map(|piece| NewJob::new(*piece)).collect();
        self.open(new, &pieces).await;
        self.seal(&new.id).await;
    }

    async fn call_off(&self, batch: &BatchId) {
        let cancelled = self.batches().cancel_batch(batch).await;
        assert!(cancelled.expect("the healthy actor can cancel").is_some());
    }
}

pub(in crate::sweep) async fn nothing_then_a_batch(
    _: &Survivors,
    _: &WorkerId,
) -> Scene {
    Scene::of(
        StoreContents::default(),
        StoreContents::delivered(["a", "b", "c", "complete"]),
    )
}

pub(in crate::sweep) async fn open_batch(actors: &Survivors, _: &WorkerId) -> Scene {
    actors.healthy.open(&telling(), &[]).await;
    Scene::of(StoreContents::default(), StoreContents::delivered(["a", "b", "c"]))
}

pub(in crate::sweep) async fn batch_to_seal(actors: &Survivors, _: &WorkerId) -> Scene {
    actors.healthy.open(&telling(), &["a".into(), "b".into()]).await;
    let done = StoreContents::delivered(["a", "b", "complete"]);
    Scene::of(StoreContents::delivered(["a", "b"]), done)
}

pub(in crate::sweep) async fn ended_batch_to_seal(
    actors: &Survivors,
    victim: &WorkerId,
) -> Scene {
    actors.healthy.open(&telling(), &["a".into()]).await;
    let held = actors.healthy.claim_for(victim, 1).await;
    actors.healthy.say(&held, &Disposition::Done).await;
    Scene::of(StoreContents::default(), StoreContents::delivered(["complete"]))
}

pub(in crate::sweep) async fn limited_batch(actors: &Survivors, _: &WorkerId) -> Scene {
    let new = telling().limit(NonZeroU32::new(2));
    actors.healthy.submit(&new, &["a", "b", "c"]).await;
    Scene::unchanged(StoreContents::delivered(["a", "b", "c", "complete"]))
}

pub(in crate::sweep) async fn last_pieces_held(
    actors: &Survivors,
    victim: &WorkerId,
) -> Scene {
    actors.healthy.submit(&telling(), &["a", "b"]).await;
    let held = actors.healthy.claim_for(victim, 2).await;
    let undone = StoreContents::delivered(["a", "b", "complete"]);
    Scene::of(undone, StoreContents::delivered(["complete"])).held(held)
}

/// A batch whose completion goes to another queue.
pub(in crate::sweep) async fn last_piece_held_of_elsewhere(
    actors: &Survivors,
    victim: &WorkerId,
) -> Scene {
    let elsewhere = QueueName::new(ELSEWHERE).expect("the name is valid");
    let on_complete = OnComplete::new(NewJob::new("complete")).queue(elsewhere);
    actors
        .healthy
        .submit(&NewBatch::new(batch()).on_complete(on_complete), &["a"])
        .await;
    let held = actors.healthy.claim_for(victim, 1).await;
    let undone = StoreContents::delivered(["a", "complete"]);
    Scene::of(undone, StoreContents::delivered(["complete"])).held(held)
}

pub(in crate::sweep) async fn five_pieces_held(
    actors: &Survivors,
    victim: &WorkerId,
) -> Scene {
    let pieces = ["done", "retry", "dead", "discard", "back"];
    actors.healthy.submit(&telling(), &pieces).await;
    let mut held = actors.healthy.claim_for(victim, 5).await;
    // The claim may return the jobs in any order. Sort them in the order of the
    // dispositions that the act applies.
    held.sort_by_key(|one| pieces.iter().position(|piece| one.payload == piece));
    let undone = StoreContents::delivered(pieces).and(End::Delivered, ["complete"]);
    let done = StoreContents::delivered(["retry", "back", "complete"]);
    Scene::of(undone, done.and(End::Dead, ["dead"])).held(held).in_parts()
}

/// One of two pieces is held, and there is no slot for the other.
pub(in crate::sweep) async fn one_slot_held(
    actors: &Survivors,
    victim: &WorkerId,
) -> Scene {
    actors.healthy.submit(&telling().limit(NonZeroU32::new(1)), &["a", "b"]).await;
    let held = actors.healthy.claim_for(victim, 1).await;
    let undone = StoreContents::delivered(["a", "b", "complete"]);
    let done = undone.clone().without(&held[0].payload);
    Scene::of(undone, done).held(held)
}

pub(in crate::sweep) async fn pieces_held(
    actors: &Survivors,
    victim: &WorkerId,
) -> Scene {
    actors.healthy.submit(&telling(), &["a", "b", "c"]).await;
    let held = actors.healthy.claim_for(victim, 2).await;
    Scene::unchanged(StoreContents::delivered(["a", "b", "c", "complete"])).held(held)
}

/// One piece of the batch is held.
pub(in crate::sweep) async fn batch_to_cancel(
    actors: &Survivors,
    victim: &WorkerId,
) -> Scene {
    actors.healthy.submit(&telling(), &["a", "b", "c"]).await;
    let held = actors.healthy.claim_for(victim, 1).await;
    let undone = StoreContents::delivered(["a", "b", "c", "complete"]);
    Scene::of(undone, StoreContents::delivered(["complete"])).held(held)
}

pub(in crate::sweep) async fn batch_to_purge(
    actors: &Survivors,
    victim: &WorkerId,
) -> Scene {
    actors.healthy.submit(&telling(), &["a", "b", "c"]).await;
    let held = actors.healthy.claim_for(victim, 1).await;
    let undone = StoreContents::delivered(["a", "b", "c", "complete"]);
    Scene::of(undone, StoreContents::default()).held(held).in_parts()
}

/// A worker holds pieces of a batch that was cancelled.
pub(in crate::sweep) async fn cancelled_pieces_held(
    actors: &Survivors,
    victim: &WorkerId,
) -> Scene {
    actors.healthy.submit(&telling(), &["a", "b"]).await;
    let held = actors.healthy.claim_for(victim, 2).await;
    actors.healthy.call_off(&batch()).await;
    Scene::unchanged(StoreContents::delivered(["complete"])).held(held)
}

/// One of the dead worker's pieces was on its last attempt.
pub(in crate::sweep) async fn pieces_overdue(
    actors: &Survivors,
    _: &WorkerId,
) -> Scene {
    let last = NewJob::new("b").max_attempts(NonZeroU16::MIN);
    actors.healthy.open(&telling(), &["a".into(), last]).await;
    actors.healthy.seal(&batch()).await;
    actors.healthy.claim_for(&gone(), 2).await;
    actors.clock.advance(PAST_ALL);
    Scene::unchanged(StoreContents::delivered(["a", "complete"]).and(End::Dead, ["b"]))
}

/// The last pieces of a cancelled batch were held by a worker that died.
pub(in crate::sweep) async fn cancelled_pieces_overdue(
    actors: &Survivors,
    _: &WorkerId,
) -> Scene {
    actors.healthy.submit(&telling(), &["a", "b"]).await;
    actors.healthy.claim_for(&gone(), 2).await;
    actors.healthy.call_off(&batch()).await;
    actors.clock.advance(PAST_ALL);
    Scene::unchanged(StoreContents::delivered(["complete"]))
}

/// A record of a batch whose retention has ended.
pub(in crate::sweep) async fn old_record(
    actors: &Survivors,
    victim: &WorkerId,
) -> Scene {
    let new = NewBatch::new(batch()).retention(NewBatch::MIN_RETENTION);
    actors.healthy.submit(&new, &["a", "b"]).await;
    let held = actors.healthy.claim_for(victim, 2).await;
    actors.healthy.say(&held, &Disposition::Done).await;
    actors.clock.advance(PAST_ALL);
    Scene::unchanged(StoreContents::default())
}

pub(in crate::sweep) async fn piece_to_cancel(
    actors: &Survivors,
    _: &WorkerId,
) -> Scene {
    let go = NewJob::new("go").id(id("mine"));
    actors.healthy.open(&telling(), &[go, "stay".into()]).await;
    actors.healthy.seal(&batch()).await;
    let undone = StoreContents::delivered(["go", "stay", "complete"]);
    Scene::of(undone, StoreContents::delivered(["stay", "complete"]))
}

pub(in crate::sweep) async fn dead_piece(
    actors: &Survivors,
    victim: &WorkerId,
) -> Scene {
    actors.healthy.submit(&telling(), &["a"]).await;
    let held = actors.healthy.claim_for(victim, 1).await;
    actors.healthy.say(&held, &Disposition::Dead { error: "no".to_owned() }).await;
    let undone = StoreContents::delivered(["complete"]).and(End::Dead, ["a"]);
    Scene::of(undone, StoreContents::delivered(["a", "complete"]))
}

fn gone() -> WorkerId {
    WorkerId::new("gone").expect("the name is valid")
}
