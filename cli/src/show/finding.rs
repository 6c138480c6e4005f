//! Finds a job by its id, and shows how far the search is.

use std::{
    io::{self, IsTerminal},
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressStyle};
use relq::{
    Error, JobId, Queue,
    operator::{JobLookup, JobRecord, JobSearch, JobState, JobView, Wanted},
};

use crate::{
    failure::{CommandResult, Failure},
    interrupts::Interrupts,
    message::say,
};

/// How often a search without a terminal reports its progress.
const REPORT_EVERY: Duration = Duration::from_secs(5);

/// The search for one job.
pub(crate) struct Finding<'a> {
    queue: &'a dyn Queue,
    id: &'a JobId,
}

/// How the search of the pages of one state ended.
enum Searched {
    Found(Box<JobView>),
    NotThere,
}

impl<'a> Finding<'a> {
    pub(crate) fn new(queue: &'a dyn Queue, id: &'a JobId) -> Self {
        Self { queue, id }
    }

    /// Finds the job. Asks the index of the backend first, and searches the pages of the
    /// states that have no index.
    pub(crate) async fn run(&self) -> CommandResult<JobLookup> {
        use JobState::{Dead, Leased, Ready, Scheduled};
        let Some(index) = self.queue.inspect_queue() else {
            // Every backend whose jobs can follow others has an index.
            return self.search(&[Scheduled, Ready, Leased, Dead], Vec::new()).await;
        };
        let followers = match index.job(self.id).await? {
            JobLookup::MaybeReady { followers } => followers,
            found => return Ok(found),
        };
        match self.search(&[Ready, Leased], followers).await? {
            // The job may have moved meanwhile.
            JobLookup::Unknown => Ok(index.job(self.id).await?),
            found => Ok(found),
        }
    }

    /// Searches the jobs in these states for the one that has these followers.
    async fn search(
        &self,
        states: &[JobState],
        followers: Vec<JobId>,
    ) -> CommandResult<JobLookup> {
        let interrupts = Interrupts::listen()?;
        let progress = Progress::start();
        let searching = async {
            for state in states {
                if let Searched::Found(job) = self.search_in(*state, &progress).await? {
                    let record = JobRecord::new(*job, followers);
                    return Ok(JobLookup::Stored(Box::new(record)));
                }
            }
            Ok(JobLookup::Unknown)
        };
        let outcome = tokio::select! {
            found = searching => found.map_err(|error: Error| error.into()),
            () = interrupts.first() => Err(self.stopped(&progress)),
        };
        progress.clear();
        outcome
    }

    fn stopped(&self, progress: &Progress) -> Failure {
        let looked_at = progress.looked_at();
        Failure::Failed(format!(
            "stopped by a signal: the job {} is not among the {looked_at} jobs that were \
             looked at",
            self.id
        ))
    }

    async fn search_in(
        &self,
        state: JobState,
        progress: &Progress,
    ) -> Result<Searched, Error> {
        let wanted = Wanted::default().id(self.id.clone());
        let mut search = JobSearch::new(self.queue, state, wanted);
        while let Some(page) = search.next_page().await? {
            if let Some(found) = page.jobs.into_iter().next() {
                return Ok(Searched::Found(Box::new(found)));
            }
            progress.advance(page.looked_at, state);
        }
        Ok(Searched::NotThere)
    }
}

/// How many jobs were looked at: a line on a terminal, and messages elsewhere.
struct Progress {
    bar: ProgressBar,
    looked_at: std::cell::Cell<u64>,
    said: std::cell::Cell<Instant>,
}

impl Progress {
    fn start() -> Self {
        let bar = if io::stderr().is_terminal() {
            let style = ProgressStyle::with_template("{spinner} {msg}  {elapsed}")
                .expect("the template is a constant");
            ProgressBar::new_spinner().with_style(style)
        } else {
            ProgressBar::hidden()
        };
        Self { bar, looked_at: 0.into(), said: Instant::now().into() }
    }

    fn advance(&self, jobs: u32, state: JobState) {
        self.looked_at.set(self.looked_at.get() + u64::from(jobs));
        let (looked_at, state) = (self.looked_at.get(), state.as_str());
        let message = format!("{looked_at} jobs looked at, now {state} ones");
        if self.bar.is_hidden() && self.said.get().elapsed() > REPORT_EVERY {
            self.said.set(Instant::now());
            say(&message);
        }
        self.bar.set_message(message);
        self.bar.tick();
    }

    fn looked_at(&self) -> u64 {
        self.looked_at.get()
    }

    fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
