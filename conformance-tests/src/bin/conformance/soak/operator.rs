//! The operator of the soak: looks at the queue, pauses it and lets it continue, while
//! faults happen.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use relq_core::{
    Error, Queue,
    environment::Environment,
    error::RetryAdvice,
    operator::{JobState, PeekRequest},
};
use tokio::{sync::oneshot, task::JoinHandle};

use crate::SuiteResult;

/// The time between two rounds of calls, and for which the queue is paused.
const EVERY: Duration = Duration::from_secs(1);
const PAUSED: Duration = Duration::from_millis(50);

/// How long one call is repeated.
const PATIENCE: Duration = Duration::from_secs(60);
const RETRY: Duration = Duration::from_millis(20);

/// A running operator.
pub(super) struct Operating {
    stop: oneshot::Sender<()>,
    running: JoinHandle<SuiteResult<u64>>,
}

impl Operating {
    pub(super) fn start(queue: Arc<dyn Queue>, environment: Environment) -> Self {
        let (stop, stopped) = oneshot::channel();
        let running = tokio::spawn(async move {
            OperatorCalls { queue, environment, answered: 0 }.run(stopped).await
        });
        Self { stop, running }
    }

    /// Whether the operator has ended by itself, because a call failed.
    pub(super) fn has_ended(&self) -> bool {
        self.running.is_finished()
    }

    /// Stops the operator when the queue is not paused. Returns how many of its calls
    /// were answered.
    pub(super) async fn end(self) -> SuiteResult<u64> {
        // The send fails if the operator has ended by itself: then it returns the error.
        let _ = self.stop.send(());
        self.running.await?
    }
}

struct OperatorCalls {
    queue: Arc<dyn Queue>,
    environment: Environment,
    answered: u64,
}

impl OperatorCalls {
    async fn run(mut self, mut stopped: oneshot::Receiver<()>) -> SuiteResult<u64> {
        let queue = Arc::clone(&self.queue);
        while stopped.try_recv() == Err(oneshot::error::TryRecvError::Empty) {
            self.until_answered(|| queue.pause()).await?;
            self.environment.clock().sleep(PAUSED).await;
            self.until_answered(|| queue.resume()).await?;
            self.until_answered(|| queue.stats()).await?;
            let page = NonZeroU32::new(20).expect("not zero");
            for state in [JobState::Ready, JobState::Leased, JobState::Dead] {
                let ask = PeekRequest::new(state, page);
                self.until_answered(|| queue.peek(&ask)).await?;
            }
            self.until_answered(|| queue.recover(page)).await?;
            self.environment.clock().sleep(EVERY).await;
        }
        Ok(self.answered)
    }

    /// Repeats the call until it succeeds. Fails if the error allows no repetition.
    async fn until_answered<T, F>(&mut self, call: impl Fn() -> F) -> SuiteResult<T>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let clock = self.environment.clock();
        let give_up = clock.elapsed() + PATIENCE;
        loop {
            match call().await {
                Ok(answer) => {
                    self.answered += 1;
                    return Ok(answer);
                }
                Err(error)
                    if error.retry_advice() == RetryAdvice::Never
                        || clock.elapsed() > give_up =>
                {
                    return Err(error.full_message().into());
                }
                Err(_) => clock.sleep(RETRY).await,
            }
        }
    }
}
