//! The options that a backend supports, and the checks that refuse requests which use
//! other options or exceed the backend's limits.

mod checks;
mod restore;

use std::{borrow::Cow, num::NonZeroU32, ops::RangeInclusive, time::Duration};

use crate::{ClaimRequest, NewJob, Priority, limits::MAX_JOBS_PER_CALL};

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
    /// The backend has more than one priority for ready jobs (R15):
    /// [`Capabilities::priorities`] says which.
    Priority,
    /// The backend accepts unique keys, each held by at most one unfinished job (R16).
    Unique,
    /// The backend accepts jobs that expire: a job that is not delivered by a set time
    /// is buried (R17).
    Expiry,
    /// A push wakes a waiting claim. A backend without this option polls instead.
    BlockingWait,
    /// The backend works on Redis Cluster: all keys of a queue share one hash slot.
    ///
    /// No backend of relq lists this option, although all backends on Redis except
    /// `keyspace` work on a cluster.
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
    /// The backend finds a job by its id (R31), runs a scheduled job now (R32), lists the
    /// workers that run (R33), and lists jobs newest first. The calls are those of
    /// [`InspectQueue`](crate::operator::InspectQueue).
    Inspect,
    /// The backend stores jobs as they were in a queue (R34), through
    /// [`Operator::restore_queue`](crate::Operator::restore_queue).
    Restore,
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
///
/// The conformance suite cannot test a backend whose limits are lower than its cases need:
/// 1,000 jobs in a call, a payload of 2 MiB, 64 KiB of headers, and 4 MiB in a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The largest payload of a job, in bytes.
    pub max_payload: usize,
    /// The largest total size of a job's header names and values, in bytes.
    pub max_headers: usize,
    /// The most jobs that one call may push, settle or extend, and that a claim returns.
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
/// use std::time::Duration;
/// use relq_core::{NewJob, ReliableQueue, capabilities::Capability};
///
/// /// A job of the highest priority, which expires if the backend supports that.
/// fn urgent(queue: &dyn ReliableQueue, payload: &'static str) -> NewJob {
///     let can = queue.capabilities();
///     let job = NewJob::new(payload).priority(*can.priorities.end());
///     if can.supports(Capability::Expiry) {
///         return job.expires_in(Duration::from_secs(60));
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
    /// The priorities that the backend accepts. A job with another one is refused as
    /// [`Error::Unsupported`](crate::Error::Unsupported).
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
///
/// ```
/// use relq_core::{ClaimRequest, capabilities::ClaimBytes};
///
/// let mut bytes = ClaimBytes::default();
/// assert!(bytes.take(ClaimRequest::MAX_BYTES - 1));
/// assert!(!bytes.take(2)); // this job stays in the queue
/// assert!(!bytes.take(1) && bytes.is_full()); // so do the jobs behind it
/// ```
#[derive(Debug, Clone, Default)]
pub struct ClaimBytes {
    taken: usize,
    has_taken: bool,
    is_full: bool,
}

impl ClaimBytes {
    /// Counts a job of `bytes` bytes, and returns whether the claim may take it. The
    /// first job may have any size. After the first refused job, all further jobs are
    /// refused.
    pub fn take(&mut self, bytes: usize) -> bool {
        let taken = self.taken.saturating_add(bytes);
        self.is_full |= self.has_taken && taken > ClaimRequest::MAX_BYTES;
        self.has_taken = true;
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

    /// The subject of a message about an option that the queue lacks: `the backend zset`,
    /// for example. For a queue of several parts it is the queue itself, because the
    /// backend of its parts may have the option.
    pub fn subject(&self) -> String {
        match self.order {
            Order::ByPart => "a queue of several partitions".to_owned(),
            _ => format!("the backend {}", self.backend),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::listed::Listed;

    /// R6: only the first job of a claim may be of any size, whatever it is.
    #[test]
    fn a_claim_takes_one_job_of_any_size_and_else_its_limit() {
        let most = ClaimRequest::MAX_BYTES;
        let taken = |sizes: &[usize]| {
            let mut bytes = ClaimBytes::default();
            sizes.iter().take_while(|size| bytes.take(**size)).count()
        };
        assert_eq!(taken(&[most + 1]), 1);
        assert_eq!(taken(&[most + 1, 0]), 1);
        assert_eq!(taken(&[0, most + 1]), 1);
        assert_eq!(taken(&[0, most, 0, 1, 0]), 3);
    }

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

    /// R2: the bytes of the payloads and of the headers count together, for a caller that
    /// divides its jobs into calls and for the check of a call alike.
    #[test]
    fn the_headers_of_a_push_count_like_its_payloads() {
        let mut can = Listed::new(Vec::new()).capabilities;
        can.limits.max_bytes_per_push = 10;
        let sizes = [(0, 0), (4, 0), (0, 4), (3, 4), (10, 0), (0, 10)];
        let job = |(payload, header): (usize, usize)| match header {
            0 => NewJob::new(vec![0; payload]),
            _ => NewJob::new(vec![0; payload]).header("n", "v".repeat(header - 1)),
        };
        for first in sizes {
            for second in sizes {
                let jobs = [job(first), job(second)];
                let fit = first.0 + first.1 + second.0 + second.1 <= 10;
                let carried = can.limits.jobs_of_one_push(&jobs);
                assert_eq!(carried, if fit { 2 } else { 1 }, "{first:?} {second:?}");
                let checked = can.check_push(&jobs, false).is_ok();
                assert_eq!(checked, fit, "one push of {first:?} {second:?}");
            }
        }
    }
}
