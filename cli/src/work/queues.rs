//! The queues that `relq work` serves: the queue of `--queue`, or those of `--serve`.

use std::{num::NonZeroU32, str::FromStr, sync::Arc};

use relq::{
    Operator, Queue, QueueName, Stats,
    worker::{Queues, Worker, WorkerQueue},
};

use crate::failure::CommandResult;

/// A queue of `--serve NAME[=WEIGHT]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ServedQueue {
    pub(super) name: QueueName,
    weight: NonZeroU32,
}

/// The order in which the queues get free slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServingOrder {
    Strict,
    ByWeight,
}

/// The opened queues of a worker, at least one.
pub(super) struct OpenQueues {
    queues: Vec<(ServedQueue, Arc<dyn Queue>)>,
}

impl ServedQueue {
    pub(super) fn of_weight_one(name: QueueName) -> Self {
        Self { name, weight: NonZeroU32::MIN }
    }
}

impl FromStr for ServedQueue {
    type Err = String;

    /// Reads `NAME` or `NAME=WEIGHT`. The weight is what follows the last `=`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, weight) = text.rsplit_once('=').unwrap_or((text, "1"));
        let weight = weight.parse().map_err(|_| {
            format!("the weight {weight:?} is not a whole number from 1")
        })?;
        let name = QueueName::new(name).map_err(|error| error.to_string())?;
        Ok(Self { name, weight })
    }
}

impl OpenQueues {
    pub(super) fn new(queues: Vec<(ServedQueue, Arc<dyn Queue>)>) -> Self {
        Self { queues }
    }

    /// A worker on the queues. With one queue it is a plain worker.
    pub(super) fn worker(&self, order: ServingOrder) -> Worker {
        if let [(_, queue)] = &*self.queues {
            return Worker::new(Arc::clone(queue) as _);
        }
        let queues = self.queues.iter().map(|(served, queue)| {
            let queue = WorkerQueue::new(served.name.clone(), Arc::clone(queue) as _);
            (queue, served.weight)
        });
        Worker::on(match order {
            ServingOrder::Strict => Queues::strict(queues.map(|(queue, _)| queue)),
            ServingOrder::ByWeight => Queues::weighted(queues),
        })
    }

    /// The name of each queue, and all of its calls.
    pub(super) fn all(
        &self,
    ) -> impl Iterator<Item = (&QueueName, &Arc<dyn Queue>)> + Clone {
        self.queues.iter().map(|(served, queue)| (&served.name, queue))
    }

    /// The operator's calls of each queue.
    pub(super) fn operators(&self) -> Vec<Arc<dyn Operator>> {
        self.queues.iter().map(|(_, queue)| Arc::clone(queue) as _).collect()
    }

    /// The statistics of each queue.
    pub(super) async fn stats(&self) -> CommandResult<Vec<Stats>> {
        let mut all = Vec::with_capacity(self.queues.len());
        for (_, queue) in &self.queues {
            all.push(queue.stats().await?);
        }
        Ok(all)
    }

    /// The message of a worker that ended because a queue is paused.
    pub(super) fn say_paused(&self) -> String {
        if let [(ServedQueue { name, .. }, _)] = &*self.queues {
            return format!(
                "the queue {name} is paused: `relq resume --queue {name}` lets it go on"
            );
        }
        let names = self.queues.iter().map(|(served, _)| served.name.as_str());
        let names = names.collect::<Vec<_>>().join(", ");
        format!(
            "one of the queues {names} is paused: `relq resume --queue NAME` lets it go on"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_read_with_its_weight() {
        let read = |text: &str| {
            text.parse().map(|it: ServedQueue| (it.name.to_string(), it.weight.get()))
        };

        assert_eq!(read("mail"), Ok(("mail".into(), 1)));
        assert_eq!(read("mail=3"), Ok(("mail".into(), 3)));
        assert_eq!(read("a=b=3"), Ok(("a=b".into(), 3)));
        assert!(read("mail=0").is_err());
        assert!(read("mail=").is_err());
        assert!(read("=3").is_err());
    }
}
