//! The queue that is open: its tab, the list of that tab, and the open job.

use relq::{
    JobId, QueueName, WorkerId,
    operator::{JobRecord, JobState, JobView, StateDetail},
};

use crate::{printable::wrapped, show::record};

use super::{
    asks::{
        Completeness, Filter, Found, Group, JobsPage, Only, PageOf, Position, WorkerRow,
    },
    listing::{Move, Pages, Selected, keys_of},
};

/// How many columns of the payload of a job are shown at most.
const MOST_OF_RECORD: usize = 16_384;

/// A list of an open queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    Jobs(JobState),
    Errors,
    Workers,
}

impl Tab {
    /// The tabs in their order, which the keys from 1 name.
    pub(super) const ALL: [Self; 6] = [
        Self::Jobs(JobState::Ready),
        Self::Jobs(JobState::Leased),
        Self::Jobs(JobState::Scheduled),
        Self::Jobs(JobState::Dead),
        Self::Errors,
        Self::Workers,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Jobs(state) => state.as_str(),
            Self::Errors => "errors",
            Self::Workers => "workers",
        }
    }

    /// The tab that is this many to the right, round the end.
    pub(super) fn right(self, tabs: usize) -> Self {
        let at = Self::ALL.iter().position(|tab| *tab == self).unwrap_or(0);
        Self::ALL[(at + tabs) % Self::ALL.len()]
    }
}

/// The rows of the open tab. `None` before the first answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum List {
    Jobs {
        page: Option<JobsPage>,
        pages: Pages,
        selected: Selected<(Option<JobId>, usize)>,
    },
    Errors {
        groups: Option<(Vec<Group>, Completeness)>,
        selected: Selected<String>,
    },
    Workers {
        rows: Option<(Vec<WorkerRow>, Completeness)>,
        selected: Selected<WorkerId>,
    },
}

impl List {
    fn of(tab: Tab) -> Self {
        match tab {
            Tab::Jobs(_) => Self::Jobs {
                page: None,
                pages: Pages::default(),
                selected: Selected::default(),
            },
            Tab::Errors => Self::Errors { groups: None, selected: Selected::default() },
            Tab::Workers => Self::Workers { rows: None, selected: Selected::default() },
        }
    }
}

/// The job whose record is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OpenJob {
    pub(super) record: JobRecord,
    /// Why the record is that of earlier: the job is not stored any more.
    pub(super) gone: Option<String>,
    /// Where the job was listed.
    seen: Position,
    /// The first line that is shown.
    pub(super) scroll: usize,
}

/// The size of the part of the screen that shows a list or a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) width: usize,
    pub(super) height: usize,
}

impl OpenJob {
    /// The record in lines for a window of this width, with a blank at each end.
    pub(super) fn lines(&self, width: usize) -> Vec<String> {
        let text = record::text(&self.record, MOST_OF_RECORD);
        let width = width.saturating_sub(2).max(1);
        text.lines().flat_map(|line| wrapped(line, width)).collect()
    }
}

/// The queue that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OpenQueue {
    pub(super) name: QueueName,
    pub(super) tab: Tab,
    pub(super) list: List,
    /// Which jobs the list shows.
    pub(super) filter: Filter,
    pub(super) job: Option<OpenJob>,
    /// Why the page could not be read.
    pub(super) trouble: Option<String>,
}

impl OpenQueue {
    pub(super) fn new(name: QueueName) -> Self {
        let tab = Tab::ALL[0];
        let (list, filter) = (List::of(tab), Filter::default());
        Self { name, tab, list, filter, job: None, trouble: None }
    }

    /// Opens a tab at its first page.
    pub(super) fn open_tab(&mut self, tab: Tab, filter: Filter) {
        let name = self.name.clone();
        *self = Self { tab, list: List::of(tab), filter, ..Self::new(name) };
    }

    /// The content that is to be read for this page.
    pub(super) fn page(&self) -> PageOf {
        if let Some(OpenJob { record, seen, .. }) = &self.job
            && let Some(id) = &record.job.id
        {
            return PageOf::Job(id.clone(), seen.clone());
        }
        match self.tab {
            Tab::Jobs(state) => PageOf::Jobs(self.position(state), self.filter.clone()),
            Tab::Errors => PageOf::Errors,
            Tab::Workers => PageOf::Workers,
        }
    }

    fn position(&self, state: JobState) -> Position {
        let after = match &self.list {
            List::Jobs { pages, .. } => pages.after().cloned(),
            _ => None,
        };
        Position { state, after }
    }

