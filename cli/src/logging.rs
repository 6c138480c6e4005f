//! What the libraries say while they work, on standard error.

use std::io::{self, IsTerminal};

use tracing_subscriber::{EnvFilter, filter::LevelFilter};

/// The variable that chooses what is said: a level, or directives by module.
const VARIABLE: &str = "RELQ_LOG";

/// Prints warnings and errors, or what `RELQ_LOG` asks for.
pub(crate) fn start() {
    let filter = EnvFilter::builder()
        .with_default_directive(LevelFilter::WARN.into())
        .with_env_var(VARIABLE)
        .from_env_lossy();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .init();
}
