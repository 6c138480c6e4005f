//! `relq cancel`: ends unfinished jobs.

use relq::{
    JobId,
    operator::{Cancelled, JobState},
};
use serde::Serialize;

use crate::{
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
        let mut states = Vec::with_capacity(self.ids.len());
        let mut ended = Ok(());
        for id in &self.ids {
            states.push(match queue.cancel(id).await {
                Ok(Cancelled::Removed(state)) => Some(state),
                Ok(Cancelled::NotFound) => None,
                Err(error) => {
                    let which = format!("this is the answer for {id}");
                    ended = Err(Failure::from(error).after(&which));
                    break;
                }
            });
        }
        // Also the answers before an error: those jobs are gone.
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
            let mut records = self.format.records()?;
            answers.into_iter().try_for_each(|answer| records.item(&answer))?;
            return records.end();
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
