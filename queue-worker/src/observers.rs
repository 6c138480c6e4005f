//! Tells the events of a worker to its observers, and counts its jobs.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use relq_core::{
    Error,
    environment::Environment,
    error::Operation,
    outcome::{Recovered, Released},
};

use crate::{
    JobContext, Progress,
    observer::{
        Buried, CallFailed, Claimed, Ended, JobOutcome, LeaseLost, Observer,
        SpanOpened, Started,
    },
    state::Contact,
};

/// The observers of a worker, and its counts. Clones share both.
///
/// Most workers have no observer. Then an event costs one check, and no clock is read.
#[derive(Clone, Default)]
pub(crate) struct Observers {
    pub(crate) progress: Progress,
    observers: Vec<Arc<dyn Observer>>,
    /// Of the queue that these observers are told about.
    contact: Arc<Contact>,
}

/// Ends the measurement of an attempt when the attempt's future ends or is dropped.
pub(crate) struct RunningAttempt<'a> {
    job: &'a JobContext,
    environment: &'a Environment,
}

impl Observers {
    pub(crate) fn add(&mut self, observer: impl Observer) {
        self.observers.push(Arc::new(observer));
    }

    /// Adds the observers of one queue. The counts stay those of the whole worker.
    pub(crate) fn with(mut self, of_queue: Self) -> Self {
        self.observers.extend(of_queue.observers);
        self
    }

    /// The same observers, for one queue that the worker begins to serve.
    pub(crate) fn of_new_queue(&self) -> Self {
        Self { contact: Arc::new(self.progress.contact()), ..self.clone() }
    }

    /// Reports that a claim that was sent at `sent` returned these jobs at `now`.
    pub(crate) fn claimed<'a>(
        &self,
        claimed: impl Iterator<Item = &'a JobContext>,
        sent: Duration,
        now: Duration,
    ) {
        self.contact.is_made();
        if self.observers.is_empty() {
            return;
        }
        let mut jobs = 0;
        for job in claimed {
            job.timing().claimed_at(now);
            jobs += 1;
        }
        if jobs > 0 {
            let took = now.saturating_sub(sent);
            self.tell(|observer| observer.claimed(&Claimed { jobs, took }));
        }
    }

    /// Tells that the span of an attempt was created.
    pub(crate) fn span_opened(&self, job: &JobContext, span: &tracing::Span) {
        if !span.is_disabled() {
            self.tell(|observer| observer.span_opened(&SpanOpened { job, span }));
        }
    }

    /// Tells that an attempt starts. The caller drops the returned value when the attempt
    /// ends.
    pub(crate) fn started<'a>(
        &self,
        job: &'a JobContext,
        environment: &'a Environment,
    ) -> Option<RunningAttempt<'a>> {
        if self.observers.is_empty() {
            return None;
        }
        let waited = job.timing().started_at(environment.clock().elapsed());
        let since_push =
            job.enqueued_at().map(|at| environment.clock().now().since(at));
        self.tell(|observer| observer.started(&Started { job, waited, since_push }));
        Some(RunningAttempt { job, environment })
    }

    /// Counts a job whose result is known, and tells it.
    pub(crate) fn ended(&self, job: &JobContext, outcome: JobOutcome<'_>) {
        self.progress.ended(outcome);
        let ran = job.timing().ran();
        self.tell(|observer| observer.ended(&Ended { job, outcome, ran }));
        if let JobOutcome::Buried { error } = outcome {
            self.tell(|observer| observer.buried(&Buried { job, error }));
        }
    }

    pub(crate) fn lease_lost(&self, job: &JobContext) {
        self.tell(|observer| observer.lease_lost(&LeaseLost { job }));
    }

    /// Tells a recovery, unless it found nothing.
    pub(crate) fn recovered(&self, recovered: &Recovered) {
        self.contact.is_made();
        let Recovered { requeued, buried, promoted, .. } = *recovered;
        if requeued > 0 || buried > 0 || promoted > 0 {
            self.tell(|observer| observer.recovered(recovered));
        }
    }

    /// Counts the jobs that the release of the worker gave back, and tells them.
    pub(crate) fn released(&self, released: &Released) {
        self.progress.released(released.jobs);
        self.tell(|observer| observer.released(released));
    }

    pub(crate) fn call_failed(&self, operation: Operation, error: &Error) {
        if matches!(operation, Operation::Claim | Operation::Recover) {
            self.contact.is_lost();
        }
        tracing::debug!(%operation, error = error.full_message(), "a call failed");
        self.tell(|observer| observer.call_failed(&CallFailed { operation, error }));
    }

    /// Calls each observer. A panic must not end the claim loop or the heartbeat, because
    /// the jobs that the worker holds would run again.
    fn tell(&self, event: impl Fn(&dyn Observer)) {
        for observer in &self.observers {
            if catch_unwind(AssertUnwindSafe(|| event(&**observer))).is_err() {
                tracing::error!("an observer panicked; the worker continues");
            }
        }
    }
}

