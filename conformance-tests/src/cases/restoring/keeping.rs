//! A restored job keeps its options, attempts, errors and times (R34).

use relq_core::{
    Disposition, NewJob,
    environment::Timestamp,
    limits::MAX_TIMESTAMP,
    operator::{JobState, JobView, Selection, StateDetail},
    outcome::{DuplicateOf, Pushed},
    results::JobResult,
};

use super::fixture::{was_dead, was_ready, was_scheduled, yesterday};
use crate::{
    cases::{case, times::now},
    harness::{
        checks::{
            attempts, dead, delivers, duplicate, id, key, payloads, reason, retry_now,
        },
        restorer::but,
        store::Store,
        times::{BRIEF, HELD, LIFE, PAST_BRIEF, PAST_LIFE},
    },
};

case!(attempts_count_on: R34 R11 => Restore);
/// The next delivery of a restored job has the next number, and the last one buries it.
async fn attempts_count_on(store: &Store) {
    let actor = store.actor("worker").await;
    let job = but(was_ready("job"), |it| {
        it.attempt = 2;
        it.max_attempts = attempts(4);
    });
    actor.restore_all(&[job]).await;

    let third = actor.take_one().await;
    assert_eq!(third.attempt(), 3, "R34: the third attempt");
    actor.say(&third, retry_now()).await;
    actor.recover_all().await;
    let last = actor.take_one().await;
    assert_eq!(last.attempt(), 4, "R34: the fourth attempt");
    actor.say(&last, retry_now()).await;

    assert_eq!(actor.the_dead_one().await.attempt, 4, "R11: it was the last one");
}

case!(attempts_of_a_scheduled_job_count_on: R34 R11 => Restore Delay);
/// The same holds for a job that was restored as a scheduled one.
async fn attempts_of_a_scheduled_job_count_on(store: &Store) {
    let actor = store.actor("worker").await;
    let job = but(was_scheduled("job", yesterday(store)), |it| {
        it.attempt = 1;
        it.max_attempts = attempts(2);
    });
    actor.restore_all(&[job]).await;
    actor.recover_all().await;

    let last = actor.take_one().await;
    assert_eq!(last.attempt(), 2, "R34: the second attempt");
    actor.say(&last, retry_now()).await;

    assert_eq!(actor.figures().await.dead, 1, "R11: it was the last one");
}

case!(lost_leases_count_on: R34 R11 => Restore);
/// A lease of a restored job that expires uses up its last attempt, and is added to its
/// last error.
async fn lost_leases_count_on(store: &Store) {
    let actor = store.actor("worker").await;
    let mut job = but(was_ready("job"), |it| {
        it.attempt = 1;
        it.max_attempts = attempts(2);
    });
    job.last_error = Some("attempt 1: lease ended, no heartbeat".to_owned());
    actor.restore_all(&[job]).await;

    actor.take_one_briefly().await;
    store.outlast_brief_leases().await;
    actor.recover_all().await;

    let found = actor.the_dead_one().await;
    let error = found.last_error.unwrap_or_default();
    for number in [1, 2] {
        let wanted = format!("attempt {number}: lease ended, no heartbeat");
        assert!(error.contains(&wanted), "R34: {error}");
    }
}

case!(the_last_error_is_shown_until_another: R34 => Restore);
/// The last error of a restored job is that from before until an attempt fails.
async fn the_last_error_is_shown_until_another(store: &Store) {
    let actor = store.actor("worker").await;
    let mut job = but(was_ready("job"), |it| it.attempt = 1);
    job.last_error = Some("it failed before".to_owned());
    actor.restore_all(std::slice::from_ref(&job)).await;
    actor.lists(JobState::Ready, &[job]).await;

    let held = actor.take_one().await;
    let leased = actor.list(JobState::Leased, 10).await.remove(0);
    assert_eq!(leased.last_error.as_deref(), Some("it failed before"), "R34");
    actor.say(&held, dead("it failed again")).await;

    let found = actor.the_dead_one().await;
    assert_eq!(found.last_error.as_deref(), Some("it failed again"), "R11");
}

case!(the_time_of_the_push_is_kept: R34 R27 => Restore);
/// A delivery says when the job was pushed to the other queue. A job without that time
/// has none afterwards.
async fn the_time_of_the_push_is_kept(store: &Store) {
    let actor = store.actor("worker").await;
    let pushed_at = Some(yesterday(store));
    let job = but(was_ready("job"), |it| it.enqueued_at = pushed_at);

    actor.restore_all(&[job, was_ready("bare")]).await;

    let taken = actor.take(2).await;
    let times: Vec<_> = taken.iter().map(|one| one.enqueued_at).collect();
    assert_eq!(times, [pushed_at, None], "R34");
}

