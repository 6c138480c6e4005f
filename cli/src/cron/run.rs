//! `relq cron run`: pushes the jobs of the schedules until a signal.

use std::time::Duration;

use relq::schedule::{DEFAULT_LOOK_EVERY, Scheduler, SchedulerError, SchedulerSummary};

use super::stored::schedules_of;
use crate::{
    failure::{CommandResult, Failure, explain},
    interrupts::Interrupts,
    message::say,
    target::Target,
    values::positive_duration,
};

/// Push the jobs of the queue's schedules when they are due, until a signal
///
/// Any number of these may run at once, on any machines: each tick is pushed once. A
/// store that fails does not end it. An error that only a person can repair, such as a
/// wrong password, ends it: at the start at once, and later after a minute. It counts by
/// the store's clock. With RELQ_LOG=info it prints more.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The longest time until a new or changed schedule is noticed, at most 30s [default:
    /// 30s]
    #[arg(long, value_name = "DURATION", value_parser = positive_duration)]
    look_every: Option<Duration>,
}

impl Args {
    pub(super) async fn run(self, target: &Target) -> CommandResult {
        let queue = target.open().await?;
        schedules_of(&*queue)?;
        let interrupts = Interrupts::listen()?;
        let look_every = self.look_every.unwrap_or(DEFAULT_LOOK_EVERY);
        let scheduler = Scheduler::new(queue)
            .look_every(look_every)
            .stop_on(async move { interrupts.first().await });
        let summary = scheduler.run().await.map_err(explain_scheduler)?;
        say(&words(&summary));
        Ok(())
    }
}

fn explain_scheduler(error: SchedulerError) -> Failure {
    match error {
        SchedulerError::Refused { name, source } => {
            Failure::Failed(format!("the schedule {name}: {}", explain(&source)))
        }
        SchedulerError::Store(error) => error.into(),
        SchedulerError::Signals(error) => {
            Failure::Failed(format!("cannot handle signals: {error}"))
        }
        usage => Failure::Usage(usage.to_string()),
    }
}

/// The counts of a scheduler, as text.
fn words(summary: &SchedulerSummary) -> String {
    let SchedulerSummary { pushed, duplicates, of_others, failed_calls, .. } = *summary;
    let counts = [
        (duplicates, "duplicates of unfinished jobs"),
        (of_others, "pushed by other schedulers"),
        (failed_calls, "calls failed"),
    ];
    let mut said = format!("relq: {pushed} ticks pushed");
    for (count, words) in counts.into_iter().filter(|(count, _)| *count > 0) {
        said.push_str(&format!(", {count} {words}"));
    }
    said
}
