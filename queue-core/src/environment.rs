//! The sources of time and randomness of a queue.
//!
//! Time and randomness are injected, so that a test suite can control them: every
//! sleep, jitter, nonce and id of a backend or worker goes through an [`Environment`].

use std::{
    fmt::{self, Debug},
    future::Future,
    num::NonZeroU32,
    pin::Pin,
    sync::{Arc, OnceLock},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// A point in time by the store's clock, in whole milliseconds since the Unix epoch.
///
/// ```
/// use std::time::{Duration, SystemTime, UNIX_EPOCH};
/// use relq_core::environment::Timestamp;
///
/// let pushed = Timestamp::from_unix_ms(1_000);
/// let due = pushed.plus(Duration::from_secs(60));
/// assert_eq!(due.since(pushed), Duration::from_secs(60));
/// assert_eq!(pushed.since(due), Duration::ZERO);
/// assert_eq!(SystemTime::from(due), UNIX_EPOCH + Duration::from_secs(61));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Creates a timestamp from milliseconds since the Unix epoch.
    pub const fn from_unix_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// Returns the timestamp as milliseconds since the Unix epoch.
    pub const fn unix_ms(self) -> i64 {
        self.0
    }

    /// Returns this time plus `duration`. The result is at most the largest timestamp.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        let ms = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(ms))
    }

    /// Returns how long after `earlier` this time is. Returns zero when it is not
    /// later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(
            u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0),
        )
    }
}

impl From<Timestamp> for SystemTime {
    fn from(at: Timestamp) -> Self {
        match u64::try_from(at.0) {
            Ok(ms) => UNIX_EPOCH + Duration::from_millis(ms),
            Err(_) => UNIX_EPOCH - Duration::from_millis(at.0.unsigned_abs()),
        }
    }
}

/// A source of time, which a test suite can replace.
///
/// ```
/// use std::sync::{Arc, atomic::{AtomicI64, Ordering::SeqCst}};
/// use std::{pin::Pin, time::Duration};
/// use relq_core::environment::{Clock, Environment, SystemClock, Timestamp};
///
/// /// A clock whose time of day changes only when the test changes it.
/// #[derive(Debug)]
/// struct TestClock(AtomicI64);
///
/// impl Clock for TestClock {
///     fn now(&self) -> Timestamp {
///         Timestamp::from_unix_ms(self.0.load(SeqCst))
///     }
///
///     fn elapsed(&self) -> Duration {
///         SystemClock.elapsed()
///     }
///
///     fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
///         SystemClock.sleep(duration)
///     }
/// }
///
/// let clock = Arc::new(TestClock(AtomicI64::new(0)));
/// let environment = Environment::default().with_clock(clock.clone());
/// clock.0.fetch_add(60_000, SeqCst); // a minute later
/// assert_eq!(environment.clock().now(), Timestamp::from_unix_ms(60_000));
/// ```
pub trait Clock: Debug + Send + Sync {
    /// Returns the time of the wall clock. Only a backend without a server, such as
    /// SQLite, decides by a comparison of this time with stored times (R18). A worker
    /// compares it to tell its observers how long ago a job was pushed.
    fn now(&self) -> Timestamp;

    /// Returns the time since some fixed moment. It never decreases.
    fn elapsed(&self) -> Duration;

    /// Completes once `duration` has passed.
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// A source of random bytes, which a test suite can replace.
pub trait Randomness: Debug + Send + Sync {
    /// Overwrites all of `bytes` with random bytes.
    fn fill(&self, bytes: &mut [u8]);

    /// A random number of at least 0.0 and less than 1.0, evenly distributed.
    fn fraction(&self) -> f64 {
        let mut bytes = [0; 4];
        self.fill(&mut bytes);
        f64::from(u32::from_le_bytes(bytes)) / (f64::from(u32::MAX) + 1.0)
    }

    /// Returns a text of `symbols` random characters of `0-9a-v`. Each character holds
    /// five random bits.
    fn text(&self, symbols: usize) -> String {
        const ALPHABET: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";
        let mut bytes = vec![0; symbols];
        self.fill(&mut bytes);
        bytes.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect()
    }
}

/// The clocks of the machine. Its sleeps use a timer that works on every async runtime.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since_epoch =
            SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(0).plus(since_epoch)
    }

    fn elapsed(&self) -> Duration {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        // The timer adds the duration to an `Instant`, which must not overflow.
        Box::pin(futures_timer::Delay::new(duration.min(crate::limits::MAX_DURATION)))
    }
}

/// A random generator per thread, seeded by the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct OsRandomness;

impl Randomness for OsRandomness {
    fn fill(&self, bytes: &mut [u8]) {
        rand::fill(bytes);
    }
}

