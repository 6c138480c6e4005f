//! Reads the time of `relq push --at`.

use std::{
    env,
    time::{Duration, SystemTime},
};

use jiff::{Timestamp, Zoned, civil, fmt::rfc2822, tz::TimeZone};

/// When jobs become ready, by the clock of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DueAt(Timestamp);

const FORMS: &str = "a time is given as 2026-12-24T18:00:00Z or with an offset such as \
                     +01:00, as 2026-12-24T18:00[Europe/Berlin], or without a zone, as \
                     2026-12-24T18:00 or 18:00, which is the local time";

impl DueAt {
    /// Parses a time. A time without a zone is the local time, and an hour without a
    /// date is the next one.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        Self::parse_at(text, || Ok(Timestamp::now().to_zoned(local_zone()?)))
    }

    /// The time that is left until then. Zero if it has passed.
    pub(super) fn delay(self) -> Duration {
        let at = SystemTime::from(self.0);
        at.duration_since(SystemTime::now()).unwrap_or_default()
    }

    fn parse_at(
        text: &str,
        now: impl FnOnce() -> Result<Zoned, String>,
    ) -> Result<Self, String> {
        let text = text.trim();
        if text.contains('[') {
            // The other parsers ignore the zone, and an offset that contradicts it.
            let at = text.parse::<Zoned>();
            let at = at.map_err(|error| format!("{error}; {FORMS}"))?;
            return Ok(Self(at.timestamp()));
        }
        let whole = text.parse::<Timestamp>().ok();
        let whole = whole.or_else(|| Some(rfc2822::parse(text).ok()?.timestamp()));
        if let Some(whole) = whole {
            return Ok(Self(whole));
        }
        if has_offset(text) {
            return Err(FORMS.to_owned());
        }
        let (at, time) = (text.parse().ok(), text.parse().ok());
        let is_local = at.is_some() || time.is_some();
        let now = is_local.then(now).ok_or(FORMS)??;
        let at = at.and_then(|at| local_time(at, now.time_zone()));
        let at = at.or_else(|| next(time?, &now));
        at.map(Self).ok_or_else(|| FORMS.to_owned())
    }
}

/// Whether a time ends with an offset, which the parsers of local times ignore.
fn has_offset(text: &str) -> bool {
    let time = text.rsplit(['T', 't', ' ']).next().unwrap_or(text);
    time.contains('+') || time.contains(':') && time.contains('-')
}

/// The zone of this machine. A machine that names none, as most containers, has UTC.
fn local_zone() -> Result<TimeZone, String> {
    let named = env::var("TZ").unwrap_or_default();
    match TimeZone::try_system() {
        Ok(zone) => Ok(zone),
        Err(_) if named.is_empty() => Ok(TimeZone::UTC),
        Err(_) => Err(format!(
            "the time zone {named:?} of the variable TZ is unknown on this machine: give the \
             time with a zone, as 2026-12-24T18:00Z or 2026-12-24T18:00[Europe/Berlin]"
        )),
    }
}

fn local_time(at: civil::DateTime, zone: &TimeZone) -> Option<Timestamp> {
    Some(at.to_zoned(zone.clone()).ok()?.timestamp())
}

