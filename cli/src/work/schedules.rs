//! The schedulers of `relq work --schedules`, which run beside the worker.

use std::sync::{Arc, OnceLock};

use relq::{
    Queue, QueueName,
    schedule::{Scheduler, SchedulerError, SchedulerSummary},
    worker::CancellationToken,
};
use tokio::task::JoinSet;
use tracing::Instrument as _;

use crate::{
    cron::schedules_of,
    failure::{CommandResult, explain},
};

/// The schedulers. When one ends, it returns why.
type Running = JoinSet<String>;

/// The running schedulers, one for each queue of the worker. Dropping this value ends
/// them; a tick that is being pushed is pushed or not.
#[derive(Default)]
pub(crate) struct Schedulers {
    ended: CancellationToken,
    message: Arc<OnceLock<String>>,
    watching: JoinSet<()>,
}

impl Schedulers {
    /// Starts a scheduler for each queue. Fails if one of them has no schedules.
    pub(crate) fn start<'a>(
        queues: impl Iterator<Item = (&'a QueueName, &'a Arc<dyn Queue>)> + Clone,
    ) -> CommandResult<Self> {
        for (_, queue) in queues.clone() {
            schedules_of(&**queue)?;
        }
        let mut running = Running::new();
        for (name, queue) in queues {
            let scheduler = Scheduler::new(Arc::clone(queue) as _);
            let name = name.clone();
            let span = tracing::error_span!("queue", %name);
            let ended = async move { message_of(&name, &scheduler.run().await) };
            running.spawn(ended.instrument(span));
        }
        Ok(Self::watch(running))
    }

    /// A worker whose scheduler has ended would go on and push no tick, so the end of the
    /// first one is told. None ends by itself: it has panicked, or was refused.
    fn watch(mut running: Running) -> Self {
        let mut schedulers = Self::default();
        let (ended, message) =
            (schedulers.ended.clone(), Arc::clone(&schedulers.message));
        schedulers.watching.spawn(async move {
            if let Some(first) = running.join_next().await {
                message.get_or_init(|| {
                    first.unwrap_or_else(|panic| {
                        format!("a scheduler has ended: {panic}")
                    })
                });
                ended.cancel();
            }
        });
        schedulers
    }

    /// Completes when any of the schedulers has ended.
    pub(crate) fn ended(&self) -> impl Future<Output = ()> + Send + use<> {
        self.ended.clone().cancelled_owned()
    }

    /// Why a scheduler has ended. `None` if all run.
    pub(crate) fn message(&self) -> Option<String> {
        self.message.get().cloned()
    }
}

fn message_of(
    queue: &QueueName,
    ended: &Result<SchedulerSummary, SchedulerError>,
) -> String {
    let why = match ended {
        Err(SchedulerError::Store(error)) => explain(error),
        Err(error) => error.to_string(),
        Ok(_) => "it was stopped".to_owned(),
    };
    format!("the scheduler of the queue {queue} has ended: {why}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    async fn end_of(running: Running) -> String {
        let schedulers = Schedulers::watch(running);
        assert_eq!(schedulers.message(), None);
        let ended = tokio::time::timeout(Duration::from_secs(60), schedulers.ended());
        ended.await.unwrap();
        schedulers.message().unwrap()
    }

    #[tokio::test]
    async fn a_scheduler_that_panics_is_told() {
        let mut running = Running::new();
        running.spawn(std::future::pending());
        running.spawn(async { panic!("oh no") });
        let message = end_of(running).await;
        assert!(message.contains("panicked with message \"oh no\""), "{message}");
    }

    #[tokio::test]
    async fn a_scheduler_that_is_refused_is_told() {
        let mut running = Running::new();
        let queue = QueueName::new("mail").unwrap();
        running
            .spawn(async move { message_of(&queue, &Err(SchedulerError::LookEvery)) });
        let message = end_of(running).await;
        assert!(message.contains("the queue mail has ended: the time"), "{message}");
    }

    #[tokio::test]
    async fn without_schedulers_none_ends() {
        let schedulers = Schedulers::watch(Running::new());
        let ended =
            tokio::time::timeout(Duration::from_millis(50), schedulers.ended()).await;
        assert!(ended.is_err());
    }
}
