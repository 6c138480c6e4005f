//! The exit code of `relq work --until-empty`.

use relq::{Queue, Stats};

use crate::failure::{CommandResult, Failure};

/// The exit code when all jobs have ended and some of them died.
const SOME_DIED: u8 = 3;

/// The exit code when jobs are left.
const SOME_LEFT: u8 = 4;

/// The number of dead jobs before the worker began. It does not count as a result of
/// this run.
#[derive(Debug)]
pub(super) struct DeadBefore(u64);

impl DeadBefore {
    pub(super) async fn of(queue: &dyn Queue) -> CommandResult<Self> {
        Ok(Self(queue.stats().await?.dead))
    }

    /// Fails if jobs died during the run or are left at its end.
    ///
    /// The queue is compared with its state before the run, so jobs that other workers
    /// or the recovery have buried count too. `died_here` is the number of jobs that
    /// this worker has buried. It is the least number, because another client may have
    /// redriven or removed dead jobs in the meantime.
    pub(super) async fn judge(
        self,
        queue: &dyn Queue,
        died_here: u64,
    ) -> CommandResult {
        let stats = queue.stats().await?;
        let died = stats.dead.saturating_sub(self.0).max(died_here);
        judge(died, left(&stats))
    }
}

fn left(stats: &Stats) -> u64 {
    stats.ready + stats.leased + stats.scheduled
}

fn judge(died: u64, left: u64) -> CommandResult {
    let code = match (died, left) {
        (0, 0) => return Ok(()),
        (_, 0) => SOME_DIED,
        _ => SOME_LEFT,
    };
    let mut parts = Vec::new();
    if left > 0 {
        parts.push(format!(
            "{} left: `relq stats` shows them, and --max-wait waits for retries and \
             scheduled jobs",
            counted(left, "is", "are"),
        ));
    }
    if died > 0 {
        let died = counted(died, "died", "died");
        parts.push(format!("{died}: `relq dead list` shows the reasons"));
    }
    Err(Failure::Unfinished { code, message: parts.join("; ") })
}

fn counted(jobs: u64, one: &str, many: &str) -> String {
    if jobs == 1 { format!("1 job {one}") } else { format!("{jobs} jobs {many}") }
}
