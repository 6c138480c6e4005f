//! `relq result`: prints what became of jobs whose result is kept.

mod outcome;
mod report;
mod waiting;

use std::time::Duration;

use relq::{
    JobId, Queue,
    results::{JobResult, ResultQueue},
};

use crate::{
    each_id::call_for_each,
    failure::{CommandResult, Failure, unless_closed},
    format::Format,
    interrupts::Interrupts,
    output::Output,
    push::Sender,
    target::Target,
    values::positive_duration,
};
use outcome::Outcome;
use report::Report;
pub(crate) use waiting::Waiting;

/// Print what became of jobs that were pushed with --keep-result
///
/// A job that has not ended is shown with the progress that its worker reported last. A
/// result can be read as long as --keep-result said, counted from the end of the job. That
/// of a dead job can be read as long as the job is there.
#[derive(clap::Args, Debug)]
#[command(after_help = format!("Exit codes: {CODES} {SEVERAL}"))]
pub(crate) struct Args {
    /// The ids of the jobs
    #[arg(value_name = "ID", required = true)]
    ids: Vec<JobId>,

    /// Wait until all have ended, for at most this time, such as 30s [default: no limit]
    #[arg(
        long,
        value_name = "TIMEOUT",
        require_equals = true,
        value_parser = positive_duration
    )]
    wait: Option<Option<Duration>>,

    /// Print only the bytes of the result, unchanged; for one job that is done
    #[arg(long, conflicts_with_all = ["json", "output"])]
    raw: bool,

    #[command(flatten)]
    format: Format,
}

pub(crate) const CODES: &str = "\
0 the job is done, 1 it is not known (it never was, keeps no result, or ended too long ago) \
or the store failed, 3 it died, 4 it has not ended, 5 it was cancelled or discarded.";

const SEVERAL: &str = "\
For several jobs, the first of 1, 4, 3 and 5 that is true of one of them.";

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        if self.raw && self.ids.len() > 1 {
            let problem = "--raw prints one result: ask for one job at a time";
            return Err(Failure::Usage(problem.to_owned()));
        }
        let queue = target.open_existing().await?;
        let results = results_of(&*queue)?;
        let (found, ended) = match self.wait {
            Some(timeout) => {
                let sender = Sender::new(queue.clone(), Interrupts::listen()?);
                let waiting = Waiting::new(results, &sender, timeout);
                call_for_each(&self.ids, async |id| waiting.until_ended(id).await).await
            }
            None => (self.read(&*queue, results).await?, Ok(())),
        };
        let outcomes: Vec<_> = self.ids.iter().zip(&found).map(Outcome::of).collect();
        unless_closed(self.print(&found))?;
        ended?;
        Outcome::judge(&outcomes)
    }

    async fn read(
        &self,
        queue: &dyn Queue,
        results: &dyn ResultQueue,
    ) -> CommandResult<Vec<Option<JobResult>>> {
        let most = queue.capabilities().limits.max_jobs_per_call.get() as usize;
        let mut found = Vec::with_capacity(self.ids.len());
        for page in self.ids.chunks(most) {
            found.extend(results.read_results(page).await?);
        }
        Ok(found)
    }

    fn print(&self, found: &[Option<JobResult>]) -> CommandResult {
        let jobs = self.ids.iter().zip(found);
        if self.raw {
            return found.iter().flatten().try_for_each(print_bytes);
        }
        if self.format.is_json() {
            return self.format.print_records(
                jobs.map(|(id, result)| Report::of(id, result.as_ref())),
            );
        }
        let mut out = Output::new();
        for (id, result) in jobs {
            out.text(&Report::of(id, result.as_ref()).line())?;
        }
        out.flush()
    }
}

/// Prints the bytes of a result unchanged, or nothing if the job has none.
fn print_bytes(result: &JobResult) -> CommandResult {
    let JobResult::Done { result } = result else { return Ok(()) };
    let mut out = Output::new();
    out.bytes(result)?;
    out.flush()
}

/// Prints the result of the job that `relq push --wait` waited for: its bytes unchanged, or
/// all that is known as JSON. Fails if the job is not done.
pub(crate) fn show(
    id: &JobId,
    found: &Option<JobResult>,
    format: Format,
) -> CommandResult {
    let printed = if format.is_json() {
        let mut out = Output::new();
        let line =
            out.json(&Report::of(id, found.as_ref())).and_then(|()| out.text("\n"));
        line.and_then(|()| out.flush())
    } else {
        found.iter().try_for_each(print_bytes)
    };
    unless_closed(printed)?;
    Outcome::judge(&[Outcome::of((id, found))])
}

/// The result calls of a queue. Fails if its backend keeps no results.
pub(crate) fn results_of(queue: &dyn Queue) -> CommandResult<&dyn ResultQueue> {
    queue.result_queue().ok_or_else(|| {
        let subject = queue.capabilities().subject();
        Failure::Usage(format!("{subject} keeps no results: choose another --url"))
    })
}
