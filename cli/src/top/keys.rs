//! The effects of the keys.

use std::time::{Duration, Instant};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use relq::{QueueName, operator::StateDetail};

use super::{
    asks::{Effect, Filter, NamesOf},
    changes::Change,
    listing::Move,
    open_queue::{OpenQueue, Tab, Turn},
    overview::SortBy,
    state::{Dialog, State},
};

/// The intervals that the keys + and - choose, in milliseconds.
const INTERVALS_MS: [u64; 8] = [250, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000];

/// The longest text of a filter, in characters.
const LONGEST_FILTER: usize = 200;

/// The keys with what they do, for the help.
pub(super) const HELP: [(&str, &str); 15] = [
    ("↑ ↓ j k", "move; PgUp PgDn by a screen, Home End g G to the ends"),
    ("Enter", "open the queue, the job, the jobs of an error or of a worker"),
    ("Esc q", "back; q on the list of queues quits, and Ctrl-C everywhere"),
    ("1 … 6 Tab", "the lists of an open queue: ready, leased, scheduled, dead, …"),
    ("] [", "the next and the previous page of jobs; PgDn and PgUp turn it, too"),
    ("/", "show only what contains a text; an empty text shows all"),
    ("s < >", "sort by another column; S turns the order round"),
    ("p", "pause the queue, or resume it"),
    ("r", "retry a dead job, or all with an error; run a scheduled job now"),
    ("x Ctrl-D", "delete the job, or the dead jobs of an error"),
    ("R", "ask the store now, also for new queues"),
    ("+ -", "ask the store less or more often"),
    ("Space", "freeze what is shown, and go on"),
    ("Ctrl-L", "draw the screen again"),
    ("? h F1", "this help"),
];

impl State {
    /// Takes a key. Returns what is to be done.
    pub(super) fn key(&mut self, key: KeyEvent, now: Instant) -> Vec<Effect> {
        if is_control(key, 'c') {
            return vec![Effect::Quit];
        }
        match self.dialog.take() {
            Some(dialog) => self.key_in_dialog(dialog, key),
            None => {
                self.notice = None;
                self.key_of_page(key, now)
            }
        }
    }

    fn key_in_dialog(&mut self, dialog: Dialog, key: KeyEvent) -> Vec<Effect> {
        match dialog {
            // Any key closes the help.
            Dialog::Help => Vec::new(),
            Dialog::Filter(text) => self.key_of_filter(text, key),
            Dialog::Confirm(queue, change) => match key.code {
                KeyCode::Char('y' | 'Y') => {
                    self.say("asked…");
                    vec![Effect::Change(queue, change)]
                }
                _ => {
                    self.say("nothing was changed");
                    Vec::new()
                }
            },
        }
    }

    fn key_of_filter(&mut self, mut text: String, key: KeyEvent) -> Vec<Effect> {
        match key.code {
            KeyCode::Enter => return self.filter_by(text),
            KeyCode::Esc => return Vec::new(),
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Char('u') if is_control(key, 'u') => text.clear(),
            KeyCode::Char(typed)
                if !typed.is_control()
                    && !key.modifiers.contains(KeyModifiers::CONTROL)
                    && text.chars().count() < LONGEST_FILTER =>
            {
                text.push(typed);
            }
            _ => {}
        }
        self.dialog = Some(Dialog::Filter(text));
        Vec::new()
    }

