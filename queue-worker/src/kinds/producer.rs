//! A producer of several queues.

use std::{fmt, future::Future, sync::Arc};

use relq_core::{
    JobId, NewJob, QueueName, ReliableQueue, ReliableQueueExt, outcome::Pushed,
    results::JobHandle,
};

use crate::{EnqueueError, Job, kinds::name::assert_valid};

type Prepare = dyn Fn(NewJob) -> NewJob + Send + Sync;

/// A producer of several queues, which pushes each job to the queue of its kind.
///
/// It has a default queue and named ones, of one store or of several stores of any kind.
/// A job goes to the queue that its kind names ([`Job::QUEUE`]), and to the default queue
/// if the kind names none.
///
/// ```
/// use std::sync::Arc;
/// use relq_core::{QueueName, ReliableQueue};
/// use relq_worker::{Job, Producer};
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct SendEmail { to: String }
///
/// impl Job for SendEmail {
///     const KIND: &'static str = "send-email";
///     const QUEUE: Option<&'static str> = Some("mail");
/// }
///
/// async fn welcome(
///     work: Arc<dyn ReliableQueue>,
///     mail: Arc<dyn ReliableQueue>,
/// ) -> Result<(), Box<dyn std::error::Error>> {
///     let producer = Producer::new(work).queue(QueueName::new("mail")?, mail);
///     producer.queue_of::<SendEmail>()?; // at its start: is the queue there?
///
///     producer.enqueue(&SendEmail { to: "anna@example.org".into() }).await?;
///     Ok(())
/// }
/// ```
///
/// It has the same calls as [`Enqueue`](crate::Enqueue), whose calls push to one queue.
/// Clones are cheap and share the queues, so each part of an application can have one.
#[derive(Clone)]
pub struct Producer {
    default: Arc<dyn ReliableQueue>,
    named: Vec<(QueueName, Arc<dyn ReliableQueue>)>,
    prepare: Vec<Arc<Prepare>>,
}

impl Producer {
    /// A producer whose only queue is `default`, for the kinds that name no queue.
    pub fn new(default: Arc<dyn ReliableQueue>) -> Self {
        Self { default, named: Vec::new(), prepare: Vec::new() }
    }

    /// Pushes the jobs of the kinds that name the queue `name` to `queue`. May be called
    /// repeatedly. If kinds name the default queue, add it here too.
    ///
    /// # Panics
    /// When the producer has a queue of this name already, which is an error of the
    /// program.
    #[must_use]
    #[track_caller]
    pub fn queue(mut self, name: QueueName, queue: Arc<dyn ReliableQueue>) -> Self {
        let is_known = self.named.iter().any(|(known, _)| *known == name);
        assert!(
            !is_known,
            "the producer has two queues with the name {:?}",
            name.as_str()
        );
        self.named.push((name, queue));
        self
    }

    /// Passes each job through `prepare` before it is pushed, for example to add a
    /// header. The job already has the options of its kind and of the call. May be called
    /// repeatedly: each function gets the job that the function before it returned.
    ///
    /// ```
    /// # fn example(producer: relq_worker::Producer) -> relq_worker::Producer {
    /// producer.prepare(|job| job.header("release", env!("CARGO_PKG_VERSION")))
    /// # }
    /// ```
    ///
    /// `prepare` runs when the future of a call is first polled, so a span around that
    /// future is the current one. It must not block.
    #[must_use]
    pub fn prepare(
        mut self,
        prepare: impl Fn(NewJob) -> NewJob + Send + Sync + 'static,
    ) -> Self {
        self.prepare.push(Arc::new(prepare));
        self
    }

    /// Pushes `job` with the options of its kind to the queue of its kind.
    ///
    /// # Errors
    /// The errors of [`queue_of`](Self::queue_of) and [`Job::to_new_job`], and
    /// [`EnqueueError::Push`].
    pub fn enqueue<T: Job>(
        &self,
        job: &T,
    ) -> impl Future<Output = Result<Pushed, EnqueueError>> + Send {
        self.push_one::<T>(job.to_new_job())
    }

