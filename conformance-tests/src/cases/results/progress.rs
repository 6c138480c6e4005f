//! The holder of a job reports its progress (R29, R7).

use relq_core::{
    Disposition, Error, NewJob,
    error::{Effect, Operation},
    results::{MAX_PROGRESS, Reported},
};

use super::fixture::{UNFINISHED, done, done_with, kept, reported};
use crate::{
    cases::case,
    harness::{
        checks::{dead, postpone, retry_now},
        store::Store,
        times::{BRIEF, PAST_BRIEF},
    },
};

case!(progress_is_shown_until_the_next_report: R29 => Results);
/// The last report of the holder is shown, and none before the first.
async fn progress_is_shown_until_the_next_report(store: &Store) {
    let actor = store.actor("worker").await;
    let other = actor.store_one(kept("other")).await;
    actor.take_one().await;
    let job = actor.store_one(kept("job")).await;
    let held = actor.take_one().await;
    actor.assert_told(&job, UNFINISHED).await;

    actor.shows(&held, b"10 %").await;
    actor.shows(&held, b"20 %, which is a longer text").await;
    actor.shows(&held, b"30 %").await;

    actor.assert_told(&other, UNFINISHED).await;
    actor.ends(&held, done_with("result")).await;
    actor.assert_told(&job, done("result")).await;
}

case!(progress_outlives_attempts: R29 => Results);
/// The progress of an attempt is shown until a later attempt reports its own, whether the
/// attempt failed, was given back or lost its lease.
async fn progress_outlives_attempts(store: &Store) {
    let actor = store.actor("worker").await;
    let job = actor.store_one(kept("job")).await;
    let returns = [retry_now(), Disposition::GiveBack, postpone(BRIEF), retry_now()];
    for (progress, disposition) in [b"1", b"2", b"3", b"4"].into_iter().zip(returns) {
        let held = actor.take_one().await;
        actor.shows(&held, progress).await;
        actor.ends(&held, disposition).await;
        actor.assert_told(&job, reported(&progress[..])).await;
        store.advance(PAST_BRIEF).await;
        actor.recover_all().await;
        actor.assert_told(&job, reported(&progress[..])).await;
    }
    let held = actor.take_one_briefly().await;
    actor.assert_told(&job, reported("4")).await;
    actor.shows(&held, b"5").await;
    store.outlast_brief_leases().await;
    actor.recover_all().await;
    actor.assert_told(&job, reported("5")).await;

    let held = actor.take_one().await;
    actor.assert_told(&job, reported("5")).await;
    actor.ends(&held, Disposition::Done).await;
    actor.assert_told(&job, done("")).await;
}

case!(a_report_by_a_lost_lease_changes_nothing: R29 R7 => Results);
/// A report by a receipt whose lease expired and whose job another worker holds or has
/// finished is refused, and what is told of the job does not change.
async fn a_report_by_a_lost_lease_changes_nothing(store: &Store) {
    let (first, second) = (store.actor("w1").await, store.actor("w2").await);
    let job = first.store_one(kept("job")).await;
    let stale = first.take_one_briefly().await;
    first.shows(&stale, b"mine").await;
    store.outlast_brief_leases().await;
    second.recover_all().await;
    assert_eq!(first.reports(&stale, b"late").await, Reported::LeaseLost);
    first.assert_told(&job, reported("mine")).await;
    let held = second.take_one().await;

    assert_eq!(first.reports(&stale, b"late").await, Reported::LeaseLost);
    first.assert_told(&job, reported("mine")).await;
    second.shows(&held, b"theirs").await;
    assert_eq!(first.reports(&stale, b"late").await, Reported::LeaseLost);

    first.assert_told(&job, reported("theirs")).await;
    second.ends(&held, done_with("result")).await;
    for lost in [&stale, &held] {
        assert_eq!(second.reports(lost, b"late").await, Reported::LeaseLost);
    }
    first.assert_told(&job, done("result")).await;
}

