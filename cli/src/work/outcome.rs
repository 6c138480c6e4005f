//! The exit code of `relq work --until-empty`.

use relq::Stats;

use super::queues::OpenQueues;
use crate::{
    exit_codes::{DIED, LEFT},
    failure::{CommandResult, Failure},
};

/// The number of dead jobs that each queue had before the worker began. These do not
/// count as a result of this run.
#[derive(Debug)]
pub(super) struct DeadBefore(Vec<u64>);

impl DeadBefore {
    pub(super) async fn of(queues: &OpenQueues) -> CommandResult<Self> {
        Ok(Self(queues.stats().await?.iter().map(|stats| stats.dead).collect()))
    }

    /// Fails if jobs became dead during the run or are left at its end.
    ///
    /// Compares the number of dead jobs with that before the run, so that jobs which
    /// another worker or a recovery has buried count too. `died_here` is the number of
    /// jobs that this worker has buried. At least this number counts, because another
    /// client may have redriven or removed dead jobs during the run.
    pub(super) async fn judge(
        self,
        queues: &OpenQueues,
        died_here: u64,
    ) -> CommandResult {
        let stats = queues.stats().await?;
        // Subtract queue by queue, so that a purge of one queue does not hide dead jobs
        // of another.
        let each = stats.iter().zip(&self.0);
        let more = each.map(|(stats, before)| stats.dead.saturating_sub(*before));
        judge(more.sum::<u64>().max(died_here), stats.iter().map(left).sum())
    }
}

fn left(stats: &Stats) -> u64 {
    stats.ready + stats.leased + stats.scheduled
}

fn judge(died: u64, left: u64) -> CommandResult {
    let code = match (died, left) {
        (0, 0) => return Ok(()),
        (_, 0) => DIED,
        _ => LEFT,
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
