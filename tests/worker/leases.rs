//! Tests of leases: a worker keeps its job while the handler runs, and stops the
//! handler when the lease is lost.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use relq::{
    Error, NewJob, ReliableQueue, ReliableQueueExt, WorkerId,
    capabilities::LeaseScope,
    environment::Timestamp,
    operator::{Cancelled, JobState, JobView, PeekRequest, StateDetail},
    outcome::Settled,
    worker::{Cancellation, CancellationToken, Failure, JobContext, Worker},
};
use tokio::runtime;

use crate::{
    blocked_runtime::{Beats, block_until},
    clocks::PartingClock,
    faulty::{Fault, Faulty},
    fixture::{
        Fixture, LIMIT, LONG_LEASE, Running, SHORT_LEASE, eventually, queue_name,
        worker_on,
    },
};

/// A worker's clock that a test moves no further than the heartbeats have come. A machine
/// that is busy then ends no lease.
#[derive(Default)]
pub(crate) struct BeatenTime {
    clock: PartingClock,
    beats: Beats,
}

impl BeatenTime {
    /// A worker with two slots on the queue, whose heartbeats are counted.
    pub(crate) fn worker_on(&self, queue: Arc<dyn ReliableQueue>) -> Worker {
        let worker = worker_on(self.beats.of(queue)).concurrency(2.try_into().unwrap());
        worker.environment(self.clock.environment())
    }

    /// Moves the clock by three times `LONG_LEASE`, with a heartbeat in each third of
    /// one.
    pub(crate) fn pass(&self) {
        for _ in 0..9 {
            self.pass_to_next_beat();
        }
    }

    /// Moves the clock by a third of `LONG_LEASE`, and waits for the heartbeat that is due
    /// then.
    pub(crate) fn pass_to_next_beat(&self) {
        let seen = self.beats.count();
        self.clock.advance(LONG_LEASE / 3);
        block_until(|| self.beats.count() > seen);
    }

    /// Moves the clock from heartbeat to heartbeat until `is_so` returns true, for at most
    /// `LIMIT`. A handler must already run, because a worker without a job sends none.
    pub(crate) async fn pass_until(&self, is_so: impl Fn() -> bool) {
        let (start, mut awaited) = (Instant::now(), 0);
        while !is_so() {
            assert!(start.elapsed() < LIMIT, "it does not come true");
            if self.beats.count() >= awaited {
                awaited = self.beats.count() + 1;
                self.clock.advance(LONG_LEASE / 3);
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

/// The ends of all leases in the store by the payloads of their jobs, read by a thread
/// with a runtime and a connection of its own.
pub(crate) fn lease_ends(url: &str) -> BTreeMap<Vec<u8>, Timestamp> {
    let reading = || async {
        let queue = relq::connect(url, &queue_name()).await.unwrap();
        let all = PeekRequest::new(JobState::Leased, 100.try_into().unwrap());
        queue.peek(&all).await.unwrap().jobs
    };
    let jobs = thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let runtime = runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(reading())
        });
        thread.join().unwrap()
    });
    let end = |job: JobView| match job.detail {
        StateDetail::Leased { until, .. } => (job.payload.to_vec(), until),
        other => panic!("{other:?}"),
    };
    jobs.into_iter().map(end).collect()
}

/// R7: a handler's result is not sent to the store after the lease was lost.
pub(crate) async fn lost_lease_fires_the_token_and_acks_nothing(fixture: Fixture) {
    fixture.push("contended").await;
    let id = WorkerId::new("loser").unwrap();
    let ends = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&ends);
    let counted = Arc::new(Faulty::new(fixture.queue.clone()));

    let time = BeatenTime::default();
    let worker = Running::start(
        time.worker_on(counted.clone()).worker_id(id.clone()).grace(LONG_LEASE * 100),
        move |job: JobContext| {
            let seen = Arc::clone(&seen);
            async move {
                job.cancelled().await;
                seen.lock().unwrap().push(job.cancellation());
                Ok::<_, Failure>(())
            }
        },
    );
    worker.until_running(1).await;
    fixture.queue.pause().await.unwrap();
    assert_eq!(fixture.queue.release_worker(&id).await.unwrap().jobs, 1);
    time.pass_until(|| worker.progress.summary().lost == 1).await;

    assert_eq!((worker.stop().await.done, counted.settlements.calls()), (0, 0));
    assert_eq!(*ends.lock().unwrap(), [Some(Cancellation::LeaseLost)]);
    let stats = fixture.stats().await;
    assert_eq!((stats.ready, stats.finished), (1, 0));
}

