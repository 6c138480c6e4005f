//! The clock with which a worker measures its leases.
//!
//! A steady clock stops while the machine is suspended, but the store's clock
//! continues. The wall clock shows the missed time, so the larger progress of the two
//! clocks counts. A person or a program may also set the wall clock. Then a worker
//! takes leases for older than they are, and asks the store (see `heartbeat`), so that
//! a changed clock does not lose a running job (R18).
//!
//! Only leases are measured with this clock. How long a call takes, and how long the store
//! has failed, is measured with the steady clock: a suspend, or a step of the wall clock,
//! must neither end a call nor the worker.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use relq_core::environment::Environment;

use crate::backoff::Sleep;

/// If the wall clock advances more than the steady clock by at least this, the machine
/// may have been suspended. A smaller difference is rounding, because the wall clock is
/// read in whole milliseconds.
const LEAST_LEAD: Duration = Duration::from_millis(20);

/// The steady clock is read before and after the wall clock. If the two readings differ
/// by more than this, the thread was interrupted, and the reading does not count.
const TOGETHER: Duration = Duration::from_millis(2);

/// How often the clocks are read at most, until the thread is not interrupted between
/// the readings.
const READINGS: usize = 4;

/// A moment by the two clocks of a worker.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Moment {
    /// By the lease clock, which includes the time for which the machine was suspended.
    pub(crate) lease_time: Duration,
    /// By the steady clock of the machine.
    pub(crate) steady_time: Duration,
}

#[cfg(test)]
impl Moment {
    /// The moment at which a machine that was never suspended has run for `time`.
    pub(crate) fn awake(time: Duration) -> Self {
        Self { lease_time: time, steady_time: time }
    }
}

/// A clock whose time includes the time for which the machine was suspended.
#[derive(Debug, Clone)]
pub(crate) struct LeaseClock {
    machine: Environment,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    /// How much time the steady clock has missed, as far as the worker has noticed.
    missed: Duration,
    /// The wall clock minus the steady clock: the smallest difference that was read
    /// since `missed` last grew. `None` before the first reading.
    distance_ms: Option<i64>,
}

impl LeaseClock {
    pub(crate) fn new(machine: Environment) -> Self {
        let state = State { missed: Duration::ZERO, distance_ms: None };
        Self { machine, state: Arc::new(Mutex::new(state)) }
    }

    pub(crate) fn now(&self) -> Moment {
        // The missed time is read last. It never decreases, so the sum never decreases.
        let steady_time = self.machine.clock().elapsed();
        Moment { lease_time: steady_time.saturating_add(self.missed()), steady_time }
    }

    /// The time of this clock, without that of the steady clock.
    pub(crate) fn elapsed(&self) -> Duration {
        self.now().lease_time
    }

    /// Completes when the machine has run for `duration`.
    pub(crate) fn sleep(&self, duration: Duration) -> Sleep {
        self.machine.clock().sleep(duration)
    }

    /// How long, in total, the machine was suspended or its wall clock was set forward.
    pub(crate) fn missed(&self) -> Duration {
        // Read the clocks while holding the lock, so that two threads cannot store
        // their readings in the wrong order.
        let mut state = self.lock();
        if let Some(found) = self.distance_ms() {
            let known = *state.distance_ms.get_or_insert(found);
            let lead_ms = u64::try_from(found.saturating_sub(known)).unwrap_or(0);
            let lead = Duration::from_millis(lead_ms);
            if lead >= LEAST_LEAD {
                state.missed = state.missed.saturating_add(lead);
                state.distance_ms = Some(found);
            } else {
                state.distance_ms = Some(found.min(known));
            }
        }
        state.missed
    }