    /// Pushes `job` to the queue of its kind, with the options that `options` sets in
    /// addition to those of its kind, such as another delay.
    ///
    /// A job can follow another one ([`NewJob::after`]) if their kinds have the same queue:
    /// a queue knows no jobs of other queues (R19, R30).
    ///
    /// # Errors
    /// The errors of [`enqueue`](Self::enqueue).
    pub fn enqueue_with<T: Job>(
        &self,
        job: &T,
        options: impl FnOnce(NewJob) -> NewJob,
    ) -> impl Future<Output = Result<Pushed, EnqueueError>> + Send {
        self.push_one::<T>(job.to_new_job().map(options))
    }

    /// Pushes any number of jobs of one kind, all to the queue of the kind. They are
    /// divided into calls as by [`Enqueue::enqueue_all`](crate::Enqueue::enqueue_all),
    /// and each call is all or nothing (R5).
    ///
    /// # Errors
    /// The errors of [`enqueue`](Self::enqueue).
    pub fn enqueue_all<T: Job>(
        &self,
        jobs: &[T],
    ) -> impl Future<Output = Result<Vec<Pushed>, EnqueueError>> + Send {
        let jobs: Result<Vec<NewJob>, _> = jobs.iter().map(Job::to_new_job).collect();
        async move {
            let queue = self.queue_of::<T>()?;
            let jobs: Vec<_> =
                jobs?.into_iter().map(|job| self.prepared(job)).collect();
            let pushed = queue.push_all(&jobs).await;
            pushed.map_err(|(source, stored)| EnqueueError::Push { stored, source })
        }
    }

    /// The queue of the jobs of the kind `T`, for a push that no other method does: with
    /// a push token (R4), with jobs of several kinds in one call, or as a batch. A program
    /// that calls it for each kind at its start finds a missing queue there.
    ///
    /// # Errors
    /// [`EnqueueError::UnknownQueue`] when the kind names a queue that this producer does
    /// not have.
    pub fn queue_of<T: Job>(&self) -> Result<&Arc<dyn ReliableQueue>, EnqueueError> {
        const { assert_valid::<T>() };
        let Some(name) = T::QUEUE else { return Ok(&self.default) };
        let mut named = self.named.iter();
        named
            .find_map(|(known, queue)| (known.as_str() == name).then_some(queue))
            .ok_or_else(|| EnqueueError::UnknownQueue {
                kind: T::KIND,
                queue: name,
                known: self.named.iter().map(|(known, _)| known.clone()).collect(),
            })
    }

    /// A handle on a job of the kind `T` whose result is kept, in the
    /// [queue](Self::queue_of) of its kind. The kind or the push asks for the result, by
    /// [`NewJob::keep_result`].
    ///
    /// ```
    /// # use relq_worker::{Job, Producer};
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct Size { width: u32, height: u32 }
    /// # async fn example<Resize: Job>(
    /// #     producer: Producer,
    /// #     resize: Resize,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// let pushed = producer.enqueue(&resize).await?;
    /// let handle = producer.job_handle::<Resize>(pushed.job())?;
    /// let size: Size = handle.json_result().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`queue_of`](Self::queue_of), and [`EnqueueError::Results`] if the
    /// backend of that queue keeps no results.
    pub fn job_handle<T: Job>(
        &self,
        job: &JobId,
    ) -> Result<JobHandle<'_>, EnqueueError> {
        self.queue_of::<T>()?.job_handle(job).map_err(EnqueueError::Results)
    }

    /// `job` as [`enqueue`](Self::enqueue) pushes it: with the options of its kind, and
    /// [prepared](Self::prepare). Push it to the [queue](Self::queue_of) of its kind.
    ///
    /// # Errors
    /// The errors of [`Job::to_new_job`].
    pub fn to_new_job<T: Job>(&self, job: &T) -> Result<NewJob, EnqueueError> {
        Ok(self.prepared(job.to_new_job()?))
    }

    /// Takes the job encoded, so that `T` need not be `Sync`.
    async fn push_one<T: Job>(
        &self,
        job: Result<NewJob, EnqueueError>,
    ) -> Result<Pushed, EnqueueError> {
        let queue = self.queue_of::<T>()?;
        let pushed = queue.push_one(self.prepared(job?)).await;
        pushed.map_err(|source| EnqueueError::Push { stored: 0, source })
    }

    fn prepared(&self, job: NewJob) -> NewJob {
        self.prepare.iter().fold(job, |job, prepare| prepare(job))
    }
}

impl fmt::Debug for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer")
            .field("default", &self.default)
            .field("named", &self.named)
            .finish_non_exhaustive()
    }
}
