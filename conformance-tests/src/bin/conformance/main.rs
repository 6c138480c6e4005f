//! `conformance`: tests relq's own backends from the command line.

mod backend;
mod explore;
mod report;
mod soak;

use std::process::ExitCode;

use clap::Parser;
use relq_conformance::{own::sqlite, sweep::processes};
use relq_core::error::BoxError;

/// The result of a command, or the error that prevented a result.
type SuiteResult<T> = Result<T, BoxError>;

/// Test whether a backend of relq is reliable
#[derive(Parser, Debug)]
#[command(name = "conformance", version)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    Report(report::Args),
    Explore(explore::Args),
    Soak(soak::Args),
    SoakBatches(soak::BatchArgs),
    #[command(hide = true)]
    SoakBatchWorker(soak::BatchWorkerArgs),
    #[command(hide = true)]
    SoakWorker(soak::WorkerArgs),
    #[command(hide = true)]
    SoakProducer(soak::ProducerArgs),
    /// A process that a report kills
    #[command(hide = true, name = sqlite::CHILD[0])]
    SqliteChild,
}

fn main() -> ExitCode {
    match run(Args::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("conformance: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Carries out a command. Returns whether the backend kept all its promises.
fn run(command: Command) -> SuiteResult<bool> {
    let runtime = tokio::runtime::Runtime::new()?;
    match command {
        Command::Report(args) => args.run(),
        Command::Explore(args) => args.run(),
        Command::Soak(args) => runtime.block_on(Box::pin(args.run())),
        Command::SoakBatches(args) => runtime.block_on(Box::pin(args.run())),
        Command::SoakBatchWorker(args) => runtime.block_on(args.run()).map(|()| true),
        Command::SoakWorker(args) => runtime.block_on(args.run()).map(|()| true),
        Command::SoakProducer(args) => runtime.block_on(args.run()).map(|()| true),
        Command::SqliteChild => processes::live(sqlite::SQLITE),
    }
}
