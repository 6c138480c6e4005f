//! The options that a backend supports, and the checks that refuse requests which use
//! other options or exceed the backend's limits.

use std::{borrow::Cow, num::NonZeroU32, ops::RangeInclusive, time::Duration};

use crate::{
    ClaimRequest, Error, NewJob, Priority,
    error::{ErrorContext, Operation},
    limits::{MAX_DURATION, MAX_JOBS_PER_CALL},
};

/// An option of the queue contract. A backend either supports an option, which its
/// tests prove, or refuses every request that uses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Capability {
    /// The backend accepts client-made job ids, so that a push can be repeated (R4).
    ClientIds,
    /// The backend accepts push tokens, so that a push call can be repeated (R4).
    PushTokens,
    /// The backend accepts delayed jobs: they become ready some time after the push
    /// (R14).
    Delay,
    /// The backend has more than one priority for ready jobs (R15).
    Priority,
    /// The backend accepts unique keys, each held by at most one unfinished job (R16).
    Unique,
    /// The backend accepts jobs that expire: a job that is not delivered by a set time
    /// is buried (R17).
    Expiry,
    /// A push wakes a waiting claim. A backend without this option polls instead.
    BlockingWait,
    /// The backend works on Redis Cluster: all keys of a queue share one hash slot.
    Cluster,
    /// The stats say how long the oldest ready job has been waiting (R27).
    ReadyAge,
    /// The backend has batches (B1 to B10), through [`ReliableQueue::batch_queue`].
    ///
    /// [`ReliableQueue::batch_queue`]: crate::ReliableQueue::batch_queue
    Batches,
    /// The backend has schedules (R28), through [`ReliableQueue::schedule_queue`].
    ///
    /// [`ReliableQueue::schedule_queue`]: crate::ReliableQueue::schedule_queue
    Schedules,
    /// The backend keeps results and progress of jobs for their producers (R29), through
    /// [`ReliableQueue::result_queue`](crate::ReliableQueue::result_queue).
    Results,
    /// The backend accepts jobs that follow another job: they become ready when that job
    /// is done (R30).
    Followers,
}

/// The order in which ready jobs of one priority are delivered (R13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Order {
    /// Jobs are delivered in the order in which they became ready. A recovered or
    /// given-back job goes to the front.
    Fifo,
    /// Jobs are delivered for the first time in the order of their pushes. A job that
    /// comes back is delivered after the jobs that were ready when it was claimed, and
    /// before the jobs that are pushed after it came back. With several priorities, the
    /// jobs of all priorities but the lowest are delivered last in, first out.
    Rotating,
    /// Ready jobs are delivered in any order.
    Unordered,
    /// The queue consists of parts, each of which has an order and priorities of its
    /// own. Jobs of different parts are delivered in any order, whatever their
    /// priority (R15) or that of their batches (B4). A claim asks the parts one after the
    /// other. If it does not wait, it may find nothing although there is a ready job at
    /// every moment: another client may take the job of a part that comes later, and
    /// push the next one to a part that was asked before.
    ByPart,
}

/// The scope of a lease: one job, or all jobs of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LeaseScope {
    /// Each job has its own lease, which expires unless a heartbeat names that job.
    Job,
    /// One heartbeat extends the leases of all jobs of a worker, so no job has a lease
    /// length of its own. A worker asks for leases of one length. A job that an
    /// extension does not name is given back, or its lease expires (R10).
    ///
    /// A claim that waits may move a job to its worker in one step and lease it in the
    /// next. If the worker dies in between, the job was not delivered. It counts as
    /// leased, and is overdue when the worker's session ends: at once if the worker was
    /// released before. Then a recovery makes it ready, and no attempt is counted (R11).
    Worker,
}

/// How long after a worker's death its jobs can be claimed again (R9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecoveryBound {
    /// A job can be claimed after its lease has expired and one interval of the reaper
    /// has passed.
    LeaseAndReaper,
    /// A job can be claimed after its lease has expired, one interval of the reaper has
    /// passed, and claims have made one full turn of the ring (the list of jobs that
    /// claims rotate). During the turn some claims return fewer jobs than they asked
    /// for: at most as many claims as the queue has jobs.
    OneTurn,
}

/// The largest requests that a backend accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The largest payload of a job, in bytes.
    pub max_payload: usize,
    /// The largest total size of a job's header names and values, in bytes.
    pub max_headers: usize,
    /// The most jobs that one call may push, claim, settle or extend.
    pub max_jobs_per_call: NonZeroU32,
    /// The largest total size of the payloads and headers of one push call, in bytes.
    pub max_bytes_per_push: usize,
}

impl Limits {
    /// The limits of every backend that does not need smaller ones.
    pub const DEFAULT: Self = Self {
        max_payload: 16 * 1024 * 1024,
        max_headers: 64 * 1024,
        max_jobs_per_call: MAX_JOBS_PER_CALL,
        // Redis closes a connection whose unread commands are larger than its
        // `client-query-buffer-limit`, which is 1 GiB by default.
        // https://redis.io/docs/latest/develop/reference/clients/
        max_bytes_per_push: 256 * 1024 * 1024,
    };

