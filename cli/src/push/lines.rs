//! The payloads, batch by batch, read no faster than they are pushed.
//!
//! A thread of its own reads, since a file or pipe may keep it waiting for as long as
//! it likes. It hands over a batch when it is full, or when the input pauses and the
//! last batch has been taken: so a slow input is pushed line by line and a fast one
//! in full batches, and no more than three batches are ever held.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
    thread,
};

use relq::{Bytes, Capabilities};
use tokio::sync::mpsc::{self, error::TrySendError};

use crate::failure::{Failure, Outcome};

/// Bytes asked for at once.
const CHUNK: usize = 64 << 10;

/// Payload bytes after which a batch is full, whatever its count.
const BATCH_BYTES: usize = 1 << 20;

/// What a backend takes at most.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    payload: usize,
    batch: usize,
}

impl Limits {
    pub(super) fn of(capabilities: &Capabilities) -> Self {
        let limits = &capabilities.limits;
        Self { payload: limits.max_payload, batch: limits.max_batch.get() as usize }
    }
}

/// Why the input ended too soon.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error("the input cannot be read: {0}")]
    Input(#[from] io::Error),
    #[error("line {line} is longer than the {limit} bytes that a payload may have")]
    TooLong { line: usize, limit: usize },
}

type Batch = Vec<Bytes>;

/// The payloads still to be pushed.
#[derive(Debug)]
pub(super) enum Lines {
    Given { left: std::vec::IntoIter<Bytes>, batch: usize },
    Read(mpsc::Receiver<Result<Batch, ReadError>>),
}

impl Lines {
    /// Payloads that are there already.
    pub(super) fn given(payloads: Vec<Bytes>, limits: Limits) -> Self {
        Self::Given { left: payloads.into_iter(), batch: limits.batch }
    }

    /// The lines of a file, or of standard input when it is `-`.
    pub(super) fn of_file(path: &Path, separator: u8, limits: Limits) -> Outcome<Self> {
        if path == Path::new("-") {
            return Ok(Self::of(io::stdin(), separator, limits));
        }
        let cannot = |error| {
            Failure::Failed(format!("the file {path:?} cannot be opened: {error}"))
        };
        Ok(Self::of(File::open(path).map_err(cannot)?, separator, limits))
    }

    fn of(input: impl Read + Send + 'static, separator: u8, limits: Limits) -> Self {
        let (to, batches) = mpsc::channel(1);
        thread::spawn(move || {
            let mut splitter = Splitter::new(separator, limits, to.clone());
            if let Err(Stop::Failed(error)) = splitter.run(input) {
                // Nobody listens any more when the push itself has ended.
                let _ = to.blocking_send(Err(error));
            }
        });
        Self::Read(batches)
    }

    /// The next batch; `None` after the last.
    pub(super) async fn next(&mut self) -> Option<Result<Batch, ReadError>> {
        match self {
            Self::Given { left, batch } => {
                let next: Batch = left.take(*batch).collect();
                (!next.is_empty()).then_some(Ok(next))
            }
            Self::Read(batches) => batches.recv().await,
        }
    }
}

/// Why the reading thread ends before its input does.
enum Stop {
    NobodyListens,
    Failed(ReadError),
}

impl<E: Into<ReadError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Cuts the input into lines and gathers them into batches.
struct Splitter {
    separator: u8,
    limits: Limits,
    to: mpsc::Sender<Result<Batch, ReadError>>,
    /// The beginning of a line whose end was not read yet.
    partial: Vec<u8>,
    batch: Batch,
    batch_bytes: usize,
    lines: usize,
}

impl Splitter {
    fn new(
        separator: u8,
        limits: Limits,
        to: mpsc::Sender<Result<Batch, ReadError>>,
    ) -> Self {
        let (partial, batch) = (Vec::new(), Vec::new());
        Self { separator, limits, to, partial, batch, batch_bytes: 0, lines: 0 }
    }

