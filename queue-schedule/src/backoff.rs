//! Pauses between calls while the store fails. As for a worker, the log gets a line when
//! the failures begin, one every minute while they go on, and one when they end.

use std::time::Duration;

use relq_core::{Error, environment::Environment, error::RetryAdvice};

/// The longest pause after the first failure. It doubles with each further failure.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause. A store that works again gets the due ticks within this time.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// While failures go on, the log gets one line in each period of this length.
const REMINDER: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Backoff {
    environment: Environment,
    give_up_after: Duration,
    /// Whether any call has succeeded.
    has_worked: bool,
    failures: u32,
    /// When the first of the failures was.
    began: Duration,
    last_line: Duration,
    /// When the store began to return errors that only a person can repair. `None` if
    /// the last call did not return such an error.
    needs_help_since: Option<Duration>,
}

impl Backoff {
    pub(crate) fn new(environment: Environment, give_up_after: Duration) -> Self {
        Self {
            environment,
            give_up_after,
            has_worked: false,
            failures: 0,
            began: Duration::ZERO,
            last_line: Duration::ZERO,
            needs_help_since: None,
        }
    }

    /// Counts a failure, and logs it if a line is due. Returns how long to wait: a random
    /// time between half of the present maximum and all of it.
    ///
    /// # Errors
    /// The same error, if the scheduler must give up.
    pub(crate) fn failed(&mut self, error: Error) -> Result<Duration, Error> {
        if self.is_hopeless(&error) {
            // Log it now: the caller may see the error only later, because a worker beside
            // the scheduler goes on.
            tracing::error!(error = error.full_message(), "the scheduler ends");
            return Err(error);
        }
        self.log(&error);
        let whole = FIRST_PAUSE * 2_u32.pow(self.failures.min(10));
        self.failures = self.failures.saturating_add(1);
        let share = 0.5 + self.environment.random().fraction() / 2.0;
        Ok(whole.min(LONGEST_PAUSE).mul_f64(share))
    }

    /// Whether the scheduler must give up, by the rules of a worker. It gives up if only a
    /// person can repair the error and calls have failed in this way for `give_up_after`,
    /// and at once if no call has worked and a retry cannot help, or if the server is of
    /// the wrong kind.
    fn is_hopeless(&mut self, error: &Error) -> bool {
        if !error.needs_help() {
            self.needs_help_since = None;
            return false;
        }
        let is_tried_again =
            self.has_worked || error.retry_advice() != RetryAdvice::Never;
        if !is_tried_again || matches!(error, Error::WrongServer { .. }) {
            return true;
        }
        let (now, limit) = (self.now(), self.give_up_after);
        let since = *self.needs_help_since.get_or_insert_with(|| {
            let error = error.full_message();
            tracing::warn!(error, "scheduling is refused; giving up in {limit:?}");
            now
        });
        now.saturating_sub(since) >= limit
    }

    fn log(&mut self, error: &Error) {
        let now = self.now();
        let line = if self.failures == 0 {
            self.began = now;
            "scheduling fails; trying again until it works".to_owned()
        } else if now.saturating_sub(self.last_line) >= REMINDER {
            let length = now.saturating_sub(self.began).as_secs();
            format!("scheduling still fails, for {length} s now")
        } else {
            return;
        };
        self.last_line = now;
        if !error.needs_help() {
            tracing::warn!(error = error.full_message(), "{line}");
        }
    }

    /// Ends the failures, and logs that they are over.
    pub(crate) fn is_over(&mut self) {
        self.has_worked = true;
        self.needs_help_since = None;
        let failures = std::mem::take(&mut self.failures);
        if failures > 0 {
            tracing::warn!(failures, "scheduling works again");
        }
    }

    fn now(&self) -> Duration {
        self.environment.clock().elapsed()
    }
}

#[cfg(test)]
mod tests {
    use relq_core::error::{ErrorContext, Operation};

    use super::*;

    #[test]
    fn pauses_grow_to_their_limit_and_begin_small_again() {
        let at = ErrorContext { backend: "zset", operation: Operation::PushTick };
        let unavailable = || Error::Unavailable { at, source: "refused".into() };
        let mut backoff = Backoff::new(Environment::default(), Duration::ZERO);
        let mut pause = || backoff.failed(unavailable()).unwrap();
        let pauses: Vec<_> = (0..50).map(|_| pause()).collect();
        assert!((FIRST_PAUSE / 2..=FIRST_PAUSE).contains(&pauses[0]));
        assert!((FIRST_PAUSE..=FIRST_PAUSE * 2).contains(&pauses[1]));
        assert!((LONGEST_PAUSE / 2..=LONGEST_PAUSE).contains(&pauses[49]));

        backoff.is_over();
        assert!(backoff.failed(unavailable()).unwrap() <= FIRST_PAUSE);
    }
}
