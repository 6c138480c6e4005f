//! The record that a handler makes for the producer of its job: progress while it runs, and
//! a result at its end (R29).

use std::{
    future::Future,
    sync::{Arc, Mutex, PoisonError},
};

use relq_core::{
    Bytes, ReliableQueue,
    results::{MAX_PROGRESS, MAX_RESULT, Reported},
};

use crate::JobContext;

/// The result and the progress of one attempt at a job that keeps its result.
#[derive(Debug)]
pub(crate) struct AttemptRecord {
    /// The queue that takes reports of progress. `None` in tests of handlers.
    queue: Option<Arc<dyn ReliableQueue>>,
    result: Mutex<Option<Bytes>>,
    progress: Mutex<Option<Bytes>>,
}

impl AttemptRecord {
    pub(crate) fn new(queue: Option<Arc<dyn ReliableQueue>>) -> Self {
        Self { queue, result: Mutex::default(), progress: Mutex::default() }
    }
}

/// Why a handler's result was refused.
///
/// A handler that passes this error on fails, and its job is retried.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetResultError {
    /// The result has more than [`MAX_RESULT`] bytes.
    #[error("the result has {bytes} bytes, and at most {MAX_RESULT} are kept")]
    TooLarge {
        /// The size of the result.
        bytes: usize,
    },
    /// The value cannot be written as JSON.
    #[cfg(feature = "json")]
    #[error("the result cannot be written as JSON")]
    Encode(#[source] serde_json::Error),
}

