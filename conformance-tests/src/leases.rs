//! How long a lease runs, and what extends it (R6, R7, R9, R10).

use std::time::Duration;

use queue_core::{Extended, NewJob};

use crate::{
    checks::{numbered, payloads},
    store::{BRIEF, HELD, Store},
};

/// R7: a heartbeat for an old lease does not extend the new one.
pub(crate) async fn late_extension_changes_nothing(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let stale = actor.take_one_briefly().await;
    store.outlast_brief_leases().await;
    actor.recover_all().await;
    actor.take_one_briefly().await;

    let heard = actor.keep(&stale, HELD).await;

    assert_eq!(heard.expect("answered"), Extended::LeaseLost);
    store.outlast_brief_leases().await;
    actor.recover_all().await;
    assert_eq!(actor.take_one().await.payload, "job");
}

/// R6: a heartbeat keeps the job.
pub(crate) async fn an_extended_lease_holds(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let short = actor.ask_by(1, Duration::from_secs(2));
    let held = actor.claim(&short).await.expect("answered").remove(0);
    actor.keep(&held, HELD).await.expect("answered");
    store.advance(Duration::from_millis(2100)).await;

    assert_eq!(actor.recover_all().await.requeued, 0);

    actor.finish(&held).await;
}

/// R6: an extension counts from now and says until when; the lease then ends.
pub(crate) async fn an_extension_is_no_longer_than_asked(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;

    let heard = actor.keep(&held, BRIEF).await;

    assert!(matches!(heard, Ok(Extended::Until(_))), "{heard:?}");
    store.outlast_brief_leases().await;
    assert_eq!(actor.recover_all().await.requeued, 1);
}

/// R7: one heartbeat answers for each lease, the lost ones among them.
pub(crate) async fn an_extension_answers_for_each(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(4)).await;
    let held = actor.take(4).await;
    actor.finish(&held[1]).await;
    actor.cancel(held[2].job()).await.expect("answered");
    let receipts: Vec<_> = held.iter().map(|one| one.receipt.clone()).collect();

    let heard = actor.extend(actor.worker(), &receipts, HELD).await.expect("answered");

    assert!(matches!(
        heard[..],
        [
            Extended::Until(_),
            Extended::LeaseLost,
            Extended::Cancelled,
            Extended::Until(_)
        ]
    ));
}

/// R10: a heartbeat keeps what it names and nothing else: the rest is given back, or
/// comes back when its lease ends.
pub(crate) async fn an_extension_keeps_what_it_names(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(["named", "unnamed"]).await;
    let short = actor.ask_by(2, Duration::from_secs(2));
    let held = actor.claim(&short).await.expect("answered");
    let named = [held[0].receipt.clone()];
    actor.extend(actor.worker(), &named, HELD).await.expect("answered");
    store.advance(Duration::from_millis(2100)).await;

    actor.recover_all().await;

    assert_eq!(payloads(&actor.take(2).await), [held[1].payload.clone()]);
    actor.finish(&held[0]).await;
}

/// R6: a job's own lease outlasts the worker's.
pub(crate) async fn a_jobs_own_lease_holds(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(NewJob::new("own").lease(HELD)).await;
    let own = actor.take_one_briefly().await;
    actor.store_one("plain").await;
    let plain = actor.take_one_briefly().await;

    store.outlast_brief_leases().await;

    assert_eq!(actor.recover_all().await.requeued, 1);
    assert_eq!((own.lease, plain.lease), (HELD, BRIEF));
    actor.finish(&own).await;
}

/// R6, R9: a job's own lease may be shorter than the worker's.
pub(crate) async fn a_jobs_own_lease_ends(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(NewJob::new("own").lease(BRIEF)).await;
    assert_eq!(actor.take_one().await.lease, BRIEF);
    store.outlast_brief_leases().await;

    assert_eq!(actor.recover_all().await.requeued, 1);

    assert_eq!(actor.take_one().await.lease, BRIEF, "the next lease is its own too");
}

/// R6, R7: an extension after the end of the lease that came before any recovery
/// keeps the job or finds it lost, one or the other.
pub(crate) async fn an_overdue_extension_keeps_or_loses(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one_briefly().await;
    store.outlast_brief_leases().await;

    let heard = actor.keep(&held, HELD).await.expect("answered");

    let kept = u32::from(matches!(heard, Extended::Until(_)));
    assert_eq!(kept + actor.recover_all().await.requeued, 1, "{heard:?}");
    assert_eq!(actor.figures().await.unfinished(), 1);
}

/// R6: leases of the longest worker ids are told apart.
pub(crate) async fn the_longest_worker_ids_hold(store: &Store) {
    let (a, b) = ("w".repeat(128), format!("{}x", "w".repeat(127)));
    let (first, second) = (store.actor(&a).await, store.actor(&b).await);
    first.store(numbered(2)).await;
    first.take_one().await;
    let held = second.take_one().await;

    assert_eq!(first.leave(first.worker()).await.expect("answered").jobs, 1);

    second.finish(&held).await;
}