case!(the_key_of_a_restored_job_is_held: R34 R16 => Restore Unique);
/// A ready job holds its unique key until it is done. A job whose key is held is not
/// restored.
async fn the_key_of_a_restored_job_is_held(store: &Store) {
    let actor = store.actor("worker").await;
    let keyed = |name| but(was_ready(name), |it| it.unique = Some(key("k")));
    let held = || duplicate(&id("job"), DuplicateOf::UniqueKey);

    let stored = actor.restore(&[keyed("job"), keyed("other")]).await;

    assert_eq!(stored, [Pushed::Stored(id("job")), held()], "R34");
    assert_eq!(actor.offer(NewJob::new("new").unique(key("k"))).await, held(), "R16");
    assert_eq!(actor.restore(&[keyed("third")]).await, [held()], "R34");
    actor.finish(&actor.take_one().await).await;
    actor.restore_all(&[keyed("third")]).await;
}

case!(a_restored_job_takes_the_key_of_an_expired_one: R34 R16 R17 => Restore Unique Expiry);
/// A job is restored although another one has its unique key, if that one has expired.
async fn a_restored_job_takes_the_key_of_an_expired_one(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(NewJob::new("holder").unique(key("k")).expires_in(BRIEF)).await;
    store.advance(PAST_BRIEF).await;
    let job = but(was_ready("job"), |it| it.unique = Some(key("k")));

    let stored = actor.restore(&[job]).await;

    assert_eq!(stored, [Pushed::Stored(id("job"))], "R34: the key is free");
    let again = actor.offer(NewJob::new("new").unique(key("k"))).await;
    assert_eq!(again, duplicate(&id("job"), DuplicateOf::UniqueKey), "R16");
    delivers(&actor, ["job"]).await;
}

case!(the_key_of_a_dead_job_is_free: R34 R16 => Restore Unique);
/// A dead job is restored although another job holds its unique key. A redrive binds the
/// key, if it is free.
async fn the_key_of_a_dead_job_is_free(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(NewJob::new("holder").unique(key("k"))).await;
    let job = but(was_dead("job", yesterday(store)), |it| it.unique = Some(key("k")));
    let all = Selection::All;

    actor.restore_all(&[job]).await;

    let redriven = actor.redrive(&all).await.expect("answered");
    assert_eq!((redriven.moved, redriven.duplicates), (0, 1), "R16");
    delivers(&actor, ["holder"]).await;
    let redriven = actor.redrive(&all).await.expect("answered");
    assert_eq!((redriven.moved, redriven.duplicates), (1, 0), "R16");
    let held = duplicate(&id("job"), DuplicateOf::UniqueKey);
    assert_eq!(actor.offer(NewJob::new("new").unique(key("k"))).await, held, "R16");
}

case!(the_expiry_is_kept: R34 R17 => Restore Expiry);
/// A restored job expires when it would have expired. One that has expired is buried
/// instead of delivered.
async fn the_expiry_is_kept(store: &Store) {
    let actor = store.actor("worker").await;
    let until = |name, at| but(was_ready(name), |it| it.expires_at = Some(at));
    let soon = now(store).plus(LIFE);
    let first = Timestamp::from_unix_ms(0);

    for passed in [first, yesterday(store)] {
        actor.restore_all(&[until("late", passed), until("soon", soon)]).await;

        assert_eq!(payloads(&actor.take(2).await), ["soon"], "R17: in time");
        actor.recover_all().await;
        let found = actor.the_dead_one().await;
        assert_eq!(found.payload, "late", "R17");
        assert!(reason(&found).contains("expired"), "R17: {}", reason(&found));
        actor.purge().await.expect("purged");
    }
    actor.restore_all(&[until("third", soon)]).await;
    store.advance(PAST_LIFE).await;
    assert_eq!(actor.take(1).await, [], "R17: it has expired");
}

case!(an_expired_holder_frees_its_key: R34 R16 R17 => Restore Unique Expiry);
/// A restored job that has expired holds no unique key any more. One that expires at the last
/// possible moment holds its key.
async fn an_expired_holder_frees_its_key(store: &Store) {
    let actor = store.actor("worker").await;
    let until = |name, at| {
        but(was_ready(name), |it| {
            it.unique = Some(key(name));
            it.expires_at = Some(at);
        })
    };
    actor
        .restore_all(&[until("late", yesterday(store)), until("last", MAX_TIMESTAMP)])
        .await;

    actor.store_one(NewJob::new("new").unique(key("late"))).await;
    let held = actor.offer(NewJob::new("new").unique(key("last"))).await;

    assert_eq!(held, duplicate(&id("last"), DuplicateOf::UniqueKey), "R16: it is held");
    delivers(&actor, ["last", "new"]).await;
}

