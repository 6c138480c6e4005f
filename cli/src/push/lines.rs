//! Divides the payloads of `relq push` into calls, and reads a file no faster than its
//! lines are pushed.
//!
//! A separate thread reads the file, because a read from a file or pipe may block for
//! any time.

use std::{
    io::{self, Read},
    path::Path,
    sync::Arc,
    thread,
};

use relq::{Bytes, capabilities::Capabilities};

use super::gathering::{Batch, Gathering, ReadError};
use crate::{
    failure::{CommandResult, Failure},
    piped_input,
};

/// How many bytes one read of the input returns at most.
const CHUNK: usize = 64 << 10;

/// The backend's limits on one push call and one payload.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    payload: usize,
    batch: usize,
}

impl Limits {
    pub(super) fn of(capabilities: &Capabilities) -> Self {
        let limits = &capabilities.limits;
        Self {
            payload: limits.max_payload,
            batch: limits.max_jobs_per_call.get() as usize,
        }
    }
}

/// Opens a file of lines. The path `-` means standard input. Waits until a FIFO has a
/// writer.
pub(super) async fn open(path: &Path) -> CommandResult<Box<dyn Read + Send>> {
    if piped_input::is_name_of(path) {
        return Ok(Box::new(io::stdin()));
    }
    let cannot = |error| {
        let name = piped_input::in_words(path);
        Failure::Failed(format!("{name} cannot be read: {error}"))
    };
    // The open of a FIFO blocks its thread, so it needs one of its own.
    let opened = tokio::fs::File::open(path).await.map_err(cannot)?;
    Ok(Box::new(opened.into_std().await))
}

/// The payloads that are not pushed yet.
#[derive(Debug)]
pub(super) enum Lines {
    Given { left: std::vec::IntoIter<Bytes>, batch: usize },
    Read(Arc<Gathering>),
}

impl Lines {
    /// Divides payloads that were given as arguments on the command line.
    pub(super) fn given(payloads: Vec<Bytes>, limits: Limits) -> Self {
        Self::Given { left: payloads.into_iter(), batch: limits.batch }
    }

    /// Divides the lines of an input into calls.
    pub(super) fn of(
        input: impl Read + Send + 'static,
        separator: u8,
        limits: Limits,
    ) -> Self {
        let to = Arc::new(Gathering::new(limits.batch));
        let mut splitter = Splitter::new(separator, limits.payload, Arc::clone(&to));
        thread::spawn(move || {
            let end = splitter.run(input);
            splitter.to.end(end);
        });
        Self::Read(to)
    }

    /// Whether no payload is left. Of a file it is only known at its end.
    pub(super) fn are_all_pushed(&self) -> bool {
        matches!(self, Self::Given { left, .. } if left.len() == 0)
    }

    /// The payloads of the next push call. `None` when all are pushed.
    pub(super) async fn next(&mut self) -> Option<Result<Batch, ReadError>> {
        match self {
            Self::Given { left, batch } => {
                let next: Batch = left.take(*batch).collect();
                (!next.is_empty()).then_some(Ok(next))
            }
            Self::Read(gathering) => gathering.take().await,
        }
    }
}

/// Divides the bytes of the input into lines.
struct Splitter {
    separator: u8,
    longest: usize,
    to: Arc<Gathering>,
    /// The beginning of a line whose end was not yet read.
    partial: Vec<u8>,
    lines: usize,
}

impl Splitter {
    fn new(separator: u8, longest: usize, to: Arc<Gathering>) -> Self {
        Self { separator, longest, to, partial: Vec::new(), lines: 0 }
    }

    fn run(&mut self, mut input: impl Read) -> Result<(), ReadError> {
        let mut chunk = vec![0; CHUNK];
        loop {
            let length = match input.read(&mut chunk) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            let separator = self.separator;
            for piece in chunk[..length].split_inclusive(|byte| *byte == separator) {
                self.piece(piece)?;
            }
            self.to.offer();
        }
        // The last line need not end with a separator.
        if !self.partial.is_empty() {
            self.line(&[]);
        }
        Ok(())
    }

    /// Adds a piece of the input to the current line. If the piece ends with a
    /// separator, the line is complete. A piece contains no other separator.
    fn piece(&mut self, piece: &[u8]) -> Result<(), ReadError> {
        let (text, ends) = match piece.split_last() {
            Some((last, text)) if *last == self.separator => (text, true),
            _ => (piece, false),
        };
        if self.partial.len() + text.len() > self.longest {
            return Err(ReadError::TooLong {
                line: self.lines + 1,
                limit: self.longest,
            });
        }
        if ends {
            self.line(text);
        } else {
            self.partial.extend_from_slice(text);
        }
        Ok(())
    }

    /// Adds a line to the buffer: the part that was read before, and then `text`.
    fn line(&mut self, text: &[u8]) {
        self.lines += 1;
        if self.partial.is_empty() {
            self.to.add(Bytes::copy_from_slice(text));
        } else {
            self.partial.extend_from_slice(text);
            self.to.add(std::mem::take(&mut self.partial).into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { payload: 5, batch: 3 };

    /// Reads all of `input`. Returns its lines, and the error if one ended the input.
    async fn split(
        input: impl Read + Send + 'static,
        separator: u8,
    ) -> (Vec<Bytes>, Option<String>) {
        let mut input = Lines::of(input, separator, LIMITS);
        let mut lines = Vec::new();
        while let Some(batch) = input.next().await {
            match batch {
                Ok(batch) => {
                    assert!((1..=LIMITS.batch).contains(&batch.len()));
                    lines.extend(batch);
                }
                Err(error) => return (lines, Some(error.to_string())),
            }
        }
        (lines, None)
    }

    #[tokio::test]
    async fn every_byte_but_the_separator_is_payload() {
        let (lines, error) = split(&b"a\n\n\0\xff\r\nlast"[..], b'\n').await;
        assert_eq!(lines, [&b"a"[..], b"", b"\0\xff\r", b"last"]);
        assert_eq!(error, None);
        let (lines, _) = split(&b"a\nb\0\0"[..], b'\0').await;
        assert_eq!(lines, [&b"a\nb"[..], b""]);
        assert_eq!(split(&b""[..], b'\n').await, (vec![], None));
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_ends_the_input_after_those_before_it() {
        let (lines, error) = split(&b"1\n2\n12345\n123456\n3\n"[..], b'\n').await;
        assert_eq!(lines, ["1", "2", "12345"]);
        let error = error.unwrap();
        assert!(error.starts_with("line 4 is longer than the 5 bytes"), "{error}");
    }

    #[tokio::test]
    async fn a_line_is_put_together_from_many_reads() {
        struct OneByte(&'static [u8]);
        impl Read for OneByte {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                self.0.read(&mut buffer[..1])
            }
        }
        let (lines, _) = split(OneByte(b"ab\ncd\n\nef"), b'\n').await;
        assert_eq!(lines, ["ab", "cd", "", "ef"]);
    }

    /// When the input pauses, the lines read before the pause are pushed.
    #[tokio::test]
    async fn a_pause_of_the_input_holds_nothing_back() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut input = Lines::of(reader, b'\n', LIMITS);
        let mut lines = Vec::new();
        for text in ["1\n2\n3\n4\n", "5\n6\n"] {
            io::Write::write_all(&mut writer, text.as_bytes()).unwrap();
            let expected = lines.len() + text.len() / 2;
            while lines.len() < expected {
                lines.extend(input.next().await.unwrap().unwrap());
            }
        }
        assert_eq!(lines, ["1", "2", "3", "4", "5", "6"]);
    }
}
