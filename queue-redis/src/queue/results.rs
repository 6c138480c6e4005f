//! The calls on results of jobs (R29).

use std::time::Duration;

use async_trait::async_trait;
use relq_core::{
    Error, JobId, Receipt,
    error::Operation,
    results::{JobResult, Reported, ResultQueue},
};

use super::{RedisQueue, bookkeeping_with};
use crate::pattern::{JobRef, Pattern};

/// How long a waiting call sleeps before it reads the result again although nothing woke
/// it. The server may have lost the end that would have woken it, in a fail-over or because
/// another client removed it.
const RECHECK: Duration = Duration::from_secs(10);

#[async_trait]
impl<P: Pattern> ResultQueue for RedisQueue<P> {
    async fn report_progress(
        &self,
        receipt: &Receipt,
        progress: &[u8],
    ) -> Result<Reported, Error> {
        P::capabilities().check_progress(progress)?;
        let lease = P::lease(receipt.token(), receipt.job().as_str().as_bytes());
        let jobs = [JobRef::Leased(&lease)].into_iter();
        bookkeeping_with(&*self.pattern, jobs).report_progress(&lease, progress).await
    }

    async fn read_results(
        &self,
        jobs: &[JobId],
    ) -> Result<Vec<Option<JobResult>>, Error> {
        let operation = Operation::ReadResults;
        P::capabilities().check_batch(operation, jobs.len())?;
        self.pattern.bookkeeping().read_results(operation, jobs).await
    }

    async fn wait_result(
        &self,
        job: &JobId,
        timeout: Duration,
    ) -> Result<Option<JobResult>, Error> {
        P::capabilities().check_wait_result(timeout)?;
        let bookkeeping = self.pattern.bookkeeping();
        let clock = bookkeeping.conn.environment().clock();
        let deadline = clock.elapsed() + timeout;
        loop {
            // An end after this look wakes the call, since it listens before the look. A
            // call that does not wait opens no connection.
            let end = (!timeout.is_zero()).then(|| self.ends.listen(job));
            let jobs = std::slice::from_ref(job);
            let found = bookkeeping.read_results(Operation::WaitResult, jobs).await?;
            let found = found.into_iter().next().flatten();
            let left = deadline.saturating_sub(clock.elapsed());
            if left.is_zero() || found.as_ref().is_none_or(JobResult::has_ended) {
                return Ok(found);
            }
            let Some(end) = end else { return Ok(found) };
            tokio::select! {
                () = end.heard() => {}
                () = clock.sleep(left.min(RECHECK)) => {}
            }
        }
    }
}
