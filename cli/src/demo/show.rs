//! Draws the progress of the demo, if standard error is a terminal.

use std::{
    io::{self, IsTerminal},
    sync::Arc,
};

use indicatif::{ProgressBar, ProgressStyle};
use relq::{Queue, Stats};

use crate::message::say;

const LINE: &str = "{bar:30} {pos}/{len} finished  {msg}  {elapsed}";

/// The progress line on standard error.
#[derive(Debug)]
pub(super) struct Show(ProgressBar);

impl Show {
    /// Prints the number of jobs and the store, and draws the progress line. Does
    /// nothing if standard error is not a terminal.
    pub(super) fn start(jobs: u64, queue: &Arc<dyn Queue>) -> Self {
        if !io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        say(&format!("{jobs} jobs on {queue}"));
        let style = ProgressStyle::with_template(LINE);
        let style = style.expect("the template is a constant");
        Self(ProgressBar::new(jobs).with_style(style))
    }

    pub(super) fn update(&self, stats: &Stats, kills: usize) {
        self.0.set_position(stats.finished);
        self.0.set_message(format!("{} at work, {kills} kills", stats.leased));
    }

    pub(super) fn end(&self) {
        self.0.finish_and_clear();
    }
}
