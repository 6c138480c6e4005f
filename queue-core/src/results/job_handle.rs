//! The handle of a producer on one job whose result is kept.

use std::time::Duration;

use super::{JobResult, ResultQueue};
use crate::{Bytes, Error, JobId};

/// The longest single wait of [`JobHandle::result`], which then waits again.
const LONGEST_WAIT: Duration = Duration::from_secs(60 * 60);

/// A job whose result is kept (R29). Its producer waits for the result, or looks at the
/// progress. [`ReliableQueueExt::job_handle`](crate::ReliableQueueExt::job_handle) makes a
/// handle from the id of the job, in any process.
///
/// ```
/// use std::time::Duration;
/// use relq_core::{Error, NewJob, ReliableQueue, ReliableQueueExt, results::JobResult};
///
/// async fn size_of(queue: &dyn ReliableQueue, file: String) -> Result<String, Error> {
///     let hour = Duration::from_secs(3600);
///     let pushed = queue.push_one(NewJob::new(file).keep_result(hour)).await?;
///     let handle = queue.job_handle(pushed.job())?;
///     Ok(match handle.result().await? {
///         Some(JobResult::Done { result }) => String::from_utf8_lossy(&result).into(),
///         Some(JobResult::Dead { error }) => format!("the job is dead: {error}"),
///         other => format!("{other:?}"),
///     })
/// }
/// ```
///
/// # What a waiting call returns
///
/// | what happens to the job | [`result`](Self::result) returns |
/// |---|---|
/// | it is done | [`JobResult::Done`], with the result of its handler |
/// | it is buried: its last attempt failed, it expired, or its handler gave it up | [`JobResult::Dead`], at once. A job that is redriven later is unfinished again, and a new call waits for it |
/// | its handler discards it | [`JobResult::Discarded`] |
/// | it is cancelled, or dropped with its batch | [`JobResult::Cancelled`] |
/// | it follows a job that ends without being done | [`JobResult::Cancelled`], with that job |
/// | it is dead and an operator purges it | [`JobResult::Purged`] |
/// | the whole queue is purged | `None` |
/// | it never was, keeps no result, or ended longer ago than its result is kept | `None`, at once |
///
/// A failed attempt that is retried ends no wait. A handle is only the id and the queue:
/// dropping it, or the future of a call, changes nothing for the job.
#[derive(Debug, Clone)]
pub struct JobHandle<'q> {
    queue: &'q dyn ResultQueue,
    job: JobId,
}

impl<'q> JobHandle<'q> {
    /// A handle on the job with this id.
    pub fn new(queue: &'q dyn ResultQueue, job: JobId) -> Self {
        Self { queue, job }
    }

    /// The id of the job.
    pub fn id(&self) -> &JobId {
        &self.job
    }

    /// Returns, without a wait, the progress of the job or how it ended. `None` for a job
    /// of which nothing is recorded.
    ///
    /// # Errors
    /// The errors of the store. All calls of a handle only read, so they can be repeated.
    pub async fn look(&self) -> Result<Option<JobResult>, Error> {
        let found = self.queue.read_results(std::slice::from_ref(&self.job)).await?;
        Ok(found.into_iter().next().flatten())
    }

    /// Waits until the job has ended, however long that takes, and returns
    /// [what became of it](Self#what-a-waiting-call-returns). Never returns
    /// [`JobResult::Unfinished`].
    ///
    /// # Errors
    /// See [`look`](Self::look).
    pub async fn result(&self) -> Result<Option<JobResult>, Error> {
        loop {
            let found = self.wait_result(LONGEST_WAIT).await?;
            if found.as_ref().is_none_or(JobResult::has_ended) {
                return Ok(found);
            }
        }
    }

    /// Waits until the job has ended, or for `timeout`, and returns what became of it so
    /// far: [`JobResult::Unfinished`], with its progress, if the time is over.
    ///
    /// # Errors
    /// See [`look`](Self::look). [`Error::Invalid`] for a `timeout` of more than
    /// [`MAX_DURATION`](crate::limits::MAX_DURATION).
    pub async fn wait_result(
        &self,
        timeout: Duration,
    ) -> Result<Option<JobResult>, Error> {
        self.queue.wait_result(&self.job, timeout).await
    }

