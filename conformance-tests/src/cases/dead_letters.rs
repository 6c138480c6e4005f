//! Dead letters are kept, listed, redriven and purged (R3, R16, R23).

use std::time::Duration;

use relq_core::{
    NewJob,
    capabilities::Capability,
    environment::Timestamp,
    operator::{JobState, Redriven, Selection, StateDetail},
};

use crate::{
    cases::{case, times::now},
    harness::{
        actor::Actor,
        checks::{
            attempts, dead, delivers, drain, expect_exactly, id, listed, numbered,
            payloads, reason, retry_after, retry_now, settle_all,
        },
        store::Store,
        times::{LIFE, PAST_LIFE},
    },
};

async fn bury(actor: &Actor, count: usize) -> Vec<relq_core::JobId> {
    let jobs = actor.store(numbered(count)).await;
    let held = actor.take(u32::try_from(count).expect("a small number")).await;
    settle_all(actor, &held, &dead("it broke")).await;
    jobs
}

async fn redrive(actor: &Actor, which: &Selection) -> Redriven {
    actor.redrive(which).await.expect("the redrive is answered")
}

async fn purge(actor: &Actor, which: &Selection) -> u64 {
    actor.purge_dead(which).await.expect("the purge is answered")
}

fn moved(moved: u64) -> Redriven {
    Redriven { moved, duplicates: 0 }
}

/// Asserts that the only dead letter was buried at `from` or later, and purges it.
async fn assert_buried_since(store: &Store, actor: &Actor, from: Timestamp) {
    const ROUNDING: Duration = Duration::from_millis(1);
    let letter = actor.the_dead_one().await;
    let StateDetail::Dead { since, reason } = &letter.detail else {
        panic!("R23: not dead: {:?}", letter.detail);
    };
    let to = now(store);
    assert!(
        since.plus(ROUNDING) >= from && *since <= to.plus(ROUNDING),
        "R23: it was buried between {from:?} and {to:?}, and says {since:?}: {reason}"
    );
    purge(actor, &Selection::All).await;
}

case!(a_dead_letter_says_when_it_was_buried: R23);
/// A dead letter says when it was buried, by the store's clock, whatever has buried it: its
/// worker, the failure or the lost lease of its last attempt, or its expiry. It may have been
/// pushed and claimed long before.
async fn a_dead_letter_says_when_it_was_buried(store: &Store) {
    let actor = store.actor("worker").await;
    let once = || NewJob::new("job").max_attempts(attempts(1));
    for settlement in [dead("no"), retry_now()] {
        actor.store_one(once()).await;
        let held = actor.take_one().await;
        store.advance(PAST_LIFE).await;
        let from = now(store);
        actor.say(&held, settlement).await;
        assert_buried_since(store, &actor, from).await;
    }

    let lost = store.actor("lost").await;
    lost.store_one(once()).await;
    lost.take_one_briefly().await;
    store.advance(PAST_LIFE).await;
    let from = now(store);
    actor.recover_all().await;
    assert_buried_since(store, &actor, from).await;

    if actor.capabilities().supports(Capability::Expiry) {
        actor.store_one(once().expires_in(LIFE)).await;
        store.advance(PAST_LIFE).await;
        let from = now(store);
        actor.recover_all().await;
        assert_eq!(actor.take(1).await, []);
        assert_buried_since(store, &actor, from).await;
    }
}

case!(a_dead_letter_says_why: R23);
/// A dead letter has the error that the worker reported, unchanged.
async fn a_dead_letter_says_why(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;
    let said = "line 1\nline 2: \"é\" \u{1f600} \\ {} *";
    actor.say(&held, dead(said)).await;

    let letter = actor.the_dead_one().await;

    assert_eq!(letter.last_error.as_deref(), Some(said));
    assert!(!reason(&letter).is_empty());
    assert_eq!((letter.id.as_ref(), letter.attempt), (Some(held.job()), 1));
}

