//! A worker's clock that parts from the store's, as a test says.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use relq::{Clock, Environment, OsRandomness, SystemClock, Timestamp};

/// How often a sleeper looks whether its time has come.
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
    /// For how long the steady clock has stood still.
    stood: Duration,
    /// Since when it stands still.
    stands_since: Option<Duration>,
}

impl PartingClock {
    /// An environment that runs on this clock.
    pub(crate) fn environment(&self) -> Environment {
        Environment::new(Arc::new(self.clone()), Arc::new(OsRandomness))
    }

    /// Moves both clocks, as a worker does that gets no time of its processor.
    pub(crate) fn advance(&self, by: Duration) {
        let mut state = self.0.lock().unwrap();
        state.ahead += by;
        state.wall_ahead += by;
    }

    /// Moves the wall clock alone, as an administrator does.
    pub(crate) fn step_wall(&self, by: Duration) {
        self.0.lock().unwrap().wall_ahead += by;
    }

    /// The machine is suspended: the steady clock and all sleepers stand still.
    pub(crate) fn suspend(&self) {
        self.0.lock().unwrap().stands_since = Some(SystemClock.elapsed());
    }

    /// The machine wakes up.
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
