//! The arguments of the program: the options that name the queue, and the command.

mod exec;

use clap::{
    CommandFactory, Error, FromArgMatches, Parser, Subcommand,
    error::{ContextKind, ContextValue, ErrorKind},
};
use tokio::runtime::Runtime;

#[cfg(feature = "redis")]
use crate::marker;
#[cfg(feature = "web")]
use crate::serve;
#[cfg(feature = "top")]
use crate::top;
use crate::{
    audit, batch, cancel, completion, cron, dead, demo, export,
    failure::{CommandResult, Failure, end},
    import, man, pause, peek, ping, purge, push, queues, recover, result, run, show,
    stats,
    target::{self, Target},
    values::with_negative_numbers,
    work, workers,
};

/// Reliable queues from the command line.
///
/// A pushed job is kept until a worker has finished it, even if processes die in
/// between. It may run more than once, so make the work safe to repeat.
#[derive(Parser, Debug)]
#[command(name = "relq", version, max_term_width = 88, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    #[command(flatten)]
    target: Target,

    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
URLs:
  sqlite:PATH                      a file; push and a waiting worker create it
  sqlite:PATH?synchronous=normal   faster; a power cut may take the last writes
  zset+redis://HOST:PORT/DATABASE  Redis 7.0 or later; redis:// alone means the same
  zset+rediss://…                  the same, encrypted; in a build with --features tls
  zset+unix://…                    the same, on a Unix socket
  zset+redis-sentinel://H1,H2/NAME the master NAME, by the sentinels at H1 and H2
  zset+redis-cluster://H1,H2       a cluster that H1 and H2 are nodes of
  processing-list+redis://…        a list for each worker; ?mode=shared, one for all
  circular+redis://…               one rotating list; ?finish=lrem keeps it short
  stream+redis://…                 a stream and its consumer group
  keyspace+redis://HOST/DATABASE   each job a key of a database of its own

Environment:
  RELQ_URL, RELQ_QUEUE  what --url and --queue say on the command line
  RELQ_PASSWORD_FILE    a file that holds the password of a URL without one
  RELQ_SENTINEL_PASSWORD_FILE
                        a file that holds the password of the sentinels of a URL
  RELQ_LOG              such as info: prints more of what goes on

Exit codes: 0 done, 1 failed, 2 the command line makes no sense; of work --until-empty,
push --wait and result also 3 jobs died, 4 jobs are left; of the last two also 5 the job
was cancelled or discarded.";

#[derive(Subcommand, Debug)]
enum Command {
    Push(push::Args),
    Work(work::Args),
    Stats(stats::Args),
    #[command(visible_alias = "list")]
    Peek(peek::Args),
    Show(show::Args),
    Dead(dead::Args),
    Result(result::Args),
    Cancel(cancel::Args),
    Run(run::Args),
    Pause(pause::PauseArgs),
    Resume(pause::ResumeArgs),
    Recover(recover::Args),
    Purge(purge::Args),
    Export(export::Args),
    Import(import::Args),
    Batch(batch::Args),
    Cron(cron::Args),
    Audit(audit::Args),
    Ping(ping::Args),
    Workers(workers::Args),
    Queues(queues::Args),
    #[cfg(feature = "top")]
    Top(top::Args),
    #[cfg(feature = "web")]
    Serve(serve::Args),
    #[cfg(feature = "redis")]
    Marker(marker::Args),
    Demo(demo::Args),
    Completion(completion::Args),
    Man(man::Args),
    #[command(hide = true)]
    DemoWorker(demo::WorkerArgs),
    #[command(hide = true)]
    LeadGroup(work::GuardArgs),
}

impl Cli {
    /// Parses the command line. If it is invalid, prints the reason and exits with 2.
    pub(crate) fn from_command_line() -> Self {
        let command = target::without_empty_queue(Self::command());
        let mut command = with_negative_numbers(command);
        let words = exec::join_words(std::env::args_os());
        let read = command.try_get_matches_from_mut(words).and_then(|matches| {
            Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
        });
        read.unwrap_or_else(|error| end(&without_hidden(with_advice(error), &command)))
    }

