//! An estimate of the server's time, for the moment when a plain job is pushed (R27).
//!
//! The plain command of a push (R20) gets no time from the server. Each new connection
//! reads the server's clock, and from then on a clock of the client that never jumps
//! measures how much time has passed. So a client whose time of day is wrong by hours
//! records the right time (R18).
//!
//! ```text
//!  connect    TIME, within the script that reads the marker
//!  a push     LPUSH …            by the estimate
//!  10 s later TIME, LPUSH …      in one write; the push is still by the old estimate
//! ```
//!
//! So the estimate is wrong by at most the time that the last reading took, by the drift of
//! the two clocks, and, until the next reading, by a change of the server's clock and by
//! the time for which this machine was suspended. Scripts that push ask the server
//! themselves.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use relq_core::environment::{Clock, Timestamp};

/// How old the last reading of the server's clock is when a push asks for another one. It
/// costs a command, and no round trip.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// The last reading of the server's clock. Times are in milliseconds.
#[derive(Debug)]
pub(crate) struct ServerClock {
    /// The server's time when the client's [`Clock::elapsed`] was zero.
    start_ms: AtomicI64,
    /// When the server was asked last, by [`Clock::elapsed`].
    asked_ms: AtomicI64,
}

/// No connection has read the server's clock yet.
const UNKNOWN: i64 = i64::MIN;

impl Default for ServerClock {
    fn default() -> Self {
        Self { start_ms: AtomicI64::new(UNKNOWN), asked_ms: AtomicI64::new(0) }
    }
}

impl ServerClock {
    /// Records that the server's clock shows the time `[seconds, microseconds]`, as
    /// `TIME` returns it.
    pub(crate) fn learn(&self, time: [i64; 2], clock: &dyn Clock) {
        let elapsed_ms = millis(clock.elapsed());
        self.start_ms.store(in_ms(time) - elapsed_ms, Ordering::Relaxed);
        self.asked_ms.store(elapsed_ms, Ordering::Relaxed);
    }

    /// Records the reply to a question that was sent `took` ago. The reply may have been
    /// read long after it arrived, by a future that was not polled for a while. So an
    /// estimate that agrees with it is kept.
    pub(crate) fn correct(&self, time: [i64; 2], took: Duration, clock: &dyn Clock) {
        let earliest = Timestamp::from_unix_ms(in_ms(time));
        let possible = earliest..=earliest.plus(took);
        if self.now(clock).is_none_or(|estimate| !possible.contains(&estimate)) {
            self.learn(time, clock);
        }
    }

    /// Whether the caller is to ask the server for its time: the last reading is old, and no
    /// other caller asks.
    pub(crate) fn is_to_be_read(&self, clock: &dyn Clock) -> bool {
        let now_ms = millis(clock.elapsed());
        let asked_ms = self.asked_ms.load(Ordering::Relaxed);
        let order = Ordering::Relaxed;
        now_ms - asked_ms >= millis(READ_AGAIN_AFTER)
            && self.asked_ms.compare_exchange(asked_ms, now_ms, order, order).is_ok()
    }

    /// The estimate of the server's time; `None` before the first connection.
    pub(crate) fn now(&self, clock: &dyn Clock) -> Option<Timestamp> {
        let start_ms = self.start_ms.load(Ordering::Relaxed);
        (start_ms != UNKNOWN)
            .then(|| Timestamp::from_unix_ms(start_ms + millis(clock.elapsed())))
    }
}

fn in_ms([seconds, micros]: [i64; 2]) -> i64 {
    seconds.saturating_mul(1000).saturating_add(micros / 1000)
}

fn millis(elapsed: Duration) -> i64 {
    i64::try_from(elapsed.as_millis()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use relq_conformance::proxy::VirtualClock;
    use relq_core::environment::SystemClock;

    use super::*;

    const READ: i64 = 1_800_000_000;
    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_servers_time_runs_on_from_its_last_reply() {
        let server = ServerClock::default();
        assert_eq!(server.now(&SystemClock), None);

        server.learn([READ, 250_999], &SystemClock);

        let read = Timestamp::from_unix_ms(READ * 1000 + 250);
        let now = server.now(&SystemClock).unwrap();
        assert!(now >= read && now.since(read) < Duration::from_secs(60), "{now:?}");
    }

    /// R27: a new connection corrects the estimate, for example after the server's clock was
    /// set, forward or back.
    #[test]
    fn each_reply_replaces_the_estimate() {
        let server = ServerClock::default();
        for seconds in [READ, 1_900_000_000, 1_700_000_000] {
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

    /// R27: a reply that the client has read late tells little, and must not make a good
    /// estimate worse. One that the estimate contradicts replaces it.
    #[test]
    fn a_late_reply_replaces_only_an_estimate_that_it_contradicts() {
        let clock = VirtualClock::new();
        for (replied, took, expected) in [
            (READ - 10, 10 * SECOND, READ),
            (READ, Duration::ZERO, READ),
            (READ - 10, 9 * SECOND, READ - 10),
            (READ + 1, 60 * SECOND, READ + 1),
        ] {
            let server = ServerClock::default();
            server.learn([READ, 0], &clock);

            server.correct([replied, 0], took, &clock);

            let now = server.now(&clock).unwrap();
            let expected = Timestamp::from_unix_ms(expected * 1000);
            assert_eq!(now, expected, "{replied} was read after {took:?}");
        }
    }

    /// R21: a push asks for the server's time at most once in ten seconds, also if the reply
    /// is lost.
    #[test]
    fn the_server_is_asked_again_after_a_while_and_by_one_caller() {
        let (server, clock) = (ServerClock::default(), VirtualClock::new());
        server.learn([READ, 0], &clock);
        for _ in 0..2 {
            clock.advance(READ_AGAIN_AFTER - SECOND);
            assert!(!server.is_to_be_read(&clock));
            clock.advance(SECOND);
            assert!(server.is_to_be_read(&clock));
            assert!(!server.is_to_be_read(&clock), "another caller asks");
        }
    }
}