    fn run(&mut self, mut input: impl Read) -> Result<(), Stop> {
        let mut chunk = vec![0; CHUNK];
        loop {
            let length = match input.read(&mut chunk) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.hand_over()?;
                    return Err(error.into());
                }
            };
            if length == 0 {
                return self.finish();
            }
            let separator = self.separator;
            for piece in chunk[..length].split_inclusive(|byte| *byte == separator) {
                self.take(piece)?;
            }
            self.offer()?;
        }
    }

    /// Takes a piece of the input that holds a separator at its end or none.
    fn take(&mut self, piece: &[u8]) -> Result<(), Stop> {
        let (text, ends) = match piece.split_last() {
            Some((last, text)) if *last == self.separator => (text, true),
            _ => (piece, false),
        };
        if self.partial.len() + text.len() > self.limits.payload {
            // What came before the line is pushed all the same.
            self.hand_over()?;
            let (line, limit) = (self.lines + 1, self.limits.payload);
            return Err(ReadError::TooLong { line, limit }.into());
        }
        if !ends {
            self.partial.extend_from_slice(text);
            return Ok(());
        }
        if self.partial.is_empty() {
            return self.line(Bytes::copy_from_slice(text));
        }
        self.partial.extend_from_slice(text);
        let line = std::mem::take(&mut self.partial);
        self.line(line.into())
    }

    fn line(&mut self, line: Bytes) -> Result<(), Stop> {
        self.lines += 1;
        self.batch_bytes += line.len();
        self.batch.push(line);
        if self.batch.len() >= self.limits.batch || self.batch_bytes >= BATCH_BYTES {
            self.hand_over()?;
        }
        Ok(())
    }

    /// A last line without a separator counts.
    fn finish(&mut self) -> Result<(), Stop> {
        if !self.partial.is_empty() {
            let line = std::mem::take(&mut self.partial);
            self.line(line.into())?;
        }
        self.hand_over()
    }

    /// Hands over the batch, waiting until the one before it was taken.
    fn hand_over(&mut self) -> Result<(), Stop> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let batch = self.empty_batch();
        self.to.blocking_send(Ok(batch)).map_err(|_| Stop::NobodyListens)
    }

    /// Hands over the batch if the one before it was taken.
    fn offer(&mut self) -> Result<(), Stop> {
        if self.batch.is_empty() {
            return Ok(());
        }
        match self.to.clone().try_reserve() {
            Ok(place) => place.send(Ok(self.empty_batch())),
            Err(TrySendError::Full(())) => {}
            Err(TrySendError::Closed(())) => return Err(Stop::NobodyListens),
        }
        Ok(())
    }

    fn empty_batch(&mut self) -> Batch {
        self.batch_bytes = 0;
        std::mem::take(&mut self.batch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { payload: 5, batch: 3 };

    /// All lines that come out of `input`, and the error that ended them.
    fn split(input: &[u8], separator: u8) -> (Vec<Bytes>, Option<String>) {
        let input = io::Cursor::new(input.to_vec());
        let Lines::Read(mut batches) = Lines::of(input, separator, LIMITS) else {
            unreachable!("the lines are read");
        };
        let mut lines = Vec::new();
        while let Some(batch) = batches.blocking_recv() {
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

    #[test]
    fn every_byte_but_the_separator_is_payload() {
        let (lines, error) = split(b"a\n\n\0\xff\r\nlast", b'\n');
        assert_eq!(lines, [&b"a"[..], b"", b"\0\xff\r", b"last"]);
        assert_eq!(error, None);
        let (lines, _) = split(b"a\nb\0\0", b'\0');
        assert_eq!(lines, [&b"a\nb"[..], b""]);
        assert_eq!(split(b"", b'\n'), (vec![], None));
    }

    #[test]
    fn a_line_that_is_too_long_ends_the_input_after_those_before_it() {
        let (lines, error) = split(b"1\n2\n12345\n123456\n3\n", b'\n');
        assert_eq!(lines, ["1", "2", "12345"]);
        let error = error.unwrap();
        assert!(error.starts_with("line 4 is longer than the 5 bytes"), "{error}");
    }

    #[test]
    fn a_line_is_put_together_from_many_reads() {
        struct OneByte(io::Cursor<Vec<u8>>);
        impl Read for OneByte {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                self.0.read(&mut buffer[..1])
            }
        }
        let input = OneByte(io::Cursor::new(b"ab\ncd\nef".to_vec()));
        let Lines::Read(mut batches) = Lines::of(input, b'\n', LIMITS) else {
            unreachable!("the lines are read");
        };
        let mut lines = Vec::new();
        while let Some(batch) = batches.blocking_recv() {
            lines.extend(batch.unwrap());
        }
        assert_eq!(lines, ["ab", "cd", "ef"]);
    }
}
