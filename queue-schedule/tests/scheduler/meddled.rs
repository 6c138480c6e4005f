//! A queue in memory between whose calls other clients run, and whose calls fail when a
//! test asks for it.

use std::{
    collections::VecDeque,
    fmt,
    num::NonZeroU32,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use relq_core::{
    ClaimRequest, Delivery, Error, NewJob, PushToken, Receipt, ReliableQueue,
    Settlement, WorkerId,
    capabilities::Capabilities,
    environment::Clock,
    error::{ErrorContext, Operation},
    outcome::{Extended, Pushed, Recovered, Released, Settled},
};
use relq_memory::MemoryQueue;
use relq_schedule::{
    ScheduleName, ScheduleQueue, ScheduleStored, Schedules, Tick, Ticked,
};

use crate::clock::VirtualClock;

/// A fault of the next push of a tick, or another client's change before it.
#[derive(Debug)]
pub(crate) enum Meddling {
    /// The store does not push the tick.
    Fail,
    /// The store pushes the tick, and its reply is lost.
    LoseReply,
    /// The store pushes the tick, and too few replicas have it.
    Unconfirmed,
    /// The tick is not due, and too few replicas answer.
    NotDueUnconfirmed,
    /// Another client stores this definition first.
    Change(Vec<u8>),
    /// Another client removes the schedule first.
    Remove,
    /// The call takes this time.
    Slow(Arc<VirtualClock>, Duration),
    /// The store's clock was ahead when the schedules were read.
    NotDue(Duration),
}

/// The error of a call that the store refuses.
pub(crate) type Refusal = fn(ErrorContext) -> Error;

#[derive(Debug)]
pub(crate) struct Meddled {
    pub(crate) inner: MemoryQueue,
    pub(crate) has_schedules: bool,
    /// Those of a backend with fewer options, if a test sets them.
    pub(crate) capabilities: OnceLock<Capabilities>,
    pub(crate) failing_reads: Mutex<u32>,
    /// How many of the next calls that store a schedule fail.
    pub(crate) failing_puts: Mutex<u32>,
    /// How each call that stores or reads schedules fails, while a test sets this.
    refusal: Mutex<Option<Refusal>>,
    /// Whether too few replicas have each schedule that is stored.
    pub(crate) leaves_puts_unconfirmed: AtomicBool,
    /// The entries among the schedules of the store that are not schedules.
    pub(crate) unreadable: Mutex<Vec<String>>,
    reads: AtomicUsize,
    pub(crate) pushes: Mutex<VecDeque<Meddling>>,
}

impl Meddled {
    pub(crate) fn new(inner: MemoryQueue) -> Self {
        Self {
            inner,
            has_schedules: true,
            capabilities: OnceLock::new(),
            failing_reads: Mutex::default(),
            failing_puts: Mutex::default(),
            refusal: Mutex::default(),
            leaves_puts_unconfirmed: AtomicBool::default(),
            unreadable: Mutex::default(),
            reads: AtomicUsize::default(),
            pushes: Mutex::default(),
        }
    }

    /// Meddles with the next push of a tick.
    pub(crate) fn meddle(&self, meddling: Meddling) {
        self.pushes.lock().unwrap().push_back(meddling);
    }

    /// How often the schedules were read.
    pub(crate) fn reads(&self) -> usize {
        self.reads.load(Ordering::Relaxed)
    }

    /// Makes each call that stores or reads schedules fail, or none.
    pub(crate) fn refuse(&self, refusal: Option<Refusal>) {
        *self.refusal.lock().unwrap() = refusal;
    }

    fn refused(&self, operation: Operation) -> Result<(), Error> {
        let refusal = *self.refusal.lock().unwrap();
        let at = ErrorContext { backend: "memory", operation };
        refusal.map_or(Ok(()), |refusal| Err(refusal(at)))
    }

    fn unavailable(operation: Operation) -> Error {
        let at = ErrorContext { backend: "memory", operation };
        Error::Unavailable { at, source: "the test wants it".into() }
    }

    fn not_replicated(operation: Operation) -> Error {
        let at = ErrorContext { backend: "memory", operation };
        Error::NotReplicated { at, source: "0 of 1".into() }
    }
}

#[async_trait]
impl ScheduleQueue for Meddled {
    async fn put_schedule(
        &self,
        name: &ScheduleName,
        definition: &[u8],
    ) -> Result<ScheduleStored, Error> {
        tokio::task::yield_now().await;
        self.refused(Operation::PutSchedule)?;
        let is_failing = {
            let mut failing = self.failing_puts.lock().unwrap();
            let left = failing.checked_sub(1);
            *failing = left.unwrap_or(0);
            left.is_some()
        };
        if is_failing {
            return Err(Self::unavailable(Operation::PutSchedule));
        }
        let stored = self.inner.put_schedule(name, definition).await?;
        if self.leaves_puts_unconfirmed.load(Ordering::Relaxed) {
            return Err(Self::not_replicated(Operation::PutSchedule));
        }
        Ok(stored)
    }

    async fn remove_schedule(&self, name: &ScheduleName) -> Result<bool, Error> {
        self.inner.remove_schedule(name).await
    }

    async fn schedules(&self) -> Result<Schedules, Error> {
        tokio::task::yield_now().await;
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.refused(Operation::ReadSchedules)?;
        let is_failing = {
            let mut failing = self.failing_reads.lock().unwrap();
            *failing = failing.saturating_sub(1);
            *failing > 0
        };
        if is_failing {
            return Err(Self::unavailable(Operation::ReadSchedules));
        }
        let schedules = self.inner.schedules().await?;
        tokio::task::yield_now().await;
        Ok(schedules.with_unreadable(self.unreadable.lock().unwrap().clone()))
    }

    async fn push_tick(&self, tick: &Tick, job: NewJob) -> Result<Ticked, Error> {
        tokio::task::yield_now().await;
        if &job.payload[..] == b"refused" {
            let at = ErrorContext { backend: "memory", operation: Operation::PushTick };
            return Err(Error::Invalid { at, reason: "the test wants it".into() });
        }
        if &job.payload[..] == b"unsupported" {
            let at = ErrorContext { backend: "memory", operation: Operation::PushTick };
            return Err(Error::Unsupported { at, option: "what the test says" });
        }
        if &job.payload[..] == b"damaged" {
            let at = ErrorContext { backend: "memory", operation: Operation::PushTick };
            return Err(Error::Unusable { at, source: "the test wants it".into() });
        }
        if &job.payload[..] == b"unreadable" {
            let at = ErrorContext { backend: "memory", operation: Operation::PushTick };
            return Err(Error::Unreadable { at, source: "the test wants it".into() });
        }
        let meddling = self.pushes.lock().unwrap().pop_front();
        match meddling {
            None => {}
            Some(Meddling::Fail) => {
                return Err(Self::unavailable(Operation::PushTick));
            }
            Some(Meddling::LoseReply) => {
                self.inner.push_tick(tick, job).await?;
                let at =
                    ErrorContext { backend: "memory", operation: Operation::PushTick };
                return Err(Error::Interrupted { at, source: "lost".into() });
            }
            Some(Meddling::Unconfirmed) => {
                self.inner.push_tick(tick, job).await?;
                return Err(Self::not_replicated(Operation::PushTick));
            }
            Some(Meddling::NotDueUnconfirmed) => {
                return Err(Self::not_replicated(Operation::PushTick));
            }
            Some(Meddling::Change(definition)) => {
                self.inner.put_schedule(&tick.name, &definition).await?;
            }
            Some(Meddling::Remove) => {
                self.inner.remove_schedule(&tick.name).await?;
            }
            Some(Meddling::Slow(clock, time)) => clock.set(clock.elapsed() + time),
            Some(Meddling::NotDue(wait)) => return Ok(Ticked::NotDue(wait)),
        }
        let ticked = self.inner.push_tick(tick, job).await;
        tokio::task::yield_now().await;
        ticked
    }
}

#[async_trait]
impl ReliableQueue for Meddled {
    fn capabilities(&self) -> &Capabilities {
        self.capabilities.get().unwrap_or_else(|| self.inner.capabilities())
    }

    async fn push(
        &self,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        self.inner.push(jobs, token).await
    }

    fn part_of_job(&self, job: &NewJob) -> Result<Option<usize>, Error> {
        self.inner.part_of_job(job)
    }

    async fn claim(&self, ask: &ClaimRequest) -> Result<Vec<Delivery>, Error> {
        self.inner.claim(ask).await
    }

    async fn settle(&self, done: &[Settlement]) -> Result<Vec<Settled>, Error> {
        self.inner.settle(done).await
    }

    async fn extend(
        &self,
        worker: &WorkerId,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Vec<Extended>, Error> {
        self.inner.extend(worker, held, lease).await
    }

    async fn release_worker(&self, worker: &WorkerId) -> Result<Released, Error> {
        self.inner.release_worker(worker).await
    }

    async fn recover(&self, page: NonZeroU32) -> Result<Recovered, Error> {
        self.inner.recover(page).await
    }

    async fn open_another(&self) -> Result<Arc<dyn ReliableQueue>, Error> {
        self.inner.open_another().await
    }

    fn schedule_queue(&self) -> Option<&dyn ScheduleQueue> {
        self.has_schedules.then_some(self as _)
    }
}

impl fmt::Display for Meddled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
