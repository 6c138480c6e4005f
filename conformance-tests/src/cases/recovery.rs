//! Jobs survive dead workers, and a worker can be released cleanly (R9, R11, R12, R24).

use std::{num::NonZeroU32, time::Duration};

use relq_core::{Disposition, NewJob, outcome::Settled};

use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{
            attempts, delivers, drain, expect_exactly, numbered, payloads,
            plain_and_full, reason, retry_after, retry_now,
        },
        store::Store,
        times::{BRIEF, HELD, LIFE, PAST_LIFE},
    },
};

fn page(most: u32) -> NonZeroU32 {
    NonZeroU32::new(most).expect("a page holds one at least")
}

async fn release_worker(actor: &Actor) -> u64 {
    actor.release_worker(actor.worker()).await.expect("the release is answered").jobs
}

case!(a_dead_workers_job_comes_back: R9, real_time);
/// Another worker gets the job of a dead worker.
async fn a_dead_workers_job_comes_back(store: &Store) {
    let (dying, survivor) = (store.actor("w1").await, store.actor("w2").await);
    let job = survivor.store_one("job").await;
    dying.take_one_briefly().await;
    drop(dying);
    store.outlast_brief_leases().await;

    assert_eq!(survivor.recover_all().await.requeued, 1);

    let again = survivor.take_one().await;
    assert_eq!(again.job(), &job);
    assert_eq!((again.attempt(), again.is_redelivery()), (2, true));
}

case!(recovery_spares_the_living: R6 R9);
/// Recovery leaves live leases alone.
async fn recovery_spares_the_living(store: &Store) {
    let (living, dying) = (store.actor("w1").await, store.actor("w2").await);
    living.store(numbered(4)).await;
    let held = living.take(2).await;
    dying.take_briefly(2).await;
    store.outlast_brief_leases().await;

    assert_eq!(dying.recover_all().await.requeued, 2);

    living.finish(&held[0]).await;
    living.finish(&held[1]).await;
}

case!(recovery_pages_and_says_more: R9);
/// One recovery handles one page of jobs, and its result says whether more are left.
async fn recovery_pages_and_says_more(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(25)).await;
    actor.take_briefly(25).await;
    store.outlast_brief_leases().await;

    let mut pages = Vec::new();
    for _ in 0..3 {
        let one = actor.recover(page(10)).await.expect("answered");
        pages.push((one.requeued, one.more));
    }

    assert_eq!(pages, [(10, true), (10, true), (5, false)]);
    assert_eq!(payloads(&drain(&actor).await).len(), 25);
}

case!(recovery_of_thousands_loses_none: R9);
/// Recovery makes all jobs with expired leases ready, even if there are more than one
/// step of the backend can handle.
async fn recovery_of_thousands_loses_none(store: &Store) {
    let actor = store.actor("worker").await;
    let many = 8_500;
    for batch in numbered(many).chunks(500) {
        actor.store(batch.to_vec()).await;
    }
    for _ in 0..many / 500 {
        assert_eq!(actor.take_briefly(500).await.len(), 500);
    }
    store.outlast_brief_leases().await;

    let recovered = actor.recover(page(20_000)).await.expect("answered");
    let rest = actor.recover_all().await;

    assert_eq!((recovered.requeued + rest.requeued) as usize, many);
    delivers(&actor, numbered(many)).await;
}

case!(recovery_says_when_the_next_lease_ends: R9);
/// The result of a recovery says how long it takes until the next lease expires.
async fn recovery_says_when_the_next_lease_ends(store: &Store) {
    let actor = store.actor("worker").await;
    assert_eq!(actor.recover_all().await.next_in, None);
    actor.store_one("job").await;
    let held = actor.take_one().await;

    let next_in = actor.recover_all().await.next_in.expect("a lease runs");

    assert!(next_in <= HELD && next_in > HELD / 2, "{next_in:?}");
    actor.finish(&held).await;
    let idle = actor.recover_all().await.next_in;
    // A backend whose workers have one heartbeat for all leases may still report the
    // end of the worker's own lease, although the worker holds no job any more.
    assert!(idle.is_none() || actor.class().shares_heartbeat(), "{idle:?}");
}

