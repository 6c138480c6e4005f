//! The days on which clocks change, and expressions that are refused.

use super::*;

fn cron(expression: &str, zone: &str) -> Cron {
    Cron::new(expression).unwrap().zone(zone).unwrap()
}

fn at(time: &str) -> Timestamp {
    let time: jiff::Timestamp = time.parse().unwrap();
    Timestamp::from_unix_ms(time.as_millisecond())
}

/// The local times of the ticks after `after` and before `until`.
fn ticks(cron: &Cron, after: &str, until: &str) -> Vec<String> {
    let until = at(until);
    let ticks =
        std::iter::successors(cron.next_after(at(after)), |at| cron.next_after(*at));
    ticks.take_while(|at| *at < until).map(|at| cron.local_time(at)).collect()
}

/// Berlin puts its clocks from 02:00 to 03:00 at this moment.
fn spring(expression: &str) -> Vec<String> {
    let cron = cron(expression, "Europe/Berlin");
    ticks(&cron, "2027-03-28T00:29:59+01:00", "2027-03-28T04:59:00+02:00")
}

/// Berlin puts its clocks from 03:00 back to 02:00 on this day.
fn autumn(expression: &str) -> Vec<String> {
    let cron = cron(expression, "Europe/Berlin");
    ticks(&cron, "2027-10-31T00:29:59+02:00", "2027-10-31T03:59:00+01:00")
}

#[test]
fn a_skipped_local_time_ticks_at_the_first_moment_after_the_gap() {
    assert_eq!(spring("30 2 * * *"), ["2027-03-28T03:00:00+02:00"]);
    assert_eq!(spring("0 2 * * *"), ["2027-03-28T03:00:00+02:00"]);
    assert_eq!(spring("59 2 * * *"), ["2027-03-28T03:00:00+02:00"]);
    assert_eq!(spring("30 1 * * *"), ["2027-03-28T01:30:00+01:00"]);
    assert_eq!(spring("0 3 * * *"), ["2027-03-28T03:00:00+02:00"]);
}

#[test]
fn several_skipped_local_times_tick_together() {
    assert_eq!(
        spring("*/15 2,4 * * *"),
        [
            "2027-03-28T03:00:00+02:00",
            "2027-03-28T04:00:00+02:00",
            "2027-03-28T04:15:00+02:00",
            "2027-03-28T04:30:00+02:00",
            "2027-03-28T04:45:00+02:00",
        ]
    );
    assert_eq!(
        spring("0 1-4 * * *"),
        [
            "2027-03-28T01:00:00+01:00",
            "2027-03-28T03:00:00+02:00",
            "2027-03-28T04:00:00+02:00",
        ]
    );
}

#[test]
fn a_repeated_local_time_ticks_when_it_happens_first() {
    assert_eq!(autumn("30 2 * * *"), ["2027-10-31T02:30:00+02:00"]);
    assert_eq!(autumn("0 2 * * *"), ["2027-10-31T02:00:00+02:00"]);
    assert_eq!(autumn("0 3 * * *"), ["2027-10-31T03:00:00+01:00"]);
    assert_eq!(
        autumn("0 1,2,3 * * *"),
        [
            "2027-10-31T01:00:00+02:00",
            "2027-10-31T02:00:00+02:00",
            "2027-10-31T03:00:00+01:00",
        ]
    );
}

/// The scheduler starts in the second of the two hours.
#[test]
fn a_local_time_of_the_first_hour_is_over_in_the_second() {
    let cron = cron("30 2 * * *", "Europe/Berlin");
    let next = cron.next_after(at("2027-10-31T02:10:00+01:00")).unwrap();
    assert_eq!(cron.local_time(next), "2027-11-01T02:30:00+01:00");
}

