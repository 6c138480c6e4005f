//! All that the screen shows, and the events that change it.

use std::time::{Duration, Instant};

use ratatui::crossterm::event::KeyEvent;
use relq::QueueName;

use super::{
    asks::{Answer, Effect, NamesOf, Read},
    changes::Change,
    open_queue::{OpenQueue, Window},
    overview::Overview,
};

/// How long the store may take before the screen says that it is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long a sentence stays in the status line.
const SAID_FOR: Duration = Duration::from_secs(8);

/// The lines of the screen that are around a list beside those of the status: the title
/// above, and the keys below.
const FRAME: usize = 2;

/// The lines above the list of an open queue.
pub(super) const QUEUE_HEAD: usize = 7;

/// The smallest number of lines with which a queue has its figures above its list.
const HEAD_FITS: usize = 16;

/// The settings, which do not change while the program runs.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    /// The URL of the store, without a password.
    pub(super) store: String,
    pub(super) is_read_only: bool,
    pub(super) has_colours: bool,
}

/// An event that changes the state.
#[derive(Debug)]
pub(super) enum Event {
    Key(KeyEvent),
    /// The screen has this many columns and lines.
    Resized(u16, u16),
    /// It is time to ask the store again.
    Tick,
    Answer(Answer),
}

/// A part of the screen that takes the keys in place of the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Dialog {
    Help,
    /// The text of a filter is typed.
    Filter(String),
    /// A change of this queue waits for `y`.
    Confirm(QueueName, Change),
}

/// A sentence in the status line, until the next key or for some seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Notice {
    pub(super) text: String,
    pub(super) is_bad: bool,
    said: Instant,
}

/// All that the screen shows.
#[derive(Debug)]
pub(super) struct State {
    pub(super) settings: Settings,
    pub(super) interval: Duration,
    pub(super) is_frozen: bool,
    pub(super) size: (u16, u16),
    /// How many lines the status had when the screen was drawn.
    pub(super) status_lines: usize,
    pub(super) overview: Overview,
    pub(super) queue: Option<OpenQueue>,
    pub(super) dialog: Option<Dialog>,
    pub(super) notice: Option<Notice>,
    /// Since when the store cannot be read, and why.
    pub(super) outage: Option<(Instant, String)>,
    /// Since when an answer about the queues is waited for.
    pub(super) sampling: Option<Instant>,
    /// The reading of the page that runs.
    pub(super) reading: Option<Read>,
    pub(super) readings: u64,
    /// The time of the last event.
    now: Instant,
}

impl State {
    pub(super) fn new(settings: Settings, interval: Duration) -> Self {
        Self {
            settings,
            interval,
            is_frozen: false,
            size: (80, 24),
            status_lines: 1,
            overview: Overview::default(),
            queue: None,
            dialog: None,
            notice: None,
            outage: None,
            sampling: None,
            reading: None,
            readings: 0,
            now: Instant::now(),
        }
    }

    /// Changes the state. Returns what is to be done.
    pub(super) fn update(&mut self, event: Event, now: Instant) -> Vec<Effect> {
        self.now = now;
        let is_old = |it: &Notice| now.saturating_duration_since(it.said) > SAID_FOR;
        self.notice = self.notice.take().filter(|notice| !is_old(notice));
        match event {
            Event::Key(key) => self.key(key, now),
            Event::Resized(columns, lines) => {
                self.size = (columns, lines);
                vec![Effect::Redraw]
            }
            Event::Tick if self.is_frozen => Vec::new(),
            Event::Tick => self.refresh(NamesOf::LastList, now),
            Event::Answer(answer) => self.answer(answer, now),
        }
    }

    /// Asks for all that is shown. A question that is not answered yet is not repeated.
    pub(super) fn refresh(&mut self, names: NamesOf, now: Instant) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.sampling.is_none() {
            self.sampling = Some(now);
            effects.push(Effect::Sample(names));
        }
        effects.extend(self.read());
        effects
    }

    /// Reads the open page, unless this very page is being read.
    pub(super) fn read(&mut self) -> Option<Effect> {
        let open = self.queue.as_ref()?;
        let (queue, page) = (open.name.clone(), open.page());
        let is_same = |read: &Read| read.queue == queue && read.page == page;
        if self.reading.as_ref().is_some_and(is_same) {
            return None;
        }
        self.readings += 1;
        let read = Read { number: self.readings, queue, page };
        self.reading = Some(read.clone());
        Some(Effect::Read(read))
    }

    pub(super) fn say(&mut self, text: impl Into<String>) {
        self.notice = Some(Notice { text: text.into(), is_bad: false, said: self.now });
    }

    pub(super) fn warn(&mut self, text: impl Into<String>) {
        self.notice = Some(Notice { text: text.into(), is_bad: true, said: self.now });
    }

    /// How long the store has been waited for, if it is long.
    pub(super) fn waiting(&self, now: Instant) -> Option<Duration> {
        let waited = now.saturating_duration_since(self.sampling?);
        (waited >= PATIENCE).then_some(waited)
    }

    /// Whether a queue has its figures above its list.
    pub(super) fn has_head(&self) -> bool {
        usize::from(self.size.1) >= HEAD_FITS
    }

    /// The size of the list or the text of the page.
    pub(super) fn window(&self) -> Window {
        let (width, lines) = (usize::from(self.size.0), usize::from(self.size.1));
        let above = match &self.queue {
            Some(open) if open.job.is_some() => 1,
            // The heads of the columns, and the tabs.
            Some(_) if self.has_head() => QUEUE_HEAD + 2,
            Some(_) => 2,
            None => 1,
        };
        let around = FRAME + self.status_lines + above;
        Window { width, height: lines.saturating_sub(around).max(1) }
    }
}