    fn key_of_page(&mut self, key: KeyEvent, now: Instant) -> Vec<Effect> {
        if is_control(key, 'd') {
            return self.delete();
        }
        if is_control(key, 'l') {
            return vec![Effect::Redraw];
        }
        // Ignore all other keys with Ctrl or Alt: they are not plain letters.
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return Vec::new();
        }
        if let Some(to) = self.movement(key) {
            return self.go(to);
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return self.back(key.code),
            KeyCode::Enter => return self.enter(),
            KeyCode::Tab => return self.tab_right(1),
            KeyCode::BackTab => return self.tab_right(Tab::ALL.len() - 1),
            KeyCode::Char(digit @ '1'..='9') => return self.open_tab(digit),
            KeyCode::Char(']') => return self.turn(Turn::On),
            KeyCode::Char('[') => return self.turn(Turn::Back),
            KeyCode::Char('R') => return self.refresh(NamesOf::NewList, now),
            KeyCode::Char('p') => return self.pause_or_resume(),
            KeyCode::Char('r') => return self.run_again(),
            KeyCode::Char('x') | KeyCode::Delete => return self.delete(),
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => {
                self.dialog = Some(Dialog::Help);
            }
            KeyCode::Char('/') => self.ask_for_filter(),
            KeyCode::Char('s' | '>') => self.sort(SortBy::next),
            KeyCode::Char('<') => self.sort(SortBy::previous),
            KeyCode::Char('S' | 'I') => self.turn_order_round(),
            KeyCode::Char('+') => self.longer_interval(),
            KeyCode::Char('-') => self.shorter_interval(),
            KeyCode::Char(' ') => self.is_frozen = !self.is_frozen,
            _ => {}
        }
        Vec::new()
    }

    fn movement(&self, key: KeyEvent) -> Option<Move> {
        let screen = self.window().height.max(2) - 1;
        Some(match key.code {
            KeyCode::Up | KeyCode::Char('k') => Move::Up(1),
            KeyCode::Down | KeyCode::Char('j') => Move::Down(1),
            KeyCode::PageUp => Move::Up(screen),
            KeyCode::PageDown => Move::Down(screen),
            KeyCode::Home | KeyCode::Char('g') => Move::First,
            KeyCode::End | KeyCode::Char('G') => Move::Last,
            _ => return None,
        })
    }

    fn go(&mut self, to: Move) -> Vec<Effect> {
        let turn = match to {
            Move::Up(_) => Some(Turn::Back),
            Move::Down(_) => Some(Turn::On),
            Move::First | Move::Last => None,
        };
        let window = self.window();
        let Some(open) = &mut self.queue else {
            self.overview.go(to);
            return Vec::new();
        };
        if turn.is_some_and(|turn| open.turn(turn)) {
            return self.read().into_iter().collect();
        }
        open.go(to, window);
        Vec::new()
    }

    /// Turns the page from any row.
    fn turn(&mut self, turn: Turn) -> Vec<Effect> {
        let to = match turn {
            Turn::On => Move::Last,
            Turn::Back => Move::First,
        };
        let window = self.window();
        if let Some(open) = &mut self.queue
            && open.job.is_none()
        {
            open.go(to, window);
            if open.turn(turn) {
                return self.read().into_iter().collect();
            }
        }
        Vec::new()
    }

    fn back(&mut self, code: KeyCode) -> Vec<Effect> {
        if let Some(open) = &mut self.queue {
            if open.step_back() {
                return self.read().into_iter().collect();
            }
            (self.queue, self.reading) = (None, None);
            return Vec::new();
        }
        if code == KeyCode::Char('q') {
            return vec![Effect::Quit];
        }
        self.overview.filter.clear();
        self.overview.settle();
        Vec::new()
    }

    fn enter(&mut self) -> Vec<Effect> {
        match &mut self.queue {
            Some(open) => {
                if !open.open_selected() {
                    return Vec::new();
                }
            }
            None => {
                let Some(row) = self.overview.selected_row() else { return Vec::new() };
                self.queue = Some(OpenQueue::new(row.name.clone()));
            }
        }
        self.read().into_iter().collect()
    }

    fn tab_right(&mut self, tabs: usize) -> Vec<Effect> {
        let Some(open) = &mut self.queue else { return Vec::new() };
        let tab = open.tab.right(tabs);
        open.open_tab(tab, Filter::default());
        self.read().into_iter().collect()
    }

    fn open_tab(&mut self, digit: char) -> Vec<Effect> {
        let at = digit.to_digit(10).map_or(0, |digit| digit as usize);
        let tab = at.checked_sub(1).and_then(|at| Tab::ALL.get(at));
        let (Some(open), Some(tab)) = (&mut self.queue, tab) else { return Vec::new() };
        open.open_tab(*tab, Filter::default());
        self.read().into_iter().collect()
    }

    fn ask_for_filter(&mut self) {
        let text = match &self.queue {
            None => &self.overview.filter,
            Some(OpenQueue { job: None, tab: Tab::Jobs(_), filter, .. }) => {
                &filter.text
            }
            Some(_) => return self.warn("only queues and jobs can be filtered"),
        };
        self.dialog = Some(Dialog::Filter(text.clone()));
    }

    fn filter_by(&mut self, text: String) -> Vec<Effect> {
        let Some(open) = &mut self.queue else {
            self.overview.filter = text;
            self.overview.settle();
            return Vec::new();
        };
        let filter = Filter { text, ..open.filter.clone() };
        open.open_tab(open.tab, filter);
        self.read().into_iter().collect()
    }

    fn sort(&mut self, column: fn(SortBy) -> SortBy) {
        if self.queue.is_none() {
            self.overview.sort = column(self.overview.sort);
            self.overview.settle();
        }
    }

    fn turn_order_round(&mut self) {
        if self.queue.is_none() {
            self.overview.is_reversed = !self.overview.is_reversed;
            self.overview.settle();
        }
    }

    fn longer_interval(&mut self) {
        let longer = INTERVALS_MS.map(Duration::from_millis);
        let next = longer.into_iter().find(|other| *other > self.interval);
        self.interval = next.unwrap_or(self.interval);
    }

    fn shorter_interval(&mut self) {
        let shorter = INTERVALS_MS.map(Duration::from_millis);
        let next = shorter.into_iter().rev().find(|other| *other < self.interval);
        self.interval = next.unwrap_or(self.interval);
    }

    fn pause_or_resume(&mut self) -> Vec<Effect> {
        let row = match &self.queue {
            Some(open) => self.overview.queue(&open.name),
            None => self.overview.selected_row(),
        };
        let Some(row) = row else { return Vec::new() };
        let Some(stats) = row.stats else {
            self.warn("it is not known whether the queue is paused");
            return Vec::new();
        };
        let change = if stats.paused { Change::Resume } else { Change::Pause };
        let queue = row.name.clone();
        self.change(queue, change)
    }

    fn run_again(&mut self) -> Vec<Effect> {
        self.change_selected(|open| {
            if let Some(group) = open.selected_group() {
                return Some(Change::RetryGroup(group.clone()));
            }
            match open.selected_detail()? {
                (id, StateDetail::Dead { .. }) => Some(Change::Retry(id.clone())),
                (id, StateDetail::Scheduled { .. } | StateDetail::Following { .. }) => {
                    Some(Change::RunNow(id.clone()))
                }
                _ => None,
            }
        })
    }

    fn delete(&mut self) -> Vec<Effect> {
        self.change_selected(|open| {
            if let Some(group) = open.selected_group() {
                return Some(Change::PurgeGroup(group.clone()));
            }
            match open.selected_detail()? {
                (id, StateDetail::Dead { .. }) => Some(Change::Purge(id.clone())),
                (id, _) => Some(Change::Cancel(id.clone())),
            }
        })
    }

    fn change_selected(
        &mut self,
        choose: impl Fn(&OpenQueue) -> Option<Change>,
    ) -> Vec<Effect> {
        let Some(open) = &self.queue else { return Vec::new() };
        let Some(change) = choose(open) else {
            self.warn("the key does nothing here");
            return Vec::new();
        };
        let queue = open.name.clone();
        self.change(queue, change)
    }

    /// Makes a change, or asks before one that cannot be undone.
    fn change(&mut self, queue: QueueName, change: Change) -> Vec<Effect> {
        if self.settings.is_read_only {
            self.warn("--read-only: nothing is changed");
            return Vec::new();
        }
        if change.question().is_some() {
            self.dialog = Some(Dialog::Confirm(queue, change));
            return Vec::new();
        }
        vec![Effect::Change(queue, change)]
    }
}

fn is_control(key: KeyEvent, letter: char) -> bool {
    key.code == KeyCode::Char(letter) && key.modifiers.contains(KeyModifiers::CONTROL)
}
