//! One job of an export, and the job that is stored for it.

use std::{
    fmt,
    num::NonZeroU16,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use relq::{
    Bytes, Headers, JobId, NewJob, Priority,
    environment::Timestamp,
    operator::{JobView, StateDetail},
    unique::UniqueKey,
};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use sha2::{Digest, Sha256};

use super::{DeadJobs, file::Line};
use crate::view::HeadersJson;

/// An expiry that has passed: the job is buried at the first claim.
const EXPIRED: Duration = Duration::from_millis(1);

/// Whether jobs are stored as they were (R34), or pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    AsItWas,
    Anew,
}

/// How the jobs of the file are stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choices {
    pub(super) kept: Kept,
    /// How dead jobs are stored. `None` if they stay dead.
    pub(super) dead: Option<DeadJobs>,
}

/// A job to store.
#[derive(Debug)]
pub(super) enum ToStore {
    AsItWas(Box<JobView>),
    Anew(NewJob),
}

/// A job as `relq export` writes it. Other fields are ignored.
#[derive(Deserialize)]
pub(super) struct JobLine {
    id: Option<String>,
    state: State,
    payload: Option<String>,
    payload_base64: Option<String>,
    #[serde(default)]
    attempt: u32,
    max_attempts: NonZeroU16,
    priority: u8,
    unique: Option<String>,
    expires_at_ms: Option<i64>,
    enqueued_at_ms: Option<i64>,
    last_error: Option<String>,
    reason: Option<String>,
    since_ms: Option<i64>,
    #[serde(default, deserialize_with = "headers_in_order")]
    headers: Headers,
    due_ms: Option<i64>,
    after: Option<String>,
    #[serde(default)]
    after_delay_ms: u64,
    pub(super) batch: Option<String>,
    lease_ms: Option<u64>,
    keep_result_ms: Option<u64>,
    unreadable: Option<String>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum State {
    Ready,
    Scheduled,
    Leased,
    Dead,
}

impl JobLine {
    pub(super) fn read(line: &Line) -> Result<Self, String> {
        serde_json::from_str(&line.text)
            .map_err(|error| format!("it is not a job of an export: {error}"))
    }

    pub(super) fn is_dead(&self) -> bool {
        self.state == State::Dead
    }

    /// Whether the import leaves the job out: a dead job that is to be skipped, or one that
    /// cannot be read where it cannot stay dead. No worker may run that one (R3).
    pub(super) fn is_skipped(&self, choices: Choices) -> bool {
        self.is_dead()
            && match choices.dead {
                None => false,
                Some(DeadJobs::Skip) => true,
                Some(DeadJobs::Retry) => {
                    choices.kept == Kept::Anew && self.unreadable.is_some()
                }
            }
    }

    /// The job that this one follows.
    pub(super) fn leader(&self) -> Result<Option<JobId>, String> {
        let leader = self.after.as_deref().map(JobId::new).transpose();
        leader.map_err(|error| error.to_string())
    }

    /// The id of the job. A job without one gets an id that is the same whenever this
    /// line of the file is read, so that an import can be repeated.
    pub(super) fn id(&self, line: &Line) -> Result<JobId, String> {
        let id = match &self.id {
            Some(id) => JobId::new(id),
            None => JobId::new(id_of_line(line)),
        };
        id.map_err(|error| error.to_string())
    }

    /// Takes the id from the job, which then has that of its line.
    pub(super) fn forget_id(&mut self) {
        self.id = None;
    }

    /// Of all lines of one id, those of the same job have the same digest. It is made of what
    /// no move of a job changes: the payload, the headers and the time of the push.
    pub(super) fn digest(&self) -> [u8; 32] {
        let payload = (&self.payload, &self.payload_base64);
        let fields = (payload, HeadersJson(&self.headers), self.enqueued_at_ms);
        let json = serde_json::to_vec(&fields).expect("texts and numbers are JSON");
        Sha256::digest(json).into()
    }

