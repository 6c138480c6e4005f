//! The `relq-bench` program: compares the backends on your server.

mod at_rest;
mod charts;
mod command;
mod contender;
mod drawn_again;
mod growth;
mod measure;
mod meter;
mod page;
mod partitions;
mod plan;
mod pushing;
mod queue;
mod raw_redis;
mod raw_sqlite;
mod results;
mod sample;
mod server;
mod server_time;
mod spent;
mod tally;
mod text;
mod workload;

use std::process::ExitCode;

use relq_terminal::{failure, interrupts, logging, message, output, store, table};

fn main() -> ExitCode {
    let bench = command::Bench::from_command_line();
    logging::start();
    match bench.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report("relq-bench"),
    }
}
