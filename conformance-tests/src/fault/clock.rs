//! Time that passes when the suite says so.

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use relq_core::{Clock, Timestamp};
use tokio::sync::watch;

/// The first of January 2100. A fixed start makes runs alike; a start in the future
/// keeps the server, whose own clock deletes keys with a time to live, from finding
/// one over that was set from here.
const START: Timestamp = Timestamp::from_unix_ms(4_102_444_800_000);

/// A clock that stands still until it is advanced. Clones are the same clock.
///
/// It is the one clock of a case: actors sleep on it, the proxy answers `TIME` from
/// it, and what the server holds in a blocking command is let go by it.
#[derive(Clone)]
pub struct VirtualClock(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    asleep: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    elapsed: Duration,
    last_sleeper: u64,
    sleepers: BTreeMap<(Duration, u64), Waker>,
}

impl VirtualClock {
    /// A clock at its start, the same for all.
    pub fn new() -> Self {
        let asleep = watch::Sender::new(0);
        Self(Arc::new(Shared { state: Mutex::default(), asleep }))
    }

    /// Lets time pass and wakes all whose sleep is over by then.
    pub fn advance(&self, by: Duration) {
        let mut state = self.state();
        state.elapsed = state.elapsed.saturating_add(by);
        let now = (state.elapsed, u64::MAX);
        let still_asleep = state.sleepers.split_off(&now);
        let woken = std::mem::replace(&mut state.sleepers, still_asleep);
        self.0.asleep.send_replace(state.sleepers.len());
        drop(state);
        woken.into_values().for_each(Waker::wake);
    }

    /// Advances to the end of the sleep that is over first; answers how far that
    /// was, or `None` when nobody sleeps.
    pub fn advance_to_next(&self) -> Option<Duration> {
        let by = self.next_in()?;
        self.advance(by);
        Some(by)
    }

    /// How long until the sleep that is over first ends.
    pub fn next_in(&self) -> Option<Duration> {
        let state = self.state();
        let ((end, _), _) = state.sleepers.first_key_value()?;
        Some(end.saturating_sub(state.elapsed))
    }

    /// How much longer each sleeper sleeps, the shortest first. Waits that the
    /// server holds are among them.
    pub fn sleepers(&self) -> Vec<Duration> {
        let state = self.state();
        let left = |(end, _): &(Duration, u64)| end.saturating_sub(state.elapsed);
        state.sleepers.keys().map(left).collect()
    }

    /// Completes once `count` sleep at the same time: when all that an actor does is
    /// to wait, for one.
    pub async fn asleep(&self, count: usize) {
        let mut asleep = self.0.asleep.subscribe();
        // The sender lives as long as the clock.
        let _ = asleep.wait_for(|asleep| *asleep >= count).await;
    }

    /// What `TIME` answers: seconds and microseconds.
    pub(crate) fn time(&self) -> [String; 2] {
        let since_start = Duration::from_millis(START.unix_ms().unsigned_abs());
        let now = since_start.saturating_add(self.elapsed());
        [now.as_secs().to_string(), now.subsec_micros().to_string()]
    }

    pub(crate) fn sleep_until(&self, end: Duration) -> Sleep {
        Sleep { clock: self.clone(), end, registered: None }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for VirtualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for VirtualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VirtualClock({:?})", self.elapsed())
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        START.plus(self.elapsed())
    }

    fn elapsed(&self) -> Duration {
        self.state().elapsed
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.sleep_until(self.elapsed().saturating_add(duration)))
    }
}

/// A sleep that ends when the clock has come to `end`. It counts as a sleeper from
/// when it is first polled until it is over or dropped.
pub(crate) struct Sleep {
    clock: VirtualClock,
    end: Duration,
    registered: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let clock = self.clock.clone();
        let mut state = clock.state();
        if state.elapsed >= self.end {
            return Poll::Ready(());
        }
        let id = *self.registered.get_or_insert_with(|| {
            state.last_sleeper += 1;
            state.last_sleeper
        });
        state.sleepers.insert((self.end, id), context.waker().clone());
        clock.0.asleep.send_replace(state.sleepers.len());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(id) = self.registered {
            let mut state = self.clock.state();
            state.sleepers.remove(&(self.end, id));
            self.clock.0.asleep.send_replace(state.sleepers.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn a_sleep_ends_when_the_clock_is_advanced_and_not_before() {
        let clock = VirtualClock::new();
        let sleeper = tokio::spawn(clock.sleep(2 * SECOND));
        clock.asleep(1).await;

        clock.advance(SECOND);
        assert_eq!(clock.sleepers(), [SECOND]);
        clock.advance(SECOND);

        sleeper.await.unwrap();
        assert_eq!(clock.sleepers(), [Duration::ZERO; 0]);
    }

    #[tokio::test]
    async fn the_shortest_sleep_is_the_next() {
        let clock = VirtualClock::new();
        let long = tokio::spawn(clock.sleep(3 * SECOND));
        let short = tokio::spawn(clock.sleep(SECOND));
        clock.asleep(2).await;

        assert_eq!(clock.advance_to_next(), Some(SECOND));
        short.await.unwrap();
        assert_eq!(clock.advance_to_next(), Some(2 * SECOND));
        long.await.unwrap();
        assert_eq!(clock.advance_to_next(), None);
    }

    #[tokio::test]
    async fn a_dropped_sleep_is_no_sleeper() {
        let clock = VirtualClock::new();
        let sleeper = tokio::spawn(clock.sleep(SECOND));
        clock.asleep(1).await;

        sleeper.abort();
        assert!(sleeper.await.unwrap_err().is_cancelled());

        assert_eq!(clock.next_in(), None);
    }

    #[test]
    fn all_readings_move_together() {
        let clock = VirtualClock::new();
        let (now, elapsed) = (clock.now(), clock.elapsed());
        assert_eq!(clock.time(), ["4102444800", "0"].map(str::to_owned));

        clock.advance(Duration::from_micros(1_500_250));

        assert_eq!(clock.now().since(now), Duration::from_millis(1_500));
        assert_eq!(clock.elapsed() - elapsed, Duration::from_micros(1_500_250));
        assert_eq!(clock.time(), ["4102444801", "500250"].map(str::to_owned));
    }
}
