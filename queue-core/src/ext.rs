//! Convenience calls for a single job, and calls that split many jobs into several
//! calls of the backend.

use std::{num::NonZeroU32, time::Duration};

use async_trait::async_trait;

use crate::{
    ClaimRequest, Delivery, Disposition, Error, JobId, NewJob, Receipt, ReliableQueue,
    Settlement,
    capabilities::Capability,
    error::Operation,
    outcome::{Pushed, Settled},
    results::JobHandle,
};

/// Calls for a single job and for any number of jobs, on every [`ReliableQueue`].
///
/// ```
/// use std::time::Duration;
/// use relq_core::outcome::{Pushed, Settled};
/// use relq_core::{ClaimRequest, Error, ReliableQueue, ReliableQueueExt, WorkerId};
///
/// async fn produce(queue: &dyn ReliableQueue) -> Result<(), Error> {
///     match queue.push_one("welcome, anna".into()).await? {
///         Pushed::Stored(id) => println!("stored as {id}"),
///         Pushed::Duplicate { existing, .. } => println!("known as {existing}"),
///     }
///     Ok(())
/// }
///
/// /// Waits for one job for up to five seconds, and works on it under a lease.
/// async fn work(queue: &dyn ReliableQueue, me: WorkerId) -> Result<(), Error> {
///     let ask = ClaimRequest::new(me, Duration::from_secs(30));
///     let ask = ask.wait(Duration::from_secs(5));
///     let Some(job) = queue.claim_one(&ask).await? else { return Ok(()) };
///     let settled = match std::str::from_utf8(&job.payload) {
///         Ok("busy") => {
///             queue.retry(&job.receipt, Duration::from_secs(60), "busy").await?
///         }
///         Ok(_) => queue.ack(&job.receipt).await?,
///         Err(error) => queue.bury(&job.receipt, &error.to_string()).await?,
///     };
///     if settled == Settled::LeaseLost {
///         println!("another worker may run {}", job.job());
///     }
///     Ok(())
/// }
/// ```
#[async_trait]
pub trait ReliableQueueExt: ReliableQueue {
    /// Pushes one job.
    ///
    /// # Errors
    /// The errors of [`ReliableQueue::push`].
    async fn push_one(&self, job: NewJob) -> Result<Pushed, Error> {
        let pushed = self.push(std::slice::from_ref(&job), None).await?;
        Ok(pushed.into_iter().next().expect("push answers for each job"))
    }

    /// Returns how many of `jobs`, counted from the first, one push call can have: those
    /// that keep the [limits](crate::capabilities::Limits::jobs_of_one_push) of the
    /// backend and belong to one [part](ReliableQueue::part_of_job) of the queue. The
    /// result is at least 1 unless `jobs` is empty.
    fn jobs_of_one_push(&self, jobs: &[NewJob]) -> usize {
        let fitting = self.capabilities().limits.jobs_of_one_push(jobs);
        let mut part_of_call = None;
        let of_one_part = |job: &&NewJob| match self.part_of_job(job) {
            Ok(None) => true,
            Ok(Some(part)) => *part_of_call.get_or_insert(part) == part,
            Err(_) => false,
        };
        // At least one job, even if it can belong to no part: the error of its push says
        // why.
        jobs[..fitting].iter().take_while(of_one_part).count().max(fitting.min(1))
    }

    /// Pushes any number of jobs, in as many calls as [`max_jobs_per_call`],
    /// [`max_bytes_per_push`] and the [parts](ReliableQueue::part_of_job) of the queue
    /// require.
    ///
    /// Each call stores all of its jobs or none, but the calls before a failed one have
    /// stored theirs. An error therefore comes with a number: so many jobs, counted from
    /// the first, are certainly stored. (A duplicate counts, too.)
    ///
    /// ```
    /// use relq_core::{NewJob, ReliableQueue, ReliableQueueExt, error::Effect};
    ///
    /// /// Returns the jobs that are certainly not stored, for a later call.
    /// async fn push<'a>(queue: &dyn ReliableQueue, jobs: &'a [NewJob]) -> &'a [NewJob] {
    ///     match queue.push_all(jobs).await {
    ///         Ok(_) => &[],
    ///         Err((error, stored)) if error.effect() == Effect::No => &jobs[stored..],
    ///         Err((error, stored)) => {
    ///             eprintln!("jobs after the first {stored} may be stored: {error}");
    ///             &[]
    ///         }
    ///     }
    /// }
    /// ```
    ///
    /// [`max_jobs_per_call`]: crate::capabilities::Limits::max_jobs_per_call
    /// [`max_bytes_per_push`]: crate::capabilities::Limits::max_bytes_per_push
    ///
    /// # Errors
    /// The errors of [`ReliableQueue::push`].
    async fn push_all(&self, jobs: &[NewJob]) -> Result<Vec<Pushed>, (Error, usize)> {
        let mut pushed = Vec::with_capacity(jobs.len());
        let mut rest = jobs;
        while !rest.is_empty() {
            let (page, after) = rest.split_at(self.jobs_of_one_push(rest));
            rest = after;
            match self.push(page, None).await {
                Ok(answers) => pushed.extend(answers),
                Err(error) => return Err((error, pushed.len())),
            }
        }
        Ok(pushed)
    }

