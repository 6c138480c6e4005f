//! The file of an export, which is read line by line and more than once.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Seek, SeekFrom},
    path::Path,
};

use crate::{
    failure::{CommandResult, Failure},
    piped_input,
};

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
        Ok(Self { name, lines: BufReader::new(opened), offset: 0, number: 0 })
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
        let mut text = String::new();
        let offset = self.offset;
        let read = self.lines.read_line(&mut text);
        let read = read.map_err(|error| self.unreadable(&error.to_string()))?;
        if read == 0 {
            return Ok(None);
        }
        self.offset += read as u64;
        self.number += 1;
        text.truncate(text.trim_end_matches(['\n', '\r']).len());
        Ok(Some(Line { number: self.number, offset, text }))
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

fn spooled_input() -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    io::copy(&mut io::stdin().lock(), &mut file)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}
