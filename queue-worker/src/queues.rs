//! The queues of a worker that serves several, and the order in which it serves them.

use std::{collections::HashSet, fmt, num::NonZeroU32, sync::Arc};

use relq_core::{QueueName, ReliableQueue};

use crate::{
    InvalidSetting, observer::Observer, observers::Observers, slot_pool::Turns,
};

/// The queues of a [worker](crate::Worker::on) that serves several, of one store or of
/// several stores of any kind.
///
/// The queues share the slots of the worker. A slot that becomes free goes to the first
/// queue of the list that has a job ([`strict`](Self::strict)), or to the queues in
/// proportion to their weights ([`weighted`](Self::weighted)). A slot is never kept free
/// for a queue that has no job, and a queue whose store is down or slow does not hold up
/// the others.
///
/// ```
/// use std::sync::Arc;
/// use relq_core::{QueueName, ReliableQueue};
/// use relq_worker::{Failure, JobContext, Queues, Worker, WorkerError, WorkerQueue};
///
/// async fn serve(
///     payments: Arc<dyn ReliableQueue>,
///     reports: Arc<dyn ReliableQueue>,
/// ) -> Result<(), Box<dyn std::error::Error>> {
///     let payments = WorkerQueue::new(QueueName::new("payments")?, payments);
///     let reports = WorkerQueue::new(QueueName::new("reports")?, reports)
///         .concurrency(2.try_into()?); // of the 8 slots
///     let queues = Queues::weighted([
///         (payments, 3.try_into()?), // three of four jobs, while both queues have jobs
///         (reports, 1.try_into()?),
///     ]);
///     Worker::on(queues)
///         .concurrency(8.try_into()?)
///         .run(async |job: JobContext| {
///             println!("{} of {:?}", job.id(), job.queue());
///             Ok::<_, Failure>(())
///         })
///         .await?;
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct Queues {
    pub(crate) turns: Turns,
    pub(crate) queues: Vec<(WorkerQueue, NonZeroU32)>,
}

/// One of the queues that a worker serves.
pub struct WorkerQueue {
    pub(crate) name: QueueName,
    pub(crate) queue: Arc<dyn ReliableQueue>,
    pub(crate) concurrency: Option<NonZeroU32>,
    pub(crate) observers: Observers,
}

impl Queues {
    /// Serves the queues in strict order: a free slot goes to the first queue of the list
    /// that has a job. The later queues get nothing while the earlier ones have enough
    /// jobs for all slots.
    ///
    /// A running job is not interrupted. A later queue waits for at most two round trips
    /// of the earlier ones, in which these find that they have no more jobs.
    pub fn strict(queues: impl IntoIterator<Item = WorkerQueue>) -> Self {
        let queues = queues.into_iter().map(|queue| (queue, NonZeroU32::MIN));
        Self { turns: Turns::Strict, queues: queues.collect() }
    }

    /// Serves the queues by weight: while all have jobs, the jobs that start are in
    /// proportion to the weights. No queue starves. A queue that was empty does not catch
    /// up later.
    ///
    /// A queue that reaches its own limit gets less than its weight says, and the others
    /// get the rest.
    pub fn weighted(
        queues: impl IntoIterator<Item = (WorkerQueue, NonZeroU32)>,
    ) -> Self {
        Self { turns: Turns::ByWeight, queues: queues.into_iter().collect() }
    }

    pub(crate) fn check(&self) -> Result<(), InvalidSetting> {
        let invalid =
            |reason: String| InvalidSetting::new("the list of queues", reason);
        if self.queues.is_empty() {
            return Err(invalid("is empty: give at least one queue".into()));
        }
        let mut names = HashSet::new();
        match self.queues.iter().find(|(queue, _)| !names.insert(&queue.name)) {
            Some((queue, _)) => {
                let name = &queue.name;
                Err(invalid(format!("has {name} twice: give each its own name")))
            }
            None => Ok(()),
        }
    }
}

impl WorkerQueue {
    /// A queue, and its name for [`JobContext::queue`](crate::JobContext::queue) and for
    /// the log. A worker with two queues of one name does not start, so if two stores
    /// have a queue of the same name, give one of them another name here.
    pub fn new(name: QueueName, queue: Arc<dyn ReliableQueue>) -> Self {
        Self { name, queue, concurrency: None, observers: Observers::default() }
    }

    /// Sets how many handlers of this queue run at once. The default is the
    /// [limit of the worker](crate::Worker::concurrency), which holds for all queues
    /// together in any case.
    #[must_use]
    pub fn concurrency(mut self, concurrency: NonZeroU32) -> Self {
        self.concurrency = Some(concurrency);
        self
    }

    /// Reports the events of this queue to `observer`, in addition to the observers of
    /// the worker. May be called repeatedly.
    #[must_use]
    pub fn observe(mut self, observer: impl Observer) -> Self {
        self.observers.add(observer);
        self
    }
}

impl fmt::Debug for WorkerQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WorkerQueue({}: {})", self.name, self.queue)
    }
}
