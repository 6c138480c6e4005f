//! The queue's type, and its calls for producers and workers.

use std::{borrow::Cow, fmt, num::NonZeroU32, sync::Arc, time::Duration};

use async_trait::async_trait;
use futures_util::future::join_all;
use relq_core::{
    ClaimRequest, Delivery, Error, NewJob, PushToken, Queue, Receipt, ReliableQueue,
    Settlement, WorkerId,
    batch::BatchQueue,
    capabilities::{Capabilities, Capability, Order},
    environment::Environment,
    error::{ErrorContext, Operation},
    outcome::{Extended, Pushed, Recovered, Released, Settled, SettledAndClaimed},
    schedule::ScheduleQueue,
};

use crate::{
    FairTurn, PartOf, fnv1a,
    health::Health,
    joined,
    receipt::MOST_PARTS,
    recover::Uncounted,
    route::Route,
    write_check::{BeforeFirstWrite, WriteCheck},
};

/// A queue for workers and operators that consists of several queues, its parts.
pub type PartitionedQueue = Partitioned<dyn Queue>;

/// One queue that consists of several queues, its parts. The [crate](crate)'s
/// documentation says what it promises.
///
/// Tasks can share it in an [`Arc`].
///
/// ```
/// use std::sync::Arc;
/// use relq_core::{NewJob, Operator, Queue, QueueName, ReliableQueueExt};
/// use relq_core::environment::Environment;
/// use relq_memory::MemoryStore;
/// use relq_partitions::PartitionedQueue;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let store = MemoryStore::default(); // or a queue on each of several servers
/// let mut parts: Vec<Arc<dyn Queue>> = Vec::new();
/// for name in ["emails", "emails:1"] {
///     parts.push(Arc::new(store.open(QueueName::new(name)?, Environment::default())));
/// }
/// let queue = PartitionedQueue::new(parts, Environment::default())?;
///
/// queue.push_one(NewJob::new("anna")).await?;
/// queue.push_one(NewJob::new("ben")).await?;
/// assert_eq!(queue.stats().await?.ready, 2);
/// assert_eq!(queue.stats_by_part().await?.len(), 2);
/// # Ok(())
/// # }
/// ```
pub struct Partitioned<Q: ?Sized> {
    pub(crate) parts: Vec<Arc<Q>>,
    pub(crate) part_of: PartOf,
    pub(crate) turn: FairTurn,
    pub(crate) reaper_turn: FairTurn,
    pub(crate) health: Health,
    pub(crate) environment: Environment,
    capabilities: Capabilities,
    pub(crate) push_turn: FairTurn,
    pushed_to: usize,
    hash: fn(&str) -> u64,
    pub(crate) write_check: WriteCheck,
    /// Shared with the other handles: the claims of one wait, and another one recovers.
    pub(crate) uncounted: Arc<Uncounted>,
}

impl<Q: ReliableQueue + ?Sized> Partitioned<Q> {
    /// Creates the queue that consists of `parts`. All of them must be queues of the same
    /// backend with the same options, and every client of the queue must list them in
    /// the same order. This makes no call. The random numbers of `environment` choose the
    /// part that has the first turn, and its clock measures how long a part that is down
    /// is left out.
    ///
    /// # Errors
    /// [`Error::Invalid`] for no part, for more than 65,536, or for parts with different
    /// capabilities.
    pub fn new(parts: Vec<Arc<Q>>, environment: Environment) -> Result<Self, Error> {
        let Some(first) = parts.first() else {
            return Err(invalid("partitions", "a queue has at least one part"));
        };
        let own = first.capabilities().clone();
        if parts.len() > MOST_PARTS {
            return Err(invalid(own.backend, "a queue has at most 65,536 parts"));
        }
        if parts.iter().any(|part| *part.capabilities() != own) {
            return Err(invalid(
                own.backend,
                "all parts of a queue have the same options",
            ));
        }
        Ok(Self {
            capabilities: of_parts(own, parts.len()),
            part_of: PartOf::new(fnv1a, parts.len()),
            turn: random_turn(parts.len(), &environment),
            reaper_turn: random_turn(parts.len(), &environment),
            push_turn: random_turn(parts.len(), &environment),
            health: Health::new(parts.len(), environment.clone()),
            environment,
            pushed_to: parts.len(),
            hash: fnv1a,
            write_check: WriteCheck::new(None),
            uncounted: Arc::default(),
            parts,
        })
    }