case!(a_long_error_does_no_harm: R23);
/// A worker may report an error of any length. The dead letter keeps the beginning or
/// the end of a long one.
async fn a_long_error_does_no_harm(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;
    actor.say(&held, retry_after(Duration::ZERO)).await;
    actor.recover_all().await;
    let held = actor.take_one().await;
    actor.say(&held, dead(&"é".repeat(200_000))).await;

    let kept = actor.the_dead_one().await.last_error.expect("an error is kept");

    assert!(kept.contains("ééé"), "{} bytes are kept", kept.len());
}

case!(an_empty_error_does_no_harm: R23);
/// An empty error is kept as an error.
async fn an_empty_error_does_no_harm(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;

    actor.say(&held, dead("")).await;

    assert_eq!(actor.the_dead_one().await.payload, "job");
}

case!(a_dead_letter_stays: R3);
/// A dead letter stays until an operator redrives or purges it.
async fn a_dead_letter_stays(store: &Store) {
    let actor = store.actor("worker").await;
    bury(&actor, 3).await;

    actor.recover_all().await;
    actor.release_worker(actor.worker()).await.expect("answered");

    assert_eq!(actor.take(10).await, []);
    assert_eq!(actor.figures().await.dead, 3);
}

case!(a_redriven_job_begins_anew: R23);
/// A redriven job is ready again, and its attempts start from zero.
async fn a_redriven_job_begins_anew(store: &Store) {
    let actor = store.actor("worker").await;
    for level in actor.class().levels() {
        let job = actor.store_one(NewJob::new("job").priority(level)).await;
        let held = actor.take_one().await;
        actor.say(&held, dead("it broke")).await;

        assert_eq!(redrive(&actor, &Selection::All).await, moved(1));

        let held = actor.take_one().await;
        assert_eq!((held.job(), held.attempt()), (&job, 1));
        actor.finish(&held).await;
        assert_eq!(actor.figures().await.dead, 0);
    }
}

case!(a_redriven_job_has_no_last_error: R11 R23);
/// A job that is redriven begins anew, without the error that buried it.
async fn a_redriven_job_has_no_last_error(store: &Store) {
    let actor = store.actor("worker").await;
    bury(&actor, 1).await;

    redrive(&actor, &Selection::All).await;

    let ready = actor.list(JobState::Ready, 10).await;
    let errors: Vec<_> = ready.into_iter().map(|view| view.last_error).collect();
    assert_eq!(errors, [None], "R11: the last error of a redriven job");
}

case!(a_redrive_takes_those_named: R23);
/// A redrive takes the named dead letters and no others.
async fn a_redrive_takes_those_named(store: &Store) {
    let actor = store.actor("worker").await;
    let jobs = bury(&actor, 5).await;
    let named = vec![jobs[3].clone(), jobs[1].clone()];

    assert_eq!(redrive(&actor, &Selection::Only(named)).await, moved(2));

    let (one, three) = (numbered(5).remove(1), numbered(5).remove(3));
    expect_exactly(payloads(&drain(&actor).await), [one, three]);
    assert_eq!(actor.figures().await.dead, 3);
}

case!(a_redrive_passes_unknown_ids_over: R23);
/// A redrive ignores unknown ids, ids of jobs that are not dead, and repeated ids.
async fn a_redrive_passes_unknown_ids_over(store: &Store) {
    let actor = store.actor("worker").await;
    let jobs = bury(&actor, 1).await;
    let alive = actor.store_one("alive").await;
    let named =
        vec![id("unknown"), jobs[0].clone(), alive, jobs[0].clone(), id("*"), id("0")];

    assert_eq!(redrive(&actor, &Selection::Only(named)).await, moved(1));

    expect_exactly(payloads(&drain(&actor).await), ["job 0".into(), "alive".into()]);
}

case!(naming_none_means_none: R23);
/// A redrive or purge with an empty list of ids affects no dead letter. It does not
/// mean all dead letters.
async fn naming_none_means_none(store: &Store) {
    let actor = store.actor("worker").await;
    bury(&actor, 2).await;
    let none = Selection::Only(vec![]);

    assert_eq!(redrive(&actor, &none).await, moved(0));
    assert_eq!(purge(&actor, &none).await, 0);

    assert_eq!(actor.figures().await.dead, 2);
}

