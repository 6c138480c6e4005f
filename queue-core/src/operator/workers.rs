//! The reports of workers that run (R33), and the jobs that each worker holds.

use std::{collections::BTreeMap, num::NonZeroU32, time::Duration};

use super::{JobState, PageCursor, PeekRequest, StateDetail};
use crate::{Error, JobId, Queue, WorkerId, environment::Timestamp};

/// How often a worker reports that it runs: every 20 seconds.
pub const REPORT_INTERVAL: Duration = Duration::from_secs(20);

/// How long a worker is listed after its last report: 60 seconds. Two reports in a row
/// can fail, and the worker is still listed.
pub const WORKER_FORGOTTEN_AFTER: Duration = Duration::from_secs(60);

/// The report of a worker that runs about itself (R33).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerReport {
    /// The worker that reports.
    pub worker: WorkerId,
    /// How many handlers it runs at once.
    pub slots: NonZeroU32,
}

impl WorkerReport {
    /// Creates the report of a worker that runs up to `slots` handlers at once.
    pub fn new(worker: WorkerId, slots: NonZeroU32) -> Self {
        Self { worker, slots }
    }
}

/// A worker that has reported that it runs (R33).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerView {
    /// The worker.
    pub worker: WorkerId,
    /// How many handlers it runs at once, by its last report.
    pub slots: NonZeroU32,
    /// The time of its first report, by the store's clock.
    pub since: Timestamp,
    /// The worker is listed until then, unless it reports again.
    pub until: Timestamp,
}

impl WorkerView {
    /// Creates the view of a worker that first reported at `since`, and that is listed
    /// for [`WORKER_FORGOTTEN_AFTER`] from then.
    pub fn new(worker: WorkerId, slots: NonZeroU32, since: Timestamp) -> Self {
        Self { worker, slots, since, until: since.plus(WORKER_FORGOTTEN_AFTER) }
    }

    /// Sets the time until which the worker is listed.
    #[must_use]
    pub fn until(mut self, until: Timestamp) -> Self {
        self.until = until;
        self
    }
}

/// One page of workers, as [`InspectQueue::workers`](super::InspectQueue::workers)
/// returns it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkersPage {
    /// The workers of this page, in no order.
    pub workers: Vec<WorkerView>,
    /// The position where the next page begins; `None` when this is the last page. A
    /// page may be empty although more pages follow.
    pub next: Option<PageCursor>,
}

/// The leased jobs of each worker: the id of each, if it has one, and the
/// time of its claim, by the store's clock.
pub type HeldByWorker = BTreeMap<WorkerId, Vec<(Option<JobId>, Timestamp)>>;

/// How many jobs one page of a listing has.
const PAGE: NonZeroU32 = NonZeroU32::new(500).expect("not zero");

/// Reads which worker holds which jobs, from at most `limit` leased jobs. The second
/// value says whether there are more, so that the numbers are lower bounds.
///
/// It reads pages of [`peek`](crate::Operator::peek), so a job that moves meanwhile may
/// be missing or appear twice. A worker that holds jobs need not have reported (R33).
///
/// # Errors
/// The errors of [`Operator::peek`](crate::Operator::peek).
pub async fn held_by_worker(
    queue: &dyn Queue,
    limit: NonZeroU32,
) -> Result<(HeldByWorker, bool), Error> {
    let mut held = HeldByWorker::new();
    let mut left = limit.get();
    let mut ask = PeekRequest::new(JobState::Leased, PAGE).outline();
    loop {
        ask.limit = PAGE.min(NonZeroU32::new(left).unwrap_or(NonZeroU32::MIN));
        let page = queue.peek(&ask).await?;
        let is_over = page.jobs.len() > left as usize;
        for job in page.jobs.into_iter().take(left as usize) {
            if let StateDetail::Leased { worker, since, .. } = job.detail {
                held.entry(worker).or_default().push((job.id, since));
            }
            left -= 1;
        }
        match page.next {
            Some(next) if left > 0 => ask = ask.after(next),
            next => return Ok((held, is_over || next.is_some())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::listed::{Listed, at_once, job};
    use super::*;

    #[test]
    fn leased_jobs_are_grouped_by_worker_up_to_the_limit() {
        let since = Timestamp::from_unix_ms(7);
        let held_by = |name: &str| StateDetail::Leased {
            worker: WorkerId::new(name).unwrap(),
            since,
            until: since,
        };
        let jobs = [("1", "a"), ("2", "b"), ("3", "a"), ("4", "a"), ("5", "b")];
        let queue = Listed::new(jobs.map(|(id, by)| job(id, held_by(by))).into());
        let counts = |limit: u32| {
            let limit = NonZeroU32::new(limit).unwrap();
            let (held, is_cut) = at_once(held_by_worker(&queue, limit)).unwrap();
            let counts = held.into_values().map(|jobs| jobs.len());
            (counts.collect::<Vec<_>>(), is_cut)
        };

        assert_eq!(counts(5), (vec![3, 2], false));
        assert_eq!(counts(6), (vec![3, 2], false));
        assert_eq!(counts(4), (vec![3, 1], true));
        assert_eq!(counts(3), (vec![2, 1], true));
    }
}