case!(recovery_says_when_the_next_job_is_due: R9 R14);
/// The result of a recovery says how long it takes until the next scheduled job is due. A
/// backend without delays has such jobs, too: those that are retried later.
async fn recovery_says_when_the_next_job_is_due(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;
    actor.say(&held, retry_after(HELD)).await;

    let next_in = actor.recover_all().await.next_in.expect("a delay runs");

    assert!(next_in <= HELD && next_in > HELD / 2, "{next_in:?}");
}

case!(recovery_says_what_comes_first: R9 R14 => Delay);
/// If both a lease ends and a delayed job is due, the result of a recovery says how long
/// it takes until the first of the two.
async fn recovery_says_what_comes_first(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;
    actor.store_one(NewJob::new("tomorrow").delay(100 * HELD)).await;

    let until_the_lease_ends = actor.recover_all().await.next_in.expect("a lease runs");

    actor.finish(&held).await;
    actor.store_one(NewJob::new("soon").delay(HELD / 2)).await;
    actor.store_one("job").await;
    actor.take_one().await;
    let until_it_is_due = actor.recover_all().await.next_in.expect("a delay runs");
    let ranges = [(until_the_lease_ends, HELD), (until_it_is_due, HELD / 2)];
    for (next_in, most) in ranges {
        assert!(next_in <= most && next_in > most / 2, "{next_in:?} of {most:?}");
    }
}

case!(reapers_at_once_requeue_once: R12, real_time);
/// Several reapers run at the same time, and each expired job becomes ready once.
async fn reapers_at_once_requeue_once(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(200)).await;
    actor.take_briefly(200).await;
    store.outlast_brief_leases().await;
    let mut reapers = Vec::new();
    for index in 0..8 {
        let reaper = store.actor(&format!("r{index}")).await;
        reapers.push(tokio::spawn(async move { reaper.recover_all().await }));
    }

    let mut requeued = 0;
    for reaper in reapers {
        requeued += reaper.await.expect("the reaper ends").requeued;
    }

    assert_eq!(requeued, 200);
    let again = drain(&actor).await;
    assert!(again.iter().all(|one| one.attempt() == 2), "each job was requeued once");
    expect_exactly(payloads(&again), numbered(200));
}

case!(an_idle_reaper_changes_nothing: R12);
/// A recovery with nothing to recover changes nothing, however often it runs.
async fn an_idle_reaper_changes_nothing(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(3)).await;
    let held = actor.take_one().await;

    for _ in 0..3 {
        let recovered = actor.recover_all().await;
        assert_eq!(
            (recovered.requeued, recovered.buried, recovered.promoted),
            (0, 0, 0)
        );
    }

    actor.finish(&held).await;
    assert_eq!(drain(&actor).await.len(), 2);
}

case!(attempts_are_counted: R11);
/// A delivery counts as an attempt however it ends, unless the job is given back.
async fn attempts_are_counted(store: &Store) {
    let actor = store.actor("worker").await;
    for job in plain_and_full(&actor) {
        actor.store_one(job.clone()).await;
        let first = actor.take_one_briefly().await;
        store.outlast_brief_leases().await;
        let recovered = actor.recover_all().await;
        assert_eq!(recovered.requeued, 1, "R9: the lost lease of {:?}", job.payload);
        let second = actor.take_one().await;
        actor.say(&second, retry_now()).await;
        actor.recover_all().await;
        let third = actor.take_one().await;
        actor.say(&third, Disposition::GiveBack).await;
        let fourth = actor.take_one().await;
        release_worker(&actor).await;

        let fifth = actor.take_one().await;

        actor.finish(&fifth).await;
        let counted = [first, second, third, fourth, fifth].map(|one| one.attempt());
        assert_eq!(counted, [1, 2, 3, 3, 3], "R11: the attempts of {:?}", job.payload);
    }
}

case!(poison_is_buried: R11);
/// A job whose worker dies at each attempt is buried after the last attempt.
async fn poison_is_buried(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(NewJob::new("poison").max_attempts(attempts(3))).await;
    let mut seen = Vec::new();
    for _ in 0..3 {
        let held = actor.take_one_briefly().await;
        seen.push((held.attempt(), held.is_last_attempt()));
        store.outlast_brief_leases().await;
        actor.recover_all().await;
    }

    assert_eq!(seen, [(1, false), (2, false), (3, true)]);
    assert_eq!(actor.take(1).await, []);
    let buried = actor.the_dead_one().await;
    assert_eq!((buried.attempt, buried.max_attempts), (3, attempts(3)));
    assert!(reason(&buried).contains("attempt"), "{}", reason(&buried));
}

