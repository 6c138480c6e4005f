//! Clocks that the suite passes to a backend: one that the suite can move, and one that
//! shows a wrong time.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use relq_core::environment::{Clock, SystemClock, Timestamp};
use tokio::sync::watch;

/// The machine's clock plus the time by which the suite has advanced it.
///
/// It runs on between advances, so a waiting call ends by itself. An advance wakes
/// sleeping tasks at once. A case can stop the wall clock, so that several calls run in
/// the same millisecond, and hold the sleeps, so that a call which only polls does not end.
#[derive(Debug, Clone)]
pub(crate) struct MovableClock {
    moved: watch::Sender<Duration>,
    /// By how much the wall clock was set back.
    set_back: watch::Sender<Duration>,
    stopped_at: Arc<OnceLock<Timestamp>>,
    holds_sleeps: watch::Sender<bool>,
}

/// Sleeps that are held. When it is dropped, those that are over end.
pub(crate) struct HeldSleeps(watch::Sender<bool>);

impl Drop for HeldSleeps {
    fn drop(&mut self) {
        self.0.send_replace(false);
    }
}

impl MovableClock {
    pub(crate) fn new() -> Self {
        Self {
            moved: watch::Sender::new(Duration::ZERO),
            set_back: watch::Sender::new(Duration::ZERO),
            stopped_at: Arc::default(),
            holds_sleeps: watch::Sender::new(false),
        }
    }

    /// Lets no sleep end until the returned value is dropped.
    pub(crate) fn hold_sleeps(&self) -> HeldSleeps {
        self.holds_sleeps.send_replace(true);
        HeldSleeps(self.holds_sleeps.clone())
    }

    /// Stops the wall clock for the rest of the case. From now on only advances change
    /// it.
    pub(crate) fn stop_wall_clock(&self) {
        self.stopped_at.get_or_init(|| SystemClock.now());
    }

    pub(crate) fn advance(&self, duration: Duration) {
        self.moved.send_modify(|moved| *moved += duration);
    }

    /// Sets the wall clock back. This changes no sleep.
    pub(crate) fn set_back(&self, by: Duration) {
        self.set_back.send_modify(|set_back| *set_back += by);
    }
}

impl Clock for MovableClock {
    fn now(&self) -> Timestamp {
        let machines = || SystemClock.now();
        let unmoved = self.stopped_at.get().copied().unwrap_or_else(machines);
        before(unmoved.plus(*self.moved.borrow()), *self.set_back.borrow())
    }

    fn elapsed(&self) -> Duration {
        SystemClock.elapsed() + *self.moved.borrow()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let wake_at = self.elapsed().saturating_add(duration);
        let (clock, mut moves) = (self.clone(), self.moved.subscribe());
        let mut is_held = self.holds_sleeps.subscribe();
        Box::pin(async move {
            if duration.is_zero() {
                return;
            }
            while let Some(left) = wake_at.checked_sub(clock.elapsed())
                && !left.is_zero()
            {
                // Neither channel can be closed here, because `clock` holds its sender.
                let _ = tokio::time::timeout(left, moves.changed()).await;
            }
            let _ = is_held.wait_for(|is_held| !is_held).await;
        })
    }
}

/// Whether a wrong clock is ahead or behind, and by how much.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Skew {
    /// The clock shows a later time.
    Ahead(Duration),
    /// The clock shows an earlier time.
    Behind(Duration),
}

/// A clock that shows a wrong time of day. It measures durations correctly, as the
/// wrong clocks of real machines do.
#[derive(Debug, Clone)]
pub(crate) struct WrongClock {
    right: Arc<dyn Clock>,
    skew: Skew,
}

impl WrongClock {
    pub(crate) fn new(right: Arc<dyn Clock>, skew: Skew) -> Self {
        Self { right, skew }
    }
}

impl Clock for WrongClock {
    fn now(&self) -> Timestamp {
        let now = self.right.now();
        match self.skew {
            Skew::Ahead(by) => now.plus(by),
            Skew::Behind(by) => before(now, by),
        }
    }

    fn elapsed(&self) -> Duration {
        self.right.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.right.sleep(duration)
    }
}

/// Returns the time that is this much earlier.
fn before(time: Timestamp, by: Duration) -> Timestamp {
    let epoch = Timestamp::from_unix_ms(0);
    epoch.plus(time.since(epoch.plus(by)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn a_move_wakes_a_sleeper() {
        let clock = MovableClock::new();
        let sleeper = tokio::spawn(clock.sleep(HOUR));

        clock.advance(HOUR);

        sleeper.await.unwrap();
    }

    #[tokio::test]
    async fn a_held_sleep_ends_when_it_is_released() {
        let clock = MovableClock::new();
        let held = clock.hold_sleeps();
        let sleeper = tokio::spawn(clock.sleep(HOUR));
        clock.advance(HOUR);
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert!(!sleeper.is_finished());

        drop(held);

        sleeper.await.unwrap();
    }

    #[tokio::test]
    async fn a_sleeper_wakes_without_a_move() {
        MovableClock::new().sleep(Duration::from_millis(5)).await;
    }

    #[test]
    fn a_move_shows_in_both_readings() {
        let clock = MovableClock::new();
        let (now, elapsed) = (clock.now(), clock.elapsed());

        clock.advance(HOUR);

        assert!(clock.now().since(now) >= HOUR);
        assert!(clock.elapsed() >= elapsed + HOUR);
    }

    #[test]
    fn a_clock_that_is_set_back_shows_it_in_the_time_of_day_only() {
        let clock = MovableClock::new();
        let (now, elapsed) = (clock.now(), clock.elapsed());

        clock.set_back(2 * HOUR);

        assert!(now.since(clock.now()) >= HOUR);
        assert!(clock.elapsed() >= elapsed);
    }

    #[test]
    fn a_wrong_clock_is_wrong_by_that_much() {
        let wrong = |skew| WrongClock::new(Arc::new(SystemClock), skew);
        let (ahead, behind) = (wrong(Skew::Ahead(HOUR)), wrong(Skew::Behind(HOUR)));

        assert!(ahead.now().since(behind.now()) >= 2 * HOUR - Duration::from_secs(1));
    }
}
