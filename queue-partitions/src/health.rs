//! Which parts can be reached. A part that fails four times in a row is left out for a
//! while, so that claims do not wait for its time limits while other parts have jobs. A
//! part that failed less often, for example because its connection broke, is asked again
//! at once.
//!
//! ```text
//!  up -- four calls fail --> down, for 100 ms, then 200 ms, … at most 15 s
//!   ^                         |
//!   '---- a call succeeds ----'
//! ```

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use relq_core::{Error, environment::Environment};

/// How long a part is left out at first, and at most after many failures in a row.
const BACKOFF: (Duration, Duration) =
    (Duration::from_millis(100), Duration::from_secs(15));

/// How many calls in a row must fail before a part is left out.
const FAILURES: u32 = 4;

/// The health of all parts, by the steady clock of this process.
#[derive(Debug)]
pub(crate) struct Health {
    environment: Environment,
    parts: Vec<Mutex<State>>,
}

/// The state of a part, as its last calls show it.
#[derive(Debug, Clone, Copy, Default)]
enum State {
    /// The last call succeeded.
    #[default]
    Up,
    /// The number of calls that failed since the last one that succeeded. It is below
    /// [`FAILURES`].
    Failing(u32),
    /// At least [`FAILURES`] calls in a row failed.
    Down {
        /// When the part is asked again.
        until: Duration,
        backoff: Duration,
    },
}

impl Health {
    pub(crate) fn new(parts: usize, environment: Environment) -> Self {
        let parts = std::iter::repeat_with(Mutex::default).take(parts).collect();
        Self { environment, parts }
    }

    /// Whether calls go to the part, because it is not left out.
    pub(crate) fn is_up(&self, part: usize) -> bool {
        !matches!(*self.lock(part), State::Down { .. })
    }

    /// How long until a part that is left out is asked again. Zero if that time has come,
    /// and for a part that is up.
    pub(crate) fn left_out_for(&self, part: usize) -> Duration {
        let now = self.environment.clock().elapsed();
        match *self.lock(part) {
            State::Down { until, .. } => until.saturating_sub(now),
            State::Up | State::Failing(_) => Duration::ZERO,
        }
    }

    /// Notes the result of a call of the part. Returns whether the part may recover from
    /// its error without help, so that the other parts can go on without it.
    pub(crate) fn is_outage<T>(&self, part: usize, result: &Result<T, Error>) -> bool {
        match result {
            Err(error) if is_temporary(error) => {
                self.fail(part, error);
                true
            }
            _ => {
                *self.lock(part) = State::Up;
                false
            }
        }
    }

    fn fail(&self, part: usize, error: &Error) {
        let now = self.environment.clock().elapsed();
        let mut state = self.lock(part);
        let backoff = match *state {
            State::Up => return *state = State::Failing(1),
            State::Failing(times) if times + 1 < FAILURES => {
                return *state = State::Failing(times + 1);
            }
            State::Failing(_) => BACKOFF.0,
            State::Down { until, .. } if until > now => return,
            State::Down { backoff, .. } => (backoff * 2).min(BACKOFF.1),
        };
        *state = State::Down { until: now.saturating_add(backoff), backoff };
        let error = error.full_message();
        tracing::warn!(part, error, ?backoff, "a part of the queue is left out");
    }

    fn lock(&self, part: usize) -> MutexGuard<'_, State> {
        self.parts[part].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the store may recover from the error by itself. Other errors need a person,
/// or a call with other arguments.
pub(crate) fn is_temporary(error: &Error) -> bool {
    use Error::{Full, Interrupted, ReadOnly, Unavailable, Unreadable};
    matches!(
        error,
        Unavailable { .. }
            | Interrupted { .. }
            | Unreadable { .. }
            | ReadOnly { .. }
            | Full { .. }
    )
}

#[cfg(test)]
mod tests {
    use relq_core::error::{ErrorContext, Operation};

    use super::*;

    fn outcome(is_up: bool) -> Result<(), Error> {
        let at = ErrorContext { backend: "mine", operation: Operation::Claim };
        let error = Error::Unavailable { at, source: "no route".into() };
        if is_up { Ok(()) } else { Err(error) }
    }

    #[test]
    fn a_part_that_fails_often_is_left_out_until_it_succeeds() {
        let health = Health::new(2, Environment::default());

        for _ in 1..FAILURES {
            assert!(health.is_outage(1, &outcome(false)));
            assert!(health.is_up(1));
        }
        assert!(health.is_outage(1, &outcome(false)));
        assert!(!health.is_up(1) && health.is_up(0));
        assert!(health.left_out_for(1) > Duration::ZERO);
        assert!(!health.is_outage(1, &outcome(true)));
        assert!(health.is_up(1));
        assert_eq!(health.left_out_for(1), Duration::ZERO);
    }

    #[test]
    fn an_error_that_needs_a_person_is_no_outage() {
        let health = Health::new(1, Environment::default());
        let at = ErrorContext { backend: "mine", operation: Operation::Claim };
        let error = Error::Denied { at, source: "no right".into() };

        assert!(!health.is_outage::<()>(0, &Err(error)));
    }
}
