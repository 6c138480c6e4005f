use relq_core::{Bytes, NewJob, Priority, unique::OnDuplicate};

use super::*;
use crate::Missed;

fn daily(job: impl Into<NewJob>) -> ScheduleSpec {
    let cron = Cron::new(" 0  3 * * * ").unwrap().zone("europe/berlin").unwrap();
    ScheduleSpec::new(cron, job).unwrap()
}

fn text(spec: &ScheduleSpec) -> String {
    String::from_utf8(spec.to_definition()).unwrap()
}

fn error(definition: &str) -> UnreadableDefinition {
    ScheduleSpec::from_definition(definition.as_bytes()).unwrap_err()
}

/// Stores hold these bytes, and every later version must read them.
#[test]
fn definitions_keep_their_form() {
    assert_eq!(
        text(&daily("report")),
        r#"{"version":1,"cron":"0 3 * * *","zone":"Europe/Berlin","missed":"last","job":{"payload":"report","priority":5,"max_attempts":25}}"#
    );
    let every = Every::new(Duration::from_millis(90_500)).unwrap();
    let every = every.anchor(Timestamp::from_unix_ms(-7));
    let spec = ScheduleSpec::new(every, full_job()).unwrap().missed(Missed::All);
    assert_eq!(
        text(&spec),
        r#"{"version":1,"every_ms":90500,"anchor_ms":-7,"missed":"all","job":{"payload_base64":"/wA=","priority":9,"max_attempts":3,"delay_ms":5000,"expires_in_ms":60000,"lease_ms":90000,"unique":"one at a time","on_duplicate":"reschedule","headers":[["kind","poll"],["b","="]]}}"#
    );
}

/// Only a job that keeps its result needs version 2, which earlier schedulers refuse.
#[test]
fn a_job_that_keeps_its_result_has_a_definition_of_version_2() {
    let kept = NewJob::new("report").keep_result(Duration::from_secs(3600));
    assert_eq!(
        text(&daily(kept)),
        r#"{"version":2,"cron":"0 3 * * *","zone":"Europe/Berlin","missed":"last","job":{"payload":"report","priority":5,"max_attempts":25,"keep_result_ms":3600000}}"#
    );
}

fn full_job() -> NewJob {
    let key = relq_core::unique::UniqueKey::new("one at a time").unwrap();
    NewJob::new(Bytes::from_static(b"\xff\0"))
        .priority(Priority::HIGHEST)
        .max_attempts(std::num::NonZeroU16::new(3).unwrap())
        .delay(Duration::from_secs(5))
        .expires_in(Duration::from_secs(60))
        .lease(Duration::from_secs(90))
        .unique_or(key, OnDuplicate::Reschedule)
        .header("kind", "poll")
        .header("b", "=")
}

/// R14: no job is due or expires early, also if its time has a part of a millisecond.
#[test]
fn a_part_of_a_millisecond_is_stored_as_a_whole_one() {
    let job = NewJob::new("report")
        .delay(Duration::from_micros(1_001))
        .expires_in(Duration::from_nanos(1));

    let read = ScheduleSpec::from_definition(text(&daily(job)).as_bytes()).unwrap();

    assert_eq!(read.job().delay, Duration::from_millis(2));
    assert_eq!(read.job().expires_in, Some(Duration::from_millis(1)));
}

#[test]
fn definitions_are_read_as_they_were_written() {
    let every = Every::new(Duration::from_secs(1)).unwrap();
    let specs = [
        daily("report"),
        daily("").missed(Missed::Skip),
        ScheduleSpec::new(every, full_job()).unwrap().missed(Missed::All),
        daily(full_job().keep_result(Duration::from_secs(3600))),
    ];
    for spec in specs {
        let read = ScheduleSpec::from_definition(&spec.to_definition()).unwrap();
        assert_eq!(read, spec);
        assert_eq!(read.to_definition(), spec.to_definition());
    }
}

#[test]
fn a_newer_version_is_refused_by_its_number() {
    let newer = text(&daily("a")).replace(r#""version":1"#, r#""version":3,"new":[]"#);
    assert_eq!(error(&newer), UnreadableDefinition::Version(3));
    assert!(error(&newer).to_string().contains("update the scheduler"));
}

#[test]
fn an_unknown_field_is_refused_by_its_name() {
    for (old, new) in [
        (r#""zone""#, r#""until_ms":5,"zone""#),
        (r#""payload""#, r#""id":"x","payload""#),
    ] {
        let definition = text(&daily("a")).replace(old, new);
        let error = error(&definition).to_string();
        assert!(error.contains("unknown field"), "{error}");
    }
}

#[test]
fn what_says_too_little_or_too_much_is_refused() {
    let good = text(&daily("a"));
    for (old, new) in [
        (r#""zone":"Europe/Berlin","#, ""),
        (r#""zone""#, r#""every_ms":5000,"zone""#),
        (r#""payload":"a","#, ""),
        (r#""payload":"a""#, r#""payload":"a","payload_base64":"YQ==""#),
        (r#""payload":"a""#, r#""payload_base64":"?""#),
        (r#""priority":5"#, r#""priority":10"#),
        (r#""max_attempts":25"#, r#""max_attempts":0"#),
        (r#""max_attempts":25"#, r#""max_attempts":25,"unique":"k""#),
        (r#""max_attempts":25"#, r#""max_attempts":25,"keep_result_ms":5"#),
        (r#""version":1"#, r#""version":0"#),
        (r#""last""#, r#""some""#),
        ("0 3 * * *", "0 3 * *"),
        ("0 3 * * *", "0 0 30 2 *"),
        ("Europe/Berlin", "Europe/Atlantis"),
        (r#"{"version":1,"#, r#"{"#),
        ("}}", "}"),
    ] {
        let bad = good.replace(old, new);
        assert_ne!(bad, good, "{old}");
        assert!(ScheduleSpec::from_definition(bad.as_bytes()).is_err(), "{bad}");
    }
    assert!(ScheduleSpec::from_definition(b"\xff").is_err());
}
