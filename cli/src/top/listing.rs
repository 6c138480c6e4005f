//! A list in which one row is selected, and the pages of a listing.

use relq::operator::{JobView, PageCursor};

/// How far a key moves the selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Move {
    Up(usize),
    Down(usize),
    First,
    Last,
}

/// The selected row of a list. When the list changes, the selection stays on the row with
/// the same key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Selected<K> {
    at: usize,
    key: Option<K>,
}

impl<K> Default for Selected<K> {
    fn default() -> Self {
        Self { at: 0, key: None }
    }
}

impl<K: PartialEq> Selected<K> {
    /// The last row of a list that is not known yet.
    pub(super) fn last() -> Self {
        Self { at: usize::MAX, key: None }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Follows the selected row into a new list. If it is gone, the row at its place is
    /// selected. Without a selection so far it is the first row.
    pub(super) fn settle(&mut self, keys: Vec<K>) {
        let same = |wanted: &K| keys.iter().position(|key| key == wanted);
        let found = self.key.as_ref().and_then(same);
        self.at = found.unwrap_or(self.at).min(keys.len().saturating_sub(1));
        self.key = keys.into_iter().nth(self.at);
    }

    /// Moves the selection in the list of these keys.
    pub(super) fn go(&mut self, to: Move, keys: Vec<K>) {
        self.at = match to {
            Move::Up(rows) => self.at.saturating_sub(rows),
            Move::Down(rows) => self.at.saturating_add(rows),
            Move::First => 0,
            Move::Last => usize::MAX,
        };
        self.key = None;
        self.settle(keys);
    }
}

/// The pages of a listing of jobs, up to the one that is shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Pages {
    /// The cursors of the pages after the first one, up to the shown one.
    cursors: Vec<PageCursor>,
    pub(super) next: Option<PageCursor>,
}

impl Pages {
    /// The cursor of the shown page; `None` for the first page.
    pub(super) fn after(&self) -> Option<&PageCursor> {
        self.cursors.last()
    }

    /// The number of the shown page, from 1.
    pub(super) fn number(&self) -> usize {
        self.cursors.len() + 1
    }

    /// Turns to the next page. Returns whether there is one.
    pub(super) fn turn_on(&mut self) -> bool {
        let Some(next) = self.next.take() else { return false };
        self.cursors.push(next);
        true
    }

    /// Turns to the page before. Returns whether there is one.
    pub(super) fn turn_back(&mut self) -> bool {
        self.next = None;
        self.cursors.pop().is_some()
    }
}

/// The key of a job in a list. Two jobs without an id are told apart by their rows.
pub(super) fn keys_of(jobs: &[JobView]) -> Vec<(Option<relq::JobId>, usize)> {
    let key = |(row, job): (usize, &JobView)| match &job.id {
        Some(id) => (Some(id.clone()), 0),
        None => (None, row),
    };
    jobs.iter().enumerate().map(key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_selection_follows_its_row() {
        let mut selected = Selected::default();
        selected.settle(vec!["a", "b", "c"]);
        assert_eq!(selected.at(), 0);
        selected.go(Move::Down(1), vec!["a", "b", "c"]);
        selected.settle(vec!["new", "a", "b", "c"]);
        assert_eq!(selected.at(), 2, "b is selected");
        selected.settle(vec!["a", "c", "d"]);
        assert_eq!(selected.at(), 2, "the row at its place is selected");
        selected.settle(vec!["a"]);
        assert_eq!(selected.at(), 0);
        selected.settle(Vec::new());
        assert_eq!(selected.at(), 0);
    }

    #[test]
    fn the_selection_stays_in_the_list() {
        let (mut selected, keys) = (Selected::default(), || vec![1, 2, 3]);
        for (to, at) in [
            (Move::Up(1), 0),
            (Move::Down(2), 2),
            (Move::Down(9), 2),
            (Move::First, 0),
            (Move::Last, 2),
            (Move::Up(1), 1),
        ] {
            selected.go(to, keys());
            assert_eq!(selected.at(), at, "{to:?}");
        }
    }

    #[test]
    fn pages_are_turned_on_and_back() {
        let cursor = |at: u8| PageCursor(vec![at].into());
        let mut pages = Pages::default();
        assert!(!pages.turn_on(), "there is no next page");
        pages.next = Some(cursor(1));
        assert!(pages.turn_on());
        assert_eq!((pages.after(), pages.number()), (Some(&cursor(1)), 2));
        assert!(!pages.turn_on(), "the next page is not known yet");
        assert!(pages.turn_back());
        assert_eq!((pages.after(), pages.number()), (None, 1));
        assert!(!pages.turn_back());
    }
}
