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

#[cfg(test)]
pub(super) mod tests {
    use std::num::NonZeroU32;

    use relq::batch::{BatchId, BatchOutcome, BatchPriority, BatchState};
    use serde_json::json;

    use super::*;

    /// A status in which no two numbers are equal.
    pub(crate) fn status() -> BatchStatus {
        let at = Timestamp::from_unix_ms;
        let mut status = BatchStatus::new(BatchId::new("nightly").unwrap(), at(9000));
        status.state = BatchState::Completed(BatchOutcome::Failed);
        status.priority = BatchPriority::new(8).unwrap();
        status.limit = NonZeroU32::new(6);
        (status.done, status.failed, status.dropped) = (2, 3, 5);
        (status.leased, status.waiting, status.total) = (4, 7, 21);
        (status.sealed_at, status.completed_at) = (Some(at(11_000)), Some(at(12_000)));
        status
    }

    #[test]
    fn each_figure_of_a_batch_has_its_field_in_json() {
        let expected = json!({
            "id": "nightly",
            "state": "failed",
            "priority": 8,
            "limit": 6,
            "total": 21,
            "done": 2,
            "failed": 3,
            "dropped": 5,
            "leased": 4,
            "waiting": 7,
            "created_at_ms": 9000,
            "sealed_at_ms": 11_000,
            "completed_at_ms": 12_000,
        });
        assert_eq!(serde_json::to_value(Report::of(&status())).unwrap(), expected);
    }

    #[test]
    fn each_figure_of_a_batch_has_its_line() {
        let expected = "\
            batch      nightly\n\
            state      failed\n\
            priority   8\n\
            limit      6\n\
            pieces     21\n\
            done       2\n\
            failed     3\n\
            dropped    5\n\
            leased     4\n\
            waiting    7\n\
            created    1970-01-01T00:00:09.000Z\n\
            completed  1970-01-01T00:00:12.000Z\n";
        assert_eq!(Report::of(&status()).to_string(), expected);
    }
}
