//! The options that a backend supports, and the checks that follow from them.

use std::{num::NonZeroU32, ops::RangeInclusive, time::Duration};

use crate::{
    ClaimRequest, Error, NewJob, Priority,
    error::{ErrorContext, Operation},
    limits::{MAX_DURATION, MAX_JOBS_PER_CALL},
};

/// An option of the contract. A backend either supports and proves it, or refuses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Capability {
    /// Client-made job ids (R4).
    ClientIds,
    /// Push calls that can be repeated by token (R4).
    PushTokens,
    /// Delayed jobs (R14).
    Delay,
    /// More than one priority (R15).
    Priority,
    /// Unique keys (R16).
    Unique,
    /// Expiry (R17).
    Expiry,
    /// A push wakes a waiting claim. A backend without this option polls instead.
    BlockingWait,
    /// Works on Redis Cluster: all keys of a queue share one slot.
    Cluster,
    /// Batches (B1 to B10), through [`ReliableQueue::batch_queue`].
    ///
    /// [`ReliableQueue::batch_queue`]: crate::ReliableQueue::batch_queue
    Batches,
}

/// The order in which ready jobs of one priority are delivered (R13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Order {
    /// By the time they became ready; a recovered or given-back job goes to the
    /// front.
    Fifo,
    /// First deliveries by the time of the push. A job that comes back is delivered
    /// after the jobs that were ready when it was claimed, and before jobs that are
    /// pushed after it came back. With several priorities, all but the lowest are last
    /// in, first out.
    Rotating,
    /// No order is promised.
    Unordered,
}

/// The scope of a lease: one job, or all jobs of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LeaseScope {
    /// Each job has its own lease, so that a lease that no heartbeat names expires.
    Job,
    /// One heartbeat keeps all jobs of a worker. A worker asks for leases of one
    /// length. A job that an extension does not name is given back, or its lease
    /// expires (R10). No job has a lease length of its own.
    Worker,
}

/// When a dead worker's job is claimable again (R9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecoveryBound {
    /// After its lease and one interval of the reaper.
    LeaseAndReaper,
    /// As `LeaseAndReaper`, and one full turn of the ring. Before a ready job is
    /// claimed, the number of claims that return fewer jobs than they asked for is at
    /// most the number of jobs.
    OneTurn,
}

/// The limits of a backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of a payload.
    pub max_payload: usize,
    /// The most bytes of all header names and values of a job.
    pub max_headers: usize,
    /// The most jobs of one push, claim, settlement or extension.
    pub max_jobs_per_call: NonZeroU32,
    /// The most bytes of all payloads and headers of one push.
    pub max_bytes_per_push: usize,
}

impl Limits {
    /// The limits of a backend that has no reason for others.
    pub const DEFAULT: Self = Self {
        max_payload: 16 * 1024 * 1024,
        max_headers: 64 * 1024,
        max_jobs_per_call: MAX_JOBS_PER_CALL,
        // Redis closes a connection whose unread commands are larger than its
        // `client-query-buffer-limit`, which is 1 GiB by default.
        // https://redis.io/docs/latest/develop/reference/clients/
        max_bytes_per_push: 256 * 1024 * 1024,
    };

    /// How many of these jobs, from the first, one push may carry. It is at least 1
    /// unless there are no jobs.
    pub fn jobs_of_one_push(&self, jobs: &[NewJob]) -> usize {
        let page = &jobs[..jobs.len().min(self.max_jobs_per_call.get() as usize)];
        let mut bytes = 0_usize;
        let fitting = page.iter().take_while(|job| {
            bytes = bytes.saturating_add(job.total_bytes());
            bytes <= self.max_bytes_per_push
        });
        fitting.count().max(page.len().min(1))
    }
}

/// The options, declarations and limits of a backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// The backend's name, as in its URL.
    pub backend: &'static str,
    /// The options that the backend supports.
    pub supported: &'static [Capability],
    /// The priorities that the backend distinguishes.
    pub priorities: RangeInclusive<Priority>,
    /// How late a delayed job may be while a worker is idle (R14).
    pub lateness: Duration,
    /// The order of delivery.
    pub order: Order,
    /// The scope of a lease: one job, or all jobs of a worker.
    pub lease_scope: LeaseScope,
    /// When a dead worker's job comes back.
    pub recovery: RecoveryBound,
    /// The limits of the backend.
    pub limits: Limits,
}

/// Counts the bytes of the jobs that a claim takes, so that it takes no more than
/// [`ClaimRequest::MAX_BYTES`], or one job.
#[derive(Debug, Clone, Default)]
pub struct ClaimBytes {
    taken: usize,
    is_full: bool,
}

impl ClaimBytes {
    /// Counts a job of `bytes` bytes and returns whether the claim may take it. The
    /// claim may take the first job whatever its size. After the first refused job the
    /// budget is full.
    pub fn take(&mut self, bytes: usize) -> bool {
        let taken = self.taken.saturating_add(bytes);
        self.is_full |= self.taken > 0 && taken > ClaimRequest::MAX_BYTES;
        if !self.is_full {
            self.taken = taken;
        }
        !self.is_full
    }

    /// Whether a job was too large for the remaining bytes.
    pub fn is_full(&self) -> bool {
        self.is_full
    }
}

impl Capabilities {
    /// Whether the backend supports this option.
    pub fn supports(&self, option: Capability) -> bool {
        self.supported.contains(&option)
    }

    /// Refuses jobs that the backend cannot store, before anything is written (R5).
    ///
    /// Every backend calls this first in `push`, so that all backends refuse the same
    /// requests.
    ///
    /// # Errors
    /// [`Error::Invalid`] or [`Error::Unsupported`], for the first job that is
    /// refused.
    pub fn check_push(&self, jobs: &[NewJob], has_token: bool) -> Result<(), Error> {
        self.check_batch(Operation::Push, jobs.len())?;
        self.check_token(Operation::Push, has_token)?;
        self.check_jobs(Operation::Push, jobs)
    }

