//! A worker's clock that a test moves away from the store's clock.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use relq::environment::{Clock, Environment, OsRandomness, SystemClock, Timestamp};

/// How often a sleeper checks the clock.
const LOOK: Duration = Duration::from_millis(5);

/// The machine's clocks, which a test moves and stops. Clones share their state.
#[derive(Debug, Clone, Default)]
pub(crate) struct PartingClock(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// How far the steady clock was moved.
    ahead: Duration,
    /// How far the wall clock was moved.
    wall_ahead: Duration,
    /// How long the steady clock was stopped in total.
    stood: Duration,
    /// When the clock was stopped, if it is stopped.
    stands_since: Option<Duration>,
}

impl PartingClock {
    /// An environment that runs on this clock.
    pub(crate) fn environment(&self) -> Environment {
        Environment::new(Arc::new(self.clone()), Arc::new(OsRandomness))
    }

    /// Moves both clocks, as if the worker got no processor time.
    pub(crate) fn advance(&self, by: Duration) {
        let mut state = self.0.lock().unwrap();
        state.ahead += by;
        state.wall_ahead += by;
    }

    /// Moves the wall clock only, as an administrator does.
    pub(crate) fn step_wall(&self, by: Duration) {
        self.0.lock().unwrap().wall_ahead += by;
    }

    /// Suspends the machine: the steady clock and all sleepers stop.
    pub(crate) fn suspend(&self) {
        self.0.lock().unwrap().stands_since = Some(SystemClock.elapsed());
    }

    /// Resumes the machine.
    pub(crate) fn resume(&self) {
        let mut state = self.0.lock().unwrap();
        let since = state.stands_since.take().expect("it was suspended");
        state.stood += SystemClock.elapsed() - since;
    }
}

impl Clock for PartingClock {
    fn now(&self) -> Timestamp {
        SystemClock.now().plus(self.0.lock().unwrap().wall_ahead)
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
