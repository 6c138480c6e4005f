//! The queue's methods for workers and producers: push, claim, settle, extend, recover.

use std::{
    fmt,
    num::NonZeroU32,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{
    FutureExt as _, TryFutureExt as _,
    future::{BoxFuture, Shared},
};
use relq_core::{
    ClaimRequest, Delivery, Error, JobId, NewJob, PushToken, QueueName, Receipt,
    ReliableQueue, Settlement, WorkerId,
    batch::BatchQueue,
    capabilities::Capabilities,
    environment::Environment,
    error::Operation,
    operator::WorkerReport,
    outcome::{Extended, Pushed, Recovered, Released, Settled, SettledAndClaimed},
    results::ResultQueue,
    schedule::ScheduleQueue,
};
use tokio::sync::watch;

use crate::config::{Sorts, SqliteConfig};
use crate::db_thread::{DbThread, Site};
use crate::end_poll::{EndPoll, PollContext, Polled};
use crate::failure::Failure;
use crate::inspect::ReportWorker;
use crate::pages::{Pages, step_of};
use crate::push::Push;
use crate::recover::Recover;
use crate::settle::{Settle, result_bytes};
use crate::waiting::EmptyClaim;
use crate::wake::EndWaiter;

/// A queue in a SQLite file.
///
/// Any number of queues, handles and processes share one file. A handle has up to two
/// threads of its own, which end when the handle is dropped. In memory, the handles of a
/// queue share one thread.
///
/// ```
/// use relq_sqlite::{SqliteConfig, SqliteQueue};
/// use relq_core::{QueueName, ReliableQueueExt as _};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let emails = QueueName::new("emails")?;
/// let queue = SqliteQueue::open(SqliteConfig::memory(), emails).await?;
/// queue.push_one("hello".into()).await?;
/// # Ok(())
/// # }
/// ```
pub struct SqliteQueue {
    site: Site,
    capabilities: Capabilities,
    db_thread: Arc<DbThread>,
    /// A second connection for calls that read many jobs, so that they do not delay
    /// workers. The first such call opens it.
    reading: Mutex<Option<Opening>>,
    end_poll: EndPoll,
    /// The last claim that found no job, until a wait follows it.
    pub(crate) empty_claim: Mutex<Option<EmptyClaim>>,
}

/// The second connection while it is being opened. All callers that need it share this
/// future. If one caller is dropped, another one continues to open the connection.
type Opening = Shared<BoxFuture<'static, Result<Arc<DbThread>, Failure>>>;

impl SqliteQueue {
    /// Opens the queue `queue`. Creates the file, its tables and the queue if they do
    /// not exist. The configuration can [refuse](crate::MissingFile::Refuse) to create the
    /// file.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an invalid configuration, [`Error::Unusable`] for a file
    /// that does not belong to relq, is damaged, was written by a newer relq, has another
    /// name as a hard link, or is missing and is not to be created, [`Error::Denied`] for
    /// a file that may not be written, [`Error::Full`] for a full disk, and
    /// [`Error::Unavailable`] for a file that is locked for too long. A file that does not
    /// belong to relq, or was written by a newer one, is not changed.
    pub async fn open(config: SqliteConfig, queue: QueueName) -> Result<Self, Error> {
        Self::open_site(config, queue)
            .await
            .map_err(|failure| failure.at(Operation::Connect))
    }

    async fn open_site(
        config: SqliteConfig,
        queue: QueueName,
    ) -> Result<Self, Failure> {
        config.check()?;
        Self::start(move || Site::find(config, queue)).await
    }

    async fn start(
        find: impl FnOnce() -> Result<Site, Failure> + Send + 'static,
    ) -> Result<Self, Failure> {
        let (db_thread, site) = DbThread::start(find).await?;
        Ok(Self::over(site, Arc::new(db_thread)))
    }

    fn over(site: Site, db_thread: Arc<DbThread>) -> Self {
        Self {
            capabilities: site.config.capabilities(),
            site,
            db_thread,
            reading: Mutex::default(),
            end_poll: EndPoll::default(),
            empty_claim: Mutex::default(),
        }
    }

    /// Returns a receiver that is notified when jobs may have become available to
    /// claim.
    pub(crate) fn listen(&self) -> watch::Receiver<u64> {
        self.site.notifier.listen()
    }

    /// Returns a call that waits for the end of a job. Every end from now on wakes it.
    pub(crate) fn listen_for_end(&self, job: &JobId) -> EndWaiter {
        self.site.notifier.listen_for_end(job)
    }

    /// Polls for ends in other processes until the returned value is dropped.
    pub(crate) fn poll_ends(&self) -> Polled {
        self.end_poll.begin(|| PollContext {
            notifier: self.site.notifier.clone(),
            db_thread: Arc::clone(&self.db_thread),
            environment: self.environment().clone(),
            poll_interval: self.site.config.poll_interval,
        })
    }

    /// Whether the store can hold several queues. A store in memory holds only one.
    pub(crate) fn has_other_queues(&self) -> bool {
        self.site.file.is_some()
    }

    pub(crate) fn poll_interval(&self) -> Duration {
        self.site.config.poll_interval
    }

    /// The database of this handle.
    #[cfg(feature = "push-in")]
    pub(crate) fn site(&self) -> &Site {
        &self.site
    }

    /// The connection for calls that write.
    pub(crate) fn db_thread(&self) -> &DbThread {
        &self.db_thread
    }

    /// Returns the connection for calls that only read. A store in memory has only one
    /// connection, so this returns the connection for writes.
    pub(crate) async fn reading_thread(&self) -> Result<Arc<DbThread>, Failure> {
        if self.site.file.is_none() {
            return Ok(Arc::clone(&self.db_thread));
        }
        self.open_reading().await
    }

    fn open_reading(&self) -> Opening {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let known = reading.take().filter(|opening| {
            // Forget an attempt to open that has failed, so that this call tries again.
            !opening.peek().is_some_and(Result::is_err)
        });
        let start = || {
            let mut site = self.site.clone();
            // An audit sorts all jobs, which must not be in memory together (R23).
            site.config.sorts = Sorts::InFile;
            let opening = DbThread::start(move || Ok(site));
            opening.map_ok(|(db_thread, _)| Arc::new(db_thread)).boxed().shared()
        };
        reading.insert(known.unwrap_or_else(start)).clone()
    }

    fn check_settlements(&self, done: &[Settlement]) -> Result<(), Error> {
        self.capabilities.check_settlements(done)?;
        self.capabilities.check_batch(Operation::Settle, done.len())
    }

    /// Settles in steps, each of which settles a limited number of jobs (R21), and moves a
    /// limited number of followers (R30). `answers` are those of the steps that are done.
    async fn settle_steps(
        &self,
        done: &[Settlement],
        mut answers: Vec<Settled>,
    ) -> Result<Vec<Settled>, Failure> {
        let mut pages = if answers.is_empty() { Pages::Undone } else { Pages::Begun };
        while answers.len() < done.len() {
            let rest = &done[answers.len()..];
            let step = Settle { done: rest[..self.first_step(rest)].to_vec() };
            answers.extend(pages.then(self.db_thread.call(step).await)?);
        }
        Ok(answers)
    }

    /// How many of the settlements, counted from the first, one step can apply.
    fn first_step(&self, done: &[Settlement]) -> usize {
        step_of(done, self.max_jobs_per_step(), result_bytes)
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.site.config.environment
    }

    /// The most jobs that one step of a call handles (R21).
    pub(crate) fn max_jobs_per_step(&self) -> usize {
        self.environment().max_jobs_per_step().get() as usize
    }
}

#[async_trait]
impl ReliableQueue for SqliteQueue {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn push(
        &self,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        self.capabilities.check_push(jobs, token.is_some())?;
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let call = Push { jobs: jobs.to_vec(), token: token.cloned() };
        self.db_thread.call(call).await.map_err(|it| it.at(Operation::Push))
    }

    async fn claim(&self, ask: &ClaimRequest) -> Result<Vec<Delivery>, Error> {
        self.capabilities.check_claim(ask)?;
        self.claim_patiently(ask).await.map_err(|it| it.at(Operation::Claim))
    }

    async fn wait_for_jobs(&self, limit: Duration) -> Result<(), Error> {
        self.wait_after_empty_claim(limit).await.map_err(|it| it.at(Operation::Claim))
    }

    async fn settle(&self, done: &[Settlement]) -> Result<Vec<Settled>, Error> {
        self.check_settlements(done)?;
        let settled = self.settle_steps(done, Vec::new()).await;
        settled.map_err(|it| it.at(Operation::Settle))
    }

    async fn settle_and_claim(
        &self,
        done: &[Settlement],
        ask: &ClaimRequest,
    ) -> SettledAndClaimed {
        let settle_fits = self.check_settlements(done);
        let claim_fits = self.capabilities.check_claim(ask);
        let is_one_step = !done.is_empty() && self.first_step(done) == done.len();
        // If the settlements or the claim exceed a limit, make two separate calls, so
        // that the other one is still carried out. A claim follows all the steps of the
        // settlements, because they may make jobs ready. Without settlements only `claim`
        // is called, which takes no lock while no job is ready.
        if !is_one_step || settle_fits.is_err() || claim_fits.is_err() {
            let at_once = ask.clone().wait(Duration::ZERO);
            let settled = self.settle(done).await;
            return SettledAndClaimed { settled, claimed: self.claim(&at_once).await };
        }
        let settle = Settle { done: done.to_vec() };
        let notifier = self.listen();
        let (settled, claimed) =
            self.db_thread.call_both(settle, self.claim_call(ask)).await;
        let settled = match settled {
            Ok(answers) => self.settle_steps(done, answers).await,
            failed => failed,
        };
        let claimed = match claimed {
            Ok(first) => self.claim_rest(ask, first).await,
            failed => failed,
        };
        let claimed = claimed.map(|claimed| {
            self.note_empty(notifier, &claimed);
            claimed.deliveries
        });
        SettledAndClaimed {
            settled: settled.map_err(|it| it.at(Operation::Settle)),
            claimed: claimed.map_err(|it| it.at(Operation::Claim)),
        }
    }

    async fn extend(
        &self,
        _worker: &WorkerId,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Vec<Extended>, Error> {
        self.capabilities.check_lease(Operation::Extend, lease)?;
        self.capabilities.check_batch(Operation::Extend, held.len())?;
        if held.is_empty() {
            return Ok(Vec::new());
        }
        let extended = self.extend_steps(held, lease).await;
        extended.map_err(|it| it.at(Operation::Extend))
    }

    async fn release_worker(&self, worker: &WorkerId) -> Result<Released, Error> {
        let released = self.release_steps(worker).await;
        released.map_err(|it| it.at(Operation::ReleaseWorker))
    }

    async fn report_worker(&self, report: &WorkerReport) -> Result<(), Error> {
        let call = ReportWorker { report: report.clone() };
        self.db_thread.call(call).await.map_err(|it| it.at(Operation::ReportWorker))
    }

    async fn recover(&self, page: NonZeroU32) -> Result<Recovered, Error> {
        let call = Recover { page };
        self.db_thread.call(call).await.map_err(|it| it.at(Operation::Recover))
    }

    async fn open_another(&self) -> Result<Arc<dyn ReliableQueue>, Error> {
        if self.site.file.is_none() {
            let db_thread = Arc::clone(&self.db_thread);
            return Ok(Arc::new(Self::over(self.site.clone(), db_thread)));
        }
        let site = self.site.clone();
        let another = Self::start(move || Ok(site)).await;
        Ok(Arc::new(another.map_err(|failure| failure.at(Operation::Connect))?))
    }

    fn batch_queue(&self) -> Option<&dyn BatchQueue> {
        Some(self)
    }

    fn schedule_queue(&self) -> Option<&dyn ScheduleQueue> {
        Some(self)
    }

    fn result_queue(&self) -> Option<&dyn ResultQueue> {
        Some(self)
    }
}

impl fmt::Debug for SqliteQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SqliteQueue({self})")
    }
}

impl fmt::Display for SqliteQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queue = &self.site.queue;
        match &self.site.file {
            Some(file) => write!(f, "queue {queue} in sqlite:{}", file.display()),
            None => write!(f, "queue {queue} in sqlite::memory:"),
        }
    }
}
