//! Draws the progress of a push, if standard error is a terminal.

use std::{
    fs,
    io::{self, IsTerminal},
    path::Path,
};

use indicatif::{ProgressBar, ProgressStyle};

const OF_A_FILE: &str =
    "{bar:30} {percent:>3}%  {msg} jobs  {binary_bytes_per_sec}  {eta}";
const OF_A_STREAM: &str = "{spinner} {msg} jobs  {elapsed}";

/// The progress line on standard error.
#[derive(Debug)]
pub(super) struct Progress {
    bar: ProgressBar,
    jobs: std::cell::Cell<usize>,
}

impl Progress {
    /// Begins the progress line. Draws nothing if standard error is not a terminal, or
    /// if the ids are printed to a terminal.
    pub(super) fn start(file: Option<&Path>, quiet: bool) -> Self {
        let ids_are_in_the_way = !quiet && io::stdout().is_terminal();
        let bar = match file {
            Some(path) if io::stderr().is_terminal() && !ids_are_in_the_way => {
                bar(path)
            }
            _ => ProgressBar::hidden(),
        };
        Self { bar, jobs: std::cell::Cell::new(0) }
    }

    /// Adds stored jobs and their bytes of input to the progress.
    pub(super) fn advance(&self, jobs: usize, bytes: usize) {
        self.jobs.set(self.jobs.get() + jobs);
        self.bar.inc(bytes as u64);
        self.bar.set_message(self.jobs.get().to_string());
    }

    /// Removes the progress line from the terminal.
    pub(super) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

fn bar(path: &Path) -> ProgressBar {
    let style = |template| {
        ProgressStyle::with_template(template).expect("the template is a constant")
    };
    match fs::metadata(path) {
        Ok(file) if file.is_file() => {
            ProgressBar::new(file.len()).with_style(style(OF_A_FILE))
        }
        _ => ProgressBar::new_spinner().with_style(style(OF_A_STREAM)),
    }
}
