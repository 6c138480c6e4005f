//! The other parts work while one part answers calls with an error.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    num::NonZeroU32,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use relq_conformance::{
    async_trait,
    overrides::{OverriddenQueue, Override, Right},
};
use relq_core::{
    ClaimRequest, Delivery, Disposition, Error, JobId, NewJob, Operator as _,
    PushToken, Queue, QueueName, Receipt, ReliableQueue as _, Settlement, WorkerId,
    environment::{Clock, Environment, Timestamp},
    error::{Effect, ErrorContext, Operation},
    operator::{Cancelled, JobState, Page, PeekRequest},
    outcome::{Extended, Pushed, Recovered, Released, Settled},
};
use relq_memory::MemoryStore;
use relq_partitions::PartitionedQueue;

const LEASE: Duration = Duration::from_secs(30);

/// The errors with which a part fails.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Unavailable,
    ReadOnly,
    Full,
    Denied,
    /// The reply was lost.
    Interrupted,
    Unreadable,
}

impl Kind {
    fn at(self, operation: Operation) -> Error {
        let at = ErrorContext { backend: "mine", operation };
        let source = "the test says so".into();
        match self {
            Self::Unavailable => Error::Unavailable { at, source },
            Self::ReadOnly => Error::ReadOnly { at, source },
            Self::Full => Error::Full { at, source },
            Self::Denied => Error::Denied { at, source },
            Self::Interrupted => Error::Interrupted { at, source },
            Self::Unreadable => Error::Unreadable { at, source },
        }
    }
}

/// A part that answers the calls of workers with an error, and does nothing.
struct Failing(Kind);

#[async_trait]
impl Override for Failing {
    async fn push(
        &self,
        _: &Right,
        _: &[NewJob],
        _: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        Err(self.0.at(Operation::Push))
    }

    async fn claim(&self, _: &Right, _: &ClaimRequest) -> Result<Vec<Delivery>, Error> {
        Err(self.0.at(Operation::Claim))
    }

    async fn extend(
        &self,
        _: &Right,
        _: &WorkerId,
        _: &[Receipt],
        _: Duration,
    ) -> Result<Vec<Extended>, Error> {
        Err(self.0.at(Operation::Extend))
    }

    async fn recover(&self, _: &Right, _: NonZeroU32) -> Result<Recovered, Error> {
        Err(self.0.at(Operation::Recover))
    }
}

/// A part that stores the jobs of its first push, and whose reply is lost.
#[derive(Default)]
struct LosesFirstReply(AtomicBool);

#[async_trait]
impl Override for LosesFirstReply {
    async fn push(
        &self,
        right: &Right,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        let pushed = right.push(jobs, token).await?;
        if self.0.swap(true, Ordering::Relaxed) {
            return Ok(pushed);
        }
        let at = ErrorContext { backend: "mine", operation: Operation::Push };
        Err(Error::Interrupted { at, source: "the reply is lost".into() })
    }
}

/// A part whose first pushes fail: as many as this number.
struct FailsPushes(AtomicU32);

#[async_trait]
impl Override for FailsPushes {
    async fn push(
        &self,
        right: &Right,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        let less = |left: u32| left.checked_sub(1);
        if self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok() {
            return Err(Kind::Unavailable.at(Operation::Push));
        }
        right.push(jobs, token).await
    }
}

/// A part that cancels and lists no job, because its store is down. Counts the claims.
struct FailsWithoutWorkers(Arc<AtomicU32>);

#[async_trait]
impl Override for FailsWithoutWorkers {
    async fn claim(
        &self,
        right: &Right,
        ask: &ClaimRequest,
    ) -> Result<Vec<Delivery>, Error> {
        self.0.fetch_add(1, Ordering::Relaxed);
        right.claim(ask).await
    }

    async fn cancel(&self, _: &Right, _: &JobId) -> Result<Cancelled, Error> {
        Err(Kind::Unavailable.at(Operation::Cancel))
    }

