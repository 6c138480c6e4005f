//! Workers that stopped, died or were released are no longer listed (R33).

use std::time::Duration;

use relq_core::operator::WORKER_FORGOTTEN_AFTER;

use crate::{
    cases::{case, times::now},
    harness::{checks::payloads, store::Store},
};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

case!(a_dead_worker_is_forgotten: R33 => Inspect);
/// A worker that no longer reports is listed for 60 seconds after its last report.
async fn a_dead_worker_is_forgotten(store: &Store) {
    let actor = store.actor("worker").await;
    actor.report_running(actor.worker(), 1).await;
    store.advance(WORKER_FORGOTTEN_AFTER - SECOND * 10).await;
    actor.the_worker().await;

    store.advance(SECOND * 11).await;

    assert_eq!(actor.workers_by(10).await, [], "R33: 60 seconds have passed");
}

case!(a_worker_that_returns_begins_anew: R33 => Inspect);
/// A worker that reports after it was forgotten is listed with a new time.
async fn a_worker_that_returns_begins_anew(store: &Store) {
    let actor = store.actor("worker").await;
    actor.report_running(actor.worker(), 1).await;
    let first = actor.the_worker().await;
    store.advance(WORKER_FORGOTTEN_AFTER + SECOND).await;

    actor.report_running(actor.worker(), 1).await;

    let since = actor.the_worker().await.since.since(first.since);
    assert!(since >= WORKER_FORGOTTEN_AFTER, "R33: {since:?} after its first report");
}

case!(a_released_worker_is_gone: R33 R24 => Inspect);
/// A release removes the worker from the list, with its jobs or without, and no other.
async fn a_released_worker_is_gone(store: &Store) {
    let (one, two) = (store.actor("one").await, store.actor("two").await);
    one.store_one("job").await;
    for actor in [&one, &two] {
        actor.report_running(actor.worker(), 1).await;
    }
    one.take_one().await;

    one.release_worker(one.worker()).await.expect("answered");

    assert_eq!(&one.the_worker().await.worker, two.worker(), "R33");
    assert_eq!(payloads(&two.take(1).await), ["job"], "R24");
    two.release_worker(two.worker()).await.expect("answered");
    assert_eq!(one.workers_by(10).await, [], "R33");

    one.report_running(one.worker(), 1).await;
    one.release_worker(one.worker()).await.expect("answered");
    assert_eq!(one.workers_by(10).await, [], "R33: it held no job");
}

case!(a_late_report_is_forgotten: R33 => Inspect);
/// A report after the release lists the worker for 60 seconds, and not for longer.
async fn a_late_report_is_forgotten(store: &Store) {
    let actor = store.actor("worker").await;
    actor.report_running(actor.worker(), 1).await;
    actor.release_worker(actor.worker()).await.expect("answered");
    actor.report_running(actor.worker(), 1).await;

    store.advance(WORKER_FORGOTTEN_AFTER + SECOND).await;

    assert_eq!(actor.workers_by(10).await, [], "R33");
}

case!(a_purge_empties_the_list: R33 => Inspect);
/// A purge removes all workers from the list, and a worker returns with its next report.
async fn a_purge_empties_the_list(store: &Store) {
    let actor = store.actor("worker").await;
    actor.report_running(actor.worker(), 1).await;

    actor.purge().await.expect("answered");

    assert_eq!(actor.workers_by(10).await, [], "R33");
    actor.report_running(actor.worker(), 1).await;
    actor.the_worker().await;
}

case!(a_recovery_removes_dead_workers: R33 => Inspect @ counted);
/// A recovery removes what is stored of workers that died, and leaves those that run.
async fn a_recovery_removes_dead_workers(store: &Store) {
    let (dead, alive) = (store.actor("dead").await, store.actor("alive").await);
    alive.report_running(alive.worker(), 1).await;
    let before = store.size().await;
    dead.report_running(dead.worker(), 1).await;
    let is_stored = before == 0 || store.size().await > before;
    assert!(is_stored, "R33: a report is stored");
    store.advance(SECOND * 40).await;
    alive.report_running(alive.worker(), 1).await;
    store.advance(SECOND * 21).await;

    alive.recover_all().await;

    assert_eq!(store.size().await, before, "R33: nothing of the dead worker is left");
    assert_eq!(&alive.the_worker().await.worker, alive.worker(), "R33");
}

case!(a_clock_that_is_set_back_keeps_no_worker_listed: R18 R33 => Inspect);
/// A worker that died before the store's clock was set back is not listed. A worker that runs
/// is listed from its next report on, and its first report is not in the future.
async fn a_clock_that_is_set_back_keeps_no_worker_listed(store: &Store) {
    let (dead, alive) = (store.actor("dead").await, store.actor("alive").await);
    for actor in [&dead, &alive] {
        actor.report_running(actor.worker(), 1).await;
    }

    store.set_clock_back(HOUR);
    store.advance(WORKER_FORGOTTEN_AFTER + SECOND).await;
    alive.report_running(alive.worker(), 1).await;

    let seen = alive.the_worker().await;
    assert_eq!(&seen.worker, alive.worker(), "R33");
    let ahead = seen.since.since(now(store));
    assert_eq!(ahead, Duration::ZERO, "R33: the first report is in the future");
}

case!(a_recovery_removes_reports_of_the_future: R18 R33 => Inspect @ counted);
/// A recovery removes what is stored of a worker that died before the store's clock was set
/// back, and not a worker that has reported since.
async fn a_recovery_removes_reports_of_the_future(store: &Store) {
    let (dead, alive) = (store.actor("dead").await, store.actor("alive").await);
    alive.report_running(alive.worker(), 1).await;
    let before = store.size().await;
    dead.report_running(dead.worker(), 1).await;
    store.set_clock_back(HOUR);
    alive.report_running(alive.worker(), 1).await;

    alive.recover_all().await;

    assert_eq!(store.size().await, before, "R33: nothing of the dead worker is left");
    assert_eq!(&alive.the_worker().await.worker, alive.worker(), "R33");
}

case!(no_lease_depends_on_a_report: R33 R6 => Inspect);
/// The jobs of a worker that is not listed stay leased, and a listed worker loses the
/// leases that it does not extend.
async fn no_lease_depends_on_a_report(store: &Store) {
    let (silent, listed) = (store.actor("silent").await, store.actor("listed").await);
    silent.store(["kept", "lost"]).await;
    let kept = silent.take_one().await;
    listed.take_one_briefly().await;
    store.advance(WORKER_FORGOTTEN_AFTER + SECOND).await;
    listed.report_running(listed.worker(), 1).await;

    assert_eq!(silent.recover_all().await.requeued, 1, "R9: the lease has expired");

    assert_eq!(payloads(&listed.take(2).await), ["lost"], "R6");
    silent.finish(&kept).await;
}
