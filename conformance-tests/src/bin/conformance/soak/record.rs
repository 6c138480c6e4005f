//! The records of one process of the soak: a file with one line per event.
//!
//! A line has 32 bytes and is written by one call to a file opened for appending. It
//! never crosses a page of the file, where SIGKILL may cut a write in two. So a line is
//! either complete or missing.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::Path,
};

/// The length of a line in bytes. The page size is a multiple of it.
const SIZE: usize = 32;

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A producer is about to push jobs. The record has the first job's number and, as
    /// the count, how many jobs the push has.
    Meant,
    /// The store accepted the job.
    Stored,
    /// The store refused the job because another job holds its unique key.
    Refused,
    /// The producer has recorded all results of the push that begins with this job.
    Answered,
    /// A worker began to run the job. The count is the attempt.
    Start,
    /// The attempt of the job failed, as its plan says.
    Fail,
    /// The attempt of the job succeeded.
    End,
    /// A worker got a payload that belongs to no job.
    Changed,
}

const MARKS: [(Kind, &str); 8] = [
    (Kind::Meant, "M"),
    (Kind::Stored, "Y"),
    (Kind::Refused, "N"),
    (Kind::Answered, "A"),
    (Kind::Start, "S"),
    (Kind::Fail, "F"),
    (Kind::End, "E"),
    (Kind::Changed, "X"),
];

/// One record: the kind of the event, the job's number, and a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) kind: Kind,
    pub(super) job: u64,
    pub(super) count: u32,
}

/// The file to which one process writes its records.
#[derive(Debug)]
pub(super) struct Recorder(File);

impl Recorder {
    /// Opens the file for appending, and creates it if it does not exist.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(OpenOptions::new().append(true).create(true).open(path)?))
    }

    pub(super) fn write(&self, kind: Kind, job: u64, count: u32) -> io::Result<()> {
        let mark = MARKS.iter().find(|(known, _)| *known == kind);
        let (_, mark) = mark.expect("every kind has a mark");
        let line = format!("{mark} {count:010} {job:018}\n");
        let written = (&self.0).write(line.as_bytes())?;
        if written == SIZE { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }
}

/// The records of one file. The error says why the file cannot be read or parsed.
pub(super) fn read(path: &Path) -> Result<Vec<Record>, String> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        // The process was killed before it created its file.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("{path:?} cannot be read: {error}")),
    };
    let lines = bytes.chunks(SIZE).map(parse);
    lines.collect::<Option<_>>().ok_or_else(|| format!("{path:?} holds half a record"))
}

fn parse(line: &[u8]) -> Option<Record> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let mut words = line.split(' ');
    let mark = words.next()?;
    let (kind, _) = MARKS.iter().find(|(_, known)| *known == mark)?;
    let (count, job) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(Record { kind: *kind, job, count })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_records_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records");
        assert_eq!(read(&path), Ok(vec![]));

        for (kind, _) in MARKS {
            let recorder = Recorder::open(&path).unwrap();
            recorder.write(kind, 999_999_999_999_999_999, u32::MAX).unwrap();
        }
        let read = read(&path).unwrap();
        assert!(read.iter().map(|record| record.kind).eq(MARKS.map(|(kind, _)| kind)));
        assert!(read.iter().all(|record| record.job == 999_999_999_999_999_999));
        assert!(read.iter().all(|record| record.count == u32::MAX));
    }

    #[test]
    fn half_a_record_is_not_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records");
        Recorder::open(&path).unwrap().write(Kind::Start, 1, 1).unwrap();
        fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .unwrap()
            .write_all(b"E 00")
            .unwrap();
        assert!(read(&path).unwrap_err().contains("half a record"));
    }
}
