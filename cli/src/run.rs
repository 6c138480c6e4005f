//! `relq run`: makes scheduled jobs ready now.

use relq::{
    JobId, Queue,
    operator::{InspectQueue, JobLookup, RunNow, StateDetail},
};
use serde::Serialize;

use crate::{
    each_id::call_for_each,
    failure::{CommandResult, Failure, unless_closed},
    format::{Format, counted},
    output::Output,
    printable::printable,
    target::Target,
};

/// Make scheduled jobs ready now, at the back of the queue
///
/// The job loses its due time, and nothing else of it changes (R32). A job that follows
/// another one is not released: it is run when that job is done. A dead job is made ready by
/// `relq dead retry`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Exit codes: 0 all of the jobs are ready now; 1 one of them was not \
                        scheduled, or follows another job."
)]
pub(crate) struct Args {
    /// The ids of the jobs
    #[arg(value_name = "ID", required = true)]
    ids: Vec<JobId>,

    #[command(flatten)]
    format: Format,
}

/// The result for one job.
#[derive(Serialize)]
struct Answer<'a> {
    id: &'a str,
    ready: bool,
    /// Why the job was not made ready.
    why: Option<String>,
    /// The job that it follows.
    after: Option<String>,
}

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        let queue = target.open_existing().await?;
        let inspect = inspect_of(&*queue)?;
        let (answers, ended) =
            call_for_each(&self.ids, async |id| Answer::of(inspect, id).await).await;
        unless_closed(self.print(&answers))?;
        ended?;
        match answers.iter().filter(|answer| !answer.ready).count() {
            0 => Ok(()),
            others => Err(Failure::Failed(format!(
                "not made ready: {others} of {}",
                counted(answers.len() as u64, "job")
            ))),
        }
    }

    fn print(&self, answers: &[Answer<'_>]) -> CommandResult {
        if self.format.is_json() {
            return self.format.print_records(answers);
        }
        let mut out = Output::new();
        for Answer { id, why, .. } in answers {
            let what = why.as_deref().unwrap_or("is ready now");
            out.text(&format!("{} {}\n", printable(id), printable(what)))?;
        }
        out.flush()
    }
}

impl<'a> Answer<'a> {
    async fn of(queue: &dyn InspectQueue, id: &'a JobId) -> CommandResult<Self> {
        let (why, after) = match queue.run_now(id).await? {
            RunNow::Ready => (None, None),
            RunNow::Following { leader } => {
                let why = format!(
                    "follows {leader}, which is not done: it cannot run before"
                );
                (Some(why), Some(leader.to_string()))
            }
            RunNow::NotScheduled => (Some(why_not(&queue.job(id).await?)), None),
        };
        Ok(Self { id: id.as_str(), ready: why.is_none(), why, after })
    }
}

/// Why a job was not made ready that is not scheduled.
fn why_not(found: &JobLookup) -> String {
    match found {
        JobLookup::Stored(record) => match record.job.detail {
            StateDetail::Dead { .. } => {
                "is dead: make it ready with `relq dead retry`".to_owned()
            }
            // A retry made the job scheduled after the call.
            StateDetail::Scheduled { .. } | StateDetail::Following { .. } => {
                "was not scheduled, and is now: try again".to_owned()
            }
            StateDetail::Leased { .. } => "is leased: a worker runs it".to_owned(),
            StateDetail::Ready => "is ready already".to_owned(),
        },
        JobLookup::Ended { was_done: true, .. } => "is done".to_owned(),
        JobLookup::Ended { .. } => "has ended without being done".to_owned(),
        JobLookup::MaybeReady { .. } => {
            "is not scheduled: it is ready already, or not known (see `relq show`)"
                .to_owned()
        }
        _ => "is not known".to_owned(),
    }
}

/// The calls that find and run jobs. Fails if the backend has none.
pub(crate) fn inspect_of(queue: &dyn Queue) -> CommandResult<&dyn InspectQueue> {
    queue.inspect_queue().ok_or_else(|| {
        let subject = queue.capabilities().subject();
        Failure::Usage(format!(
            "{subject} cannot run a job before its time: only sqlite, zset \
             and stream without partitions can"
        ))
    })
}
