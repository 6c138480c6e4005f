//! `relq batch wait`, and the progress bar of `relq batch status --watch`.

use std::{
    io::{self, IsTerminal},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};
use relq::{
    Error,
    batch::{BatchId, BatchOutcome, BatchQueue, BatchStatus},
    error::RetryAdvice,
};

use super::{
    known::{batches_of, known},
    report::Report,
};
use crate::{
    failure::{CommandResult, Failure},
    format::Format,
    target::Target,
    values::positive_duration,
    wait_limit::within,
};

/// The pause between two reads of a batch's status for the progress bar.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How long one call waits for the batch. A call may need a connection of its own.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The pause before the next read of the status after the store was unavailable.
const PAUSE: Duration = Duration::from_millis(500);

const BAR: &str = "{bar:30} {pos}/{len}  {msg}  {elapsed}";

/// Wait until a batch has completed
///
/// Exits with 0 when all of its pieces are done, and with 1 when one has failed, it was
/// cancelled, or the time has passed. The command also works for a batch that has
/// already completed.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The id of the batch
    id: BatchId,

    /// Give up after this time, such as 10m
    #[arg(long, value_parser = positive_duration, value_name = "DURATION")]
    timeout: Option<Duration>,

    #[command(flatten)]
    format: Format,
}

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        let queue = target.open_existing().await?;
        let batches = batches_of(&*queue)?;
        let watch = Watch::unseen();
        let status = watch.until_completed(batches, &self.id, self.timeout).await?;
        self.format.show(&Report::of(&status))?;
        let state = status.state;
        match status.outcome() {
            Some(BatchOutcome::Done) => Ok(()),
            Some(_) => {
                Err(Failure::Failed(format!("the batch {} ended as {state}", self.id)))
            }
            None => {
                Err(Failure::Failed(format!("the batch {} is still {state}", self.id)))
            }
        }
    }
}

/// Reads the status of a batch until it has completed, and may draw a progress bar.
#[derive(Debug)]
pub(super) struct Watch {
    bar: ProgressBar,
}

impl Watch {
    /// A watch without a progress bar.
    pub(super) fn unseen() -> Self {
        Self { bar: ProgressBar::hidden() }
    }

    /// A watch that draws a progress bar on standard error, if that is a terminal.
    pub(super) fn drawn() -> Self {
        if !io::stderr().is_terminal() {
            return Self::unseen();
        }
        let style =
            ProgressStyle::with_template(BAR).expect("the template is a constant");
        Self { bar: ProgressBar::new(0).with_style(style) }
    }

    /// Returns the status of the batch when it has completed, or when `timeout` has
    /// passed. Fails if the store does not reply in time.
    pub(super) async fn until_completed(
        &self,
        batches: &dyn BatchQueue,
        id: &BatchId,
        timeout: Option<Duration>,
    ) -> CommandResult<BatchStatus> {
        let began = Instant::now();
        loop {
            let left = timeout.map(|timeout| timeout.saturating_sub(began.elapsed()));
            let is_over = left.is_some_and(|left| left.is_zero());
            let status = match within(left, self.look(batches, id, left)).await? {
                Ok(status) => known(id, status)?,
                Err(error) if is_over => return Err(error.into()),
                Err(error) => {
                    pause_after(error).await?;
                    continue;
                }
            };
            self.draw(&status);
            if status.state.is_completed() || is_over {
                self.bar.finish_and_clear();
                return Ok(status);
            }
        }
    }

    /// Reads the status: now for the progress bar, and else when the batch has completed or
    /// some time has passed.
    async fn look(
        &self,
        batches: &dyn BatchQueue,
        id: &BatchId,
        left: Option<Duration>,
    ) -> Result<Option<BatchStatus>, Error> {
        if self.bar.is_hidden() {
            let limit = left.unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT);
            return batches.wait_batch(id, limit).await;
        }
        tokio::time::sleep(left.unwrap_or(LOOK_EVERY).min(LOOK_EVERY)).await;
        batches.batch(id).await
    }

    fn draw(&self, status: &BatchStatus) {
        let BatchStatus { state, failed, leased, .. } = status;
        self.bar.set_length(status.total);
        self.bar.set_position(status.ended());
        self.bar.set_message(format!("{state}, {leased} running, {failed} failed"));
    }
}

/// Sleeps if the failed call may succeed later. Returns the error if it cannot.
async fn pause_after(error: Error) -> CommandResult {
    if error.retry_advice() == RetryAdvice::Never {
        return Err(error.into());
    }
    tracing::warn!("{}; looking again", error.full_message());
    tokio::time::sleep(PAUSE).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{
        future::pending,
        sync::{
            Arc,
            atomic::{AtomicU32, Ordering},
        },
    };

    use relq::{
        batch::BatchState,
        environment::Timestamp,
        error::{ErrorContext, Operation},
    };
    use relq_conformance::{
        async_trait,
        overrides::{Override, Right},
    };

    use super::*;
    use crate::sample_queues::overridden_queue;

    /// The store is down at the first call, the second one ends before the batch does, and
    /// the third one ends with the batch.
    #[derive(Default)]
    struct CompletesLater(AtomicU32);

    #[async_trait]
    impl Override for CompletesLater {
        async fn wait_batch(
            &self,
            _: &Right,
            batch: &BatchId,
            _: Duration,
        ) -> Result<Option<BatchStatus>, Error> {
            let mut status =
                BatchStatus::new(batch.clone(), Timestamp::from_unix_ms(0));
            match self.0.fetch_add(1, Ordering::Relaxed) {
                0 => {
                    let operation = Operation::WaitBatch;
                    let at = ErrorContext { backend: "mine", operation };
                    let source = "the test says so".into();
                    return Err(Error::Unavailable { at, source });
                }
                1 => {}
                _ => status.state = BatchState::Completed(BatchOutcome::Done),
            }
            Ok(Some(status))
        }
    }

    /// A store that never replies, as one on a machine that hangs.
    struct Silent;

    #[async_trait]
    impl Override for Silent {
        async fn wait_batch(
            &self,
            _: &Right,
            _: &BatchId,
            _: Duration,
        ) -> Result<Option<BatchStatus>, Error> {
            pending().await
        }
    }

    /// Waits for a batch on a queue with these overrides.
    async fn wait(
        overrides: impl Override + 'static,
        timeout: Option<Duration>,
    ) -> CommandResult<BatchStatus> {
        let queue = overridden_queue(Arc::new(overrides)).await;
        let batches = queue.batch_queue().expect("the backend has batches");
        let id = BatchId::new("b").expect("it is an id");
        Watch::unseen().until_completed(batches, &id, timeout).await
    }

    /// A wait without a limit has no last call.
    #[tokio::test]
    async fn a_wait_without_a_limit_outlasts_its_calls_and_an_outage() {
        let ended = wait(CompletesLater::default(), None).await;

        let status = ended.expect("the outage ends");
        assert_eq!(status.outcome(), Some(BatchOutcome::Done));
    }

    /// The time limits of a connection are longer than a wait may be, so they do not end it.
    #[tokio::test]
    async fn a_wait_ends_although_the_store_does_not_reply() {
        let wait = wait(Silent, Some(Duration::from_millis(10)));

        let ended = tokio::time::timeout(Duration::from_secs(60), wait).await;

        let failed = ended.expect("the wait ends").expect_err("it has no reply");
        assert!(matches!(failed, Failure::Failed(_)), "{failed:?}");
    }
}
