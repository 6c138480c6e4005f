//! The policy that decides how long a failed job waits for its next attempt.

use std::time::Duration;

use relq_core::{environment::Randomness, limits::MAX_DURATION};

use crate::InvalidSetting;

/// Exponential back-off with full jitter: before attempt `n + 1` a job waits for a
/// time drawn evenly between the floor and `first * 2^(n - 1)`, at most the cap.
///
/// Full jitter spreads jobs that failed together, and costs the store least of the
/// usual kinds (Marc Brooker, "Exponential Backoff And Jitter", AWS 2015).
///
/// The job itself sets the number of attempts:
/// [`max_attempts`](relq_core::NewJob::max_attempts).
///
/// ```
/// use std::time::Duration;
/// use relq_core::environment::Environment;
/// use relq_worker::RetryPolicy;
///
/// let (second, hour) = (Duration::from_secs(1), Duration::from_secs(3600));
/// let policy = RetryPolicy::exponential(second, hour)?.at_least(second / 2)?;
///
/// let after_the_third = policy.delay(3, Environment::default().random());
/// assert!((second / 2..=4 * second).contains(&after_the_third));
/// # Ok::<(), relq_worker::InvalidSetting>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    first: Duration,
    cap: Duration,
    floor: Duration,
}

impl RetryPolicy {
    /// A policy whose delay is at most `first` after the first attempt, doubles after
    /// each, and is never above `cap`.
    ///
    /// # Errors
    /// When `first` is zero or above `cap`, or `cap` above [`MAX_DURATION`].
    pub fn exponential(first: Duration, cap: Duration) -> Result<Self, InvalidSetting> {
        let refuse =
            |reason: &str| Err(InvalidSetting::new("the retry policy", reason));
        if first.is_zero() {
            return refuse("begins with a delay of zero: give at least a millisecond");
        }
        if first > cap {
            return refuse("begins with a delay above its cap");
        }
        if cap > MAX_DURATION {
            return refuse("has a cap of more than a hundred years");
        }
        Ok(Self { first, cap, floor: Duration::ZERO })
    }

    /// Sets the shortest delay before a retry.
    ///
    /// # Errors
    /// When `floor` is above the cap.
    pub fn at_least(mut self, floor: Duration) -> Result<Self, InvalidSetting> {
        if floor > self.cap {
            let reason = "has a least delay above its cap";
            return Err(InvalidSetting::new("the retry policy", reason));
        }
        self.floor = floor;
        Ok(self)
    }

    /// How long a job waits after its attempt number `attempt`, counted from 1.
    pub fn delay(&self, attempt: u32, random: &dyn Randomness) -> Duration {
        let ceiling = doubled(self.first, attempt.saturating_sub(1)).min(self.cap);
        let spread = ceiling.saturating_sub(self.floor);
        self.floor + spread.mul_f64(random.fraction())
    }
}

impl Default for RetryPolicy {
    /// Up to one second after the first attempt, and up to an hour after any. With the
    /// default of 25 attempts, the attempts of a job spread over about seven hours on
    /// average.
    fn default() -> Self {
        Self {
            first: Duration::from_secs(1),
            cap: Duration::from_secs(60 * 60),
            floor: Duration::ZERO,
        }
    }
}

/// Returns `first * 2^times`, or `Duration::MAX` if the product is larger.
pub(crate) fn doubled(first: Duration, times: u32) -> Duration {
    2_u32
        .checked_pow(times)
        .map_or(Duration::MAX, |factor| first.saturating_mul(factor))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A source of randomness that always returns the same fraction.
    #[derive(Debug)]
    struct Always(f64);

    impl Randomness for Always {
        fn fill(&self, _: &mut [u8]) {}

        fn fraction(&self) -> f64 {
            self.0
        }
    }

    const SECOND: Duration = Duration::from_secs(1);

    fn durations() -> impl Strategy<Value = Duration> {
        (0..=u64::MAX, 0..64_u32).prop_map(|(n, shift)| {
            Duration::from_nanos(n >> shift).min(MAX_DURATION).max(SECOND / 1000)
        })
    }

    proptest! {
        /// For any attempt and any random draw, a delay is between the floor and the
        /// cap.
        #[test]
        fn a_delay_keeps_its_bounds(
            mut bounds in [durations(), durations(), durations()],
            attempt: u32,
            draw in 0.0..1.0,
        ) {
            bounds.sort();
            let [floor, first, cap] = bounds;
            let policy =
                RetryPolicy::exponential(first, cap).unwrap().at_least(floor).unwrap();
            let delay = policy.delay(attempt, &Always(draw));
            prop_assert!((floor..=cap).contains(&delay), "{:?} {:?}", policy, delay);
        }

        /// A delay grows with the random draw, from the floor up to a longest delay,
        /// which doubles with each attempt.
        #[test]
        fn the_ceiling_doubles_until_the_cap(attempt in 1..=10_u32) {
            let policy = RetryPolicy::exponential(SECOND, SECOND * 100).unwrap();
            let ceiling = (SECOND * 2_u32.pow(attempt - 1)).min(SECOND * 100);
            prop_assert_eq!(policy.delay(attempt, &Always(0.0)), Duration::ZERO);
            prop_assert_eq!(policy.delay(attempt, &Always(0.5)), ceiling / 2);
        }
    }

    /// The pauses of a long outage do not become short again when the factor has more
    /// bits than its type.
    #[test]
    fn doubling_never_makes_a_pause_shorter() {
        let pauses: Vec<_> =
            (0..100).map(|times| doubled(SECOND / 20, times)).collect();
        assert_eq!(pauses[..3], [SECOND / 20, SECOND / 10, SECOND / 5]);
        assert!(pauses.is_sorted(), "a pause gets shorter: {pauses:?}");
    }

    #[test]
    fn the_default_waits_up_to_a_second_and_at_most_an_hour() {
        let longest = [1, 2, 3, 12, 13, 25]
            .map(|attempt| RetryPolicy::default().delay(attempt, &Always(1.0)));
        let expected = [1, 2, 4, 2048, 3600, 3600].map(Duration::from_secs);
        assert_eq!(longest, expected, "the longest delays after these attempts");
    }

    /// A draw of a half, for example, is in the middle between the floor and the ceiling.
    #[test]
    fn a_delay_is_drawn_evenly_above_the_floor() {
        let policy = RetryPolicy::exponential(SECOND * 4, SECOND * 100).unwrap();
        let policy = policy.at_least(SECOND * 2).unwrap();
        let delays = [0.0, 0.25, 0.5, 1.0]
            .map(|draw| policy.delay(1, &Always(draw)).as_millis());
        assert_eq!(delays, [2000, 2500, 3000, 4000]);
    }

    #[test]
    fn a_first_delay_below_the_floor_waits_for_the_floor() {
        let policy = RetryPolicy::exponential(SECOND, SECOND * 100).unwrap();
        let policy = policy.at_least(SECOND * 10).unwrap();
        assert_eq!(policy.delay(1, &Always(0.9)), SECOND * 10);
    }
}
