//! Invalid requests are refused and change nothing (R5, R21).

use std::time::Duration;

use relq_core::{
    Disposition, Error, NewJob, Priority,
    capabilities::Limits,
    error::{Effect, Operation, RetryAdvice},
    limits::{MAX_DURATION, MAX_JOBS_PER_CALL, MAX_TIMESTAMP},
    operator::{JobState, StateDetail},
    outcome::Settled,
    results::MAX_RESULT,
};

use crate::{
    cases::case,
    harness::{
        checks::{delivers, id, key, numbered, settle_all},
        store::Store,
        times::HELD,
    },
};

const TOO_LONG: [Duration; 3] =
    [MAX_DURATION.saturating_add(Duration::from_millis(1)), MAX_YEARS, Duration::MAX];
const MAX_YEARS: Duration = Duration::from_secs(u64::MAX / 1000);

/// Asserts that the call was refused as invalid, that the error says that nothing was
/// changed, and that it advises the caller never to repeat the call.
fn assert_invalid<T>(answer: Result<T, Error>, operation: Operation) {
    let error = answer.err().expect("the request is refused");
    assert!(matches!(error, Error::Invalid { .. }), "{error:?}");
    assert_eq!(error.effect(), Effect::No, "R21: the effect of {error:?}");
    assert_eq!(error.retry_advice(), RetryAdvice::Never, "R21: {error:?}");
    assert_eq!(error.at().operation, operation, "R21: {error:?}");
}

async fn refuses(store: &Store, job: NewJob) {
    let actor = store.actor("producer").await;

    let refused = actor.push(&[NewJob::new("good"), job], None).await;

    assert_invalid(refused, Operation::Push);
    assert_eq!(actor.figures().await.unfinished(), 0, "R5: nothing is stored");
}

case!(an_endless_delay_is_refused: R5 => Delay);
/// A push is refused if its delay is so long that the due time would overflow.
async fn an_endless_delay_is_refused(store: &Store) {
    for delay in TOO_LONG {
        refuses(store, NewJob::new("job").delay(delay)).await;
    }
}

case!(an_endless_expiry_is_refused: R5 => Expiry);
/// A push is refused if its expiry is so long that the time of expiry would overflow.
async fn an_endless_expiry_is_refused(store: &Store) {
    for expires_in in TOO_LONG {
        refuses(store, NewJob::new("job").expires_in(expires_in)).await;
    }
}

case!(a_senseless_lease_of_a_job_is_refused: R5 => JobLease);
/// A push is refused if the job asks for a lease of zero or of infinite length.
async fn a_senseless_lease_of_a_job_is_refused(store: &Store) {
    for lease in
        TOO_LONG.into_iter().chain([Duration::ZERO, Duration::from_micros(999)])
    {
        refuses(store, NewJob::new("job").lease(lease)).await;
    }
}

case!(each_level_is_taken_or_refused: R5 R15);
/// If the backend distinguishes a priority, it stores a push of that priority. If it
/// does not, it refuses the push as unsupported.
async fn each_level_is_taken_or_refused(store: &Store) {
    let actor = store.actor("producer").await;
    let told_apart: Vec<_> = actor.class().levels().collect();
    for level in (0..=u8::MAX).map_while(Priority::new) {
        let pushed = actor.push(&[NewJob::new("job").priority(level)], None).await;

        match pushed {
            Ok(_) => assert!(told_apart.contains(&level), "{level} is taken"),
            Err(Error::Unsupported { .. }) => {
                assert!(!told_apart.contains(&level), "{level} is refused");
            }
            Err(other) => panic!("{level}: {other:?}"),
        }
    }

    assert_eq!(actor.figures().await.ready, told_apart.len() as u64);
}

case!(a_senseless_lease_is_refused: R21);
/// A claim with a lease of zero or infinite length is refused and takes nothing.
async fn a_senseless_lease_is_refused(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;

    for lease in
        TOO_LONG.into_iter().chain([Duration::ZERO, Duration::from_micros(999)])
    {
        let ask = actor.ask_by(1, lease);
        assert_invalid(actor.claim(&ask).await, Operation::Claim);
    }

    assert_eq!(actor.figures().await.ready, 1);
}