    async fn peek(&self, _: &Right, _: &PeekRequest) -> Result<Page, Error> {
        Err(Kind::Unavailable.at(Operation::Peek))
    }
}

/// A part whose heartbeats fail after this time.
struct FailsToExtend {
    after: Duration,
}

#[async_trait]
impl Override for FailsToExtend {
    async fn extend(
        &self,
        _: &Right,
        _: &WorkerId,
        _: &[Receipt],
        _: Duration,
    ) -> Result<Vec<Extended>, Error> {
        tokio::time::sleep(self.after).await;
        Err(Kind::Unavailable.at(Operation::Extend))
    }
}

/// A part that takes no settlements.
struct FailsToSettle;

#[async_trait]
impl Override for FailsToSettle {
    async fn settle(&self, _: &Right, _: &[Settlement]) -> Result<Vec<Settled>, Error> {
        Err(Kind::Unavailable.at(Operation::Settle))
    }
}

/// A clock that stands still until a part or a test moves it.
#[derive(Debug, Clone, Default)]
struct MovedClock(Arc<Mutex<Duration>>);

impl MovedClock {
    fn advance(&self, by: Duration) {
        *self.0.lock().unwrap() += by;
    }
}

impl Clock for MovedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_ms(0).plus(self.elapsed())
    }

    fn elapsed(&self) -> Duration {
        *self.0.lock().unwrap()
    }

    fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::pending())
    }
}

/// The time after which a call of a silent part fails.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// A part that is silent from the first settlement on. Counts the settlements.
#[derive(Clone, Default)]
struct Silent {
    clock: MovedClock,
    settlements: Arc<AtomicU32>,
}

#[async_trait]
impl Override for Silent {
    async fn claim(
        &self,
        right: &Right,
        ask: &ClaimRequest,
    ) -> Result<Vec<Delivery>, Error> {
        if self.settlements.load(Ordering::Relaxed) == 0 {
            return right.claim(ask).await;
        }
        self.clock.advance(TIME_LIMIT);
        Err(Kind::Interrupted.at(Operation::Claim))
    }

    async fn settle(&self, _: &Right, _: &[Settlement]) -> Result<Vec<Settled>, Error> {
        self.settlements.fetch_add(1, Ordering::Relaxed);
        self.clock.advance(TIME_LIMIT);
        Err(Kind::Interrupted.at(Operation::Settle))
    }
}

/// A part whose claims get no reply. Counts them.
#[derive(Clone, Default)]
struct SilentToClaims {
    clock: MovedClock,
    claims: Arc<AtomicU32>,
}

#[async_trait]
impl Override for SilentToClaims {
    async fn claim(&self, _: &Right, _: &ClaimRequest) -> Result<Vec<Delivery>, Error> {
        self.claims.fetch_add(1, Ordering::Relaxed);
        self.clock.advance(TIME_LIMIT);
        Err(Kind::Interrupted.at(Operation::Claim))
    }
}

/// A queue of a healthy part and two on a silent node. Claims begin at the healthy part.
fn two_silent_parts(silent: &SilentToClaims) -> PartitionedQueue {
    let store = MemoryStore::default();
    let mut parts = vec![in_memory(&store, 0)];
    let on_the_node =
        [1, 2].map(|part| overridden(in_memory(&store, part), silent.clone()));
    parts.extend(on_the_node);
    let environment = Environment::default().with_clock(Arc::new(silent.clock.clone()));
    PartitionedQueue::new(parts, environment).unwrap().starting_at(0)
}

/// A part whose first release of a worker fails.
struct FailsOneRelease {
    kind: Kind,
    has_failed: AtomicBool,
}

#[async_trait]
impl Override for FailsOneRelease {
    async fn release_worker(
        &self,
        right: &Right,
        worker: &WorkerId,
    ) -> Result<Released, Error> {
        if self.has_failed.swap(true, Ordering::Relaxed) {
            return right.release_worker(worker).await;
        }
        Err(self.kind.at(Operation::ReleaseWorker))
    }
}

