//! Workers and reapers claim, settle, extend and recover more jobs than the backend
//! handles in one step.

use std::{num::NonZeroU16, time::Duration};

use bytes::Bytes;
use relq_core::{
    Delivery, Disposition, NewJob, Settlement,
    operator::JobState,
    outcome::{Extended, Pushed, Settled},
};

use super::{COUNTS, PAGE, assert_in_order, beside_joints, take_all, without};
use crate::{
    cases::case,
    cases::unique::bound,
    harness::{
        actor::Actor,
        checks::{
            dead, drain, expect_exactly, listed, numbered, payloads, postpone,
            retry_now, settle_all,
        },
        store::Store,
        times::{BRIEF, HELD, LIFE, PAST_BRIEF, PAST_LIFE},
    },
};

case!(a_claim_of_several_steps_is_in_order: R6 R13);
/// A claim of several steps returns all jobs, in order and on their first attempt.
async fn a_claim_of_several_steps_is_in_order(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    for count in COUNTS {
        actor.store(numbered(count)).await;

        let taken = take_all(&actor, count).await;

        assert!(taken.iter().all(|one| one.attempt() == 1), "{taken:?}");
        assert_in_order(&actor, payloads(&taken), &numbered(count));
        settle_all(&actor, &taken, &Disposition::Done).await;
    }
}

/// Claims `count` jobs, finishes those beside the step boundaries, and then settles all
/// `count` in one call. Asserts that the call reports `LeaseLost` for exactly the
/// finished ones. Returns the payloads of the other jobs, in the order of their pushes.
async fn settle_beside_lost(
    actor: &Actor,
    count: usize,
    disposition: &Disposition,
) -> Vec<Bytes> {
    actor.store(numbered(count)).await;
    let mut held = take_all(actor, count).await;
    held.sort_by_key(|one| number_of(&one.payload));
    let lost = beside_joints(count);
    for at in &lost {
        actor.finish(&held[*at]).await;
    }

    let answers = settle_all(actor, &held, disposition).await;

    let expected = (0..count).map(|at| match lost.contains(&at) {
        true => Settled::LeaseLost,
        false => Settled::Applied,
    });
    assert_eq!(answers, expected.collect::<Vec<_>>(), "{count} jobs: {disposition:?}");
    without(&numbered(count), &lost)
}

fn number_of(payload: &Bytes) -> usize {
    let text = String::from_utf8_lossy(payload);
    let number = text.rsplit(' ').next().and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("{text:?} is the payload of another case"))
}

case!(ends_of_several_steps_apply_to_their_jobs: R7);
/// One call of several steps acks or discards jobs. It ends each job whose lease is
/// held, and reports `LeaseLost` for exactly the others.
async fn ends_of_several_steps_apply_to_their_jobs(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    let mut expected = [0, 0];
    for count in COUNTS {
        for (at, disposition) in
            [Disposition::Done, Disposition::Discard].into_iter().enumerate()
        {
            let others = settle_beside_lost(&actor, count, &disposition).await;
            // Those whose lease is lost were acked.
            expected[0] += (count - others.len()) as u64;
            expected[at] += others.len() as u64;

            let stats = actor.figures().await;
            assert_eq!(stats.unfinished() + stats.dead, 0);
            assert_eq!([stats.finished, stats.discarded], expected, "R23");
        }
    }
}

case!(retries_of_several_steps_apply_to_their_jobs: R7 R11);
/// One call of several steps retries jobs without a delay. The jobs are then ready in
/// their order, on their second attempt.
async fn retries_of_several_steps_apply_to_their_jobs(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    for count in COUNTS {
        let others = settle_beside_lost(&actor, count, &retry_now()).await;

        actor.recover_all().await;
        let again = drain(&actor).await;
        assert!(again.iter().all(|one| one.attempt() == 2), "{again:?}");
        assert_in_order(&actor, payloads(&again), &others);
    }
}

case!(postponements_of_several_steps_apply_to_their_jobs: R7 R26);
/// One call of several steps postpones jobs without a delay. The jobs are then ready in
/// their order, and no attempt is counted.
async fn postponements_of_several_steps_apply_to_their_jobs(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    for count in COUNTS {
        let others = settle_beside_lost(&actor, count, &postpone(Duration::ZERO)).await;

        actor.recover_all().await;
        let again = drain(&actor).await;
        assert!(again.iter().all(|one| one.attempt() == 1), "{again:?}");
        assert_in_order(&actor, payloads(&again), &others);
    }
}

case!(burials_of_several_steps_apply_to_their_jobs: R3 R7);
/// One call of several steps buries jobs. They become dead letters in their order.
async fn burials_of_several_steps_apply_to_their_jobs(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    for count in COUNTS {
        let others = settle_beside_lost(&actor, count, &dead("never")).await;

        expect_exactly(listed(&actor.list(JobState::Dead, 1000).await), others);
        actor.purge().await.expect("purged");
    }
}

