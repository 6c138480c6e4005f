//! Tests with futures that are polled once and then not again, as `select!` or
//! `buffered` may do, and with a runtime that stops running. Neither may block the
//! calls of other futures (R21, R22).

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::Poll,
    thread,
    time::Duration,
};

use tokio::{runtime::Builder, sync::oneshot, time::timeout};

use crate::{
    cases::case,
    harness::{
        actor::Actor,
        calls::{Known, calls},
        store::Store,
        times::HELD,
    },
};

/// The time limit of a call that nothing blocks. It is long enough for a machine that
/// also runs other cases.
const AT_ONCE: Duration = Duration::from_secs(10);

async fn poll_once(call: &mut (impl Future + Unpin + ?Sized)) {
    let mut call = Pin::new(call);
    let _is_ready = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await;
}

/// Makes every call, and asserts that each returns although another call is not polled.
/// `stalled` describes that other call in the failure message.
async fn expect_all_answered(actor: &Actor, known: &Known, stalled: &str) {
    for (name, call) in calls(actor, known) {
        let answered = timeout(AT_ONCE, call).await;
        assert!(answered.is_ok(), "{name} waits for {stalled}");
    }
}

case!(a_stalled_call_holds_up_no_other: R21 R22);
/// A call that is polled once and then not again blocks no other call of its actor,
/// even if it is the actor's first call. The same holds if every kind of call is
/// stopped in this way.
async fn a_stalled_call_holds_up_no_other(store: &Store) {
    let actor = store.actor("actor").await;
    let known = Known::prepare(&actor).await;
    for at in 0..calls(&actor, &known).len() {
        let fresh = store.actor("fresh").await;
        let (name, mut stalled) = calls(&fresh, &known).swap_remove(at);
        poll_once(&mut stalled).await;
        expect_all_answered(&fresh, &known, &format!("a stalled {name}")).await;
    }

    let mut all = calls(&actor, &known);
    for (_, stalled) in &mut all {
        poll_once(stalled).await;
    }
    expect_all_answered(&actor, &known, "stalled calls").await;
}

case!(a_stalled_waiter_holds_up_no_other: R21 R22);
/// A claim that waits for a job and is not polled blocks no other call of its
/// actor.
async fn a_stalled_waiter_holds_up_no_other(store: &Store) {
    let actor = store.actor("actor").await;
    let known = Known::prepare(&actor).await;
    actor.purge().await.expect("purged");
    let mut stalled = Box::pin(actor.take_waiting(1, HELD));
    for _ in 0..3 {
        poll_once(&mut stalled).await;
        store.settled().await;
    }

    expect_all_answered(&actor, &known, "a stalled waiter").await;
}

case!(a_stalled_reconnect_holds_up_no_other: R21 R22 @ redis);
/// A call that found its connection closed, began to connect and is not
/// polled again does not block other calls.
async fn a_stalled_reconnect_holds_up_no_other(store: &Store) {
    let actor = store.actor("actor").await;
    let known = Known::prepare(&actor).await;
    for (name, mut stalled) in calls(&actor, &known) {
        store.tell(&[b"CLIENT", b"KILL", b"TYPE", b"normal"]).await;
        store.settled().await;
        poll_once(&mut stalled).await;

        let other = timeout(AT_ONCE, actor.stats()).await;

        assert!(other.is_ok(), "stats waits for a {name} that connects");
        assert!(matches!(other, Ok(Ok(_))), "stats beside a stalled {name}: {other:?}");
    }
    expect_all_answered(&actor, &known, "nothing").await;
}

case!(a_stalled_runtime_holds_up_no_other: R21);
/// A runtime that is not run, with unfinished calls on it, blocks no call of
/// another runtime.
async fn a_stalled_runtime_holds_up_no_other(store: &Store) {
    let actor = store.actor("actor").await;
    let (begun, has_begun) = oneshot::channel();
    let (over, is_over) = std::sync::mpsc::channel::<()>();
    let known = Known::prepare(&actor).await;
    let (other, known_there) = (actor.clone(), known.clone());
    let runtime = thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("the system gives a runtime");
        let mut stalled = calls(&other, &known_there);
        runtime.block_on(async {
            other.stats().await.expect("the stats are answered");
            for (_, stalled) in &mut stalled {
                poll_once(stalled).await;
            }
        });
        // The runtime still exists, but nothing runs on it any more.
        begun.send(()).expect("the case waits");
        let _ = is_over.recv();
    });
    has_begun.await.expect("the runtime began its calls");

    expect_all_answered(&actor, &known, "another runtime").await;

    drop(over);
    runtime.join().expect("the other runtime ends well");
}
