//! Recovers the jobs of all dead workers of the queue (R9, R12).

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use relq_core::{
    Error, ReliableQueue, environment::Environment, error::Operation,
    outcome::Recovered,
};

use crate::{
    backoff::Backoff,
    observers::Observers,
    settings::{SHORTEST_REAP_INTERVAL, Settings},
};

/// The most jobs that one call recovers: few enough that the call does not delay other
/// users of the store.
pub(crate) const PAGE: NonZeroU32 = NonZeroU32::new(500).expect("not zero");

pub(crate) struct Reaper {
    queue: Arc<dyn ReliableQueue>,
    environment: Environment,
    interval: Duration,
    give_up_after: Duration,
    backoff: Backoff,
    observers: Observers,
}

impl Reaper {
    pub(crate) fn new(queue: Arc<dyn ReliableQueue>, settings: &Settings) -> Self {
        let environment = settings.environment.clone();
        Self {
            queue,
            interval: settings.reap_interval(),
            give_up_after: settings.give_up_after,
            observers: settings.observers.clone(),
            backoff: Backoff::new("recovery", environment.clone()),
            environment,
        }
    }

    /// Recovers jobs at once, and then at least once per interval. If an error lasts
    /// too long, ends and returns that error.
    pub(crate) async fn run(mut self) -> Error {
        loop {
            let next_in = match self.recover_all().await {
                Ok(next_in) => next_in,
                Err(error) => return error,
            };
            let pause = self.pause(next_in);
            self.environment.clock().sleep(pause).await;
        }
    }

    /// Recovers page after page until no job is left to recover. Returns how long until
    /// the next lease or delay ends.
    ///
    /// An outage ends with the last page only: while a part of the queue is down, the
    /// pages of the other parts succeed, and then the recovery fails.
    async fn recover_all(&mut self) -> Result<Option<Duration>, Error> {
        loop {
            match self.queue.recover(PAGE).await {
                Ok(recovered) => {
                    self.backoff.works_in_part();
                    self.observers.recovered(&recovered);
                    if recovered.requeued > 0 || recovered.buried > 0 {
                        tracing::info!("{}", words(&recovered));
                    }
                    if !recovered.more {
                        self.backoff.succeeded();
                        return Ok(recovered.next_in);
                    }
                }
                Err(error) => {
                    self.observers.call_failed(Operation::Recover, &error);
                    if self.backoff.is_hopeless(&error, self.give_up_after) {
                        return Err(error);
                    }
                    self.backoff.failed(&error);
                    self.backoff.pause_over().await;
                }
            }
        }
    }

    /// A random pause between half the interval and the whole, so that the reapers of
    /// many workers do not run at the same moment. It is shorter when a lease or delay
    /// ends sooner, but never so short that an idle worker loads the store.
    fn pause(&self, next_in: Option<Duration>) -> Duration {
        let jitter = self.environment.random().fraction();
        let pause = self.interval.mul_f64(0.5 + jitter / 2.0);
        let soonest = self.interval.min(SHORTEST_REAP_INTERVAL);
        next_in.map_or(pause, |next_in| pause.min(next_in.max(soonest)))
    }
}

/// Formats the result of a recovery as text for the log.
fn words(recovered: &Recovered) -> String {
    let jobs = |count| if count == 1 { "job" } else { "jobs" };
    let Recovered { requeued, buried, .. } = *recovered;
    let mut words = format!(
        "{requeued} {} of dead workers made ready again, {buried} buried after the last \
         attempt",
        jobs(requeued),
    );
    if recovered.more {
        words.push_str("; more to recover");
    } else if let Some(next_in) = recovered.next_in {
        let seconds = next_in.as_secs_f64();
        words.push_str(&format!("; the next lease or delay ends in {seconds:.1} s"));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recovery_is_described_in_words() {
        let mut recovered = Recovered::default();
        (recovered.requeued, recovered.buried) = (1, 2);
        recovered.next_in = Some(Duration::from_millis(4021));
        assert_eq!(
            words(&recovered),
            "1 job of dead workers made ready again, 2 buried after the last attempt; \
             the next lease or delay ends in 4.0 s",
        );

        recovered.more = true;
        assert!(words(&recovered).ends_with("after the last attempt; more to recover"));
    }
}
