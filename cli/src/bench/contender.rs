//! Who is measured: a backend, or the store without relq.

use super::{
    plan::Plan, queue::QueueContender, raw_redis::RawRedis, sample::Sample,
    workload::Workload,
};
use crate::failure::Outcome;

/// One that runs the workloads.
#[derive(Debug)]
pub(super) enum Contender {
    Queue(QueueContender),
    RawRedis(RawRedis),
    #[cfg(feature = "sqlite")]
    RawSqlite(super::raw_sqlite::RawSqlite),
}

impl Contender {
    /// Its name in the tables.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Queue(queue) => queue.name(),
            Self::RawRedis(_) => "raw Redis",
            #[cfg(feature = "sqlite")]
            Self::RawSqlite(_) => "raw SQLite",
        }
    }

    /// Runs a workload once. One that drains takes what the one before it pushed.
    /// `None` where there is nothing of the kind.
    pub(super) async fn run(
        &mut self,
        workload: Workload,
        plan: &Plan,
    ) -> Outcome<Option<Sample>> {
        match self {
            Self::Queue(queue) => Box::pin(queue.run(workload, plan)).await.map(Some),
            Self::RawRedis(raw) => Box::pin(raw.run(workload, plan)).await.map(Some),
            #[cfg(feature = "sqlite")]
            Self::RawSqlite(raw) => raw.run(workload, plan),
        }
    }

    /// Removes what it left.
    pub(super) async fn clean_up(&mut self) -> Outcome {
        match self {
            Self::Queue(queue) => queue.clean_up().await,
            Self::RawRedis(raw) => raw.clean_up().await,
            #[cfg(feature = "sqlite")]
            Self::RawSqlite(_) => Ok(()),
        }
    }
}
