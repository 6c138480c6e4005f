//! Parses the file of `relq batch submit`. Each line, a JSON object or
//! `limit:piece:piece:…`, is a batch.

use std::{num::NonZeroU32, time::Duration};

use relq::{
    Bytes, NewJob, QueueName,
    batch::{BatchId, BatchPriority},
};

use super::json_request;

/// The batch of one line. What is `None` is as the options of the command say.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Request {
    /// How many pieces may run at once; `None` for any number.
    pub(super) limit: Option<NonZeroU32>,
    pub(super) pieces: Vec<NewJob>,
    pub(super) id: Option<BatchId>,
    pub(super) priority: Option<BatchPriority>,
    pub(super) on_complete: Option<String>,
    pub(super) on_complete_queue: Option<QueueName>,
    pub(super) retention: Option<Duration>,
}

/// Parses the whole text. Skips empty lines and lines that begin with `#`.
///
/// # Errors
/// The number of the first invalid line, counted from 1, and the reason.
pub(super) fn read(text: &Bytes) -> Result<Vec<Request>, String> {
    let mut requests = Vec::new();
    for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let request = if line.trim_ascii_start().starts_with(b"{") {
            json_request::parse(line)
        } else {
            Request::parse(&text.slice_ref(line))
        };
        requests.push(request.map_err(|why| format!("line {number}: {why}"))?);
    }
    Ok(requests)
}

impl Request {
    /// A batch without options of its own.
    pub(super) fn of(limit: Option<NonZeroU32>, pieces: Vec<NewJob>) -> Self {
        Self {
            limit,
            pieces,
            id: None,
            priority: None,
            on_complete: None,
            on_complete_queue: None,
            retention: None,
        }
    }

    fn parse(line: &Bytes) -> Result<Self, String> {
        let mut fields = line.split(|byte| *byte == b':');
        let limit = fields.next().unwrap_or_default();
        let number =
            std::str::from_utf8(limit).ok().and_then(|it| it.trim().parse().ok());
        let number: u32 = number.ok_or_else(|| {
            let limit = limit.escape_ascii();
            format!(
                "it is neither a JSON object nor limit:piece:piece:…, which begins with \
                 how many pieces may run at once, or 0 for any number, and not with \
                 \"{limit}\""
            )
        })?;
        let pieces = fields.map(|piece| NewJob::new(line.slice_ref(piece))).collect();
        Ok(Self::of(NonZeroU32::new(number), pieces))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(text: &'static str) -> Result<Vec<(u32, Vec<String>)>, String> {
        let read = read(&Bytes::from_static(text.as_bytes()))?;
        let plain = |request: Request| {
            let pieces = request.pieces.iter();
            let pieces =
                pieces.map(|it| String::from_utf8_lossy(&it.payload).into_owned());
            (request.limit.map_or(0, NonZeroU32::get), pieces.collect())
        };
        Ok(read.into_iter().map(plain).collect())
    }

    #[test]
    fn a_line_is_a_limit_and_pieces() {
        let pieces = |all: &[&str]| all.iter().map(ToString::to_string).collect();

        let read =
            requests("# sample\n2:a:b c:d\r\n\n0:x\n5\n1:\n {\"pieces\":[\"y:z\"]}\n")
                .unwrap();

        assert_eq!(
            read,
            [
                (2, pieces(&["a", "b c", "d"])),
                (0, pieces(&["x"])),
                (5, pieces(&[])),
                (1, pieces(&[""])),
                (0, pieces(&["y:z"])),
            ]
        );
    }

    #[test]
    fn an_invalid_line_is_refused_with_its_number() {
        for (text, line) in [
            ("a:b", "line 1"),
            ("1:a\n\n-1:b", "line 3"),
            (":a", "line 1"),
            ("1:a\n{", "line 2"),
        ] {
            let error = requests(text).unwrap_err();
            assert!(error.starts_with(line), "{error}");
        }
    }
}
