//! Sends a push call, and repeats it until a reply arrives.

use std::{sync::Arc, time::Duration};

use relq::{
    Error, NewJob, PushToken, Queue, ReliableQueueExt as _,
    capabilities::{Capabilities, Capability},
    environment::Environment,
    error::{Effect, RetryAdvice},
    operator::JobView,
    outcome::Pushed,
};

use crate::interrupts::Interrupts;

/// How long a call without a reply is repeated. The store remembers the call's token
/// for five minutes, so a repetition within this time stores no job twice.
const PATIENCE: Duration = Duration::from_secs(30);

/// The pause before the first repetition. It doubles each time, up to `LONGEST_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Pushes jobs, each call with its own token, so that a call whose reply was lost can
/// be repeated (R4).
#[derive(Debug)]
pub(crate) struct Sender {
    queue: Arc<dyn Queue>,
    environment: Environment,
    interrupts: Interrupts,
}

/// The error of a push call that was not repeated any more. It says whether the jobs of
/// the call may be stored nevertheless.
#[derive(Debug)]
pub(crate) struct Unsent {
    pub(crate) error: Error,
    pub(crate) happened: Effect,
}

impl Sender {
    /// A sender that stops repeating its calls when a signal asks the program to stop.
    pub(crate) fn new(queue: Arc<dyn Queue>, interrupts: Interrupts) -> Self {
        Self { queue, environment: Environment::default(), interrupts }
    }

    /// The signals that ask the program to stop.
    pub(crate) fn interrupts(&self) -> &Interrupts {
        &self.interrupts
    }

    /// The options that the queue supports, and its limits.
    pub(crate) fn capabilities(&self) -> &Capabilities {
        self.queue.capabilities()
    }

    /// How many of `jobs`, counted from the first, one call of [`send`](Self::send) can
    /// have.
    pub(crate) fn jobs_of_one_call(&self, jobs: &[NewJob]) -> usize {
        self.queue.jobs_of_one_push(jobs)
    }

    /// Sorts jobs by the parts of the queue to which they belong, so that few calls push
    /// them. The jobs of each part keep their order.
    pub(crate) fn sort_by_part(&self, jobs: &mut [NewJob]) {
        jobs.sort_by_cached_key(|job| self.queue.part_of_job(job).ok().flatten());
    }

    /// Pushes jobs in one call. Repeats the call if the backend remembers push tokens.
    pub(crate) async fn send(&self, jobs: &[NewJob]) -> Result<Vec<Pushed>, Unsent> {
        let has_tokens = self.queue.capabilities().supports(Capability::PushTokens);
        let token = has_tokens.then(|| PushToken::random(self.environment.random()));
        self.until_answered(has_tokens, PATIENCE, async || {
            self.queue.push(jobs, token.as_ref()).await
        })
        .await
    }

    /// Restores jobs in one call (R34). Repeats the call, because the store knows the ids of
    /// the jobs that it has stored.
    ///
    /// # Panics
    /// If the backend restores no jobs.
    pub(crate) async fn restore(
        &self,
        jobs: &[JobView],
    ) -> Result<Vec<Pushed>, Unsent> {
        let restorer = self.queue.restore_queue();
        let restorer =
            restorer.expect("the caller asked whether the backend restores jobs");
        self.repeat(async || restorer.restore(jobs).await).await
    }

    /// Makes a call that is safe to repeat, and repeats it until a reply arrives.
    pub(crate) async fn repeat<T>(
        &self,
        call: impl AsyncFnMut() -> Result<T, Error>,
    ) -> Result<T, Unsent> {
        self.repeat_for(PATIENCE, call).await
    }

    /// Makes a call that is safe to repeat, and repeats it until a reply arrives, but for
    /// `patience` at most.
    pub(crate) async fn repeat_for<T>(
        &self,
        patience: Duration,
        call: impl AsyncFnMut() -> Result<T, Error>,
    ) -> Result<T, Unsent> {
        self.until_answered(true, patience.min(PATIENCE), call).await
    }

