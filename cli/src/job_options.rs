//! The options of the jobs that `relq push` and `relq cron add` push.

use std::{collections::HashSet, num::NonZeroU16, time::Duration};

use clap::Args;
use relq::{Bytes, NewJob, Priority, unique::UniqueKey};

use crate::{
    failure::{CommandResult, Failure},
    values::{count_u16, duration, header, positive_duration, priority},
};

/// Options that every job of the command gets.
#[derive(Args, Debug)]
pub(crate) struct JobOptions {
    /// Make the jobs ready only after this time, such as 5s
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    delay: Option<Duration>,

    /// Bury jobs that are not delivered within this time, such as 1h
    #[arg(long, value_parser = positive_duration, value_name = "DURATION")]
    expires_in: Option<Duration>,

    /// The priority, from 0 to 9; a larger one is served sooner [default: 5]
    #[arg(long, value_parser = priority, value_name = "N")]
    priority: Option<Priority>,

    /// A key that only one unfinished job may hold
    #[arg(long, value_name = "KEY")]
    unique: Option<UniqueKey>,

    /// Deliveries before a job is buried [default: 25]
    #[arg(long, value_name = "N", value_parser = count_u16)]
    max_attempts: Option<NonZeroU16>,

    /// The lease length of these jobs, instead of the worker's
    #[arg(long, value_name = "DURATION", value_parser = positive_duration)]
    lease: Option<Duration>,

    /// Keep what becomes of the jobs for this time after their end, such as 1h
    #[arg(long, value_name = "DURATION", value_parser = positive_duration)]
    keep_result: Option<Duration>,

    /// A header of these jobs; may be given several times
    #[arg(long = "header", value_name = "NAME=VALUE", value_parser = header)]
    headers: Vec<(String, String)>,
}

impl JobOptions {
    /// Checks the options together.
    ///
    /// # Errors
    /// When two headers have the same name.
    pub(crate) fn check(&self) -> CommandResult {
        let mut seen = HashSet::new();
        match self.headers.iter().find(|(name, _)| !seen.insert(name)) {
            Some((name, _)) => {
                Err(Failure::Usage(format!("two headers have the name {name}")))
            }
            None => Ok(()),
        }
    }

    /// A job with this payload and these options.
    pub(crate) fn job(&self, payload: Bytes) -> NewJob {
        let mut job = NewJob::new(payload)
            .delay(self.delay.unwrap_or_default())
            .priority(self.priority.unwrap_or_default());
        job.expires_in = self.expires_in;
        job.lease = self.lease;
        job.keep_result = self.keep_result;
        job.headers = self.headers.iter().cloned().collect();
        job.max_attempts = self.max_attempts.unwrap_or(job.max_attempts);
        match self.unique.clone() {
            Some(key) => job.unique(key),
            None => job,
        }
    }
}