    /// The job to store. A follower is pushed anew on every backend (R34).
    pub(super) fn into_stored(
        self,
        line: &Line,
        choices: Choices,
    ) -> Result<ToStore, String> {
        if choices.kept == Kept::Anew || self.after.is_some() {
            return self.into_job(line).map(ToStore::Anew);
        }
        let retries = self.is_dead()
            && self.unreadable.is_none()
            && choices.dead == Some(DeadJobs::Retry);
        let view = if retries { self.into_retried(line) } else { self.into_view(line) };
        Ok(ToStore::AsItWas(Box::new(view?)))
    }

    /// A dead job as a ready one, as a redrive makes it: with no attempt counted, without
    /// its last error, and without an expiry that has passed.
    fn into_retried(mut self, line: &Line) -> Result<JobView, String> {
        (self.state, self.attempt, self.last_error) = (State::Ready, 0, None);
        self.expires_at_ms = self.expires_at_ms.filter(|at| !left(*at).is_zero());
        self.into_view(line)
    }

    /// The job as it was.
    fn into_view(self, line: &Line) -> Result<JobView, String> {
        let invalid = |error: relq::error::InvalidName| error.to_string();
        let mut view =
            JobView::new(Some(self.id(line)?), self.payload()?, self.detail()?);
        // Do not count the attempt of a leased job, which had not ended.
        view.attempt =
            self.attempt.saturating_sub(u32::from(self.state == State::Leased));
        view.max_attempts = self.max_attempts;
        view.priority = Priority::new(self.priority).ok_or("a priority is 0 to 9")?;
        view.unique = self.unique.map(UniqueKey::new).transpose().map_err(invalid)?;
        view.expires_at = self.expires_at_ms.map(Timestamp::from_unix_ms);
        view.enqueued_at = self.enqueued_at_ms.map(Timestamp::from_unix_ms);
        view.headers = self.headers;
        view.last_error = self.last_error;
        view.lease = self.lease_ms.map(Duration::from_millis);
        view.keep_result = self.keep_result_ms.map(Duration::from_millis);
        view.unreadable = self.unreadable;
        Ok(view)
    }

    fn detail(&self) -> Result<StateDetail, String> {
        let time = |ms: Option<i64>, named: &str| {
            let missing = || format!("it needs {named}");
            ms.map(Timestamp::from_unix_ms).ok_or_else(missing)
        };
        Ok(match self.state {
            State::Ready | State::Leased => StateDetail::Ready,
            State::Scheduled => {
                StateDetail::Scheduled { due: time(self.due_ms, "due_ms")? }
            }
            State::Dead => StateDetail::Dead {
                reason: self.reason.clone().unwrap_or_default(),
                since: time(self.since_ms, "since_ms")?,
            },
        })
    }

    /// The job to push, with the times that are left from now on.
    fn into_job(self, line: &Line) -> Result<NewJob, String> {
        let invalid = |error: relq::error::InvalidName| error.to_string();
        let mut job = NewJob::new(self.payload()?);
        job.id = Some(self.id(line)?);
        job.after = self.leader()?;
        job.max_attempts = self.max_attempts;
        job.priority = Priority::new(self.priority).ok_or("a priority is 0 to 9")?;
        job.lease = self.lease_ms.map(Duration::from_millis);
        job.keep_result = self.keep_result_ms.map(Duration::from_millis);
        job.expires_in = self.expires_in();
        job.delay = match (&job.after, self.due_ms) {
            (Some(_), _) => Duration::from_millis(self.after_delay_ms),
            (None, due) => due.map(left).unwrap_or_default(),
        };
        job.headers = self.headers;
        let key = self.unique.map(UniqueKey::new).transpose().map_err(invalid)?;
        Ok(match key {
            Some(key) => job.unique(key),
            None => job,
        })
    }

    /// A dead job that is made ready loses an expiry that has passed, as by a redrive.
    fn expires_in(&self) -> Option<Duration> {
        let left = self.expires_at_ms.map(left)?;
        let is_over = left.is_zero() && self.is_dead();
        (!is_over).then(|| left.max(EXPIRED))
    }

