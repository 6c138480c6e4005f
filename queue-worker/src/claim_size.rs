//! How many jobs a worker claims. It claims fewer while replies to claims come too
//! late.
//!
//! A lease is counted from the moment when its claim was sent, by the worker's clock. A
//! job whose lease may have expired when the reply is read is not started, because
//! another worker may already run it (R6). It is given back. A give-back undoes the
//! attempt, so it must not repeat for ever (R11):
//!
//! ```text
//!  the reply took                  | the job      | from the next claim on
//! ---------------------------------+--------------+--------------------------------
//!  less than the lease             | is started   | twice as many, a longer wait
//!  less than the wait and the lease| is given back| as many, the shortest wait
//!  longer                          | is given back| half as many
//!  longer, with one job at a time  | is retried   | one: the attempt counts
//! ```
//!
//! The limit includes running jobs: most replies are read late because handlers block
//! the runtime's threads. With one job at a time no handler runs while a claim is
//! pending. A retry stores the reason with the job; an expired lease does not. If
//! another worker holds the job by then, the store refuses the retry or the give-back
//! (R7).

use std::{collections::VecDeque, time::Duration};

use relq_core::JobId;

/// The wait of the next claim after a claim that may have waited longer than a lease.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// How often a worker gives back the same late job. Halving reaches one job at a time
/// earlier than that. This limit is for several workers that would give back the same
/// job in turn.
const GIVEN_BACK_AT_MOST: usize = 16;

/// How many given-back jobs a worker remembers.
const REMEMBERED: usize = 1024;

/// When a claim was sent, and how long it could wait for a job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) at: Duration,
    pub(crate) wait: Duration,
}

/// How the worker handles a job whose lease may have expired before it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Late {
    /// The job is given back, and the attempt is not counted.
    GiveBack,
    /// The job is retried, and the attempt counts.
    Retry,
}

/// How many jobs a worker holds at once, and how long its claims wait.
#[derive(Debug)]
pub(crate) struct ClaimSize {
    most: usize,
    limit: usize,
    longest_wait: Duration,
    wait: Duration,
    /// When the limit or the wait was last reduced. Replies to earlier claims do not
    /// change the limit again.
    reduced_at: Duration,
    given_back: VecDeque<JobId>,
}

impl ClaimSize {
    pub(crate) fn new(most: usize, longest_wait: Duration) -> Self {
        Self {
            most,
            limit: most,
            longest_wait,
            wait: longest_wait,
            reduced_at: Duration::ZERO,
            given_back: VecDeque::new(),
        }
    }

    /// The most jobs that the worker may hold at once.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// How long a claim waits for a job.
    pub(crate) fn wait(&self) -> Duration {
        self.wait
    }

    /// Notes that all jobs of a reply can be started.
    pub(crate) fn in_time(&mut self) {
        self.limit = self.limit.saturating_mul(2).min(self.most);
        self.wait = self.wait.saturating_mul(2).min(self.longest_wait);
    }

    /// Notes that some jobs of a reply cannot be started. `lease` is the shortest of
    /// their leases. Returns what to do with them.
    pub(crate) fn late(&mut self, sent: Sent, lease: Duration, now: Duration) -> Late {
        if sent.at < self.reduced_at {
            return Late::GiveBack;
        }
        let is_surely_late = sent.at.saturating_add(sent.wait + lease) <= now;
        if !is_surely_late && self.wait > SHORTEST_WAIT {
            self.wait = SHORTEST_WAIT;
        } else if self.limit > 1 {
            self.limit /= 2;
        } else {
            return Late::Retry;
        }
        self.reduced_at = now;
        Late::GiveBack
    }

    /// Notes that a late job must be given back. Returns how to handle it.
    pub(crate) fn give_back(&mut self, job: &JobId) -> Late {
        let times = self.given_back.iter().filter(|id| *id == job).count();
        if times >= GIVEN_BACK_AT_MOST {
            return Late::Retry;
        }
        if self.given_back.len() == REMEMBERED {
            self.given_back.pop_front();
        }
        self.given_back.push_back(job.clone());
        Late::GiveBack
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(30);
    const WAIT: Duration = Duration::from_secs(5);

    /// Reports the reply of a claim that took `took` and did not wait for a job.
    fn after(size: &mut ClaimSize, took: Duration, now: Duration) -> Late {
        size.late(Sent { at: now - took, wait: Duration::ZERO }, LEASE, now)
    }

    fn times(n: u32) -> Duration {
        LEASE * 10 * n
    }

    #[test]
    fn late_answers_halve_down_to_one_and_then_count() {
        let mut size = ClaimSize::new(16, WAIT);
        let limits: Vec<_> = (1..=4)
            .map(|n| {
                assert_eq!(after(&mut size, LEASE, times(n)), Late::GiveBack);
                size.limit()
            })
            .collect();

        assert_eq!(limits, [8, 4, 2, 1]);
        assert_eq!(after(&mut size, LEASE, times(5)), Late::Retry);
        size.in_time();
        assert_eq!((size.limit(), size.wait()), (2, WAIT));
    }

    /// Several claims that one stall delays reduce the limit once.
    #[test]
    fn claims_of_one_stall_halve_once() {
        let mut size = ClaimSize::new(16, WAIT);
        let now = times(1);

        assert_eq!(after(&mut size, LEASE, now), Late::GiveBack);
        assert_eq!(after(&mut size, LEASE * 2, now), Late::GiveBack);
        assert_eq!(size.limit(), 8);
    }

    /// R11: a claim that waited longer than a lease does not prove that replies are
    /// late.
    #[test]
    fn a_claim_that_may_have_waited_counts_nothing() {
        let mut size = ClaimSize::new(1, WAIT);
        let short = Duration::from_secs(1);
        let sent = Sent { at: Duration::ZERO, wait: WAIT };

        assert_eq!(size.late(sent, short, WAIT), Late::GiveBack);
        assert_eq!((size.limit(), size.wait()), (1, SHORTEST_WAIT));
        let sent = Sent { at: WAIT, wait: SHORTEST_WAIT };
        assert_eq!(size.late(sent, short, WAIT * 2), Late::Retry);
    }

    /// R11: a job that is late again and again is not given back for ever, even when
    /// the worker's other jobs are in time.
    #[test]
    fn one_job_is_given_back_so_often_and_no_more() {
        let mut size = ClaimSize::new(16, WAIT);
        let job = |name: &str| JobId::new(name).unwrap();

        for _ in 0..GIVEN_BACK_AT_MOST {
            assert_eq!(size.give_back(&job("late")), Late::GiveBack);
        }

        assert_eq!(size.give_back(&job("late")), Late::Retry);
        assert_eq!(size.give_back(&job("another")), Late::GiveBack);
    }
}
