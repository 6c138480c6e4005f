//! The job of a schedule as JSON.

use std::{num::NonZeroU16, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use relq_core::{
    NewJob, Priority,
    unique::{OnDuplicate, UniqueKey},
};
use serde::{Deserialize, Serialize};

use crate::UnreadableDefinition;

/// The payload is text if it is valid UTF-8, and Base64 otherwise. A time is in
/// milliseconds, and a missing one is not set.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JobFields {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload_base64: Option<String>,
    priority: u8,
    max_attempts: NonZeroU16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delay_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_in_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lease_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keep_result_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unique: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    on_duplicate: Option<Duplicate>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    headers: Vec<(String, String)>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Duplicate {
    Keep,
    Reschedule,
}

impl JobFields {
    pub(super) fn of(job: &NewJob) -> Self {
        let text = std::str::from_utf8(&job.payload).ok();
        let base64 = || STANDARD.encode(&job.payload);
        Self {
            payload: text.map(str::to_owned),
            payload_base64: text.is_none().then(base64),
            priority: job.priority.level(),
            max_attempts: job.max_attempts,
            delay_ms: (!job.delay.is_zero()).then(|| ms(job.delay)),
            expires_in_ms: job.expires_in.map(ms),
            lease_ms: job.lease.map(ms),
            keep_result_ms: job.keep_result.map(ms),
            unique: job.unique.as_ref().map(|unique| unique.key.to_string()),
            on_duplicate: job.unique.as_ref().map(|unique| match unique.on_duplicate {
                OnDuplicate::Keep => Duplicate::Keep,
                OnDuplicate::Reschedule => Duplicate::Reschedule,
            }),
            headers: pairs(job),
        }
    }

    pub(super) fn keeps_result(&self) -> bool {
        self.keep_result_ms.is_some()
    }

    pub(super) fn into_job(self) -> Result<NewJob, UnreadableDefinition> {
        let bad = |why: String| UnreadableDefinition::Format(why);
        let payload = match (self.payload, self.payload_base64) {
            (Some(text), None) => text.into_bytes(),
            (None, Some(text)) => {
                STANDARD.decode(text).map_err(|error| bad(error.to_string()))?
            }
            _ => return Err(bad("it needs one of payload and payload_base64".into())),
        };
        let priority = Priority::new(self.priority)
            .ok_or_else(|| bad(format!("{} is not a priority", self.priority)))?;
        let mut job = NewJob::new(payload).priority(priority);
        job.max_attempts = self.max_attempts;
        job.delay = self.delay_ms.map(Duration::from_millis).unwrap_or_default();
        job.expires_in = self.expires_in_ms.map(Duration::from_millis);
        job.lease = self.lease_ms.map(Duration::from_millis);
        job.keep_result = self.keep_result_ms.map(Duration::from_millis);
        job.headers = self.headers.into_iter().collect();
        match (self.unique, self.on_duplicate) {
            (None, None) => Ok(job),
            (Some(key), Some(duplicate)) => {
                let key =
                    UniqueKey::new(key).map_err(|error| bad(error.to_string()))?;
                Ok(job.unique_or(key, duplicate.into()))
            }
            _ => Err(bad("unique and on_duplicate belong together".into())),
        }
    }
}

impl From<Duplicate> for OnDuplicate {
    fn from(duplicate: Duplicate) -> Self {
        match duplicate {
            Duplicate::Keep => Self::Keep,
            Duplicate::Reschedule => Self::Reschedule,
        }
    }
}

/// Rounds up, so that no job is due or expires too early (R14).
fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

fn pairs(job: &NewJob) -> Vec<(String, String)> {
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    job.headers.iter().map(owned).collect()
}
