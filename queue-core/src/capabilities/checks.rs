//! The checks that every backend makes before it sends a request, so that all backends
//! refuse the same ones.

use std::time::Duration;

use super::{Capabilities, Capability, LeaseScope, Limits, Order};
use crate::{
    ClaimRequest, Error, NewJob,
    error::{ErrorContext, Operation},
    limits::MAX_DURATION,
    operator::{PeekOrder, PeekRequest},
};

impl Capabilities {
    /// Refuses jobs that the backend cannot store, before anything is written (R5).
    ///
    /// Every backend calls this first in `push`, so that all backends refuse the same
    /// requests.
    ///
    /// ```
    /// use std::{borrow::Cow, time::Duration};
    /// use relq_core::capabilities::{
    ///     Capabilities, Capability, LeaseScope, Limits, Order, RecoveryBound,
    /// };
    /// use relq_core::{Error, NewJob, Priority};
    ///
    /// /// What a backend declares that has delays and one priority.
    /// const CAPABILITIES: Capabilities = Capabilities {
    ///     backend: "mine",
    ///     supported: Cow::Borrowed(&[Capability::Delay]),
    ///     priorities: Priority::NORMAL..=Priority::NORMAL,
    ///     lateness: Duration::from_secs(1),
    ///     order: Order::Fifo,
    ///     lease_scope: LeaseScope::Job,
    ///     recovery: RecoveryBound::LeaseAndReaper,
    ///     limits: Limits::DEFAULT,
    /// };
    ///
    /// let minute = Duration::from_secs(60);
    /// let delayed = NewJob::new("a").delay(minute);
    /// assert!(CAPABILITIES.check_push(&[delayed], false).is_ok());
    /// let expiring = NewJob::new("b").expires_in(minute);
    /// let refused = CAPABILITIES.check_push(&[expiring], false);
    /// assert!(matches!(refused, Err(Error::Unsupported { .. })));
    /// ```
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

