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
//!  the same, but with a suspend    | is given back| as many, the same wait
//!  less than the wait and the lease| is given back| as many, the shortest wait
//!  longer                          | is given back| half as many
//!  longer, with one job at a time  | is retried   | one: the attempt counts
//! ```
//!
//! How long the reply took is measured with the steady clock. A suspend of the machine
//! during the claim, or a wall clock that is set forward, does not make the reply late:
//! the job may have been leased before it or after it (R18).
//!
//! The limit includes running jobs: most replies are read late because handlers block
//! the runtime's threads. With one job at a time no handler runs while a claim is
//! pending. A retry stores the reason with the job; an expired lease does not. If
//! another worker holds the job by then, the store refuses the retry or the give-back
//! (R7).

use std::{collections::VecDeque, time::Duration};

use relq_core::JobId;

use crate::lease_clock::Moment;

/// How long the next claim waits for a job, after a claim may have waited longer than
/// the lease of the jobs that it returned.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// How many times a worker gives back the same late job at most. A single worker does
/// not reach this number: it halves its claims down to one job before. But several
/// workers could give back the same job in turn for ever.
const GIVEN_BACK_AT_MOST: usize = 16;

/// How many given-back jobs a worker remembers, to count how often it gave each back.
const REMEMBERED: usize = 1024;

/// When a claim was sent, and how long it could wait for a job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) at: Moment,
    pub(crate) wait: Duration,
}

impl Sent {
    /// How long the call has taken at `now`, without the time for which the machine was
    /// suspended.
    pub(crate) fn took(self, now: Moment) -> Duration {
        now.steady_time.saturating_sub(self.at.steady_time)
    }
}

/// How the worker handles a job whose lease may have expired before it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Late {
    /// The job is given back, and the attempt is not counted.
    GiveBack,
    /// The job is retried, and the attempt counts.
    Retry,
}

/// The most jobs that a worker holds at once, and how long its claims wait.
#[derive(Debug)]
pub(crate) struct ClaimSize {
    most: usize,
    limit: usize,
    longest_wait: Duration,
    wait: Duration,
    /// When the limit or the wait was last reduced, by the steady clock. A late reply to a
    /// claim that was sent before does not reduce it again.
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

    /// The most jobs that the worker may hold at once, running ones included.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// How long a claim waits for a job.
    pub(crate) fn wait(&self) -> Duration {
        self.wait
    }

    /// Called when all jobs of a reply can start. Doubles the limit, up to its maximum.
    pub(crate) fn in_time(&mut self) {
        self.limit = self.limit.saturating_mul(2).min(self.most);
        self.wait = self.wait.saturating_mul(2).min(self.longest_wait);
    }

    /// Called when the leases of some jobs of a reply may have expired before the reply
    /// was read. `lease` is the shortest of these leases. Reduces the limit or the
    /// wait, and returns whether to give back or to retry the jobs.
    pub(crate) fn late(&mut self, sent: Sent, lease: Duration, now: Moment) -> Late {
        let took = sent.took(now);
        if took < lease || sent.at.steady_time < self.reduced_at {
            return Late::GiveBack;
        }
        let is_surely_late = sent.wait + lease <= took;
        if !is_surely_late && self.wait > SHORTEST_WAIT {
            self.wait = SHORTEST_WAIT;
        } else if self.limit > 1 {
            self.limit /= 2;
        } else {
            return Late::Retry;
        }
        self.reduced_at = now.steady_time;
        Late::GiveBack
    }

    /// Counts that the worker gives back this late job. Returns `Retry` instead if the
    /// worker has given it back too often.
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

