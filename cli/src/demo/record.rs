//! The records of a demo worker: one line for each start and end of a job.
//!
//! A line has a fixed size and is written by one call to a file opened for appending,
//! so that a killed worker has written either a whole record or nothing. The records
//! are the proof, because they do not come from the queue.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::Path,
};

/// The length of a record in bytes: kind, space, twelve digits, newline.
const SIZE: usize = 15;

/// Whether a record is about the start or the end of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Start,
    End,
}

/// One line of a record file: the start or the end of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) kind: Kind,
    pub(super) job: u64,
}

/// Appends records to the file of one worker process.
#[derive(Debug)]
pub(super) struct Recorder(File);

impl Recorder {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self(OpenOptions::new().append(true).create_new(true).open(path)?))
    }

    pub(super) fn write(&self, kind: Kind, job: u64) -> io::Result<()> {
        let mark = match kind {
            Kind::Start => 'S',
            Kind::End => 'E',
        };
        let line = format!("{mark} {job:012}\n");
        let written = (&self.0).write(line.as_bytes())?;
        if written == line.len() {
            Ok(())
        } else {
            Err(io::ErrorKind::WriteZero.into())
        }
    }
}

/// Reads the records of one worker. Returns the reason if the file is not readable.
pub(super) fn read(path: &Path) -> Result<Vec<Record>, String> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        // No file means no records: the worker was killed before it created its file.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("{path:?} cannot be read: {error}")),
    };
    let lines = bytes.chunks(SIZE).map(parse);
    lines.collect::<Option<_>>().ok_or_else(|| format!("{path:?} holds half a record"))
}

fn parse(line: &[u8]) -> Option<Record> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let (mark, job) = line.split_once(' ')?;
    let kind = match mark {
        "S" => Kind::Start,
        "E" => Kind::End,
        _ => return None,
    };
    Some(Record { kind, job: job.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_records_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records");
        assert_eq!(read(&path), Ok(vec![]));

        let recorder = Recorder::create(&path).unwrap();
        recorder.write(Kind::Start, 0).unwrap();
        recorder.write(Kind::End, 999_999_999_999).unwrap();
        let start = Record { kind: Kind::Start, job: 0 };
        let end = Record { kind: Kind::End, job: 999_999_999_999 };
        assert_eq!(read(&path), Ok(vec![start, end]));
    }

    #[test]
    fn half_a_record_is_not_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records");
        fs::write(&path, "S 000000000001\nE 0000").unwrap();
        assert!(read(&path).unwrap_err().contains("half a record"));
    }
}
