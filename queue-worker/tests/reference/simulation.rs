//! Runs a worker on a scenario, and moves the time when the worker is idle.
//!
//! The worker's tasks run on a runtime of this thread. The runtime's own clock is
//! paused, so a sleep on it ends as soon as no task is ready. The heartbeat runs on
//! another thread. The simulation adds a task to that thread's runtime, which yields
//! several times so that the heartbeat can act. If neither thread has used the virtual
//! clock by then, both are idle.

use std::{
    num::NonZeroU32,
    sync::{Arc, atomic::Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use relq_core::{Queue, ReliableQueue, WorkerId};
use relq_worker::{
    JobContext, Progress, Queues, RetryPolicy, Worker, WorkerError, WorkerQueue,
};
use tokio::{
    sync::oneshot,
    task::{JoinHandle, yield_now},
};

use crate::{
    clock::EnteredBy,
    handler::ScriptedHandler,
    observed::{Events, Observed},
    other_queue::OtherQueue,
    queue::ScriptedQueue,
    scenario::{End, Scenario, ms},
    store::World,
    trace::{Event, What},
};

/// The number of calls after which a run is stopped: no worker needs so many.
const MOST_CALLS: usize = 20_000;

/// How long, in real time, the simulation waits for the heartbeat thread to start or
/// end.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long, in real time, the heartbeat thread may take to end after its runtime
/// ended.
const THREAD_END: Duration = Duration::from_millis(300);

/// The longest delay before a retry in the policy that the worker is given.
pub(crate) const LONGEST_RETRY: Duration = Duration::from_secs(1);

/// The scenario, trace and store at the end of a run.
pub(crate) struct Finished {
    pub scenario: Scenario,
    pub events: Vec<Event>,
    /// The events that the worker's observer received.
    pub observed: Events,
    /// How many jobs the store still leases to the worker.
    pub leased_at_end: usize,
    /// How many jobs are neither finished nor dead.
    pub unfinished: u64,
}

pub(crate) fn simulate(scenario: &Scenario) -> Finished {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(Simulation::new(scenario).run())
}

struct Simulation {
    world: Arc<World>,
    id: WorkerId,
    observed: Observed,
    is_heartbeat_gone: bool,
}

impl Simulation {
    fn new(scenario: &Scenario) -> Self {
        let id = "reference-worker".parse().unwrap();
        let observed = Observed::default();
        Self { world: World::new(scenario), id, observed, is_heartbeat_gone: false }
    }

    async fn run(mut self) -> Finished {
        self.world.abandon();
        self.plan_events();
        let mut worker = self.start();
        self.idle().await;
        let began = Instant::now();
        while self.world.heartbeat.lock().unwrap().is_none()
            && !worker.is_finished()
            && began.elapsed() < PATIENCE
        {
            thread::sleep(Duration::from_micros(50));
            yield_now().await;
        }
        while !worker.is_finished() {
            self.quiet().await;
            self.stop_when_finished();
            if worker.is_finished() {
                break;
            }
            if self.is_too_long() || !self.next_event(&worker).await {
                self.world.trace.record(self.world.now(), What::Hangs);
                worker.abort();
                let _aborted = (&mut worker).await;
                break;
            }
        }
        if worker.is_finished() {
            let ended = worker.await;
            assert!(ended.is_ok() || ended.unwrap_err().is_cancelled());
        }
        self.finished()
    }

    fn finished(self) -> Finished {
        let stats = self.world.stats();
        Finished {
            scenario: self.world.scenario.clone(),
            events: self.world.trace.events(),
            observed: self.observed.events(),
            leased_at_end: self.world.leased_to(&self.id),
            unfinished: stats.unfinished(),
        }
    }

    /// Completes the next sleep or event. If there is none, waits for the heartbeat
    /// thread, which may be about to end. Returns false if nothing can happen any more.
    async fn next_event(&self, worker: &JoinHandle<()>) -> bool {
        if let Some(entered_by) = self.world.clock.complete_next() {
            if entered_by == EnteredBy::Heartbeat {
                self.world.heartbeat_may_act.store(true, Relaxed);
            }
            return true;
        }
        let (before, began) = (self.world.clock.uses(), Instant::now());
        while began.elapsed() < PATIENCE {
            thread::sleep(Duration::from_micros(100));
            self.idle().await;
            if worker.is_finished() || self.world.clock.uses() != before {
                return true;
            }
        }
        false
    }

    fn is_too_long(&self) -> bool {
        let World { scenario, trace, .. } = &*self.world;
        self.world.now() > scenario.longest() + ms(400_000)
            || trace.calls() > MOST_CALLS
    }

    /// Returns when both threads of the worker are idle.
    async fn quiet(&mut self) {
        let may_act = self.world.heartbeat_may_act.swap(false, Relaxed);
        let pings = may_act || self.world.trace.is_ending();
        loop {
            let before = self.world.clock.uses();
            self.idle().await;
            // The worker may have woken the heartbeat thread, so let that thread act.
            if pings || self.world.clock.uses() != before {
                self.ping_heartbeat().await;
                self.idle().await;
            }
            if self.world.clock.uses() == before {
                return;
            }
        }
    }

    /// Returns when no task of this runtime is ready.
    async fn idle(&self) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }

    async fn ping_heartbeat(&mut self) {
        let handle = self.world.heartbeat.lock().unwrap().clone();
        let Some(handle) = handle.filter(|_| !self.is_heartbeat_gone) else { return };
        let (pong, ponged) = oneshot::channel();
        handle.spawn(async move {
            for _ in 0..4 {
                yield_now().await;
            }
            pong.send(())
        });
        if ponged.await.is_err() {
            // The heartbeat's runtime has ended. Its thread ends next, and the worker
            // may be waiting for that.
            self.is_heartbeat_gone = true;
            let (before, began) = (self.world.clock.uses(), Instant::now());
            // During a shutdown, the end of this thread is the last thing that the
            // worker waits for. So nothing else can happen, and it may take longer.
            let limit =
                if self.world.trace.is_ending() { PATIENCE } else { THREAD_END };
            while !self.world.trace.is_over()
                && self.world.clock.uses() == before
                && began.elapsed() < limit
            {
                thread::sleep(Duration::from_micros(100));
                self.idle().await;
            }
        }
    }

    fn start(&self) -> JoinHandle<()> {
        let queue = Arc::new(ScriptedQueue(Arc::clone(&self.world)));
        let worker = self.worker(Arc::clone(&queue) as _);
        let progress = worker.progress();
        let handler = Arc::new(ScriptedHandler::new(&self.world));
        let handle = move |job: JobContext| {
            let handler = Arc::clone(&handler);
            async move { handler.handle(job).await }
        };
        let world = Arc::clone(&self.world);
        tokio::spawn(async move {
            let ended = match world.scenario.end {
                End::UntilEmpty => {
                    let queue = queue as Arc<dyn Queue>;
                    worker.run_until_empty(queue, Duration::MAX, handle).await
                }
                _ => worker.run(handle).await,
            };
            let summary = match &ended {
                Ok(summary) => *summary,
                Err(_) => Progress::summary(&progress),
            };
            let result = ended.map(|_| ()).map_err(|error| words(&error));
            world.trace.record(world.now(), What::Over { result, summary });
            world.clock.used();
        })
    }

    fn worker(&self, queue: Arc<dyn ReliableQueue>) -> Worker {
        let settings = &self.world.scenario.settings;
        let retry = RetryPolicy::exponential(ms(100), LONGEST_RETRY).unwrap();
        let mut worker = self
            .worker_on(queue)
            .worker_id(self.id.clone())
            .concurrency(NonZeroU32::new(settings.concurrency).unwrap())
            .lease(ms(settings.lease))
            .grace(ms(settings.grace))
            .give_up_after(ms(settings.give_up_after))
            .retry(retry)
            .environment(self.world.environment.clone());
        if let Some(jobs) = NonZeroU32::new(settings.prefetch) {
            worker = worker.prefetch(jobs);
        }
        if let Some(timeout) = settings.timeout {
            worker = worker.timeout(ms(timeout));
        }
        if let Some(interval) = settings.reap_every {
            worker = worker.reap_every(ms(interval));
        }
        worker.stop_on(self.asked(Request::Stop)).halt_on(self.asked(Request::Halt))
    }

    /// A worker on the queue, alone or after another queue. The observer is told the
    /// events of the queue only.
    fn worker_on(&self, queue: Arc<dyn ReliableQueue>) -> Worker {
        let observed = self.observed.clone();
        let Some(store) = self.world.scenario.other_queue else {
            return Worker::new(queue).observe(observed);
        };
        let other_queue = Arc::new(OtherQueue::new(store, &self.world));
        let [first, second] = ["other", "scripted"].map(|it| it.parse().unwrap());
        Worker::on(Queues::strict([
            WorkerQueue::new(first, other_queue),
            WorkerQueue::new(second, queue).observe(observed),
        ]))
    }

    /// The future of a request that the scenario makes at a set time, or when every job
    /// has ended.
    fn asked(&self, request: Request) -> impl Future<Output = ()> + Send + use<> {
        let world = Arc::clone(&self.world);
        let clock = world.clock.clone();
        async move {
            let delay = match (world.scenario.end, request) {
                (End::Stop { at, .. }, Request::Stop) => Some(at),
                (End::Stop { at, halt_after }, Request::Halt) => {
                    halt_after.map(|after| at + after)
                }
                (End::WhenFinished, Request::Stop) => None,
                _ => std::future::pending().await,
            };
            use relq_core::environment::Clock;
            match (delay, request) {
                (Some(delay), _) => clock.sleep(ms(delay)).await,
                (None, Request::Stop) => world.all_ended.notified().await,
                (None, Request::Halt) => std::future::pending().await,
            }
            let what = match request {
                Request::Stop => What::StopAsked,
                Request::Halt => What::HaltAsked,
            };
            world.trace.record(world.now(), what);
            clock.used();
        }
    }

    /// Asks the worker to stop when every job that the scenario pushes has ended.
    fn stop_when_finished(&self) {
        let World { scenario, .. } = &*self.world;
        let is_asked = self.world.stop_asked.load(Relaxed);
        if is_asked || !matches!(scenario.end, End::WhenFinished) {
            return;
        }
        let is_quiet = self.world.now() > scenario.quiet_from();
        if is_quiet && self.world.stats().unfinished() == 0 {
            self.world.stop_asked.store(true, Relaxed);
            self.world.all_ended.notify_one();
        }
    }

    /// Adds the scenario's pushes, cancellations and suspends to the list of events.
    fn plan_events(&self) {
        let World { scenario, clock, .. } = &*self.world;
        for (index, job) in scenario.jobs.iter().enumerate() {
            let world = Arc::clone(&self.world);
            clock.after(ms(job.push_at), move || world.push(index));
            if let Some(cancel_at) = job.cancel_at {
                let world = Arc::clone(&self.world);
                clock.after(ms(cancel_at), move || world.cancel(index));
            }
        }
        for suspend in &scenario.suspends {
            let (world, length) = (Arc::clone(&self.world), ms(suspend.length));
            clock.after(ms(suspend.at), move || {
                world.trace.record(world.now(), What::Suspended { length });
                world.clock.suspend(length);
            });
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Request {
    Stop,
    Halt,
}

fn words(error: &WorkerError) -> String {
    match error {
        WorkerError::Claim(_) => "claim".into(),
        WorkerError::Store(_) => "store".into(),
        WorkerError::Queue { source, .. } => words(source),
        other => format!("{other:?}"),
    }
}