case!(returns_of_several_steps_keep_the_order: R7 R24);
/// One call of several steps gives jobs back. They are then ready in their order,
/// before other jobs, and the attempt is not counted.
async fn returns_of_several_steps_keep_the_order(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    for count in COUNTS {
        let mut others =
            settle_beside_lost(&actor, count, &Disposition::GiveBack).await;
        actor.store_one("later").await;
        others.push("later".into());

        let again = drain(&actor).await;
        assert!(again.iter().all(|one| one.attempt() == 1), "{again:?}");
        assert_in_order(&actor, payloads(&again), &others);
    }
}

case!(a_claim_beside_returns_of_several_steps_finds_all: R7 R24);
/// `settle_and_claim` gives back more jobs than one step handles, and claims after the
/// last of them: the claim returns them all, in their order.
async fn a_claim_beside_returns_of_several_steps_finds_all(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    for count in COUNTS {
        actor.store(numbered(count)).await;
        let held = take_all(&actor, count).await;
        let back: Vec<_> = held
            .iter()
            .map(|one| Settlement::new(one.receipt.clone(), Disposition::GiveBack))
            .collect();
        let all = actor.ask(u32::try_from(count).expect("a small number"));

        let both = actor.settle_and_claim(&back, &all).await;

        let settled = both.settled.expect("answered");
        assert_eq!(settled, vec![Settled::Applied; count]);
        let claimed = both.claimed.expect("answered");
        assert_in_order(&actor, payloads(&claimed), &numbered(count));
        settle_all(&actor, &claimed, &Disposition::Done).await;
    }
}

case!(a_release_of_several_steps_keeps_the_order: R24);
/// A release of several steps makes the worker's jobs ready in their order, before
/// other jobs, and does not count the attempt. Jobs of another worker stay leased.
async fn a_release_of_several_steps_keeps_the_order(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    let other = actor.acting_as("other");
    for count in COUNTS {
        let foreign = beside_joints(count);
        actor.store(numbered(count)).await;
        let mut kept = Vec::new();
        for at in 0..count {
            let holder = if foreign.contains(&at) { &other } else { &actor };
            kept.extend(
                holder.take(1).await.into_iter().filter(|_| foreign.contains(&at)),
            );
        }
        actor.store_one("later").await;

        let released = actor.release_worker(actor.worker()).await.expect("released");

        assert_eq!(released.jobs, (count - foreign.len()) as u64);
        let of_other = payloads(&kept);
        for one in &kept {
            other.finish(one).await;
        }
        actor.recover_all().await;
        let again = drain(&actor).await;
        assert!(again.iter().all(|one| one.attempt() == 1), "{again:?}");
        let mut wanted = numbered(count);
        wanted.retain(|payload| !of_other.contains(payload));
        wanted.push("later".into());
        assert_in_order(&actor, payloads(&again), &wanted);
    }
}

case!(a_recovery_of_several_steps_keeps_the_order: R9 R11 => JobLease);
/// A recovery of several steps makes jobs with expired leases ready in the order in
/// which they were claimed, on their second attempt. Live leases among them are kept.
async fn a_recovery_of_several_steps_keeps_the_order(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    for count in COUNTS {
        let live = beside_joints(count);
        actor.store(numbered(count)).await;
        let mut kept: Vec<Delivery> = Vec::new();
        for at in 0..count {
            let taken = match live.contains(&at) {
                true => actor.take_one().await,
                false => actor.take_one_briefly().await,
            };
            kept.extend(live.contains(&at).then_some(taken));
        }
        store.outlast_brief_leases().await;

        let recovered = actor.recover_all().await;

        assert_eq!(recovered.requeued as usize, count - live.len());
        let mut wanted = numbered(count);
        let of_live = payloads(&kept);
        wanted.retain(|payload| !of_live.contains(payload));
        settle_all(&actor, &kept, &Disposition::Done).await;
        let again = drain(&actor).await;
        assert!(again.iter().all(|one| one.attempt() == 2), "{again:?}");
        assert_in_order(&actor, payloads(&again), &wanted);
    }
}

case!(a_recovery_of_several_steps_buries_all: R9 R11 => JobLease);
/// A recovery of several steps buries all jobs whose lease expired on their last
/// attempt, also when it removes them from the pages that it goes through.
async fn a_recovery_of_several_steps_buries_all(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    for count in COUNTS {
        let last = numbered(count)
            .into_iter()
            .map(|one| NewJob::new(one).max_attempts(NonZeroU16::MIN));
        actor.store(last).await;
        actor.take_briefly(u32::try_from(count).expect("few")).await;
        store.outlast_brief_leases().await;

        let recovered = actor.recover_all().await;

        assert_eq!((recovered.requeued, recovered.buried as usize), (0, count));
        let buried = listed(&actor.list(JobState::Dead, 1000).await);
        expect_exactly(buried, numbered(count));
        actor.purge().await.expect("purged");
    }
}

