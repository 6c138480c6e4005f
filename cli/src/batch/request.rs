//! Parses the file of `relq batch submit`. Each line, a JSON object or
//! `limit:piece:piece:…`, is a batch.

use std::{
    io::{self, BufRead, Read},
    num::NonZeroU32,
    time::Duration,
};

use relq::{
    Bytes, NewJob, QueueName,
    batch::{BatchId, BatchPriority},
};

use super::json_request;
use crate::failure::{CommandResult, Failure};

/// How many bytes at the beginning of a line show whether it may be a batch.
const BEGINNING: usize = 64;

/// The batch of one line. The options of the command decide the fields that are `None`.
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

/// Reads and parses all lines of the input with this name. Skips empty lines and lines that
/// begin with `#`.
///
/// # Errors
/// The number of the first invalid line, counted from 1, and the reason.
pub(super) fn read(mut input: impl BufRead, name: &str) -> CommandResult<Vec<Request>> {
    let mut requests = Vec::new();
    let mut number = 0_u64;
    while let Some(line) = next_line(&mut input).map_err(|it| unreadable(name, &it))? {
        number += 1;
        let invalid =
            |why: String| Failure::Usage(format!("{name}: line {number}: {why}"));
        requests.extend(parse(&line).map_err(invalid)?);
    }
    Ok(requests)
}

/// The failure because the input with this name cannot be read.
pub(super) fn unreadable(name: &str, error: &io::Error) -> Failure {
    Failure::Failed(format!("{name} cannot be read: {error}"))
}

/// Reads a line. `None` at the end of the input. Of a line that cannot be a batch, and may
/// have no end, only the beginning is read.
fn next_line(input: &mut impl BufRead) -> io::Result<Option<Bytes>> {
    let mut line = Vec::new();
    input.by_ref().take(BEGINNING as u64).read_until(b'\n', &mut line)?;
    let may_be_batch = is_object(&line) || is_comment(&line) || line.contains(&b':');
    if may_be_batch && !line.ends_with(b"\n") {
        input.read_until(b'\n', &mut line)?;
    }
    Ok((!line.is_empty()).then(|| line.into_boxed_slice().into()))
}

fn is_object(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"{")
}

fn is_comment(line: &[u8]) -> bool {
    line.starts_with(b"#")
}

/// Parses a line. `None` if it is empty or a comment.
fn parse(line: &Bytes) -> Result<Option<Request>, String> {
    let text = line.strip_suffix(b"\n").unwrap_or(&line[..]);
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    if text.is_empty() || is_comment(text) {
        return Ok(None);
    }
    let request = if is_object(text) {
        json_request::parse(text)
    } else {
        Request::parse(&line.slice_ref(text))
    };
    request.map(Some)
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
        // If there is no colon near the beginning of the line, do not read the rest of it.
        let text = std::str::from_utf8(limit).ok().filter(|it| it.len() < BEGINNING);
        let number = text.and_then(|it| it.trim().parse().ok());
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

    fn requests(text: &str) -> Result<Vec<(u32, Vec<String>)>, String> {
        let read = read(text.as_bytes(), "it").map_err(|failure| match failure {
            Failure::Usage(why) => why,
            other => panic!("{other:?}"),
        })?;
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
            ("a:b", "it: line 1: "),
            ("1:a\n\n-1:b", "it: line 3: "),
            (":a", "it: line 1: "),
            ("1:a\n{", "it: line 2: "),
        ] {
            let error = requests(text).unwrap_err();
            assert!(error.starts_with(line), "{error}");
        }
    }

    /// A line that begins neither like a batch nor like a comment is not read to its end.
    #[test]
    fn a_long_line_is_a_batch_by_its_beginning() {
        let rest = "x".repeat(100);
        let blank = " ".repeat(100);
        let valid = format!("#{rest}\n1:{rest}\n{{\"pieces\":[\"{rest}\"]}}\n2:y");
        let pieces = |piece: &str| vec![piece.to_owned()];

        let read = requests(&valid).unwrap();

        assert_eq!(read, [(1, pieces(&rest)), (0, pieces(&rest)), (2, pieces("y"))]);
        for invalid in [rest, format!("1{blank}:a"), format!("{blank}1:a")] {
            let error = requests(&invalid).unwrap_err();
            assert!(error.starts_with("it: line 1: it is neither"), "{error}");
            assert!(error.len() < 300, "{error}");
        }
    }
}
