//! Who is measured: a backend, or the store without relq.

use crate::{
    failure::CommandResult, plan::Plan, queue::QueueContender, raw_redis::RawRedis,
    raw_sqlite::RawSqlite, sample::Sample, workload::Workload,
};

/// One that runs the workloads.
#[derive(Debug)]
pub(crate) enum Contender {
    Queue(QueueContender),
    RawRedis(RawRedis),
    RawSqlite(RawSqlite),
}

impl Contender {
    /// Its name in the tables.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Queue(queue) => queue.name(),
            Self::RawRedis(_) => "raw Redis",
            Self::RawSqlite(_) => "raw SQLite",
        }
    }

    /// Runs a workload once. One that drains takes what the one before it pushed.
    /// `None` where there is nothing of the kind.
    pub(crate) async fn run(
        &mut self,
        workload: Workload,
        plan: &Plan,
    ) -> CommandResult<Option<Sample>> {
        match self {
            Self::Queue(queue) => Box::pin(queue.run(workload, plan)).await.map(Some),
            Self::RawRedis(raw) => Box::pin(raw.run(workload, plan)).await.map(Some),
            Self::RawSqlite(raw) => raw.run(workload, plan),
        }
    }

    /// Removes what it left.
    pub(crate) async fn clean_up(&mut self) -> CommandResult {
        match self {
            Self::Queue(queue) => queue.clean_up().await,
            Self::RawRedis(raw) => raw.clean_up().await,
            Self::RawSqlite(_) => Ok(()),
        }
    }
}
