//! Futures that are polled once and then not again, as `select!` or `buffered` may do,
//! and a runtime that is not run. Neither may block the calls of other futures (R21,
//! R22).

use std::{
    future::{Future, poll_fn},
    num::NonZeroU32,
    pin::Pin,
    task::Poll,
    thread,
    time::Duration,
};

use relq_core::{
    Disposition, NewJob, Settlement,
    batch::{BatchId, BatchQueue, Change, NewBatch},
    operator::{JobState, PeekRequest, Selection},
};
use tokio::{runtime::Builder, sync::oneshot, time::timeout};

use crate::{
    cases::case,
    harness::store::{Actor, HELD, Store},
};

/// The longest time that a call takes on a machine that is busy with other cases, if
/// nothing blocks it.
const AT_ONCE: Duration = Duration::from_secs(10);

type Call<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

fn call<'a, T>(answer: impl Future<Output = T> + Send + 'a) -> Call<'a> {
    Box::pin(async move { drop(answer.await) })
}

async fn poll_once(call: &mut Call<'_>) {
    let _is_ready = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await;
}

/// Every call of the traits, by its name. None of them waits for a job.
fn calls(actor: &Actor) -> Vec<(&'static str, Call<'_>)> {
    let mut calls = calls_of_workers(actor);
    calls.extend(calls_of_operators(actor));
    if let Some(batches) = actor.batch_queue() {
        calls.extend(calls_of_batches(batches));
    }
    calls
}

fn calls_of_workers(actor: &Actor) -> Vec<(&'static str, Call<'_>)> {
    vec![
        ("push", call(actor.store_one("plain"))),
        ("push of an option", call(actor.store_one(NewJob::new("late").delay(HELD)))),
        ("claim", call(actor.take(1))),
        ("settle", call(settle_one(actor))),
        (
            "settle_and_claim",
            call(async move { actor.settle_and_claim(&[], &actor.ask(1)).await }),
        ),
        ("extend", call(actor.extend(actor.worker(), &[], HELD))),
        ("release_worker", call(actor.release_worker(actor.worker()))),
        ("recover", call(actor.recover(NonZeroU32::MIN))),
        ("open_another", call(actor.open_another())),
    ]
}

/// Settles the job that it claims, or nothing if no job is ready.
async fn settle_one(actor: &Actor) {
    let held = actor.take(1).await;
    let done = |held: &relq_core::Delivery| {
        Settlement::new(held.receipt.clone(), Disposition::Done)
    };
    let done: Vec<_> = held.iter().map(done).collect();
    actor.settle(&done).await.expect("the settlement is answered");
}

fn calls_of_operators(actor: &Actor) -> Vec<(&'static str, Call<'_>)> {
    let page = || PeekRequest::new(JobState::Ready, NonZeroU32::MIN);
    vec![
        ("stats", call(actor.stats())),
        ("peek", call(async move { actor.peek(&page()).await })),
        ("redrive", call(actor.redrive(&Selection::All))),
        ("purge_dead", call(actor.purge_dead(&Selection::All))),
        ("cancel", call(async move { cancel_one(actor).await })),
        ("pause", call(actor.pause())),
        ("resume", call(actor.resume())),
        ("audit", call(actor.audit())),
        ("purge", call(actor.purge())),
    ]
}

async fn cancel_one(actor: &Actor) {
    let id = actor.store_one("cancelled").await;
    actor.cancel(&id).await.expect("the cancellation is answered");
}

fn calls_of_batches(batches: &dyn BatchQueue) -> Vec<(&'static str, Call<'_>)> {
    let id = || BatchId::new("stalled").expect("a valid id");
    vec![
        ("create", call(async move { batches.create(&NewBatch::new(id())).await })),
        ("add", call(async move { batches.add(&id(), &["piece".into()], None).await })),
        ("alter", call(async move { batches.alter(&id(), &Change::default()).await })),
        ("batch", call(async move { batches.batch(&id()).await })),
        ("list_batches", call(batches.list_batches(None, NonZeroU32::MIN))),
        ("seal", call(async move { batches.seal(&id()).await })),
        ("cancel_batch", call(async move { batches.cancel_batch(&id()).await })),
        (
            "wait_batch",
            call(async move { batches.wait_batch(&id(), Duration::ZERO).await }),
        ),
    ]
}

/// Checks that every call returns while `stalled` is not polled.
async fn expect_all_answered(actor: &Actor, stalled: &str) {
    for (name, call) in calls(actor) {
        let answered = timeout(AT_ONCE, call).await;
        assert!(answered.is_ok(), "{name} waits for {stalled}");
    }
}

case!(a_stalled_call_holds_up_no_other: R21 R22);
/// A call that is polled once and kept blocks no other call of its actor,
/// even if it is the actor's first call. The same holds for all calls at once.
async fn a_stalled_call_holds_up_no_other(store: &Store) {
    let actor = store.actor("actor").await;
    for at in 0..calls(&actor).len() {
        let fresh = store.actor("fresh").await;
        let (name, mut stalled) = calls(&fresh).swap_remove(at);
        poll_once(&mut stalled).await;
        expect_all_answered(&fresh, &format!("a stalled {name}")).await;
    }

    let mut all = calls(&actor);
    for (_, stalled) in &mut all {
        poll_once(stalled).await;
    }
    expect_all_answered(&actor, "stalled calls").await;
}

case!(a_stalled_waiter_holds_up_no_other: R21 R22);
/// A claim that waits for a job and is not polled blocks no other call of its
/// actor.
async fn a_stalled_waiter_holds_up_no_other(store: &Store) {
    let actor = store.actor("actor").await;
    let mut stalled = call(actor.take_waiting(1, HELD));
    for _ in 0..3 {
        poll_once(&mut stalled).await;
        store.settled().await;
    }

    expect_all_answered(&actor, "a stalled waiter").await;
}

case!(a_stalled_reconnect_holds_up_no_other: R21 R22 @ redis);
/// A call that found its connection closed, began to connect and is not
/// polled again does not block other calls.
async fn a_stalled_reconnect_holds_up_no_other(store: &Store) {
    let actor = store.actor("actor").await;
    for (name, mut stalled) in calls(&actor) {
        store.tell(&[b"CLIENT", b"KILL", b"TYPE", b"normal"]).await;
        store.settled().await;
        poll_once(&mut stalled).await;

        let other = timeout(AT_ONCE, actor.stats()).await;

        assert!(other.is_ok(), "stats waits for a {name} that connects");
        assert!(matches!(other, Ok(Ok(_))), "stats beside a stalled {name}: {other:?}");
    }
    expect_all_answered(&actor, "nothing").await;
}

case!(a_stalled_runtime_holds_up_no_other: R21);
/// A runtime that is not run, with unfinished calls on it, blocks no call of
/// another runtime.
async fn a_stalled_runtime_holds_up_no_other(store: &Store) {
    let actor = store.actor("actor").await;
    let (begun, has_begun) = oneshot::channel();
    let (over, is_over) = std::sync::mpsc::channel::<()>();
    let other = actor.clone();
    let runtime = thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("the system gives a runtime");
        let mut stalled = calls(&other);
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

    expect_all_answered(&actor, "another runtime").await;

    drop(over);
    runtime.join().expect("the other runtime ends well");
}
