//! How long what became of a job can be read (R29, R18).

use std::time::Duration;

use relq_core::{
    Disposition, NewJob,
    operator::Selection,
    outcome::DuplicateOf,
    results::{JobResult, MAX_RESULT},
};

use super::fixture::{KEPT, UNFINISHED, done, done_with, kept};
use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{assert_applied, dead, duplicate, id, numbered, settle_all},
        clock::Skew,
        store::Store,
        times::{HELD, LIFE, PAST_LIFE, PAST_WINDOW},
    },
};

const MILLISECOND: Duration = Duration::from_millis(1);

/// How long a result is kept that a case lets expire in real time: longer than a machine
/// stands still.
const BRIEFLY: Duration = Duration::from_secs(4);

/// How far a case advances the store's clock so that such a result expires.
const PAST_BRIEFLY: Duration = Duration::from_millis(4030);

case!(a_result_is_kept_for_its_time: R29 => Results, real_time);
/// The result of a job can be read for the time that its producer asked for, counted from
/// the end of the job, and not after it.
async fn a_result_is_kept_for_its_time(store: &Store) {
    let actor = store.actor("worker").await;
    let job = actor.store_one(NewJob::new("job").keep_result(BRIEFLY)).await;
    store.advance(PAST_BRIEFLY).await;
    actor.assert_told(&job, UNFINISHED).await;

    actor.ends(&actor.take_one().await, done_with("result")).await;

    actor.assert_told(&job, done("result")).await;
    store.advance(PAST_BRIEFLY).await;
    actor.assert_untold(&job).await;
    actor.recover_all().await;
    actor.assert_untold(&job).await;
}

case!(a_purge_forgets_the_results_of_its_jobs_only: R29 R23 => Results);
/// A purge of some dead jobs leaves the results of the others, dead and done, alone.
async fn a_purge_forgets_the_results_of_its_jobs_only(store: &Store) {
    let actor = store.actor("worker").await;
    let jobs = actor.store(["purged", "dead", "done"].map(kept)).await;
    for held in actor.take(3).await {
        let is_done = held.payload == "done";
        let disposition = if is_done { done_with("result") } else { dead("no") };
        actor.ends(&held, disposition).await;
    }
    let before = actor.told_of(&jobs[1..]).await;
    assert!(before.iter().all(Option::is_some), "R29: {before:?}");

    let purged = actor.purge_dead(&Selection::Only(vec![jobs[0].clone()])).await;

    assert_eq!(purged.expect("answered"), 1);
    assert_eq!(actor.told_of(&jobs[1..]).await, before, "R29: the other results");
}

case!(each_result_is_kept_for_its_own_time: R29 => Results);
/// A recovery removes the results whose time has passed, and no other.
async fn each_result_is_kept_for_its_own_time(store: &Store) {
    store.stop_clock();
    let actor = store.actor("worker").await;
    let keep = |seconds| NewJob::new("job").keep_result(Duration::from_secs(seconds));
    let jobs = actor.store([30, 10, 20].map(keep)).await;
    for held in actor.take(3).await {
        actor.finish(&held).await;
    }
    let told = async |actor: &Actor| {
        let told = actor.told_of(&jobs).await;
        told.iter().map(Option::is_some).collect::<Vec<_>>()
    };
    for (seconds, wanted) in [
        (0, [true, true, true]),
        (10, [true, false, true]),
        (20, [true, false, false]),
        (30, [false, false, false]),
    ] {
        if seconds > 0 {
            store.advance(Duration::from_secs(10) - MILLISECOND).await;
            let before = told(&actor).await.iter().filter(|it| **it).count();
            assert_eq!(before, wanted.iter().filter(|it| **it).count() + 1);
            store.advance(MILLISECOND).await;
        }
        actor.recover_all().await;
        assert_eq!(told(&actor).await, wanted, "R29: after {seconds} s");
    }
}

