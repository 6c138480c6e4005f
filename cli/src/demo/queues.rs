//! The queues of the demo. Each worker serves all of them.

use std::sync::Arc;

use relq::{Queue, QueueName, Stats, operator::Audit};

use super::own_queue::remove;
use crate::failure::{CommandResult, Failure};

/// The queues of a running demo, at least one.
pub(super) struct DemoQueues(Vec<(QueueName, Arc<dyn Queue>)>);

impl DemoQueues {
    /// Opens this many queues, whose names begin with `name`.
    pub(super) async fn open(
        url: &str,
        name: &str,
        count: usize,
    ) -> CommandResult<Self> {
        let mut queues = Vec::with_capacity(count);
        for number in 1..=count.max(1) {
            let name =
                if number == 1 { name.into() } else { format!("{name}-{number}") };
            let name = QueueName::new(name).map_err(|error| {
                Failure::Failed(format!("no name for a queue: {error}"))
            })?;
            let queue = relq::connect(url, &name).await?;
            queues.push((name, queue));
        }
        Ok(Self(queues))
    }

    /// The first queue and its name.
    pub(super) fn first(&self) -> (&QueueName, &Arc<dyn Queue>) {
        let (name, queue) = &self.0[0];
        (name, queue)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &QueueName> {
        self.0.iter().map(|(name, _)| name)
    }

    pub(super) fn queues(&self) -> impl Iterator<Item = &Arc<dyn Queue>> {
        self.0.iter().map(|(_, queue)| queue)
    }

    /// The jobs of all queues together, in the states that the demo reads.
    pub(super) async fn stats(&self) -> Result<Stats, relq::Error> {
        let mut all = Stats::new();
        for queue in self.queues() {
            let one = queue.stats().await?;
            all.ready += one.ready;
            all.scheduled += one.scheduled;
            all.leased += one.leased;
            all.dead += one.dead;
            all.finished += one.finished;
        }
        Ok(all)
    }

    /// Audits each queue. Returns the number of jobs of all queues, and their problems.
    pub(super) async fn audit(&self) -> CommandResult<(u64, Vec<String>)> {
        let (mut jobs, mut problems) = (0, Vec::new());
        for queue in self.queues() {
            let Audit { jobs: of_one, problems: found, .. } = queue.audit().await?;
            jobs += of_one;
            problems.extend(found);
        }
        Ok((jobs, problems))
    }

    /// Removes each queue from the store.
    pub(super) async fn remove(&self, url: &str) -> CommandResult {
        for (name, queue) in &self.0 {
            remove(url, &**queue, name).await?;
        }
        Ok(())
    }
}