case!(thousands_are_redriven: R23);
/// A redrive of all dead letters moves all of them, even if there are more than one
/// step of the backend can handle.
async fn thousands_are_redriven(store: &Store) {
    let actor = store.actor("worker").await;
    for _ in 0..17 {
        bury(&actor, 500).await;
    }

    assert_eq!(redrive(&actor, &Selection::All).await, moved(8_500));

    assert_eq!(drain(&actor).await.len(), 8_500);
    assert_eq!(actor.figures().await.dead, 0);
}

case!(thousands_are_listed: R23);
/// Each dead letter is listed once, even if there are more than one step can read.
async fn thousands_are_listed(store: &Store) {
    let actor = store.actor("worker").await;
    let mut jobs = Vec::new();
    for _ in 0..17 {
        jobs.extend(bury(&actor, 500).await);
    }

    let seen = actor.list(JobState::Dead, 10_000).await;

    expect_exactly(seen.into_iter().filter_map(|one| one.id), jobs);
}

case!(a_purge_of_the_dead_spares_the_living: R23);
/// A purge of dead letters removes them and nothing else.
async fn a_purge_of_the_dead_spares_the_living(store: &Store) {
    let actor = store.actor("worker").await;
    bury(&actor, 4).await;
    actor.store(["ready", "leased"]).await;
    actor.take_one().await;

    assert_eq!(purge(&actor, &Selection::All).await, 4);

    let stats = actor.figures().await;
    assert_eq!((stats.dead, stats.ready, stats.leased), (0, 1, 1));
}

case!(a_purge_takes_those_named: R23);
/// A purge of dead letters with a list of ids removes only those dead letters.
async fn a_purge_takes_those_named(store: &Store) {
    let actor = store.actor("worker").await;
    let jobs = bury(&actor, 3).await;
    let alive = actor.store_one("alive").await;
    let named = vec![jobs[1].clone(), id("unknown"), alive, jobs[1].clone()];

    assert_eq!(purge(&actor, &Selection::Only(named)).await, 1);

    let mut left = numbered(3);
    left.remove(1);
    expect_exactly(listed(&actor.list(JobState::Dead, 10).await), left);
    delivers(&actor, ["alive"]).await;
}

case!(a_second_purge_finds_nothing: R23);
/// A second purge of dead letters removes nothing and returns zero.
async fn a_second_purge_finds_nothing(store: &Store) {
    let actor = store.actor("worker").await;
    bury(&actor, 3).await;
    purge(&actor, &Selection::All).await;

    assert_eq!(purge(&actor, &Selection::All).await, 0);
    assert_eq!(redrive(&actor, &Selection::All).await, moved(0));
}

case!(operators_at_once_redrive_once: R12 R23);
/// Several operators redrive at the same time, and each dead letter is moved once.
async fn operators_at_once_redrive_once(store: &Store) {
    let actor = store.actor("worker").await;
    bury(&actor, 200).await;
    let mut redrives = Vec::new();
    for index in 0..4 {
        let other = store.actor(&format!("o{index}")).await;
        redrives
            .push(tokio::spawn(async move { redrive(&other, &Selection::All).await }));
    }

    let mut sum = 0;
    for one in redrives {
        sum += one.await.expect("the redrive ends").moved;
    }

    assert_eq!(sum, 200);
    expect_exactly(payloads(&drain(&actor).await), numbered(200));
}

case!(a_dead_letter_keeps_the_job: R23 => ClientIds);
/// A dead letter keeps the options of its job.
async fn a_dead_letter_keeps_the_job(store: &Store) {
    let actor = store.actor("worker").await;
    let job = NewJob::new(b"\0\xff".to_vec()).header("trace", "1").id(id("mine"));
    actor.store_one(job.clone()).await;
    let held = actor.take_one().await;
    actor.say(&held, dead("no")).await;

    let letter = actor.the_dead_one().await;

    assert_eq!((letter.payload, letter.headers), (job.payload, job.headers));
    assert_eq!(letter.id, Some(id("mine")));
}
