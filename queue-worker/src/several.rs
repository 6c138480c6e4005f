//! A worker on several queues.
//!
//! ```text
//!              one thread                         a task of each queue
//!  +-----------------------------------+      +--------------------------+
//!  | the heartbeats of queue 1, 2, ... |      | claim loop, handlers and |
//!  +-----------------------------------+      | reaper of queue 1        |
//!                                             +--------------------------+
//!  +-----------------------------------+      +--------------------------+
//!  | the pool of slots: which queue    | <--> | ... of queue 2           |
//!  | may claim next                    |      +--------------------------+
//!  +-----------------------------------+
//! ```
//!
//! A queue waits for its own store only, so a store that is down does not delay the
//! others. If a queue ends with an error that a retry cannot help, the other queues stop
//! gracefully, and the worker ends with that error.

use std::{panic::resume_unwind, sync::Arc};

use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};

use crate::{
    WorkerError,
    handler::AnyHandler,
    heartbeat::Heartbeat,
    readiness::Readiness,
    run::{Run, Shared},
    shutdown::{Requests, Shutdown},
};

/// Runs a part of the worker for each queue until asked to stop.
///
/// # Errors
/// The first error with which a queue ends.
pub(crate) async fn serve_all(
    runs: Vec<Run>,
    handler: AnyHandler,
    requests: Requests,
) -> Result<(), WorkerError> {
    let mut shutdown = Shutdown::listen(requests)?;
    let failed = CancellationToken::new();
    shutdown.also_stop_on(failed.clone().cancelled_owned());
    let serving = start_all(runs, handler, shutdown, &failed).await?;
    first_error(serving).await
}

async fn start_all(
    runs: Vec<Run>,
    handler: AnyHandler,
    shutdown: Shutdown,
    failed: &CancellationToken,
) -> Result<JoinSet<Result<(), WorkerError>>, WorkerError> {
    let readiness = Readiness::default();
    let helds: Vec<_> = runs.iter().map(|run| Arc::new(run.held())).collect();
    let beats = runs
        .iter()
        .zip(&helds)
        .map(|(run, held)| span(run).in_scope(|| run.beats(held)));
    let heartbeats = Heartbeat::start(beats.collect()).await;
    let heartbeats = heartbeats.map_err(WorkerError::Heartbeat)?;
    let parts = helds.into_iter().zip(heartbeats).zip(shutdown.split(runs.len()));
    let mut serving = JoinSet::new();
    for (run, ((held, heartbeat), shutdown)) in runs.into_iter().zip(parts) {
        let (span, handler) = (span(&run), Arc::clone(&handler));
        let (readiness, failed) = (readiness.another(), failed.clone());
        let shared = Shared { handler, readiness, held, heartbeat, shutdown, failed };
        serving.spawn(run.serve(shared).instrument(span));
    }
    Ok(serving)
}

/// Waits until all queues have ended.
async fn first_error(
    mut serving: JoinSet<Result<(), WorkerError>>,
) -> Result<(), WorkerError> {
    let mut result = Ok(());
    while let Some(served) = serving.join_next().await {
        result = result.and(served.unwrap_or_else(died));
    }
    result
}

/// Continues the panic of a queue's task, which drops the other tasks.
fn died(error: JoinError) -> Result<(), WorkerError> {
    match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(_) => Err(WorkerError::Died("runtime")),
    }
}

/// The span of a queue, which puts its name into each line of the log. It has the level of
/// errors, so that no filter leaves it out.
fn span(run: &Run) -> Span {
    let name = run.place.as_ref().map(|(name, _)| tracing::field::display(name));
    tracing::error_span!("queue", name)
}

#[cfg(test)]
mod tests {
    use tokio::sync::Notify;

    use super::*;

    async fn panics() -> Result<(), WorkerError> {
        panic!("as the test wants it")
    }

    /// A backend that panics ends a worker on several queues as one on a single queue: with
    /// the panic, and not with a summary as if nothing had happened.
    #[tokio::test]
    #[should_panic(expected = "as the test wants it")]
    async fn a_panic_of_one_queue_goes_on_in_the_caller() {
        let mut serving = JoinSet::new();
        serving.spawn(panics());

        first_error(serving).await.unwrap();
    }

    /// The other queues stop because of the first error, and may then fail for that reason.
    /// Their errors do not replace the first one.
    #[tokio::test]
    async fn the_first_error_of_a_queue_is_that_of_the_worker() {
        let (first, mut serving) = (Arc::new(Notify::new()), JoinSet::new());
        let stopped = Arc::clone(&first);
        serving.spawn(async move {
            first.notify_one();
            Err(WorkerError::Died("reaper"))
        });
        serving.spawn(async move {
            stopped.notified().await;
            Err(WorkerError::Died("heartbeat"))
        });

        let error = first_error(serving).await.unwrap_err();

        assert_eq!(error.to_string(), "the reaper has died");
    }
}
