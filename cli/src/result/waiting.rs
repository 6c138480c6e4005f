//! Waits for the ends of jobs, and outlives short outages of the store.

use std::time::{Duration, Instant};

use relq::{
    JobId,
    results::{JobResult, ResultQueue},
};

use crate::{
    exit_codes::LEFT,
    failure::{CommandResult, Failure},
    push::Sender,
    wait_limit::within,
};

/// How long one call waits at most. A call that fails is repeated for half a minute from
/// its start, or until the wait is over, so it must be shorter than that.
const LONGEST_CALL: Duration = Duration::from_secs(10);

/// A wait for jobs, all until the same time.
#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    results: &'a dyn ResultQueue,
    sender: &'a Sender,
    deadline: Option<Instant>,
}

impl<'a> Waiting<'a> {
    /// Begins a wait for `timeout`, or without a limit.
    pub(crate) fn new(
        results: &'a dyn ResultQueue,
        sender: &'a Sender,
        timeout: Option<Duration>,
    ) -> Self {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        Self { results, sender, deadline }
    }

    /// How long the wait lasts from now on; `None` without a limit.
    fn left(&self) -> Option<Duration> {
        let now = Instant::now();
        self.deadline.map(|deadline| deadline.saturating_duration_since(now))
    }

    /// Waits until the job has ended or the time is over, and returns what became of it so
    /// far. Fails at a signal to stop, and if the store does not reply in time.
    pub(crate) async fn until_ended(
        &self,
        id: &JobId,
    ) -> CommandResult<Option<JobResult>> {
        loop {
            let left = self.left();
            let call =
                self.sender.repeat_for(left.unwrap_or(Duration::MAX), async || {
                    let wait =
                        self.left().map_or(LONGEST_CALL, |left| left.min(LONGEST_CALL));
                    self.results.wait_result(id, wait).await
                });
            let found = tokio::select! {
                found = within(left, call) => found?.map_err(|unsent| unsent.error)?,
                () = self.sender.interrupts().first() => return Err(stopped(id)),
            };
            let has_ended = found.as_ref().is_none_or(JobResult::has_ended);
            if has_ended || left.is_some_and(|left| left.is_zero()) {
                return Ok(found);
            }
        }
    }
}

fn stopped(id: &JobId) -> Failure {
    let message = format!(
        "the wait was stopped by a signal, and the job {id} has not ended; `relq result \
         {id}` reads its result later"
    );
    Failure::Unfinished { code: LEFT, message }
}

#[cfg(test)]
mod tests {
    use std::{
        future::pending,
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering},
        },
    };

    use relq::Error;
    use relq_conformance::{
        async_trait,
        overrides::{Override, Right},
    };

    use super::*;
    use crate::{interrupts::Interrupts, sample_queues::overridden_queue};

    /// A job that runs for longer than one call waits: it has ended at the second call.
    #[derive(Default)]
    struct EndsLater(AtomicBool);

    #[async_trait]
    impl Override for EndsLater {
        async fn wait_result(
            &self,
            _: &Right,
            _: &JobId,
            _: Duration,
        ) -> Result<Option<JobResult>, Error> {
            let has_ended = self.0.swap(true, Ordering::Relaxed);
            Ok(Some(match has_ended {
                true => JobResult::Done { result: "x".into() },
                false => JobResult::Unfinished { progress: None },
            }))
        }
    }

    /// A store that never replies, as one on a machine that hangs.
    struct Silent;

    #[async_trait]
    impl Override for Silent {
        async fn wait_result(
            &self,
            _: &Right,
            _: &JobId,
            _: Duration,
        ) -> Result<Option<JobResult>, Error> {
            pending().await
        }
    }

    /// Waits for a job on a queue with these overrides.
    async fn wait(
        overrides: impl Override + 'static,
        timeout: Option<Duration>,
    ) -> CommandResult<Option<JobResult>> {
        let queue = overridden_queue(Arc::new(overrides)).await;
        let sender = Sender::new(Arc::clone(&queue), Interrupts::default());
        let results = queue.result_queue().expect("the backend keeps results");
        let id = JobId::new("a").expect("it is an id");
        Waiting::new(results, &sender, timeout).until_ended(&id).await
    }

    /// A wait without a limit has no last call.
    #[tokio::test]
    async fn a_wait_without_a_limit_outlasts_its_calls() {
        let found = wait(EndsLater::default(), None).await;

        let done = JobResult::Done { result: "x".into() };
        assert_eq!(found.expect("each call has a reply"), Some(done));
    }

    /// The time limits of a connection are longer than a wait may be, so they do not end it.
    #[tokio::test]
    async fn a_wait_ends_although_the_store_does_not_reply() {
        let wait = wait(Silent, Some(Duration::from_millis(10)));

        let found = tokio::time::timeout(Duration::from_secs(60), wait).await;

        let failed = found.expect("the wait ends").expect_err("it has no reply");
        assert!(matches!(failed, Failure::Failed(_)), "{failed:?}");
    }
}