case!(a_lease_of_its_own_is_kept: R34 => Restore JobLease);
/// A restored job is leased for as long as it wants.
async fn a_lease_of_its_own_is_kept(store: &Store) {
    let actor = store.actor("worker").await;
    let job = but(was_ready("job"), |it| it.lease = Some(BRIEF));
    actor.restore_all(&[job]).await;

    let held = actor.take_one().await;

    assert_eq!(held.lease, BRIEF, "R34");
    store.advance(PAST_BRIEF).await;
    assert_eq!(actor.recover_all().await.requeued, 1, "R34: its own lease");
}

case!(results_begin_anew: R34 R29 => Restore Results);
/// The record of a restored job that keeps its result begins anew: the job is unfinished,
/// or dead with its reason. After the job has run, it is done.
async fn results_begin_anew(store: &Store) {
    let actor = store.actor("worker").await;
    let kept = |job: JobView| but(job, |it| it.keep_result = Some(HELD));
    let told = || async {
        let results = actor.result_queue().expect("it keeps results");
        let found = results.read_results(&[id("ready"), id("dead")]).await;
        found.expect("answered")
    };
    let unfinished = || Some(JobResult::Unfinished { progress: None });
    let died = Some(JobResult::Dead { error: "dead was too hard".to_owned() });

    let jobs = [kept(was_ready("ready")), kept(was_dead("dead", yesterday(store)))];
    actor.restore_all(&jobs).await;
    assert_eq!(told().await, [unfinished(), died.clone()], "R34");

    let done = Disposition::DoneWith { result: "42".into() };
    actor.say(&actor.take_one().await, done).await;
    let result = Some(JobResult::Done { result: "42".into() });
    assert_eq!(told().await, [result.clone(), died], "R29");

    actor.redrive(&Selection::All).await.expect("answered");
    assert_eq!(told().await, [result, unfinished()], "R29");
}

case!(a_restored_job_can_be_followed: R34 R30 => Restore Followers);
/// A job can follow a restored one, also while that is dead.
async fn a_restored_job_can_be_followed(store: &Store) {
    let actor = store.actor("worker").await;
    let jobs = [was_ready("ready"), was_dead("dead", yesterday(store))];
    actor.restore_all(&jobs).await;
    actor.store_one(NewJob::new("second").after(id("ready"))).await;
    actor.store_one(NewJob::new("third").after(id("dead"))).await;

    delivers(&actor, ["ready", "second"]).await;

    assert_eq!(actor.figures().await.scheduled, 1, "R30: the third is held");
    actor.redrive(&Selection::All).await.expect("answered");
    delivers(&actor, ["dead", "third"]).await;
}

case!(hostile_content_is_restored: R34 R2 => Restore);
/// Payloads, headers, ids, errors and reasons of any content come back unchanged.
async fn hostile_content_is_restored(store: &Store) {
    let actor = store.actor("worker").await;
    let payloads = [
        &b""[..],
        b"\0",
        b"\xf5RQ\x01",
        b"\xf5RQ\x01\0\x05\0\0\0\x19\x01xpayload",
        b"\xff\xfe\r\n*3\r\n",
        b"{}:*[a-z]",
    ];
    let ids = ["a:b*c{d}[e]? 'é\u{1f600}", "~2", "/", "%", "0", " "];
    let errors = ["r3 a", "\u{0}", "é: 7 \r\n", "5 x", "}}", " "];
    let jobs: Vec<_> = (0..payloads.len())
        .map(|at| {
            let mut job = was_dead(ids[at], yesterday(store));
            job.payload = payloads[at].into();
            job.last_error = Some(errors[at].to_owned());
            job.detail = StateDetail::Dead {
                reason: errors[payloads.len() - 1 - at].to_owned(),
                since: yesterday(store),
            };
            job.headers.set(errors[at], ids[at]);
            job
        })
        .collect();

    actor.restore_all(&jobs).await;

    actor.lists(JobState::Dead, &jobs).await;
    actor.redrive(&Selection::All).await.expect("answered");
    for job in jobs {
        let held = actor.take_one().await;
        assert_eq!(Some(held.job()), job.id.as_ref(), "R34");
        assert_eq!((&held.payload, &held.headers), (&job.payload, &job.headers), "R2");
        actor.finish(&held).await;
    }
}
