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
    use relq_core::{
        QueueName,
        environment::{Randomness, SystemClock},
        error::ErrorContext,
    };
    use relq_memory::MemoryStore;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A source whose random number is always this one.
    #[derive(Debug)]
    struct Always(f64);

    impl Randomness for Always {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(0);
        }

        fn fraction(&self) -> f64 {
            self.0
        }
    }

    fn reaper(interval: Duration, jitter: f64) -> Reaper {
        let name = QueueName::new("q").unwrap();
        let queue = MemoryStore::default().open(name, Environment::default());
        let environment =
            Environment::new(Arc::new(SystemClock), Arc::new(Always(jitter)));
        let reap_every = Some(interval);
        let settings = Settings { reap_every, environment, ..Settings::default() };
        Reaper::new(Arc::new(queue), &settings)
    }

    /// R9: the next recovery is due after the interval, or when the next lease ends if that
    /// is earlier, but at most once a second.
    #[test]
    fn the_pause_of_the_reaper_ends_with_the_next_lease() {
        let long = 10 * SECOND;
        for (interval, jitter, next_in, expected) in [
            (long, 0.0, None, 5 * SECOND),
            (long, 0.5, None, 7 * SECOND + SECOND / 2),
            (long, 0.0, Some(3 * SECOND), 3 * SECOND),
            (long, 0.0, Some(60 * SECOND), 5 * SECOND),
            (long, 0.0, Some(Duration::ZERO), SECOND),
            (SECOND / 2, 0.0, Some(Duration::ZERO), SECOND / 4),
        ] {
            let pause = reaper(interval, jitter).pause(next_in);
            assert_eq!(pause, expected, "{interval:?}, {jitter}, {next_in:?}");
        }
    }

    /// An outage of the store ends with a recovery that works. The next failure begins a new
    /// one, with a short pause and a line in the log.
    #[tokio::test]
    async fn a_recovery_that_works_ends_an_outage() {
        let mut reaper = reaper(SECOND, 0.0);
        let at = ErrorContext { backend: "test", operation: Operation::Recover };
        reaper.backoff.failed(&Error::Unavailable { at, source: "away".into() });

        reaper.recover_all().await.unwrap();

        assert!(!reaper.backoff.is_failing(), "the outage goes on");
    }

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
