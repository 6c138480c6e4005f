//! The queues that a worker serves: one or several.

use std::sync::Arc;

use relq_core::{ReliableQueue, WorkerId};

use crate::{
    Queues, WorkerError, WorkerQueue,
    handler::AnyHandler,
    observers::Observers,
    run::Run,
    settings::Settings,
    several::serve_all,
    shutdown::Requests,
    slot_pool::{PoolMember, SlotPool},
};

/// The queues that a worker serves.
pub(crate) enum Serves {
    One(Arc<dyn ReliableQueue>),
    Several(Queues),
}

/// The parts of a worker that each of its queues uses.
#[derive(Clone)]
pub(crate) struct Common {
    pub(crate) worker: WorkerId,
    pub(crate) settings: Settings,
}

impl Serves {
    /// The number of queues.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Several(queues) => queues.queues.len(),
        }
    }

    /// The queues, each with the observers of that queue alone.
    pub(crate) fn queues(&self) -> Vec<(&Arc<dyn ReliableQueue>, Observers)> {
        match self {
            Self::One(queue) => vec![(queue, Observers::default())],
            Self::Several(queues) => {
                let queues = queues.queues.iter();
                queues.map(|(it, _)| (&it.queue, it.observers.clone())).collect()
            }
        }
    }

    pub(crate) async fn run(
        self,
        common: Common,
        handler: AnyHandler,
        requests: Requests,
    ) -> Result<(), WorkerError> {
        match self {
            Self::One(queue) => {
                let Common { worker, settings } = common;
                let run = Run { queue, place: None, worker, settings };
                run.until_asked(handler, requests).await
            }
            Self::Several(queues) => {
                serve_all(common.runs(queues), handler, requests).await
            }
        }
    }
}

impl Common {
    /// The run of each queue, with a place in one pool of slots.
    fn runs(&self, queues: Queues) -> Vec<Run> {
        let Queues { turns, queues } = queues;
        let slots = self.settings.concurrency.get();
        let slots = usize::try_from(slots).unwrap_or(usize::MAX);
        let weights = queues.iter().map(|(_, weight)| weight.get());
        let members = SlotPool::members(slots, turns, weights);
        let queues = queues.into_iter().zip(members);
        queues.map(|((queue, _), member)| self.run_of(queue, member)).collect()
    }

    fn run_of(&self, queue: WorkerQueue, member: PoolMember) -> Run {
        let WorkerQueue { name, queue, concurrency, observers } = queue;
        let Self { worker, mut settings } = self.clone();
        let most = settings.concurrency;
        settings.concurrency = concurrency.map_or(most, |own| own.min(most));
        settings.observers = settings.observers.with(observers);
        Run { queue, place: Some((name, member)), worker, settings }
    }
}

#[cfg(test)]
mod tests {
    use relq_core::{QueueName, environment::Environment};
    use relq_memory::MemoryStore;

    use super::*;

    /// A worker is ready when it has reached the stores of all its queues.
    #[test]
    fn all_queues_of_a_worker_are_counted() {
        let queues = ["first", "second"].map(|name| {
            let name = QueueName::new(name).unwrap();
            let queue =
                MemoryStore::default().open(name.clone(), Environment::default());
            WorkerQueue::new(name, Arc::new(queue))
        });

        let serves = Serves::Several(Queues::strict(queues));

        assert_eq!(serves.len(), 2, "the number of queues");
    }
}
