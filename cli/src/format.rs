//! The output format of a command: text for people, or JSON for scripts.

use std::fmt::Display;

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::{
    failure::{CommandResult, unless_closed},
    output::{JsonArray, Output},
    printable::printable_lines,
};

/// The output format of a command.
#[derive(Args, Debug, Clone, Copy)]
pub(crate) struct Format {
    /// Print text, one JSON value, or one JSON value on a line for each record
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value = "table")]
    output: OutputFormat,

    /// The same as --output json
    #[arg(long, conflicts_with = "output")]
    json: bool,
}

#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum OutputFormat {
    Table,
    Json,
    Jsonl,
}

impl Format {
    /// Whether the output is for scripts.
    pub(crate) fn is_json(self) -> bool {
        self.chosen() != OutputFormat::Table
    }

    /// Prints one value, as text or as JSON on one line.
    pub(crate) fn show<T: Serialize + Display>(self, value: &T) -> CommandResult {
        unless_closed(self.print(value))
    }

    fn print<T: Serialize + Display>(self, value: &T) -> CommandResult {
        let mut out = Output::new();
        if self.is_json() {
            out.json(value)?;
            out.text("\n")?;
        } else {
            out.text(&printable_lines(&value.to_string()))?;
        }
        out.flush()
    }

    /// Begins the output of any number of records as JSON.
    pub(crate) fn records(self) -> CommandResult<Records> {
        match self.chosen() {
            OutputFormat::Jsonl => Ok(Records::Lines(Output::new())),
            OutputFormat::Table | OutputFormat::Json => {
                JsonArray::begin().map(Records::Array)
            }
        }
    }

    /// Prints records as JSON.
    pub(crate) fn print_records<T: Serialize>(
        self,
        all: impl IntoIterator<Item = T>,
    ) -> CommandResult {
        let mut records = self.records()?;
        all.into_iter().try_for_each(|record| records.item(&record))?;
        records.end()
    }

    fn chosen(self) -> OutputFormat {
        if self.json { OutputFormat::Json } else { self.output }
    }
}

/// Records that are printed one by one, as a JSON array or each on a line of its own.
#[derive(Debug)]
pub(crate) enum Records {
    Array(JsonArray),
    Lines(Output),
}

impl Records {
    /// Prints the next record.
    pub(crate) fn item<T: Serialize>(&mut self, item: &T) -> CommandResult {
        match self {
            Self::Array(array) => array.item(item),
            Self::Lines(out) => {
                out.json(item)?;
                out.text("\n")
            }
        }
    }

    /// Writes the records that are still in the buffer to standard output.
    pub(crate) fn flush(&mut self) -> CommandResult {
        match self {
            Self::Array(array) => array.flush(),
            Self::Lines(out) => out.flush(),
        }
    }

    /// Prints the end of the records, and writes out the buffer.
    pub(crate) fn end(self) -> CommandResult {
        match self {
            Self::Array(array) => array.end(),
            Self::Lines(mut out) => out.flush(),
        }
    }
}

/// A number of things, such as `1 job` or `2 jobs`.
pub(crate) fn counted(count: u64, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}
