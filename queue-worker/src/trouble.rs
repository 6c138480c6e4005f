//! Patience with a store that does not answer: back-off, and one line in the log for
//! the beginning of the trouble and one for its end.

use std::{
    future::{Future, pending},
    pin::Pin,
    time::Duration,
};

use queue_core::{Environment, Error};

use crate::retry::doubled;

/// The pause after the first failure; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The longest pause: how late a worker notices that the store is back.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

pub(crate) type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The troubles of one kind of call.
pub(crate) struct Trouble {
    what: &'static str,
    environment: Environment,
    failures: u32,
    pause: Option<Sleep>,
}

impl Trouble {
    pub(crate) fn new(what: &'static str, environment: Environment) -> Self {
        Self { what, environment, failures: 0, pause: None }
    }

    /// A call failed: begins a pause, drawn between half its length and the whole.
    /// Answers how long it is.
    pub(crate) fn failed(&mut self, error: &Error) -> Duration {
        if self.failures == 0 {
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
        if self.failures > 0 {
            tracing::info!(
                "{} works again after {} failures",
                self.what,
                self.failures
            );
            self.failures = 0;
            self.pause = None;
        }
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
