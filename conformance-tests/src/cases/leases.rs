//! Tests how long a lease lasts and what extends it (R6, R7, R9, R10).

use std::time::Duration;

use bytes::Bytes;
use relq_core::{ClaimRequest, Disposition, NewJob, outcome::Extended};

use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{
            assert_applied, attempts, expect_exactly, numbered, payloads, settle_all,
        },
        store::Store,
        times::{BRIEF, HELD, LIFE, PAST_LIFE},
    },
};

case!(late_extension_changes_nothing: R7);
/// A heartbeat for an old lease does not extend the new one.
async fn late_extension_changes_nothing(store: &Store) {
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

case!(an_extended_lease_holds: R6, real_time);
/// A heartbeat extends the lease of its job.
async fn an_extended_lease_holds(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let short = actor.ask_by(1, Duration::from_secs(4));
    let held = actor.claim(&short).await.expect("answered").remove(0);
    actor.keep(&held, HELD).await.expect("answered");
    store.advance(Duration::from_millis(4100)).await;

    assert_eq!(actor.recover_all().await.requeued, 0);

    actor.finish(&held).await;
}

case!(an_extension_is_no_longer_than_asked: R6);
/// An extension counts from the time of the call. Its result says when the lease ends,
/// and the lease ends then.
async fn an_extension_is_no_longer_than_asked(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;

    let heard = actor.keep(&held, BRIEF).await;

    assert!(matches!(heard, Ok(Extended::Until(_))), "{heard:?}");
    store.outlast_brief_leases().await;
    assert_eq!(actor.recover_all().await.requeued, 1);
}

case!(an_extension_answers_for_each: R7);
/// A heartbeat returns a result for each lease, including lost ones.
async fn an_extension_answers_for_each(store: &Store) {
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

case!(an_extension_keeps_what_it_names: R10);
/// A heartbeat extends only the leases that it names. The worker's other jobs are given
/// back at once, or return to the queue when their leases expire.
async fn an_extension_keeps_what_it_names(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(["named", "unnamed"]).await;
    let short = actor.ask_by(2, LIFE);
    let held = actor.claim(&short).await.expect("answered");
    let named = [held[0].receipt.clone()];
    actor.extend(actor.worker(), &named, HELD).await.expect("answered");
    store.advance(PAST_LIFE).await;

    actor.recover_all().await;

    assert_eq!(payloads(&actor.take(2).await), [held[1].payload.clone()]);
    actor.finish(&held[0]).await;
}

case!(a_jobs_own_lease_holds: R6 => JobLease);
/// If a job asks for a longer lease than its worker does, the job's lease applies.
async fn a_jobs_own_lease_holds(store: &Store) {
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

case!(a_jobs_own_lease_ends: R6 R9 => JobLease);
/// If a job asks for a shorter lease than its worker does, the job's lease applies. The
/// other jobs of the claim have the lease of the worker.
async fn a_jobs_own_lease_ends(store: &Store) {
    let actor = store.actor("worker").await;
    let own = NewJob::new("own").lease(BRIEF);
    actor.store([NewJob::new("before"), own, NewJob::new("after")]).await;
    let held = actor.take(3).await;
    let leases = held.iter().map(|one| (one.payload.clone(), one.lease));
    let expected = [("before", HELD), ("own", BRIEF), ("after", HELD)];
    expect_exactly(
        leases,
        expected.map(|(payload, lease)| (Bytes::from(payload), lease)),
    );
    store.outlast_brief_leases().await;

    let requeued = actor.recover_all().await.requeued;
    assert_eq!(requeued, 1, "R6: the jobs whose lease has ended");

    let again = actor.take_one().await;
    assert_eq!(again.payload, "own", "R6: the leases of the other jobs run");
    assert_eq!(again.lease, BRIEF, "the next lease is its own too");
}

case!(an_overdue_extension_keeps_or_loses: R6 R7);
/// An extension that comes after the lease has expired and before a recovery
/// either keeps the job or reports the lease as lost.
async fn an_overdue_extension_keeps_or_loses(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one_briefly().await;
    store.outlast_brief_leases().await;

    let heard = actor.keep(&held, HELD).await.expect("answered");

    let kept = u32::from(matches!(heard, Extended::Until(_)));
    assert_eq!(kept + actor.recover_all().await.requeued, 1, "{heard:?}");
    assert_eq!(actor.figures().await.unfinished(), 1);
}

case!(the_longest_worker_ids_hold: R6);
/// Two workers with ids of the maximum length cannot affect each other's leases.
async fn the_longest_worker_ids_hold(store: &Store) {
    let (a, b) = ("w".repeat(128), format!("{}x", "w".repeat(127)));
    let (first, second) = (store.actor(&a).await, store.actor(&b).await);
    first.store(numbered(2)).await;
    first.take_one().await;
    let held = second.take_one().await;

    assert_eq!(first.release_worker(first.worker()).await.expect("answered").jobs, 1);

    second.finish(&held).await;
}

/// The limit on the bytes that a claim of several jobs may return, counted over all
/// payloads.
const MOST: usize = ClaimRequest::MAX_BYTES;

/// Returns different payloads of many sizes. One is larger than a claim may return
/// together with others, and small ones come before and after it.
fn of_all_sizes(actor: &Actor) -> Vec<Bytes> {
    let most = actor.limits().max_payload;
    let sizes = [100; 6]
        .into_iter()
        .chain([MOST / 3; 4])
        .chain([MOST + 1])
        .chain([100; 30])
        .chain([MOST / 2 + 1; 2]);
    let payload = |(at, size): (usize, usize)| {
        let mut payload = vec![b'.'; size.min(most)];
        payload[..4].copy_from_slice(format!("{at:04}").as_bytes());
        Bytes::from(payload)
    };
    sizes.enumerate().map(payload).collect()
}

/// Claims until no job is left, with a high limit on the number of jobs. Asserts that
/// no claim returns more bytes than allowed, and that each job is delivered once.
async fn claims_are_bounded(actor: &Actor, sent: Vec<Bytes>) {
    let (mut taken, mut claims) = (Vec::new(), 0);
    for _ in 0..sent.len() + 1 {
        let claimed = actor.claim(&actor.ask(1000)).await.expect("answered");
        let bytes: usize = claimed.iter().map(|one| one.payload.len()).sum();
        assert!(
            bytes <= MOST || claimed.len() == 1,
            "one claim takes {} jobs of {bytes} bytes",
            claimed.len(),
        );
        assert!(claimed.iter().all(|one| one.attempt() == 1), "each is its first");
        claims += usize::from(!claimed.is_empty());
        taken.extend(claimed);
        if taken.len() >= sent.len() {
            break;
        }
    }
    // The payloads add up to 3.3 MiB. Each claim takes at least half of the limit, or
    // one large job.
    assert!(claims <= 12, "{claims} claims");
    expect_exactly(payloads(&taken).iter().map(head), sent.iter().map(head));
    for page in taken.chunks(10) {
        assert_applied(&settle_all(actor, page, &Disposition::Done).await);
    }
}

/// Returns the first four bytes of a payload, which no other payload has, and its
/// length. A failure message shows these in place of megabytes.
fn head(payload: &Bytes) -> (Bytes, usize) {
    (payload.slice(..4), payload.len())
}

case!(a_claim_is_bounded_by_bytes: R6);
/// A claim takes jobs of at most 1 MiB together, or a single larger job.
async fn a_claim_is_bounded_by_bytes(store: &Store) {
    let actor = store.actor("worker").await;
    let sent = of_all_sizes(&actor);
    for page in sent.chunks(10) {
        actor.store(page.to_vec()).await;
    }

    claims_are_bounded(&actor, sent).await;
}

case!(a_claim_of_returned_jobs_is_bounded_by_bytes: R6 R24);
/// The limit of 1 MiB also applies to a claim of jobs that their worker gave back.
async fn a_claim_of_returned_jobs_is_bounded_by_bytes(store: &Store) {
    let actor = store.actor("worker").await;
    let sent = of_all_sizes(&actor);
    for page in sent.chunks(10) {
        actor.store(page.to_vec()).await;
    }
    let leaver = store.actor("leaver").await;
    let mut held = 0;
    while held < sent.len() {
        held += leaver.take(1000).await.len();
    }
    leaver.release_worker(leaver.worker()).await.expect("the release is answered");

    claims_are_bounded(&actor, sent).await;
}

case!(a_claim_of_urgent_jobs_is_bounded_by_bytes: R6 R15 => Priority);
/// The limit of 1 MiB also applies to a claim of jobs of another priority.
async fn a_claim_of_urgent_jobs_is_bounded_by_bytes(store: &Store) {
    let actor = store.actor("worker").await;
    let sent = of_all_sizes(&actor);
    let urgent = actor.class().most_urgent();
    let job = |payload: &Bytes| NewJob::new(payload.clone()).priority(urgent);
    for page in sent.chunks(10) {
        actor.store(page.iter().map(job)).await;
    }

    claims_are_bounded(&actor, sent).await;
}

case!(a_job_beyond_the_bytes_is_not_counted: R6 R11);
/// A job that a claim left behind because of its size does not count as
/// delivered.
async fn a_job_beyond_the_bytes_is_not_counted(store: &Store) {
    let actor = store.actor("worker").await;
    let once = |fill| NewJob::new(vec![fill; MOST - 1000]).max_attempts(attempts(1));
    actor.store([once(b'a'), once(b'b')]).await;
    let first = actor.claim(&actor.ask_by(2, BRIEF)).await.expect("answered");
    store.outlast_brief_leases().await;

    let second = actor.claim(&actor.ask(2)).await.expect("answered");
    actor.recover_all().await;

    assert_eq!((first.len(), second.len(), second[0].attempt()), (1, 1, 1));
    assert_ne!(first[0].payload[0], second[0].payload[0]);
    assert_eq!(actor.the_dead_one().await.id.as_ref(), Some(first[0].job()));
}
