//! `relq peek`: shows jobs without changing them.

use std::num::NonZeroU32;

use clap::ValueEnum;
use relq::{
    Queue,
    operator::{JobState, JobView, PeekRequest, Wanted},
};

use crate::{
    failure::CommandResult,
    format::Format,
    message::say,
    output::Output,
    printable::{self, cut, printable},
    table::{Table, line_width},
    target::Target,
    values::count,
    view::{self, JobJson},
};

/// How many jobs one call to the store reads at most.
const PAGE: NonZeroU32 = NonZeroU32::new(100).expect("not zero");

/// Show jobs without changing them, in the order in which they will be served
///
/// A text payload is shown as text, with escapes for characters that a terminal
/// interprets or does not show. Any other payload is shown in escapes. A line that is
/// wider than the terminal, or than 200 columns without a terminal, is cut and ends
/// with `…`.
///
/// With -o json a payload is whole and exact. It is in `payload` when it is UTF-8 and in
/// `payload_base64` when it is not; the other of the two is null.
///
/// A scheduled job that follows another one has no due time until that job is done. Such
/// jobs come last, each with a note `after ID`, and with -o json have `after` in place of
/// `due_ms`.
///
/// With --search the text is looked for literally, byte by byte; the case counts. A job that
/// moves meanwhile may be missed; with --newest none is that stays in its place.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The state of the jobs to show
    #[arg(long, value_enum, default_value = "ready")]
    state: State,

    /// Only jobs with this text in their payload, a header or an error; all jobs of the
    /// state are read, page by page, until there are --limit jobs
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,

    #[command(flatten)]
    listing: Listing,
}

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        let queue = target.open_existing().await?;
        let search = Search::for_text(self.search);
        self.listing.print(&*queue, self.state.into(), &search).await
    }
}

/// The arguments that set the length and the format of a list of jobs.
#[derive(clap::Args, Debug)]
pub(crate) struct Listing {
    /// How many jobs to show at most
    #[arg(short = 'n', long, value_name = "N", value_parser = count, default_value = "20")]
    pub(crate) limit: NonZeroU32,

    /// Begin with the job that would be served last: of dead jobs, with the newest
    #[arg(long)]
    newest: bool,

    #[command(flatten)]
    pub(crate) format: Format,
}

/// Chooses the jobs that a list shows.
pub(crate) trait Filter: Sync {
    /// Whether every job fits, so that no job must be looked at.
    fn is_everything(&self) -> bool;

    /// Whether the list shows this job.
    fn fits(&self, job: &JobView) -> bool;
}

/// Chooses the jobs with a text, or all jobs.
struct Search(Option<Wanted>);

impl Search {
    fn for_text(text: Option<String>) -> Self {
        Self(text.map(|text| Wanted::default().text(text)))
    }
}

impl Filter for Search {
    fn is_everything(&self) -> bool {
        self.0.is_none()
    }

    fn fits(&self, job: &JobView) -> bool {
        self.0.as_ref().is_none_or(|wanted| wanted.fits(job))
    }
}

#[derive(ValueEnum, Debug, Clone, Copy)]
enum State {
    Ready,
    Scheduled,
    Leased,
    Dead,
}

impl From<State> for JobState {
    fn from(state: State) -> Self {
        match state {
            State::Ready => Self::Ready,
            State::Scheduled => Self::Scheduled,
            State::Leased => Self::Leased,
            State::Dead => Self::Dead,
        }
    }
}

impl Listing {
    /// Prints the jobs in `state` that fit the filter.
    pub(crate) async fn print(
        &self,
        queue: &dyn Queue,
        state: JobState,
        filter: &dyn Filter,
    ) -> CommandResult {
        let mut ask = PeekRequest::new(state, self.limit.min(PAGE));
        if self.newest {
            ask = ask.newest_first();
        }
        let mut pages = Pages::new(queue, ask, filter, self.limit);
        if self.format.is_json() {
            self.print_json(&mut pages).await?;
        } else {
            self.print_tables(state, &mut pages).await?;
        }
        if pages.has_more().await? {
            let more = self.limit.get().saturating_mul(10);
            let are = if filter.is_everything() { "are" } else { "may be" };
            say(&format!("there {are} more: --limit {more} shows more"));
        }
        Ok(())
    }

    async fn print_tables(
        &self,
        state: JobState,
        pages: &mut Pages<'_>,
    ) -> CommandResult {
        let mut out = Output::new();
        let width = line_width();
        while let Some(jobs) = pages.next().await? {
            out.text(&table(state, &jobs, width).render(width))?;
        }
        out.flush()
    }

