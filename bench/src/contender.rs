//! A contender: a backend of relq, or the store without relq.

use crate::{
    failure::CommandResult, plan::Plan, queue::QueueContender, raw_redis::RawRedis,
    raw_sqlite::RawSqlite, sample::Sample, workload::Workload,
};

/// A system that is compared with others: all of them run the same workloads.
#[derive(Debug)]
pub(crate) enum Contender {
    Queue(QueueContender),
    RawRedis(RawRedis),
    RawSqlite(RawSqlite),
}

impl Contender {
    /// The contender's name in the tables.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Queue(queue) => queue.name(),
            Self::RawRedis(_) => "raw Redis",
            Self::RawSqlite(_) => "raw SQLite",
        }
    }

    /// Runs a workload once. A workload that drains the queue handles the jobs that the
    /// workload before it pushed. Returns `None` if the store cannot run the workload.
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

    /// Removes the queue, key or file that the contender used.
    pub(crate) async fn clean_up(&mut self) -> CommandResult {
        match self {
            Self::Queue(queue) => queue.clean_up().await,
            Self::RawRedis(raw) => raw.clean_up().await,
            Self::RawSqlite(_) => Ok(()),
        }
    }
}
