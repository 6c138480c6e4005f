//! A clock that the test moves, and that knows who sleeps.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use relq_core::environment::{Clock, Timestamp};
use tokio::sync::watch;

/// The store's clock.
#[derive(Debug)]
pub(crate) struct VirtualClock {
    start: Timestamp,
    passed: watch::Sender<Duration>,
    /// How far the clock was set forward.
    ahead: Mutex<Duration>,
    /// When each sleep ends.
    sleeps: Arc<Mutex<Vec<Duration>>>,
}

impl VirtualClock {
    pub(crate) fn starting(start: Timestamp) -> Self {
        let passed = watch::Sender::new(Duration::ZERO);
        Self { start, passed, ahead: Mutex::default(), sleeps: Arc::default() }
    }

    pub(crate) fn set(&self, passed: Duration) {
        self.passed.send_replace(passed);
    }

    /// Sets the clock forward while no other clock moves and no sleep ends. For a scheduler
    /// this is the same as a suspend of its machine.
    pub(crate) fn set_forward(&self, by: Duration) {
        *self.ahead.lock().unwrap() += by;
    }

    /// The ends of the sleeps that are not over.
    pub(crate) fn sleeps(&self) -> Vec<Duration> {
        let now = self.elapsed();
        let sleeps = self.sleeps.lock().unwrap();
        sleeps.iter().copied().filter(|end| *end > now).collect()
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        self.start.plus(self.elapsed() + *self.ahead.lock().unwrap())
    }

    fn elapsed(&self) -> Duration {
        *self.passed.borrow()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let end = self.elapsed() + duration;
        let mut passed = self.passed.subscribe();
        let sleep = Sleep::enter(&self.sleeps, end);
        Box::pin(async move {
            let _sleep = sleep;
            drop(passed.wait_for(|passed| *passed >= end).await);
        })
    }
}

/// Removes a sleep from the list when it is over or dropped.
struct Sleep {
    sleeps: Arc<Mutex<Vec<Duration>>>,
    end: Duration,
}

impl Sleep {
    fn enter(sleeps: &Arc<Mutex<Vec<Duration>>>, end: Duration) -> Self {
        sleeps.lock().unwrap().push(end);
        Self { sleeps: Arc::clone(sleeps), end }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let mut sleeps = self.sleeps.lock().unwrap();
        let place = sleeps.iter().position(|end| *end == self.end);
        sleeps.remove(place.unwrap());
    }
}

/// The clock of a machine that does not know what time it is. Only the time that passes
/// and the sleeps are those of the store's clock.
#[derive(Debug)]
pub(crate) struct MachineClock(pub(crate) Arc<VirtualClock>);

impl Clock for MachineClock {
    fn now(&self) -> Timestamp {
        panic!("a scheduler must not read the clock of its machine (R18)")
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.0.sleep(duration)
    }
}
