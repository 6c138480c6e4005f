//! Many tasks that take numbers from one source until it is empty or the time has
//! passed.

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

/// Numbers from 0 on.
#[derive(Debug, Clone)]
pub(crate) struct Numbers {
    next: Arc<AtomicU64>,
    end: u64,
    deadline: Instant,
}

impl Numbers {
    /// The numbers below `end`, for at most `patience`.
    pub(crate) fn below(end: u64, patience: Duration) -> Self {
        Self { next: Arc::default(), end, deadline: Instant::now() + patience }
    }

    /// The next number. The caller must use each number.
    pub(crate) fn take(&self) -> Option<u64> {
        self.take_many(1).map(|numbers| numbers.start)
    }

    /// The next `most` numbers, or the remaining ones.
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

/// Runs `TASKS` copies of a task and waits for all.
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