    async fn until_answered<T>(
        &self,
        may_be_repeated: bool,
        patience: Duration,
        mut call: impl AsyncFnMut() -> Result<T, Error>,
    ) -> Result<T, Unsent> {
        let clock = self.environment.clock();
        let give_up = clock.elapsed() + patience;
        let mut happened = Effect::No;
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match call().await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            if happened == Effect::No {
                happened = error.effect();
            }
            let is_over = clock.elapsed() >= give_up || self.interrupts.any();
            if is_over || !may_repeat(&error, may_be_repeated) {
                return Err(Unsent { error, happened });
            }
            tracing::warn!("{}; trying again", error.full_message());
            self.pause(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Sleeps for a random time between half of `longest` and `longest`. Returns
    /// earlier if a signal asks the program to stop.
    async fn pause(&self, longest: Duration) {
        let share = 0.5 + self.environment.random().fraction() / 2.0;
        let sleep = self.environment.clock().sleep(longest.mul_f64(share));
        tokio::select! {
            () = sleep => {}
            () = self.interrupts.first() => {}
        }
    }
}

fn may_repeat(error: &Error, may_be_repeated: bool) -> bool {
    match error.retry_advice() {
        RetryAdvice::Never => false,
        RetryAdvice::Safe => true,
        RetryAdvice::MayRepeat => may_be_repeated,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use relq::{
        error::{ErrorContext, Operation},
        limits::DEDUPLICATION_WINDOW,
    };
    use relq_conformance::{
        async_trait,
        overrides::{Override, Right},
    };

    use super::*;
    use crate::sample_queues::{healthy_queue, overridden_queue};

    fn at() -> ErrorContext {
        ErrorContext { backend: "mine", operation: Operation::Push }
    }

    /// A call that is repeated at the end of the time still finds its token in the store (R4).
    #[test]
    fn a_call_is_not_repeated_for_longer_than_its_token_is_remembered() {
        const LONGEST_CALL: Duration = Duration::from_secs(60);
        const { assert!(2 * PATIENCE.as_secs() + LONGEST_CALL.as_secs() < 300) }
        assert_eq!(DEDUPLICATION_WINDOW, Duration::from_secs(300));
    }

    /// R21: a call whose first reply was lost may have taken effect, whatever the next tries
    /// answered.
    #[tokio::test]
    async fn a_lost_reply_is_not_forgotten_when_the_next_try_is_refused() {
        let source = || "the test says so".into();
        let sender = Sender::new(healthy_queue().await, Interrupts::default());
        let mut calls = 0;

        let unsent = sender
            .repeat_for(FIRST_PAUSE / 4, async || -> Result<(), Error> {
                calls += 1;
                Err(match calls {
                    1 => Error::Interrupted { at: at(), source: source() },
                    _ => Error::Unavailable { at: at(), source: source() },
                })
            })
            .await
            .expect_err("no try succeeds");

        assert!(calls > 1, "the call is repeated");
        assert_eq!(unsent.error.effect(), Effect::No);
        assert_eq!(unsent.happened, Effect::Maybe);
    }

    /// Carries out each push, and loses the reply to the first one.
    struct LosesFirstReply {
        capabilities: Capabilities,
        has_lost: AtomicBool,
    }

    impl LosesFirstReply {
        /// A queue that has the options of the healthy one but these.
        async fn without(missing: &[Capability]) -> Arc<dyn Queue> {
            let queue = healthy_queue().await;
            let mut capabilities = queue.capabilities().clone();
            capabilities.supported.to_mut().retain(|it| !missing.contains(it));
            let overrides = Self { capabilities, has_lost: AtomicBool::default() };
            overridden_queue(Arc::new(overrides)).await
        }
    }

    #[async_trait]
    impl Override for LosesFirstReply {
        fn capabilities<'a>(&'a self, _: &'a Right) -> &'a Capabilities {
            &self.capabilities
        }

        async fn push(
            &self,
            right: &Right,
            jobs: &[NewJob],
            token: Option<&PushToken>,
        ) -> Result<Vec<Pushed>, Error> {
            let pushed = right.push(jobs, token).await?;
            if self.has_lost.swap(true, Ordering::Relaxed) {
                return Ok(pushed);
            }
            Err(Error::Interrupted { at: at(), source: "the test says so".into() })
        }
    }

    /// R4: a push whose reply was lost is repeated with the same token, so that its jobs are
    /// stored once.
    #[tokio::test]
    async fn a_push_without_a_reply_is_repeated_and_stored_once() {
        let queue = LosesFirstReply::without(&[]).await;
        let sender = Sender::new(Arc::clone(&queue), Interrupts::default());

        let pushed =
            sender.send(&["a".into()]).await.expect("the second try has a reply");

        assert_eq!(pushed.len(), 1);
        assert_eq!(queue.stats().await.expect("it is healthy").ready, 1);
    }

    /// R4: a backend that remembers no tokens would store the jobs of a repeated push twice.
    #[tokio::test]
    async fn a_push_without_a_token_is_not_repeated() {
        let queue = LosesFirstReply::without(&[Capability::PushTokens]).await;
        let sender = Sender::new(Arc::clone(&queue), Interrupts::default());

        let unsent = sender.send(&["a".into()]).await.expect_err("it has no reply");

        assert_eq!(unsent.happened, Effect::Maybe, "its jobs may be stored");
        let ready = queue.stats().await.expect("it is healthy").ready;
        assert_eq!(ready, 1, "the jobs are stored once");
    }
}
