//! Saves the progress of a search in a file, so that a stopped search can continue.
//!
//! The file has the last decisions of the search, which show where it stopped, and the
//! digests of the known states. It is written as a whole every few seconds, under
//! another name, and then renamed. So a killed process leaves the last complete file.

use std::{
    collections::HashSet,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
    str::FromStr as _,
    time::{Duration, Instant},
};

use super::{
    choice::Choice,
    search::{Node, Progress},
};

/// How often the file is written.
const EVERY: Duration = Duration::from_secs(3);

/// The file of one search, which saves its progress.
pub(super) struct SavedSearch {
    path: PathBuf,
    /// A description of the search: its backend, scene and faults. A file with another
    /// description is refused.
    what: String,
    written: Instant,
}

impl SavedSearch {
    pub(super) fn new(path: PathBuf, what: String) -> Self {
        Self { path, what, written: Instant::now() }
    }

    /// Returns the saved progress of the search. If there is no file, returns the
    /// progress of a search that has not begun.
    ///
    /// # Errors
    /// When the file cannot be read, or belongs to another search.
    pub(super) fn load(&self) -> Result<Progress, String> {
        let text = match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Progress::default());
            }
            read => read.map_err(|error| at(&self.path, &error.to_string()))?,
        };
        self.read(&text).map_err(|wrong| at(&self.path, &wrong))
    }

    /// Writes the file, unless it was written less than [`EVERY`] ago.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn save(&mut self, progress: &Progress) -> Result<(), String> {
        if self.written.elapsed() < EVERY {
            return Ok(());
        }
        self.written = Instant::now();
        let next = self.path.with_extension("next");
        let written = fs::write(&next, self.text(progress));
        let written = written.and_then(|()| fs::rename(&next, &self.path));
        written.map_err(|error| at(&self.path, &error.to_string()))
    }

    /// Removes the file of a search that has ended.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub(super) fn remove(&self) -> Result<(), String> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(at(&self.path, &error.to_string()))
            }
            _ => Ok(()),
        }
    }

    fn text(&self, Progress { has_faults, path, known, found }: &Progress) -> String {
        let (runs, states, longest) = (found.runs, found.states, found.longest);
        let mut text =
            format!("{}\n{has_faults} {runs} {states} {longest}\n", self.what);
        for node in path.iter().flatten() {
            let choices: Vec<_> = node.choices.iter().map(Choice::to_string).collect();
            let _ = writeln!(text, "at {} {}", node.chosen, choices.join(" "));
        }
        for digest in known {
            let _ = writeln!(text, "known {digest:x}");
        }
        text
    }

    fn read(&self, text: &str) -> Result<Progress, String> {
        let mut lines = text.lines();
        if lines.next() != Some(&self.what) {
            return Err("the file is of another search: remove it".to_owned());
        }
        let damaged = |line: &str| format!("the file is damaged: `{line}`");
        let counts = lines.next().unwrap_or_default();
        let mut progress = self.counts(counts).ok_or_else(|| damaged(counts))?;
        let mut path = Vec::new();
        for line in lines {
            match line.split_once(' ') {
                Some(("at", node)) => {
                    path.push(read_node(node).ok_or_else(|| damaged(line))?);
                }
                Some(("known", digest)) => {
                    let digest = u64::from_str_radix(digest, 16);
                    progress.known.insert(digest.map_err(|_| damaged(line))?);
                }
                _ => return Err(damaged(line)),
            }
        }
        progress.path = Some(path);
        Ok(progress)
    }

    fn counts(&self, line: &str) -> Option<Progress> {
        let mut words = line.split(' ');
        let has_faults = words.next()?.parse().ok()?;
        let mut progress =
            Progress { has_faults, known: HashSet::new(), ..Progress::default() };
        progress.found.runs = words.next()?.parse().ok()?;
        progress.found.states = words.next()?.parse().ok()?;
        progress.found.longest = words.next()?.parse().ok()?;
        Some(progress)
    }
}

fn read_node(line: &str) -> Option<Node> {
    let (chosen, choices) = line.split_once(' ')?;
    let choices: Result<Vec<_>, _> = choices.split(' ').map(Choice::from_str).collect();
    let (chosen, choices) = (chosen.parse().ok()?, choices.ok()?);
    (chosen < choices.len()).then(|| Node::new(choices, chosen))
}

fn at(path: &Path, wrong: &str) -> String {
    format!("{}: {wrong}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::operation::Who;

    fn progress() -> Progress {
        let choices = vec![Choice::Pass((Who::WorkerA, 1)), Choice::Time];
        let mut progress = Progress {
            has_faults: true,
            path: Some(vec![Node::new(choices, 1)]),
            known: HashSet::from([7, u64::MAX]),
            ..Progress::default()
        };
        progress.found.runs = 3;
        progress.found.longest = 5;
        progress
    }

    #[test]
    fn a_search_is_read_as_it_was_written() {
        let saved = SavedSearch::new(PathBuf::new(), "zset settle".to_owned());
        let before = progress();

        let after = saved.read(&saved.text(&before)).unwrap();

        assert_eq!(after.known, before.known);
        assert_eq!((after.found.runs, after.found.longest), (3, 5));
        assert!(after.has_faults);
        let node = &after.path.unwrap()[0];
        assert_eq!((node.chosen, node.choices.len()), (1, 2));
    }

    #[test]
    fn the_file_of_another_search_is_refused() {
        let saved = SavedSearch::new(PathBuf::new(), "zset settle".to_owned());
        let other = SavedSearch::new(PathBuf::new(), "zset purge".to_owned());

        let text = saved.text(&progress());

        assert!(other.read(&text).unwrap_err().contains("another search"));
        assert!(saved.read(&text.replace("at 1", "at x")).is_err());
    }
}