/// Why a report of progress was not stored.
///
/// A handler may ignore this error: the job runs on. After
/// [`LeaseLost`](Self::LeaseLost) it should stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProgressError {
    /// The progress has more than [`MAX_PROGRESS`] bytes.
    #[error("the progress has {bytes} bytes, and at most {MAX_PROGRESS} are kept")]
    TooLarge {
        /// The size of the progress.
        bytes: usize,
    },
    /// The value cannot be written as JSON.
    #[cfg(feature = "json")]
    #[error("the progress cannot be written as JSON")]
    Encode(#[source] serde_json::Error),
    /// The attempt no longer holds its lease: another worker may run the job, or the job
    /// was cancelled. The progress that is shown was not changed (R7).
    #[error("the lease is lost, so the progress was not stored")]
    LeaseLost,
    /// The call to the store failed, and may have taken effect. The next report replaces
    /// this one, so it need not be repeated.
    #[error("the progress cannot be reported")]
    Store(#[source] relq_core::Error),
}

/// Results and progress, for the producer that asked for them by
/// [`NewJob::keep_result`](relq_core::NewJob::keep_result) (R29).
impl JobContext {
    /// Whether the producer of the job asked for its result. If it did not, a result or a
    /// progress has no effect, so a handler need not compute one.
    pub fn keeps_result(&self) -> bool {
        self.record().is_some()
    }

    /// Sets the result of the job, which its producer can read when the job is done. The
    /// last call counts. The result is stored in the step that ends the job, if the handler
    /// returns `Ok`; otherwise it is dropped. A job that is done without a result has an
    /// empty one.
    ///
    /// For a job that [keeps no result](Self::keeps_result) this does nothing.
    ///
    /// ```
    /// use relq_worker::{Failure, JobContext};
    ///
    /// async fn count(job: JobContext) -> Result<(), Failure> {
    ///     let words = std::str::from_utf8(job.payload())?.split_whitespace().count();
    ///     job.set_result(words.to_string())?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// An [`already_done`](crate::Worker::already_done) check sets the result in the same
    /// way.
    ///
    /// # Errors
    /// [`SetResultError::TooLarge`]. An earlier result stays.
    pub fn set_result(&self, result: impl Into<Bytes>) -> Result<(), SetResultError> {
        let Some(record) = self.record() else { return Ok(()) };
        let result = result.into();
        if result.len() > MAX_RESULT {
            return Err(SetResultError::TooLarge { bytes: result.len() });
        }
        set(&record.result, result);
        Ok(())
    }

    /// Sets `value` as JSON as the result of the job, as [`set_result`](Self::set_result)
    /// does.
    ///
    /// # Errors
    /// [`SetResultError::TooLarge`], and [`SetResultError::Encode`] when the value cannot
    /// be JSON, such as a map whose keys are not strings. An earlier result stays.
    #[cfg(feature = "json")]
    pub fn set_json_result<T: serde::Serialize + ?Sized>(
        &self,
        value: &T,
    ) -> Result<(), SetResultError> {
        if !self.keeps_result() {
            return Ok(());
        }
        self.set_result(serde_json::to_vec(value).map_err(SetResultError::Encode)?)
    }

    /// The result that this attempt has set. `None` before that, and for a job that
    /// [keeps no result](Self::keeps_result).
    pub fn result(&self) -> Option<Bytes> {
        get(&self.record()?.result)
    }

    /// Replaces the progress that is shown for the job. It stays until the next report, in
    /// later attempts too, and ends with the job.
    ///
    /// This is a call to the store, so a handler should report every second rather than
    /// every row. For a job that [keeps no result](Self::keeps_result) it returns at once,
    /// without a call.
    ///
    /// ```
    /// use relq_worker::{Failure, JobContext, ProgressError};
    ///
    /// async fn export(job: JobContext) -> Result<(), Failure> {
    ///     for percent in 1..=100 {
    ///         write(percent).await;
    ///         match job.report_progress(percent.to_string()).await {
    ///             Err(error @ ProgressError::LeaseLost) => return Err(error.into()),
    ///             _ => {} // the job matters more than a report of it
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// # async fn write(_: u32) {}
    /// ```
    ///
    /// # Errors
    /// See [`ProgressError`].
    pub fn report_progress(
        &self,
        progress: impl Into<Bytes>,
    ) -> impl Future<Output = Result<(), ProgressError>> + Send {
        let progress = self.record().map(|record| (record, progress.into()));
        async move {
            let Some((record, progress)) = progress else { return Ok(()) };
            self.report(record, progress).await
        }
    }

    /// Replaces the progress that is shown for the job by `value` as JSON, as
    /// [`report_progress`](Self::report_progress) does.
    ///
    /// # Errors
    /// See [`ProgressError`].
    #[cfg(feature = "json")]
    pub fn report_json_progress<T: serde::Serialize + ?Sized>(
        &self,
        value: &T,
    ) -> impl Future<Output = Result<(), ProgressError>> + Send {
        // Encode here and not in the future, so that `T` need not be `Sync`.
        let record = self.record();
        let progress = record.map(|record| (record, serde_json::to_vec(value)));
        async move {
            let Some((record, progress)) = progress else { return Ok(()) };
            let progress = progress.map_err(ProgressError::Encode)?;
            self.report(record, progress.into()).await
        }
    }

    /// The progress that this attempt has reported last. `None` before that, and for a job
    /// that [keeps no result](Self::keeps_result).
    pub fn reported_progress(&self) -> Option<Bytes> {
        get(&self.record()?.progress)
    }

    async fn report(
        &self,
        record: &AttemptRecord,
        progress: Bytes,
    ) -> Result<(), ProgressError> {
        if progress.len() > MAX_PROGRESS {
            return Err(ProgressError::TooLarge { bytes: progress.len() });
        }
        if self.lease_end().is_some() {
            return Err(ProgressError::LeaseLost);
        }
        let queue = record.queue.as_ref().and_then(|queue| queue.result_queue());
        if let Some(queue) = queue {
            let reported = queue.report_progress(self.receipt(), &progress).await;
            if reported.map_err(ProgressError::Store)? == Reported::LeaseLost {
                return Err(ProgressError::LeaseLost);
            }
        }
        set(&record.progress, progress);
        Ok(())
    }
}

fn set(kept: &Mutex<Option<Bytes>>, bytes: Bytes) {
    *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(bytes);
}

fn get(kept: &Mutex<Option<Bytes>>) -> Option<Bytes> {
    kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use relq_core::{Delivery, JobId, Receipt};

    use super::*;
    use crate::context::LeaseEnd;

    fn job(keeps_result: bool) -> JobContext {
        let receipt = Receipt::new(JobId::new("job").unwrap(), 1, "token");
        let delivery = Delivery::new(receipt, "", Duration::from_secs(30));
        JobContext::new(delivery.keeps_result(keeps_result))
    }

    #[test]
    fn the_last_result_counts() {
        let job = job(true);
        assert_eq!(job.result(), None, "before the first");
        job.set_result("first").unwrap();
        job.set_result("last").unwrap();
        assert_eq!(job.result().as_deref(), Some(&b"last"[..]), "after two");
    }

    /// A result that is too large replaces nothing.
    #[test]
    fn a_result_is_bounded() {
        let job = job(true);
        job.set_result(vec![0; MAX_RESULT]).unwrap();
        let refused = job.set_result(vec![1; MAX_RESULT + 1]);
        assert_eq!(job.result().unwrap()[0], 0, "the result before it stays");
        let bytes = MAX_RESULT + 1;
        assert!(
            matches!(refused, Err(SetResultError::TooLarge { bytes: it }) if it == bytes),
            "{refused:?}"
        );
    }

    #[tokio::test]
    async fn a_job_that_keeps_no_result_drops_what_it_is_given() {
        let job = job(false);
        job.set_result("result").unwrap();
        job.report_progress("progress").await.unwrap();
        assert_eq!((job.result(), job.reported_progress()), (None, None), "it is kept");

        job.set_result(vec![0; MAX_RESULT + 1]).unwrap();
        job.report_progress(vec![0; MAX_PROGRESS + 1]).await.unwrap();
        assert!(!job.keeps_result());
    }

    #[tokio::test]
    async fn progress_is_bounded() {
        let job = job(true);
        job.report_progress(vec![0; MAX_PROGRESS]).await.unwrap();
        let refused = job.report_progress(vec![0; MAX_PROGRESS + 1]).await;
        assert!(matches!(refused, Err(ProgressError::TooLarge { .. })), "{refused:?}");
    }

    /// A value that cannot be JSON does not fail a job that keeps no result.
    #[cfg(feature = "json")]
    #[tokio::test]
    async fn a_job_that_keeps_no_result_encodes_none() {
        let value = std::collections::BTreeMap::from([((1, 2), 3)]);
        let (plain, kept) = (job(false), job(true));

        plain.set_json_result(&value).expect("the result has no effect");
        let reported = plain.report_json_progress(&value).await;

        reported.expect("the progress has no effect");
        let refused = kept.set_json_result(&value);
        assert!(matches!(refused, Err(SetResultError::Encode(_))), "{refused:?}");
    }

    /// R7: an attempt without a lease does not replace the progress of a later attempt.
    #[tokio::test]
    async fn progress_ends_with_the_lease() {
        let job = job(true);
        job.report_progress("half").await.unwrap();
        job.end_lease(LeaseEnd::Lost);
        let refused = job.report_progress("all").await;
        let shown = job.reported_progress().unwrap();
        assert_eq!(shown, "half", "a report after the lease was lost is stored");
        assert!(matches!(refused, Err(ProgressError::LeaseLost)), "{refused:?}");
    }
}