    fn payload(&self) -> Result<Bytes, String> {
        match (&self.payload, &self.payload_base64) {
            (Some(text), None) => Ok(text.clone().into()),
            (None, Some(text)) => {
                let bytes = STANDARD.decode(text);
                let bytes =
                    bytes.map_err(|error| format!("payload_base64: {error}"))?;
                Ok(bytes.into())
            }
            _ => Err("it needs payload or payload_base64, one of them".to_owned()),
        }
    }
}

/// Reads headers in the order of the file, which is that of the job (R2).
fn headers_in_order<'de, D: Deserializer<'de>>(fields: D) -> Result<Headers, D::Error> {
    fields.deserialize_map(HeadersVisitor)
}

struct HeadersVisitor;

impl<'de> Visitor<'de> for HeadersVisitor {
    type Value = Headers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of names and texts")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Headers, A::Error> {
        let mut headers = Vec::new();
        while let Some(header) = fields.next_entry::<String, String>()? {
            headers.push(header);
        }
        Ok(headers.into_iter().collect())
    }
}

/// How long it is until this time, in milliseconds since 1970, by the clock of this machine.
/// Zero if it has passed.
fn left(at_ms: i64) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let at = Duration::from_millis(u64::try_from(at_ms).unwrap_or_default());
    at.saturating_sub(now)
}