    /// Waits as [`result`](Self::result) does, and decodes the result from JSON. A job that
    /// is done without a result has an empty one, which is not JSON.
    ///
    /// ```
    /// use relq_core::{JobId, ReliableQueue, ReliableQueueExt, results::NoResult};
    ///
    /// /// Waits for the number of words that a job counts.
    /// async fn words(queue: &dyn ReliableQueue, id: &JobId) -> Result<u64, NoResult> {
    ///     let found = queue.job_handle(id)?.json_result().await;
    ///     match &found {
    ///         Err(NoResult::Dead { error }) => println!("the job is dead: {error}"),
    ///         Err(NoResult::Unknown) => println!("its result is not kept any more"),
    ///         _ => {}
    ///     }
    ///     found
    /// }
    /// ```
    ///
    /// # Errors
    /// [`NoResult`], if the job has ended without a result, if the result is not JSON of a
    /// `T`, or if the call to the store failed.
    #[cfg(feature = "json")]
    #[cfg_attr(docsrs, doc(cfg(feature = "json")))]
    pub async fn json_result<T: serde::de::DeserializeOwned>(
        &self,
    ) -> Result<T, NoResult> {
        let found = self.result().await?.ok_or(NoResult::Unknown)?;
        serde_json::from_slice(&found.into_done()?).map_err(NoResult::Decode)
    }
}

/// Why there is no result of a job.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoResult {
    /// The job has not ended.
    #[error("the job has not ended")]
    Unfinished,
    /// The job was buried.
    #[error("the job is dead: {error}")]
    Dead {
        /// Why it died, in words.
        error: String,
    },
    /// The job's worker discarded it.
    #[error("the job was discarded by its worker")]
    Discarded,
    /// The job was cancelled, or dropped with its batch.
    #[error("the job was cancelled{}", followed(.leader.as_ref()))]
    Cancelled {
        /// The job that it followed, if that job ended without being done (R30).
        leader: Option<JobId>,
    },
    /// The job was dead, and an operator purged it.
    #[error("the job died, and was purged")]
    Purged,
    /// Nothing is recorded of the job: it never was, keeps no result, its result is no
    /// longer kept, or the whole queue was purged.
    #[error("the queue has no result of this job")]
    Unknown,
    /// The result is not JSON of the type that was asked for.
    #[cfg(feature = "json")]
    #[error("the result of the job is not JSON of the expected type")]
    Decode(#[source] serde_json::Error),
    /// The call to the store failed. It only reads, so it may be repeated;
    /// [`Error::retry_advice`] says whether that can help.
    #[error("the result of the job cannot be read")]
    Store(#[from] Error),
}

fn followed(leader: Option<&JobId>) -> String {
    leader.map(|leader| format!(": it followed \"{leader}\"")).unwrap_or_default()
}

impl JobResult {
    /// The result of a job that is done.
    ///
    /// # Errors
    /// [`NoResult`], with what became of any other job.
    pub fn into_done(self) -> Result<Bytes, NoResult> {
        match self {
            Self::Done { result } => Ok(result),
            Self::Unfinished { .. } => Err(NoResult::Unfinished),
            Self::Dead { error } => Err(NoResult::Dead { error }),
            Self::Discarded => Err(NoResult::Discarded),
            Self::Cancelled { leader } => Err(NoResult::Cancelled { leader }),
            Self::Purged => Err(NoResult::Purged),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R29: a producer that has no result is told what became of its job instead.
    #[test]
    fn each_end_without_a_result_is_told_by_its_own_words() {
        let leader = JobId::new("leader").unwrap();
        let done = JobResult::Done { result: "4".into() };
        for (found, words) in [
            (JobResult::Unfinished { progress: Some("half".into()) }, "has not ended"),
            (JobResult::Dead { error: "no such user".into() }, "is dead: no such user"),
            (JobResult::Discarded, "was discarded by its worker"),
            (JobResult::Cancelled { leader: None }, "was cancelled"),
            (
                JobResult::Cancelled { leader: Some(leader) },
                "was cancelled: it followed \"leader\"",
            ),
            (JobResult::Purged, "died, and was purged"),
        ] {
            let is_unfinished = matches!(found, JobResult::Unfinished { .. });
            assert_eq!(found.has_ended(), !is_unfinished, "{found:?}");
            let told = found.clone().into_done().unwrap_err().to_string();
            assert_eq!(told, format!("the job {words}"), "{found:?}");
        }

        assert!(done.has_ended());
        assert_eq!(done.into_done().unwrap(), "4");
    }
}