    /// Takes the answer to a reading of this page.
    pub(super) fn add(&mut self, found: Found) {
        self.trouble = None;
        match (found, &mut self.list) {
            (Found::Job(record), _) => {
                if let Some(open) = &mut self.job {
                    (open.record, open.gone) = (*record, None);
                }
            }
            (Found::NoJob(why), _) => {
                if let Some(open) = &mut self.job {
                    open.gone = Some(why);
                }
            }
            (Found::Jobs(found), List::Jobs { page, pages, selected }) => {
                pages.next.clone_from(&found.next);
                selected.settle(keys_of(&found.jobs));
                *page = Some(found);
            }
            (Found::Errors(found, whole), List::Errors { groups, selected }) => {
                selected.settle(names_of(&found));
                *groups = Some((found, whole));
            }
            (Found::Workers(found, whole), List::Workers { rows, selected }) => {
                selected.settle(workers_of(&found));
                *rows = Some((found, whole));
            }
            // The tab was changed meanwhile.
            _ => {}
        }
    }

    /// The selected job of the list, or the open one.
    pub(super) fn selected_job(&self) -> Option<&JobView> {
        if let Some(open) = &self.job {
            return Some(&open.record.job);
        }
        match &self.list {
            List::Jobs { page, selected, .. } => page.as_ref()?.jobs.get(selected.at()),
            _ => None,
        }
    }

    pub(super) fn selected_group(&self) -> Option<&Group> {
        match &self.list {
            List::Errors { groups, selected } => groups.as_ref()?.0.get(selected.at()),
            _ => None,
        }
    }

    fn selected_worker(&self) -> Option<&WorkerRow> {
        match &self.list {
            List::Workers { rows, selected } => rows.as_ref()?.0.get(selected.at()),
            _ => None,
        }
    }

    /// Opens the selected row: a job, or the jobs of a group or of a worker. Returns
    /// whether there is one.
    pub(super) fn open_selected(&mut self) -> bool {
        if self.job.is_some() {
            return false;
        }
        if let (Some(job), Tab::Jobs(state)) = (self.selected_job().cloned(), self.tab)
        {
            let seen = self.position(state);
            let record = JobRecord::new(job, Vec::new());
            self.job = Some(OpenJob { record, gone: None, seen, scroll: 0 });
            return true;
        }
        let only = |only| Filter { only, ..Filter::default() };
        if let Some(group) = self.selected_group().cloned() {
            self.open_tab(Tab::Jobs(JobState::Dead), only(Only::Group(group)));
            return true;
        }
        if let Some(row) = self.selected_worker() {
            let worker = Only::Worker(row.worker.clone());
            self.open_tab(Tab::Jobs(JobState::Leased), only(worker));
            return true;
        }
        false
    }

    /// Goes one step back. Returns whether there was one.
    pub(super) fn step_back(&mut self) -> bool {
        if self.job.take().is_some() {
            return true;
        }
        if self.filter.is_empty() {
            return false;
        }
        let tab = match self.filter.only {
            Only::All => self.tab,
            Only::Group(_) => Tab::Errors,
            Only::Worker(_) => Tab::Workers,
        };
        self.open_tab(tab, Filter::default());
        true
    }

    /// Moves the selection, or the text of the open job in a window of this size.
    pub(super) fn go(&mut self, to: Move, window: Window) {
        if let Some(open) = &mut self.job {
            let hidden = open.lines(window.width).len().saturating_sub(window.height);
            open.scroll = match to {
                Move::Up(rows) => open.scroll.saturating_sub(rows),
                Move::Down(rows) => open.scroll.saturating_add(rows),
                Move::First => 0,
                Move::Last => hidden,
            };
            open.scroll = open.scroll.min(hidden);
            return;
        }
        match &mut self.list {
            List::Jobs { page: Some(page), selected, .. } => {
                selected.go(to, keys_of(&page.jobs));
            }
            List::Errors { groups: Some((groups, _)), selected } => {
                selected.go(to, names_of(groups));
            }
            List::Workers { rows: Some((rows, _)), selected } => {
                selected.go(to, workers_of(rows));
            }
            _ => {}
        }
    }

    /// Turns to the next or the previous page if the selection is at the end of this one,
    /// or says that there is none.
    pub(super) fn turn(&mut self, to: Turn) -> bool {
        let List::Jobs { page: Some(page), pages, selected } = &mut self.list else {
            return false;
        };
        if self.job.is_some() {
            return false;
        }
        let (is_at_end, turn): (bool, fn(&mut Pages) -> bool) = match to {
            Turn::On => (selected.at() + 1 >= page.jobs.len(), Pages::turn_on),
            Turn::Back => (selected.at() == 0, Pages::turn_back),
        };
        if !is_at_end || !turn(pages) {
            return false;
        }
        *selected = match to {
            Turn::On => Selected::default(),
            Turn::Back => Selected::last(),
        };
        true
    }

    /// The state of the open or selected job.
    pub(super) fn selected_detail(&self) -> Option<(&JobId, &StateDetail)> {
        let job = self.selected_job()?;
        Some((job.id.as_ref()?, &job.detail))
    }
}

/// A direction in a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    On,
    Back,
}

fn names_of(groups: &[Group]) -> Vec<String> {
    groups.iter().map(|group| group.error.clone()).collect()
}

fn workers_of(rows: &[WorkerRow]) -> Vec<WorkerId> {
    rows.iter().map(|row| row.worker.clone()).collect()
}
