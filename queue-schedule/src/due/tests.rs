//! Properties of the ticks that are due, on random schedules and times.

use proptest::prelude::*;

use super::*;
use crate::{Cron, Every, ScheduleName, Times, scheduled_for};

const EXPRESSIONS: [&str; 8] = [
    "* * * * *",
    "*/7 * * * *",
    "30 2 * * *",
    "0 2,14 * * *",
    "*/5 1-3 * * *",
    "0 0 L * *",
    "15 30 2 * * SUN",
    "*/20 * 2 * * *",
];

const ZONES: [&str; 4] =
    ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"];

/// From the start of 2027 to its end, in milliseconds.
const YEAR_2027: std::ops::Range<i64> = 1_798_761_600_000..1_830_297_600_000;

fn times() -> impl Strategy<Value = Times> {
    let cron = (0..EXPRESSIONS.len(), 0..ZONES.len()).prop_map(|(expression, zone)| {
        let cron = Cron::new(EXPRESSIONS[expression]).unwrap();
        Times::from(cron.zone(ZONES[zone]).unwrap())
    });
    let every = (1_000..100_000_000_u64, any::<i32>()).prop_map(|(ms, anchor)| {
        let every = Every::new(Duration::from_millis(ms)).unwrap();
        Times::from(every.anchor(Timestamp::from_unix_ms(anchor.into())))
    });
    prop_oneof![cron, every]
}

fn spec() -> impl Strategy<Value = ScheduleSpec> {
    let missed = prop_oneof![Just(Missed::Skip), Just(Missed::Last), Just(Missed::All)];
    (times(), missed).prop_map(|(times, missed)| {
        ScheduleSpec::new(times, "job").unwrap().missed(missed)
    })
}

/// The last tick, and the time of the look: up to a minute, an hour or ten days later.
fn moments() -> impl Strategy<Value = (Timestamp, Timestamp)> {
    let outage = prop_oneof![0..60_000_i64, 0..3_600_000_i64, 0..864_000_000_i64];
    (YEAR_2027, outage).prop_map(|(last, outage)| {
        (Timestamp::from_unix_ms(last), Timestamp::from_unix_ms(last + outage))
    })
}

/// Every tick after `last` up to `now`, found second by second.
fn all_ticks(spec: &ScheduleSpec, last: Timestamp, now: Timestamp) -> Vec<Timestamp> {
    let mut found = Vec::new();
    let mut at = last;
    while let Some(next) = spec.next_after(at).filter(|next| *next <= now) {
        found.push(next);
        at = next;
    }
    found
}

proptest! {
    #[test]
    fn ticks_rise_and_lie_between_the_last_tick_and_now(
        spec in spec(),
        (last, now) in moments(),
    ) {
        let due = spec.due(last, now);
        prop_assert!(due.ticks.len() <= MAX_TICKS);
        let mut before = last;
        for at in &due.ticks {
            prop_assert!(*at > before && *at <= now, "{due:?}");
            before = *at;
        }
        prop_assert!(due.next > Some(before));
        prop_assert!(due.left_out == 0 || spec.missed_ticks() == Missed::All);
    }

    #[test]
    fn a_second_look_finds_nothing_that_the_first_found(
        spec in spec(),
        (last, now) in moments(),
    ) {
        let first = spec.due(last, now);
        prop_assume!(first.ticks.len() < MAX_TICKS);
        prop_assert_eq!(first.left_out, 0);
        let pushed = first.ticks.last().copied().unwrap_or(last);
        let second = spec.due(pushed, now);
        prop_assert_eq!(second.ticks, []);
        prop_assert_eq!(second.next, first.next);
        prop_assert!(second.next.is_none_or(|next| next > now));
    }

    #[test]
    fn each_policy_takes_its_part_of_all_ticks(
        times in times(),
        (last, now) in moments(),
    ) {
        let spec = |missed| ScheduleSpec::new(times.clone(), "job").unwrap().missed(missed);
        let all = all_ticks(&spec(Missed::All), last, now);
        let on_time: Vec<_> =
            all.iter().copied().filter(|at| now.since(*at) <= MISSED_AFTER).collect();
        let due = |missed| spec(missed).due(last, now).ticks;
        let left_out = all.len().saturating_sub(MAX_MISSED);
        let newest = &all[left_out..];
        prop_assert_eq!(&due(Missed::All), &newest[..newest.len().min(MAX_TICKS)]);
        let counted = spec(Missed::All).due(last, now).left_out;
        prop_assert_eq!(counted, left_out.min(MAX_COUNTED));
        prop_assert_eq!(&due(Missed::Skip), &on_time);
        let newest = all.last().copied().into_iter().collect();
        let last_or_on_time = if on_time.is_empty() { newest } else { on_time };
        prop_assert_eq!(due(Missed::Last), last_or_on_time);
    }

    /// A handler learns the moment of its tick to the millisecond.
    #[test]
    fn a_job_names_the_moment_of_its_tick(times in times(), at in YEAR_2027) {
        let tick = times.next_after(Timestamp::from_unix_ms(at)).unwrap();
        let spec = ScheduleSpec::new(times, "job").unwrap();
        let name = ScheduleName::new("poll").unwrap();
        let job = spec.job_of_tick(&name, tick);
        prop_assert_eq!(scheduled_for(&job.headers), Some(tick));
    }

    /// A local time is one tick at most, and the ticks of the day are those of a walk
    /// over all its seconds.
    #[test]
    fn no_tick_is_skipped_between_two_others(
        times in times(),
        at in YEAR_2027,
        step in 0..100_000_i64,
    ) {
        let next = |ms| times.next_after(Timestamp::from_unix_ms(ms));
        let tick = next(at).unwrap();
        let nearer = Timestamp::from_unix_ms(at + step).min(
            Timestamp::from_unix_ms(tick.unix_ms() - 1),
        );
        prop_assert_eq!(next(nearer.unix_ms().max(at)), Some(tick));
        prop_assert!(next(tick.unix_ms()).unwrap() > tick);
    }
}

