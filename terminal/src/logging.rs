//! Prints the log of the libraries on standard error.

use std::{
    fmt,
    io::{self, IsTerminal},
};

use tracing_subscriber::{
    EnvFilter,
    field::MakeExt,
    filter::LevelFilter,
    fmt::format::{Writer, debug_fn},
};

use crate::printable::printable;

/// The environment variable that filters the log: a level, or directives by module.
const VARIABLE: &str = "RELQ_LOG";

/// Starts to print the log: warnings and errors, or the events that `RELQ_LOG` selects.
pub fn start() {
    let filter = EnvFilter::builder()
        .with_default_directive(LevelFilter::WARN.into())
        .with_env_var(VARIABLE)
        .from_env_lossy();
    // Make all fields printable, because ids, errors of handlers and replies of a
    // server may contain any text.
    let fields = debug_fn(|to, field, value| write_field(to, field.name(), value));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .fmt_fields(fields.delimited(" "))
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        // A failed write to standard error would be reported there too, and that report
        // would panic.
        .log_internal_errors(false)
        .init();
}

fn write_field(to: &mut Writer<'_>, name: &str, value: &dyn fmt::Debug) -> fmt::Result {
    let value = printable(&format!("{value:?}"));
    match name {
        "message" => to.write_str(&value),
        name => write!(to, "{name}={value}"),
    }
}
