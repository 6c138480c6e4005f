//! The headers that each job of a schedule carries.

use relq_core::{Headers, environment::Timestamp};

/// The header with the name of the schedule that pushed a job.
pub const SCHEDULE_HEADER: &str = "relq-schedule";

/// The header with the moment of the tick that pushed a job, as a time of RFC 3339 in
/// UTC, such as `2027-03-28T01:00:00Z`. The job may be pushed later than that, after an
/// outage.
pub const SCHEDULED_FOR_HEADER: &str = "relq-scheduled-for";

/// The moment of the tick that pushed a job. `None` for a job of no schedule.
///
/// ```
/// use relq_core::Headers;
/// use relq_schedule::{SCHEDULED_FOR_HEADER, scheduled_for};
///
/// let headers: Headers =
///     [(SCHEDULED_FOR_HEADER, "2027-03-28T01:00:00Z")].into_iter().collect();
/// let at = scheduled_for(&headers).expect("it is there");
/// assert_eq!(at.unix_ms(), 1_806_195_600_000);
/// ```
pub fn scheduled_for(headers: &Headers) -> Option<Timestamp> {
    let at: jiff::Timestamp = headers.get(SCHEDULED_FOR_HEADER)?.parse().ok()?;
    Some(Timestamp::from_unix_ms(at.as_millisecond()))
}

/// A moment as a time of RFC 3339 in UTC. Beyond the calendar, which no tick of a cron
/// expression is, it is a number of milliseconds.
pub(crate) fn rfc_3339(at: Timestamp) -> String {
    match jiff::Timestamp::from_millisecond(at.unix_ms()) {
        Ok(time) => time.to_string(),
        Err(_) => at.unix_ms().to_string(),
    }
}
