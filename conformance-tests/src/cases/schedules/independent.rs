//! Schedules do not depend on the jobs of their queue, nor on other queues (R19, R28).

use relq_core::{NewJob, operator::Selection, schedule::Ticked};

use super::fixture::{DAILY, HOURLY, REPORT, SECOND, tick};
use crate::{
    cases::{case, times::now},
    harness::{
        checks::{dead, delivers, drain, numbered},
        store::Store,
        times::HELD,
    },
};

case!(a_purge_leaves_schedules: R28 => Schedules);
/// A purge removes the jobs of a queue and leaves its schedules and their last ticks.
async fn a_purge_leaves_schedules(store: &Store) {
    store.stop_clock();
    let actor = store.actor("scheduler").await;
    actor.put_report().await;
    store.advance(SECOND).await;
    actor.ticks(&tick(HOURLY, now(store)), "purged").await;
    let before = actor.report().await;

    assert_eq!(actor.purge().await.expect("answered"), 1, "R28: the jobs");

    assert_eq!(actor.report().await, before);
    let again = actor.tick(&tick(HOURLY, now(store)), "again").await;
    assert_eq!(again, Ticked::NotLater, "R28: its job was purged, not its record");
    store.advance(SECOND).await;
    actor.ticks(&tick(HOURLY, now(store)), "next").await;
    delivers(&actor, ["next"]).await;
}

case!(a_paused_queue_takes_ticks: R28 R23 => Schedules);
/// While a queue is paused, ticks push their jobs, and the jobs are delivered after the
/// resume.
async fn a_paused_queue_takes_ticks(store: &Store) {
    store.stop_clock();
    let actor = store.actor("scheduler").await;
    actor.put_report().await;
    actor.pause().await.expect("answered");
    store.advance(SECOND).await;

    actor.ticks(&tick(HOURLY, now(store)), "job").await;

    assert_eq!(actor.take(1).await, [], "the queue is paused");
    actor.resume().await.expect("answered");
    delivers(&actor, ["job"]).await;
}

case!(work_on_jobs_leaves_schedules: R28 => Schedules);
/// Claims, settlements, recoveries, redrives, purges of dead letters and releases leave
/// the schedules as they are.
async fn work_on_jobs_leaves_schedules(store: &Store) {
    store.stop_clock();
    let actor = store.actor("worker").await;
    actor.put_report().await;
    actor.put("other", DAILY).await;
    let before = actor.found().await.schedules;

    actor.store(numbered(5)).await;
    for held in actor.take(2).await {
        actor.say(&held, dead("no")).await;
    }
    actor.redrive(&Selection::All).await.expect("answered");
    let held = actor.take_one().await;
    actor.say(&held, dead("no")).await;
    actor.purge_dead(&Selection::All).await.expect("answered");
    actor.take_briefly(2).await;
    store.outlast_brief_leases().await;
    actor.recover_all().await;
    actor.take(1).await;
    actor.release_worker(actor.worker()).await.expect("answered");
    drain(&actor).await;
    store.advance(HELD).await;
    actor.recover_all().await;

    assert_eq!(actor.found().await.schedules, before);
    assert_eq!(actor.audit().await.expect("answered").problems, [""; 0]);
}

case!(schedules_are_no_jobs: R23 R28 => Schedules);
/// The stats and the audit count no schedule, and the jobs of ticks like any others.
async fn schedules_are_no_jobs(store: &Store) {
    store.stop_clock();
    let actor = store.actor("scheduler").await;
    for number in 0..20 {
        actor.put(&format!("schedule-{number}"), HOURLY).await;
    }
    assert_eq!(actor.figures().await.unfinished(), 0);
    assert_eq!(actor.audit().await.expect("answered").jobs, 0);
    actor.remove("schedule-0").await;
    actor.put(REPORT, HOURLY).await;
    store.advance(SECOND).await;

    actor.tick(&tick(HOURLY, now(store)), "job").await;

    assert_eq!(actor.figures().await.ready, 1);
    let audit = actor.audit().await.expect("answered");
    assert_eq!((audit.jobs, audit.problems), (1, Vec::new()));
}

case!(queues_have_their_own_schedules: R19 R28 => Schedules);
/// Two queues of one store have schedules of the same name. A call on one of them does not
/// change the other.
async fn queues_have_their_own_schedules(store: &Store) {
    store.stop_clock();
    let [here, there] =
        [store.actor_on("s", "a").await, store.actor_on("s", "a:schedules").await];
    here.put_report().await;
    there.put(REPORT, DAILY).await;
    let untouched = there.report().await;
    store.advance(SECOND).await;

    here.ticks(&tick(HOURLY, now(store)), NewJob::new("here")).await;
    assert_eq!(there.report().await, untouched);
    assert_eq!(there.figures().await.unfinished(), 0);
    assert_eq!(there.tick(&tick(HOURLY, now(store)), "x").await, Ticked::Changed);
    here.purge().await.expect("answered");
    here.remove(REPORT).await;

    assert_eq!(here.found().await.schedules, []);
    assert_eq!(there.report().await, untouched);
    there.ticks(&tick(DAILY, now(store)), "there").await;
    delivers(&there, ["there"]).await;
}

case!(another_connection_has_the_schedules: R28 => Schedules);
/// A queue that a worker opens for itself has the same schedules.
async fn another_connection_has_the_schedules(store: &Store) {
    let actor = store.actor("scheduler").await;
    actor.put_report().await;

    let another = actor.open_another().await.expect("it opens");

    let another = another.schedule_queue().expect("the backend supports schedules");
    let found = another.schedules().await.expect("answered").schedules;
    assert_eq!(found, [actor.report().await]);
}
