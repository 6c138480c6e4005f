//! Standard output: lines or JSON values, without an error when the reader has closed
//! it.

use std::io::{self, BufWriter, IsTerminal, Stdout, Write};

use clap::Args;
use serde::Serialize;

use crate::{
    failure::{CommandResult, Failure},
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
    /// Prints an output that is a single value.
    pub fn show<T: Serialize + std::fmt::Display>(self, answer: &T) -> CommandResult {
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

/// Buffered standard output.
#[derive(Debug)]
pub struct Output(BufWriter<Stdout>);

impl Output {
    /// Begins to print.
    #[expect(clippy::new_without_default, reason = "it stands for standard output")]
    pub fn new() -> Self {
        Self(BufWriter::with_capacity(64 << 10, io::stdout()))
    }

    /// Prints a text as it is.
    pub fn text(&mut self, text: &str) -> CommandResult {
        self.0.write_all(text.as_bytes()).map_err(|error| Failure::output(&error))
    }

    /// Prints a name on a line: unchanged for programs, made printable for a terminal.
    pub fn name(&mut self, name: &str) -> CommandResult {
        if io::stdout().is_terminal() {
            self.text(&printable(name))?;
        } else {
            self.text(name)?;
        }
        self.text("\n")
    }

    /// Prints a value as JSON on one line, without a newline at the end.
    pub fn json<T: Serialize>(&mut self, value: &T) -> CommandResult {
        serde_json::to_writer(&mut self.0, value)
            .map_err(|error| Failure::output(&error.into()))
    }

    /// Writes out the rest of the buffer.
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
    /// Begins the array.
    pub fn begin() -> CommandResult<Self> {
        let mut out = Output::new();
        out.text("[")?;
        Ok(Self { out, is_empty: true })
    }

    /// Prints the next item.
    pub fn item<T: Serialize>(&mut self, item: &T) -> CommandResult {
        self.out.text(if self.is_empty { "\n" } else { ",\n" })?;
        self.is_empty = false;
        self.out.json(item)
    }

    /// Writes out the items that are still in the buffer.
    pub fn flush(&mut self) -> CommandResult {
        self.out.flush()
    }

    /// Ends the array.
    pub fn end(mut self) -> CommandResult {
        self.out.text(if self.is_empty { "]\n" } else { "\n]\n" })?;
        self.out.flush()
    }
}