/// A healthy part of a queue in memory.
fn in_memory(store: &MemoryStore, part: usize) -> Arc<dyn Queue> {
    let name = QueueName::new(format!("emails:{part}")).unwrap();
    Arc::new(store.open(name, Environment::default()))
}

/// The part `healthy`, which makes its calls through `overrides`.
fn overridden(
    healthy: Arc<dyn Queue>,
    overrides: impl Override + 'static,
) -> Arc<dyn Queue> {
    let right = Right { queue: healthy, environment: Environment::default() };
    Arc::new(OverriddenQueue::new(right, Arc::new(overrides)))
}

/// A queue of three parts in memory. The part 1 makes its calls through `overrides`.
fn with_part(overrides: impl Override + 'static) -> (PartitionedQueue, Arc<dyn Queue>) {
    let store = MemoryStore::default();
    let healthy = in_memory(&store, 1);
    let changed = overridden(Arc::clone(&healthy), overrides);
    let parts = vec![in_memory(&store, 0), changed, in_memory(&store, 2)];
    (PartitionedQueue::new(parts, Environment::default()).unwrap(), healthy)
}

/// A queue of two parts, each of which fails in its way. Part 0 has the first turn.
fn failing(kinds: [Kind; 2]) -> PartitionedQueue {
    let store = MemoryStore::default();
    let part = |(at, kind)| overridden(in_memory(&store, at), Failing(kind));
    let parts = kinds.into_iter().enumerate().map(part).collect();
    PartitionedQueue::new(parts, Environment::default()).unwrap().starting_at(0)
}

fn ask(max: u32) -> ClaimRequest {
    let worker = WorkerId::new("worker").unwrap();
    ClaimRequest::new(worker, LEASE).max(NonZeroU32::new(max).unwrap())
}

/// R4: a push whose reply was lost is not pushed again to another part: the producer
/// learns that it may have taken effect.
#[tokio::test]
async fn a_push_without_a_reply_is_not_repeated_at_another_part() {
    let (queue, _) = with_part(LosesFirstReply::default());

    let mut lost = 0;
    for _ in 0..3 {
        if let Err(error) = queue.push(&["job".into()], None).await {
            assert_eq!(error.effect(), Effect::Maybe, "{}", error.full_message());
            lost += 1;
        }
    }

    assert_eq!(lost, 1, "one of three pushes goes to each part");
    let mut stored = 0;
    for part in queue.parts() {
        stored += part.stats().await.unwrap().ready;
    }
    assert_eq!(stored, 3);
}

/// R1, R11: a claim returns the jobs that one part has leased to it, whatever another part
/// answers.
#[tokio::test]
async fn a_claim_keeps_its_jobs_when_another_part_refuses() {
    for kind in [Kind::Unavailable, Kind::ReadOnly, Kind::Full, Kind::Denied] {
        let (queue, _) = with_part(Failing(kind));
        for part in [0, 2] {
            queue.parts()[part]
                .push(&["job".into(), "job".into()], None)
                .await
                .unwrap();
        }

        let mut got = 0;
        for _ in 0..6 {
            if let Ok(jobs) = queue.claim(&ask(3)).await {
                got += jobs.len() as u64;
            }
            let mut leased = 0;
            for part in [0, 2] {
                leased += queue.parts()[part].stats().await.unwrap().leased;
            }
            assert_eq!(leased, got, "{kind:?}: all leased jobs were returned");
        }
        assert_eq!(got, 4, "{kind:?}: the jobs of the other parts are claimed");
    }
}