/// A clock that was set back, or one at its limits, neither hangs nor panics.
#[test]
fn extreme_times_end() {
    let limits = [
        i64::MIN,
        i64::MIN + 1,
        -200_000_001,
        -3,
        -2,
        0,
        1,
        1_798_761_600_000,
        i64::MAX,
    ];
    for times in [
        Times::from(Every::new(Duration::from_secs(1)).unwrap()),
        Times::from(Every::new(Duration::from_secs(86_400)).unwrap()),
        Times::from(Cron::new("0 0 1 * *").unwrap()),
        Times::from(Cron::new("* * * * *").unwrap().zone("Europe/Berlin").unwrap()),
    ] {
        for missed in [Missed::Skip, Missed::Last, Missed::All] {
            let spec = ScheduleSpec::new(times.clone(), "job").unwrap().missed(missed);
            for last in limits {
                for now in limits {
                    let [last, now] = [last, now].map(Timestamp::from_unix_ms);
                    let due = spec.due(last, now);
                    assert!(due.ticks.iter().all(|at| *at > last && *at <= now));
                }
            }
        }
    }
}

#[test]
fn a_tick_is_missed_when_it_is_more_than_a_minute_old() {
    let every = Every::new(Duration::from_secs(3600)).unwrap();
    let spec = ScheduleSpec::new(every, "job").unwrap().missed(Missed::Skip);
    let tick = Timestamp::from_unix_ms(YEAR_2027.start);
    let last = Timestamp::from_unix_ms(YEAR_2027.start - 1);
    assert_eq!(spec.due(last, tick.plus(MISSED_AFTER)).ticks, [tick]);
    let later = tick.plus(MISSED_AFTER + Duration::from_millis(1));
    assert_eq!(spec.due(last, later).ticks, []);
}

/// A tick is due from its own millisecond on.
#[test]
fn the_last_tick_may_be_at_the_moment_of_the_look() {
    let every = Every::new(Duration::from_secs(3600)).unwrap();
    let spec = ScheduleSpec::new(every, "job").unwrap();
    let tick = Timestamp::from_unix_ms(YEAR_2027.start);
    for ms in [1, 3_600_000, 86_400_000] {
        let after = Timestamp::from_unix_ms(YEAR_2027.start - ms);
        assert_eq!(spec.last_between(after, tick), Some(tick), "{ms} ms before it");
    }
}

#[test]
fn one_job_makes_up_for_a_year() {
    let daily = Cron::new("30 2 * * *").unwrap().zone("Europe/Berlin").unwrap();
    let spec = ScheduleSpec::new(daily.clone(), "job").unwrap();
    let last = Timestamp::from_unix_ms(YEAR_2027.start);
    let now = Timestamp::from_unix_ms(YEAR_2027.end);
    let due = spec.due(last, now);
    let times: Vec<_> = due.ticks.iter().map(|at| daily.local_time(*at)).collect();
    assert_eq!(times, ["2027-12-31T02:30:00+01:00"]);
}

#[test]
fn policies_are_read_and_written_in_one_word() {
    for missed in [Missed::Skip, Missed::Last, Missed::All] {
        assert_eq!(missed.to_string().parse(), Ok(missed));
    }
    assert!("some".parse::<Missed>().is_err());
}
