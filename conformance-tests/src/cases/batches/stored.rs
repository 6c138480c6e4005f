//! Pieces and completion jobs are stored as a push stores a job (B1, B5).

use std::time::Duration;

use relq_core::{
    Priority, QueueName,
    batch::{NewBatch, OnComplete},
};

use crate::{
    cases::{batches::fixture::batch, case},
    harness::{
        actor::Actor,
        samples::{delivered, samples, samples_without_names, views},
        store::Store,
        times::{HELD, PAST_BRIEF},
    },
};

case!(a_piece_is_stored_as_a_push_stores_a_job: B1 R2 R11 R14 R15 R16 R17 R27 => Batches);
/// A piece with any options that a piece may have is listed and delivered as if a push had
/// stored it.
async fn a_piece_is_stored_as_a_push_stores_a_job(store: &Store) {
    store.stop_clock();
    let (adder, pusher) = (store.actor("adder").await, pushing(store).await);
    let made = adder.make(&NewBatch::new(batch("b"))).await;

    for mut job in samples() {
        // A piece cannot have these options.
        (job.priority, job.delay) = (Priority::NORMAL, Duration::ZERO);
        (job.unique, job.expires_in) = (None, None);
        let job = adder.class().fit(job);
        pusher.store_one(job.clone()).await;
        adder.fill(&made, [job]).await;
    }

    are_alike(store, &adder, &pusher).await;
}

case!(a_completion_is_stored_as_a_push_stores_a_job: B5 R2 R11 R14 R15 R17 R27 => Batches);
/// A completion job with any options is listed and delivered as if a push had stored it.
async fn a_completion_is_stored_as_a_push_stores_a_job(store: &Store) {
    store.stop_clock();
    let (maker, pusher) = (store.actor("maker").await, pushing(store).await);

    for (number, job) in samples_without_names().into_iter().enumerate() {
        let job = maker.class().fit(job);
        pusher.store_one(job.clone()).await;
        complete(&maker, number, OnComplete::new(job)).await;
    }

    are_alike(store, &maker, &pusher).await;
}

case!(a_completion_elsewhere_is_stored_as_a_push_stores_a_job: B5 R2 R11 R14 R15 R17 R27
    => Batches);
/// A completion job with any options that goes to another queue is listed and delivered
/// there as if a push had stored it.
async fn a_completion_elsewhere_is_stored_as_a_push_stores_a_job(store: &Store) {
    if store.fit(&["jobs", "others", "pushed"]).len() < 3 {
        return;
    }
    store.stop_clock();
    let (maker, pusher) = (store.actor("maker").await, pushing(store).await);
    let other = store.actor_on("other", "others").await;
    let name = QueueName::new("others").expect("a valid name");

    for (number, job) in samples_without_names().into_iter().enumerate() {
        let job = maker.class().fit(job);
        pusher.store_one(job.clone()).await;
        complete(&maker, number, OnComplete::new(job).queue(name.clone())).await;
    }
    maker.recover_all().await;

    are_alike(store, &other, &pusher).await;
}

/// A client of another queue, which stores by pushes the jobs to compare with.
async fn pushing(store: &Store) -> Actor {
    store.actor_on("pusher", "pushed").await
}

/// Lets an empty batch complete.
async fn complete(maker: &Actor, number: usize, on_complete: OnComplete) {
    let new = NewBatch::new(batch(&number.to_string())).on_complete(on_complete);
    maker.submit(&new, 0).await;
}

/// Asserts that both queues list and deliver the same jobs, also after the delays.
async fn are_alike(store: &Store, one: &Actor, pusher: &Actor) {
    assert_eq!(views(one).await, views(pusher).await);
    assert_eq!(delivered(one).await, delivered(pusher).await);
    store.advance(HELD + PAST_BRIEF).await;
    for actor in [one, pusher] {
        actor.recover_all().await;
    }
    assert_eq!(views(one).await, views(pusher).await, "after the delays");
}