/// R21: if the reply of a part was lost, its jobs may be leased, whatever the other part
/// answers before or after it.
#[tokio::test]
async fn a_claim_without_the_reply_of_a_part_may_have_happened() {
    use Kind::{Denied, Interrupted, Unavailable, Unreadable};
    for kinds in [
        [Interrupted, Denied],
        [Interrupted, Unavailable],
        [Unavailable, Interrupted],
        [Unavailable, Unreadable],
        [Unreadable, Denied],
    ] {
        let claimed = failing(kinds).claim(&ask(1)).await;
        let both = failing(kinds).settle_and_claim(&[], &ask(1)).await;

        for error in [claimed.unwrap_err(), both.claimed.unwrap_err()] {
            let message = error.full_message();
            assert_eq!(error.effect(), Effect::Maybe, "{kinds:?}: {message}");
        }
    }
}

/// R21: a claim that could wait does so only if it is certain that no part has leased a job
/// to it. The third part has no job.
#[tokio::test]
async fn a_waiting_claim_without_the_reply_of_a_part_says_so() {
    for kind in [Kind::Interrupted, Kind::Unreadable] {
        let (queue, _) = with_part(Failing(kind));

        let claimed = queue.claim(&ask(1).wait(Duration::from_secs(2))).await;

        let error = claimed.expect_err("R21: it ends as if nothing were leased");
        let message = error.full_message();
        assert_ne!(error.effect(), Effect::No, "R21: {kind:?}: {message}");
    }
}

/// R21: a settlement that fails at one part may have happened if another part has applied
/// any of its settlements, and did not happen if these leases were all lost.
#[tokio::test]
async fn a_settlement_that_fails_at_one_part_tells_of_the_others() {
    for (lost, beside_claim) in
        [0, 1, 2].into_iter().flat_map(|lost| [(lost, false), (lost, true)])
    {
        let store = MemoryStore::default();
        let failing = overridden(in_memory(&store, 1), FailsToSettle);
        let parts = vec![in_memory(&store, 0), failing];
        let queue = PartitionedQueue::new(parts, Environment::default()).unwrap();
        let queue = queue.starting_at(0);
        queue.parts()[0].push(&["1".into(), "2".into()], None).await.unwrap();
        queue.parts()[1].push(&["3".into()], None).await.unwrap();
        let jobs = queue.claim(&ask(3)).await.unwrap();
        let done = jobs.into_iter();
        let done = done.map(|job| Settlement::new(job.receipt, Disposition::Done));
        let done: Vec<_> = done.collect();
        // The first two jobs are those of part 0.
        let ended = queue.settle(&done[..lost]).await.unwrap();
        assert_eq!(ended, vec![Settled::Applied; lost]);

        let settled = match beside_claim {
            true => queue.settle_and_claim(&done, &ask(1)).await.settled,
            false => queue.settle(&done).await,
        };

        let effect = settled.unwrap_err().effect();
        let expected = if lost == 2 { Effect::No } else { Effect::Maybe };
        let what = format!("R21: {lost} of the 2 leases of part 0 were lost");
        assert_eq!(effect, expected, "{what}, beside a claim: {beside_claim}");
    }
}

