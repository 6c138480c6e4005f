//! A leased job belongs to its holder until the lease or the job ends (R6 to R8).

use bytes::Bytes;
use relq_core::{Disposition, NewJob, outcome::Settled};

use crate::{
    cases::case,
    harness::{
        checks::{drain, eventually, expect_exactly, payloads},
        store::Store,
    },
};

case!(a_held_job_is_not_given_again: R6);
/// A leased job is given neither to another worker nor to its holder again.
async fn a_held_job_is_not_given_again(store: &Store) {
    let (first, second) = (store.actor("w1").await, store.actor("w2").await);
    first.store_one("job").await;
    let held = first.take_one().await;

    second.recover_all().await;

    assert_eq!(second.take(10).await, []);
    assert_eq!(first.take(10).await, []);
    first.finish(&held).await;
}

case!(a_held_job_holds_up_nobody: R6 R9);
/// A leased job does not delay the jobs before or after it.
async fn a_held_job_holds_up_nobody(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(["1", "2"]).await;
    let held = actor.take_one().await;
    actor.store_one("3").await;

    let served = payloads(&drain(&actor).await).into_iter();

    let all = ["1", "2", "3"].map(Bytes::from);
    expect_exactly(served.chain([held.payload]), all);
}

case!(an_overdue_ack_is_applied_or_lost: R7);
/// An ack that comes after the lease has expired and before a recovery either ends the
/// job or returns `LeaseLost` and changes nothing.
async fn an_overdue_ack_is_applied_or_lost(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one_briefly().await;
    store.outlast_brief_leases().await;

    let settled = actor.say(&held, Disposition::Done).await;

    actor.recover_all().await;
    let again = drain(&actor).await.len();
    let applied = usize::from(settled == Settled::Applied);
    assert_eq!(applied + again, 1, "{settled:?}, and then delivered {again} times");
    assert_eq!(actor.figures().await.finished, 1);
}

case!(a_finished_job_stays_gone: R8);
/// A finished job does not return when its lease would have expired and a recovery
/// runs.
async fn a_finished_job_stays_gone(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one_briefly().await;
    actor.say(&held, Disposition::Discard).await;
    actor.store_one("next").await;
    let held = actor.take_one().await;
    actor.finish(&held).await;
    store.outlast_brief_leases().await;

    let recovered = actor.recover_all().await;

    assert_eq!((recovered.requeued, recovered.buried), (0, 0));
    assert_eq!(actor.take(10).await, []);
}

case!(another_handle_shares_the_queue: R7);
/// A second handle of the same queue can settle jobs that the first claimed.
async fn another_handle_shares_the_queue(store: &Store) {
    let actor = store.actor("worker").await;
    let another = actor.open_another().await.expect("another handle opens");
    actor.store_one("job").await;
    let held = another.claim(&actor.ask(1)).await.expect("answered").remove(0);

    actor.finish(&held).await;

    drop(actor);
    let stranger = store.actor("stranger").await;
    another.push(&[NewJob::new("by the other handle")], None).await.expect("taken");
    let seen =
        eventually("the other handle's job", || async { stranger.take(1).await.pop() });
    assert_eq!(seen.await.payload, "by the other handle");
}
