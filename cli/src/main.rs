//! The `relq` program: push jobs, work them, look at a queue and steer it.

mod args;
mod audit;
mod batch;
mod bench;
mod cancel;
mod dead;
mod demo;
mod failure;
mod interrupts;
mod logging;
#[cfg(feature = "redis")]
mod marker;
mod output;
mod pause;
mod peek;
mod printable;
mod purge;
mod push;
#[cfg(feature = "redis")]
mod queues;
mod recover;
mod stats;
mod table;
mod view;
mod work;

use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = args::Cli::from_command_line();
    logging::start();
    match cli.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
