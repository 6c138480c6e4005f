//! The `relq` program: pushes jobs, runs them, and inspects and controls queues.

mod args;
mod audit;
mod batch;
mod bounded_listener;
mod cancel;
mod completion;
mod cron;
mod dead;
mod demo;
mod each_id;
mod exit_codes;
mod export;
mod format;
mod import;
mod job_options;
mod man;
#[cfg(feature = "redis")]
mod marker;
mod pause;
mod peek;
mod ping;
mod piped_input;
mod purge;
mod push;
mod queues;
mod recover;
mod result;
mod run;
#[cfg(test)]
mod sample_jobs;
#[cfg(test)]
mod sample_queues;
mod sentinel_password;
#[cfg(feature = "web")]
mod serve;
mod show;
#[cfg(any(feature = "web", feature = "top"))]
mod source;
mod stats;
mod target;
#[cfg(feature = "top")]
mod top;
mod values;
mod view;
mod wait_limit;
mod work;
mod workers;

use std::{
    io::{self, IsTerminal as _},
    process::ExitCode,
};

use relq_terminal::{
    failure, interrupts, logging, message, output, printable, store, store_url, table,
};

fn main() -> ExitCode {
    let cli = args::Cli::from_command_line();
    // The log would be drawn over the screen of a command that has one.
    if !cli.has_screen() || !io::stderr().is_terminal() {
        logging::start();
    }
    match cli.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report("relq"),
    }
}
