//! An estimate of the server's time, for the moment when a job is pushed (R27).
//!
//! The plain command of a push (R20) gets no time from the server. Each new connection
//! reads the server's clock once, and from then on a clock of the client that never jumps
//! measures how much time has passed. So a client whose time of day is wrong by hours
//! records the right time (R18). The estimate is wrong by at most the time that the
//! opening took, by the drift of the two clocks, and, until the next connection, by a
//! change of the server's clock and by the time for which this machine was suspended.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use relq_core::environment::{Clock, Timestamp};

/// The server's time, in milliseconds, when the client's [`Clock::elapsed`] was zero.
#[derive(Debug)]
pub(crate) struct ServerClock(AtomicI64);

/// No connection has read the server's clock yet.
const UNKNOWN: i64 = i64::MIN;

impl Default for ServerClock {
    fn default() -> Self {
        Self(AtomicI64::new(UNKNOWN))
    }
}

impl ServerClock {
    /// Records that the server's clock shows the time `[seconds, microseconds]`, as
    /// `TIME` returns it.
    pub(crate) fn learn(&self, [seconds, micros]: [i64; 2], clock: &dyn Clock) {
        let server_ms = seconds.saturating_mul(1000).saturating_add(micros / 1000);
        self.0.store(server_ms - millis(clock.elapsed()), Ordering::Relaxed);
    }

    /// The estimate of the server's time; `None` before the first connection.
    pub(crate) fn now(&self, clock: &dyn Clock) -> Option<Timestamp> {
        let start_ms = self.0.load(Ordering::Relaxed);
        (start_ms != UNKNOWN)
            .then(|| Timestamp::from_unix_ms(start_ms + millis(clock.elapsed())))
    }
}

fn millis(elapsed: Duration) -> i64 {
    i64::try_from(elapsed.as_millis()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use relq_core::environment::SystemClock;

    use super::*;

    #[test]
    fn the_servers_time_runs_on_from_its_last_reply() {
        let server = ServerClock::default();
        assert_eq!(server.now(&SystemClock), None);

        server.learn([1_800_000_000, 250_999], &SystemClock);

        let read = Timestamp::from_unix_ms(1_800_000_000_250);
        let now = server.now(&SystemClock).unwrap();
        assert!(now >= read && now.since(read) < Duration::from_secs(60), "{now:?}");
    }

    /// R27: a new connection corrects the estimate, for example after the server's clock was
    /// set, forward or back.
    #[test]
    fn each_reply_replaces_the_estimate() {
        let server = ServerClock::default();
        for seconds in [1_800_000_000, 1_900_000_000, 1_700_000_000] {
            server.learn([seconds, 0], &SystemClock);

            let read = Timestamp::from_unix_ms(seconds * 1000);
            let now = server.now(&SystemClock).unwrap();
            let is_near = now >= read && now.since(read) < Duration::from_secs(60);
            assert!(
                is_near,
                "the last reply was {read:?}, and the estimate is {now:?}"
            );
        }
    }
}
