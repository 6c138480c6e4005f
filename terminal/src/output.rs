//! Prints lines or JSON values on standard output. A reader that has closed the
//! output is not an error.

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

use clap::Args;
use serde::Serialize;

use crate::{
    failure::{CommandResult, Failure, unless_closed},
    printable::{printable, printable_lines},
};

/// The output format of a command.
#[derive(Args, Debug, Clone, Copy)]
pub struct Format {
    /// Print one JSON value in place of text.
    #[arg(long)]
    pub json: bool,
}

impl Format {
    /// Prints one value, as text or as JSON.
    pub fn show<T: Serialize + std::fmt::Display>(self, answer: &T) -> CommandResult {
        unless_closed(self.print(answer))
    }

    fn print<T: Serialize + std::fmt::Display>(self, answer: &T) -> CommandResult {
        let mut out = Output::new();
        if self.json {
            out.json(answer)?;
            out.text("\n")?;
        } else {
            out.text(&printable_lines(&answer.to_string()))?;
        }
        out.flush()
    }
}

/// Text for standard output. It is collected in a buffer until it is flushed.
#[derive(Debug)]
pub struct Output(BufWriter<Stdout>);

impl Output {
    /// Creates an empty buffer for standard output.
    #[expect(clippy::new_without_default, reason = "it stands for standard output")]
    pub fn new() -> Self {
        Self(BufWriter::with_capacity(64 << 10, io::stdout()))
    }

    /// Prints a text unchanged. Unlike a name, the text is not made printable.
    pub fn text(&mut self, text: &str) -> CommandResult {
        self.0.write_all(text.as_bytes()).map_err(|error| Failure::output(&error))
    }

    /// Prints a name on a line. On a terminal the name is made printable. Otherwise a
    /// program reads the output, so the name is printed unchanged.
    pub fn name(&mut self, name: &str) -> CommandResult {
        if io::stdout().is_terminal() {
            self.text(&printable(name))?;
        } else {
            self.text(name)?;
        }
        self.text("\n")
    }

    /// Prints bytes unchanged. On a terminal they are made printable, but for newlines.
    pub fn bytes(&mut self, bytes: &[u8]) -> CommandResult {
        if io::stdout().is_terminal() {
            return self.text(&printable_lines(&String::from_utf8_lossy(bytes)));
        }
        self.0.write_all(bytes).map_err(|error| Failure::output(&error))
    }

    /// Prints a value as JSON on one line, without a newline at the end.
    pub fn json<T: Serialize>(&mut self, value: &T) -> CommandResult {
        serde_json::to_writer(&mut self.0, value)
            .map_err(|error| Failure::output(&error.into()))
    }

    /// Writes the text that is still in the buffer to standard output.
    pub fn flush(&mut self) -> CommandResult {
        self.0.flush().map_err(|error| Failure::output(&error))
    }
}

/// A JSON array that is printed item by item, so that it can be of any length.
#[derive(Debug)]
pub struct JsonArray {
    out: Output,
    is_empty: bool,
}

impl JsonArray {
    /// Prints the beginning of the array.
    pub fn begin() -> CommandResult<Self> {
        let mut out = Output::new();
        out.text("[")?;
        Ok(Self { out, is_empty: true })
    }

    /// Prints the next item of the array.
    pub fn item<T: Serialize>(&mut self, item: &T) -> CommandResult {
        self.out.text(if self.is_empty { "\n" } else { ",\n" })?;
        self.is_empty = false;
        self.out.json(item)
    }

    /// Writes the items that are still in the buffer to standard output.
    pub fn flush(&mut self) -> CommandResult {
        self.out.flush()
    }

    /// Prints the end of the array, and writes out the buffer.
    pub fn end(mut self) -> CommandResult {
        self.out.text(if self.is_empty { "]\n" } else { "\n]\n" })?;
        self.out.flush()
    }
}
