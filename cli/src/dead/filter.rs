//! Chooses dead jobs by their error, their payload and their age.

use std::{
    num::NonZeroU32,
    time::{Duration, SystemTime},
};

use clap::Args;
use relq::{
    JobId, Queue,
    operator::{JobState, JobView, PeekRequest, StateDetail},
};

use crate::{failure::CommandResult, peek::Filter, values::positive_duration};

/// How many jobs one call to the store reads at most.
const PAGE: NonZeroU32 = NonZeroU32::new(500).expect("not zero");

/// The options that choose dead jobs. A job must fit all of them.
#[derive(Args, Debug)]
pub(super) struct DeadFilter {
    /// Only jobs with this text in the reason of their death or in their last error
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,

    /// Only jobs with this text in their payload
    #[arg(long, value_name = "TEXT")]
    payload: Option<String>,

    /// Only jobs that died within this time, such as 1h, by the clock of this machine
    #[arg(long, value_name = "DURATION", value_parser = positive_duration)]
    newer_than: Option<Duration>,

    /// Only jobs that died before this time, such as 7d, by the clock of this machine
    #[arg(long, value_name = "DURATION", value_parser = positive_duration)]
    older_than: Option<Duration>,
}

impl DeadFilter {
    /// Reads all dead jobs, page by page. Returns the ids of those that fit.
    pub(super) async fn ids(&self, queue: &dyn Queue) -> CommandResult<Vec<JobId>> {
        let mut ask = PeekRequest::new(JobState::Dead, PAGE);
        let mut ids = Vec::new();
        loop {
            let page = queue.peek(&ask).await?;
            let fitting = page.jobs.into_iter().filter(|job| self.fits(job));
            ids.extend(fitting.filter_map(|job| job.id));
            match page.next {
                Some(next) => ask = ask.after(next),
                None => return Ok(ids),
            }
        }
    }
}

impl Filter for DeadFilter {
    fn is_everything(&self) -> bool {
        self.error.is_none()
            && self.payload.is_none()
            && self.newer_than.is_none()
            && self.older_than.is_none()
    }

    fn fits(&self, job: &JobView) -> bool {
        let StateDetail::Dead { reason, since } = &job.detail else { return false };
        let age = SystemTime::now()
            .duration_since(SystemTime::from(*since))
            .unwrap_or_default();
        self.error.as_deref().is_none_or(|text| {
            reason.contains(text)
                || job.last_error.as_deref().is_some_and(|error| error.contains(text))
        }) && self.payload.as_deref().is_none_or(|text| has(&job.payload, text))
            && self.newer_than.is_none_or(|limit| age <= limit)
            && self.older_than.is_none_or(|limit| age > limit)
    }
}

fn has(payload: &[u8], text: &str) -> bool {
    text.is_empty() || payload.windows(text.len()).any(|part| part == text.as_bytes())
}
