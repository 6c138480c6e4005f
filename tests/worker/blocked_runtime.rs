//! Handlers that block every thread of the runtime: the heartbeats, which have a thread of
//! their own, go on.

use std::{
    collections::HashSet,
    num::NonZeroU32,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread::{self, ThreadId},
    time::{Duration, Instant},
};

use relq::{
    ReliableQueue, ReliableQueueExt,
    worker::{Failure, JobContext, Queues},
};

use crate::{
    clocks::PartingClock,
    faulty::{Fault, Faulty},
    fixture::{Dropped, Fixture, LIMIT, LONG_LEASE, Running},
    leases::{BeatenTime, lease_ends},
    queues::{served, worker_on_several},
};

/// The work of a handler that blocks its thread.
type Blocking = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send>>;

/// Handlers that block their threads until this value is dropped.
pub(crate) struct BlockingHandlers {
    begun: Arc<AtomicUsize>,
    is_over: Dropped,
}

impl BlockingHandlers {
    pub(crate) fn new() -> Self {
        let is_over = Dropped(Arc::new(AtomicBool::new(false)));
        Self { begun: Arc::default(), is_over }
    }

    /// How many handlers have begun.
    pub(crate) fn begun(&self) -> usize {
        self.begun.load(SeqCst)
    }

    pub(crate) fn handler(&self) -> impl Fn(JobContext) -> Blocking + use<> {
        let (begun, is_over) = (Arc::clone(&self.begun), Arc::clone(&self.is_over.0));
        move |_| {
            let (begun, is_over) = (Arc::clone(&begun), Arc::clone(&is_over));
            let blocking: Blocking = Box::pin(async move {
                begun.fetch_add(1, SeqCst);
                while !is_over.load(SeqCst) {
                    thread::sleep(Duration::from_millis(5));
                }
                Ok(())
            });
            blocking
        }
    }
}

/// Blocks the thread of the test until `is_so` returns true, for at most `LIMIT`. While
/// handlers block the threads of the runtime, none of its timers fires.
pub(crate) fn block_until(is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LIMIT, "it does not come true");
        thread::sleep(Duration::from_millis(5));
    }
}

/// The heartbeats of a queue that the store has answered, and the threads that sent them.
#[derive(Default)]
pub(crate) struct Beats {
    answers: Arc<AtomicUsize>,
    threads: Arc<Mutex<HashSet<ThreadId>>>,
}

impl Beats {
    /// Wraps the queue so that its heartbeats are recorded.
    pub(crate) fn of(&self, queue: Arc<dyn ReliableQueue>) -> Arc<dyn ReliableQueue> {
        let (answers, threads) = (Arc::clone(&self.answers), Arc::clone(&self.threads));
        Arc::new(Faulty::new(queue).on_extend(move |_, _| {
            threads.lock().unwrap().insert(thread::current().id());
            let answers = Arc::clone(&answers);
            Some(Fault::Overtaken(Arc::new(move || {
                answers.fetch_add(1, SeqCst);
            })))
        }))
    }

    pub(crate) fn count(&self) -> usize {
        self.answers.load(SeqCst)
    }
}

/// R6: heartbeats continue while handlers block all threads of the runtime.
pub(crate) async fn blocked_runtime_keeps_its_jobs(fixture: Fixture) {
    fixture.push_many(2).await;
    let (time, handlers) = (BeatenTime::default(), BlockingHandlers::new());

    let worker = time.worker_on(fixture.queue.clone());
    let worker = Running::start(worker, handlers.handler());
    // Two handlers block both threads of the runtime.
    block_until(|| handlers.begun() == 2);
    let before = lease_ends(&fixture.url);
    time.pass();
    let after = lease_ends(&fixture.url);
    assert_eq!(handlers.begun(), 2);
    drop(handlers);
    worker.until(|summary| summary.done == 2).await;

    assert_eq!((before.len(), after.len()), (2, 2));
    assert!(after.iter().all(|(job, end)| before[job] < *end), "{before:?} {after:?}");
    assert_eq!(worker.stop().await.done, 2);
}

/// The heartbeats of all queues run on one thread, and keep the leases of all while
/// handlers block every thread of the runtime.
pub(crate) async fn blocked_runtime_keeps_the_jobs_of_all_queues(fixture: Fixture) {
    let second = fixture.open_another("second").await;
    fixture.push("blocks").await;
    second.push_one("blocks".into()).await.unwrap();
    let beats = [Beats::default(), Beats::default()];
    let (clock, handlers) = (PartingClock::default(), BlockingHandlers::new());

    let queues = Queues::weighted([
        (served("first", beats[0].of(fixture.queue.clone())), NonZeroU32::MIN),
        (served("second", beats[1].of(second.clone())), NonZeroU32::MIN),
    ]);
    let worker = worker_on_several(queues);
    let worker = worker.environment(clock.environment());
    let worker = Running::start(worker, handlers.handler());
    // Two handlers block both threads of the runtime.
    block_until(|| handlers.begun() == 2);
    // Three leases pass for the worker, no faster than the heartbeats of both queues come.
    for _ in 0..9 {
        let seen = beats.each_ref().map(Beats::count);
        clock.advance(LONG_LEASE / 3);
        block_until(|| {
            beats.iter().zip(seen).all(|(beats, seen)| beats.count() > seen)
        });
    }
    drop(handlers);
    worker.until(|summary| summary.done == 2).await;
    let summary = worker.stop().await;

    assert_eq!((summary.done, summary.lost), (2, 0));
    let threads = beats.map(|beats| beats.threads.lock().unwrap().clone());
    assert_eq!(threads[0].len(), 1, "one thread sends all heartbeats");
    assert_eq!(threads[0], threads[1]);
}
