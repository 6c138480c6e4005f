//! A clock that moves only when the suite advances it.

use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use relq_core::environment::{Clock, Timestamp};
use tokio::sync::watch;

/// The time at which the clock starts: the first of January 2100. A fixed start makes
/// runs reproducible. It is in the future because the server deletes keys with a time
/// to live by its own clock: no expiry time that was set by this clock has passed
/// there.
const START: Timestamp = Timestamp::from_unix_ms(4_102_444_800_000);

/// A clock that stands still until it is advanced. Clones share one clock.
///
/// A case has only this clock: actors sleep on it, the proxy answers `TIME` from it,
/// and it decides when a blocking command on the server times out.
#[derive(Clone)]
pub struct VirtualClock(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    asleep: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    elapsed: Duration,
    /// By how much the time of day was set back.
    set_back: Duration,
    /// The time that the last script saw. `None` before the first script.
    last_script: Option<Duration>,
    /// Whether two scripts may see the same time. Otherwise each script sees a later time
    /// than the last one.
    is_still_in_scripts: bool,
    last_sleeper: u64,
    sleepers: BTreeMap<(Duration, u64), Waker>,
}

impl VirtualClock {
    /// A new clock at its start time, which is the same in each run.
    pub fn new() -> Self {
        let asleep = watch::Sender::new(0);
        Self(Arc::new(Shared { state: Mutex::default(), asleep }))
    }

    /// Advances the clock and wakes all sleepers whose time has come.
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

    /// Sets the time of day back, as the correction of a clock that was ahead does. It
    /// changes no sleep, and not [`elapsed`](Clock::elapsed).
    pub fn set_back(&self, by: Duration) {
        let mut state = self.state();
        state.set_back = state.set_back.saturating_add(by);
    }

    /// Advances to the end of the sleep that ends first. Returns the time advanced, or
    /// `None` when nothing sleeps.
    pub fn advance_to_next(&self) -> Option<Duration> {
        let by = self.next_in()?;
        self.advance(by);
        Some(by)
    }

    /// The time until the end of the sleep that ends first. `None` when nothing sleeps.
    pub fn next_in(&self) -> Option<Duration> {
        let state = self.state();
        let ((end, _), _) = state.sleepers.first_key_value()?;
        Some(end.saturating_sub(state.elapsed))
    }

    /// The remaining time of each sleeper, the shortest first. Commands that wait on
    /// the server are included.
    pub fn sleepers(&self) -> Vec<Duration> {
        let state = self.state();
        let left = |(end, _): &(Duration, u64)| end.saturating_sub(state.elapsed);
        state.sleepers.keys().map(left).collect()
    }

    /// Completes once `count` tasks sleep at the same time. That shows, for example,
    /// that an actor can only wait.
    pub async fn asleep(&self, count: usize) {
        let mut asleep = self.0.asleep.subscribe();
        // The channel stays open, because its sender lives as long as the clock.
        let _ = asleep.wait_for(|asleep| *asleep >= count).await;
    }

    /// The proxy's reply to `TIME`: seconds and microseconds.
    pub(crate) fn time(&self) -> [String; 2] {
        let state = self.state();
        reply(state.time_of_day(state.elapsed))
    }

    /// From now on two scripts see the same time unless the clock is advanced between
    /// them. Then two runs that execute the same scripts in different orders can leave
    /// equal data.
    pub fn hold_still_in_scripts(&self) {
        self.state().is_still_in_scripts = true;
    }

    /// The reply to `TIME` in the next script. No server runs two scripts in the same
    /// microsecond, so it is later than in the last one, by one microsecond at least.
    /// It stays within a millisecond of the clock.
    pub(crate) fn time_of_next_script(&self) -> [String; 2] {
        let mut state = self.state();
        if state.is_still_in_scripts {
            return reply(state.time_of_day(state.elapsed));
        }
        let next = state.last_script.map(|last| last + Duration::from_micros(1));
        let end = state.elapsed + Duration::from_micros(999);
        let script = next.unwrap_or_default().clamp(state.elapsed, end);
        state.last_script = Some(script);
        reply(state.time_of_day(script))
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

impl State {
    /// The time of day, since 1970, when `elapsed` has passed since the start.
    fn time_of_day(&self, elapsed: Duration) -> Duration {
        let start = Duration::from_millis(START.unix_ms().unsigned_abs());
        start.saturating_add(elapsed).saturating_sub(self.set_back)
    }
}

/// A time of day as a server replies it to `TIME`: seconds and microseconds.
fn reply(now: Duration) -> [String; 2] {
    [now.as_secs().to_string(), now.subsec_micros().to_string()]
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        let state = self.state();
        Timestamp::from_unix_ms(0).plus(state.time_of_day(state.elapsed))
    }

    fn elapsed(&self) -> Duration {
        self.state().elapsed
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.sleep_until(self.elapsed().saturating_add(duration)))
    }
}

/// A sleep that ends when the clock reaches `end`. It counts as a sleeper from its
/// first poll until it ends or is dropped.
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

    /// A clock that is set back shows an earlier time in all places, and measures the same
    /// durations.
    #[test]
    fn a_clock_that_is_set_back_measures_the_same_durations() {
        let clock = VirtualClock::new();
        let (now, elapsed) = (clock.now(), clock.elapsed());

        clock.set_back(2 * SECOND);
        clock.advance(SECOND);

        assert_eq!(clock.elapsed() - elapsed, SECOND);
        assert_eq!(now.since(clock.now()), SECOND);
        let replied = ["4102444799", "0"].map(str::to_owned);
        assert_eq!(clock.time(), replied);
        assert_eq!(clock.time_of_next_script(), replied, "in a script");
    }
}