/// The next moment at which the local clock shows this time. If the clock skips it, the
/// moment is as much later as the clock goes forward.
fn next(time: civil::Time, now: &Zoned) -> Option<Timestamp> {
    let today = now.time_zone().to_ambiguous_zoned(now.date().to_datetime(time));
    // When the clock goes back, it shows some times twice.
    let shown = [today.clone().compatible().ok()?, today.later().ok()?];
    let next = shown.iter().map(Zoned::timestamp).find(|at| *at > now.timestamp());
    next.or_else(|| {
        let tomorrow = now.date().tomorrow().ok()?;
        local_time(tomorrow.to_datetime(time), now.time_zone())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<String, String> {
        let now = "2026-12-24T18:30:00+01:00[Europe/Berlin]".parse().unwrap();
        DueAt::parse_at(text, || Ok(now)).map(|it| it.0.to_string())
    }

    #[test]
    fn a_time_is_read_in_many_forms() {
        for (text, at) in [
            ("2026-12-25T09:00:00Z", "2026-12-25T09:00:00Z"),
            ("2026-12-25 09:00:00+02:00", "2026-12-25T07:00:00Z"),
            ("2026-12-25T09:00:00.5Z", "2026-12-25T09:00:00.5Z"),
            ("2026-12-25T09:00[America/New_York]", "2026-12-25T14:00:00Z"),
            ("Fri, 25 Dec 2026 09:00:00 +0000", "2026-12-25T09:00:00Z"),
            ("2026-12-25T09:00", "2026-12-25T08:00:00Z"),
            ("2026-07-01 09:00", "2026-07-01T07:00:00Z"),
            ("2026-12-25", "2026-12-24T23:00:00Z"),
            ("19:00", "2026-12-24T18:00:00Z"),
            ("18:30", "2026-12-25T17:30:00Z"),
            ("09:00:30", "2026-12-25T08:00:30Z"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(at), "{text}");
        }
    }

    /// On 2026-10-25 the clock in Berlin goes back from 3:00 to 2:00.
    #[test]
    fn a_time_that_the_clock_shows_twice_is_the_next_of_the_two() {
        for (now, at) in [
            ("2026-10-25T02:15:00+02:00", "2026-10-25T00:30:00Z"),
            ("2026-10-25T02:45:00+02:00", "2026-10-25T01:30:00Z"),
            ("2026-10-25T02:15:00+01:00", "2026-10-25T01:30:00Z"),
            ("2026-10-25T02:45:00+01:00", "2026-10-26T01:30:00Z"),
        ] {
            let now: Zoned = format!("{now}[Europe/Berlin]").parse().unwrap();
            let next = next("02:30".parse().unwrap(), &now).unwrap();
            assert_eq!(next.to_string(), at, "{now}");
        }
    }

    /// On 2027-03-28 the clock in Berlin goes forward from 2:00 to 3:00. Each form of a time
    /// that it skips is the same moment.
    #[test]
    fn a_time_that_the_clock_skips_is_later_by_what_it_skips() {
        let now: Zoned = "2027-03-28T01:15:00+01:00[Europe/Berlin]".parse().unwrap();
        for text in ["02:30", "2027-03-28T02:30", "2027-03-28T02:30[Europe/Berlin]"] {
            let at = DueAt::parse_at(text, || Ok(now.clone())).unwrap();
            assert_eq!(at.0.to_string(), "2027-03-28T01:30:00Z", "{text}");
        }
    }

    #[test]
    fn a_text_that_is_no_time_is_refused_with_the_forms() {
        for text in ["", "soon", "25:00", "2026-13-01", "1h", "1766600000"] {
            assert_eq!(read(text), Err(FORMS.to_owned()), "{text}");
        }
    }

    /// The parsers of local times skip a zone or an offset behind the time. If they read such
    /// a text, the job would become ready at that time of this machine's zone.
    #[test]
    fn a_zone_or_an_offset_that_cannot_be_used_is_refused() {
        for (text, named) in [
            ("2026-12-24T18:00[Europe/Berlim]", "Europe/Berlim"),
            ("2026-12-24T18:00[MEZ]", "MEZ"),
            ("2026-12-24T18:00Z[Europe/Berlim]", "Europe/Berlim"),
            ("2026-12-24T18:00+05:00[Europe/Berlin]", "Europe/Berlin"),
            ("18:00[Europe/Berlin]", FORMS),
            ("18:00+01:00", FORMS),
            ("18:00-05:00", FORMS),
            ("18+01", FORMS),
            ("9999-12-31T23:59-10:00", FORMS),
        ] {
            let error = read(text).expect_err(text);
            assert!(error.contains(named) && error.contains(FORMS), "{text}: {error}");
        }
    }

    #[test]
    fn a_time_that_has_passed_leaves_no_delay() {
        assert_eq!(DueAt::parse("1999-01-01").unwrap().delay(), Duration::ZERO);
        assert!(!DueAt::parse("2999-01-01").unwrap().delay().is_zero());
    }
}