case!(an_endless_wait_is_refused: R21);
/// A claim that would wait for an infinite time is refused.
async fn an_endless_wait_is_refused(store: &Store) {
    let actor = store.actor("worker").await;

    for wait in TOO_LONG {
        assert_invalid(actor.claim(&actor.ask(1).wait(wait)).await, Operation::Claim);
    }
}

case!(the_longest_lease_holds: R21);
/// The longest lease is allowed and does not overflow.
async fn the_longest_lease_holds(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let ask = actor.ask_by(1, MAX_DURATION);
    let held = actor.claim(&ask).await.expect("answered").remove(0);
    actor.keep(&held, MAX_DURATION).await.expect("answered");

    assert_eq!(actor.recover_all().await.requeued, 0);

    actor.finish(&held).await;
}

case!(a_senseless_extension_is_refused: R21);
/// An extension by zero or an infinite time is refused and changes nothing.
async fn a_senseless_extension_is_refused(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;

    for lease in TOO_LONG.into_iter().chain([Duration::ZERO]) {
        let answer = actor.keep(&held, lease).await;
        assert_invalid(answer, Operation::Extend);
    }

    assert_eq!(actor.recover_all().await.requeued, 0);
    actor.finish(&held).await;
}

case!(an_endless_retry_loses_nothing: R21);
/// A retry after an infinite delay never makes the job ready at once and never loses
/// it. The backend either refuses the retry and leaves the job leased, or uses the
/// longest allowed delay.
async fn an_endless_retry_loses_nothing(store: &Store) {
    let actor = store.actor("worker").await;
    for after in TOO_LONG {
        actor.store_one("job").await;
        let held = actor.take_one().await;
        let disposition = Disposition::Retry { after, error: "no".to_owned() };
        let said = [relq_core::Settlement::new(held.receipt, disposition)];
        let _either = actor.settle(&said).await;
    }

    actor.recover_all().await;

    let stats = actor.figures().await;
    assert_eq!((stats.ready, stats.leased + stats.scheduled), (0, 3));
    for view in actor.list(JobState::Scheduled, 10).await {
        let StateDetail::Scheduled { due } = view.detail else { panic!("{view:?}") };
        assert!(due <= MAX_TIMESTAMP, "it cannot be restored elsewhere: {due:?}");
    }
}

case!(too_many_settlements_are_refused: R5);
/// A call with more settlements than allowed is refused, and none is carried out.
async fn too_many_settlements_are_refused(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;
    let one = relq_core::Settlement::new(held.receipt.clone(), Disposition::Done);
    let many = vec![one; actor.limits().max_jobs_per_call.get() as usize + 1];

    assert_invalid(actor.settle(&many).await, Operation::Settle);

    actor.finish(&held).await;
}

case!(a_result_for_nobody_that_is_too_large_is_refused: R5 R29);
/// A result above the limit is refused by each backend, also by one that keeps no results.
async fn a_result_for_nobody_that_is_too_large_is_refused(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;
    let done = Disposition::DoneWith { result: vec![7; MAX_RESULT + 1].into() };
    let said = [relq_core::Settlement::new(held.receipt.clone(), done)];

    assert_invalid(actor.settle(&said).await, Operation::Settle);

    actor.finish(&held).await;
}

case!(too_many_extensions_are_refused: R5);
/// A call with more extensions than allowed is refused.
async fn too_many_extensions_are_refused(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;
    let many =
        vec![held.receipt.clone(); actor.limits().max_jobs_per_call.get() as usize + 1];

    let answer = actor.extend(actor.worker(), &many, HELD).await;

    assert_invalid(answer, Operation::Extend);
    actor.finish(&held).await;
}

case!(a_greedy_claim_loses_nothing: R21);
/// A claim of more jobs than allowed loses no job. It is refused, or returns as many
/// jobs as are allowed.
async fn a_greedy_claim_loses_nothing(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(20)).await;

    let taken = actor.claim(&actor.ask(u32::MAX)).await.unwrap_or_default();

    let stats = actor.figures().await;
    assert_eq!(stats.leased, taken.len() as u64);
    assert_eq!(stats.unfinished(), 20);
}

