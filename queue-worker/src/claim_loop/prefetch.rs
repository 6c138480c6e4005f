//! Jobs that are claimed before a slot is free, so that a handler that ends is followed by
//! the next one at once, without a call to the store in between.
//!
//! Such a job has a lease, which the heartbeats extend, and waits. Handlers that take long
//! would keep it from other workers, so it is given back after half a lease. Then the
//! worker claims no job ahead of time until a handler has ended, and from there on one, two,
//! four and so on, up to the number that was set:
//!
//! ```text
//!  event                           | jobs that may wait
//! ---------------------------------+-----------------------------
//!  a waiting job is given back     | none
//!  a handler has ended             | at least one
//!  a waiting job is started        | twice as many
//! ```
//!
//! A worker on several queues claims no job ahead of time. A job waits there if other queues
//! took the slots of its claim, which was slow or failed. It is given back after the same
//! time, because the handlers of the other queues may take long.

use std::{future::pending, num::NonZeroU32, time::Duration};

use super::{ClaimLoop, ClaimPhase};
use crate::{attempt::Ended, backoff::Sleep, calls::slots};

/// The payloads of the waiting jobs have at most this many bytes before the worker claims
/// further ones ahead of time. The number of jobs alone would not bound its memory.
const MOST_BYTES: usize = 4 << 20;

/// How long a job may wait for a slot in a worker that claims no job ahead of time. It has
/// lost its slot to another queue of the worker, and other workers may have a free one.
const LONGEST_UNASKED: Duration = Duration::from_secs(5);

/// How many jobs may wait for a slot, and for how long.
pub(super) struct Prefetch {
    /// As many as were set; zero for a worker that claims no job ahead of time.
    most: usize,
    limit: usize,
    /// The time from the sending of a claim after which its jobs no longer wait.
    longest_wait: Duration,
    /// The timer of the job that waits longest. It may end although that job was started
    /// meanwhile.
    timer: Option<Sleep>,
}

impl Prefetch {
    pub(super) fn new(most: Option<NonZeroU32>, lease: Duration) -> Self {
        let most = most.map_or(0, slots);
        let half = lease / 2;
        let longest_wait = if most == 0 { half.min(LONGEST_UNASKED) } else { half };
        Self { most, limit: most, longest_wait, timer: None }
    }

    /// Completes when a waiting job may have to be given back.
    pub(super) async fn time_is_up(&mut self) {
        match &mut self.timer {
            Some(timer) => timer.await,
            None => pending().await,
        }
    }

    fn was_given_back(&mut self) {
        self.limit = 0;
    }

    fn handler_ended(&mut self) {
        self.limit = self.limit.max(1).min(self.most);
    }

    fn was_started(&mut self) {
        self.limit = self.limit.saturating_mul(2).min(self.most);
    }
}

impl ClaimLoop {
    /// How many jobs may be held beyond the number of slots.
    pub(super) fn ahead(&self) -> usize {
        let is_full = self.slots.waiting_bytes() >= MOST_BYTES;
        if is_full { 0 } else { self.prefetch.limit }
    }

    /// Starts the first waiting job in the slot of a handler that has ended.
    pub(super) fn start_waiting(&mut self) {
        if self.prefetch.most == 0 || self.phase == ClaimPhase::Stopping {
            return;
        }
        self.prefetch.handler_ended();
        if self.slots.start_waiting() {
            self.prefetch.was_started();
        }
    }

    /// Sets the timer of the job that waits longest, unless a timer runs.
    pub(super) fn time_waiting(&mut self) {
        let may_wait = self.prefetch.most > 0 || self.slots.are_pooled();
        if !may_wait || self.prefetch.timer.is_some() {
            return;
        }
        let end = self.slots.waits_since().map(|at| at + self.prefetch.longest_wait);
        let clock = &self.settings.lease_clock;
        let timer = end.map(|end| clock.sleep(end.saturating_sub(clock.elapsed())));
        self.prefetch.timer = timer;
    }

    /// Gives back the jobs that have waited too long for a slot.
    pub(super) fn give_back_waiting(&mut self) {
        self.prefetch.timer = None;
        let now = self.now().lease_time;
        let since = now.saturating_sub(self.prefetch.longest_wait);
        while let Some(job) = self.slots.take_waiting_since(since) {
            let (id, lease) = (job.id(), job.lease());
            tracing::debug!(%id, ?lease, "given back: it got no slot in time");
            self.prefetch.was_given_back();
            self.ended(job, Ended::CutOff);
        }
        self.time_waiting();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        claim_loop::tests::{LEASE, NOW, claim_loop_of, job, settings},
        settings::Settings,
    };

    const SECOND: Duration = Duration::from_secs(1);

    /// The claim loop of a worker with one slot that prefetches up to `jobs`.
    fn prefetching(jobs: u32) -> ClaimLoop {
        let prefetch = NonZeroU32::new(jobs);
        claim_loop_of(Settings { prefetch, ..settings(1) }, None)
    }

    /// A job waits for half a lease. A worker that was not asked to prefetch keeps it for
    /// seconds only, because other workers may have a free slot.
    #[test]
    fn a_waiting_job_is_kept_for_half_a_lease() {
        let four = NonZeroU32::new(4);
        let longest = |most, lease| Prefetch::new(most, lease).longest_wait;

        assert_eq!(longest(four, LEASE), LEASE / 2, "with prefetch");
        assert_eq!(longest(None, LEASE), LONGEST_UNASKED, "without");
        assert_eq!(longest(None, 4 * SECOND), 2 * SECOND, "without, and a short lease");
    }

    /// Only as many jobs are claimed ahead of time as the worker was asked to.
    #[test]
    fn a_worker_claims_ahead_what_it_was_asked_to() {
        let ahead = [0, 5].map(|jobs| prefetching(jobs).ahead());

        assert_eq!(ahead, [0, 5], "the jobs that may wait");
    }

    /// The next job starts at once in the slot of a handler that has ended. After a job was
    /// given back, the worker claims ahead one job, and twice as many after each that starts.
    #[tokio::test]
    async fn the_end_of_a_handler_starts_a_waiting_job() {
        let mut claim_loop = prefetching(4);
        claim_loop.prefetch.was_given_back();
        claim_loop.slots.start_later(job("waits"), NOW);

        claim_loop.all_ended(job("has ended"), Ended::CutOff);
        let (is_idle, limit) = (claim_loop.slots.is_empty(), claim_loop.ahead());
        assert_eq!((is_idle, limit), (false, 2), "the waiting job starts");
        claim_loop.prefetch.was_given_back();
        claim_loop.all_ended(job("has ended"), Ended::CutOff);

        assert_eq!(claim_loop.ahead(), 1, "no job waits");
    }

    /// A handler that takes long must not keep the waiting jobs from other workers. Those
    /// that were claimed later wait for their own time.
    #[tokio::test]
    async fn a_job_that_has_waited_too_long_is_given_back() {
        let mut claim_loop = prefetching(4);
        claim_loop.slots.start_later(job("old"), NOW - LEASE / 2);
        claim_loop.slots.start_later(job("young"), NOW - SECOND);
        claim_loop.time_waiting();
        assert!(claim_loop.prefetch.timer.is_some(), "no timer gives back the jobs");

        claim_loop.give_back_waiting();

        let waits = (claim_loop.slots.held(), claim_loop.slots.waits_since());
        assert_eq!(waits, (1, Some(NOW - SECOND)), "the young job");
        assert_eq!(claim_loop.settling.fresh(), 1, "the old job");
    }
}