    async fn print_json(&self, pages: &mut Pages<'_>) -> CommandResult {
        let mut records = self.format.records()?;
        while let Some(jobs) = pages.next().await? {
            jobs.iter().try_for_each(|job| records.item(&JobJson::from(job)))?;
        }
        records.end()
    }
}

/// Reads the jobs in a state page by page, up to a limit.
struct Pages<'a> {
    queue: &'a dyn Queue,
    filter: &'a dyn Filter,
    ask: Option<PeekRequest>,
    left: u32,
    /// Whether the last page had more fitting jobs than the list may show.
    is_cut: bool,
}

impl<'a> Pages<'a> {
    fn new(
        queue: &'a dyn Queue,
        ask: PeekRequest,
        filter: &'a dyn Filter,
        limit: NonZeroU32,
    ) -> Self {
        Self { queue, filter, ask: Some(ask), left: limit.get(), is_cut: false }
    }

    /// Reads until a page is full, so that few jobs that fit make one table. `None` after
    /// the last job or at the limit.
    async fn next(&mut self) -> CommandResult<Option<Vec<JobView>>> {
        let mut found = Vec::new();
        while let (Some(ask), Some(left)) = (&mut self.ask, NonZeroU32::new(self.left))
            && found.len() < PAGE.get() as usize
        {
            ask.limit = if self.filter.is_everything() { left.min(PAGE) } else { PAGE };
            let mut page = self.queue.peek(ask).await?;
            page.jobs.retain(|job| self.filter.fits(job));
            self.is_cut = page.jobs.len() > left.get() as usize;
            page.jobs.truncate(left.get() as usize);
            self.left -=
                u32::try_from(page.jobs.len()).unwrap_or(u32::MAX).min(self.left);
            self.ask = page.next.map(|cursor| ask.clone().after(cursor));
            found.append(&mut page.jobs);
        }
        Ok((!found.is_empty()).then_some(found))
    }

    /// Whether the list was cut at the limit. If it shows only jobs that fit a filter, the
    /// queue may have more of them.
    async fn has_more(&self) -> CommandResult<bool> {
        match &self.ask {
            Some(ask) if !self.is_cut && self.filter.is_everything() => {
                // A full page may have been the last one.
                let mut ask = ask.clone();
                ask.limit = NonZeroU32::MIN;
                Ok(!self.queue.peek(&ask).await?.jobs.is_empty())
            }
            ask => Ok(self.is_cut || ask.is_some()),
        }
    }
}

fn table(state: JobState, jobs: &[JobView], width: usize) -> Table<5> {
    let time = match state {
        JobState::Scheduled => "DUE",
        JobState::Leased | JobState::Dead => "SINCE",
        JobState::Ready => "PUSHED",
    };
    let mut table = Table::new(["ID", "ATTEMPT", "PRIORITY", time, "PAYLOAD"]);
    for job in jobs {
        let id = job.id.as_ref().map_or("-", |id| id.as_str());
        let cells = [
            // An id of your own may be long, and must not push the payload off the line.
            cut(printable(id), width / 2),
            format!("{}/{}", job.attempt, job.max_attempts),
            job.priority.to_string(),
            view::state_time(job).map(view::time).unwrap_or_default(),
            printable::payload(&job.payload, width),
        ];
        table.row(cells, view::note(job));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample_jobs::{details, job};

    /// The cells of a line, between which there are two blanks or more.
    fn cells(line: &str) -> Vec<&str> {
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
    }

    #[test]
    fn each_property_of_a_job_has_its_column() {
        let times = [
            ("PUSHED", Some("1970-01-01T00:00:22.000Z")),
            ("DUE", Some("1970-01-01T00:00:11.000Z")),
            ("DUE", None),
            ("SINCE", Some("1970-01-01T00:00:13.000Z")),
            ("SINCE", Some("1970-01-01T00:00:15.000Z")),
        ];
        for (detail, (head, time)) in details().into_iter().zip(times) {
            let what = format!("{detail:?}");

            let text = table(detail.state(), &[job(detail)], 200).render(200);

            let lines: Vec<_> = text.lines().map(cells).collect();
            let heads = ["ID", "ATTEMPT", "PRIORITY", head, "PAYLOAD"];
            assert_eq!(lines[0], heads, "the heads of {what}");
            let row = ["job-1", "2/7", "8"].into_iter().chain(time);
            let row: Vec<_> = row.chain(["the payload"]).collect();
            assert_eq!(lines[1], row, "the row of {what}");
        }
    }
}
