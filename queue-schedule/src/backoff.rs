//! Pauses between calls while the store fails.

use std::time::Duration;

use relq_core::{Error, environment::Environment};

/// The longest pause after the first failure. It doubles with each further failure.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause. A store that works again gets the due ticks within this time.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Backoff {
    environment: Environment,
    failures: u32,
}

impl Backoff {
    pub(crate) fn new(environment: Environment) -> Self {
        Self { environment, failures: 0 }
    }

    /// Counts a failure, and logs the first one. Returns how long to wait: a random time
    /// between half of the present maximum and all of it.
    pub(crate) fn failed(&mut self, error: &Error) -> Duration {
        if self.failures == 0 {
            let error = error.full_message();
            tracing::warn!(error, "scheduling fails; trying again until it works");
        }
        let whole = FIRST_PAUSE * 2_u32.pow(self.failures.min(10));
        self.failures = self.failures.saturating_add(1);
        let share = 0.5 + self.environment.random().fraction() / 2.0;
        whole.min(LONGEST_PAUSE).mul_f64(share)
    }

    /// Ends the failures, and logs that they are over.
    pub(crate) fn is_over(&mut self) {
        let failures = std::mem::take(&mut self.failures);
        if failures > 0 {
            tracing::warn!(failures, "scheduling works again");
        }
    }
}

#[cfg(test)]
mod tests {
    use relq_core::error::{ErrorContext, Operation};

    use super::*;

    #[test]
    fn pauses_grow_to_their_limit_and_begin_small_again() {
        let at = ErrorContext { backend: "zset", operation: Operation::PushTick };
        let error = Error::Unavailable { at, source: "refused".into() };
        let mut backoff = Backoff::new(Environment::default());
        let pauses: Vec<_> = (0..50).map(|_| backoff.failed(&error)).collect();
        assert!((FIRST_PAUSE / 2..=FIRST_PAUSE).contains(&pauses[0]));
        assert!((FIRST_PAUSE..=FIRST_PAUSE * 2).contains(&pauses[1]));
        assert!((LONGEST_PAUSE / 2..=LONGEST_PAUSE).contains(&pauses[49]));

        backoff.is_over();
        assert!(backoff.failed(&error) <= FIRST_PAUSE);
    }
}
