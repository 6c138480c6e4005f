//! Parses a line of `relq batch submit` that is a JSON object.

use std::{
    num::{NonZeroU16, NonZeroU32},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use relq::{
    Bytes, NewJob, QueueName,
    batch::{BatchId, BatchPriority},
};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::request::Request;
use crate::values::{batch_priority, positive_duration};

/// A batch as JSON. What is not set is as the options of the command say.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonRequest {
    pieces: Vec<Value>,
    #[serde(default)]
    limit: u32,
    id: Option<String>,
    priority: Option<u32>,
    on_complete: Option<String>,
    on_complete_queue: Option<String>,
    retention: Option<String>,
}

/// A piece with options of its own. A piece without them is a string.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonPiece {
    payload: Option<String>,
    payload_base64: Option<String>,
    #[serde(default)]
    headers: Map<String, Value>,
    max_attempts: Option<NonZeroU16>,
    lease: Option<String>,
    keep_result: Option<String>,
}

/// Parses one line.
///
/// # Errors
/// The reason, without the number of the line.
pub(super) fn parse(line: &[u8]) -> Result<Request, String> {
    let json: JsonRequest =
        serde_json::from_slice(line).map_err(|error| why(&error))?;
    let pieces = (1..).zip(json.pieces).map(|(number, piece)| {
        self::piece(piece).map_err(|why| format!("piece {number}: {why}"))
    });
    Ok(Request {
        limit: NonZeroU32::new(json.limit),
        pieces: pieces.collect::<Result<_, _>>()?,
        id: set("id", json.id.as_ref(), |id| {
            BatchId::new(id).map_err(|it| it.to_string())
        })?,
        priority: set("priority", json.priority.as_ref(), |level| priority(*level))?,
        on_complete: json.on_complete,
        on_complete_queue: set(
            "on_complete_queue",
            json.on_complete_queue.as_ref(),
            |name| QueueName::new(name).map_err(|error| error.to_string()),
        )?,
        retention: duration("retention", json.retention.as_deref())?,
    })
}

fn priority(level: u32) -> Result<BatchPriority, String> {
    batch_priority(&level.to_string())
}

fn duration(name: &str, text: Option<&str>) -> Result<Option<Duration>, String> {
    set(name, text.as_ref(), |text| positive_duration(text))
}

/// Converts the value of a field, if it is set. An error names the field.
fn set<V, T>(
    name: &str,
    value: Option<&V>,
    convert: impl Fn(&V) -> Result<T, String>,
) -> Result<Option<T>, String> {
    let converted = value.map(convert).transpose();
    converted.map_err(|why| format!("{name:?}: {why}"))
}

fn piece(piece: Value) -> Result<NewJob, String> {
    let options: JsonPiece = match piece {
        Value::String(payload) => return Ok(NewJob::new(payload)),
        object @ Value::Object(_) => {
            serde_json::from_value(object).map_err(|error| why(&error))?
        }
        _ => {
            return Err(
                "a piece is a string, or an object with \"payload\" and options \
                        of the job: write other JSON as a string"
                    .to_owned(),
            );
        }
    };
    let mut job = NewJob::new(payload(options.payload, options.payload_base64)?);
    job.max_attempts = options.max_attempts.unwrap_or(job.max_attempts);
    job.lease = duration("lease", options.lease.as_deref())?;
    job.keep_result = duration("keep_result", options.keep_result.as_deref())?;
    for (name, value) in options.headers {
        let Value::String(value) = value else {
            return Err(format!("the value of the header {name:?} is not a string"));
        };
        job.headers.set(name, value);
    }
    Ok(job)
}

fn payload(text: Option<String>, base64: Option<String>) -> Result<Bytes, String> {
    match (text, base64) {
        (Some(text), None) => Ok(text.into()),
        (None, Some(base64)) => match STANDARD.decode(base64) {
            Ok(bytes) => Ok(bytes.into()),
            Err(_) => Err("\"payload_base64\" is not valid base64".to_owned()),
        },
        _ => Err("give either \"payload\" or \"payload_base64\"".to_owned()),
    }
}

/// The message of a JSON error, without the line, which is always the first one.
fn why(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line 1 column ") {
        Some((what, column)) => format!("{what} (at byte {column} of the line)"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(line: &str) -> String {
        parse(line.as_bytes()).unwrap_err()
    }

    #[test]
    fn all_fields_are_read() {
        let line = r#"{"limit":4,"pieces":["a:b",{"payload":"c","headers":{"k":"v"},
            "max_attempts":2,"lease":"5m","keep_result":"1h"},{"payload_base64":"/w=="}],
            "id":"x","priority":80,"on_complete":"join {}","on_complete_queue":"joins",
            "retention":"2h"}"#;
        let read = parse(line.as_bytes()).unwrap();
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let mut second = NewJob::new("c");
        second.headers.set("k", "v");
        second.max_attempts = NonZeroU16::new(2).unwrap();
        second.lease = Some(minutes(5));
        second.keep_result = Some(minutes(60));
        let third = NewJob::new(Bytes::from_static(b"\xff"));
        assert_eq!(
            read,
            Request {
                limit: NonZeroU32::new(4),
                pieces: vec![NewJob::new("a:b"), second, third],
                id: BatchId::new("x").ok(),
                priority: BatchPriority::new(80),
                on_complete: Some("join {}".to_owned()),
                on_complete_queue: QueueName::new("joins").ok(),
                retention: Some(minutes(120)),
            }
        );
    }

    #[test]
    fn only_the_pieces_are_required() {
        let read = parse(br#"{"pieces":[]}"#).unwrap();
        assert_eq!(read, Request::of(None, Vec::new()));
    }

    #[test]
    fn an_invalid_object_is_refused_with_the_reason() {
        for (line, words) in [
            ("{", "EOF while parsing an object (at byte 1 of the line)"),
            ("{\"limit\":1}", "missing field `pieces`"),
            ("{\"pieces\":[],\"limt\":1}", "unknown field `limt`, expected one of"),
            ("{\"pieces\":[],\"priority\":100}", "\"priority\": a batch's priority is"),
            ("{\"pieces\":[],\"retention\":\"5\"}", "\"retention\": a duration is"),
            ("{\"pieces\":[],\"id\":\"\"}", "\"id\": the batch id must not be empty"),
            ("{\"pieces\":[\"a\",7]}", "piece 2: a piece is a string"),
            ("{\"pieces\":[{}]}", "piece 1: give either \"payload\""),
            (
                "{\"pieces\":[{\"payload\":\"a\",\"delay\":\"1s\"}]}",
                "unknown field `delay`",
            ),
            ("{\"pieces\":[{\"payload_base64\":\"?\"}]}", "is not valid base64"),
            (
                "{\"pieces\":[{\"payload\":\"a\",\"headers\":{\"k\":1}}]}",
                "header \"k\"",
            ),
        ] {
            let error = error(line);
            assert!(error.contains(words), "{line}: {error}");
        }
    }
}
