//! Back-off while the store fails. The log gets a line when the failures begin, one
//! every minute while they go on, and one when they end. All of these lines are
//! warnings, so that a log which shows the beginning of an outage also shows its end.

use std::{
    future::{Future, pending},
    pin::Pin,
    time::Duration,
};

use relq_core::{Error, environment::Environment};

use crate::retry::doubled;

/// The pause after the first failed call. Each further failure doubles the pause.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The longest pause. When the store is available again, a worker notices it after
/// this time at the latest.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Calls that fail are repeated within [`LONGEST_PAUSE`]. If the last refusal is longer ago
/// than this, no call was made meanwhile, so the store may have worked.
const REFUSALS_APART: Duration = LONGEST_PAUSE.saturating_mul(3);

/// While failures go on, the log gets one line in each period of this length.
const REMINDER: Duration = Duration::from_secs(60);

pub(crate) type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Counts the failures of one kind of call, and times the pauses after them.
pub(crate) struct Backoff {
    what: &'static str,
    environment: Environment,
    outage: Outage,
    /// The errors that only a person can repair. `None` if the last call did not return
    /// such an error.
    refusals: Option<Refusals>,
    pause: Option<Sleep>,
}

/// When the store began to return errors that only a person can repair, and when it
/// returned the last one.
#[derive(Clone, Copy)]
struct Refusals {
    began: Duration,
    last: Duration,
}

impl Refusals {
    /// Whether a refusal at `now` belongs to these.
    fn go_on(&self, now: Duration) -> bool {
        now.saturating_sub(self.last) < REFUSALS_APART
    }
}

impl Backoff {
    pub(crate) fn new(what: &'static str, environment: Environment) -> Self {
        let outage = Outage::default();
        Self { what, environment, outage, refusals: None, pause: None }
    }

    /// Called after a failed call. Returns whether the worker must give up. It gives up
    /// if only a person can repair the error and calls have failed in this way for
    /// `limit`. It gives up at once if the server is of the wrong kind.
    pub(crate) fn is_hopeless(&mut self, error: &Error, limit: Duration) -> bool {
        if !error.needs_help() {
            self.refusals = None;
            return false;
        }
        if matches!(error, Error::WrongServer { .. }) {
            return true;
        }
        let now = self.environment.clock().elapsed();
        let earlier = self.refusals.filter(|refusals| refusals.go_on(now));
        let began = earlier.map_or_else(
            || {
                let (what, error) = (self.what, error.full_message());
                tracing::warn!(error, "{what} is refused; giving up in {limit:?}");
                now
            },
            |refusals| refusals.began,
        );
        self.refusals = Some(Refusals { began, last: now });
        now.saturating_sub(began) >= limit
    }

    /// Called when a call succeeds although another call of the same kind has failed.
    /// The time limit for giving up starts again, but the current pause continues.
    pub(crate) fn works_in_part(&mut self) {
        self.refusals = None;
    }

    /// Called after a failed call. Begins a pause of a random length between half of
    /// the current maximum and all of it. Returns that length.
    pub(crate) fn failed(&mut self, error: &Error) -> Duration {
        let now = self.environment.clock().elapsed();
        let earlier_failures = self.outage.failures;
        let line = self.outage.failed(now, self.what);
        if let Some(line) = line.filter(|_| !error.needs_help()) {
            tracing::warn!(error = error.full_message(), "{line}");
        }
        let whole = doubled(FIRST_PAUSE, earlier_failures).min(LONGEST_PAUSE);
        let length = whole.mul_f64(0.5 + self.environment.random().fraction() / 2.0);
        self.pause = Some(self.environment.clock().sleep(length));
        length
    }

    /// Called after a successful call. Ends the outage and its pause.
    pub(crate) fn succeeded(&mut self) {
        self.works_in_part();
        let now = self.environment.clock().elapsed();
        if let Some(line) = self.outage.end(now, self.what) {
            tracing::warn!("{line}");
            self.pause = None;
        }
    }

    /// Whether an outage has begun and not ended: at least one call has failed.
    pub(crate) fn is_failing(&self) -> bool {
        self.outage.failures > 0
    }

    /// Whether the next call must wait for the end of a pause.
    pub(crate) fn is_pausing(&self) -> bool {
        self.pause.is_some()
    }

    /// Completes at the end of the pause. Never completes if there is no pause.
    pub(crate) async fn pause_over(&mut self) {
        match &mut self.pause {
            Some(pause) => pause.await,
            None => pending().await,
        }
        self.pause = None;
    }
}

/// Counts failures without a success between them. Times are readings of the steady
/// clock.
#[derive(Default)]
struct Outage {
    failures: u32,
    began: Duration,
    last_line: Duration,
}

impl Outage {
    /// Counts a failure. Returns a line for the log if one is due.
    fn failed(&mut self, now: Duration, what: &str) -> Option<String> {
        self.failures = self.failures.saturating_add(1);
        let line = if self.failures == 1 {
            self.began = now;
            format!("{what} fails; trying again until it works")
        } else if now.saturating_sub(self.last_line) >= REMINDER {
            format!("{what} still fails, for {} now", self.length(now))
        } else {
            return None;
        };
        self.last_line = now;
        Some(line)
    }