/// The handler of a cancelled job is notified at the next heartbeat, and nothing is
/// settled.
pub(crate) async fn cancelled_job_fires_the_token_and_acks_nothing(fixture: Fixture) {
    fixture.push("unwanted").await;
    let running = Arc::new(Mutex::new(None));
    let ends = Arc::new(Mutex::new(Vec::new()));
    let (started, seen) = (Arc::clone(&running), Arc::clone(&ends));
    let counted = Arc::new(Faulty::new(fixture.queue.clone()));

    let time = BeatenTime::default();
    let worker = Running::start(
        time.worker_on(counted.clone()).grace(LONG_LEASE * 100),
        move |job: JobContext| {
            let seen = Arc::clone(&seen);
            *started.lock().unwrap() = Some(job.id().clone());
            async move {
                job.cancelled().await;
                seen.lock().unwrap().push(job.cancellation());
                Ok::<_, Failure>(())
            }
        },
    );
    eventually(|| running.lock().unwrap().is_some()).await;
    let id = running.lock().unwrap().clone().unwrap();
    let cancelled = fixture.queue.cancel(&id).await.unwrap();
    time.pass_until(|| worker.progress.summary().cancelled == 1).await;

    assert_eq!(cancelled, Cancelled::Removed(JobState::Leased));
    assert_eq!((worker.stop().await.done, counted.settlements.calls()), (0, 0));
    assert_eq!(*ends.lock().unwrap(), [Some(Cancellation::Cancelled)]);
    let stats = fixture.stats().await;
    assert_eq!((stats.cancelled, stats.finished, stats.unfinished()), (1, 0, 0));
}

/// R6: if no heartbeat succeeds, the worker treats the lease as ended by its own clock,
/// before the store gives the job to another worker.
pub(crate) async fn unheard_heartbeats_end_the_lease(fixture: Fixture) {
    fixture.push("cut off").await;
    let ends = Arc::new(Mutex::new(Vec::new()));
    let (seen, is_first) = (Arc::clone(&ends), Arc::new(AtomicBool::new(true)));

    let deaf =
        Faulty::new(fixture.queue.clone()).on_extend(|_, _| Some(Fault::Unavailable));
    let worker = Running::start(
        worker_on(Arc::new(deaf)).lease(SHORT_LEASE),
        move |job: JobContext| {
            let seen = Arc::clone(&seen);
            let is_first = is_first.swap(false, SeqCst);
            async move {
                if is_first {
                    job.cancelled().await;
                    seen.lock().unwrap().push(job.cancellation());
                }
                Ok::<_, Failure>(())
            }
        },
    );
    worker.until(|summary| summary.done == 1).await;

    // A machine that stands still also ends the leases of later attempts.
    assert!(worker.stop().await.lost >= 1);
    assert_eq!(*ends.lock().unwrap(), [Some(Cancellation::LeaseLost)]);
    assert_eq!(fixture.stats().await.finished, 1);
}

/// R6: a job whose own lease is shorter than the worker's lease gets heartbeats often
/// enough to keep it.
pub(crate) async fn own_lease_of_a_job_is_kept(fixture: Fixture) {
    let short = NewJob::new("short").lease(LONG_LEASE);
    if fixture.queue.capabilities().lease_scope == LeaseScope::Worker {
        let refused = fixture.queue.push_one(short).await;
        assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
        return;
    }
    fixture.push(short).await;
    fixture.push("long").await;
    let (time, is_over) = (BeatenTime::default(), CancellationToken::new());
    let over = is_over.clone();

    let worker = time.worker_on(fixture.queue.clone()).lease(LONG_LEASE * 100);
    let worker = Running::start(worker, move |_: JobContext| {
        let over = over.clone();
        async move {
            over.cancelled().await;
            Ok::<_, Failure>(())
        }
    });
    worker.until_running(2).await;
    let before = lease_ends(&fixture.url);
    time.pass();
    let after = lease_ends(&fixture.url);
    is_over.cancel();
    worker.until(|summary| summary.done == 2).await;

    let [before, after] = [before, after].map(|ends| ends[&b"short"[..]]);
    assert!(before < after, "{before:?} {after:?}");
    assert_eq!(worker.stop().await.done, 2);
}

/// A handler that ignores its cancellation token is dropped after the grace time, so
/// that its slot becomes free.
pub(crate) async fn deaf_handler_is_dropped_after_the_grace_time(fixture: Fixture) {
    fixture.push("contended").await;
    let id = WorkerId::new("loser").unwrap();

    let time = BeatenTime::default();
    let worker = time.worker_on(fixture.queue.clone());
    let worker = worker.worker_id(id.clone()).grace(Duration::ZERO);
    let worker = Running::start(worker, async |_: JobContext| {
        std::future::pending::<Result<(), Failure>>().await
    });
    worker.until_running(1).await;
    fixture.queue.pause().await.unwrap();
    fixture.queue.release_worker(&id).await.unwrap();
    time.pass_until(|| worker.progress.summary().lost == 1).await;

    assert_eq!(worker.progress.running(), 0);
    worker.stop().await;
}