/// The sources of time and randomness that a backend or worker uses, and the number of
/// jobs that a backend handles in one step.
///
/// ```
/// use relq_core::environment::Environment;
///
/// let environment = Environment::default();
/// assert_eq!(environment.random().text(16).len(), 16);
/// ```
///
/// A test replaces the [clock](Clock), or the randomness:
///
/// ```
/// use std::sync::Arc;
/// use relq_core::environment::{Environment, Randomness, SystemClock};
///
/// /// Always the same bytes, so that ids and delays are the same in each run.
/// #[derive(Debug)]
/// struct Fixed;
///
/// impl Randomness for Fixed {
///     fn fill(&self, bytes: &mut [u8]) {
///         bytes.fill(7);
///     }
/// }
///
/// let environment = Environment::new(Arc::new(SystemClock), Arc::new(Fixed));
/// assert_eq!(environment.random().text(4), "7777");
/// ```
#[derive(Clone)]
pub struct Environment {
    clock: Arc<dyn Clock>,
    random: Arc<dyn Randomness>,
    max_jobs_per_step: NonZeroU32,
}

impl Environment {
    /// The default of [`max_jobs_per_step`](Self::max_jobs_per_step). A Redis server
    /// needs up to 15 us for a job, so a step takes less than 4 ms.
    pub const MAX_JOBS_PER_STEP: NonZeroU32 = NonZeroU32::new(256).expect("not zero");

    /// Creates an environment from a clock and a source of randomness. A step handles
    /// at most [`Self::MAX_JOBS_PER_STEP`] jobs.
    pub fn new(clock: Arc<dyn Clock>, random: Arc<dyn Randomness>) -> Self {
        Self { clock, random, max_jobs_per_step: Self::MAX_JOBS_PER_STEP }
    }

    /// This environment with another clock.
    #[must_use]
    pub fn with_clock(&self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self.clone() }
    }

    /// Returns this environment with steps of at most `max` jobs. Only test suites need
    /// it: with small steps, a few jobs are enough to test the state between two steps.
    #[must_use]
    pub fn with_max_jobs_per_step(&self, max: NonZeroU32) -> Self {
        Self { max_jobs_per_step: max, ..self.clone() }
    }

    /// The most jobs of a call that a backend handles in one script or transaction. A
    /// call for more jobs takes several steps, between which the backend serves other
    /// clients. A push is an exception, because it stores all of its jobs or none (R5).
    /// R21 names the others, which take little time for a job.
    pub fn max_jobs_per_step(&self) -> NonZeroU32 {
        self.max_jobs_per_step
    }

    /// The source of time.
    pub fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// The source of randomness.
    pub fn random(&self) -> &dyn Randomness {
        &*self.random
    }
}

impl Default for Environment {
    /// An environment of the machine's clocks and random generator.
    fn default() -> Self {
        Self::new(Arc::new(SystemClock), Arc::new(OsRandomness))
    }
}

impl Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Environment({:?}, {:?})", self.clock, self.random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Randomness that is always the same byte.
    #[derive(Debug)]
    struct Always(u8);

    impl Randomness for Always {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(self.0);
        }
    }

    /// A delay that is drawn with a fraction of 1.0 would be above its limit.
    #[test]
    fn a_fraction_is_at_least_zero_and_less_than_one() {
        assert_eq!(Always(0).fraction().to_bits(), 0.0_f64.to_bits());
        let largest = Always(u8::MAX).fraction();
        assert!((0.999..1.0).contains(&largest), "the largest is {largest}");
    }

    #[test]
    fn a_text_has_each_symbol_for_as_many_bytes() {
        let texts: String = (0..=u8::MAX).map(|byte| Always(byte).text(1)).collect();
        for symbol in "0123456789abcdefghijklmnopqrstuv".chars() {
            assert_eq!(texts.matches(symbol).count(), 8, "{symbol} in {texts}");
        }
        assert_eq!(Always(1).text(3), "111");
    }

    /// A change of one property of an environment leaves the others as they are.
    #[test]
    fn an_environment_is_changed_in_one_thing() {
        let small = NonZeroU32::new(7).unwrap();
        let first = Environment::new(Arc::new(SystemClock), Arc::new(Always(1)));
        assert_eq!(first.max_jobs_per_step(), Environment::MAX_JOBS_PER_STEP);

        let with_steps = first.with_max_jobs_per_step(small);
        let with_clock = with_steps.with_clock(Arc::new(SystemClock));

        for changed in [with_steps, with_clock] {
            assert_eq!(changed.max_jobs_per_step(), small, "the jobs of a step");
            assert_eq!(changed.random().text(1), "1", "the randomness");
        }
    }

    #[test]
    fn a_time_is_counted_in_milliseconds_and_does_not_overflow() {
        let at = Timestamp::from_unix_ms;
        let second = Duration::from_secs(1);

        assert_eq!(at(7).plus(second), at(1007));
        assert_eq!(at(7).plus(Duration::MAX), at(i64::MAX));
        assert_eq!(at(1007).since(at(7)), second);
        assert_eq!(at(7).since(at(1007)), Duration::ZERO, "it is not later");
        assert_eq!(at(i64::MIN).since(at(i64::MAX)), Duration::ZERO);
        assert_eq!(SystemTime::from(at(1000)), UNIX_EPOCH + second);
        assert_eq!(SystemTime::from(at(-1000)), UNIX_EPOCH - second);
    }
}