    /// Refuses a listing newest first if the backend has none. Every backend calls this
    /// first in [`peek`](crate::Operator::peek).
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the listing is refused.
    pub fn check_peek(&self, ask: &PeekRequest) -> Result<(), Error> {
        match ask.order {
            PeekOrder::AsServed => Ok(()),
            PeekOrder::NewestFirst => {
                let words = "a listing newest first";
                self.require(Operation::Peek, Capability::Inspect, words)
            }
        }
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

    pub(super) fn check_job(
        &self,
        operation: Operation,
        job: &NewJob,
    ) -> Result<(), Error> {
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

    pub(super) fn require(
        &self,
        operation: Operation,
        option: Capability,
        words: &'static str,
    ) -> Result<(), Error> {
        if self.supports(option) {
            return Ok(());
        }
        Err(self.unsupported(operation, self.words_of(option, words)))
    }

    /// The words for a missing option. A queue of several parts lacks some options even
    /// if the backend of its parts has them, so their words name the parts.
    pub(crate) fn words_of(
        &self,
        option: Capability,
        words: &'static str,
    ) -> &'static str {
        match (self.order, option) {
            (Order::ByPart, Capability::Results) => {
                "a kept result in a queue of several partitions"
            }
            (Order::ByPart, Capability::Followers) => {
                "a job to follow in a queue of several partitions"
            }
            (Order::ByPart, Capability::Inspect) => {
                "a listing newest first in a queue of several partitions"
            }
            (Order::ByPart, Capability::Restore) => {
                "restoring jobs in a queue of several partitions"
            }
            _ => words,
        }
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
    use crate::{
        Disposition, Receipt, Settlement, WorkerId,
        batch::{BatchId, NewBatch},
        operator::listed::Listed,
    };

    const MILLISECOND: Duration = Duration::from_millis(1);

    fn capabilities() -> Capabilities {
        let mut can = Listed::new(Vec::new()).capabilities;
        let options = [Capability::Delay, Capability::Expiry, Capability::Results];
        can.supported.to_mut().extend(options);
        can
    }

    fn ask(lease: Duration) -> ClaimRequest {
        ClaimRequest::new(WorkerId::new("worker").unwrap(), lease)
    }

    fn batch() -> NewBatch {
        NewBatch::new(BatchId::new("batch").unwrap())
    }

    fn push(can: &Capabilities, job: NewJob) -> Result<(), Error> {
        can.check_push(&[job], false)
    }

    fn done_with(bytes: usize) -> [Settlement; 1] {
        let receipt = Receipt::new("job".parse().unwrap(), 1, "token");
        let result = vec![0; bytes].into();
        [Settlement::new(receipt, Disposition::DoneWith { result })]
    }

    /// The check of a value in a request.
    type Check<T> = fn(&Capabilities, T) -> Result<(), Error>;

    /// Each duration of a request, with the shortest that is allowed.
    const DURATIONS: [(&str, Duration, Check<Duration>); 10] = [
        ("the lease of a claim", MILLISECOND, |can, it| can.check_claim(&ask(it))),
        ("the wait of a claim", Duration::ZERO, |can, it| {
            can.check_claim(&ask(MILLISECOND).wait(it))
        }),
        ("the lease of an extension", MILLISECOND, |can, it| {
            can.check_lease(Operation::Extend, it)
        }),
        ("the lease of a job", MILLISECOND, |can, it| {
            push(can, NewJob::new("").lease(it))
        }),
        ("a delay", Duration::ZERO, |can, it| push(can, NewJob::new("").delay(it))),
        ("an expiry", Duration::ZERO, |can, it| {
            push(can, NewJob::new("").expires_in(it))
        }),
        ("the time of a result", MILLISECOND, |can, it| {
            push(can, NewJob::new("").keep_result(it))
        }),
        ("a retention", Duration::from_secs(1), |can, it| {
            can.check_new_batch(&batch().retention(it))
        }),
        ("a wait for a batch", Duration::ZERO, |can, it| can.check_wait(it)),
        ("a wait for a result", Duration::ZERO, |can, it| can.check_wait_result(it)),
    ];

    fn is_invalid(checked: &Result<(), Error>) -> bool {
        matches!(checked, Err(Error::Invalid { .. }))
    }

    #[test]
    fn a_duration_is_allowed_up_to_its_limits() {
        let (can, nanosecond) = (capabilities(), Duration::from_nanos(1));
        for (what, shortest, check) in DURATIONS {
            for allowed in [shortest, MAX_DURATION] {
                let checked = check(&can, allowed);
                assert!(checked.is_ok(), "{what} of {allowed:?}: {checked:?}");
            }
            let too_short = shortest.checked_sub(nanosecond);
            for refused in too_short.into_iter().chain([MAX_DURATION + nanosecond]) {
                let checked = check(&can, refused);
                assert!(is_invalid(&checked), "{what} of {refused:?}: {checked:?}");
            }
        }
    }

    const KIB: usize = 1024;

    /// Each size in a request, with the largest that is allowed.
    const SIZES: [(&str, usize, Check<usize>); 7] = [
        ("a payload", 16 * KIB * KIB, |can, it| push(can, NewJob::new(vec![0; it]))),
        ("a set of headers", 64 * KIB, |can, it| {
            push(can, NewJob::new("").header("n", "v".repeat(it - 1)))
        }),
        ("the metadata of a batch", 16 * KIB, |can, it| {
            can.check_new_batch(&batch().metadata(vec![0; it]))
        }),
        ("a result", KIB * KIB, |can, it| can.check_settlements(&done_with(it))),
        ("a progress", 64 * KIB, |can, it| can.check_progress(&vec![0; it])),
        ("the definition of a schedule", 64 * KIB, |can, it| {
            can.check_schedule(&vec![0; it])
        }),
        ("a number of jobs", 1000, |can, it| can.check_batch(Operation::Settle, it)),
    ];

    #[test]
    fn a_size_is_allowed_up_to_its_limit() {
        let can = capabilities();
        for (what, largest, check) in SIZES {
            let checked = check(&can, largest);
            assert!(checked.is_ok(), "{what} of {largest}: {checked:?}");
            let checked = check(&can, largest + 1);
            assert!(is_invalid(&checked), "{what} of {largest} and one: {checked:?}");
        }
    }
}
