//! Shows a job: as printable text for people, as JSON for scripts.

use std::{
    num::NonZeroU16,
    time::{Duration, SystemTime},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use relq::{
    Headers, JobId,
    environment::Timestamp,
    operator::{JobView, StateDetail},
};
use serde::{Serialize, Serializer};

use crate::printable::printable;

/// The latest time that is shown as a date, in milliseconds since 1970: the last second
/// of the year 9999. Later times are shown as a number.
const LAST_DATE_MS: i64 = 253_402_300_799_000;

/// Formats a time of the store's clock as a date in UTC.
pub(crate) fn time(at: Timestamp) -> String {
    if (0..=LAST_DATE_MS).contains(&at.unix_ms()) {
        humantime::format_rfc3339_millis(SystemTime::from(at)).to_string()
    } else {
        format!("{} ms", at.unix_ms())
    }
}

/// Returns the reason why a job is dead. Adds the job's last error, unless the reason
/// already contains it.
fn reason_and_error(reason: &str, last_error: Option<&str>) -> String {
    match last_error {
        Some(error) if !reason.contains(error) => format!("{reason}: {error}"),
        _ => reason.to_owned(),
    }
}

/// A job as JSON.
///
/// `payload` is the text of a payload that is valid UTF-8, and null for any other
/// payload; `payload_base64` is set for exactly the others. Times are milliseconds
/// since 1970.
#[derive(Serialize, Debug)]
pub(crate) struct JobJson<'a> {
    id: Option<&'a str>,
    state: &'static str,
    payload: Option<&'a str>,
    payload_base64: Option<String>,
    attempt: u32,
    max_attempts: NonZeroU16,
    priority: u8,
    unique: Option<&'a str>,
    expires_at_ms: Option<i64>,
    enqueued_at_ms: Option<i64>,
    headers: HeadersJson<'a>,
    last_error: Option<&'a str>,
    batch: Option<&'a str>,
    lease_ms: Option<u64>,
    keep_result_ms: Option<u64>,
    /// Why the job cannot be read, so that no worker can run it; null for a job that can be
    /// read.
    unreadable: Option<&'a str>,
    #[serde(flatten)]
    detail: DetailJson<'a>,
}

/// Headers as an object whose members have their order (R2).
#[derive(Debug)]
pub(crate) struct HeadersJson<'a>(pub(crate) &'a Headers);

impl Serialize for HeadersJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter())
    }
}

#[derive(Serialize, Debug)]
#[serde(untagged)]
enum DetailJson<'a> {
    Scheduled { due_ms: i64 },
    Following { after: &'a str, after_delay_ms: u64 },
    Ready {},
    Leased(LeaseJson<'a>),
    Dead { reason: &'a str, since_ms: i64 },
}

#[derive(Serialize, Debug)]
struct LeaseJson<'a> {
    worker: &'a str,
    host: Option<&'a str>,
    pid: Option<u32>,
    since_ms: i64,
    until_ms: i64,
}

impl<'a> From<&'a JobView> for JobJson<'a> {
    fn from(job: &'a JobView) -> Self {
        let text = std::str::from_utf8(&job.payload).ok();
        Self {
            id: job.id.as_ref().map(JobId::as_str),
            state: job.detail.state().as_str(),
            payload: text,
            payload_base64: text.is_none().then(|| STANDARD.encode(&job.payload)),
            attempt: job.attempt,
            max_attempts: job.max_attempts,
            priority: job.priority.level(),
            unique: job.unique.as_ref().map(relq::unique::UniqueKey::as_str),
            expires_at_ms: job.expires_at.map(Timestamp::unix_ms),
            enqueued_at_ms: job.enqueued_at.map(Timestamp::unix_ms),
            headers: HeadersJson(&job.headers),
            last_error: job.last_error.as_deref(),
            batch: job.batch.as_ref().map(relq::batch::BatchId::as_str),
            lease_ms: job.lease.map(whole_ms),
            keep_result_ms: job.keep_result.map(whole_ms),
            unreadable: job.unreadable.as_deref(),
            detail: (&job.detail).into(),
        }
    }
}

impl<'a> From<&'a StateDetail> for DetailJson<'a> {
    fn from(detail: &'a StateDetail) -> Self {
        match detail {
            StateDetail::Scheduled { due } => Self::Scheduled { due_ms: due.unix_ms() },
            StateDetail::Following { leader, delay } => Self::Following {
                after: leader.as_str(),
                after_delay_ms: whole_ms(*delay),
            },
            StateDetail::Ready => Self::Ready {},
            StateDetail::Leased { worker, since, until } => Self::Leased(LeaseJson {
                worker: worker.as_str(),
                host: worker.host(),
                pid: worker.pid(),
                since_ms: since.unix_ms(),
                until_ms: until.unix_ms(),
            }),
            StateDetail::Dead { reason, since } => {
                Self::Dead { reason, since_ms: since.unix_ms() }
            }
        }
    }
}

