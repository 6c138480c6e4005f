//! `relq import`: stores the jobs of an export in a queue.
//!
//! ```text
//!  1. read the file twice: compare the ids, then check each job   nothing is written
//!  2. pause the queue
//!  3. restore the jobs that follow no other, or push them if the backend restores none
//!  4. push the followers, each after its leader
//!  5. resume the queue
//! ```
//!
//! Each job has an id, and no job ends while the queue is paused. So an import that was
//! killed in steps 3 to 5 is repeated with `--resume`: the store knows the ids, and stores no
//! job twice (R4, R34).

mod check;
mod ended_jobs;
mod file;
mod ids;
mod job_line;
mod storing;

use std::{fmt, path::PathBuf};

use clap::ValueEnum;
use relq::{Queue, capabilities::Capability};
use serde::Serialize;

use crate::{
    failure::{CommandResult, Failure},
    format::{Format, counted},
    interrupts::Interrupts,
    message::say,
    piped_input,
    push::Sender,
    target::Target,
};
use check::Checked;
use ended_jobs::EndedJobs;
use file::ExportFile;
use job_line::{Choices, Kept};
use storing::Storing;

/// Store the jobs of a file that `relq export` has written
///
/// The whole file is checked before the first job is stored. The queue must be empty, and is
/// paused while the import works, so that no job runs before all are there. An import that
/// was stopped is repeated with --resume: it stores the jobs that are missing, and no job
/// twice. The queue may be on another backend than that of the export, if it supports the
/// options of the jobs.
///
/// The jobs keep their ids, payloads, headers, priorities, unique keys, due times, times of
/// expiry, numbers of attempts, lengths of leases, and the jobs that they follow. A job
/// without an id gets one, made from its line, and so does a job whose id another job of the
/// file has. The report names the new ids. On zset, stream and SQLite they also keep the
/// attempts that they have made, their last errors, and when they were pushed, and a dead job
/// stays dead. Followers are pushed anew.
///
/// On the other backends each job is pushed anew: its attempts begin with the first one, its
/// age with the import, and its earlier errors are gone. Times are compared with the clock of
/// this machine. A dead job cannot be stored there as a dead one: say with --dead what becomes
/// of it.
///
/// A piece of a batch can only be stored as a job without the batch: --drop-batches.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Exit codes: 0 all jobs of the file are stored; 1 the file or the \
                        queue cannot be used, the import was stopped, another job holds the \
                        unique key of a job, the store remembers the id of a job from its \
                        end, or a job follows one that was not stored."
)]
pub(crate) struct Args {
    /// The file; - is standard input, which is also read if no file is named and it is a pipe
    /// or a file
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// The same as FILE, as other commands name a file
    #[arg(short = 'f', long = "file", value_name = "FILE", conflicts_with = "file")]
    named: Option<PathBuf>,

    /// Go on with an import that was stopped, in a queue that has jobs already
    #[arg(long)]
    resume: bool,

    /// Whether dead jobs become ready without an attempt, or are not stored. By default they
    /// stay dead, and one that cannot be read never becomes ready
    #[arg(long, value_enum)]
    dead: Option<DeadJobs>,

    /// Store the pieces of batches as jobs without a batch
    #[arg(long)]
    drop_batches: bool,

    #[command(flatten)]
    format: Format,
}

const NOTHING: &str = "\
nothing to import: give a file that `relq export` has written (- is standard input)";

