//! `relq marker`: shows or sets which backend owns a queue on Redis.

use std::fmt;

use clap::Subcommand;
use relq::redis::{self, Seen};
use serde::Serialize;

use crate::{
    failure::{CommandResult, Failure},
    format::Format,
    target::Target,
};

/// Show or set which backend owns a queue on Redis
///
/// The first write of a queue stores a marker that names its backend, and other
/// backends then refuse the queue. A queue whose keys are older than markers, or whose
/// marker was deleted, must be marked by hand.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Show which backend owns the queue
    Show(ActionArgs),
    /// Mark the queue for the backend that --url names
    ///
    /// The queue must be at rest: no lease and no heartbeat of a worker runs. It must
    /// have no key that the backend does not know.
    Set(ActionArgs),
    /// Remove the marker of a queue that has no other key
    Remove(ActionArgs),
}

#[derive(clap::Args, Debug)]
struct ActionArgs {
    #[command(flatten)]
    format: Format,
}

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        let (url, queue) = (&target.url()?, &target.queue);
        let format = match self.action {
            Action::Show(ActionArgs { format }) => format,
            Action::Set(ActionArgs { format }) => {
                redis::mark(url, queue).await?;
                format
            }
            Action::Remove(ActionArgs { format }) => {
                if !redis::unmark(url, queue).await? {
                    return Err(Failure::Failed(format!(
                        "the queue {queue} has other keys or another owner, and keeps \
                         its marker: purge it first, with the URL of its backend"
                    )));
                }
                format
            }
        };
        let seen = redis::see(url, queue).await?;
        format.show(&Report::new(queue.as_str(), &seen))
    }
}

#[derive(Serialize)]
struct Report<'a> {
    queue: &'a str,
    marker: Option<String>,
    url: Option<&'a str>,
    /// Whether Redis has keys that relq wrote for the queue.
    has_keys: bool,
}

impl<'a> Report<'a> {
    fn new(queue: &'a str, seen: &'a Seen) -> Self {
        let (marker, url) = match seen {
            Seen::Marked { marker, url } => {
                (Some(marker.to_string()), Some(url.as_str()))
            }
            Seen::Damaged(value) => (Some(value.escape_ascii().to_string()), None),
            Seen::Unmarked | Seen::Nothing => (None, None),
        };
        Self { queue, marker, url, has_keys: *seen != Seen::Nothing }
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queue = self.queue;
        match (&self.marker, self.url) {
            (Some(marker), Some(url)) => {
                writeln!(f, "{queue}: {marker}\nopen it with {url}")
            }
            (Some(damaged), None) => writeln!(f, "{queue}: no marker, but {damaged:?}"),
            (None, _) if self.has_keys => {
                writeln!(f, "{queue}: no marker, but keys of relq's")
            }
            (None, _) => writeln!(f, "{queue}: no marker, and no key of relq's"),
        }
    }
}