#[test]
fn how_often_means_time_that_passes() {
    assert_eq!(
        spring("0 * * * *"),
        [
            "2027-03-28T01:00:00+01:00",
            "2027-03-28T03:00:00+02:00",
            "2027-03-28T04:00:00+02:00",
        ]
    );
    assert_eq!(
        autumn("30 * * * *"),
        [
            "2027-10-31T00:30:00+02:00",
            "2027-10-31T01:30:00+02:00",
            "2027-10-31T02:30:00+02:00",
            "2027-10-31T02:30:00+01:00",
            "2027-10-31T03:30:00+01:00",
        ]
    );
    assert_eq!(autumn("* * * * *").len(), 4 * 60 + 29);
    assert_eq!(spring("@hourly"), spring("0 * * * *"));
}

/// Each second hour of the wall clock: in the gap there is none, and two are called 02:00.
#[test]
fn how_often_is_told_by_the_wall_clock() {
    assert_eq!(spring("0 */2 * * *"), ["2027-03-28T04:00:00+02:00"]);
    assert_eq!(
        autumn("0 */2 * * *"),
        ["2027-10-31T02:00:00+02:00", "2027-10-31T02:00:00+01:00"]
    );
    let lord_howe = cron("10 * * * *", "Australia/Lord_Howe");
    assert_eq!(
        ticks(&lord_howe, "2027-10-03T01:00:00+10:30", "2027-10-03T03:30:00+11:00"),
        ["2027-10-03T01:10:00+10:30", "2027-10-03T03:10:00+11:00"]
    );
}

#[test]
fn new_york_changes_its_clocks_on_other_days() {
    let nightly = cron("30 2 * * *", "America/New_York");
    let spring = ticks(&nightly, "2027-03-13T12:00:00Z", "2027-03-15T12:00:00Z");
    assert_eq!(spring, ["2027-03-14T03:00:00-04:00", "2027-03-15T02:30:00-04:00"]);

    let nightly = cron("30 1 * * *", "America/New_York");
    let autumn = ticks(&nightly, "2027-11-06T12:00:00Z", "2027-11-08T12:00:00Z");
    assert_eq!(autumn, ["2027-11-07T01:30:00-04:00", "2027-11-08T01:30:00-05:00"]);
}

/// Lord Howe Island moves its clocks by half an hour, and Samoa once skipped a day.
#[test]
fn other_changes_follow_the_same_rule() {
    let lord_howe = cron("15 2 * * *", "Australia/Lord_Howe");
    let spring = ticks(&lord_howe, "2027-10-02T00:00:00Z", "2027-10-03T00:00:00Z");
    assert_eq!(spring, ["2027-10-03T02:30:00+11:00"]);
    let lord_howe = cron("45 1 * * *", "Australia/Lord_Howe");
    let autumn = ticks(&lord_howe, "2027-04-03T10:00:00Z", "2027-04-04T10:00:00Z");
    assert_eq!(autumn, ["2027-04-04T01:45:00+11:00"]);

    let samoa = cron("0 8 * * *", "Pacific/Apia");
    let skipped = ticks(&samoa, "2011-12-29T17:00:00Z", "2011-12-31T17:00:00Z");
    assert_eq!(
        skipped,
        [
            "2011-12-29T08:00:00-10:00",
            "2011-12-31T00:00:00+14:00",
            "2011-12-31T08:00:00+14:00",
        ]
    );
}

/// Between a winter and the next one the clocks change twice.
#[test]
fn each_change_before_the_next_tick_counts() {
    for (expression, zone, next) in [
        ("0 * 24 12 *", "Europe/Berlin", "2027-12-24T00:00:00+01:00"),
        ("30 * 29 2 *", "America/New_York", "2028-02-29T00:30:00-05:00"),
    ] {
        let cron = cron(expression, zone);
        let tick = cron.next_after(at("2027-01-01T00:00:00Z")).unwrap();
        assert_eq!(cron.local_time(tick), next, "{expression}");
    }
}

