//! Results of one queue are not seen by another, and by each client of it (R19, R29).

use super::fixture::{UNFINISHED, done, done_with, kept};
use crate::{
    cases::case,
    harness::{checks::id, store::Store},
};

case!(queues_have_their_own_results: R19 R29 => Results ClientIds);
/// Two queues of one store have jobs of the same id. The end of one of them does not change
/// the record of the other.
async fn queues_have_their_own_results(store: &Store) {
    let [here, there] =
        [store.actor_on("w", "a").await, store.actor_on("w", "a:results").await];
    let mine = || kept("job").id(id("mine"));
    here.store_one(mine()).await;
    there.assert_untold(&id("mine")).await;
    there.store_one(mine()).await;

    let held = here.take_one().await;
    here.shows(&held, b"half").await;
    there.assert_told(&id("mine"), UNFINISHED).await;
    here.ends(&held, done_with("here")).await;

    there.assert_told(&id("mine"), UNFINISHED).await;
    there.ends(&there.take_one().await, done_with("there")).await;
    here.assert_told(&id("mine"), done("here")).await;
    here.purge().await.expect("answered");
    here.assert_untold(&id("mine")).await;
    there.assert_told(&id("mine"), done("there")).await;
}

case!(another_connection_has_the_results: R29 => Results);
/// Another client, and a queue that a worker opens for itself, store and read the same
/// results.
async fn another_connection_has_the_results(store: &Store) {
    let (worker, reader) = (store.actor("worker").await, store.actor("reader").await);
    let job = reader.store_one(kept("job")).await;
    let held = worker.take_one().await;
    let another = worker.open_another().await.expect("it opens");
    let results = another.result_queue().expect("the backend keeps results");

    results.report_progress(&held.receipt, b"half").await.expect("answered");

    reader.assert_told(&job, super::fixture::reported("half")).await;
    worker.ends(&held, done_with("result")).await;
    reader.assert_told(&job, done("result")).await;
    let told = results.read_results(&[job]).await.expect("answered");
    assert_eq!(told, [Some(done("result"))]);
}
