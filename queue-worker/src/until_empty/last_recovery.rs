//! Recovers the queues of a worker before it ends because they are empty.

use std::sync::Arc;

use relq_core::{
    Error, ReliableQueue,
    error::{Operation, RetryAdvice},
};

use crate::{observers::Observers, reaper, serves::Serves, settings::Settings};

/// After how many recoveries of a queue that fail one after the other the worker no longer
/// waits for one.
const MOST_FAILURES: u32 = 3;

/// The queues of a worker that are recovered before it ends.
pub(super) struct LastRecovery(Vec<Recovering>);

/// One of the queues, with its observers.
struct Recovering {
    queue: Arc<dyn ReliableQueue>,
    observers: Observers,
    /// How many recoveries have failed since the last one that succeeded.
    failures: u32,
}

impl LastRecovery {
    pub(super) fn of(serves: &Serves, settings: &Settings) -> Self {
        let recovering = |(queue, own): (&Arc<dyn ReliableQueue>, Observers)| {
            let observers = settings.observers.clone().with(own);
            Recovering { queue: Arc::clone(queue), observers, failures: 0 }
        };
        Self(serves.queues().into_iter().map(recovering).collect())
    }

    /// Recovers all queues until none has more to recover. Returns false if a recovery
    /// has failed and must be repeated. A queue that has failed too often, or that cannot
    /// be recovered, is left as it is: the worker's reaper decides whether that ends the
    /// worker.
    pub(super) async fn is_done(&mut self) -> bool {
        let mut is_done = true;
        for recovering in &mut self.0 {
            let recovered = recovering.recover_all().await;
            is_done &= recovering.is_done_after(recovered);
        }
        is_done
    }
}

impl Recovering {
    /// Whether the worker no longer waits for a recovery of the queue.
    fn is_done_after(&mut self, recovered: Result<(), Error>) -> bool {
        match recovered {
            Ok(()) => {
                self.failures = 0;
                true
            }
            Err(error) => {
                self.observers.call_failed(Operation::Recover, &error);
                self.failures = self.failures.saturating_add(1);
                let is_given_up = self.failures >= MOST_FAILURES
                    || error.retry_advice() == RetryAdvice::Never;
                if is_given_up {
                    let (queue, error) = (&self.queue, error.full_message());
                    tracing::warn!(%queue, error, "ending without a last recovery");
                }
                is_given_up
            }
        }
    }

    async fn recover_all(&self) -> Result<(), Error> {
        loop {
            let recovered = self.queue.recover(reaper::PAGE).await?;
            self.observers.recovered(&recovered);
            if !recovered.more {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use relq_core::{QueueName, environment::Environment, error::ErrorContext};
    use relq_memory::MemoryStore;

    use super::*;

    /// A worker gives up a queue whose recoveries fail one after the other. One that succeeds
    /// in between begins the count anew.
    #[test]
    fn only_failures_in_a_row_end_the_wait() {
        let at = ErrorContext { backend: "test", operation: Operation::Recover };
        let failed = || Err(Error::Unavailable { at, source: "as wanted".into() });
        let denied = || Err(Error::Denied { at, source: "as wanted".into() });
        let name = QueueName::new("emails").unwrap();
        let queue = MemoryStore::default().open(name, Environment::default());
        let mut recovering = Recovering {
            queue: Arc::new(queue),
            observers: Observers::default(),
            failures: 0,
        };
        let mut is_done = |recovered| recovering.is_done_after(recovered);

        for _ in 0..3 {
            assert_eq!([failed(), failed()].map(&mut is_done), [false, false]);
            assert!(is_done(Ok(())));
        }
        assert_eq!(
            [failed(), failed(), failed()].map(&mut is_done),
            [false, false, true]
        );
        assert!(is_done(Ok(())) && is_done(denied()));
    }
}
