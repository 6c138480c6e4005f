//! The file of an export, which is read line by line and more than once.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    path::Path,
};

use relq::capabilities::Limits;

use crate::{
    export::Head,
    failure::{CommandResult, Failure},
    piped_input,
};

/// The longest first line of an export, in bytes. The name of its queue has 200 at most.
const LONGEST_HEAD: u64 = 4096;

/// How many bytes a line of a job has beside its payload and its headers at most: errors of
/// 64 KiB, ids, and the names of the fields and of the headers.
const OTHER_FIELDS: usize = 1 << 20;

/// How many bytes of JSON a control character has, as in `\u0001`.
const ESCAPE: usize = 6;

/// A line of the file.
pub(super) struct Line {
    /// Its number, from 1.
    pub(super) number: u64,
    /// Where it begins, in bytes.
    pub(super) offset: u64,
    pub(super) text: String,
}

/// A file of lines that can be read again from any of its lines on.
pub(super) struct ExportFile {
    /// Its name in messages.
    name: String,
    lines: BufReader<File>,
    offset: u64,
    number: u64,
    /// How many bytes a line may have: a file without newlines does not fit into memory.
    longest: u64,
}

impl ExportFile {
    /// Opens the file. Standard input is copied to a temporary file first, because it can
    /// be read only once.
    pub(super) fn open(path: &Path) -> CommandResult<Self> {
        let name = piped_input::in_words(path);
        let opened = if piped_input::is_name_of(path) {
            spooled_input()
        } else {
            File::open(path)
        };
        let opened = opened.map_err(|error| {
            Failure::Failed(format!("{name} cannot be read: {error}"))
        })?;
        let lines = BufReader::new(opened);
        Ok(Self { name, lines, offset: 0, number: 0, longest: LONGEST_HEAD })
    }

    /// Allows lines of all jobs that a store with these limits takes.
    pub(super) fn allow_jobs_of(&mut self, limits: &Limits) {
        let bytes = limits.max_payload + limits.max_headers + OTHER_FIELDS;
        self.longest = (ESCAPE * bytes) as u64;
    }

    /// Whether nothing is left to read.
    pub(super) fn is_empty(&mut self) -> CommandResult<bool> {
        let read = self.lines.fill_buf().map(<[u8]>::is_empty);
        read.map_err(|error| self.unreadable(&error.to_string()))
    }

    /// Goes back to the first line.
    pub(super) fn rewind(&mut self) -> CommandResult {
        self.seek(0, 0)
    }

    /// Reads the line that begins at this place again.
    pub(super) fn line_at(&mut self, offset: u64, number: u64) -> CommandResult<Line> {
        self.seek(offset, number - 1)?;
        let line = self.next()?;
        line.ok_or_else(|| self.unreadable("it became shorter during the import"))
    }

    /// Reads the next line, without its newline. `None` at the end.
    pub(super) fn next(&mut self) -> CommandResult<Option<Line>> {
        let mut bytes = Vec::new();
        let (offset, longest) = (self.offset, self.longest);
        let read = self.lines.by_ref().take(longest + 1).read_until(b'\n', &mut bytes);
        let read = read.map_err(|error| self.unreadable(&error.to_string()))? as u64;
        if read == 0 {
            return Ok(None);
        }
        if read > longest {
            return Err(self.too_long());
        }
        self.offset += read;
        self.number += 1;
        let text = String::from_utf8(bytes);
        let mut text =
            text.map_err(|error| self.wrong(self.number, &error.to_string()))?;
        text.truncate(text.trim_end_matches(['\n', '\r']).len());
        Ok(Some(Line { number: self.number, offset, text }))
    }

    /// The failure because the next line is too long.
    fn too_long(&self) -> Failure {
        let longest = self.longest;
        match self.number {
            0 => self.unreadable(&format!(
                "its first line is not that of an export: it is longer than {longest} bytes"
            )),
            before => self.wrong(
                before + 1,
                &format!(
                    "it is longer than the {longest} bytes that a job of this store can have"
                ),
            ),
        }
    }

    /// The failure of an import because of this line.
    pub(super) fn wrong(&self, number: u64, why: &str) -> Failure {
        Failure::Failed(format!("{}, line {number}: {why}", self.name))
    }

    /// The failure of an import because of the file.
    pub(super) fn unreadable(&self, why: &str) -> Failure {
        Failure::Failed(format!("{} cannot be used: {why}", self.name))
    }

    fn seek(&mut self, offset: u64, number: u64) -> CommandResult {
        let sought = self.lines.seek(SeekFrom::Start(offset));
        sought.map_err(|error| self.unreadable(&error.to_string()))?;
        (self.offset, self.number) = (offset, number);
        Ok(())
    }
}

/// Copies standard input to a file. Of what is not an export, which may have no end, only the
/// first line is copied.
fn spooled_input() -> io::Result<File> {
    let (mut input, mut head) = (io::stdin().lock(), Vec::new());
    input.by_ref().take(LONGEST_HEAD + 1).read_until(b'\n', &mut head)?;
    let mut file = tempfile::tempfile()?;
    file.write_all(&head)?;
    if serde_json::from_slice::<Head>(&head).is_ok() {
        io::copy(&mut input, &mut file)?;
    }
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use relq::{
        environment::Timestamp,
        limits::MAX_RESTORED_ERROR_BYTES,
        operator::{JobView, StateDetail},
    };

    use super::*;
    use crate::view::JobJson;

    /// Opens a file of these lines for a store of jobs with payloads of up to 5,000 bytes.
    fn file_of(lines: &[&str]) -> ExportFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), lines.join("\n")).unwrap();
        let mut opened = ExportFile::open(file.path()).unwrap();
        opened.allow_jobs_of(&Limits { max_payload: 5000, ..Limits::DEFAULT });
        opened
    }

    /// In JSON a job may be six times as long as it is.
    #[test]
    fn a_line_of_the_largest_job_is_read() {
        let controls = |count| "\u{1}".repeat(count);
        let error = controls(MAX_RESTORED_ERROR_BYTES);
        let since = Timestamp::from_unix_ms(1);
        let detail = StateDetail::Dead { reason: error.clone(), since };
        let mut job = JobView::new(None, controls(5000), detail);
        job.last_error = Some(error);
        job.headers.set("h", controls(Limits::DEFAULT.max_headers - 1));
        let largest = serde_json::to_string(&JobJson::from(&job)).unwrap();

        let read = file_of(&[&largest]).next().unwrap();

        assert_eq!(read.map(|line| line.text.len()), Some(largest.len()));
    }

    /// A line is not read to its end when it is longer than any job.
    #[test]
    fn a_line_that_is_no_job_by_its_length_is_refused() {
        let mut file = file_of(&["a job", &"x".repeat(7_000_000)]);
        assert!(file.next().unwrap().is_some());

        let Err(Failure::Failed(why)) = file.next() else { panic!("it is read") };

        assert!(why.contains("line 2: it is longer than the 6714672 bytes"), "{why}");
    }
}