/// A duration in whole milliseconds. No stored duration is too long for the type.
fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The ids as text.
pub(crate) fn ids_of(ids: &[JobId]) -> Vec<&str> {
    ids.iter().map(JobId::as_str).collect()
}

/// When a ready job was pushed, when a scheduled job is due, or since when a job is leased
/// or dead. `None` for a ready job without a time of its push, and for a job that follows
/// another one.
pub(crate) fn state_time(job: &JobView) -> Option<Timestamp> {
    match &job.detail {
        StateDetail::Ready => job.enqueued_at,
        StateDetail::Scheduled { due } => Some(*due),
        StateDetail::Following { .. } => None,
        StateDetail::Leased { since, .. } | StateDetail::Dead { since, .. } => {
            Some(*since)
        }
    }
}

/// The note for a job in a list: why no worker can run it or its last attempt failed, the job
/// that it follows, the worker that holds it, or why it is dead.
pub(crate) fn note(job: &JobView) -> Option<String> {
    match &job.detail {
        StateDetail::Ready | StateDetail::Scheduled { .. } => {
            job.unreadable.as_deref().or(job.last_error.as_deref()).map(printable)
        }
        StateDetail::Following { leader, .. } => {
            Some(printable(&format!("after {leader}")))
        }
        StateDetail::Leased { worker, until, .. } => {
            let holder = match (worker.host(), worker.pid()) {
                (Some(host), Some(pid)) => format!("host {host}, pid {pid}"),
                _ => format!("worker {worker}"),
            };
            Some(printable(&format!("held by {holder}, until {}", time(*until))))
        }
        StateDetail::Dead { reason, .. } => {
            let why = reason_and_error(reason, job.last_error.as_deref());
            Some(printable(&why))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::sample_jobs::{at, details, job};

    #[test]
    fn each_property_of_a_job_has_its_field_in_json() {
        let of_each_state = json!({
            "id": "job-1", "payload": "the payload", "payload_base64": null,
            "attempt": 2, "max_attempts": 7, "priority": 8, "unique": "the-key",
            "expires_at_ms": 21_000, "enqueued_at_ms": 22_000,
            "headers": {"tenant": "acme"}, "last_error": "disk full",
            "batch": "nightly", "lease_ms": 23_000, "keep_result_ms": 24_000,
            "unreadable": null,
        });
        let of_one_state = [
            json!({"state": "ready"}),
            json!({"state": "scheduled", "due_ms": 11_000}),
            json!({"state": "scheduled", "after": "leader", "after_delay_ms": 12_000}),
            json!({
                "state": "leased", "worker": "mail-7:4711:nonce", "host": "mail-7",
                "pid": 4711, "since_ms": 13_000, "until_ms": 14_000,
            }),
            json!({"state": "dead", "reason": "it gave up", "since_ms": 15_000}),
        ];
        for (detail, more) in details().into_iter().zip(of_one_state) {
            let mut expected = of_each_state.clone();
            let more = more.as_object().unwrap().clone();
            expected.as_object_mut().unwrap().extend(more);

            let job = job(detail);

            let json = serde_json::to_value(JobJson::from(&job)).unwrap();
            assert_eq!(json, expected, "the fields of {:?}", job.detail);
        }
    }

    #[test]
    fn each_state_has_its_time_and_its_note_in_a_list() {
        let held =
            "held by host mail-7, pid 4711, until 1970-01-01T00:00:14.000Z".to_owned();
        let expected = [
            (Some(at(22)), "disk full"),
            (Some(at(11)), "disk full"),
            (None, "after leader"),
            (Some(at(13)), held.as_str()),
            (Some(at(15)), "it gave up: disk full"),
        ];
        for (detail, (time, words)) in details().into_iter().zip(expected) {
            let job = job(detail);

            assert_eq!(state_time(&job), time, "the time of {:?}", job.detail);
            let told = note(&job);
            assert_eq!(told.as_deref(), Some(words), "the note of {:?}", job.detail);
        }
    }

    /// R3: a job that no worker can run does not look like any other.
    #[test]
    fn a_job_that_cannot_be_read_says_so_in_a_list_and_in_json() {
        let mut job = job(StateDetail::Ready);
        job.unreadable = Some("it cannot be read".to_owned());

        let json = serde_json::to_value(JobJson::from(&job)).unwrap();

        assert_eq!(json["unreadable"], json!("it cannot be read"));
        assert_eq!(note(&job).as_deref(), Some("it cannot be read"));
    }

    #[test]
    fn a_time_beyond_all_dates_is_shown_all_the_same() {
        assert_eq!(time(Timestamp::from_unix_ms(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(time(Timestamp::from_unix_ms(i64::MAX)), "9223372036854775807 ms");
    }

    #[test]
    fn headers_are_written_in_their_order() {
        let mut job = JobView::new(None, "x", StateDetail::Ready);
        job.headers = [("b", "1"), ("a", "2")].into_iter().collect();

        let json = serde_json::to_string(&JobJson::from(&job)).unwrap();

        assert!(json.contains(r#""headers":{"b":"1","a":"2"}"#), "{json}");
    }
}