    /// A handle on a job whose result is kept, which may be in any state or have ended
    /// (R29). This makes no call.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the backend keeps no results.
    fn job_handle(&self, job: &JobId) -> Result<JobHandle<'_>, Error> {
        let unsupported = || {
            let capabilities = self.capabilities();
            let words = capabilities.words_of(Capability::Results, "a kept result");
            capabilities.unsupported(Operation::ReadResults, words)
        };
        let queue = self.result_queue().ok_or_else(unsupported)?;
        Ok(JobHandle::new(queue, job.clone()))
    }

    /// Claims one job and ignores `ask.max`. Waits up to `ask.wait` when nothing is
    /// ready, and then returns `None`.
    ///
    /// # Errors
    /// The errors of [`ReliableQueue::claim`].
    async fn claim_one(&self, ask: &ClaimRequest) -> Result<Option<Delivery>, Error> {
        let ask = ask.clone().max(NonZeroU32::MIN);
        Ok(self.claim(&ask).await?.pop())
    }

    /// Applies `disposition` to the job of `receipt`.
    ///
    /// # Errors
    /// The errors of [`ReliableQueue::settle`].
    async fn settle_one(
        &self,
        receipt: &Receipt,
        disposition: Disposition,
    ) -> Result<Settled, Error> {
        let settlement = Settlement::new(receipt.clone(), disposition);
        let settled = self.settle(&[settlement]).await?;
        Ok(settled.into_iter().next().expect("settle answers for each settlement"))
    }

    /// Reports that the job succeeded, so that it is removed (R8).
    ///
    /// # Errors
    /// The errors of [`ReliableQueue::settle`].
    async fn ack(&self, receipt: &Receipt) -> Result<Settled, Error> {
        self.settle_one(receipt, Disposition::Done).await
    }

    /// Reports that the job failed and must be delivered again after `after`. If this
    /// was its last attempt, the job becomes a dead letter (R11). The first
    /// [`MAX_ERROR_BYTES`](crate::limits::MAX_ERROR_BYTES) of `error` are kept with the
    /// job.
    ///
    /// # Errors
    /// The errors of [`ReliableQueue::settle`].
    async fn retry(
        &self,
        receipt: &Receipt,
        after: Duration,
        error: &str,
    ) -> Result<Settled, Error> {
        let disposition = Disposition::Retry { after, error: error.to_owned() };
        self.settle_one(receipt, disposition).await
    }

    /// Reports that the job failed for good, so that it becomes a dead letter. The job
    /// keeps `error`, cut in the same way as by [`retry`](Self::retry).
    ///
    /// # Errors
    /// The errors of [`ReliableQueue::settle`].
    async fn bury(&self, receipt: &Receipt, error: &str) -> Result<Settled, Error> {
        self.settle_one(receipt, Disposition::Dead { error: error.to_owned() }).await
    }

    /// Removes the job, although it did not succeed.
    ///
    /// # Errors
    /// The errors of [`ReliableQueue::settle`].
    async fn discard(&self, receipt: &Receipt) -> Result<Settled, Error> {
        self.settle_one(receipt, Disposition::Discard).await
    }

    /// Postpones a job that cannot be run now: it must be delivered again after `after`.
    /// The delivery is not counted as an attempt, so the job is never buried for it, and
    /// its last error does not change (R26).
    ///
    /// # Errors
    /// The errors of [`ReliableQueue::settle`].
    async fn postpone(
        &self,
        receipt: &Receipt,
        after: Duration,
    ) -> Result<Settled, Error> {
        self.settle_one(receipt, Disposition::Postpone { after }).await
    }

    /// Returns a job that was not run to the front of the queue. The delivery is not
    /// counted as an attempt (R24).
    ///
    /// # Errors
    /// The errors of [`ReliableQueue::settle`].
    async fn give_back(&self, receipt: &Receipt) -> Result<Settled, Error> {
        self.settle_one(receipt, Disposition::GiveBack).await
    }
}