#[test]
fn the_last_day_and_leap_days_are_found() {
    let utc = |expression| {
        let cron = Cron::new(expression).unwrap();
        let next = cron.next_after(at("2026-12-01T00:00:00Z")).unwrap();
        cron.local_time(next)
    };
    assert_eq!(utc("0 0 L * *"), "2026-12-31T00:00:00+00:00");
    assert_eq!(utc("0 0 29 2 *"), "2028-02-29T00:00:00+00:00");
    assert_eq!(utc("0 0 * * MON#1"), "2026-12-07T00:00:00+00:00");
    assert_eq!(utc("30 0 0 1 1 *"), "2027-01-01T00:00:30+00:00");
    assert_eq!(utc("@yearly"), "2027-01-01T00:00:00+00:00");
    assert_eq!(utc("0 0 13 * FRI"), "2026-12-04T00:00:00+00:00");
    assert_eq!(utc("0 0 13 * +FRI"), "2027-08-13T00:00:00+00:00");
    // 2100 is no leap year.
    let leap = Cron::new("0 0 29 2 *").unwrap();
    let next = leap.next_after(at("2096-03-01T00:00:00Z")).unwrap();
    assert_eq!(leap.local_time(next), "2104-02-29T00:00:00+00:00");
}

#[test]
fn an_expression_that_never_ticks_is_refused() {
    for expression in ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31 2 +MON"] {
        let error = Cron::new(expression).unwrap_err();
        assert_eq!(error, InvalidSpec::NeverTicks(expression.to_owned()));
    }
}

/// The message names the field to repair.
#[test]
fn an_expression_that_cannot_be_read_is_refused() {
    let bad = [
        ("", "needs five fields", "has 0"),
        ("0", "needs five fields", "has 1"),
        ("0 3 * *", "needs five fields", "has 4"),
        ("0 0 3 * * * 2027", "needs five fields", "has 7"),
        ("60 3 * * *", "the minute is \"60\"", "0 to 59"),
        ("0 24 * * *", "the hour is \"24\"", "0 to 23"),
        ("0 3 0 * *", "the day of the month is \"0\"", "1 to 31"),
        ("0 3 * 13 *", "the month is \"13\"", "1 to 12"),
        ("0 3 * * 8", "the day of the week is \"8\"", "0 to 7"),
        ("60 0 3 * * *", "the second is \"60\"", "0 to 59"),
        ("0 60 3 * * *", "the minute is \"60\"", "0 to 59"),
        ("a b c d e", "the minute is \"a\"", "0 to 59"),
        ("*/0 * * * *", "the minute is \"*/0\"", "0 to 59"),
        ("0 3 * * *; true", "the month is \"*;\"", "1 to 12"),
        ("@reboot", "the names are @hourly", "@yearly"),
    ];
    for (expression, what, allowed) in bad {
        let error = Cron::new(expression).unwrap_err();
        assert!(matches!(error, InvalidSpec::Expression { .. }), "{expression:?}");
        let message = error.to_string();
        assert!(message.contains(what) && message.contains(allowed), "{message}");
    }
}

/// A list of schedules shows them in this form: without the zone, the hour could be any.
#[test]
fn an_expression_is_shown_with_its_zone() {
    let nightly = cron("0  3 * * *", "Europe/Berlin");
    assert_eq!(nightly.to_string(), "0 3 * * * Europe/Berlin");
    assert_eq!(format!("{nightly:?}"), "Cron(0 3 * * * Europe/Berlin)");
}

#[test]
fn an_unknown_zone_is_refused() {
    for zone in ["Europe/Atlantis", "", "CEST", "../../etc/passwd", "+02:00"] {
        let error = Cron::new("0 3 * * *").unwrap().zone(zone).unwrap_err();
        assert_eq!(error, InvalidSpec::Zone(zone.to_owned()));
    }
}

/// Schedulers on two machines would tick at different times.
#[test]
fn a_zone_that_depends_on_the_machine_is_refused() {
    for zone in ["localtime", "LocalTime", "posixrules", "Factory"] {
        let refused = Cron::new("0 3 * * *").unwrap().zone(zone);
        assert_eq!(refused, Err(InvalidSpec::Zone(zone.to_owned())));
    }
}

#[test]
fn times_beyond_the_calendar_have_no_next_tick() {
    for expression in ["0 3 * * *", "* * * * *"] {
        let cron = cron(expression, "Europe/Berlin");
        for ms in [i64::MIN, i64::MAX] {
            assert_eq!(cron.next_after(Timestamp::from_unix_ms(ms)), None);
        }
    }
}
