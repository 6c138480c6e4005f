//! Which ticks to push now: those that are on time, and the missed ones that the policy
//! of the schedule asks for.

use std::{fmt, str::FromStr, time::Duration};

use relq_core::environment::Timestamp;

use crate::ScheduleSpec;

/// A tick that is older than this when a scheduler looks was missed: no scheduler ran,
/// or the store was unavailable. A younger one is on time, and is pushed.
pub const MISSED_AFTER: Duration = Duration::from_secs(60);

/// The most ticks of a schedule that a scheduler pushes before it looks at the next
/// schedule.
pub const MAX_TICKS: usize = 100;

/// The most ticks that [`Missed::All`] pushes after an outage: the newest ones. A schedule
/// that ticks each minute missed 525,600 in a year, and their jobs would hold up all
/// others.
pub const MAX_MISSED: usize = 1000;

/// Up to which number the ticks that are left out are counted.
const MAX_COUNTED: usize = 10_000;

/// How a scheduler treats missed ticks, which are those older than [`MISSED_AFTER`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Missed {
    /// They are not pushed.
    Skip,
    /// The last of them is pushed, unless a later tick is on time. So if a schedule ticks
    /// once a minute or less often, one job makes up for an outage of any length.
    #[default]
    Last,
    /// All are pushed, in their order, each by a job of its own; but of more than
    /// [`MAX_MISSED`] only the newest.
    All,
}

impl Missed {
    /// The policy in one word, as definitions and command lines hold it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Skip => "skip",
            Self::Last => "last",
            Self::All => "all",
        }
    }
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Missed {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let all = [Self::Skip, Self::Last, Self::All];
        let found = all.into_iter().find(|missed| missed.as_str() == word);
        found.ok_or_else(|| "the missed ticks are one of skip, last, all".to_owned())
    }
}

/// The ticks of a schedule to push now.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Due {
    /// The moments, in order, at most [`MAX_TICKS`] of them. Each is later than the last
    /// tick, and not later than now.
    pub ticks: Vec<Timestamp>,
    /// The first tick that is not among them: when to look again. It is due already if
    /// there are more than [`MAX_TICKS`]. `None` if the schedule never ticks again.
    pub next: Option<Timestamp>,
    /// How many ticks [`Missed::All`] leaves out, because more than [`MAX_MISSED`] later
    /// ones are due. They are counted up to 10,000.
    pub left_out: usize,
}

impl ScheduleSpec {
    /// The ticks to push at the time `now`, of a schedule whose last tick was at
    /// `last_tick`. Both are by the store's clock.
    ///
    /// ```
    /// use std::time::Duration;
    /// use relq_core::environment::Timestamp;
    /// use relq_schedule::{Every, Missed, ScheduleSpec};
    ///
    /// let hourly = ScheduleSpec::new(Every::new(Duration::from_secs(3600))?, "poll")?;
    /// let hour = |n: i64| Timestamp::from_unix_ms(n * 3_600_000);
    /// let now = hour(5).plus(Duration::from_secs(600));
    ///
    /// let due = |missed| hourly.clone().missed(missed).due(hour(2), now);
    /// assert_eq!(due(Missed::Skip).ticks, []);
    /// assert_eq!(due(Missed::Last).ticks, [hour(5)]);
    /// assert_eq!(due(Missed::All).ticks, [hour(3), hour(4), hour(5)]);
    /// assert_eq!(due(Missed::All).next, Some(hour(6)));
    /// # Ok::<(), relq_schedule::InvalidSpec>(())
    /// ```
    pub fn due(&self, last_tick: Timestamp, now: Timestamp) -> Due {
        let after = match self.missed_ticks() {
            Missed::All => self.before_newest(last_tick, now),
            Missed::Skip | Missed::Last => last_tick.max(newest_missed(now)),
        };
        let mut ticks: Vec<_> =
            self.ticks_between(after, now).take(MAX_TICKS).collect();
        if ticks.is_empty() && self.missed_ticks() == Missed::Last {
            ticks.extend(self.last_between(last_tick, now));
        }
        let last = ticks.last().copied().unwrap_or(after);
        let left_out = match self.missed_ticks() {
            Missed::All => {
                self.ticks_between(last_tick, after).take(MAX_COUNTED).count()
            }
            Missed::Skip | Missed::Last => 0,
        };
        Due { next: self.next_after(last), ticks, left_out }
    }

    /// The ticks after `after` that are not later than `now`.
    fn ticks_between(
        &self,
        after: Timestamp,
        now: Timestamp,
    ) -> impl Iterator<Item = Timestamp> {
        let next = |at: &Timestamp| self.next_after(*at);
        let ticks = std::iter::successors(self.next_after(after), next);
        ticks.take_while(move |at| *at <= now)
    }

    /// A moment after which there are at most [`MAX_MISSED`] ticks up to `now`: the last
    /// tick, or else a moment right before the newest of them. Halves the time as
    /// [`last_between`](Self::last_between) does.
    fn before_newest(&self, last_tick: Timestamp, now: Timestamp) -> Timestamp {
        let count = |ms| {
            let after = Timestamp::from_unix_ms(ms);
            self.ticks_between(after, now).take(MAX_MISSED + 1).count()
        };
        let (mut low, mut high) = (last_tick.unix_ms(), now.unix_ms());
        if count(low) <= MAX_MISSED {
            return last_tick;
        }
        while low < high - 1 {
            let middle = low.midpoint(high);
            match count(middle) {
                MAX_MISSED => return Timestamp::from_unix_ms(middle),
                more if more > MAX_MISSED => low = middle,
                _ => high = middle,
            }
        }
        Timestamp::from_unix_ms(high)
    }

    /// The last tick after `after` that is not later than `now`. Halves the time between
    /// them again and again, because a schedule can only be asked for its next tick.
    fn last_between(&self, after: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let next_due = |ms| {
            let next = self.next_after(Timestamp::from_unix_ms(ms));
            next.filter(|at| *at <= now)
        };
        let (mut low, mut high) = (after.unix_ms(), now.unix_ms());
        let mut last = next_due(low)?;
        while low < high {
            // Before 1970 `midpoint` rounds up, and the search would not end.
            let middle = low.midpoint(high).min(high - 1);
            match next_due(middle) {
                Some(at) => (last, low) = (at, at.unix_ms()),
                None => high = middle,
            }
        }
        Some(last)
    }
}

/// The latest moment that is missed at the time `now`.
fn newest_missed(now: Timestamp) -> Timestamp {
    let ms = i64::try_from(MISSED_AFTER.as_millis()).expect("a minute");
    Timestamp::from_unix_ms(now.unix_ms().saturating_sub(ms + 1))
}

#[cfg(test)]
mod tests;
