//! Cron expressions, and their moments in a time zone.
//!
//! An expression matches local times. Most local times are one moment, but on two days
//! of the year the clocks of many zones are changed:
//!
//! ```text
//! forward   01:59:59  03:00:00            02:30 is skipped
//! back      02:59:59  02:00:00 ...        02:30 happens twice
//! ```
//!
//! An expression whose hour field holds `*` says how often the schedule ticks. It
//! ticks at each moment whose local time matches: nothing for the skipped times, since
//! no time passes, and twice for the repeated ones. Any other expression names hours of
//! the day, and each local time ticks once: a skipped one at the first moment after the
//! gap, several skipped ones together, and a repeated one when it happens first. Vixie
//! cron distinguishes the two in the same way.
//!
//! The library `croner` reads the expression and finds matching local times. Which
//! moments they are is decided here, because `croner` treats an expression with several
//! hours, such as `0 2,14 * * *`, as one that says how often.

use std::{fmt, sync::Arc};

use croner::parser::{CronParser, Year};
use jiff::{
    SignedDuration, civil::DateTime, tz::AmbiguousOffset, tz::TimeZone, tz::db,
};
use relq_core::environment::Timestamp;

use crate::{InvalidSpec, fields};

/// Names in the database of a system that are not zones: what each stands for depends on the
/// machine, so two schedulers could tick at different times.
const OF_THE_MACHINE: [&str; 3] = ["localtime", "posixrules", "Factory"];

/// A cron expression in a time zone.
///
/// The expression has five fields, minute, hour, day of the month, month and day of the
/// week, or six, with the second first; or it is one of `@hourly`, `@daily`, `@weekly`,
/// `@monthly` and `@yearly`. A field holds `*`, numbers, ranges, lists, steps such as
/// `*/5`, and names such as `MON` or `JAN`. The syntax is that of
/// [`croner`](https://docs.rs/croner), which also has `L` for the last day and `#` for
/// the nth weekday. If both days are given, either one matches.
///
/// ```
/// use relq_core::environment::Timestamp;
/// use relq_schedule::Cron;
///
/// let nightly = Cron::new("0 3 * * *")?.zone("Europe/Berlin")?;
/// let noon = Timestamp::from_unix_ms(1_796_040_000_000); // 2026-11-30T12:00:00Z
/// let next = nightly.next_after(noon).expect("it ticks each day");
/// assert_eq!(nightly.local_time(next), "2026-12-01T03:00:00+01:00");
/// # Ok::<(), relq_schedule::InvalidSpec>(())
/// ```
///
/// On the days on which the clocks change, an expression whose hour field holds
/// `*` ticks at each moment whose local time matches. Any other expression ticks once
/// for each local time: a skipped one ticks at the first moment after the gap, and a
/// repeated one when it happens first.
#[derive(Clone)]
pub struct Cron {
    expression: String,
    parsed: Arc<croner::Cron>,
    zone: TimeZone,
    zone_name: String,
}

impl Cron {
    /// The expression, in UTC.
    ///
    /// # Errors
    /// [`InvalidSpec::Expression`] if it cannot be read, and
    /// [`InvalidSpec::NeverTicks`] if no day matches it.
    pub fn new(expression: &str) -> Result<Self, InvalidSpec> {
        let expression = expression.split_whitespace().collect::<Vec<_>>().join(" ");
        let parser = CronParser::builder().year(Year::Disallowed).build();
        let parsed = parser.parse(&expression).map_err(|error| {
            let reason = fields::reason(&parser, &expression, &error);
            InvalidSpec::Expression { expression: expression.clone(), reason }
        })?;
        // The search ends in the year 5000. The calendar repeats every 400 years, so an
        // expression that matches no day until then never ticks.
        let start = DateTime::constant(2000, 1, 1, 0, 0, 0, 0);
        if parsed.find_next_occurrence(&start, true).is_err() {
            return Err(InvalidSpec::NeverTicks(expression));
        }
        let (parsed, zone) = (Arc::new(parsed), TimeZone::UTC);
        Ok(Self { expression, parsed, zone, zone_name: "UTC".to_owned() })
    }

