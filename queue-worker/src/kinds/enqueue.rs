//! Calls that push jobs of a kind.

use std::future::Future;

use relq_core::{NewJob, ReliableQueue, ReliableQueueExt, outcome::Pushed};

use crate::{EnqueueError, Job};

/// Calls that push jobs of a kind, on every [`ReliableQueue`].
///
/// The queue of the call gets the jobs, also if their kind names another queue
/// ([`Job::QUEUE`]). A [`Producer`](crate::Producer) has several queues and pushes each
/// job to that of its kind.
///
/// ```
/// use relq_core::ReliableQueue;
/// use relq_worker::{Enqueue, EnqueueError, Job};
///
/// #[derive(serde::Serialize, serde::Deserialize)]
/// struct SendEmail { to: String }
///
/// impl Job for SendEmail {
///     const KIND: &'static str = "send-email";
/// }
///
/// async fn welcome(queue: &dyn ReliableQueue, to: &str) -> Result<(), EnqueueError> {
///     queue.enqueue(&SendEmail { to: to.to_owned() }).await?;
///     Ok(())
/// }
/// ```
///
/// [`Job::to_new_job`] is for all other ways to push a job: with a push token so that the
/// push can be repeated (R4), in one call with jobs of other kinds, or as a piece of a
/// batch.
pub trait Enqueue: ReliableQueue {
    /// Pushes `job` with the options of its kind.
    ///
    /// # Errors
    /// The errors of [`Job::to_new_job`], and [`EnqueueError::Push`].
    fn enqueue<T: Job>(
        &self,
        job: &T,
    ) -> impl Future<Output = Result<Pushed, EnqueueError>> + Send {
        self.enqueue_with(job, |job| job)
    }

    /// Pushes `job` with the options that `options` sets in addition to those of its
    /// kind: another delay, or an id so that the push can be repeated (R4).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use relq_core::ReliableQueue;
    /// # use relq_worker::{Enqueue, EnqueueError, Job};
    /// # async fn example(
    /// #     queue: &dyn ReliableQueue,
    /// #     reminder: impl Job,
    /// # ) -> Result<(), EnqueueError> {
    /// let tomorrow = Duration::from_secs(24 * 60 * 60);
    /// queue.enqueue_with(&reminder, |job| job.delay(tomorrow)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Or it keeps the result, for a producer that waits for it:
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use relq_core::{ReliableQueue, ReliableQueueExt};
    /// # use relq_worker::{Enqueue, Job};
    /// # async fn example(
    /// #     queue: &dyn ReliableQueue,
    /// #     count: impl Job,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// let hour = Duration::from_secs(60 * 60);
    /// let pushed = queue.enqueue_with(&count, |job| job.keep_result(hour)).await?;
    /// let words: u64 = queue.job_handle(pushed.job())?.json_result().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Or it [follows](relq_core::followers) another job, of this or another kind, and runs
    /// when that job is done (R30). The id of the job that it follows is remembered,
    /// because the producer made it or asked for the result:
    ///
    /// ```
    /// # use relq_core::{JobId, ReliableQueue};
    /// # use relq_worker::{Enqueue, Job};
    /// # async fn example(
    /// #     queue: &dyn ReliableQueue,
    /// #     upload: impl Job,
    /// #     thumbnail: impl Job,
    /// # ) -> Result<(), Box<dyn std::error::Error>> {
    /// let id = JobId::new("upload-42")?;
    /// let pushed = queue.enqueue_with(&upload, |job| job.id(id)).await?;
    /// let leader = pushed.job().clone();
    /// queue.enqueue_with(&thumbnail, |job| job.after(leader)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`Job::to_new_job`], and [`EnqueueError::Push`].
    fn enqueue_with<T: Job>(
        &self,
        job: &T,
        options: impl FnOnce(NewJob) -> NewJob,
    ) -> impl Future<Output = Result<Pushed, EnqueueError>> + Send {
        // Encode here and not in the future, so that `T` need not be `Sync`.
        let job = job.to_new_job().map(options);
        async move {
            let pushed = self.push_one(job?).await;
            pushed.map_err(|source| EnqueueError::Push { stored: 0, source })
        }
    }

    /// Pushes any number of jobs of one kind, in as many calls as the limits of the
    /// backend require, as [`push_all`](ReliableQueueExt::push_all) does. Returns a
    /// result for each job, in order.
    ///
    /// All jobs are encoded before the first call. Each call is all or nothing (R5), so
    /// up to [`max_jobs_per_call`] jobs are stored together or not at all, unless they
    /// exceed [`max_bytes_per_push`]. A push in several calls can fail in the middle:
    /// the error has the number of stored jobs.
    ///
    /// [`max_jobs_per_call`]: relq_core::capabilities::Limits::max_jobs_per_call
    /// [`max_bytes_per_push`]: relq_core::capabilities::Limits::max_bytes_per_push
    ///
    /// # Errors
    /// The errors of [`Job::to_new_job`], and [`EnqueueError::Push`].
    fn enqueue_all<T: Job>(
        &self,
        jobs: &[T],
    ) -> impl Future<Output = Result<Vec<Pushed>, EnqueueError>> + Send {
        let jobs: Result<Vec<NewJob>, _> = jobs.iter().map(Job::to_new_job).collect();
        async move {
            let pushed = self.push_all(&jobs?).await;
            pushed.map_err(|(source, stored)| EnqueueError::Push { stored, source })
        }
    }
}

impl<Q: ReliableQueue + ?Sized> Enqueue for Q {}