    /// Pushes only to the first `parts` parts; the other parts are only claimed from,
    /// so that they become empty. The number of parts can be changed in this way while
    /// clients run. If [`starting_at`](Self::starting_at) is set too, call it after this.
    ///
    /// # Errors
    /// [`Error::Invalid`] for zero, or for more parts than the queue has.
    pub fn push_to(self, parts: usize) -> Result<Self, Error> {
        if parts == 0 || parts > self.parts.len() {
            let reason = format!("{parts} of {} parts", self.parts.len());
            return Err(invalid(self.capabilities.backend, &reason));
        }
        Ok(Self {
            part_of: PartOf::new(self.hash, parts),
            push_turn: random_turn(parts, &self.environment),
            pushed_to: parts,
            ..self
        })
    }

    /// Sets the hash that assigns ids, unique keys, tokens and batches to parts. The
    /// default is [`fnv1a`]. All clients of a queue must use the same hash.
    #[must_use]
    pub fn hash(self, hash: fn(&str) -> u64) -> Self {
        Self { part_of: PartOf::new(hash, self.pushed_to), hash, ..self }
    }

    /// Sets the part, counted from 0, that has the first turn of pushes, claims and
    /// recoveries. By default it is random, so that the handles of many clients begin at
    /// different parts.
    #[must_use]
    pub fn starting_at(self, part: usize) -> Self {
        let (parts, pushed_to) = (self.parts.len(), self.pushed_to);
        Self {
            turn: FairTurn::starting_at(part, parts),
            reaper_turn: FairTurn::starting_at(part, parts),
            push_turn: FairTurn::starting_at(part, pushed_to),
            ..self
        }
    }

    /// Calls `check` before the first call that writes to any part, again while it
    /// fails, and again after a call of a part has failed.
    #[must_use]
    pub fn before_first_write(self, check: BeforeFirstWrite) -> Self {
        Self { write_check: WriteCheck::new(Some(check)), ..self }
    }

    /// The parts, in order. Each is a queue that can be inspected by itself.
    pub fn parts(&self) -> &[Arc<Q>] {
        &self.parts
    }

    /// The function that assigns a client-made id, a unique key, a token or the id of a
    /// batch to a part.
    pub fn part_of(&self) -> PartOf {
        self.part_of
    }

    /// Checks that the queue may be written to. Every call that writes begins with it.
    pub(crate) async fn begin_write(&self, operation: Operation) -> Result<(), Error> {
        let passed = self.write_check.pass(&self.health).await;
        passed.map_err(|error| self.nothing_done(operation, error))
    }

    /// Turns the error of the check into the error of a call that did nothing.
    fn nothing_done(&self, operation: Operation, error: Error) -> Error {
        if !WriteCheck::is_doubtful(&error) {
            return error;
        }
        Error::Unavailable { at: self.at(operation), source: Box::new(error) }
    }

    pub(crate) fn at(&self, operation: Operation) -> ErrorContext {
        ErrorContext { backend: self.capabilities.backend, operation }
    }

    /// Calls all parts at the same time, and returns their results in order.
    pub(crate) async fn all<'a, T, F>(
        &'a self,
        call: impl Fn(&'a Q) -> F,
    ) -> Vec<Result<T, Error>>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let results = join_all(self.parts.iter().map(|part| call(part))).await;
        results.iter().enumerate().for_each(|(part, result)| {
            self.notice(part, result);
        });
        results
    }

    /// Calls one part after the other, and returns their results in order. A client that
    /// dies during an operator's call has then changed a part only after all parts before
    /// it.
    pub(crate) async fn each<'a, T, F>(
        &'a self,
        call: impl Fn(&'a Q) -> F,
    ) -> Vec<Result<T, Error>>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut results = Vec::with_capacity(self.parts.len());
        for (part, queue) in self.parts.iter().enumerate() {
            let result = call(queue).await;
            self.notice(part, &result);
            results.push(result);
        }
        results
    }
}

#[async_trait]
impl<Q: ReliableQueue + ?Sized> ReliableQueue for Partitioned<Q> {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// Pushes to one part: see the [crate](crate)'s documentation.
    async fn push(
        &self,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        self.capabilities.check_push(jobs, token.is_some())?;
        let route = self.part_of.push(jobs, token);
        if let Route::Apart(reason) = route {
            return Err(Error::Invalid { at: self.at(Operation::Push), reason });
        }
        self.begin_write(Operation::Push).await?;
        match route {
            Route::To(part) => {
                let began = self.health.now();
                let pushed = self.parts[part].push(jobs, token).await;
                self.notice_since(began, part, &pushed);
                pushed
            }
            _ => self.push_in_turn(jobs).await,
        }
    }