    /// Ends the outage. Returns the line for the log, or `None` if no call had failed.
    fn end(&mut self, now: Duration, what: &str) -> Option<String> {
        let failures = std::mem::take(&mut self.failures);
        let noun = if failures == 1 { "failure" } else { "failures" };
        let after = format!("after {failures} {noun} in {}", self.length(now));
        (failures > 0).then(|| format!("{what} works again {after}"))
    }

    /// Formats the time since the first failure, in whole seconds if it is at least
    /// one.
    fn length(&self, now: Duration) -> String {
        let length = now.saturating_sub(self.began);
        match length.as_secs() {
            0 => format!("{} ms", length.as_millis()),
            seconds => format!("{seconds} s"),
        }
    }
}

#[cfg(test)]
mod tests {
    use relq_core::error::{ErrorContext, Operation};

    use super::*;
    use crate::lease_clock::tests::SetClocks;

    fn denied() -> Error {
        let at = ErrorContext { backend: "zset", operation: Operation::Claim };
        Error::Denied { at, source: "refused".into() }
    }

    fn unavailable() -> Error {
        let at = ErrorContext { backend: "zset", operation: Operation::Claim };
        Error::Unavailable { at, source: "refused".into() }
    }

    #[test]
    fn log_tells_begin_reminders_and_end_of_an_outage() {
        let mut outage = Outage::default();
        let mut fails_at =
            |seconds| outage.failed(Duration::from_secs(seconds), "claiming");
        assert_eq!(fails_at(7).unwrap(), "claiming fails; trying again until it works");
        assert_eq!(fails_at(8), None);
        assert_eq!(fails_at(66), None);
        assert_eq!(fails_at(67).unwrap(), "claiming still fails, for 60 s now");
        assert_eq!(fails_at(126), None);
        assert_eq!(fails_at(127).unwrap(), "claiming still fails, for 120 s now");

        let end = Duration::from_secs(130);
        let line = outage.end(end, "claiming").unwrap();
        assert_eq!(line, "claiming works again after 6 failures in 123 s");
        assert_eq!(outage.end(end, "claiming"), None);
        assert!(outage.failed(end, "claiming").is_some());
        let line = outage.end(end, "claiming").unwrap();
        assert_eq!(line, "claiming works again after 1 failure in 0 ms");
    }

    #[test]
    fn an_error_that_needs_help_is_hopeless_after_a_while_without_a_break() {
        let mut backoff = Backoff::new("claiming", Environment::default());
        let limit = Duration::from_millis(1);

        assert!(!backoff.is_hopeless(&denied(), limit));
        std::thread::sleep(limit);
        assert!(!backoff.is_hopeless(&unavailable(), limit));
        assert!(!backoff.is_hopeless(&denied(), limit));
        std::thread::sleep(limit);
        assert!(backoff.is_hopeless(&denied(), limit));
    }

    /// R21: an idle worker sends no heartbeats, so nothing says that a refusal is over. One
    /// that comes much later begins the time to give up again.
    #[test]
    fn a_refusal_after_a_long_silence_begins_anew() {
        let clocks = SetClocks::default();
        let mut backoff = Backoff::new("the heartbeat", clocks.environment());
        let limit = LONGEST_PAUSE * 10;
        assert!(!backoff.is_hopeless(&denied(), limit));

        clocks.advance(limit, limit);

        assert!(!backoff.is_hopeless(&denied(), limit), "the worker gives up at once");
        for _ in 1..10 {
            clocks.advance(LONGEST_PAUSE, LONGEST_PAUSE);
            assert!(!backoff.is_hopeless(&denied(), limit), "the time is not over");
        }
        clocks.advance(LONGEST_PAUSE, LONGEST_PAUSE);
        assert!(backoff.is_hopeless(&denied(), limit), "the worker does not give up");
    }

    #[test]
    fn pauses_grow_to_their_limit_and_begin_small_again() {
        let mut backoff = Backoff::new("claiming", Environment::default());
        let pauses: Vec<_> = (0..50).map(|_| backoff.failed(&unavailable())).collect();
        assert!((FIRST_PAUSE / 2..=FIRST_PAUSE).contains(&pauses[0]));
        assert!((FIRST_PAUSE..=FIRST_PAUSE * 2).contains(&pauses[1]));
        assert!((LONGEST_PAUSE / 2..=LONGEST_PAUSE).contains(&pauses[49]));

        backoff.succeeded();
        assert!(!backoff.is_pausing());
        assert!(backoff.failed(&unavailable()) <= FIRST_PAUSE);
    }

    /// R21: the worker gives up when calls are refused for the stated time without a break.
    /// A call that works is such a break.
    #[test]
    fn a_success_starts_the_time_to_give_up_again() {
        let mut backoff = Backoff::new("claiming", Environment::default());
        let limit = Duration::from_millis(1);
        assert!(!backoff.is_hopeless(&denied(), limit));
        backoff.failed(&denied());
        assert!(backoff.is_failing(), "a call has failed");
        std::thread::sleep(limit);

        backoff.succeeded();

        assert!(!backoff.is_failing(), "the calls work again");
        assert!(!backoff.is_hopeless(&denied(), limit), "the worker gives up at once");
    }
}
