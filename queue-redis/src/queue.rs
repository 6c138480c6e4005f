//! The queue type that all patterns share. A pattern only stores the ready and leased
//! jobs; this module does the rest.

mod batch;
mod claim;
mod inspect;
mod operator;
mod restore;
mod results;
mod schedules;
mod settle;
mod wait;

use std::{
    borrow::Cow,
    fmt,
    num::NonZeroU32,
    pin::Pin,
    sync::{Arc, atomic::AtomicUsize},
    time::Duration,
};

use async_trait::async_trait;
use relq_core::{
    ClaimRequest, Delivery, Error, JobId, NewJob, PushToken, Queue, QueueName, Receipt,
    ReliableQueue, Settlement, WorkerId,
    batch::BatchQueue,
    capabilities::{Capabilities, Capability},
    error::Operation,
    operator::WorkerReport,
    outcome::{Extended, Pushed, Recovered, Released, Settled, SettledAndClaimed},
    results::ResultQueue,
    schedule::ScheduleQueue,
};

use self::wait::Notifications;
use crate::{
    Conn,
    bookkeeping::{self, Bookkeeping, Stores},
    end_listener::EndListener,
    pattern::{JobRef, Pattern, PatternConfig},
};

pub use batch::BatchPattern;
pub use claim::deliver;
pub use operator::{CancelSearch, cancel_by_search, cancel_leased};
pub(crate) use settle::give_back_all;

/// The future that opens a queue on Redis, as the function `connect` of a backend
/// returns it.
pub type Connecting =
    Pin<Box<dyn Future<Output = Result<Arc<dyn Queue>, Error>> + Send>>;

/// A queue on Redis that stores its ready and leased jobs by a [`Pattern`].
///
/// Tasks can share it in an [`Arc`].
pub struct RedisQueue<P: Pattern> {
    name: QueueName,
    config: P::Config,
    pattern: Arc<P>,
    notifications: Notifications<P>,
    ends: EndListener,
}

impl<P: Pattern> RedisQueue<P> {
    /// Connects to the server and opens the queue. Writes nothing.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Denied`], or [`Error::Unusable`] for a server
    /// older than 7.0, a database that does not exist, a queue of another backend, or a
    /// server that the pattern refuses for a reason of its own.
    pub async fn connect(config: P::Config, queue: QueueName) -> Result<Self, Error> {
        let (redis, owner) = config.clone().owner(queue.clone());
        let conn = Conn::open_queue(owner, redis, P::scripts()).await;
        let opened = Self::on(conn.map_err(P::explain)?, queue, config);
        opened.pattern.check_server().await?;
        Ok(opened)
    }

    fn on(conn: Conn, name: QueueName, config: P::Config) -> Self {
        let pattern = Arc::new(P::new(conn, name.clone(), &config));
        let notifications = Notifications::new(&pattern);
        let ends = EndListener::new(pattern.bookkeeping().clone());
        Self { name, config, pattern, notifications, ends }
    }

    /// The name of the queue.
    pub fn name(&self) -> &QueueName {
        &self.name
    }
}

#[async_trait]
impl<P: Pattern> ReliableQueue for RedisQueue<P> {
    fn capabilities(&self) -> &Capabilities {
        P::capabilities()
    }

    async fn push(
        &self,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        bookkeeping::push(self, jobs, token).await
    }

    async fn claim(&self, ask: &ClaimRequest) -> Result<Vec<Delivery>, Error> {
        bookkeeping::claim(self, ask).await
    }

    async fn wait_for_jobs(&self, limit: Duration) -> Result<(), Error> {
        self.notifications.wait_as_last_claimed(limit).await;
        Ok(())
    }

    /// Settles the jobs. The end of a job may require more work, such as completing a
    /// batch: that work is sent directly behind the settlements, in the same round
    /// trip, and once more if large settlements took further round trips.
    async fn settle(&self, done: &[Settlement]) -> Result<Vec<Settled>, Error> {
        P::capabilities().check_batch(Operation::Settle, done.len())?;
        P::capabilities().check_settlements(done)?;
        let needs_work = done.iter().any(|one| P::has_follow_up(one.receipt.token()));
        let follow_up = || async {
            if needs_work {
                self.pattern.follow_up(Operation::Settle).await;
            }
        };
        let later_calls = AtomicUsize::new(0);
        let settling = bookkeeping::settle_counting(self, done, &later_calls);
        let (settled, ()) = tokio::join!(biased; settling, follow_up());
        let settled = settled?;
        if later_calls.into_inner() > 0 {
            follow_up().await;
        }
        Ok(settled)
    }