impl<Q: ReliableQueue + ?Sized> ReliableQueueExt for Q {}

#[cfg(test)]
mod tests {
    use std::{
        fmt,
        sync::{Arc, Mutex},
    };

    use super::*;
    use crate::{
        PushToken, WorkerId,
        capabilities::Capabilities,
        error::ErrorContext,
        operator::listed::{Listed, at_once},
        outcome::{Extended, Recovered, Released},
    };

    /// A call that a queue received.
    #[derive(Debug, PartialEq, Eq)]
    enum Call {
        Push(Vec<NewJob>),
        Claim(ClaimRequest),
        Settle(Vec<Settlement>),
    }

    /// A queue that records its calls. It takes at most two jobs a call, and fails a push
    /// of a job whose payload is "refused". All of its leases are lost. A job whose payload
    /// is a number belongs to that part; one whose payload is "apart" belongs to several.
    #[derive(Debug)]
    struct Recording {
        capabilities: Capabilities,
        calls: Mutex<Vec<Call>>,
    }

    impl Recording {
        fn new() -> Self {
            let mut capabilities = Listed::new(Vec::new()).capabilities;
            capabilities.limits.max_jobs_per_call = 2.try_into().unwrap();
            Self { capabilities, calls: Mutex::default() }
        }

        fn record(&self, call: Call) {
            self.calls.lock().unwrap().push(call);
        }

        fn calls(self) -> Vec<Call> {
            self.calls.into_inner().unwrap()
        }
    }