/// R8: a silent node costs one settlement its time limit. Until the node is asked again, the
/// settlements for the other parts do not wait for it: a worker would keep them all back
/// until the leases on the silent node end.
#[tokio::test]
async fn settlements_wait_for_a_silent_part_only_once() {
    for beside_claim in [false, true] {
        let (store, silent) = (MemoryStore::default(), Silent::default());
        let parts = vec![
            in_memory(&store, 0),
            overridden(in_memory(&store, 1), silent.clone()),
        ];
        let clock = Arc::new(silent.clock.clone());
        let environment = Environment::default().with_clock(clock);
        let queue = PartitionedQueue::new(parts, environment).unwrap().starting_at(0);
        for part in queue.parts() {
            part.push(&["1".into(), "2".into()], None).await.unwrap();
        }
        let jobs = queue.claim(&ask(4)).await.unwrap();
        assert_eq!(jobs.len(), 4);
        // The first two jobs are those of part 0.
        let [first, second] = [[0, 2], [1, 3]].map(|of_both_parts| {
            let receipts = of_both_parts.map(|at| jobs[at].receipt.clone());
            receipts.map(|receipt| Settlement::new(receipt, Disposition::Done))
        });
        let settle = async |settlements: &[Settlement]| match beside_claim {
            true => queue.settle_and_claim(settlements, &ask(1)).await.settled,
            false => queue.settle(settlements).await,
        };
        let asked = || silent.settlements.load(Ordering::Relaxed);

        settle(&first[..]).await.unwrap_err();
        let error = settle(&second[..]).await.unwrap_err();

        let what = format!("beside a claim: {beside_claim}");
        assert_eq!(asked(), 1, "the silent part is asked again at once, {what}");
        let finished = queue.parts()[0].stats().await.unwrap().finished;
        assert_eq!(finished, 2, "the jobs of the other part, {what}");
        assert_eq!(error.effect(), Effect::Maybe, "R21: {}", error.full_message());
        silent.clock.advance(3 * TIME_LIMIT);
        settle(&second[..]).await.unwrap_err();
        assert_eq!(asked(), 2, "the silent part is never asked again, {what}");
    }
}

/// A claim that does not wait asks a silent part once, and no more until the part's time is
/// over: each call takes a time limit, and new jobs of the other parts would wait for it.
#[tokio::test]
async fn claims_wait_for_silent_parts_only_once() {
    let silent = SilentToClaims::default();
    let queue = two_silent_parts(&silent);
    let asked = || silent.claims.load(Ordering::Relaxed);

    queue.claim(&ask(1)).await.unwrap_err();
    assert_eq!(asked(), 2, "both silent parts");
    let error = queue.claim(&ask(1)).await.unwrap_err();

    assert_eq!(asked(), 2, "the silent parts are asked again at once");
    assert_eq!(error.effect(), Effect::No, "R21: {}", error.full_message());
    queue.parts()[0].push(&["job".into()], None).await.unwrap();
    assert_eq!(
        queue.claim(&ask(1)).await.unwrap().len(),
        1,
        "the job of the other part"
    );
    silent.clock.advance(3 * TIME_LIMIT);
    queue.claim(&ask(1)).await.unwrap_err();
    assert_eq!(asked(), 4, "the silent parts are never asked again");
}

/// R9: a claim that has a job waits for one silent part, and not for all parts of a silent
/// node: the lease of the job runs meanwhile.
#[tokio::test]
async fn a_claim_with_a_job_waits_for_one_silent_part() {
    let silent = SilentToClaims::default();
    let queue = two_silent_parts(&silent);
    queue.parts()[0].push(&["job".into()], None).await.unwrap();

    let jobs = queue.claim(&ask(3)).await.unwrap();

    assert_eq!(jobs.len(), 1);
    assert_eq!(
        silent.claims.load(Ordering::Relaxed),
        1,
        "silent parts that were asked"
    );
}

/// R25: the check is made before the first write, and again before the next write after a
/// call of a part has failed, whatever the error. Otherwise it is made once.
#[tokio::test]
async fn the_check_is_made_again_after_a_part_has_failed() {
    for kind in [
        Kind::Unavailable,
        Kind::ReadOnly,
        Kind::Full,
        Kind::Denied,
        Kind::Interrupted,
        Kind::Unreadable,
    ] {
        let fails = FailsOneRelease { kind, has_failed: AtomicBool::new(false) };
        let (queue, _) = with_part(fails);
        let checks = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&checks);
        let queue = queue.before_first_write(Arc::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            Box::pin(async { Ok(()) })
        }));
        let worker = ask(1).worker;

        let error = queue.release_worker(&worker).await.unwrap_err();
        assert_eq!(checks.load(Ordering::Relaxed), 1, "{}", error.full_message());
        queue.release_worker(&worker).await.unwrap();
        assert_eq!(checks.load(Ordering::Relaxed), 2, "R25: after {kind:?}");
        queue.release_worker(&worker).await.unwrap();
        assert_eq!(checks.load(Ordering::Relaxed), 2, "{kind:?}: after a success");
    }
}