/// Whether the dead jobs of the file become ready or are left out.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
enum DeadJobs {
    /// They become ready
    Retry,
    /// They are not stored
    Skip,
}

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        let mut file = self.open_file()?;
        // Check the head first: a file that is not an export must not create a store.
        check::check_head(&mut file)?;
        file.rewind()?;
        let queue = target.open().await?;
        let checked = Checked::read(&mut file, &*queue, &self)?;
        // Until here a signal ends the process, which may wait for its input: nothing is
        // written yet.
        let interrupts = Interrupts::listen()?;
        let was_paused = self.prepare(&*queue, target).await?;
        let sender = Sender::new(queue.clone(), interrupts);
        // A resumed import stores into a queue that has jobs of the file.
        let ended = (!self.resume).then(|| EndedJobs::new(&sender, &*queue));
        let storing = Storing::new(&sender, self.choices(&*queue), ended);
        let done = storing.run(&mut file, &checked).await;
        let report = done.map_err(|failure| {
            failure.after("the queue stays paused: repeat the import with --resume")
        })?;
        // The queue is resumed also if the report cannot be printed.
        let shown = self.format.show(&report);
        if was_paused {
            say("the queue stays paused, as it was before: `relq resume` starts it");
        } else {
            queue.resume().await.map_err(|error| {
                Failure::from(error).after(
                    "the import is done, but the queue may still be paused: `relq resume` \
                     starts it",
                )
            })?;
        }
        shown.map_err(|failure| failure.after("the import is done"))?;
        report.judge()
    }

    fn open_file(&self) -> CommandResult<ExportFile> {
        let nothing = || Failure::Usage(NOTHING.to_owned());
        let named = self.file.as_deref().or(self.named.as_deref());
        let mut file =
            ExportFile::open(&piped_input::or_input(named).ok_or_else(nothing)?)?;
        if named.is_none() && file.is_empty()? {
            return Err(nothing());
        }
        Ok(file)
    }

    /// How the jobs of the file are stored in this queue.
    fn choices(&self, queue: &dyn Queue) -> Choices {
        let restores = queue.capabilities().supports(Capability::Restore);
        let kept = if restores { Kept::AsItWas } else { Kept::Anew };
        Choices { kept, dead: self.dead }
    }

    /// Checks that the queue is empty, and pauses it. Returns whether it was paused before.
    async fn prepare(&self, queue: &dyn Queue, target: &Target) -> CommandResult<bool> {
        let stats = queue.stats().await?;
        let jobs = stats.unfinished() + stats.dead;
        if jobs > 0 && !self.resume {
            return Err(Failure::Failed(format!(
                "the queue {} has {}, and nothing was stored: import into another queue, or go \
                 on with a stopped import with --resume",
                target.queue,
                counted(jobs, "job")
            )));
        }
        if !stats.paused {
            queue.pause().await?;
        }
        Ok(stats.paused)
    }
}

/// How many jobs of the file were stored, and how many were not.
#[derive(Serialize, Default, Debug)]
struct Report {
    /// Jobs that this import stored.
    stored: u64,
    /// Jobs that an earlier import has stored.
    known: u64,
    /// Lines whose job an earlier line has.
    repeated: u64,
    /// The new ids of jobs that had the id of another job of the file.
    renamed: Vec<String>,
    /// Dead jobs that were not stored.
    skipped: u64,
    /// Jobs that were not stored, because another job holds their unique key.
    key_held: Vec<String>,
    /// Jobs that were not stored, because jobs of their ids have ended a short time ago,
    /// and the store still remembers the ids (R4).
    ended: Vec<String>,
    /// Jobs that were not stored, because they follow one that was not.
    followers: Vec<String>,
}

impl Report {
    fn judge(&self) -> CommandResult {
        let reasons = [
            (&self.key_held, "whose unique key another job holds"),
            (&self.ended, "that have ended, whose ids are remembered"),
            (&self.followers, "that follow one that was not stored"),
        ];
        let left_out: Vec<_> = reasons
            .into_iter()
            .filter(|(jobs, _)| !jobs.is_empty())
            .map(|(jobs, why)| {
                let count = counted(jobs.len() as u64, "job");
                format!("{count} {why}: {}", jobs.join(", "))
            })
            .collect();
        if left_out.is_empty() {
            return Ok(());
        }
        Err(Failure::Failed(format!("not stored: {}", left_out.join("; "))))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} stored", self.stored)?;
        if self.known > 0 {
            writeln!(f, "{} were stored before", self.known)?;
        }
        if self.repeated > 0 {
            writeln!(f, "{} were in the file a second time", self.repeated)?;
        }
        if !self.renamed.is_empty() {
            writeln!(
                f,
                "{} got a new id, as another job of the file has the old one: {}",
                self.renamed.len(),
                self.renamed.join(", ")
            )?;
        }
        if self.skipped > 0 {
            writeln!(f, "{} dead ones skipped", self.skipped)?;
        }
        Ok(())
    }
}
