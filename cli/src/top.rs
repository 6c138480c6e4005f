//! `relq top`: a live view of the queues of a store in the terminal.
//!
//! ```text
//!  keys, ticks, answers --> state --> effects --> tasks that ask the store
//!                             |                            |
//!                             v                            v
//!                          drawing                      answers
//! ```
//!
//! The state is changed by one function of an event, and neither it nor the drawing makes
//! a call, so both are tested without a terminal and without a store. The store is asked
//! in tasks, so that a slow one holds up no key.

mod answers;
mod asks;
mod changes;
mod draw;
mod keys;
mod listing;
mod open_queue;
mod overview;
mod reading;
mod running;
#[cfg(test)]
mod scene;
mod screen;
mod state;
#[cfg(test)]
mod tests;

use std::{
    io::{self, IsTerminal as _},
    sync::Arc,
    time::Duration,
};

use relq::QueueName;

use crate::{
    failure::{CommandResult, Failure},
    interrupts::Interrupts,
    source::StoreSource,
    store_url::without_password,
    target::Target,
    values::positive_duration,
};
use screen::Screen;
use state::{Settings, State};

/// Watch the queues of a store in the terminal, live
///
/// Shows the queues with their rates; Enter opens one: its jobs by state, its dead jobs by
/// error, its workers, and each job with all that is stored of it. It can pause and resume
/// queues, and retry, run and delete jobs; what cannot be undone asks first. The key ? shows
/// all keys. At most 200 queues are read, the first ones by their names, and lists of jobs
/// are read page by page. NO_COLOR turns the colours off.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// How often the store is asked, such as 500ms or 10s; the keys + and - change it
    #[arg(long, value_name = "DURATION", value_parser = positive_duration,
        default_value = "2s")]
    interval: Duration,

    /// Show everything and change nothing
    #[arg(long)]
    read_only: bool,

    /// Show only this queue; may be repeated. Without it, all queues of the store are listed
    /// every 30 seconds, which on Redis reads the names of all keys
    #[arg(long, value_name = "NAME")]
    only: Vec<QueueName>,
}

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        if !io::stdout().is_terminal() {
            return Err(Failure::Usage(
                "standard output is not a terminal: use `relq queues` or `relq stats` \
                 for output to a file or a pipe"
                    .to_owned(),
            ));
        }
        let url = target.url()?;
        let settings = Settings {
            store: without_password(&url),
            is_read_only: self.read_only,
            has_colours: !is_set("NO_COLOR"),
        };
        let source = Arc::new(StoreSource::open(url, self.only).await?);
        let interrupts = Interrupts::listen()?;
        let mut state = State::new(settings, self.interval);
        let mut screen = Screen::open()?;
        running::run(&mut state, &mut screen, source, interrupts).await
    }
}

/// Whether an environment variable is there and not empty.
fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}
