//! The store behind the scripted queue: a correct queue in memory, the requests that
//! travel to it, and the claims that wait in it.

use std::{
    collections::HashMap,
    future::Future,
    num::NonZeroU32,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use relq_core::{
    ClaimRequest, Delivery, Error, JobId, NewJob, Operator, Priority, QueueName,
    ReliableQueue, Stats, WorkerId,
    capabilities::{Capabilities, Capability, LeaseScope},
    environment::Environment,
    error::{ErrorContext, Operation},
    operator::{JobState, PeekRequest, StateDetail},
    outcome::Pushed,
};
use relq_memory::{MemoryQueue, MemoryStore};
use tokio::{
    runtime::Handle,
    sync::{Notify, oneshot},
};

use crate::{
    clock::{SeededRandomness, VirtualClock},
    scenario::{Fault, FaultKind, JobPlan, Scenario, keeps_result, ms},
    trace::{Reply, Request, Trace, What},
};

/// The state that the scripted queue, the handlers and the simulation share.
pub(crate) struct World {
    pub scenario: Scenario,
    pub clock: VirtualClock,
    pub environment: Environment,
    pub trace: Trace,
    pub memory: MemoryQueue,
    pub capabilities: Capabilities,
    /// A handle of the heartbeat thread's runtime. `None` until it has started.
    pub heartbeat: Mutex<Option<Handle>>,
    /// Whether an event has happened that may wake the heartbeat thread.
    pub heartbeat_may_act: AtomicBool,
    pub stop_asked: AtomicBool,
    /// Notified when every job has ended.
    pub all_ended: Notify,
    calls_of: Mutex<HashMap<Operation, u32>>,
    ids: Mutex<HashMap<usize, JobId>>,
    waiting: Mutex<Vec<WaitingClaim>>,
    next_wake: Mutex<Option<Duration>>,
}

/// A claim that waits in the store, because no job was ready when it arrived.
struct WaitingClaim {
    call: usize,
    ask: ClaimRequest,
    fault: Fault,
    reply: oneshot::Sender<Result<Vec<Delivery>, Error>>,
}

impl World {
    pub(crate) fn new(scenario: &Scenario) -> Arc<Self> {
        let clock = VirtualClock::default();
        let random = Arc::new(SeededRandomness::new(scenario.seed));
        let environment = Environment::new(Arc::new(clock.clone()), random);
        let name: QueueName = "reference".parse().unwrap();
        let memory = MemoryStore::default().open(name, environment.clone());
        let mut capabilities = memory.capabilities().clone();
        // No lease and no job depends on the reports of a worker, whose tests are in
        // `tests/worker/reports.rs`, and a report is no call of the trace.
        let supported = capabilities.supported.to_mut();
        supported.retain(|option| *option != Capability::Inspect);
        let settings = &scenario.settings;
        capabilities.limits.max_jobs_per_call =
            NonZeroU32::new(settings.max_jobs_per_call).unwrap();
        if settings.leases_are_shared {
            capabilities.lease_scope = LeaseScope::Worker;
        }
        Arc::new(Self {
            scenario: scenario.clone(),
            clock,
            environment,
            trace: Trace::default(),
            memory,
            capabilities,
            heartbeat: Mutex::default(),
            heartbeat_may_act: AtomicBool::new(true),
            stop_asked: AtomicBool::default(),
            all_ended: Notify::new(),
            calls_of: Mutex::default(),
            ids: Mutex::default(),
            waiting: Mutex::default(),
            next_wake: Mutex::default(),
        })
    }

    pub(crate) fn now(&self) -> Duration {
        self.clock.store_time()
    }

    /// The fault that the scenario has for the next call of `operation`.
    pub(crate) fn next_fault(&self, operation: Operation) -> Fault {
        let mut calls_of = self.calls_of.lock().unwrap();
        let calls = calls_of.entry(operation).or_default();
        let nth = *calls;
        *calls += 1;
        self.scenario.fault(operation, nth, self.now())
    }

    /// Sends a request. `effect` runs when the request arrives at the store, even if
    /// the caller has dropped the returned receiver by then.
    pub(crate) fn send<T: Send + 'static>(
        self: &Arc<Self>,
        request: Request,
        fault: Fault,
        effect: impl FnOnce(&World) -> T + Send + 'static,
        describe: fn(&T) -> Reply,
    ) -> oneshot::Receiver<T> {
        let (reply, replied) = oneshot::channel();
        let call = self.trace.sent(self.now(), request);
        let world = Arc::clone(self);
        self.clock.after(ms(fault.before), move || {
            let value = effect(&world);
            world.reply(call, fault, value, reply, describe);
            world.serve_waiting();
        });
        replied
    }

    /// Sends a claim. If no job is ready, the store waits for one, up to the time that
    /// the claim sets, before it replies.
    pub(crate) fn send_claim(
        self: &Arc<Self>,
        request: Request,
        fault: Fault,
        ask: ClaimRequest,
        describe: fn(&Result<Vec<Delivery>, Error>) -> Reply,
    ) -> oneshot::Receiver<Result<Vec<Delivery>, Error>> {
        let (reply, replied) = oneshot::channel();
        let call = self.trace.sent(self.now(), request);
        let world = Arc::clone(self);
        self.clock.after(ms(fault.before), move || {
            let claimed = world.claim(&ask, fault.kind);
            let is_empty = matches!(&claimed, Ok(jobs) if jobs.is_empty());
            if ask.wait.is_zero() || !is_empty {
                world.reply(call, fault, claimed, reply, describe);
                return world.serve_waiting();
            }
            let wait = ask.wait;
            let waiting = WaitingClaim { call, ask, fault, reply };
            world.waiting.lock().unwrap().push(waiting);
            let again = Arc::clone(&world);
            world.clock.after(wait, move || again.end_wait(call));
            world.serve_waiting();
        });
        replied
    }

    fn reply<T: Send + 'static>(
        self: &Arc<Self>,
        call: usize,
        fault: Fault,
        value: T,
        reply: oneshot::Sender<T>,
        describe: fn(&T) -> Reply,
    ) {
        let world = Arc::clone(self);
        if matches!(fault.kind, FaultKind::Silence(_)) {
            // Keep the sender of the reply, so that the caller waits for ever.
            return self.clock.after(relq_core::limits::MAX_DURATION, || drop(reply));
        }
        self.clock.after(ms(fault.after), move || {
            if !reply.is_closed() {
                let described = describe(&value);
                if described.concerns_the_heartbeat() {
                    world.heartbeat_may_act.store(true, Relaxed);
                }
                world
                    .trace
                    .record(world.now(), What::Replied { call, reply: described });
                let _closed_in_between = reply.send(value);
            }
        });
    }

    /// Claims jobs in the store without waiting.
    pub(crate) fn claim(
        &self,
        ask: &ClaimRequest,
        kind: FaultKind,
    ) -> Result<Vec<Delivery>, Error> {
        let ask = ask.clone().wait(Duration::ZERO);
        let claim = || at_once(self.memory.claim(&ask));
        let mut claimed = self.outcome(Operation::Claim, kind, claim);
        for delivery in claimed.iter_mut().flatten() {
            let index = std::str::from_utf8(&delivery.payload).unwrap();
            delivery.keeps_result = keeps_result(index.parse().unwrap());
        }
        claimed
    }

    /// Applies a call to the store, or returns an error, or does both, as the fault of
    /// the call says.
    pub(crate) fn outcome<T>(
        &self,
        operation: Operation,
        kind: FaultKind,
        apply: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let applied = kind.takes_effect().then(apply);
        match applied {
            Some(result) if matches!(kind, FaultKind::None | FaultKind::InPart(_)) => {
                result
            }
            _ => Err(self.error(operation, kind)),
        }
    }

    pub(crate) fn error(&self, operation: Operation, kind: FaultKind) -> Error {
        let at = ErrorContext { backend: self.capabilities.backend, operation };
        let source = "scripted".into();
        match kind {
            FaultKind::None
            | FaultKind::InPart(_)
            | FaultKind::LostReply(_)
            | FaultKind::Silence(_) => Error::Interrupted { at, source },
            FaultKind::Unreadable => Error::Unreadable { at, source },
            FaultKind::Unavailable => Error::Unavailable { at, source },
            FaultKind::Full => Error::Full { at, source },
            FaultKind::ReadOnly => Error::ReadOnly { at, source },
            FaultKind::Denied => Error::Denied { at, source },
            FaultKind::Unusable => Error::Unusable { at, source },
            FaultKind::WrongServer => Error::WrongServer { at, source },
            FaultKind::Invalid => Error::Invalid { at, reason: "scripted".into() },
            FaultKind::Unsupported => Error::Unsupported { at, option: "this" },
        }
    }

    /// Gives ready jobs to the claims that wait, and runs again when the next job is
    /// due.
    fn serve_waiting(self: &Arc<Self>) {
        let mut waiting = self.waiting.lock().unwrap();
        waiting.retain(|claim| !claim.reply.is_closed());
        let mut index = 0;
        while index < waiting.len() {
            let kind = waiting[index].fault.kind;
            let claimed = self.claim(&waiting[index].ask, kind);
            if matches!(&claimed, Ok(jobs) if jobs.is_empty()) {
                index += 1;
                continue;
            }
            let WaitingClaim { call, fault, reply, .. } = waiting.remove(index);
            self.reply(call, fault, claimed, reply, crate::queue::describe_claimed);
        }
        if !waiting.is_empty() {
            drop(waiting);
            self.wake_when_due();
        }
    }

    fn wake_when_due(self: &Arc<Self>) {
        let Some(due_in) = self.stats().next_due_in else { return };
        let at = self.now() + due_in.max(ms(1));
        let mut next_wake = self.next_wake.lock().unwrap();
        if next_wake.is_some_and(|next| next > self.now() && next <= at) {
            return;
        }
        *next_wake = Some(at);
        let world = Arc::clone(self);
        self.clock.after(due_in.max(ms(1)), move || world.serve_waiting());
    }

    fn end_wait(self: &Arc<Self>, call: usize) {
        let mut waiting = self.waiting.lock().unwrap();
        if let Some(index) = waiting.iter().position(|claim| claim.call == call) {
            let WaitingClaim { fault, reply, .. } = waiting.remove(index);
            let nothing = Ok(Vec::new());
            self.reply(call, fault, nothing, reply, crate::queue::describe_claimed);
        }
    }

    /// Pushes the scenario's job with this index.
    pub(crate) fn push(self: &Arc<Self>, index: usize) {
        let plan = self.plan(index);
        let mut job = NewJob::new(index.to_string()).priority(Priority::NORMAL);
        job.max_attempts = plan.max_attempts.try_into().unwrap();
        job.lease = plan.lease.map(ms);
        let pushed = at_once(self.memory.push(&[job], None)).unwrap();
        let [Pushed::Stored(id)] = &pushed[..] else { unreachable!("{pushed:?}") };
        self.ids.lock().unwrap().insert(index, id.clone());
        self.serve_waiting();
    }

    pub(crate) fn cancel(&self, index: usize) {
        let id = self.ids.lock().unwrap().get(&index).cloned();
        if let Some(id) = id {
            at_once(self.memory.cancel(&id)).unwrap();
        }
    }

    /// Pushes the jobs of a worker that is dead, and leases them to it.
    pub(crate) fn abandon(self: &Arc<Self>) {
        let abandoned = self.scenario.abandoned.clone();
        let Some(jobs) = NonZeroU32::new(abandoned.jobs) else { return };
        let first = self.scenario.jobs.len();
        (0..abandoned.jobs as usize).for_each(|index| self.push(first + index));
        let dead: WorkerId = "dead".parse().unwrap();
        let ask = ClaimRequest::new(dead, ms(abandoned.lease)).max(jobs);
        let claimed = at_once(self.memory.claim(&ask)).unwrap();
        assert_eq!(claimed.len(), abandoned.jobs as usize);
    }

    pub(crate) fn plan(&self, index: usize) -> JobPlan {
        self.scenario.jobs.get(index).cloned().unwrap_or(JobPlan {
            push_at: 0,
            lease: None,
            max_attempts: 25,
            attempts: Vec::new(),
            cancel_at: None,
        })
    }

    pub(crate) fn stats(&self) -> Stats {
        at_once(self.memory.stats()).unwrap()
    }

    /// How many jobs the store has leased to `worker`.
    pub(crate) fn leased_to(&self, worker: &WorkerId) -> usize {
        let ask = PeekRequest::new(JobState::Leased, NonZeroU32::MAX);
        let page = at_once(self.memory.peek(&ask)).unwrap();
        let is_theirs = |detail: &StateDetail| matches!(detail, StateDetail::Leased { worker: one, .. } if one == worker);
        page.jobs.iter().filter(|job| is_theirs(&job.detail)).count()
    }
}

/// Returns the result of a call to the store in memory. Such a call never waits.
pub(crate) fn at_once<T>(call: impl Future<Output = T>) -> T {
    match pin!(call).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => unreachable!("the store in memory waits"),
    }
}