    /// Refuses an invalid claim.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a lease of zero or one too long to add to a time.
    pub fn check_claim(&self, ask: &ClaimRequest) -> Result<(), Error> {
        self.check_lease(Operation::Claim, ask.lease)?;
        self.check_duration(Operation::Claim, "the wait", ask.wait)
    }

    /// Refuses a lease of zero or one too long to add to a time.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn check_lease(
        &self,
        operation: Operation,
        lease: Duration,
    ) -> Result<(), Error> {
        if lease < Duration::from_millis(1) {
            return Err(self.invalid(operation, "the lease is shorter than 1 ms"));
        }
        self.check_duration(operation, "the lease", lease)
    }

    /// Refuses more than [`Limits::max_jobs_per_call`] at once.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn check_batch(
        &self,
        operation: Operation,
        length: usize,
    ) -> Result<(), Error> {
        let most = self.limits.max_jobs_per_call.get() as usize;
        if length > most {
            let reason = format!("{length} at once are more than the {most} allowed");
            return Err(self.invalid(operation, reason));
        }
        Ok(())
    }

    pub(crate) fn check_token(
        &self,
        operation: Operation,
        has_token: bool,
    ) -> Result<(), Error> {
        if has_token {
            self.require(operation, Capability::PushTokens, "a push token")?;
        }
        Ok(())
    }

    pub(crate) fn check_jobs(
        &self,
        operation: Operation,
        jobs: &[NewJob],
    ) -> Result<(), Error> {
        jobs.iter().try_for_each(|job| self.check_job(operation, job))?;
        let bytes: usize = jobs.iter().map(NewJob::total_bytes).sum();
        let most = self.limits.max_bytes_per_push;
        if bytes > most {
            let reason =
                format!("{bytes} bytes at once are more than the {most} allowed");
            return Err(self.invalid(operation, reason));
        }
        Ok(())
    }

    fn check_job(&self, operation: Operation, job: &NewJob) -> Result<(), Error> {
        self.check_options(operation, job)?;
        self.check_sizes(operation, job)?;
        self.check_duration(operation, "the delay", job.delay)?;
        if let Some(expires_in) = job.expires_in {
            self.check_duration(operation, "the expiry", expires_in)?;
        }
        job.lease.map_or(Ok(()), |lease| self.check_lease(operation, lease))
    }

    fn check_options(&self, operation: Operation, job: &NewJob) -> Result<(), Error> {
        let used = [
            (job.id.is_some(), Capability::ClientIds, "a job id of the client's"),
            (!job.delay.is_zero(), Capability::Delay, "a delay"),
            (job.expires_in.is_some(), Capability::Expiry, "an expiry"),
            (job.unique.is_some(), Capability::Unique, "a unique key"),
        ];
        for (is_used, option, words) in used {
            if is_used {
                self.require(operation, option, words)?;
            }
        }
        if !self.priorities.contains(&job.priority) {
            return Err(self.unsupported(operation, "this priority"));
        }
        if job.lease.is_some() && self.lease_scope == LeaseScope::Worker {
            return Err(self.unsupported(operation, "a lease of the job's own"));
        }
        Ok(())
    }

    fn check_sizes(&self, operation: Operation, job: &NewJob) -> Result<(), Error> {
        let too_big = |what: &str, size: usize, most: usize| {
            let reason = format!("{what} of {size} bytes is over the limit of {most}");
            self.invalid(operation, reason)
        };
        let Limits { max_payload, max_headers, .. } = self.limits;
        if job.payload.len() > max_payload {
            return Err(too_big("a payload", job.payload.len(), max_payload));
        }
        let headers = job.headers.total_bytes();
        if headers > max_headers {
            return Err(too_big("a set of headers", headers, max_headers));
        }
        Ok(())
    }

    pub(crate) fn check_duration(
        &self,
        operation: Operation,
        what: &str,
        duration: Duration,
    ) -> Result<(), Error> {
        if duration > MAX_DURATION {
            let reason = format!("{what} is longer than a hundred years");
            return Err(self.invalid(operation, reason));
        }
        Ok(())
    }

    fn require(
        &self,
        operation: Operation,
        option: Capability,
        words: &'static str,
    ) -> Result<(), Error> {
        if self.supports(option) {
            return Ok(());
        }
        Err(self.unsupported(operation, words))
    }

    fn unsupported(&self, operation: Operation, option: &'static str) -> Error {
        Error::Unsupported { at: self.at(operation), option }
    }

    pub(crate) fn invalid(
        &self,
        operation: Operation,
        reason: impl Into<String>,
    ) -> Error {
        Error::Invalid { at: self.at(operation), reason: reason.into() }
    }

    fn at(&self, operation: Operation) -> ErrorContext {
        ErrorContext { backend: self.backend, operation }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_push_carries_what_its_limits_allow_and_at_least_one_job() {
        let two = NonZeroU32::new(2).unwrap();
        let limits = Limits {
            max_jobs_per_call: two,
            max_bytes_per_push: 10,
            ..Limits::DEFAULT
        };
        let carried = |sizes: &[usize]| {
            let jobs: Vec<_> =
                sizes.iter().map(|size| NewJob::new(vec![0; *size])).collect();
            limits.jobs_of_one_push(&jobs)
        };
        assert_eq!(carried(&[]), 0);
        assert_eq!(carried(&[1, 1, 1]), 2);
        assert_eq!(carried(&[4, 6]), 2);
        assert_eq!(carried(&[4, 7]), 1);
        assert_eq!(carried(&[11, 1]), 1);
    }
}
