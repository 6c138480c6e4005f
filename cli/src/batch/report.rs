//! The status of a batch in the form that commands print.

use std::fmt;

use relq::{batch::BatchStatus, environment::Timestamp};
use serde::Serialize;

use crate::view::time;

/// A batch's status as text or JSON. Times are milliseconds since 1970.
#[derive(Serialize, Debug)]
pub(super) struct Report<'a> {
    id: &'a str,
    state: &'static str,
    priority: u8,
    limit: Option<u32>,
    total: u64,
    done: u64,
    failed: u64,
    dropped: u64,
    leased: u64,
    waiting: u64,
    created_at_ms: i64,
    sealed_at_ms: Option<i64>,
    completed_at_ms: Option<i64>,
}

impl<'a> Report<'a> {
    pub(super) fn of(status: &'a BatchStatus) -> Self {
        Self {
            id: status.id.as_str(),
            state: status.state.as_str(),
            priority: status.priority.level(),
            limit: status.limit.map(std::num::NonZeroU32::get),
            total: status.total,
            done: status.done,
            failed: status.failed,
            dropped: status.dropped,
            leased: status.leased,
            waiting: status.waiting,
            created_at_ms: status.created_at.unix_ms(),
            sealed_at_ms: status.sealed_at.map(Timestamp::unix_ms),
            completed_at_ms: status.completed_at.map(Timestamp::unix_ms),
        }
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = |ms| time(Timestamp::from_unix_ms(ms));
        writeln!(f, "batch      {}", self.id)?;
        writeln!(f, "state      {}", self.state)?;
        writeln!(f, "priority   {}", self.priority)?;
        match self.limit {
            Some(limit) => writeln!(f, "limit      {limit}")?,
            None => writeln!(f, "limit      none")?,
        }
        writeln!(f, "pieces     {}", self.total)?;
        writeln!(f, "done       {}", self.done)?;
        writeln!(f, "failed     {}", self.failed)?;
        writeln!(f, "dropped    {}", self.dropped)?;
        writeln!(f, "leased     {}", self.leased)?;
        writeln!(f, "waiting    {}", self.waiting)?;
        writeln!(f, "created    {}", moment(self.created_at_ms))?;
        if let Some(ms) = self.completed_at_ms {
            writeln!(f, "completed  {}", moment(ms))?;
        }
        Ok(())
    }
}