/// R21: a call whose check failed did nothing, whatever the check has done. The next call
/// makes the check again.
#[tokio::test]
async fn a_call_whose_check_fails_did_not_happen() {
    for kind in [Kind::Unavailable, Kind::Denied, Kind::Interrupted, Kind::Unreadable] {
        let checks = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&checks);
        let parts = vec![in_memory(&MemoryStore::default(), 0)];
        let queue = PartitionedQueue::new(parts, Environment::default()).unwrap();
        let queue = queue.before_first_write(Arc::new(move || {
            let is_first = counted.fetch_add(1, Ordering::Relaxed) == 0;
            Box::pin(async move {
                if is_first { Err(kind.at(Operation::Connect)) } else { Ok(()) }
            })
        }));

        let error = queue.push(&["job".into()], None).await.unwrap_err();

        let message = error.full_message();
        assert_eq!(error.effect(), Effect::No, "R21: {kind:?}: {message}");
        assert_eq!(queue.stats().await.unwrap().ready, 0, "R25: {kind:?}");
        queue.push(&["job".into()], None).await.unwrap();
        assert_eq!(checks.load(Ordering::Relaxed), 2, "R25: {kind:?}");
    }
}

/// R21: a claim that no part has begun leases nothing.
#[tokio::test]
async fn a_claim_that_each_part_refuses_did_not_happen() {
    for kinds in [[Kind::Unavailable, Kind::Denied], [Kind::Full, Kind::Unavailable]] {
        let claimed = failing(kinds).claim(&ask(1)).await;
        let both = failing(kinds).settle_and_claim(&[], &ask(1)).await;

        for error in [claimed.unwrap_err(), both.claimed.unwrap_err()] {
            assert_eq!(error.effect(), Effect::No, "{}", error.full_message());
        }
    }
}

/// R10, R9: while one part fails, pushes go to the others, a heartbeat keeps their leases,
/// and their jobs are recovered.
#[tokio::test]
async fn the_other_parts_go_on_whatever_one_part_answers() {
    for kind in [Kind::Unavailable, Kind::ReadOnly, Kind::Full] {
        let (queue, healthy) = with_part(Failing(kind));
        healthy.push(&["of the part that fails".into()], None).await.unwrap();
        for _ in 0..9 {
            let pushed = queue.push(&["job".into()], None).await;
            assert!(pushed.is_ok(), "{kind:?}: {pushed:?}");
        }
        let jobs = queue.claim(&ask(9)).await.unwrap();
        assert_eq!(jobs.len(), 9, "{kind:?}");
        let held: Vec<_> = jobs.iter().map(|job| job.receipt.clone()).collect();

        let kept = queue.extend(&ask(1).worker, &held, LEASE).await;

        let are_kept = |kept: &Vec<Extended>| {
            kept.iter().all(|one| matches!(one, Extended::Until(_)))
        };
        assert!(kept.as_ref().is_ok_and(are_kept), "{kind:?}: {kept:?}");
        let brief = Duration::from_millis(1);
        queue.extend(&ask(1).worker, &held, brief).await.unwrap();
        tokio::time::sleep(2 * brief).await;
        let recovered = queue.recover(NonZeroU32::new(100).unwrap()).await;
        let requeued = recovered.as_ref().map(|recovered| recovered.requeued);
        assert_eq!(requeued.ok(), Some(9), "{kind:?}: {recovered:?}");
    }
}

