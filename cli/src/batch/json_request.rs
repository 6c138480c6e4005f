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

use super::{json::Json, json_fields::Fields, request::Request};
use crate::values::{batch_priority, positive_duration};

/// Parses one line. The options of the command decide what the line does not set.
///
/// # Errors
/// The reason, without the number of the line.
pub(super) fn parse(line: &[u8]) -> Result<Request, String> {
    let mut fields = Fields::parse(line)?;
    let pieces = fields.list("pieces")?;
    let limit = fields.number("limit", "a whole number of pieces")?.unwrap_or(0);
    let id = fields.text("id")?;
    let level = fields.number("priority", "a whole number")?;
    let on_complete = fields.text("on_complete")?;
    let joins = fields.text("on_complete_queue")?;
    let retention = fields.text("retention")?;
    fields.end()?;
    let pieces = pieces.ok_or("there are no \"pieces\", the payloads of the batch")?;
    let pieces = (1..).zip(pieces).map(|(number, piece)| {
        self::piece(piece).map_err(|why| format!("piece {number}: {why}"))
    });
    Ok(Request {
        limit: NonZeroU32::new(limit),
        pieces: pieces.collect::<Result<_, _>>()?,
        id: set("id", id.as_ref(), |id| BatchId::new(id).map_err(|it| it.to_string()))?,
        priority: set("priority", level.as_ref(), |level| priority(*level))?,
        on_complete,
        on_complete_queue: set("on_complete_queue", joins.as_ref(), |name| {
            QueueName::new(name).map_err(|error| error.to_string())
        })?,
        retention: duration("retention", retention.as_deref())?,
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

/// A piece with options of its own is an object. A piece without them is a string.
fn piece(piece: Json) -> Result<NewJob, String> {
    let mut fields = match piece {
        Json::Text(payload) => return Ok(NewJob::new(payload)),
        Json::Object(members) => Fields::new(members),
        _ => {
            return Err(
                "a piece is a string, or an object with \"payload\" and options \
                        of the job: write other JSON as a string"
                    .to_owned(),
            );
        }
    };
    let (text, base64) = (fields.text("payload")?, fields.text("payload_base64")?);
    let headers = fields.object("headers")?.unwrap_or_default();
    let attempts = fields.number("max_attempts", "a number from 1 to 65535")?;
    let (lease, keep_result) = (fields.text("lease")?, fields.text("keep_result")?);
    fields.end()?;
    let mut job = NewJob::new(payload(text, base64)?);
    job.max_attempts = match attempts {
        Some(0) => return Err("\"max_attempts\" is 0, and not at least 1".to_owned()),
        attempts => attempts.and_then(NonZeroU16::new).unwrap_or(job.max_attempts),
    };
    job.lease = duration("lease", lease.as_deref())?;
    job.keep_result = duration("keep_result", keep_result.as_deref())?;
    for (name, value) in headers {
        let Json::Text(value) = value else {
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
            ("{", "it is not JSON: it ends too early"),
            ("{\"a\" 1}", "it is not JSON: expected `:`, at byte 6 of the line"),
            ("{\"limit\":1}", "there are no \"pieces\""),
            ("{\"pieces\":\"a\"}", "\"pieces\" is \"a\", and not a list"),
            ("{\"pieces\":[],\"limit\":-1}", "\"limit\" is -1, and not a whole number"),
            ("{\"pieces\":[],\"limt\":1}", "there is no field \"limt\", only pieces,"),
            ("{\"pieces\":[],\"priority\":100}", "\"priority\": a batch's priority is"),
            ("{\"pieces\":[],\"retention\":\"5\"}", "\"retention\": a duration is"),
            ("{\"pieces\":[],\"id\":\"\"}", "\"id\": the batch id must not be empty"),
            ("{\"pieces\":[\"a\",7]}", "piece 2: a piece is a string"),
            ("{\"pieces\":[{\"max_attempts\":0}]}", "piece 1: give either"),
            (
                "{\"pieces\":[{\"payload\":\"a\",\"max_attempts\":0}]}",
                "\"max_attempts\" is 0",
            ),
            ("{\"pieces\":[{}]}", "piece 1: give either \"payload\""),
            (
                "{\"pieces\":[{\"payload\":\"a\",\"delay\":\"1s\"}]}",
                "there is no field \"delay\", only payload,",
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
