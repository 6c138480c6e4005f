//! The list of the workers that have reported (R33).

use std::{num::NonZeroU32, time::Duration};

use relq_core::{
    Error, WorkerId,
    operator::{PageCursor, REPORT_INTERVAL, WORKER_FORGOTTEN_AFTER, WorkerReport},
};
use tokio::task::JoinSet;

use crate::{
    cases::{
        case,
        times::{TOLERANCE, now},
    },
    harness::{clock::Skew, store::Store},
};

fn worker(name: impl AsRef<str>) -> WorkerId {
    WorkerId::new(name).expect("cases use valid worker ids")
}

case!(a_report_is_listed: R33 => Inspect, real_time);
/// A worker that reports is listed with its slots, the time of its report, and the time
/// until which it is listed.
async fn a_report_is_listed(store: &Store) {
    let actor = store.actor("host:42:x").await;
    assert_eq!(actor.workers_by(10).await, [], "R33: no worker has reported");
    let before = now(store);

    actor.report_running(actor.worker(), 8).await;

    let seen = actor.the_worker().await;
    assert_eq!((&seen.worker, seen.slots.get()), (actor.worker(), 8), "R33");
    assert_eq!(seen.until.since(seen.since), WORKER_FORGOTTEN_AFTER, "R33");
    let away = seen.since.since(before).max(before.since(seen.since));
    assert!(away <= TOLERANCE, "R33: the first report is {away:?} away");
    assert_eq!(actor.figures().await.unfinished(), 0, "R33: no job is counted");
}

case!(the_first_report_stays: R33 => Inspect);
/// A worker that reports again keeps the time of its first report, and is listed for
/// longer. A change of its slots is shown.
async fn the_first_report_stays(store: &Store) {
    let actor = store.actor("worker").await;
    actor.report_running(actor.worker(), 8).await;
    let first = actor.the_worker().await;
    for slots in [8, 9, 1] {
        store.advance(REPORT_INTERVAL).await;
        actor.report_running(actor.worker(), slots).await;

        let seen = actor.the_worker().await;
        assert_eq!((seen.since, seen.slots.get()), (first.since, slots), "R33");
    }

    let longer = actor.the_worker().await.until.since(first.until);
    assert!(longer >= REPORT_INTERVAL * 3, "R33: listed for {longer:?} longer");
}

case!(pages_list_each_worker: R33 R21 => Inspect);
/// The pages of a listing show each worker, whatever their size.
async fn pages_list_each_worker(store: &Store) {
    let actor = store.actor("operator").await;
    let mut wanted: Vec<_> = (0..700).map(|at| worker(format!("w{at}"))).collect();
    wanted.sort();
    // Together, because a store that syncs each commit takes a minute for one by one.
    let mut reports = JoinSet::new();
    for one in wanted.clone() {
        let actor = actor.clone();
        reports.spawn(async move { actor.report_running(&one, 1).await });
    }
    reports.join_all().await;

    for limit in [7, 500, 10_000] {
        let seen = actor.workers_by(limit).await.into_iter().map(|one| one.worker);
        assert_eq!(seen.collect::<Vec<_>>(), wanted, "R33: pages of {limit}");
    }
}

case!(a_foreign_cursor_of_workers_is_refused: R33 R21 => Inspect);
/// A cursor that the backend did not make is refused.
async fn a_foreign_cursor_of_workers_is_refused(store: &Store) {
    let actor = store.actor("operator").await;
    let foreign = PageCursor(b"\xff\0 no cursor".to_vec().into());

    let refused = actor.inspector().workers(Some(&foreign), NonZeroU32::MIN).await;

    assert!(matches!(refused, Err(Error::Invalid { .. })), "R33: {refused:?}");
}

case!(workers_are_isolated_by_queue: R33 R19 => Inspect);
/// A worker is listed by the queue that it reported to, and by no other.
async fn workers_are_isolated_by_queue(store: &Store) {
    let one = store.actor_on("worker", "jobs").await;
    let other = store.actor_on("worker", "jobs2").await;
    one.report_running(one.worker(), 1).await;

    assert_eq!(other.workers_by(10).await, [], "R19");

    other.report_running(other.worker(), 2).await;
    assert_eq!(one.the_worker().await.slots.get(), 1, "R19");
}

case!(the_clock_of_a_worker_does_not_matter: R33 R18 => Inspect @ redis);
/// The times of a worker are those of the store's clock, however wrong its own clock is.
async fn the_clock_of_a_worker_does_not_matter(store: &Store) {
    let operator = store.actor("operator").await;
    let hours = Duration::from_secs(7 * 3600);
    for (name, skew) in [("ahead", Skew::Ahead(hours)), ("behind", Skew::Behind(hours))]
    {
        let wrong = store.actor_with_clock(name, skew).await;
        wrong.report_running(wrong.worker(), 1).await;
        let seen = operator.the_worker().await;
        let away = seen.since.since(now(store)).max(now(store).since(seen.since));
        assert!(away <= TOLERANCE, "R18: {name} is listed {away:?} away");
        wrong.release_worker(wrong.worker()).await.expect("answered");
    }
}

case!(a_full_store_refuses_only_the_report: R33 R21 => Inspect @ redis);
/// If the store has no memory left, the report fails and nothing else: the worker's jobs
/// are settled.
async fn a_full_store_refuses_only_the_report(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;
    let oom = "OOM command not allowed when used memory > 'maxmemory'.";
    store.refuse("worker", 1, oom);
    let report = WorkerReport::new(actor.worker().clone(), NonZeroU32::MIN);

    let refused = actor.report_worker(&report).await;

    assert!(matches!(refused, Err(Error::Full { .. })), "R21: {refused:?}");
    actor.finish(&held).await;
    actor.report_running(actor.worker(), 1).await;
    actor.the_worker().await;
}