    /// Reads the expression as local times of a zone of the IANA database, such as
    /// `Europe/Berlin`. The database is that of the system, or else the one that was
    /// compiled in.
    ///
    /// # Errors
    /// [`InvalidSpec::Zone`] if the database has no such zone, and for `localtime`,
    /// `posixrules` and `Factory`, which depend on the machine.
    pub fn zone(mut self, name: &str) -> Result<Self, InvalidSpec> {
        let unknown = || InvalidSpec::Zone(name.to_owned());
        if OF_THE_MACHINE.iter().any(|other| other.eq_ignore_ascii_case(name)) {
            return Err(unknown());
        }
        let zone = db().get(name).map_err(|_| unknown())?;
        self.zone_name = zone.iana_name().ok_or_else(unknown)?.to_owned();
        self.zone = zone;
        Ok(self)
    }

    /// The expression as text, with one space between its fields.
    pub fn expression(&self) -> &str {
        &self.expression
    }

    /// The name of the time zone.
    pub fn zone_name(&self) -> &str {
        &self.zone_name
    }

    /// The first moment after `after` at which the schedule ticks. `None` if there is
    /// none in the range of the calendar.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let after = jiff::Timestamp::from_millisecond(after.unix_ms()).ok()?;
        let next = if self.parsed.pattern.hours.from_wildcard {
            self.next_match(after)
        } else {
            self.next_local_time(after)
        };
        next.map(|next| Timestamp::from_unix_ms(next.as_millisecond()))
    }

    /// A moment as local time of the zone, in the form of RFC 3339.
    pub fn local_time(&self, at: Timestamp) -> String {
        let Ok(at) = jiff::Timestamp::from_millisecond(at.unix_ms()) else {
            return format!("{} ms", at.unix_ms());
        };
        at.display_with_offset(self.zone.to_offset(at)).to_string()
    }

    /// The next moment whose local time matches. Between two changes of the clocks,
    /// local time passes like any other.
    fn next_match(&self, after: jiff::Timestamp) -> Option<jiff::Timestamp> {
        let mut changes = self.zone.following(after).map(|change| change.timestamp());
        let (mut from, mut is_included) = (after, false);
        loop {
            let offset = self.zone.to_offset(from);
            let local = offset.to_datetime(from);
            let local = self.parsed.find_next_occurrence(&local, is_included).ok()?;
            let next = offset.to_timestamp(local).ok()?;
            match changes.next() {
                Some(change) if change <= next => (from, is_included) = (change, true),
                _ => return Some(next),
            }
        }
    }

    /// The next moment at which a matching local time ticks. An earlier local time never
    /// ticks after a later one, so the first that ticks after `after` is the next.
    fn next_local_time(&self, after: jiff::Timestamp) -> Option<jiff::Timestamp> {
        let mut local = self.zone.to_datetime(after);
        loop {
            local = self.parsed.find_next_occurrence(&local, false).ok()?;
            let next = self.moment_of(local)?;
            if next > after {
                return Some(next);
            }
        }
    }

    /// The moment at which a local time ticks that is to tick once.
    fn moment_of(&self, local: DateTime) -> Option<jiff::Timestamp> {
        let moment = self.zone.to_ambiguous_timestamp(local);
        let AmbiguousOffset::Gap { before, .. } = moment.offset() else {
            return moment.earlier().ok();
        };
        // The local time is in the gap, so by the offset before the change it is the
        // moment of the change or later. One second more, because `preceding` excludes
        // its argument.
        let past = before.to_timestamp(local).ok()?;
        let past = past.checked_add(SignedDuration::from_secs(1)).ok()?;
        self.zone.preceding(past).next().map(|change| change.timestamp())
    }
}

impl PartialEq for Cron {
    fn eq(&self, other: &Self) -> bool {
        (&self.expression, &self.zone_name) == (&other.expression, &other.zone_name)
    }
}

impl fmt::Debug for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cron({self})")
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.expression, self.zone_name)
    }
}

#[cfg(test)]
mod tests;
