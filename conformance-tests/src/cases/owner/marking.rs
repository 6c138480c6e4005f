//! The first call that writes to a queue marks it, and the marker stays (R25).

use relq_core::NewJob;

use super::fixture::{after_the_cut, cut_connections, look, unknown_names};
use crate::{
    cases::case,
    harness::{
        calls::{Known, writes},
        checks::{delivers, id},
        store::Store,
    },
};

case!(the_first_write_marks_the_queue: R25 @ redis);
/// Reading calls write nothing, and the first write creates the marker.
async fn the_first_write_marks_the_queue(store: &Store) {
    let known = unknown_names(store).await;
    let actor = store.actor("operator").await;
    look(&actor, &known).await;
    assert_eq!(store.contents().await, "", "something was written");

    actor.store_one("job").await;

    let marker = store.marker().await;
    let backend = actor.capabilities().backend;
    assert!(marker.starts_with(&format!("relq 4 {backend}")), "{marker}");
}

case!(each_kind_of_write_marks_the_queue: R25 @ redis);
/// Each kind of writing call creates the marker if it is the first write of the queue.
async fn each_kind_of_write_marks_the_queue(store: &Store) {
    let known = unknown_names(store).await;
    for at in 0.. {
        store.tell(&[b"FLUSHALL"]).await;
        let actor = store.actor("writer").await;
        let Some((name, write)) = writes(&actor, &known).into_iter().nth(at) else {
            break;
        };

        let answer = write.await;

        answer.unwrap_or_else(|error| panic!("{name}: {}", error.full_message()));
        assert!(store.marker().await.starts_with("relq 4 "), "{name}");
    }
}

case!(a_write_raises_an_earlier_format: R25 @ redis);
/// A call that only reads leaves the marker of a queue of an earlier format. Each kind of
/// write first raises the format in the marker, and keeps the options that it names. A
/// recovery by a client that was connected before raises the format, too.
async fn a_write_raises_an_earlier_format(store: &Store) {
    let actor = store.actor("worker").await;
    let known = Known::prepare(&actor).await;
    let own = store.marker().await;
    let earlier = own.replacen("relq 4 ", "relq 2 ", 1);
    store.mark(earlier.as_bytes()).await;

    actor.recover_all().await;
    assert_eq!(store.marker().await, own, "R25: a recovery raises the format");

    for at in 0.. {
        store.mark(earlier.as_bytes()).await;
        let late = store.actor("late").await;
        look(&late, &known).await;
        assert_eq!(store.marker().await, earlier, "a look changes nothing");
        let Some((name, write)) = writes(&late, &known).into_iter().nth(at) else {
            break;
        };

        let answer = write.await;

        answer.unwrap_or_else(|error| panic!("{name}: {}", error.full_message()));
        assert_eq!(store.marker().await, own, "R25: {name} raises the format");
    }
}

case!(a_flush_stops_no_running_client: R25 => ClientIds @ redis);
/// A client that has seen the marker writes it again if the store was emptied in
/// the meantime, so a flush does not stop a running worker.
async fn a_flush_stops_no_running_client(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("gone").await;
    let own = store.marker().await;
    store.tell(&[b"FLUSHALL"]).await;
    // The remembered id is a key that only relq writes. The list of jobs would not do:
    // any client may push to it, so it says nothing of the queue's owner (R20).
    actor.store_one(NewJob::new("kept").id(id("kept"))).await;
    cut_connections(store).await;
    after_the_cut(&actor).await.expect("the client knows the queue");

    actor.recover_all().await;

    assert_eq!(store.marker().await, own);
    delivers(&store.actor("newcomer").await, ["kept"]).await;
}

case!(a_purge_keeps_the_marker: R25 @ redis);
/// A purge keeps the marker, so the queue keeps its owner.
async fn a_purge_keeps_the_marker(store: &Store) {
    let actor = store.actor("operator").await;
    actor.store(["1", "2"]).await;
    let own = store.marker().await;

    actor.purge().await.expect("answered");

    assert_eq!(store.marker().await, own);
    store.actor("newcomer").await.store_one("next").await;
}

case!(plain_pushes_need_no_marker: R25 R20 @ redis);
/// A push of a client without relq writes no marker, so no backend owns the queue yet.
async fn plain_pushes_need_no_marker(store: &Store) {
    let known = unknown_names(store).await;
    store.push_raw(b"123").await;
    let actor = store.actor("worker").await;
    look(&actor, &known).await;
    assert_eq!(store.marker().await, "");

    delivers(&actor, ["123"]).await;
}
