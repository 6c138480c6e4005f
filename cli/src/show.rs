//! `relq show`: shows one job with all that is stored of it.

mod finding;
pub(crate) mod record;

use std::fmt;

use relq::{JobId, environment::Timestamp, operator::JobLookup};
use serde::Serialize;

use crate::{
    failure::{CommandResult, Failure, unless_closed},
    format::Format,
    output::Output,
    printable::printable,
    table::line_width,
    target::Target,
    view::{JobJson, ids_of, time},
};
pub(crate) use finding::Finding;

/// Show one job, in whatever state it is
///
/// The backends with an index find the job at once, but on Redis a ready job has none, except
/// one of zset with another priority than 5. It is searched for page by page, newest first,
/// and so are the jobs of the other backends. The progress of the search is on standard error;
/// Ctrl-C ends it. A job that moves from one state to another meanwhile may be missed: pause
/// the queue to be sure.
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Exit codes: 0 the job is stored, or it has ended and its id is \
                        remembered; 1 it was not found."
)]
pub(crate) struct Args {
    /// The id of the job
    #[arg(value_name = "ID")]
    id: JobId,

    #[command(flatten)]
    format: Format,
}

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        let queue = target.open_existing().await?;
        let finding = Finding::new(&*queue, &self.id);
        match finding.run().await? {
            JobLookup::Stored(record) => unless_closed(self.print(&record)),
            JobLookup::Ended { was_done, until } => {
                self.format.show(&Ended::new(&self.id, was_done, until))
            }
            _ => Err(Failure::Failed(format!(
                "no job {} is stored in the queue {}, and none with this id is remembered",
                self.id, target.queue
            ))),
        }
    }

    fn print(&self, record: &relq::operator::JobRecord) -> CommandResult {
        let mut out = Output::new();
        if self.format.is_json() {
            out.json(&RecordJson {
                job: JobJson::from(&record.job),
                followers: ids_of(&record.followers),
            })?;
            out.text("\n")?;
        } else {
            out.text(&record::text(record, line_width()))?;
        }
        out.flush()
    }
}

/// A stored job as JSON: the fields of `relq peek`, and its followers.
#[derive(Serialize)]
struct RecordJson<'a> {
    #[serde(flatten)]
    job: JobJson<'a>,
    followers: Vec<&'a str>,
}

/// A job that has ended, and whose id is remembered.
#[derive(Serialize)]
struct Ended<'a> {
    id: &'a str,
    state: &'static str,
    was_done: bool,
    remembered_until_ms: i64,
    #[serde(skip)]
    until: Timestamp,
}

impl<'a> Ended<'a> {
    fn new(id: &'a JobId, was_done: bool, until: Timestamp) -> Self {
        let (id, remembered_until_ms) = (id.as_str(), until.unix_ms());
        Self { id, state: "ended", was_done, remembered_until_ms, until }
    }
}

impl fmt::Display for Ended<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how =
            if self.was_done { "is done" } else { "has ended without being done" };
        let (id, until) = (printable(self.id), time(self.until));
        writeln!(f, "{id} {how}; its id is remembered until {until}")
    }
}
