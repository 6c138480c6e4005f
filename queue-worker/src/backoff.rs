//! Backoff while the store fails. The log gets one line when the failures begin and one
//! when they end.

use std::{
    future::{Future, pending},
    pin::Pin,
    time::Duration,
};

use relq_core::{Error, environment::Environment};

use crate::retry::doubled;

/// The pause after the first failure; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The longest pause: how late a worker notices that the store is back.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

pub(crate) type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The failures of one kind of call.
pub(crate) struct Backoff {
    what: &'static str,
    environment: Environment,
    failures: u32,
    /// When the failures that only a person can repair began.
    needs_help_since: Option<Duration>,
    pause: Option<Sleep>,
}

impl Backoff {
    pub(crate) fn new(what: &'static str, environment: Environment) -> Self {
        Self { what, environment, failures: 0, needs_help_since: None, pause: None }
    }

    /// A call failed. Returns whether to give up: when only a person can repair the
    /// cause and `limit` has passed, or when the server is the wrong one.
    pub(crate) fn is_hopeless(&mut self, error: &Error, limit: Duration) -> bool {
        if !error.needs_help() {
            self.needs_help_since = None;
            return false;
        }
        if matches!(error, Error::WrongServer { .. }) {
            return true;
        }
        let now = self.environment.clock().elapsed();
        let since = *self.needs_help_since.get_or_insert_with(|| {
            let (what, error) = (self.what, error.full_message());
            tracing::warn!(error, "{what} is refused; giving up in {limit:?}");
            now
        });
        now.saturating_sub(since) >= limit
    }

    /// A call succeeded, but other calls of its kind may have failed.
    pub(crate) fn works_in_part(&mut self) {
        self.needs_help_since = None;
    }

    /// A call failed: begins a pause, drawn between half its length and the whole.
    /// Returns the length of the pause.
    pub(crate) fn failed(&mut self, error: &Error) -> Duration {
        if self.failures == 0 && !error.needs_help() {
            let (what, error) = (self.what, error.full_message());
            tracing::warn!(error, "{what} fails; trying again until it works");
        }
        let whole = doubled(FIRST_PAUSE, self.failures).min(LONGEST_PAUSE);
        let length = whole.mul_f64(0.5 + self.environment.random().fraction() / 2.0);
        self.failures = self.failures.saturating_add(1);
        self.pause = Some(self.environment.clock().sleep(length));
        length
    }

    /// A call succeeded.
    pub(crate) fn is_over(&mut self) {
        self.works_in_part();
        if self.failures > 0 {
            tracing::info!("{}", works_again(self.what, self.failures));
            self.failures = 0;
            self.pause = None;
        }
    }

    /// Returns whether the last call failed.
    pub(crate) fn is_there(&self) -> bool {
        self.failures > 0
    }

    /// Whether to wait before the next call.
    pub(crate) fn is_pausing(&self) -> bool {
        self.pause.is_some()
    }

    /// Completes at the end of the pause; never when there is none.
    pub(crate) async fn pause_over(&mut self) {
        match &mut self.pause {
            Some(pause) => pause.await,
            None => pending().await,
        }
        self.pause = None;
    }
}

fn works_again(what: &str, failures: u32) -> String {
    let noun = if failures == 1 { "failure" } else { "failures" };
    format!("{what} works again after {failures} {noun}")
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use relq_core::error::{ErrorContext, Operation};
    use tracing::{Event, Level, Metadata, Subscriber, span};

    use super::*;

    /// Keeps the level of each event.
    #[derive(Clone, Default)]
    struct Levels(Arc<Mutex<Vec<Level>>>);

    impl Subscriber for Levels {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
            span::Id::from_u64(1)
        }

        fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

        fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

        fn event(&self, event: &Event<'_>) {
            self.0.lock().unwrap().push(*event.metadata().level());
        }

        fn enter(&self, _: &span::Id) {}

        fn exit(&self, _: &span::Id) {}
    }

    fn unavailable() -> Error {
        let at = ErrorContext { backend: "zset", operation: Operation::Claim };
        Error::Unavailable { at, source: "refused".into() }
    }

    #[test]
    fn an_outage_is_told_once_and_its_end_once() {
        let levels = Levels::default();
        tracing::subscriber::with_default(levels.clone(), || {
            let mut backoff = Backoff::new("claiming", Environment::default());
            backoff.is_over();
            for _ in 0..50 {
                backoff.failed(&unavailable());
            }
            backoff.is_over();
            backoff.is_over();
        });
        assert_eq!(*levels.0.lock().unwrap(), [Level::WARN, Level::INFO]);
    }

    #[test]
    fn one_failure_is_told_as_one() {
        let words = [1, 2].map(|failures| works_again("claiming", failures));
        assert_eq!(words[0], "claiming works again after 1 failure");
        assert_eq!(words[1], "claiming works again after 2 failures");
    }

    #[test]
    fn what_needs_help_is_hopeless_after_a_while_without_a_break() {
        let denied = || {
            let at = ErrorContext { backend: "zset", operation: Operation::Claim };
            Error::Denied { at, source: "refused".into() }
        };
        let mut backoff = Backoff::new("claiming", Environment::default());
        let limit = Duration::from_millis(1);

        assert!(!backoff.is_hopeless(&denied(), limit));
        std::thread::sleep(limit);
        assert!(!backoff.is_hopeless(&unavailable(), limit));
        assert!(!backoff.is_hopeless(&denied(), limit));
        std::thread::sleep(limit);
        assert!(backoff.is_hopeless(&denied(), limit));
    }

    #[test]
    fn pauses_grow_to_their_limit_and_begin_small_again() {
        let mut backoff = Backoff::new("claiming", Environment::default());
        let pauses: Vec<_> = (0..50).map(|_| backoff.failed(&unavailable())).collect();
        assert!((FIRST_PAUSE / 2..=FIRST_PAUSE).contains(&pauses[0]));
        assert!((FIRST_PAUSE..=FIRST_PAUSE * 2).contains(&pauses[1]));
        assert!((LONGEST_PAUSE / 2..=LONGEST_PAUSE).contains(&pauses[49]));

        backoff.is_over();
        assert!(!backoff.is_pausing());
        assert!(backoff.failed(&unavailable()) <= FIRST_PAUSE);
    }
}