    impl fmt::Display for Recording {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a record of calls")
        }
    }

    #[async_trait]
    impl ReliableQueue for Recording {
        fn capabilities(&self) -> &Capabilities {
            &self.capabilities
        }

        async fn push(
            &self,
            jobs: &[NewJob],
            _: Option<&PushToken>,
        ) -> Result<Vec<Pushed>, Error> {
            self.record(Call::Push(jobs.to_vec()));
            if jobs.contains(&"refused".into()) {
                let at = ErrorContext { backend: "mine", operation: Operation::Push };
                return Err(Error::Unavailable { at, source: "down".into() });
            }
            let text = |job: &NewJob| String::from_utf8(job.payload.to_vec()).unwrap();
            Ok(jobs.iter().map(|job| Pushed::Stored(id(&text(job)))).collect())
        }

        fn part_of_job(&self, job: &NewJob) -> Result<Option<usize>, Error> {
            let text = String::from_utf8(job.payload.to_vec()).unwrap();
            if text == "apart" {
                let at = ErrorContext { backend: "mine", operation: Operation::Push };
                return Err(Error::Invalid { at, reason: text });
            }
            Ok(text.parse().ok())
        }

        async fn claim(&self, ask: &ClaimRequest) -> Result<Vec<Delivery>, Error> {
            self.record(Call::Claim(ask.clone()));
            Ok(vec![Delivery::new(receipt(), "payload", ask.lease)])
        }

        async fn settle(&self, done: &[Settlement]) -> Result<Vec<Settled>, Error> {
            self.record(Call::Settle(done.to_vec()));
            Ok(vec![Settled::LeaseLost; done.len()])
        }

        async fn extend(
            &self,
            _: &WorkerId,
            _: &[Receipt],
            _: Duration,
        ) -> Result<Vec<Extended>, Error> {
            unreachable!("no call under test extends a lease")
        }

        async fn release_worker(&self, _: &WorkerId) -> Result<Released, Error> {
            unreachable!("no call under test releases a worker")
        }

        async fn recover(&self, _: NonZeroU32) -> Result<Recovered, Error> {
            unreachable!("no call under test recovers jobs")
        }

        async fn open_another(&self) -> Result<Arc<dyn ReliableQueue>, Error> {
            unreachable!("no call under test opens a queue")
        }
    }

    const AFTER: Duration = Duration::from_secs(7);

    fn id(text: &str) -> JobId {
        JobId::new(text).unwrap()
    }

    fn receipt() -> Receipt {
        Receipt::new(id("job"), 3, "token")
    }

    #[test]
    fn each_settling_call_settles_its_job_by_one_disposition() {
        let (queue, receipt) = (Recording::new(), receipt());

        let settled = [
            at_once(queue.settle_one(&receipt, Disposition::Done)),
            at_once(queue.ack(&receipt)),
            at_once(queue.retry(&receipt, AFTER, "busy")),
            at_once(queue.bury(&receipt, "broken")),
            at_once(queue.discard(&receipt)),
            at_once(queue.postpone(&receipt, AFTER)),
            at_once(queue.give_back(&receipt)),
        ];

        assert_eq!(settled.map(Result::unwrap), [Settled::LeaseLost; 7]);
        let dispositions = [
            Disposition::Done,
            Disposition::Done,
            Disposition::Retry { after: AFTER, error: "busy".to_owned() },
            Disposition::Dead { error: "broken".to_owned() },
            Disposition::Discard,
            Disposition::Postpone { after: AFTER },
            Disposition::GiveBack,
        ];
        let settle = |disposition| {
            Call::Settle(vec![Settlement::new(receipt.clone(), disposition)])
        };
        assert_eq!(queue.calls(), dispositions.map(settle));
    }

    #[test]
    fn one_job_is_claimed_whatever_the_largest_number() {
        let queue = Recording::new();
        let worker = WorkerId::new("worker").unwrap();
        let one = ClaimRequest::new(worker, AFTER).wait(AFTER);
        let ask = one.clone().max(2.try_into().unwrap());

        let claimed = at_once(queue.claim_one(&ask)).unwrap();

        assert_eq!(claimed.unwrap().receipt, receipt());
        assert_eq!(queue.calls(), [Call::Claim(one)]);
    }

    #[test]
    fn one_job_is_pushed_by_one_call() {
        let queue = Recording::new();

        let pushed = at_once(queue.push_one("a".into())).unwrap();

        assert_eq!(pushed, Pushed::Stored(id("a")));
        assert_eq!(queue.calls(), [Call::Push(vec!["a".into()])]);
    }

    #[test]
    fn jobs_are_pushed_by_as_many_calls_as_the_limit_requires() {
        let queue = Recording::new();
        let jobs = ["a", "b", "c", "d", "e"];

        let pushed = at_once(queue.push_all(&jobs.map(NewJob::new))).unwrap();

        assert_eq!(pushed, jobs.map(|job| Pushed::Stored(id(job))));
        let calls = jobs.chunks(2).map(|page| page.iter().map(|job| NewJob::new(*job)));
        let calls: Vec<_> = calls.map(|page| Call::Push(page.collect())).collect();
        assert_eq!(queue.calls(), calls);
    }

    /// A loop that pushes so many jobs at a time ends only if the number is above 0.
    #[test]
    fn one_push_has_at_least_one_job_and_only_those_of_one_part() {
        let queue = Recording::new();
        for (payloads, expected) in [
            (&["a", "b", "c"][..], 2),
            (&["1", "1", "1"], 2),
            (&["1", "a"], 2),
            (&["1", "2"], 1),
            (&["a", "apart"], 1),
            (&["apart", "a"], 1),
            (&["apart"], 1),
            (&[], 0),
        ] {
            let jobs: Vec<_> = payloads.iter().map(|text| NewJob::new(*text)).collect();
            assert_eq!(queue.jobs_of_one_push(&jobs), expected, "{payloads:?}");
        }
    }

    #[test]
    fn a_push_that_fails_tells_how_many_jobs_are_stored() {
        let queue = Recording::new();
        let jobs = ["a", "b", "c", "refused", "e"].map(NewJob::new);

        let (error, stored) = at_once(queue.push_all(&jobs)).unwrap_err();

        assert!(matches!(error, Error::Unavailable { .. }), "{error}");
        assert_eq!(stored, 2);
        assert_eq!(queue.calls().len(), 2);
    }

    #[test]
    fn a_queue_without_results_has_no_handles_of_jobs() {
        let error = Recording::new().job_handle(&id("job")).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    }
}
