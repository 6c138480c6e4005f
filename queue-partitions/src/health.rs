//! Which parts can be reached. A part that fails four times in a row is left out for a
//! while, so that calls do not wait for its time limits while other parts work. A part
//! that failed less often, for example because its connection broke, is asked again at
//! once.
//!
//! ```text
//!  up -- four calls fail --> down, for 100 ms, then 200 ms, … at most 15 s
//!   ^                         |
//!   '---- a call succeeds ----'
//! ```
//!
//! A part that was silent until the time limit of a call is left out after that one call,
//! for at least twice as long as the call took. So a worker spends at most a third of its
//! time on waiting for it, until the limit of 15 s.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use relq_core::{Error, ReliableQueue, environment::Environment, error::Operation};

use crate::Partitioned;

/// How long a part is left out at first, and at most after many failures in a row.
const BACKOFF: (Duration, Duration) =
    (Duration::from_millis(100), Duration::from_secs(15));

/// How many calls in a row must fail before a part is left out.
const FAILURES: u32 = 4;

/// A part is silent if a call of it takes at least this long and then fails.
const SILENCE: Duration = Duration::from_secs(2);

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
    /// At least [`FAILURES`] calls in a row failed, or one after a [`SILENCE`].
    Down {
        /// When the part is asked again.
        until: Duration,
        backoff: Duration,
        /// Whether the last call that failed did so after a [`SILENCE`].
        is_silent: bool,
    },
}

impl Health {
    pub(crate) fn new(parts: usize, environment: Environment) -> Self {
        let parts = std::iter::repeat_with(Mutex::default).take(parts).collect();
        Self { environment, parts }
    }

    /// The time on the clock by which the parts are left out.
    pub(crate) fn now(&self) -> Duration {
        self.environment.clock().elapsed()
    }

    /// Whether calls go to the part, because it is not left out.
    pub(crate) fn is_up(&self, part: usize) -> bool {
        !matches!(*self.lock(part), State::Down { .. })
    }

    /// How long until a part that is left out is asked again. Zero if that time has come,
    /// and for a part that is up.
    pub(crate) fn left_out_for(&self, part: usize) -> Duration {
        let now = self.now();
        match *self.lock(part) {
            State::Down { until, .. } => until.saturating_sub(now),
            State::Up | State::Failing(_) => Duration::ZERO,
        }
    }

    /// How long until a part that was silent is asked again, if it is left out.
    pub(crate) fn silent_for(&self, part: usize) -> Duration {
        let state = *self.lock(part);
        match state {
            State::Down { is_silent: true, .. } => self.left_out_for(part),
            State::Down { .. } | State::Up | State::Failing(_) => Duration::ZERO,
        }
    }

    /// Whether a push may go to the part: it is up, or the time for which it is left out is
    /// over. Then this push alone finds out whether it is back, and for all others the part
    /// is left out for longer.
    pub(crate) fn takes_push(&self, part: usize) -> bool {
        let now = self.now();
        let mut state = self.lock(part);
        let State::Down { until, backoff, is_silent } = *state else { return true };
        if until > now {
            return false;
        }
        let backoff = (backoff * 2).min(BACKOFF.1);
        *state = State::Down { until: now.saturating_add(backoff), backoff, is_silent };
        true
    }

    /// Notes the result of a call of the part, which took so long. Returns whether the part
    /// may recover from its error without help, so that the other parts can go on without
    /// it.
    pub(crate) fn is_outage<T>(
        &self,
        part: usize,
        result: &Result<T, Error>,
        took: Duration,
    ) -> bool {
        match result {
            Err(error) if is_temporary(error) => {
                self.fail(part, error, took);
                true
            }
            _ => {
                *self.lock(part) = State::Up;
                false
            }
        }
    }

