use std::{future::pending, pin::Pin, time::Duration};

use relq_core::{
    JobId, Receipt,
    capabilities::Order,
    environment::{Clock, Environment, OsRandomness, Timestamp},
    error::ErrorContext,
};
use relq_memory::MemoryStore;

use super::*;
use crate::{
    Failure,
    attempt::Program,
    lease_clock::LeaseClock,
    observers::Observers,
    readiness::Readiness,
    slot_pool::{Demand, PoolMember, SlotPool, Turns},
};

pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// The time of the clock of a claim loop in a test.
pub(crate) const NOW: Duration = Duration::from_secs(1000);

/// A clock that always shows [`NOW`], and whose sleeps end at once.
#[derive(Debug)]
struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_ms(0).plus(NOW)
    }

    fn elapsed(&self) -> Duration {
        NOW
    }

    fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }
}

/// Settings with so many slots, whose clock shows [`NOW`].
pub(crate) fn settings(slots: u32) -> Settings {
    let environment = Environment::new(Arc::new(Stopped), Arc::new(OsRandomness));
    Settings {
        concurrency: NonZeroU32::new(slots).unwrap(),
        lease_clock: LeaseClock::new(environment.clone()),
        environment,
        ..Settings::default()
    }
}

/// The claim loop of a worker on one queue, which has sent no call.
pub(crate) fn claim_loop() -> ClaimLoop {
    claim_loop_of(Settings::default(), None)
}

/// The claim loop of a queue that shares so many slots with another one, and the place
/// of that other queue.
pub(crate) fn sharing(slots: u32) -> (ClaimLoop, PoolMember) {
    let capacity = usize::try_from(slots).unwrap();
    let members = SlotPool::members(capacity, Turns::ByWeight, [1, 1].into_iter());
    let [own, other]: [PoolMember; 2] = members.try_into().unwrap();
    (claim_loop_of(settings(slots), Some(own)), other)
}

/// What a queue reports that would claim so many jobs.
pub(crate) fn wanted(wanted: usize) -> Demand {
    Demand { wanted, is_served: true, ..Demand::default() }
}

pub(crate) fn delivery(name: &str) -> Delivery {
    let receipt = Receipt::new(JobId::new(name).unwrap(), 1, name.to_owned());
    Delivery::new(receipt, "", LEASE)
}

pub(crate) fn job(name: &str) -> JobContext {
    JobContext::new(delivery(name))
}

/// Sends a call that settles one job.
pub(crate) fn send_settlement(claim_loop: &mut ClaimLoop) {
    claim_loop.settle(job("sent"), Disposition::Done);
    let call = claim_loop.settling.next_settle_call(1).unwrap();
    claim_loop.calls.settle(call, claim_loop.now());
}

pub(crate) fn claim_loop_of(settings: Settings, pool: Option<PoolMember>) -> ClaimLoop {
    let name = QueueName::new("q").unwrap();
    let queue = MemoryStore::default().open(name, Environment::default());
    let handler = Arc::new(|_: JobContext| pending::<Result<(), Failure>>());
    let program = Program { handler, settings: settings.clone() };
    ClaimLoop::new(ClaimLoopParts {
        slots: Slots::new(program, pool, Readiness::default()),
        calls: Calls::new(Arc::new(queue)),
        settings,
        worker: WorkerId::new("worker").unwrap(),
        queue: None,
        held: Arc::new(Held::new(None, Duration::ZERO)),
    })
}

pub(crate) fn unavailable(operation: Operation) -> Error {
    let at = ErrorContext { backend: "test", operation };
    Error::Unavailable { at, source: "away".into() }
}

/// R21: a store may fail each wait and answer each claim. Without a pause the worker
/// would claim from its empty queue as fast as it can.
#[test]
fn a_failed_wait_for_jobs_pauses_the_claims() {
    let mut claim_loop = claim_loop();
    let waited = Some(Err(unavailable(Operation::Claim)));
    let sent = Sent { at: Moment::default(), wait: Duration::ZERO };
    assert!(claim_loop.may_claim());

    let answer = Answer { settled: None, claimed: None, waited, reserved: 0, sent };
    claim_loop.answered(answer).unwrap();

    assert!(!claim_loop.may_claim());
}

/// R8: while the store of a part takes no settlement, the settlement of one job shows
/// whether other parts do. Further jobs would only wait for theirs.
#[test]
fn one_job_at_a_time_shows_whether_the_parts_take_settlements() {
    let (mut claim_loop, one) = (claim_loop(), NonZeroU32::MIN);
    let (held, environment) = (Arc::clone(&claim_loop.held), Environment::default());
    let settling = Settling::new(held, Observers::default(), environment);
    claim_loop.settling = settling.of(Order::ByPart);
    let receipt = Receipt::new(JobId::new("job").unwrap(), 1, "token");
    let job = JobContext::new(Delivery::new(receipt, "", Duration::from_secs(30)));
    claim_loop.settle(job, Disposition::Done);
    let call = claim_loop.settling.next_settle_call(1).unwrap();
    let failed = Err(unavailable(Operation::Settle));
    claim_loop.settling.answered(call, failed, Duration::ZERO).unwrap();

    assert_eq!(claim_loop.room(), Some(one), "for a job that shows it");
    claim_loop.calls.claim(claim_loop.ask(one), 1, claim_loop.now());

    assert_eq!(claim_loop.room(), None, "until that job is settled");
}

