//! A clock for a worker. A test can move it, so that it differs from the store's clock.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use relq::environment::{Clock, Environment, OsRandomness, SystemClock, Timestamp};

/// How often a sleep on the moved clock checks whether its time has passed.
const LOOK: Duration = Duration::from_millis(5);

/// A steady clock and a wall clock, which a test can move and stop. All clones share
/// one state.
#[derive(Debug, Clone, Default)]
pub(crate) struct PartingClock(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// How far the test has moved the steady clock forward.
    ahead: Duration,
    /// How far the test has moved the wall clock forward.
    wall_ahead: Duration,
    /// How long the steady clock was stopped in total.
    stood: Duration,
    /// When the steady clock was stopped. `None` while it runs.
    stands_since: Option<Duration>,
    /// How long the wall clock was stopped in total.
    wall_stood_ms: i64,
    /// When the wall clock was stopped. `None` while it runs.
    wall_stands_since: Option<Timestamp>,
}

impl PartingClock {
    /// Creates a clock that is stopped.
    pub(crate) fn stopped() -> Self {
        let clock = Self::default();
        clock.stop();
        clock
    }

    /// Creates an environment that uses this clock.
    pub(crate) fn environment(&self) -> Environment {
        Environment::new(Arc::new(self.clone()), Arc::new(OsRandomness))
    }

    /// Moves both clocks forward, as if the worker had got no processor time meanwhile.
    pub(crate) fn advance(&self, by: Duration) {
        let mut state = self.0.lock().unwrap();
        state.ahead += by;
        state.wall_ahead += by;
    }

    /// Moves only the wall clock forward, as an administrator does who sets the clock.
    pub(crate) fn step_wall(&self, by: Duration) {
        self.0.lock().unwrap().wall_ahead += by;
    }

    /// Simulates a suspend of the machine: the steady clock and all sleeps stop.
    pub(crate) fn suspend(&self) {
        self.0.lock().unwrap().stands_since = Some(SystemClock.elapsed());
    }

    /// Stops both clocks and all sleeps. No time limit of the worker passes, even on a
    /// machine that stands still.
    pub(crate) fn stop(&self) {
        let mut state = self.0.lock().unwrap();
        state.stands_since.get_or_insert_with(|| SystemClock.elapsed());
        state.wall_stands_since.get_or_insert_with(|| SystemClock.now());
    }

    /// Ends a simulated suspend or a stop: both clocks and all sleeps continue.
    pub(crate) fn resume(&self) {
        let mut state = self.0.lock().unwrap();
        if let Some(since) = state.stands_since.take() {
            state.stood += SystemClock.elapsed() - since;
        }
        if let Some(since) = state.wall_stands_since.take() {
            state.wall_stood_ms += SystemClock.now().unix_ms() - since.unix_ms();
        }
    }
}

impl Clock for PartingClock {
    fn now(&self) -> Timestamp {
        let state = self.0.lock().unwrap();
        let real = state.wall_stands_since.unwrap_or_else(|| SystemClock.now());
        let moved = real.plus(state.wall_ahead).unix_ms();
        Timestamp::from_unix_ms(moved - state.wall_stood_ms)
    }

    fn elapsed(&self) -> Duration {
        let state = self.0.lock().unwrap();
        let real = SystemClock.elapsed();
        let until = state.stands_since.unwrap_or(real);
        until + state.ahead - state.stood
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let clock = self.clone();
        let wake_at = clock.elapsed().saturating_add(duration);
        Box::pin(async move {
            while let Some(left) = wake_at.checked_sub(clock.elapsed())
                && !left.is_zero()
            {
                SystemClock.sleep(left.min(LOOK)).await;
            }
        })
    }
}