/// R10: a heartbeat that one part has answered does not wait for a silent part, also if a
/// third part fails in between.
#[tokio::test]
async fn a_failed_part_does_not_make_a_heartbeat_wait_for_a_silent_one() {
    let store = MemoryStore::default();
    let fails = FailsToExtend { after: Duration::from_millis(50) };
    let is_silent = FailsToExtend { after: Duration::MAX };
    let parts = vec![
        in_memory(&store, 0),
        overridden(in_memory(&store, 1), fails),
        overridden(in_memory(&store, 2), is_silent),
    ];
    let queue = PartitionedQueue::new(parts, Environment::default()).unwrap();
    for (number, part) in queue.parts().iter().enumerate() {
        part.push(&[NewJob::new(number.to_string())], None).await.unwrap();
    }
    let jobs = queue.claim(&ask(3)).await.unwrap();
    assert_eq!(jobs.len(), 3);
    let held: Vec<_> = jobs.iter().map(|job| job.receipt.clone()).collect();
    let lease = Duration::from_secs(6);

    let worker = ask(1).worker;
    let extending = queue.extend(&worker, &held, lease);
    let extended = tokio::time::timeout(lease, extending).await;

    let extended = extended.expect("R10: it ends before the leases").unwrap();
    assert_eq!(extended.len(), jobs.len());
    for (job, extended) in jobs.iter().zip(extended) {
        let is_kept = matches!(extended, Extended::Until(_));
        assert!(is_kept || extended == Extended::Unknown, "{extended:?}");
        assert_eq!(is_kept, &job.payload[..] == b"0", "{extended:?}");
    }
}

/// Failed calls of operators, too, show that a part is down. Claims then ask it last, because
/// a silent node would cost each of them a time limit.
#[tokio::test]
async fn a_part_that_fails_without_workers_is_asked_last() {
    for call in ["cancel", "peek"] {
        let claims = Arc::default();
        let (queue, _) = with_part(FailsWithoutWorkers(Arc::clone(&claims)));
        for _ in 0..4 {
            let error = match call {
                "cancel" => {
                    let id = JobId::new("of-no-part").unwrap();
                    queue.cancel(&id).await.err()
                }
                _ => {
                    let dead = PeekRequest::new(JobState::Dead, NonZeroU32::MIN);
                    queue.peek(&dead).await.err()
                }
            };
            assert!(
                matches!(error, Some(Error::Unavailable { .. })),
                "{call}: {error:?}"
            );
        }
        for of in [0, 2] {
            let jobs = ["job".into(), "job".into(), "job".into()];
            queue.parts()[of].push(&jobs, None).await.unwrap();
        }

        for _ in 0..6 {
            assert_eq!(queue.claim(&ask(1)).await.unwrap().len(), 1, "{call}");
        }

        assert_eq!(claims.load(Ordering::Relaxed), 0, "{call}");
    }
}

/// A client that makes no other calls than pushes finds out that a part is back.
#[tokio::test]
async fn a_client_that_only_pushes_returns_to_a_part() {
    let (queue, healthy) = with_part(FailsPushes(AtomicU32::new(6)));
    let began = Instant::now();

    while healthy.stats().await.unwrap().ready == 0 {
        queue.push(&["job".into()], None).await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(20), "the part gets no job");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A part is left out only while another part takes the pushes. If all parts are left out, a
/// push tries each of them, because their store may be back.
#[tokio::test]
async fn a_push_tries_the_parts_that_are_left_out_if_no_other_is_up() {
    let (store, clock) = (MemoryStore::default(), MovedClock::default());
    let environment = Environment::default().with_clock(Arc::new(clock));
    let part = |at| overridden(in_memory(&store, at), FailsPushes(AtomicU32::new(4)));
    let parts = (0..2).map(part).collect();
    let queue = PartitionedQueue::new(parts, environment).unwrap();
    for _ in 0..4 {
        let error = queue.push(&["job".into()], None).await.unwrap_err();
        assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    }

    queue.push(&["job".into()], None).await.unwrap();

    assert_eq!(queue.stats().await.unwrap().ready, 1);
}
