//! A client reads the marker again after a reconnect, before a recovery, and for another
//! handle, because another backend may have taken over the queue (R25).

use std::time::Duration;

use super::fixture::{
    ANOTHERS, after_the_cut, assert_unusable, cut_connections, many, unknown_names,
};
use crate::{
    cases::case,
    harness::{calls::writes, checks::delivers, store::Store},
};

case!(a_reconnect_looks_again: R25 @ redis);
/// After a client has reconnected, it reads the marker again before its first call.
async fn a_reconnect_looks_again(store: &Store) {
    let known = unknown_names(store).await;
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let own = store.marker().await;
    store.mark(ANOTHERS).await;
    let before = store.contents().await;
    cut_connections(store).await;

    assert_unusable(&after_the_cut(&actor).await.expect_err("refused"), "another");
    for (name, write) in writes(&actor, &known) {
        let refused = write.await;
        let refused = refused.err().unwrap_or_else(|| panic!("{name} is not refused"));
        assert_unusable(&refused, "another");
    }

    assert_eq!(store.contents().await, before, "something was changed");
    store.mark(own.as_bytes()).await;
    delivers(&actor, ["job"]).await;
}

case!(a_waiting_claim_looks_again: R25 @ redis);
/// A waiting claim takes nothing from a queue that another backend took over while
/// the claim's connections were closed.
async fn a_waiting_claim_looks_again(store: &Store) {
    let actor = store.actor("worker").await;
    let wait = Duration::from_secs(20);
    let waiting =
        tokio::spawn(async move { actor.claim(&actor.ask(1).wait(wait)).await });
    store.settled().await;
    let own = store.marker().await;
    store.mark(ANOTHERS).await;
    cut_connections(store).await;
    store.push_raw(b"job of another").await;
    let before = store.contents().await;

    let (claimed, _) = store.within(2 * wait, waiting).await;

    let claimed = claimed.expect("the claim ends").unwrap_or_default();
    assert!(claimed.is_empty(), "{claimed:?}");
    // The background tasks of the claim must end before the marker is restored.
    store.settled().await;
    assert_eq!(store.contents().await, before, "something was changed");
    store.mark(own.as_bytes()).await;
}

case!(recovery_looks_before_it_touches: R25 @ redis);
/// Recovery reads the marker before it changes anything.
async fn recovery_looks_before_it_touches(store: &Store) {
    let actor = store.actor("reaper").await;
    actor.store(["1", "2"]).await;
    actor.take_one_briefly().await;
    store.outlast_brief_leases().await;
    let own = store.marker().await;
    store.mark(ANOTHERS).await;
    let before = store.contents().await;

    let refused = actor.recover(many(10)).await.expect_err("the queue is another's");
    assert_unusable(&refused, "another");
    let pushed = actor.push(&["3".into()], None).await.expect_err("known by now");
    assert_unusable(&pushed, "another");

    assert_eq!(store.contents().await, before, "something was changed");
    store.mark(own.as_bytes()).await;
    actor.recover_all().await;
    delivers(&actor, ["1", "2"]).await;
}

case!(another_handle_looks_too: R25 @ redis);
/// When a second handle of a queue is opened, it also reads the marker.
async fn another_handle_looks_too(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let own = store.marker().await;
    store.mark(ANOTHERS).await;

    let refused = actor.open_another().await.expect_err("the queue is another's");

    assert_unusable(&refused, "another");
    store.mark(own.as_bytes()).await;
}