case!(a_report_after_any_end_changes_nothing: R29 R7 => Results);
/// A report by the receipt of a job that ended or went back is refused.
async fn a_report_after_any_end_changes_nothing(store: &Store) {
    let actor = store.actor("worker").await;
    let ends =
        [Disposition::Done, Disposition::Discard, dead("no"), Disposition::GiveBack];
    for disposition in ends {
        let job = actor.store_one(kept("job")).await;
        let held = actor.take_one().await;
        actor.ends(&held, disposition).await;
        let before = actor.result_of(&job).await;

        assert_eq!(actor.reports(&held, b"late").await, Reported::LeaseLost);

        assert_eq!(actor.result_of(&job).await, before, "R29");
    }
    let held = actor.take_one().await;
    actor.cancel(held.job()).await.expect("answered");
    let before = actor.result_of(held.job()).await;
    assert_eq!(actor.reports(&held, b"late").await, Reported::LeaseLost);
    assert_eq!(actor.result_of(held.job()).await, before, "R29");
}

case!(a_report_for_a_job_that_keeps_none_is_not_kept: R29 => Results);
/// A report of progress for a job that keeps no result returns `NotKept`, and the store
/// shows nothing of it. If the lease was lost, it returns `LeaseLost`.
async fn a_report_for_a_job_that_keeps_none_is_not_kept(store: &Store) {
    let actor = store.actor("worker").await;
    let job = actor.store_one(NewJob::new("job")).await;
    let held = actor.take_one().await;

    assert_eq!(actor.reports(&held, b"half").await, Reported::NotKept);

    actor.assert_untold(&job).await;
    actor.finish(&held).await;
    assert_eq!(actor.reports(&held, b"half").await, Reported::LeaseLost);
    actor.assert_untold(&job).await;
}

case!(a_report_extends_no_lease: R29 R6 => Results);
/// A report neither extends the lease of its job nor ends it.
async fn a_report_extends_no_lease(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store([kept("brief"), kept("held")]).await;
    let brief = actor.take_one_briefly().await;
    let held = actor.take_one().await;
    actor.shows(&brief, b"half").await;
    actor.shows(&held, b"half").await;
    store.outlast_brief_leases().await;

    assert_eq!(actor.recover_all().await.requeued, 1);

    assert_eq!(actor.take_one().await.job(), brief.job());
    actor.finish(&held).await;
}

case!(progress_may_be_any_bytes: R29 R2 => Results);
/// Progress is shown byte for byte, also when it is empty or as large as allowed.
async fn progress_may_be_any_bytes(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(kept("job")).await;
    let held = actor.take_one().await;
    let largest: &'static [u8] = vec![7; MAX_PROGRESS].leak();
    let all: [&'static [u8]; 8] =
        [b"a", b"", b"\0", b"u", b"dx", b"a\r\nb", b"\xf5RQ\x01\xff", largest];
    for progress in all {
        actor.shows(&held, progress).await;
    }
}

case!(a_progress_that_is_too_large_is_refused: R29 R21 => Results);
/// A progress that is too large is refused before anything is changed.
async fn a_progress_that_is_too_large_is_refused(store: &Store) {
    let actor = store.actor("worker").await;
    let job = actor.store_one(kept("job")).await;
    let held = actor.take_one().await;
    actor.shows(&held, b"half").await;
    let too_large = vec![7; MAX_PROGRESS + 1];

    let refused = actor.results().report_progress(&held.receipt, &too_large).await;

    let error = refused.expect_err("it is refused");
    assert!(matches!(error, Error::Invalid { .. }), "{error:?}");
    assert_eq!(error.effect(), Effect::No, "R21: the effect of {error:?}");
    assert_eq!(error.at().operation, Operation::ReportProgress, "{error:?}");
    actor.assert_told(&job, reported("half")).await;
    actor.finish(&held).await;
}