/// A worker with many slots sends a second settle call beside a pending one, for a full
/// share of its slots, while the store takes settlements.
#[test]
fn many_slots_are_shared_by_two_calls() {
    let few = claim_loop_of(settings(15), None);
    let page = few.calls.max_jobs_per_call();
    let mut claim_loop = claim_loop_of(settings(16), None);
    let shares = [few.share(), claim_loop.share()].map(NonZeroU32::get);
    assert_eq!(shares, [page.get(), 8], "with 15 slots and with 16");
    assert!(claim_loop.may_settle(), "no call settles");

    send_settlement(&mut claim_loop);
    for _ in 0..7 {
        assert!(!claim_loop.may_settle(), "less than a share waits");
        claim_loop.settle(job("fresh"), Disposition::Done);
    }
    assert!(!claim_loop.may_settle(), "less than a share waits");
    claim_loop.settle(job("fresh"), Disposition::Done);

    assert!(claim_loop.may_settle(), "a share waits");
    claim_loop.settling.backoff.failed(&unavailable(Operation::Settle));
    assert!(!claim_loop.may_settle(), "the store fails");
    claim_loop.settling.backoff.succeeded();
    let call = claim_loop.settling.next_settle_call(1).unwrap();
    claim_loop.calls.settle(call, claim_loop.now());
    claim_loop.settle(job("fresh"), Disposition::Done);
    assert!(!claim_loop.may_settle(), "two calls settle");
}

/// Each job that the worker has claimed counts with an outcome, also if the worker ends
/// before the store has confirmed its settlement.
#[test]
fn settlements_that_are_given_up_are_counted() {
    let mut claim_loop = claim_loop();
    send_settlement(&mut claim_loop);
    claim_loop.settle(job("unsent"), Disposition::Done);

    claim_loop.give_up();

    let summary = claim_loop.settings.observers.progress.summary();
    assert_eq!((summary.uncertain, summary.lost), (1, 1), "uncertain and lost");
}

/// The claim of a worker on one queue waits at the store until a job is ready.
#[test]
fn the_claim_of_one_queue_waits_for_a_job() {
    let mut claim_loop = claim_loop();

    claim_loop.send_calls();

    assert!(claim_loop.calls.is_waiting(), "the claim does not wait");
}

/// R24: a worker that stops claims nothing more, and waits for no job.
#[test]
fn a_worker_that_stops_sends_no_claim() {
    let (mut idle, _other) = sharing(1);
    idle.is_idle = true;
    let (mut failing, _other) = sharing(1);
    failing.claiming.failed(&unavailable(Operation::Claim));
    for claim_loop in [&mut claim_loop(), &mut idle, &mut failing] {
        claim_loop.stop_claiming();

        claim_loop.send_calls();

        let calls = &claim_loop.calls;
        assert!(!calls.is_claiming() && !calls.is_waiting(), "a call was sent");
    }
}

/// A worker on one queue claims only for free slots, also to see whether a store that
/// has failed works again.
#[tokio::test]
async fn a_worker_without_a_free_slot_sends_no_claim() {
    let mut claim_loop = claim_loop_of(settings(1), None);
    claim_loop.slots.start(job("runs"));
    claim_loop.claiming.failed(&unavailable(Operation::Claim));
    claim_loop.claiming.pause_over().await;

    claim_loop.send_calls();

    assert!(!claim_loop.calls.is_claiming(), "a job is claimed for no slot");
}

/// The queues of a worker never run more handlers together than it has slots. While the
/// reply to a claim was late, another queue took its slot.
#[tokio::test]
async fn jobs_whose_slots_were_taken_wait() {
    let sent = |claim_loop: &ClaimLoop| {
        let at = claim_loop.now();
        Sent { at, wait: Duration::ZERO }
    };
    let (mut late, _other) = sharing(1);
    let (mut in_time, _other) = sharing(1);

    late.claimed(vec![delivery("late")], 0, sent(&late));
    in_time.claimed(vec![delivery("in time")], 1, sent(&in_time));

    assert_eq!((late.slots.held(), late.slots.is_empty()), (1, true), "it runs");
    assert!(!in_time.slots.is_empty(), "it does not run");
}

/// A job runs only in a free slot, and only as many as the worker was asked to prefetch
/// wait for one. If the store returns more, the others are given back.
#[tokio::test]
async fn jobs_beyond_the_slots_and_the_prefetched_ones_are_given_back() {
    let settings = Settings { prefetch: Some(NonZeroU32::MIN), ..settings(1) };
    let mut claim_loop = claim_loop_of(settings, None);
    let deliveries = ["runs", "waits", "too many"].map(delivery).to_vec();
    let sent = Sent { at: claim_loop.now(), wait: Duration::ZERO };

    claim_loop.claimed(deliveries, 2, sent);

    assert_eq!(claim_loop.slots.held(), 2, "those that run or wait");
    assert!(claim_loop.slots.waits_since().is_some(), "two jobs run in one slot");
    assert_eq!(claim_loop.settling.fresh(), 1, "those that are given back");
}

/// The slots of a claim are in use from its sending on. If they were not, the queue
/// would claim for them again, and run more handlers than the worker has slots.
#[test]
fn a_claim_uses_the_slots_that_its_queue_was_granted() {
    let (mut claims, _other) = sharing(2);
    let (mut settles, _other) = sharing(2);
    settles.settle(job("done"), Disposition::Done);
    for claim_loop in [&mut claims, &mut settles] {
        claim_loop.send_calls();
        assert_eq!(claim_loop.calls.asked(), 1, "a claim for one of two slots");

        assert_eq!(claim_loop.room(), None, "the other slot is that of the other");
    }
}

/// A store that does not reply must not keep the slots from the other queues.
#[test]
fn a_claim_that_is_overdue_keeps_no_slot() {
    let (mut claim_loop, _other) = sharing(1);
    let ask = claim_loop.ask(NonZeroU32::MIN);
    claim_loop.calls.claim(ask, 1, Moment::default());

    claim_loop.send_calls();

    assert_eq!(claim_loop.calls.reserved(), 0, "its slots");
}