case!(a_promotion_of_several_steps_keeps_the_order: R13 R14 => Delay);
/// Jobs that are due at the same time become ready in the order of their pushes.
async fn a_promotion_of_several_steps_keeps_the_order(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    for count in COUNTS {
        store.stop_clock();
        let delayed =
            numbered(count).into_iter().map(|one| NewJob::new(one).delay(BRIEF));
        actor.store(delayed).await;
        store.advance(PAST_BRIEF).await;
        actor.store_one("later").await;

        actor.recover_all().await;

        let got = payloads(&drain(&actor).await);
        let (later, due): (Vec<_>, Vec<_>) =
            got.into_iter().partition(|payload| payload == "later");
        assert_eq!(later.len(), 1);
        assert_in_order(&actor, due, &numbered(count));
    }
}

case!(a_heartbeat_of_several_steps_answers_for_its_jobs: R6 R8 => JobLease);
/// A heartbeat of several steps extends the leases that are held, and reports
/// `LeaseLost` for exactly the others.
async fn a_heartbeat_of_several_steps_answers_for_its_jobs(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    for count in COUNTS {
        actor.store(numbered(count)).await;
        let held = actor.take_briefly(u32::try_from(count).expect("few")).await;
        assert_eq!(held.len(), count);
        let lost = beside_joints(count);
        for at in &lost {
            actor.finish(&held[*at]).await;
        }
        let receipts: Vec<_> = held.iter().map(|one| one.receipt.clone()).collect();

        let answers = actor.extend(actor.worker(), &receipts, HELD).await;

        let answers = answers.expect("answered");
        let is_lost = |answer: &Extended| *answer == Extended::LeaseLost;
        let said = answers.iter().enumerate().filter(|(_, answer)| is_lost(answer));
        assert_eq!(said.map(|(at, _)| at).collect::<Vec<_>>(), lost);
        store.advance(PAST_BRIEF + Duration::from_millis(1)).await;
        assert_eq!(actor.recover_all().await.requeued, 0, "{count} jobs were extended");
        settle_all(&actor, &held, &Disposition::Done).await;
    }
}

/// How leased jobs leave their worker without an end.
#[derive(Debug, Clone, Copy)]
enum WayBack {
    Release,
    Recovery,
    GiveBack,
    Retry,
    Postponement,
}

impl WayBack {
    const ALL: [Self; 5] = [
        Self::Release,
        Self::Recovery,
        Self::GiveBack,
        Self::Retry,
        Self::Postponement,
    ];

    /// The length of the leases of jobs that are to come back in this way.
    fn lease(self) -> Duration {
        if let Self::Recovery = self { BRIEF } else { HELD }
    }

    async fn bring_back(self, worker: &Actor, held: &[Delivery]) {
        let disposition = match self {
            Self::Release => {
                worker.release_worker(worker.worker()).await.expect("released");
                return;
            }
            Self::Recovery => {
                worker.recover_all().await;
                return;
            }
            Self::GiveBack => Disposition::GiveBack,
            Self::Retry => retry_now(),
            Self::Postponement => postpone(Duration::ZERO),
        };
        settle_all(worker, held, &disposition).await;
    }
}

case!(a_job_of_any_step_frees_its_expired_key: R16 R17 R24 => Unique Expiry);
/// The jobs of a worker leave it in several steps, in each way. One of them, which has
/// expired meanwhile, holds a unique key. The key is free then, whichever step the job was in.
async fn a_job_of_any_step_frees_its_expired_key(store: &Store) {
    // No lease expires while the others are claimed.
    store.stop_clock();
    let actor = store.actor_in_steps("worker").await;
    let count = 2 * PAGE + 1;
    for way in WayBack::ALL {
        for at in beside_joints(count) {
            // A worker that has one lease for all of its jobs has leases of one length.
            let worker = actor.acting_as(&format!("{way:?}-{at}"));
            let mut jobs: Vec<_> =
                numbered(count).into_iter().map(NewJob::new).collect();
            jobs[at] = bound("first").expires_in(LIFE);
            worker.store(jobs).await;
            let most = u32::try_from(count).expect("a small number");
            let mut held = Vec::new();
            while held.len() < count {
                let ask = worker.ask_by(most, way.lease());
                let more = worker.claim(&ask).await.expect("answered");
                assert!(!more.is_empty(), "R1: {} of {count} jobs", held.len());
                held.extend(more);
            }
            store.advance(PAST_LIFE).await;

            way.bring_back(&worker, &held).await;

            let second = worker.offer(bound("second")).await;
            assert!(
                matches!(second, Pushed::Stored(_)),
                "R16: {way:?} of {count} jobs, of which job {at} has expired and holds \
                 the unique key: a push with that key is {second:?}"
            );
            worker.purge().await.expect("purged");
        }
    }
}