/// A handler may cancel its own token, for example because code that it calls does so at
/// its end: it is not asked to stop by that.
pub(crate) async fn own_token_ends_no_handler(fixture: Fixture) {
    fixture.push("job").await;
    let worker = fixture.worker().grace(Duration::ZERO);

    let worker = Running::start(worker, async |job: JobContext| {
        job.token().cancel();
        // A handler that is asked to stop is dropped here, because it has no grace time.
        tokio::time::sleep(Duration::from_millis(50)).await;
        match job.cancellation() {
            None if job.attempt() == 1 => Ok(()),
            asked => {
                Err(Failure::dead(format!("{asked:?}, attempt {}", job.attempt())))
            }
        }
    });
    worker.until(|all| all.done + all.retried + all.dead + all.given_back > 0).await;

    let summary = worker.stop().await;
    assert_eq!(summary.done, 1, "{summary:?}");
}

/// R7: if the machine was suspended for longer than the lease, the result of the
/// handler is not applied.
pub(crate) async fn settlement_after_a_suspend_changes_nothing(fixture: Fixture) {
    fixture.push("contended").await;
    let (clock, awake) = (PartingClock::default(), CancellationToken::new());
    let running = Arc::new(AtomicUsize::new(0));
    let (woken, entered) = (awake.clone(), Arc::clone(&running));

    let worker = fixture
        .worker()
        .lease(SHORT_LEASE)
        .concurrency(1.try_into().unwrap())
        .environment(clock.environment());
    let worker = Running::start(worker, move |_: JobContext| {
        entered.fetch_add(1, SeqCst);
        let woken = woken.clone();
        async move {
            woken.cancelled().await;
            Ok::<_, Failure>(())
        }
    });
    eventually(|| running.load(SeqCst) == 1).await;
    clock.suspend();
    let stolen = fixture.recover_and_claim_one().await;
    clock.resume();
    awake.cancel();
    worker.until(|summary| summary.lost == 1).await;

    assert_eq!(fixture.stats().await.leased, 1);
    assert_eq!(fixture.queue.ack(&stolen.receipt).await.unwrap(), Settled::Applied);
    assert_eq!(worker.stop().await.done, 0);
    assert_eq!(fixture.stats().await.finished, 1);
}

/// R7: after a suspend the worker asks the store at once whether the lease still runs,
/// not only at the next heartbeat.
pub(crate) async fn suspend_that_lost_the_lease_fires_the_token(fixture: Fixture) {
    fixture.push("contended").await;
    let id = WorkerId::new("sleeper").unwrap();
    let clock = PartingClock::default();

    let worker = fixture.worker().worker_id(id.clone());
    let worker = worker.environment(clock.environment());
    let running = Arc::new(AtomicUsize::new(0));
    let entered = Arc::clone(&running);
    let worker = Running::start(worker, move |job: JobContext| {
        entered.fetch_add(1, SeqCst);
        async move {
            job.cancelled().await;
            Ok::<_, Failure>(())
        }
    });
    eventually(|| running.load(SeqCst) == 1).await;
    fixture.queue.pause().await.unwrap();
    assert_eq!(fixture.queue.release_worker(&id).await.unwrap().jobs, 1);
    clock.step_wall(LONG_LEASE * 2);
    worker.until(|summary| summary.lost == 1).await;

    assert_eq!(worker.stop().await.done, 0);
}

/// R18: a worker whose wall clock is set forward loses no running job.
pub(crate) async fn set_clock_ends_no_lease(fixture: Fixture) {
    fixture.push("running").await;
    let clock = PartingClock::default();
    let (stops, resumes) = (clock.clone(), clock.clone());
    // The worker waits a second for the reply, and the store may take longer. So the
    // worker's clock stands still meanwhile.
    let counted = Faulty::new(fixture.queue.clone()).on_extend(move |_, _| {
        stops.stop();
        let resumes = resumes.clone();
        Some(Fault::Overtaken(Arc::new(move || resumes.resume())))
    });
    let counted = Arc::new(counted);

    let worker = worker_on(counted.clone());
    let worker = worker.environment(clock.environment());
    let running = Arc::new(AtomicUsize::new(0));
    let entered = Arc::clone(&running);
    let worker = Running::start(worker, move |job: JobContext| {
        entered.fetch_add(1, SeqCst);
        async move {
            tokio::select! {
                () = job.cancelled() => Err("the lease was taken for lost"),
                // Run for longer than the time within which the store must confirm the
                // lease.
                () = tokio::time::sleep(Duration::from_secs(3)) => Ok(()),
            }
        }
    });
    eventually(|| running.load(SeqCst) == 1).await;
    let before = counted.extensions.calls();
    clock.step_wall(Duration::from_secs(7 * 3600));
    eventually(|| counted.extensions.calls() > before).await;
    fixture.until(|stats| stats.finished == 1).await;

    let summary = worker.stop().await;
    assert_eq!((summary.done, summary.lost, summary.retried), (1, 0, 0));
}