    /// Returns how many of `jobs`, counted from the first, fit into one push call. The
    /// result is at least 1 unless `jobs` is empty.
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

/// The options that a backend supports, its properties and its limits.
///
/// ```
/// use relq_core::{NewJob, Priority, ReliableQueue, capabilities::Capability};
///
/// /// A job that is delivered first on every backend that has priorities.
/// fn urgent(queue: &dyn ReliableQueue, payload: &'static str) -> NewJob {
///     let job = NewJob::new(payload);
///     if queue.capabilities().supports(Capability::Priority) {
///         return job.priority(Priority::HIGHEST);
///     }
///     job
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// The name of the backend, as it stands in a queue's URL.
    pub backend: &'static str,
    /// The options that the backend supports.
    pub supported: Cow<'static, [Capability]>,
    /// The priorities that the backend distinguishes.
    pub priorities: RangeInclusive<Priority>,
    /// How long after its due time a delayed job may become ready, at most, while a
    /// worker is idle (R14).
    pub lateness: Duration,
    /// The order in which ready jobs of one priority are delivered (R13).
    pub order: Order,
    /// The scope of a lease: one job, or all jobs of a worker.
    pub lease_scope: LeaseScope,
    /// How long after a worker's death its jobs can be claimed again (R9).
    pub recovery: RecoveryBound,
    /// The largest requests that the backend accepts.
    pub limits: Limits,
}

/// Counts the bytes of the jobs that a claim takes. The claim must not take more than
/// [`ClaimRequest::MAX_BYTES`], except that one job may be larger.
#[derive(Debug, Clone, Default)]
pub struct ClaimBytes {
    taken: usize,
    is_full: bool,
}

impl ClaimBytes {
    /// Counts a job of `bytes` bytes, and returns whether the claim may take it. The
    /// first job may have any size. After the first refused job, all further jobs are
    /// refused.
    pub fn take(&mut self, bytes: usize) -> bool {
        let taken = self.taken.saturating_add(bytes);
        self.is_full |= self.taken > 0 && taken > ClaimRequest::MAX_BYTES;
        if !self.is_full {
            self.taken = taken;
        }
        !self.is_full
    }

    /// Whether a job was refused because it was too large for the remaining bytes.
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
    /// For the first job that is refused: [`Error::Invalid`] if it breaks a limit,
    /// [`Error::Unsupported`] if it uses an option that is not supported. Also
    /// [`Error::Invalid`] for too many jobs or bytes in the call, for a job that follows
    /// itself or a job of the same call with a unique key (R30), and
    /// [`Error::Unsupported`] for a token on a backend without them.
    pub fn check_push(&self, jobs: &[NewJob], has_token: bool) -> Result<(), Error> {
        self.check_batch(Operation::Push, jobs.len())?;
        self.check_token(Operation::Push, has_token)?;
        self.check_jobs(Operation::Push, jobs)
    }

    /// Refuses a claim whose lease or wait is not valid.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a lease under a millisecond, and for a lease or wait above
    /// [`MAX_DURATION`].
    pub fn check_claim(&self, ask: &ClaimRequest) -> Result<(), Error> {
        self.check_lease(Operation::Claim, ask.lease)?;
        self.check_duration(Operation::Claim, "the wait", ask.wait)
    }

    /// Refuses a lease that is too short or too long.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a lease under a millisecond or above [`MAX_DURATION`].
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

    /// Refuses a call for more than [`Limits::max_jobs_per_call`] jobs.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the call has too many jobs.
    pub fn check_batch(
        &self,
        operation: Operation,
        length: usize,
    ) -> Result<(), Error> {
        let most = self.limits.max_jobs_per_call.get() as usize;
        if length > most {
            let reason = format!(
                "{length} jobs in one call are more than the {most} allowed: use several \
                 calls"
            );
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
        self.check_leaders(operation, jobs)?;
        let bytes: usize = jobs.iter().map(NewJob::total_bytes).sum();
        let most = self.limits.max_bytes_per_push;
        if bytes > most {
            let reason = format!(
                "{bytes} bytes in one push are more than the {most} allowed: use \
                 several pushes"
            );
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
        if let Some(keep_result) = job.keep_result {
            self.check_keep_result(operation, keep_result)?;
        }
        job.lease.map_or(Ok(()), |lease| self.check_lease(operation, lease))
    }

    fn check_options(&self, operation: Operation, job: &NewJob) -> Result<(), Error> {
        let used = [
            (job.id.is_some(), Capability::ClientIds, "a job id chosen by the client"),
            (!job.delay.is_zero(), Capability::Delay, "a delay"),
            (job.expires_in.is_some(), Capability::Expiry, "an expiry"),
            (job.unique.is_some(), Capability::Unique, "a unique key"),
            (job.keep_result.is_some(), Capability::Results, "a kept result"),
            (job.after.is_some(), Capability::Followers, "a job to follow"),
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
        let Limits { max_payload, max_headers, .. } = self.limits;
        self.check_bytes(operation, "a payload", job.payload.len(), max_payload)?;
        let headers = job.headers.total_bytes();
        self.check_bytes(operation, "a set of headers", headers, max_headers)
    }

    pub(crate) fn check_bytes(
        &self,
        operation: Operation,
        what: &str,
        size: usize,
        most: usize,
    ) -> Result<(), Error> {
        if size > most {
            let reason = format!("{what} of {size} bytes is over the limit of {most}");
            return Err(self.invalid(operation, reason));
        }
        Ok(())
    }

    fn check_keep_result(
        &self,
        operation: Operation,
        keep_result: Duration,
    ) -> Result<(), Error> {
        if keep_result < Duration::from_millis(1) {
            let reason = "a result is kept for less than 1 ms";
            return Err(self.invalid(operation, reason));
        }
        self.check_duration(operation, "the time of a result", keep_result)
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

    pub(crate) fn unsupported(
        &self,
        operation: Operation,
        option: &'static str,
    ) -> Error {
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