    /// Settles and claims. If the pattern claims by several calls, only the first one
    /// shares the round trip of the settlements.
    async fn settle_and_claim(
        &self,
        done: &[Settlement],
        ask: &ClaimRequest,
    ) -> SettledAndClaimed {
        bookkeeping::settle_and_claim(self, done, ask).await
    }

    async fn extend(
        &self,
        _worker: &WorkerId,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Vec<Extended>, Error> {
        P::capabilities().check_lease(Operation::Extend, lease)?;
        P::capabilities().check_batch(Operation::Extend, held.len())?;
        if held.is_empty() {
            return Ok(Vec::new());
        }
        let beat = self.pattern.heartbeat(held, lease).await?;
        let answers = beat.answers(held.len());
        // A piece of a cancelled batch ends in this call, which may complete the batch.
        if answers.contains(&Extended::Cancelled) {
            self.pattern.follow_up(Operation::Extend).await;
        }
        Ok(answers)
    }

    /// Releases the worker. Its process may end then, so this also does the work that the
    /// ends of jobs have left to tasks.
    async fn release_worker(&self, worker: &WorkerId) -> Result<Released, Error> {
        let released = if P::capabilities().supports(Capability::Inspect) {
            inspect::release_listed(&*self.pattern, worker).await?
        } else {
            self.pattern.release(self.pattern.leases_of(worker).await?).await?
        };
        self.pattern.finish_follow_ups(Operation::ReleaseWorker).await;
        Ok(released)
    }

    async fn report_worker(&self, report: &WorkerReport) -> Result<(), Error> {
        if !P::capabilities().supports(Capability::Inspect) {
            return Ok(());
        }
        self.pattern.bookkeeping().report_worker(report).await
    }

    async fn recover(&self, page: NonZeroU32) -> Result<Recovered, Error> {
        let most = self.pattern.bookkeeping().max_jobs_per_slow_step();
        let page = page.min(most).get();
        self.pattern.bookkeeping().recover(page, self.pattern.recover(page)).await
    }

    fn batch_queue(&self) -> Option<&dyn BatchQueue> {
        P::batch_queue(self)
    }

    fn schedule_queue(&self) -> Option<&dyn ScheduleQueue> {
        P::capabilities().supports(Capability::Schedules).then_some(self as _)
    }

    fn result_queue(&self) -> Option<&dyn ResultQueue> {
        P::capabilities().supports(Capability::Results).then_some(self as _)
    }

    async fn open_another(&self) -> Result<Arc<dyn ReliableQueue>, Error> {
        let conn = self.pattern.bookkeeping().conn.open_another().await?;
        let (name, config) = (self.name.clone(), self.config.clone());
        Ok(Arc::new(Self::on(conn, name, config)))
    }
}

#[async_trait]
impl<P: Pattern> Stores for RedisQueue<P> {
    fn bookkeeping_for(&self, ids: &[JobId]) -> Cow<'_, Bookkeeping> {
        bookkeeping_with(&*self.pattern, ids.iter().map(JobRef::Pushed))
    }

    async fn append(
        &self,
        ids: &[JobId],
        entries: Vec<Vec<u8>>,
    ) -> Result<bool, Error> {
        self.pattern.append(ids, entries).await
    }
}

impl<P: Pattern> fmt::Display for RedisQueue<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (backend, conn) =
            (P::capabilities().backend, &self.pattern.bookkeeping().conn);
        write!(f, "{backend} queue {} at {conn}", self.name)
    }
}

impl<P: Pattern> fmt::Debug for RedisQueue<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({self})", P::QUEUE)
    }
}

/// Returns the bookkeeping for one call, with the keys that belong only to the given
/// jobs.
fn bookkeeping_with<'p, 'j, P: Pattern>(
    pattern: &'p P,
    jobs: impl Iterator<Item = JobRef<'j>>,
) -> Cow<'p, Bookkeeping> {
    let keys: Vec<_> = jobs.flat_map(P::job_keys).collect();
    if keys.is_empty() {
        return Cow::Borrowed(pattern.bookkeeping());
    }
    Cow::Owned(pattern.bookkeeping().with_keys(keys))
}