    /// Calls `late` for a claim that did not wait for a job and whose reply took
    /// `took`.
    fn after(size: &mut ClaimSize, took: Duration, now: Duration) -> Late {
        let [at, now] = [now - took, now].map(Moment::awake);
        size.late(Sent { at, wait: Duration::ZERO }, LEASE, now)
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

    /// If one stall delays the replies to several claims, the limit is halved only
    /// once.
    #[test]
    fn claims_of_one_stall_halve_once() {
        let mut size = ClaimSize::new(16, WAIT);
        let now = times(1);

        assert_eq!(after(&mut size, LEASE, now), Late::GiveBack);
        assert_eq!(after(&mut size, LEASE * 2, now), Late::GiveBack);
        assert_eq!(size.limit(), 8);
    }

    /// R11: the limit is not halved if the claim may have waited longer than the lease,
    /// because then the reply need not be late.
    #[test]
    fn a_claim_that_may_have_waited_counts_nothing() {
        let mut size = ClaimSize::new(1, WAIT);
        let short = Duration::from_secs(1);
        let sent = Sent { at: Moment::default(), wait: WAIT };

        assert_eq!(size.late(sent, short, Moment::awake(WAIT)), Late::GiveBack);
        assert_eq!((size.limit(), size.wait()), (1, SHORTEST_WAIT));
        let sent = Sent { at: Moment::awake(WAIT), wait: SHORTEST_WAIT };
        assert_eq!(size.late(sent, short, Moment::awake(WAIT * 2)), Late::Retry);
    }

    /// R18: the machine is suspended during two claims in a row, each time for longer than
    /// the lease. Neither reply was late, so no attempt counts, and the next claim waits as
    /// long as before.
    #[test]
    fn a_suspend_during_a_claim_counts_nothing() {
        let mut size = ClaimSize::new(1, WAIT);
        for (claims, slept) in [(0, times(1)), (1, times(2))] {
            let [at, replied] = [WAIT * claims, WAIT * (claims + 1)].map(Moment::awake);
            let now = Moment { lease_time: replied.lease_time + slept, ..replied };

            assert_eq!(size.late(Sent { at, wait: WAIT }, LEASE, now), Late::GiveBack);
            assert_eq!((size.limit(), size.wait()), (1, WAIT));
        }
    }

    /// R11: a reply that would be late without the suspend too counts like any late reply.
    #[test]
    fn a_late_reply_counts_also_after_a_suspend() {
        let mut size = ClaimSize::new(1, WAIT);
        let sent = Sent { at: Moment::default(), wait: WAIT };
        let after =
            |took: Duration| Moment { lease_time: took + times(1), steady_time: took };

        assert_eq!(size.late(sent, LEASE, after(LEASE)), Late::GiveBack);
        assert_eq!((size.limit(), size.wait()), (1, SHORTEST_WAIT), "perhaps late");
        let mut size = ClaimSize::new(1, WAIT);
        assert_eq!(size.late(sent, LEASE, after(WAIT + LEASE)), Late::Retry);
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

    /// R11: only the newest give-backs are remembered. So a long-lived worker that gives back
    /// a job from time to time never counts an attempt for that, and needs no more memory.
    #[test]
    fn old_give_backs_are_forgotten() {
        let mut size = ClaimSize::new(16, WAIT);
        let rare = JobId::new("rare").unwrap();

        for round in 0..=GIVEN_BACK_AT_MOST {
            let late = size.give_back(&rare);
            assert_eq!(late, Late::GiveBack, "R11: after {round} rounds of others");
            for number in 0..REMEMBERED {
                size.give_back(&JobId::new(format!("{round}-{number}")).unwrap());
            }
        }

        assert_eq!(size.given_back.len(), REMEMBERED, "the jobs that are remembered");
    }

    /// R11: a claim waits only briefly after a lease that was shorter than the wait. An idle
    /// worker would claim a thousand times a second if its claims did not wait longer again.
    #[test]
    fn the_wait_of_a_claim_grows_again() {
        let mut size = ClaimSize::new(1, WAIT);
        let sent = Sent { at: Moment::default(), wait: WAIT };
        size.late(sent, Duration::from_secs(1), Moment::awake(WAIT));
        assert_eq!(size.wait(), SHORTEST_WAIT, "after a claim that may have waited");

        size.in_time();
        assert_eq!(size.wait(), SHORTEST_WAIT * 2, "after one in time");
        (0..20).for_each(|_| size.in_time());

        assert_eq!(size.wait(), WAIT, "after many");
    }
}
