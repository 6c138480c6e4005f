//! A queue with another marker, or with keys but no marker, is refused (R25).

use super::fixture::{ANOTHERS, assert_unusable, many, unknown_names};
use crate::{
    cases::case,
    harness::{calls::writes, checks::delivers, store::Store},
};

case!(a_queue_of_another_backend_is_refused: R25 @ redis);
/// A queue whose marker names another backend is refused, the error names that backend,
/// and nothing is changed.
async fn a_queue_of_another_backend_is_refused(store: &Store) {
    let owner = store.actor("owner").await;
    owner.store(["1", "2"]).await;
    let held = owner.take_one().await;
    let own = store.marker().await;
    store.mark(ANOTHERS).await;
    let before = store.contents().await;

    let refused = store.refusal("stranger").await;

    assert!(refused.contains("another+") && refused.contains("mode=odd"), "{refused}");
    assert_eq!(store.contents().await, before, "something was changed");
    store.mark(own.as_bytes()).await;
    store.actor("owner-again").await.finish(&held).await;
}

case!(the_second_of_two_first_writers_is_refused: R25 @ redis);
/// Two clients open a new queue, and another backend writes first. From then on
/// each call of the other client is refused, and nothing is changed.
async fn the_second_of_two_first_writers_is_refused(store: &Store) {
    let known = unknown_names(store).await;
    for at in 0.. {
        store.tell(&[b"FLUSHALL"]).await;
        let late = store.actor("late").await;
        store.mark(ANOTHERS).await;
        let before = store.contents().await;
        let Some((name, write)) = writes(&late, &known).into_iter().nth(at) else {
            break;
        };

        let refused = write.await;

        let refused = refused.expect_err("the queue is another backend's");
        assert_unusable(&refused, "another");
        assert_eq!(store.contents().await, before, "{name} changed something");
    }
    store.tell(&[b"FLUSHALL"]).await;
}

case!(a_refused_client_takes_no_queue_back: R25 @ redis);
/// The store is emptied while a client runs, and another backend becomes the owner of the
/// queue. Then its marker is deleted. The client has seen its own marker before, but it does
/// not write that marker over the keys of the other backend.
async fn a_refused_client_takes_no_queue_back(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("gone").await;
    store.tell(&[b"FLUSHALL"]).await;
    store.mark(ANOTHERS).await;
    store.tell(&[b"ZADD", b"{jobs}:dead", b"1", b"theirs"]).await;
    let refused =
        actor.recover(many(1)).await.expect_err("the queue has another owner");
    assert_unusable(&refused, "another");
    store.tell(&[b"DEL", b"{jobs}:marker"]).await;
    let before = store.contents().await;

    let recovered = actor.recover(many(1)).await;
    let pushed = actor.push(&["job".into()], None).await;

    let refused = recovered.expect_err("nobody knows the owner");
    assert_unusable(&refused, "relq marker set");
    assert_unusable(&pushed.expect_err("nobody knows the owner"), "relq marker set");
    assert_eq!(store.contents().await, before, "something was changed");
    store.tell(&[b"FLUSHALL"]).await;
}

case!(keys_without_a_marker_are_refused: R25 @ redis);
/// Keys of relq without a marker are refused until an operator marks the queue. Either
/// they were written before markers existed, or the marker was deleted.
async fn keys_without_a_marker_are_refused(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(["1", "2"]).await;
    let held = actor.take_one().await;
    let own = store.marker().await;
    store.tell(&[b"DEL", b"{jobs}:marker"]).await;
    let before = store.contents().await;

    let refused = store.refusal("newcomer").await;

    assert!(refused.contains("relq marker set"), "{refused}");
    assert_eq!(store.contents().await, before, "something was changed");
    store.mark(own.as_bytes()).await;
    store.actor("newcomer").await.finish(&held).await;
}

case!(what_a_newer_relq_wrote_is_refused: R25 @ redis);
/// A queue with a newer format or an unknown option is refused, and the error says that
/// a newer relq wrote it. A queue whose marker cannot be parsed is refused, too.
async fn what_a_newer_relq_wrote_is_refused(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let own = store.marker().await;
    let newer = own.replacen("relq 4 ", "relq 5 ", 1);
    for (marker, words) in [
        (newer, "newer relq"),
        (format!("{own} tenants=4"), "newer relq"),
        ("nonsense".to_owned(), "no marker"),
    ] {
        store.mark(marker.as_bytes()).await;
        let before = store.contents().await;

        let refused = store.refusal("newcomer").await;

        assert!(refused.contains(words), "{marker}: {refused}");
        assert_eq!(store.contents().await, before, "{marker}: something was changed");
    }
    store.mark(own.as_bytes()).await;
    delivers(&actor, ["job"]).await;
}