    fn part_of_job(&self, job: &NewJob) -> Result<Option<usize>, Error> {
        match self.part_of.push(std::slice::from_ref(job), None) {
            Route::To(part) => Ok(Some(part)),
            Route::Any => Ok(None),
            Route::Apart(reason) => {
                Err(Error::Invalid { at: self.at(Operation::Push), reason })
            }
        }
    }

    async fn claim(&self, ask: &ClaimRequest) -> Result<Vec<Delivery>, Error> {
        self.capabilities.check_claim(ask)?;
        self.begin_write(Operation::Claim).await?;
        self.claim_from_all(ask).await
    }

    async fn wait_for_jobs(&self, limit: Duration) -> Result<(), Error> {
        self.wait_for_any(limit).await;
        Ok(())
    }

    async fn settle(&self, done: &[Settlement]) -> Result<Vec<Settled>, Error> {
        self.check_settle(done)?;
        self.begin_write(Operation::Settle).await?;
        self.settle_by_part(done).await
    }

    async fn settle_and_claim(
        &self,
        done: &[Settlement],
        ask: &ClaimRequest,
    ) -> SettledAndClaimed {
        self.settle_and_claim_by_part(done, ask).await
    }

    async fn extend(
        &self,
        worker: &WorkerId,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Vec<Extended>, Error> {
        self.capabilities.check_lease(Operation::Extend, lease)?;
        self.capabilities.check_batch(Operation::Extend, held.len())?;
        self.begin_write(Operation::Extend).await?;
        self.extend_by_part(worker, held, lease).await
    }

    async fn release_worker(&self, worker: &WorkerId) -> Result<Released, Error> {
        self.begin_write(Operation::ReleaseWorker).await?;
        let released = self.all(|part| part.release_worker(worker)).await;
        let jobs: u64 = released.iter().flatten().map(|part| part.jobs).sum();
        let joined = joined::of_writes(released, |part| part.jobs > 0);
        if joined.is_err() && jobs > 0 {
            // The call is repeated, and its result does not count these jobs then.
            tracing::warn!(jobs, "given back in the parts of the queue that are up");
        }
        joined.map(|_| Released { jobs })
    }

    async fn recover(&self, page: NonZeroU32) -> Result<Recovered, Error> {
        self.begin_write(Operation::Recover).await?;
        self.recover_page(page).await
    }

    async fn open_another(&self) -> Result<Arc<dyn ReliableQueue>, Error> {
        let parts = joined::of_reads(self.all(ReliableQueue::open_another).await)?;
        let another = Partitioned::new(parts, self.environment.clone())?;
        let another = another.hash(self.hash).push_to(self.pushed_to)?;
        let write_check = self.write_check.another();
        let uncounted = Arc::clone(&self.uncounted);
        Ok(Arc::new(Partitioned { write_check, uncounted, ..another }))
    }

    fn batch_queue(&self) -> Option<&dyn BatchQueue> {
        self.capabilities.supports(Capability::Batches).then_some(self)
    }

    fn schedule_queue(&self) -> Option<&dyn ScheduleQueue> {
        let only = self.parts.first().filter(|_| self.parts.len() == 1);
        only.and_then(|part| part.schedule_queue())
    }
}

impl<Q: ReliableQueue + ?Sized> fmt::Display for Partitioned<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} and {} more parts", self.parts[0], self.parts.len() - 1)
    }
}

impl<Q: ReliableQueue + ?Sized> fmt::Debug for Partitioned<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Partitioned({self})")
    }
}

/// The options and properties of a queue of this number of `parts`, each of which has
/// `own`.
///
/// It keeps no results, finds no job by its id, lists no workers and restores no jobs,
/// because it does not pass these calls on to its parts.
///
/// With several parts it has no schedules: the job of a tick and the schedule would have
/// to be in one part, but the part of a job follows from its id or unique key. For the
/// same reason it has no followers: the leader may be in another part.
fn of_parts(own: Capabilities, parts: usize) -> Capabilities {
    let is_one = parts == 1;
    let mut supported = own.supported.into_owned();
    supported.retain(|option| match option {
        Capability::Results | Capability::Inspect | Capability::Restore => false,
        Capability::Schedules | Capability::Followers => is_one,
        _ => true,
    });
    let order = if is_one { own.order } else { Order::ByPart };
    Capabilities { order, supported: Cow::Owned(supported), ..own }
}

fn random_turn(parts: usize, environment: &Environment) -> FairTurn {
    let mut bytes = [0; 4];
    environment.random().fill(&mut bytes);
    FairTurn::starting_at(u32::from_le_bytes(bytes) as usize, parts)
}

fn invalid(backend: &'static str, reason: &str) -> Error {
    let at = ErrorContext { backend, operation: Operation::Connect };
    Error::Invalid { at, reason: reason.to_owned() }
}
