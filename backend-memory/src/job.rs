//! One job: its data and its state.

use std::time::Duration;

use relq_core::{
    Delivery, JobId, NewJob, Receipt, WorkerId,
    environment::Timestamp,
    limits::{MAX_DURATION, with_lost_lease},
};

/// A stored job.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) id: JobId,
    pub(crate) job: NewJob,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) enqueued_at: Option<Timestamp>,
    /// When the job last became ready at the back of the queue (R27).
    pub(crate) ready_at: Timestamp,
    pub(crate) attempt: u32,
    pub(crate) last_error: Option<String>,
    pub(crate) state: StoredState,
}

/// The state of a job, with the details of that state.
#[derive(Debug, Clone)]
pub(crate) enum StoredState {
    Scheduled {
        due: Timestamp,
    },
    /// Scheduled without a due time, until the leader is done (R30).
    Held {
        leader: JobId,
    },
    Ready,
    Leased(Lease),
    Dead {
        reason: String,
        since: Timestamp,
    },
}

/// The lease of a job.
#[derive(Debug, Clone)]
pub(crate) struct Lease {
    pub(crate) worker: WorkerId,
    /// A number that no other lease of this queue has (R7).
    pub(crate) number: u64,
    pub(crate) since: Timestamp,
    pub(crate) until: Timestamp,
}

impl Job {
    pub(crate) fn new(id: JobId, job: NewJob, now: Timestamp) -> Self {
        let state = wait_until(job.delay, now);
        let expires_at = job.expires_in.map(|after| later(now, after));
        Self {
            id,
            job,
            expires_at,
            enqueued_at: Some(now),
            ready_at: now,
            attempt: 0,
            last_error: None,
            state,
        }
    }

    pub(crate) fn lease(&self) -> Option<&Lease> {
        match &self.state {
            StoredState::Leased(lease) => Some(lease),
            _ => None,
        }
    }

    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.state, StoredState::Ready)
    }

    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, StoredState::Dead { .. })
    }

    pub(crate) fn has_expired(&self, now: Timestamp) -> bool {
        self.lease().is_none() && self.expires_at.is_some_and(|at| at <= now)
    }

    pub(crate) fn due(&self) -> Option<Timestamp> {
        match self.state {
            StoredState::Scheduled { due } => Some(due),
            _ => None,
        }
    }

    /// Adds to the job's last error that the lease of this attempt expired (R11).
    pub(crate) fn note_lost_lease(&mut self) {
        let text = with_lost_lease(self.last_error.as_deref(), self.attempt);
        self.last_error = Some(text);
    }

    pub(crate) fn is_out_of_attempts(&self) -> bool {
        self.attempt >= u32::from(self.job.max_attempts.get())
    }

    pub(crate) fn bury(&mut self, reason: &str, now: Timestamp) {
        self.state = StoredState::Dead { reason: reason.to_owned(), since: now };
    }

    pub(crate) fn delivery(&self, number: u64, lease: Duration) -> Delivery {
        let token = number.to_be_bytes().to_vec();
        let receipt = Receipt::new(self.id.clone(), self.attempt, token);
        Delivery::new(receipt, self.job.payload.clone(), lease)
            .max_attempts(self.job.max_attempts)
            .priority(self.job.priority)
            .headers(self.job.headers.clone())
            .enqueued_at(self.enqueued_at)
            .keeps_result(self.job.keep_result.is_some())
    }
}

/// The state of a job that becomes ready after `delay`, which is reduced to [`MAX_DURATION`].
pub(crate) fn wait_until(delay: Duration, now: Timestamp) -> StoredState {
    if delay.is_zero() {
        return StoredState::Ready;
    }
    StoredState::Scheduled { due: later(now, delay) }
}

/// The time after `duration`, which is reduced to [`MAX_DURATION`], and rounded up to whole
/// milliseconds, so that nothing is early (R14).
pub(crate) fn later(now: Timestamp, duration: Duration) -> Timestamp {
    const ALMOST_A_MILLISECOND: Duration = Duration::from_nanos(999_999);
    now.plus(duration.min(MAX_DURATION).saturating_add(ALMOST_A_MILLISECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_millisecond_counts_as_a_whole_one() {
        let now = Timestamp::from_unix_ms(1000);
        for (nanos, ms) in [(0, 1000), (1, 1001), (1_000_000, 1001), (1_000_001, 1002)]
        {
            let after = later(now, Duration::from_nanos(nanos));

            assert_eq!(after, Timestamp::from_unix_ms(ms), "R14: {nanos} ns");
        }
    }
}
