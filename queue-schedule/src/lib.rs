#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod backoff;
mod cron;
mod definition;
mod due;
mod error;
mod every;
mod fields;
mod header;
mod known;
mod look;
mod progress;
mod scheduler;
mod shutdown;
mod spec;
mod times;

pub use cron::Cron;
pub use due::{Due, MAX_MISSED, MAX_TICKS, MISSED_AFTER, Missed};
pub use error::{InvalidSpec, SchedulerError, UnreadableDefinition};
pub use every::Every;
pub use header::{SCHEDULE_HEADER, SCHEDULED_FOR_HEADER, scheduled_for};
pub use progress::{SchedulerProgress, SchedulerSummary};
pub use relq_core::schedule::{
    MAX_DEFINITION, Schedule, ScheduleName, ScheduleQueue, ScheduleStored, Schedules,
    Tick, Ticked,
};
pub use scheduler::{DEFAULT_GIVE_UP_AFTER, DEFAULT_LOOK_EVERY, Scheduler};
pub use spec::ScheduleSpec;
pub use times::Times;