fn id_of_line(line: &Line) -> String {
    let digest = Sha256::digest(line.text.as_bytes());
    let hex: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("import-{hex}-{}", line.number)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BARE: &str =
        r#"{"state":"ready","payload":"x","max_attempts":3,"priority":5}"#;

    fn line(number: u64, text: &str) -> Line {
        Line { number, offset: 0, text: text.to_owned() }
    }

    fn job(text: &str) -> Result<NewJob, String> {
        let line = line(2, text);
        JobLine::read(&line)?.into_job(&line)
    }

    #[test]
    fn a_job_without_an_id_gets_one_of_its_line() {
        let id = |number| {
            let line = line(number, BARE);
            JobLine::read(&line).unwrap().id(&line).unwrap()
        };
        assert_eq!(id(2), id(2));
        assert_ne!(id(2), id(3));
        assert!(id(2).as_str().ends_with("-2"), "{}", id(2));
    }

    #[test]
    fn times_that_have_passed_are_now() {
        let past = BARE.replace("ready", "scheduled").replace(
            "\"priority\"",
            "\"due_ms\":1000,\"expires_at_ms\":1000,\"priority\"",
        );
        let job = job(&past).unwrap();
        assert_eq!(job.delay, Duration::ZERO);
        assert_eq!(job.expires_in, Some(EXPIRED));
    }

    /// A job that is pushed anew keeps the time until it is due, and its options.
    #[test]
    fn a_job_that_is_pushed_keeps_what_is_left_of_its_delay_and_its_options() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let in_an_hour = now.as_millis() + 3_600_000;
        let later = BARE.replace("ready", "scheduled").replace(
            "\"priority\"",
            &format!(
                "\"due_ms\":{in_an_hour},\"lease_ms\":7000,\"keep_result_ms\":9000,\
                 \"priority\""
            ),
        );
        let pushed = job(&later).unwrap();
        let hour = Duration::from_secs(3600);
        assert!(pushed.delay <= hour && pushed.delay > hour / 2, "{:?}", pushed.delay);
        assert_eq!(pushed.lease, Some(Duration::from_secs(7)));
        assert_eq!(pushed.keep_result, Some(Duration::from_secs(9)));
        assert_eq!((pushed.max_attempts.get(), pushed.priority), (3, Priority::NORMAL));
    }

    #[test]
    fn a_dead_job_loses_an_expiry_that_has_passed() {
        let past = BARE.replace("\"priority\"", "\"expires_at_ms\":1000,\"priority\"");
        assert_eq!(job(&past.replace("ready", "dead")).unwrap().expires_in, None);
    }

    /// A dead job that becomes ready loses only an expiry that has passed.
    #[test]
    fn a_dead_job_keeps_an_expiry_that_is_to_come() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let hour = Duration::from_secs(3600);
        let later = i64::try_from((now + hour).as_millis()).unwrap();
        let expiry = format!("\"dead\",\"since_ms\":7,\"expires_at_ms\":{later}");
        let dead = BARE.replace("\"ready\"", &expiry);

        let left = job(&dead).unwrap().expires_in.expect("it is pushed with an expiry");
        let retried = restored(&dead, Some(DeadJobs::Retry)).unwrap();

        assert!(left <= hour && left > hour / 2, "{left:?} are left of an hour");
        assert_eq!(retried.expires_at, Some(Timestamp::from_unix_ms(later)));
    }

    /// The job as it is restored.
    fn restored(text: &str, dead: Option<DeadJobs>) -> Result<JobView, String> {
        let line = line(2, text);
        let choices = Choices { kept: Kept::AsItWas, dead };
        match JobLine::read(&line)?.into_stored(&line, choices)? {
            ToStore::AsItWas(view) => Ok(*view),
            ToStore::Anew(job) => panic!("it is pushed: {job:?}"),
        }
    }

    #[test]
    fn a_dead_job_is_restored_as_it_was_or_made_ready() {
        let dead = BARE.replace(
            "\"ready\"",
            "\"dead\",\"attempt\":2,\"last_error\":\"no\",\"reason\":\"it failed\",\
             \"since_ms\":7,\"enqueued_at_ms\":5,\"expires_at_ms\":9",
        );

        let kept = restored(&dead, None).unwrap();
        let since = Timestamp::from_unix_ms(7);
        let reason = "it failed".to_owned();
        assert_eq!(kept.detail, StateDetail::Dead { reason, since });
        assert_eq!((kept.attempt, kept.last_error.as_deref()), (2, Some("no")));
        assert_eq!(kept.expires_at, Some(Timestamp::from_unix_ms(9)));
        assert_eq!(kept.enqueued_at, Some(Timestamp::from_unix_ms(5)));

        let retried = restored(&dead, Some(DeadJobs::Retry)).unwrap();
        assert_eq!(retried.detail, StateDetail::Ready);
        assert_eq!((retried.attempt, retried.last_error), (0, None));
        assert_eq!(retried.expires_at, None);

        let error = restored(&BARE.replace("ready", "dead"), None).unwrap_err();
        assert!(error.contains("it needs since_ms"), "{error}");
    }

    #[test]
    fn the_attempt_of_a_leased_job_is_not_counted() {
        let leased = BARE.replace("\"ready\"", "\"leased\",\"attempt\":2");

        let view = restored(&leased, None).unwrap();

        assert_eq!((view.detail, view.attempt), (StateDetail::Ready, 1));
    }

    #[test]
    fn headers_are_read_in_their_order() {
        let text = BARE.replace("{", r#"{"headers":{"b":"1","a":"2"},"#);

        let (pushed, kept) = (job(&text).unwrap(), restored(&text, None).unwrap());

        for headers in [pushed.headers, kept.headers] {
            assert_eq!(headers.iter().collect::<Vec<_>>(), [("b", "1"), ("a", "2")]);
        }
    }

    #[test]
    fn a_line_that_is_no_job_says_why() {
        for (text, why) in [
            ("", "not a job"),
            ("{}", "missing field"),
            (&*BARE.replace(":5", ":10"), "a priority is 0 to 9"),
            (&*BARE.replace("\"payload\":\"x\",", ""), "needs payload"),
            (&*BARE.replace("\"payload\":\"x\"", "\"payload_base64\":\"?\""), "base64"),
            (&*BARE.replace("{", "{\"id\":\"\","), "the job id"),
            (&*BARE.replace("ready", "odd"), "unknown variant"),
        ] {
            let error = job(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
