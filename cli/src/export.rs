//! `relq export`: prints all jobs of a queue as JSON lines, from which `relq import` stores
//! them again.

use std::num::NonZeroU32;

use relq::{
    Queue, Stats,
    environment::{Clock as _, SystemClock, Timestamp},
    operator::{JobState, JobView, PeekRequest, StateDetail},
};
use serde::{Deserialize, Serialize};

use crate::{
    failure::{CommandResult, Failure},
    message::say,
    output::Output,
    target::Target,
    view::JobJson,
};

/// How many jobs one call to the store reads at most.
const PAGE: NonZeroU32 = NonZeroU32::new(500).expect("not zero");

/// The version of the format.
pub(crate) const VERSION: u32 = 1;

/// The states in the order in which they are read: a job that moves on meanwhile appears in a
/// later one, or a second time. A job that goes back, such as one that is claimed and tried
/// again later, may be missing, so the queue must be paused.
const STATES: [JobState; 4] =
    [JobState::Leased, JobState::Scheduled, JobState::Ready, JobState::Dead];

/// Print all jobs of a queue as JSON lines, for `relq import`
///
/// The first line names the format, the queue and its backend. Each further line is a job,
/// with the fields of `relq peek -o jsonl`, and the last line has their number. A leased job
/// is printed as a ready one: an import runs it again. A job that cannot be read is printed as
/// a dead one.
///
/// The queue must be paused, so that no job moves: stop its workers, or let them finish
/// their jobs, before the export. If jobs were pushed or ended meanwhile, or the queue was
/// resumed, the export says so and exits with 1.
///
/// Not exported are batches (the pieces are, each with the name of its batch), schedules,
/// the results and ids of jobs that have ended, push tokens, pauses and the totals of
/// `relq stats`.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Exit codes: 0 all jobs are exported; 1 the queue is not paused, the \
                        output was closed, or the queue changed meanwhile, so that jobs \
                        may be missing or twice in the output."
)]
pub(crate) struct Args {
    /// Also export a queue that is not paused: jobs that move or are pushed meanwhile may be
    /// missing or twice in the output
    #[arg(long)]
    live: bool,
}

/// The first line of an export.
#[derive(Serialize, Deserialize)]
pub(crate) struct Head {
    pub(crate) relq: u32,
    pub(crate) queue: String,
    pub(crate) backend: String,
}

/// The last line of an export. An export without it was cut off.
#[derive(Serialize, Deserialize)]
pub(crate) struct End {
    pub(crate) exported: u64,
}

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        let queue = target.open_existing().await?;
        let before = queue.stats().await?;
        if !before.paused && !self.live {
            return Err(Failure::Failed(format!(
                "the queue {} is not paused, so jobs may move during the export: stop its \
                 workers and run `relq pause`, or add --live",
                target.queue
            )));
        }
        let printed = print(&*queue, target.queue.to_string()).await;
        let exported = printed.map_err(as_cut_off)?;
        self.judge(&before, &queue.stats().await?, exported)
    }

    /// Fails if the queue changed meanwhile. A live queue is expected to.
    fn judge(&self, before: &Stats, after: &Stats, exported: u64) -> CommandResult {
        if before.paused && !after.paused && !self.live {
            return Err(Failure::Failed(
                "the queue was resumed during the export, so jobs may be missing or twice in \
                 the output: repeat it when no worker runs"
                    .to_owned(),
            ));
        }
        // Compare the number of jobs too: a job that was scheduled for another time meanwhile
        // changes no figure, but may be missing or twice in the output.
        let jobs = after.unfinished() + after.dead;
        if figures(before) == figures(after) && exported == jobs {
            return Ok(());
        }
        let changed = "jobs were pushed, moved or ended during the export, so jobs may be \
                       missing or twice in the output";
        if self.live {
            say(changed);
            return Ok(());
        }
        Err(Failure::Failed(format!("{changed}: repeat it when no worker runs")))
    }
}

/// The numbers that are equal before and after an export of a queue at rest. A scheduled
/// job that is due may become ready.
fn figures(stats: &Stats) -> [u64; 6] {
    [
        stats.ready + stats.scheduled,
        stats.leased,
        stats.dead,
        stats.finished,
        stats.discarded,
        stats.cancelled,
    ]
}

