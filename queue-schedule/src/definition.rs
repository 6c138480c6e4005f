//! The definition of a schedule as JSON. Every version of relq and every scheduler of a
//! queue reads it, so it changes only with its version.
//!
//! ```text
//! {"version":1,"cron":"0 3 * * *","zone":"Europe/Berlin","missed":"last",
//!  "job":{"payload":"report","priority":5,"max_attempts":25}}
//! {"version":1,"every_ms":300000,"anchor_ms":0,"missed":"all",
//!  "job":{"payload_base64":"/w==","headers":[["kind","poll"]],...}}
//! {"version":2,"cron":"0 3 * * *","zone":"Europe/Berlin","missed":"last",
//!  "job":{"payload":"report",...,"keep_result_ms":3600000}}
//! ```
//!
//! A scheduler that ignored a field would push another job, or at another time, than the
//! field's author meant. So unknown fields are refused. A later version of the form has a
//! higher number, and is written only for a schedule that needs it: older schedulers then
//! run the others as before. Version 2 is for a job that keeps its result.

mod job;

use std::time::Duration;

use relq_core::environment::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Cron, Every, InvalidSpec, ScheduleSpec, Times, UnreadableDefinition};
use job::JobFields;

/// The version of a definition that needs no field of a later one.
const FIRST: u64 = 1;

/// The version that has the field `keep_result_ms` of the job.
const WITH_RESULTS: u64 = 2;

/// Read first, because another version may have other fields.
#[derive(Deserialize)]
struct VersionField {
    version: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    version: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cron: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    zone: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    every_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    anchor_ms: Option<i64>,
    missed: String,
    job: JobFields,
}

pub(crate) fn write(spec: &ScheduleSpec) -> Vec<u8> {
    let job = JobFields::of(spec.job());
    let mut fields = Fields {
        version: needed_version(&job),
        cron: None,
        zone: None,
        every_ms: None,
        anchor_ms: None,
        missed: spec.missed_ticks().as_str().to_owned(),
        job,
    };
    match spec.times() {
        Times::Cron(cron) => {
            fields.cron = Some(cron.expression().to_owned());
            fields.zone = Some(cron.zone_name().to_owned());
        }
        Times::Every(every) => {
            fields.every_ms = Some(every.interval_ms());
            fields.anchor_ms = Some(every.anchor_ms());
        }
    }
    serde_json::to_vec(&fields).expect("strings and numbers always have a JSON form")
}

pub(crate) fn read(definition: &[u8]) -> Result<ScheduleSpec, UnreadableDefinition> {
    let format =
        |error: serde_json::Error| UnreadableDefinition::Format(error.to_string());
    let VersionField { version } =
        serde_json::from_slice(definition).map_err(format)?;
    if !(FIRST..=WITH_RESULTS).contains(&version) {
        return Err(UnreadableDefinition::Version(version));
    }
    let fields: Fields = serde_json::from_slice(definition).map_err(format)?;
    if version < needed_version(&fields.job) {
        let why = format!("version {version} has no field keep_result_ms");
        return Err(UnreadableDefinition::Format(why));
    }
    let missed = fields.missed.parse().map_err(UnreadableDefinition::Format)?;
    let times = fields.times()?;
    Ok(ScheduleSpec::new(times, fields.job.into_job()?)?.missed(missed))
}

/// The lowest version that has all fields of the job.
fn needed_version(job: &JobFields) -> u64 {
    if job.keeps_result() { WITH_RESULTS } else { FIRST }
}

impl Fields {
    fn times(&self) -> Result<Times, UnreadableDefinition> {
        match self {
            Self {
                cron: Some(expression),
                zone: Some(zone),
                every_ms: None,
                anchor_ms: None,
                ..
            } => Ok(Cron::new(expression)?.zone(zone)?.into()),
            Self {
                cron: None,
                zone: None,
                every_ms: Some(every),
                anchor_ms: Some(anchor),
                ..
            } => Ok(interval(*every, *anchor)?.into()),
            _ => Err(UnreadableDefinition::Format(
                "it needs either cron and zone, or every_ms and anchor_ms".to_owned(),
            )),
        }
    }
}

fn interval(every_ms: u64, anchor_ms: i64) -> Result<Every, InvalidSpec> {
    let every = Every::new(Duration::from_millis(every_ms))?;
    Ok(every.anchor(Timestamp::from_unix_ms(anchor_ms)))
}

#[cfg(test)]
mod tests;