    fn fail(&self, part: usize, error: &Error, took: Duration) {
        let now = self.now();
        let is_silent = took >= SILENCE;
        let least = if is_silent { took.saturating_mul(2) } else { BACKOFF.0 };
        let mut state = self.lock(part);
        let backoff = match *state {
            State::Down { until, .. } if until > now => return,
            State::Down { backoff, .. } => least.max(backoff * 2),
            State::Up if !is_silent => return *state = State::Failing(1),
            State::Failing(times) if !is_silent && times + 1 < FAILURES => {
                return *state = State::Failing(times + 1);
            }
            State::Up | State::Failing(_) => least,
        };
        let backoff = backoff.min(BACKOFF.1);
        *state = State::Down { until: now.saturating_add(backoff), backoff, is_silent };
        let error = error.full_message();
        tracing::warn!(part, error, ?backoff, "a part of the queue is left out");
    }

    fn lock(&self, part: usize) -> MutexGuard<'_, State> {
        self.parts[part].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<Q: ReliableQueue + ?Sized> Partitioned<Q> {
    /// Notes the result of a call of a part. After an error the part may have connected
    /// again, so the check is made again before the next write (R25). Returns whether
    /// the other parts can go on without it.
    pub(crate) fn notice<T>(&self, part: usize, result: &Result<T, Error>) -> bool {
        self.notice_since(self.health.now(), part, result)
    }

    /// Like [`notice`](Self::notice), for a call that began at `began` and that takes long
    /// only if the part is silent.
    pub(crate) fn notice_since<T>(
        &self,
        began: Duration,
        part: usize,
        result: &Result<T, Error>,
    ) -> bool {
        if result.is_err() {
            self.write_check.set_due();
        }
        let took = self.health.now().saturating_sub(began);
        self.health.is_outage(part, result, took)
    }

    /// Refuses a call of a part that is not to be asked for the time that is `left`, while
    /// another part is up. Nothing is sent.
    pub(crate) fn check_not_left_out(
        &self,
        operation: Operation,
        part: usize,
        left: Duration,
    ) -> Result<(), Error> {
        let is_any_up = (0..self.parts.len()).any(|other| self.health.is_up(other));
        if left.is_zero() || !is_any_up {
            return Ok(());
        }
        let source = format!("part {part} failed, and is asked again in {left:?}");
        Err(Error::Unavailable { at: self.at(operation), source: source.into() })
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
    use std::{pin::Pin, sync::Arc};

    use relq_core::{
        environment::{Clock, Timestamp},
        error::{ErrorContext, Operation},
    };

    use super::*;

    /// A clock that stands still until a test moves it.
    #[derive(Debug, Clone, Default)]
    struct StoppedClock(Arc<Mutex<Duration>>);

    impl StoppedClock {
        fn advance(&self, duration: Duration) {
            *self.0.lock().unwrap() += duration;
        }
    }

    impl Clock for StoppedClock {
        fn now(&self) -> Timestamp {
            Timestamp::from_unix_ms(0).plus(self.elapsed())
        }

        fn elapsed(&self) -> Duration {
            *self.0.lock().unwrap()
        }

        fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(std::future::pending())
        }
    }

    /// The health of a part that is up, and its clock.
    fn up() -> (Health, StoppedClock) {
        let clock = StoppedClock::default();
        let environment = Environment::default().with_clock(Arc::new(clock.clone()));
        (Health::new(1, environment), clock)
    }

    /// The health of a part that has just been left out for the first time, and its clock.
    fn left_out() -> (Health, StoppedClock) {
        let (health, clock) = up();
        fail(&health, FAILURES);
        (health, clock)
    }

    fn fail(health: &Health, times: u32) {
        for _ in 0..times {
            fail_after(health, Duration::ZERO);
        }
    }

    fn fail_after(health: &Health, took: Duration) {
        assert!(health.is_outage(0, &outcome(false), took));
    }

    fn outcome(is_up: bool) -> Result<(), Error> {
        let at = ErrorContext { backend: "mine", operation: Operation::Claim };
        let error = Error::Unavailable { at, source: "no route".into() };
        if is_up { Ok(()) } else { Err(error) }
    }

    #[test]
    fn a_part_that_fails_often_is_left_out_until_it_succeeds() {
        let health = Health::new(2, Environment::default());

        for _ in 1..FAILURES {
            assert!(health.is_outage(1, &outcome(false), Duration::ZERO));
            assert!(health.is_up(1));
        }
        assert!(health.is_outage(1, &outcome(false), Duration::ZERO));
        assert!(!health.is_up(1) && health.is_up(0));
        assert!(health.left_out_for(1) > Duration::ZERO);
        assert!(!health.is_outage(1, &outcome(true), Duration::ZERO));
        assert!(health.is_up(1));
        assert_eq!(health.left_out_for(1), Duration::ZERO);
    }

    #[test]
    fn the_backoff_doubles_with_each_failed_probe_up_to_its_limit() {
        let (health, clock) = left_out();
        for expected_ms in
            [100, 200, 400, 800, 1600, 3200, 6400, 12800, 15000, 15000, 15000]
        {
            let left = health.left_out_for(0);
            assert_eq!(left, Duration::from_millis(expected_ms));

            clock.advance(left);
            assert_eq!(health.left_out_for(0), Duration::ZERO);
            assert!(!health.is_up(0));
            fail(&health, 1);
        }
    }

    /// A call of a silent node takes as long as its time limit. If it were asked again at
    /// once, a worker would do little more than wait for it.
    #[test]
    fn a_part_that_was_silent_once_is_left_out_for_twice_as_long() {
        let (health, clock) = up();
        fail_after(&health, SILENCE - Duration::from_millis(1));
        assert!(health.is_up(0), "a short call");

        for (took_ms, expected_ms) in [(2500, 5000), (2500, 10_000), (2500, 15_000)] {
            fail_after(&health, Duration::from_millis(took_ms));

            let left = health.left_out_for(0);
            assert_eq!(left, Duration::from_millis(expected_ms));
            clock.advance(left);
        }
        assert!(!health.is_outage(0, &outcome(true), SILENCE));
        assert!(health.is_up(0), "a call that succeeds late");
    }

    /// Calls that were under way when the part failed say no more than the first of them.
    #[test]
    fn failures_at_once_do_not_lengthen_the_backoff() {
        let (health, clock) = left_out();
        for expected_ms in [100, 200, 400] {
            fail(&health, 20);
            let left = health.left_out_for(0);
            assert_eq!(left, Duration::from_millis(expected_ms));

            clock.advance(left);
            fail(&health, 1);
        }
    }

    #[test]
    fn a_success_resets_the_backoff() {
        let (health, clock) = left_out();
        for _ in 0..3 {
            clock.advance(health.left_out_for(0));
            fail(&health, 1);
        }

        assert!(!health.is_outage(0, &outcome(true), Duration::ZERO));

        fail(&health, FAILURES);
        assert_eq!(health.left_out_for(0), Duration::from_millis(100));
    }

    /// Each push to a silent node waits for a time limit, so only one push at a time finds out
    /// whether the node is back.
    #[test]
    fn a_part_that_is_left_out_takes_one_push_at_a_time() {
        let (health, clock) = left_out();
        assert!(!health.takes_push(0));

        clock.advance(BACKOFF.0);

        assert_eq!([health.takes_push(0), health.takes_push(0)], [true, false]);
        assert_eq!(health.left_out_for(0), 2 * BACKOFF.0);
    }

    #[test]
    fn an_error_that_needs_a_person_is_no_outage() {
        let health = Health::new(1, Environment::default());
        let at = ErrorContext { backend: "mine", operation: Operation::Claim };
        let error = Error::Denied { at, source: "no right".into() };

        assert!(!health.is_outage::<()>(0, &Err(error), Duration::ZERO));
    }
}