/// The lowest limits with which all cases can run. [`Limits`] names them, too.
const NEEDED: Limits = Limits {
    max_payload: 2 * 1024 * 1024,
    max_headers: 64 * 1024,
    max_jobs_per_call: MAX_JOBS_PER_CALL,
    max_bytes_per_push: 4 * 1024 * 1024,
};

case!(the_limits_allow_the_cases: R2 R5);
/// A backend may have lower limits than the cases need. Then other cases fail, too, and only
/// this one says why.
async fn the_limits_allow_the_cases(store: &Store) {
    let actor = store.actor("worker").await;
    let limits = actor.limits();

    let are_high = limits.max_payload >= NEEDED.max_payload
        && limits.max_headers >= NEEDED.max_headers
        && limits.max_jobs_per_call >= NEEDED.max_jobs_per_call
        && limits.max_bytes_per_push >= NEEDED.max_bytes_per_push;

    assert!(are_high, "the cases need {NEEDED:?} at least, and not {limits:?}");
}

case!(the_largest_batches_work: R6);
/// One claim, one settlement and one extension each handle the largest allowed number
/// of jobs.
async fn the_largest_batches_work(store: &Store) {
    let actor = store.actor("worker").await;
    let most = actor.limits().max_jobs_per_call.get();
    actor.store(numbered(most as usize)).await;

    let held = actor.take(most).await;
    let receipts: Vec<_> = held.iter().map(|one| one.receipt.clone()).collect();
    let heard = actor.extend(actor.worker(), &receipts, HELD).await.expect("answered");
    let settled = settle_all(&actor, &held, &Disposition::Done).await;

    assert_eq!((held.len(), heard.len()), (most as usize, most as usize));
    assert_eq!(settled, vec![Settled::Applied; most as usize]);
}

case!(empty_calls_are_fine: R21);
/// Calls with empty lists return empty lists.
async fn empty_calls_are_fine(store: &Store) {
    let actor = store.actor("worker").await;

    assert_eq!(actor.push(&[], None).await.expect("answered"), []);
    assert_eq!(actor.settle(&[]).await.expect("answered"), []);
    let heard = actor.extend(actor.worker(), &[], HELD).await;
    assert_eq!(heard.expect("answered"), []);

    assert_eq!(actor.figures().await, relq_core::Stats::new());
}

case!(the_longest_names_are_taken: R2 R4 R16 => ClientIds Unique);
/// A job id and a unique key of the maximum length are accepted, and the job is
/// delivered with that id.
async fn the_longest_names_are_taken(store: &Store) {
    let actor = store.actor("worker").await;
    let (long_id, long_key) = (id(&"é".repeat(64)), key(&"k".repeat(255)));
    let job = NewJob::new("job").id(long_id.clone()).unique(long_key);
    assert_eq!(actor.store_one(job).await, long_id);

    let held = actor.take_one().await;

    assert_eq!(held.job(), &long_id);
    actor.finish(&held).await;
}

case!(the_most_attempts_are_taken: R11);
/// The largest allowed `max_attempts` is accepted and delivered unchanged.
async fn the_most_attempts_are_taken(store: &Store) {
    let actor = store.actor("worker").await;
    let job = NewJob::new("job").max_attempts(std::num::NonZeroU16::MAX);
    actor.store_one(job).await;

    assert_eq!(actor.take_one().await.max_attempts, std::num::NonZeroU16::MAX);
}

case!(a_refusal_harms_no_later_call: R21);
/// The connection still works after a refusal.
async fn a_refusal_harms_no_later_call(store: &Store) {
    let actor = store.actor("worker").await;
    let bad = NewJob::new("bad").header("n", "v".repeat(actor.limits().max_headers));
    for _ in 0..20 {
        let refused = actor.push(std::slice::from_ref(&bad), None).await;
        assert_invalid(refused, Operation::Push);
    }

    actor.store_one("good").await;

    delivers(&actor, ["good"]).await;
}
