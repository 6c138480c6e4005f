//! Fixed intervals.

use std::{fmt, time::Duration};

use relq_core::{environment::Timestamp, limits::MAX_DURATION};

use crate::InvalidSpec;

/// A fixed interval: a schedule ticks at its anchor, and in whole intervals before and
/// after it. The anchor is the Unix epoch unless another is set, so all schedulers
/// compute the same moments.
///
/// ```
/// use std::time::Duration;
/// use relq_core::environment::Timestamp;
/// use relq_schedule::Every;
///
/// let every = Every::new(Duration::from_secs(300))?;
/// let after = Timestamp::from_unix_ms(1_000_000);
/// assert_eq!(every.next_after(after), Some(Timestamp::from_unix_ms(1_200_000)));
/// # Ok::<(), relq_schedule::InvalidSpec>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Every {
    interval: Duration,
    anchor: Timestamp,
}

impl Every {
    /// The interval, counted from the Unix epoch.
    ///
    /// # Errors
    /// [`InvalidSpec::Interval`] for less than a second, more than a hundred years, or a
    /// part of a millisecond.
    pub fn new(interval: Duration) -> Result<Self, InvalidSpec> {
        if interval < Duration::from_secs(1) {
            return Err(InvalidSpec::Interval("is shorter than a second"));
        }
        if interval > MAX_DURATION {
            return Err(InvalidSpec::Interval("is longer than a hundred years"));
        }
        if !interval.subsec_nanos().is_multiple_of(1_000_000) {
            return Err(InvalidSpec::Interval("is not in whole milliseconds"));
        }
        Ok(Self { interval, anchor: Timestamp::from_unix_ms(0) })
    }

    /// Counts the intervals from `anchor`, which may be in the past or in the future.
    /// With an interval of a day, the schedule ticks at this time of each day, in UTC.
    #[must_use]
    pub fn anchor(mut self, anchor: Timestamp) -> Self {
        self.anchor = anchor;
        self
    }

    /// The first moment after `after`. `None` beyond the largest timestamp.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let interval = i128::from(self.interval_ms());
        let anchor = i128::from(self.anchor.unix_ms());
        let since = i128::from(after.unix_ms()) - anchor;
        let next = anchor + (since.div_euclid(interval) + 1) * interval;
        i64::try_from(next).ok().map(Timestamp::from_unix_ms)
    }

    pub(crate) fn interval_ms(&self) -> u64 {
        u64::try_from(self.interval.as_millis()).expect("at most a hundred years")
    }

    pub(crate) fn anchor_ms(&self) -> i64 {
        self.anchor.unix_ms()
    }
}

impl fmt::Display for Every {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Write the interval in the largest unit that divides it.
        let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)];
        let ms = self.interval_ms();
        let fitting = units.into_iter().find(|(_, unit)| ms.is_multiple_of(*unit));
        let (unit, length) = fitting.unwrap_or(("ms", 1));
        write!(f, "every {}{unit}", ms / length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(anchor: i64, after: i64) -> i64 {
        let every = Every::new(Duration::from_secs(10)).unwrap();
        let every = every.anchor(Timestamp::from_unix_ms(anchor));
        every.next_after(Timestamp::from_unix_ms(after)).unwrap().unix_ms()
    }

    #[test]
    fn ticks_are_whole_intervals_from_the_anchor() {
        assert_eq!(next(0, 0), 10_000);
        assert_eq!(next(0, 9_999), 10_000);
        assert_eq!(next(0, 10_000), 20_000);
        assert_eq!(next(0, -1), 0);
        assert_eq!(next(3, 0), 3);
        assert_eq!(next(3, 3), 10_003);
        assert_eq!(next(50_003, 0), 3);
    }

    #[test]
    fn an_interval_is_told_in_its_largest_unit() {
        for (ms, told) in [
            (172_800_000, "every 2d"),
            (129_600_000, "every 36h"),
            (5_400_000, "every 90m"),
            (90_000, "every 90s"),
            (1_500, "every 1500ms"),
        ] {
            let every = Every::new(Duration::from_millis(ms)).unwrap();
            assert_eq!(every.to_string(), told);
        }
    }

    #[test]
    fn the_end_of_time_has_no_next_tick() {
        let every = Every::new(MAX_DURATION).unwrap();
        assert_eq!(every.next_after(Timestamp::from_unix_ms(i64::MAX)), None);
        assert!(every.next_after(Timestamp::from_unix_ms(i64::MIN)).is_some());
    }

    #[test]
    fn what_is_no_interval_is_refused() {
        for (interval, why) in [
            (Duration::ZERO, "shorter"),
            (Duration::from_millis(999), "shorter"),
            (MAX_DURATION + Duration::from_secs(1), "longer"),
            (Duration::from_micros(1_000_500), "milliseconds"),
        ] {
            let error = Every::new(interval).unwrap_err().to_string();
            assert!(error.contains(why), "{interval:?}: {error}");
        }
    }
}
