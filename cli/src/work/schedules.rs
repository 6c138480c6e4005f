//! The schedulers of `relq work --schedules`, which run beside the worker.

use std::sync::Arc;

use relq::{Queue, schedule::Scheduler};
use tokio::task::JoinSet;

use crate::{cron::schedules_of, failure::CommandResult, message::say};

/// The running schedulers, one for each queue of the worker. Dropping this value ends
/// them; a tick that is being pushed is pushed or not.
pub(crate) struct Schedulers {
    _running: JoinSet<()>,
}

impl Schedulers {
    /// Starts a scheduler for each queue. Fails if one of them has no schedules.
    pub(crate) fn start<'a>(
        queues: impl Iterator<Item = &'a Arc<dyn Queue>> + Clone,
    ) -> CommandResult<Self> {
        for queue in queues.clone() {
            schedules_of(&**queue)?;
        }
        let mut running = JoinSet::new();
        for queue in queues {
            let scheduler = Scheduler::new(Arc::clone(queue) as _);
            running.spawn(async move {
                if let Err(error) = scheduler.run().await {
                    say(&format!("relq: the scheduler has ended: {error}"));
                }
            });
        }
        Ok(Self { _running: running })
    }
}