/// Prints the whole export. Returns how many jobs it has.
async fn print(queue: &dyn Queue, name: String) -> CommandResult<u64> {
    let mut out = Output::new();
    let backend = queue.capabilities().backend.to_owned();
    line(&mut out, &Head { relq: VERSION, queue: name, backend })?;
    let mut exported = 0;
    for state in STATES {
        exported += print_all(&mut out, queue, state).await?;
    }
    line(&mut out, &End { exported })?;
    out.flush().map(|()| exported)
}

/// An export whose reader has gone fails: a caller must not take a part of the jobs for
/// all of them.
fn as_cut_off(failure: Failure) -> Failure {
    match failure {
        Failure::OutputClosed => Failure::Failed(
            "the output was closed before its end, so the export was cut off"
                .to_owned(),
        ),
        other => other,
    }
}

/// Prints the jobs in a state. Returns their number.
async fn print_all(
    out: &mut Output,
    queue: &dyn Queue,
    state: JobState,
) -> CommandResult<u64> {
    let mut ask = PeekRequest::new(state, PAGE);
    let mut printed = 0;
    loop {
        let page = queue.peek(&ask).await?;
        printed += page.jobs.len() as u64;
        for job in page.jobs {
            line(out, &JobJson::from(&at_rest(job, SystemClock.now())))?;
        }
        match page.next {
            Some(next) => ask = ask.after(next),
            None => return Ok(printed),
        }
    }
}

/// The job as it is when no worker holds it: a leased job has not used its attempt. One that
/// cannot be read is dead, as its next claim would make it: no import may make it run (R3).
fn at_rest(mut job: JobView, now: Timestamp) -> JobView {
    if let StateDetail::Leased { .. } = job.detail {
        job.detail = StateDetail::Ready;
        job.attempt = job.attempt.saturating_sub(1);
    }
    if let Some(reason) = &job.unreadable
        && job.detail.state() != JobState::Dead
    {
        job.detail = StateDetail::Dead { reason: reason.clone(), since: now };
    }
    job
}

fn line<T: Serialize>(out: &mut Output, value: &T) -> CommandResult {
    out.json(value)?;
    out.text("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A paused queue that did not change is exported as a whole. Any other is not, unless it
    /// was to be exported live.
    #[test]
    fn a_queue_that_changed_is_no_whole_export() {
        let stats = |paused, [ready, leased, scheduled]: [u64; 3]| {
            let mut stats = Stats::new();
            (stats.paused, stats.ready, stats.leased, stats.scheduled) =
                (paused, ready, leased, scheduled);
            stats
        };
        let before = stats(true, [3, 1, 1]);
        let fails_with = |after: Stats, exported: u64| {
            assert!(Args { live: true }.judge(&before, &after, exported).is_ok());
            match (Args { live: false }).judge(&before, &after, exported) {
                Ok(()) => None,
                Err(Failure::Failed(message)) => Some(message),
                Err(other) => panic!("{other:?}"),
            }
        };
        let fails = |after: Stats| fails_with(after, after.unfinished() + after.dead);
        assert_eq!(fails(before), None);
        assert_eq!(fails(stats(true, [4, 1, 0])), None, "a scheduled job was due");
        let resumed = fails(stats(false, [3, 1, 1])).unwrap();
        assert!(resumed.contains("was resumed"), "{resumed}");
        let is_changed = |failure: Option<String>| {
            assert!(
                failure.as_ref().is_some_and(|it| it.contains("missing or twice")),
                "{failure:?}"
            );
        };
        for after in [[4, 1, 1], [2, 1, 1], [2, 2, 1]] {
            is_changed(fails(stats(true, after)));
        }
        // For each job that ended, another one was pushed.
        let ends: [fn(&mut Stats) -> &mut u64; 4] = [
            |stats| &mut stats.dead,
            |stats| &mut stats.finished,
            |stats| &mut stats.discarded,
            |stats| &mut stats.cancelled,
        ];
        for end in ends {
            let mut after = before;
            *end(&mut after) += 1;
            is_changed(fails(after));
        }
        // A job was scheduled for another time, and was passed over or read twice.
        for exported in [4, 6] {
            is_changed(fails_with(before, exported));
        }
    }
}
