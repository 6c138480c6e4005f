//! `relq cancel`: ends unfinished jobs.

use relq::{
    JobId,
    operator::{Cancelled, JobState},
};
use serde::Serialize;

use crate::{
    each_id::call_for_each,
    failure::{CommandResult, Failure, unless_closed},
    format::Format,
    output::Output,
    printable::printable,
    target::Target,
};

/// End scheduled, ready or leased jobs for good
///
/// The worker that holds a leased job is notified at its next heartbeat and stops it.
/// The jobs that follow a cancelled job are cancelled with it, and so on.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The ids of the jobs
    #[arg(value_name = "ID", required = true)]
    ids: Vec<JobId>,

    #[command(flatten)]
    format: Format,
}

#[derive(Serialize)]
struct Answer<'a> {
    id: &'a str,
    cancelled: bool,
    was: Option<&'static str>,
}

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        let queue = target.open_existing().await?;
        let (answers, ended) =
            call_for_each(&self.ids, async |id| queue.cancel(id).await).await;
        let states: Vec<_> = answers.into_iter().map(state_before).collect();
        unless_closed(self.print(&states))?;
        ended?;
        match states.iter().filter(|state| state.is_none()).count() {
            0 => Ok(()),
            missing => Err(Failure::Failed(format!(
                "{missing} of these ids name no scheduled, ready or leased job"
            ))),
        }
    }

    fn print(&self, states: &[Option<JobState>]) -> CommandResult {
        let answers = self.ids.iter().zip(states).map(|(id, state)| Answer {
            id: id.as_str(),
            cancelled: state.is_some(),
            was: state.map(JobState::as_str),
        });
        if self.format.is_json() {
            return self.format.print_records(answers);
        }
        let mut out = Output::new();
        for Answer { id, was, .. } in answers {
            let id = printable(id);
            match was {
                Some(state) => out.text(&format!("{id} cancelled, was {state}\n"))?,
                None => out.text(&format!("{id} not found\n"))?,
            }
        }
        out.flush()
    }
}

/// The state that a job had before it was cancelled. `None` if no job was found.
fn state_before(answer: Cancelled) -> Option<JobState> {
    match answer {
        Cancelled::Removed(state) => Some(state),
        Cancelled::NotFound => None,
    }
}