    /// The wall clock minus the steady clock. `None` if the thread was interrupted
    /// during every reading.
    fn distance_ms(&self) -> Option<i64> {
        let clock = self.machine.clock();
        (0..READINGS).find_map(|_| {
            let before = clock.elapsed();
            let wall = clock.now();
            let after = clock.elapsed();
            let is_undisturbed = after.saturating_sub(before) <= TOGETHER;
            let steady_ms = i64::try_from(after.as_millis()).unwrap_or(i64::MAX);
            is_undisturbed.then(|| wall.unix_ms().saturating_sub(steady_ms))
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A poisoned lock is safe to use: a clock may panic under it, but not in the
        // middle of a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::pin::Pin;

    use relq_core::environment::{Clock, OsRandomness, Timestamp};

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    /// A steady clock and a wall clock whose times a test sets.
    #[derive(Debug, Clone, Default)]
    pub(crate) struct SetClocks(Arc<Mutex<Times>>);

    #[derive(Debug, Default)]
    struct Times {
        steady: Duration,
        wall: Duration,
        /// How much time passes after the next reading of the wall clock.
        interruption: Duration,
    }

    impl SetClocks {
        fn lease_clock(&self) -> LeaseClock {
            let clock = LeaseClock::new(self.environment());
            clock.elapsed();
            clock
        }

        pub(crate) fn environment(&self) -> Environment {
            Environment::new(Arc::new(self.clone()), Arc::new(OsRandomness))
        }

        pub(crate) fn advance(&self, steady: Duration, wall: Duration) {
            let mut times = self.0.lock().unwrap();
            times.steady += steady;
            times.wall += wall;
        }

        fn set_wall_back(&self, by: Duration) {
            self.0.lock().unwrap().wall -= by;
        }

        /// Interrupts the next thread that reads the wall clock, after the reading.
        fn interrupt(&self, interruption: Duration) {
            self.0.lock().unwrap().interruption = interruption;
        }
    }

    impl Clock for SetClocks {
        fn now(&self) -> Timestamp {
            let mut times = self.0.lock().unwrap();
            let now = Timestamp::from_unix_ms(0).plus(times.wall);
            let interruption = std::mem::take(&mut times.interruption);
            times.steady += interruption;
            times.wall += interruption;
            now
        }

        fn elapsed(&self) -> Duration {
            self.0.lock().unwrap().steady
        }

        fn sleep(
            &self,
            _duration: Duration,
        ) -> Pin<Box<dyn Future<Output = ()> + Send>> {
            Box::pin(std::future::ready(()))
        }
    }

    #[test]
    fn a_suspended_machine_has_missed_what_its_wall_clock_shows() {
        let machine = SetClocks::default();
        let clock = machine.lease_clock();

        machine.advance(Duration::from_secs(1), HOUR);

        assert_eq!(clock.elapsed(), HOUR);
        machine.advance(HOUR, HOUR);
        assert_eq!(clock.elapsed(), HOUR * 2);
        let steady_time = HOUR + Duration::from_secs(1);
        assert_eq!(clock.now().steady_time, steady_time, "how long it ran");
    }

    #[test]
    fn a_wall_clock_that_is_set_back_hides_no_later_suspend() {
        let machine = SetClocks::default();
        machine.advance(HOUR, HOUR * 2);
        let clock = machine.lease_clock();

        machine.set_wall_back(HOUR);
        assert_eq!(clock.elapsed(), HOUR);
        machine.advance(Duration::ZERO, HOUR / 2);

        assert_eq!(clock.elapsed(), HOUR + HOUR / 2);
    }

    /// The two clocks do not belong together if the thread was interrupted between their
    /// readings. The next reading would then show a suspend that never was.
    #[test]
    fn an_interrupted_reading_does_not_count() {
        let machine = SetClocks::default();
        let clock = machine.lease_clock();

        machine.interrupt(Duration::from_secs(1));
        clock.elapsed();

        assert_eq!(clock.missed(), Duration::ZERO);
    }

    /// Rounding errors of many readings in a row do not add up to missed time.
    #[test]
    fn readings_in_a_row_are_not_added_up() {
        let machine = SetClocks::default();
        let clock = machine.lease_clock();
        for _ in 0..10_000 {
            machine.advance(Duration::from_micros(1300), Duration::from_micros(1300));
            clock.elapsed();
        }

        assert_eq!(clock.missed(), Duration::ZERO);
    }

    /// R6: a lead of the wall clock that rounding does not explain counts.
    #[test]
    fn the_shortest_suspend_that_shows_is_missed_time() {
        let machine = SetClocks::default();
        let clock = machine.lease_clock();

        machine.advance(Duration::ZERO, LEAST_LEAD);

        assert_eq!(clock.missed(), LEAST_LEAD, "the missed time");
    }
}
