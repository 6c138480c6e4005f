//! Recovers the jobs of all dead workers of the queue (R9, R12).

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use relq_core::{Error, ReliableQueue, environment::Environment};

use crate::{
    backoff::Backoff,
    settings::{SHORTEST_REAP_INTERVAL, Settings},
};

/// Jobs of one call: few enough that the call does not delay other users of the store.
const PAGE: NonZeroU32 = NonZeroU32::new(500).expect("not zero");

pub(crate) struct Reaper {
    queue: Arc<dyn ReliableQueue>,
    environment: Environment,
    interval: Duration,
    give_up_after: Duration,
    backoff: Backoff,
}

impl Reaper {
    pub(crate) fn new(queue: Arc<dyn ReliableQueue>, settings: &Settings) -> Self {
        let environment = settings.environment.clone();
        Self {
            queue,
            interval: settings.reap_interval(),
            give_up_after: settings.give_up_after,
            backoff: Backoff::new("recovery", environment.clone()),
            environment,
        }
    }

    /// Recovers at once, then at least once per interval. Ends when an error lasts too
    /// long, and returns that error.
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

    /// Recovers page after page until there is no more; returns when the next lease or
    /// delay ends.
    async fn recover_all(&mut self) -> Result<Option<Duration>, Error> {
        loop {
            match self.queue.recover(PAGE).await {
                Ok(recovered) => {
                    self.backoff.is_over();
                    if recovered.requeued > 0 || recovered.buried > 0 {
                        tracing::info!(?recovered, "recovered jobs of dead workers");
                    }
                    if !recovered.more {
                        return Ok(recovered.next_in);
                    }
                }
                Err(error) => {
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