case!(recovery_counts_burials: R11);
/// The result of a recovery counts buried jobs and jobs that became ready separately.
async fn recovery_counts_burials(store: &Store) {
    let actor = store.actor("worker").await;
    let last = NewJob::new("last").max_attempts(attempts(1));
    actor.store([last, NewJob::new("again")]).await;
    actor.take_briefly(2).await;
    store.outlast_brief_leases().await;

    let recovered = actor.recover_all().await;

    assert_eq!((recovered.requeued, recovered.buried), (1, 1));
}

case!(the_last_retry_buries: R11);
/// A retry on the last attempt buries the job, with its error.
async fn the_last_retry_buries(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(NewJob::new("job").max_attempts(attempts(2))).await;
    for _ in 0..2 {
        let held = actor.take_one().await;
        actor.say(&held, retry_now()).await;
        actor.recover_all().await;
    }

    let buried = actor.the_dead_one().await;

    assert_eq!(buried.last_error.as_deref(), Some("it failed"));
    assert!(reason(&buried).contains("attempt"), "{}", reason(&buried));
    assert_eq!(actor.figures().await.unfinished(), 0);
}

case!(the_last_attempt_can_be_given_back: R11 R24);
/// Giving a job back on its last attempt does not bury it.
async fn the_last_attempt_can_be_given_back(store: &Store) {
    let actor = store.actor("worker").await;
    for job in plain_and_full(&actor) {
        actor.store_one(job.clone().max_attempts(attempts(1))).await;
        for _ in 0..3 {
            let held = actor.take_one().await;
            actor.say(&held, Disposition::GiveBack).await;
            actor.take_one().await;
            assert_eq!(release_worker(&actor).await, 1);
        }

        let held = actor.take_one().await;

        let attempt = (held.attempt(), held.is_last_attempt());
        assert_eq!(attempt, (1, true), "R24: the attempt of {:?}", job.payload);
        actor.finish(&held).await;
    }
}

case!(attempts_belong_to_the_job: R11);
/// Each of several jobs that one worker holds has its own count of attempts.
async fn attempts_belong_to_the_job(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(["a", "b"]).await;
    let held = actor.take(2).await;
    actor.say(&held[0], retry_now()).await;
    actor.say(&held[1], Disposition::GiveBack).await;
    actor.recover_all().await;

    let again = actor.take(2).await;

    let counted = again.iter().map(|one| (one.payload.clone(), one.attempt()));
    let [failed, spared] = [0, 1].map(|at| held[at].payload.clone());
    expect_exactly(counted, [(failed, 2), (spared, 1)]);
}

case!(the_shortest_lease_ends: R9);
/// The shortest lease that is allowed expires like any other.
async fn the_shortest_lease_ends(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let ask = actor.ask_by(1, Duration::from_millis(1));
    actor.claim(&ask).await.expect("answered");
    store.advance(BRIEF).await;

    assert_eq!(actor.recover_all().await.requeued, 1);
}

case!(a_reaper_forgets_what_it_saw: R8 R12);
/// A recovery sees a job's lease, and the job is then finished. The next recovery,
/// after the end of that lease, does not bring the job back.
async fn a_reaper_forgets_what_it_saw(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.claim(&actor.ask_by(1, LIFE)).await.expect("answered").remove(0);
    actor.recover_all().await;
    actor.finish(&held).await;
    store.advance(PAST_LIFE).await;

    assert_eq!(actor.recover_all().await.requeued, 0);

    assert_eq!(actor.take(1).await, []);
}

case!(a_late_ack_stops_no_recovery: R7 R9);
/// A late ack of a job is refused. When the job's next holder dies too, the job is
/// still recovered.
async fn a_late_ack_stops_no_recovery(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let stale = actor.take_one_briefly().await;
    store.outlast_brief_leases().await;
    actor.recover_all().await;
    actor.take_one_briefly().await;
    assert_eq!(actor.say(&stale, Disposition::Done).await, Settled::LeaseLost);
    store.outlast_brief_leases().await;

    assert_eq!(actor.recover_all().await.requeued, 1);

    delivers(&actor, ["job"]).await;
}