impl Drop for RunningAttempt<'_> {
    fn drop(&mut self) {
        self.job.timing().ended_at(self.environment.clock().elapsed());
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        iter::{empty, once},
        sync::Mutex,
    };

    use relq_core::{Delivery, JobId, Receipt, error::ErrorContext};
    use tracing::Level;

    use super::*;
    use crate::WorkerState;

    /// An observer that records the names of the events that a call of the store causes.
    #[derive(Clone, Default)]
    struct Told(Arc<Mutex<Vec<&'static str>>>);

    impl Observer for Told {
        fn claimed(&self, _: &Claimed) {
            self.0.lock().unwrap().push("claimed");
        }

        fn recovered(&self, _: &Recovered) {
            self.0.lock().unwrap().push("recovered");
        }
    }

    fn observed() -> (Observers, Told) {
        let (mut observers, told) = (Observers::default(), Told::default());
        observers.add(told.clone());
        (observers, told)
    }

    fn job() -> JobContext {
        let receipt = Receipt::new(JobId::new("job").unwrap(), 1, "token");
        JobContext::new(Delivery::new(receipt, "", Duration::from_secs(30)))
    }

    /// A prefetched job waits for a slot. Its observers are told for how long.
    #[test]
    fn a_job_waits_from_the_reply_to_its_claim() {
        let (observers, _) = observed();
        let job = job();
        let [sent, replied, started] = [1, 2, 5].map(Duration::from_secs);

        observers.claimed(once(&job), sent, replied);

        assert_eq!(job.timing().started_at(started), started - replied);
    }

    /// An idle worker claims and recovers again and again. Only a call that found a job is
    /// an event.
    #[test]
    fn calls_that_found_nothing_are_not_told() {
        let (observers, told) = observed();
        let now = Duration::ZERO;

        observers.claimed(empty(), now, now);
        observers.recovered(&Recovered { more: true, ..Recovered::default() });
        assert!(told.0.lock().unwrap().is_empty());
        observers.claimed(once(&job()), now, now);
        observers.recovered(&Recovered { requeued: 1, ..Recovered::default() });
        observers.recovered(&Recovered { buried: 1, ..Recovered::default() });
        observers.recovered(&Recovered { promoted: 1, ..Recovered::default() });

        let expected = ["claimed", "recovered", "recovered", "recovered"];
        assert_eq!(*told.0.lock().unwrap(), expected);
    }

    /// An observer that records how long a claim took.
    #[derive(Clone, Default)]
    struct Took(Arc<Mutex<Option<Duration>>>);

    impl Observer for Took {
        fn claimed(&self, claimed: &Claimed) {
            *self.0.lock().unwrap() = Some(claimed.took);
        }
    }

    #[test]
    fn a_claim_takes_from_its_sending_to_its_reply() {
        let (mut observers, took) = (Observers::default(), Took::default());
        observers.add(took.clone());
        let [sent, replied] = [3, 5].map(Duration::from_secs);

        observers.claimed(once(&job()), sent, replied);

        let took = *took.0.lock().unwrap();
        assert_eq!(took, Some(replied - sent), "how long the claim took");
    }

    /// A claim or a recovery that works shows that the store is reached, also if the worker
    /// has no observer and the call found nothing.
    #[test]
    fn claims_and_recoveries_show_whether_the_store_is_reached() {
        let observers = Observers::default();
        let _end = observers.progress.begin(1);
        let observers = observers.of_new_queue();
        let now = Duration::ZERO;
        let lost = || {
            let at = ErrorContext { backend: "test", operation: Operation::Claim };
            let error = Error::Unavailable { at, source: "away".into() };
            observers.call_failed(Operation::Claim, &error);
            observers.progress.state()
        };
        assert_eq!(observers.progress.state(), WorkerState::Starting);

        observers.claimed(empty(), now, now);
        assert_eq!(observers.progress.state(), WorkerState::Running, "a claim");
        assert_eq!(lost(), WorkerState::Disconnected);
        observers.recovered(&Recovered::default());

        assert_eq!(observers.progress.state(), WorkerState::Running, "a recovery");
    }

    /// The lines of a log.
    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(line)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// An outage has one line a minute. The level debug has all of its calls.
    #[test]
    fn each_call_that_fails_is_logged_for_those_who_ask() {
        let lines = Lines::default();
        let writer = lines.clone();
        let log = tracing_subscriber::fmt().with_max_level(Level::DEBUG);
        let log = log.with_ansi(false).with_writer(move || writer.clone()).finish();
        let at = ErrorContext { backend: "test", operation: Operation::Settle };
        let error = Error::Unavailable { at, source: "no route".into() };

        tracing::subscriber::with_default(log, || {
            Observers::default().call_failed(Operation::Settle, &error);
            Observers::default().call_failed(Operation::Settle, &error);
        });

        let log = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        assert_eq!(log.lines().count(), 2, "{log}");
        for words in ["a call failed", "operation=settle", "no route"] {
            assert_eq!(log.matches(words).count(), 2, "{words}: {log}");
        }
    }

    /// R24: the summary of a worker also counts the jobs that its release gave back.
    #[test]
    fn jobs_that_the_release_gave_back_are_counted() {
        let observers = Observers::default();

        observers.released(&Released { jobs: 3 });

        assert_eq!(observers.progress.summary().given_back, 3, "given back");
    }
}