case!(each_end_is_kept_for_its_time: R29 => Results);
/// Also a discarded, a cancelled and a purged job are told for the time that the producer
/// asked for, and not after it.
async fn each_end_is_kept_for_its_time(store: &Store) {
    let actor = store.actor("worker").await;
    let keep = |job| NewJob::new(job).keep_result(HELD);
    let jobs = actor.store([keep("a"), keep("b"), keep("c")]).await;
    let held = actor.take(3).await;
    let at = |job: &_| held.iter().find(|one| one.job() == job).expect("it is held");
    actor.ends(at(&jobs[0]), Disposition::Discard).await;
    actor.cancel(&jobs[1]).await.expect("answered");
    actor.ends(at(&jobs[2]), dead("no")).await;
    store.advance(HELD * 2).await;
    let is_purged = actor.purge_dead(&Selection::All).await.expect("answered");
    assert_eq!(is_purged, 1);
    assert_eq!(
        actor.told_of(&jobs).await,
        [None, None, Some(JobResult::Purged)],
        "R29: the time begins at the purge"
    );

    store.advance(HELD - LIFE).await;
    actor.recover_all().await;
    actor.assert_told(&jobs[2], JobResult::Purged).await;
    store.advance(PAST_LIFE).await;
    actor.recover_all().await;

    actor.assert_untold(&jobs[2]).await;
}

case!(what_is_told_of_a_dead_job_stays: R29 => Results);
/// A dead job is told as dead for as long as it is dead. Its time begins when it ends for
/// good.
async fn what_is_told_of_a_dead_job_stays(store: &Store) {
    let actor = store.actor("worker").await;
    let job = actor.store_one(NewJob::new("job").keep_result(LIFE)).await;
    actor.ends(&actor.take_one().await, dead("no")).await;
    store.advance(KEPT).await;
    actor.recover_all().await;
    let told = actor.result_of(&job).await;
    assert!(matches!(told, Some(JobResult::Dead { .. })), "R29: {told:?}");

    actor.redrive(&Selection::All).await.expect("answered");
    store.advance(KEPT).await;
    actor.recover_all().await;
    actor.assert_told(&job, UNFINISHED).await;
    actor.ends(&actor.take_one().await, done_with("result")).await;

    actor.assert_told(&job, done("result")).await;
    store.advance(PAST_LIFE).await;
    actor.assert_untold(&job).await;
}

case!(a_wrong_clock_changes_no_time: R29 R18 => Results @ redis);
/// Results are kept by the store's clock, whatever the clocks of the clients say.
async fn a_wrong_clock_changes_no_time(store: &Store) {
    let hours = 7 * KEPT;
    for (name, skew) in [("fast", Skew::Ahead(hours)), ("slow", Skew::Behind(hours))] {
        let honest = store.actor("honest").await;
        let wrong = store.actor_with_clock(name, skew).await;
        let job = wrong.store_one(NewJob::new("job").keep_result(HELD)).await;
        wrong.ends(&wrong.take_one().await, done_with("result")).await;
        store.advance(HELD / 2).await;
        wrong.recover_all().await;
        honest.assert_told(&job, done("result")).await;
        wrong.assert_told(&job, done("result")).await;

        store.advance(HELD).await;

        honest.assert_untold(&job).await;
        wrong.assert_untold(&job).await;
    }
}

case!(old_results_leave_nothing: R29 => Results @ counted);
/// A recovery removes what was recorded of jobs whose results were kept long enough, also if
/// it needs several calls because the results are large. Only short notes for clients that
/// wait may stay, one for each end (NO-ORPHAN-KEYS).
async fn old_results_leave_nothing(store: &Store) {
    const LARGE: usize = 5;
    let actor = store.actor("worker").await;
    let keep = |one| NewJob::new(one).keep_result(LIFE);
    let mut sizes = Vec::new();
    for round in 1..=2 {
        let jobs = numbered(20 * round).into_iter().map(keep);
        actor.store(jobs).await;
        for (at, held) in actor.take(100).await.iter().enumerate() {
            let is_large = round == 2 && at < LARGE;
            let result = vec![b'r'; if is_large { MAX_RESULT } else { 1 }];
            actor.shows(held, b"half").await;
            actor.ends(held, done_with(result)).await;
        }
        store.advance(PAST_WINDOW).await;
        actor.recover_all().await;
        sizes.push(store.size().await);
    }
    let grown = sizes[1].saturating_sub(sizes[0]);
    assert!(grown <= 40, "NO-ORPHAN-KEYS: 40 jobs left {grown} values: {sizes:?}");
}