    /// Whether the command draws on the whole terminal.
    pub(crate) fn has_screen(&self) -> bool {
        #[cfg(feature = "top")]
        return matches!(self.command, Command::Top(_));
        #[cfg(not(feature = "top"))]
        false
    }

    /// Runs the command that the arguments name.
    pub(crate) fn run(self) -> CommandResult {
        // A worker starts many guard processes, so a guard must stay small: run it
        // before the runtime starts its threads.
        if let Command::LeadGroup(args) = self.command {
            return work::run_guard(args);
        }
        let cannot = |error| Failure::Failed(format!("cannot start threads: {error}"));
        let runtime = Runtime::new().map_err(cannot)?;
        let outcome = runtime.block_on(Box::pin(self.command.run(&self.target)));
        runtime.shutdown_background();
        outcome
    }
}

/// Says how a worker serves several queues to a user who repeats `--queue`.
fn with_advice(mut error: Error) -> Error {
    let is_queue = |kind| {
        let name = error.get(kind).map(ToString::to_string);
        name.is_some_and(|name| name.starts_with("--queue"))
    };
    if error.kind() == ErrorKind::ArgumentConflict
        && is_queue(ContextKind::InvalidArg)
        && is_queue(ContextKind::PriorArg)
    {
        let advice = "a worker of several queues has --serve NAME for each of them";
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![advice.to_owned().into()]),
        );
    }
    error
}

/// Takes the hidden commands out of the list of those that can be given.
fn without_hidden(mut error: Error, command: &clap::Command) -> Error {
    let kind = ContextKind::ValidSubcommand;
    let Some(ContextValue::Strings(names)) = error.get(kind) else { return error };
    let is_hidden = |name: &String| {
        command.find_subcommand(name).is_some_and(clap::Command::is_hide_set)
    };
    let shown = names.iter().filter(|name| !is_hidden(name)).cloned().collect();
    error.insert(kind, ContextValue::Strings(shown));
    error
}

impl Command {
    async fn run(self, target: &Target) -> CommandResult {
        match self {
            Self::Push(args) => Box::pin(args.run(target)).await,
            Self::Work(args) => Box::pin(args.run(target)).await,
            Self::Stats(args) => args.run(target).await,
            Self::Peek(args) => args.run(target).await,
            Self::Show(args) => Box::pin(args.run(target)).await,
            Self::Dead(args) => args.run(target).await,
            Self::Result(args) => Box::pin(args.run(target)).await,
            Self::Cancel(args) => args.run(target).await,
            Self::Run(args) => args.run(target).await,
            Self::Pause(args) => args.run(target).await,
            Self::Resume(args) => args.run(target).await,
            Self::Recover(args) => args.run(target).await,
            Self::Purge(args) => args.run(target).await,
            Self::Export(args) => args.run(target).await,
            Self::Import(args) => Box::pin(args.run(target)).await,
            Self::Batch(args) => Box::pin(args.run(target)).await,
            Self::Cron(args) => Box::pin(args.run(target)).await,
            Self::Audit(args) => args.run(target).await,
            Self::Ping(args) => args.run(target).await,
            Self::Workers(args) => args.run(target).await,
            Self::Queues(args) => args.run(target).await,
            #[cfg(feature = "top")]
            Self::Top(args) => Box::pin(args.run(target)).await,
            #[cfg(feature = "web")]
            Self::Serve(args) => Box::pin(args.run(target)).await,
            #[cfg(feature = "redis")]
            Self::Marker(args) => args.run(target).await,
            Self::Demo(args) => Box::pin(args.run(target)).await,
            Self::Completion(args) => args.run(&Cli::command()),
            Self::Man(args) => args.run(Cli::command()),
            Self::DemoWorker(args) => Box::pin(args.run(target)).await,
            Self::LeadGroup(args) => work::run_guard(args),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
