//! Runs many tasks that push jobs at once. The tasks take the numbers of their jobs
//! from one shared counter, until all numbers are taken or the time limit is reached.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use tokio::task::JoinSet;

use crate::{
    failure::{CommandResult, Failure},
    workload::TASKS,
};

/// A counter of job numbers, from 0 on, that all tasks share.
#[derive(Debug, Clone)]
pub(crate) struct Numbers {
    next: Arc<AtomicU64>,
    end: u64,
    deadline: Instant,
}

impl Numbers {
    /// Creates a counter that gives out the numbers from 0 to `end` - 1, and no more
    /// numbers once `patience` has passed.
    pub(crate) fn below(end: u64, patience: Duration) -> Self {
        Self { next: Arc::default(), end, deadline: Instant::now() + patience }
    }

    /// Takes the next number. The caller must push a job with this number. Returns
    /// `None` when no number is left or the time limit is reached.
    pub(crate) fn take(&self) -> Option<u64> {
        self.take_many(1).map(|numbers| numbers.start)
    }

    /// Takes the next `most` numbers, or as many as are left. Returns `None` when no
    /// number is left or the time limit is reached.
    pub(crate) fn take_many(&self, most: usize) -> Option<std::ops::Range<u64>> {
        if Instant::now() >= self.deadline {
            return None;
        }
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        let from = self.next.fetch_add(most, Relaxed);
        (from < self.end).then(|| from..self.end.min(from + most))
    }

    /// How many numbers were taken.
    pub(crate) fn given(&self) -> u64 {
        self.next.load(Relaxed).min(self.end)
    }
}

/// Runs `TASKS` copies of a task at the same time, and waits until all have ended.
pub(crate) async fn in_tasks<F>(task: impl Fn() -> F) -> CommandResult
where
    F: Future<Output = CommandResult> + Send + 'static,
{
    let mut tasks: JoinSet<_> = (0..TASKS.get()).map(|_| task()).collect();
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|error| Failure::Failed(format!("a task died: {error}")))??;
    }
    Ok(())
}