case!(an_id_is_remembered_as_long_as_its_result: R29 R4 => Results ClientIds);
/// No job takes the id of another while that one's result is kept, even after the time for
/// which other ids are remembered. Then the next job of that id is told, for its own time.
async fn an_id_is_remembered_as_long_as_its_result(store: &Store) {
    let actor = store.actor("worker").await;
    let mine = || kept("job").id(id("mine"));
    let job = actor.store_one(mine()).await;
    let known = duplicate(&job, DuplicateOf::Id);
    let held = actor.take_one().await;
    actor.shows(&held, b"half").await;
    actor.ends(&held, done_with("first")).await;
    store.advance(PAST_WINDOW).await;
    actor.recover_all().await;

    assert_eq!(actor.offer(mine()).await, known, "R29: its result is kept");
    let plain = NewJob::new("plain").id(id("mine"));
    assert_eq!(actor.offer(plain).await, known, "R29: its result is kept");
    actor.assert_told(&job, done("first")).await;

    // Nothing has removed the old result when the next job begins.
    store.advance(KEPT).await;
    actor.assert_untold(&job).await;
    assert_eq!(actor.store_one(mine()).await, job);
    actor.assert_told(&job, UNFINISHED).await;
    actor.ends(&actor.take_one().await, done_with("second")).await;
    store.advance(KEPT - HELD).await;
    actor.recover_all().await;
    actor.assert_told(&job, done("second")).await;
    store.advance(HELD).await;
    actor.assert_untold(&job).await;
}

case!(an_id_is_remembered_longer_than_a_short_result: R29 R4 => Results ClientIds);
/// A result that is kept for a short time does not shorten the time for which the id of its job
/// is remembered.
async fn an_id_is_remembered_longer_than_a_short_result(store: &Store) {
    let actor = store.actor("worker").await;
    let mine = || NewJob::new("job").keep_result(LIFE).id(id("mine"));
    let job = actor.store_one(mine()).await;
    actor.ends(&actor.take_one().await, done_with("result")).await;
    store.advance(PAST_LIFE).await;
    actor.recover_all().await;
    actor.assert_untold(&job).await;

    let again = actor.offer(mine()).await;

    assert_eq!(
        again,
        duplicate(&job, DuplicateOf::Id),
        "R4: five minutes after its end"
    );
    store.advance(PAST_WINDOW).await;
    actor.recover_all().await;
    assert_eq!(actor.store_one(mine()).await, job);
}

case!(a_reused_id_is_told_behind_many_old_results: R29 R4 => Results ClientIds);
/// The time of hundreds of results has passed, and no recovery has removed them. A new job
/// has the id of the last one, whose result is not removed with the first of the others:
/// the new job is told as unfinished.
async fn a_reused_id_is_told_behind_many_old_results(store: &Store) {
    let actor = store.actor("worker").await;
    let mine = || kept("job").id(id("mine"));
    let before =
        numbered(400).into_iter().map(|one| NewJob::new(one).keep_result(LIFE));
    actor.store(before).await;
    let job = actor.store_one(mine()).await;
    let held = actor.take(401).await;
    assert_eq!(held.len(), 401, "R1: the jobs that are claimed");
    assert_applied(&settle_all(&actor, &held, &done_with("first")).await);
    store.advance(2 * KEPT).await;

    assert_eq!(actor.store_one(mine()).await, job);

    actor.assert_told(&job, UNFINISHED).await;
    actor.ends(&actor.take_one().await, done_with("second")).await;
    actor.assert_told(&job, done("second")).await;
}

case!(a_time_of_no_length_is_refused: R29 R5 => Results);
/// A push that keeps a result for less than a millisecond or for ever is refused, and
/// nothing is stored.
async fn a_time_of_no_length_is_refused(store: &Store) {
    let actor = store.actor("producer").await;
    for time in [Duration::ZERO, Duration::from_micros(999), Duration::MAX] {
        let wrong = NewJob::new("wrong").keep_result(time);

        let refused = actor.push(&[kept("right"), wrong], None).await;

        let error = refused.expect_err("it is refused");
        assert!(matches!(error, relq_core::Error::Invalid { .. }), "{error:?}");
        assert_eq!(actor.figures().await.unfinished(), 0, "R5: nothing is stored");
    }
}
