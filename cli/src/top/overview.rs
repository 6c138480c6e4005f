//! The list of the queues: their counts and rates, sorted and filtered.

use std::{
    cmp::Ordering,
    collections::BTreeMap,
    num::NonZeroU16,
    time::{Duration, Instant},
};

use relq::{
    QueueName, Stats,
    operator::{Rates, StatsHistory},
};

use super::{
    asks::{Counts, Sample},
    listing::{Move, Selected},
};

/// The charts show the last five minutes.
const SPAN: Duration = Duration::from_secs(5);
pub(super) const SPANS: NonZeroU16 = NonZeroU16::new(60).expect("not zero");

/// Over how long a rate is measured, at least.
const RATE_OVER: Duration = Duration::from_secs(10);

/// A queue, as the last samples found it.
#[derive(Debug, Clone)]
pub(super) struct QueueRow {
    pub(super) name: QueueName,
    /// `None` before the queue was read for the first time.
    pub(super) backend: Option<&'static str>,
    /// The last counts that were read.
    pub(super) stats: Option<Stats>,
    /// Why the last sample has no counts.
    pub(super) trouble: Option<String>,
    pub(super) rates: Option<Rates>,
    pub(super) history: StatsHistory,
}

impl QueueRow {
    fn new(name: QueueName) -> Self {
        Self {
            name,
            backend: None,
            stats: None,
            trouble: None,
            rates: None,
            history: StatsHistory::new(SPAN, SPANS),
        }
    }

    fn add(&mut self, counts: Counts, now: Instant, interval: Duration) {
        match counts {
            Ok((backend, stats)) => {
                self.history.add(now, &stats);
                self.rates = self.history.rates(RATE_OVER.max(interval * 3 / 2));
                (self.backend, self.stats) = (Some(backend), Some(stats));
                self.trouble = None;
            }
            Err(trouble) => self.trouble = Some(trouble),
        }
    }

    /// How many jobs died in the time that the charts show.
    pub(super) fn died(&self) -> u64 {
        self.history.spans().into_iter().flatten().map(|span| span.flow.died).sum()
    }

    /// The place of the queue when the list is sorted by this column.
    fn rank(&self, by: SortBy) -> f64 {
        let stats = self.stats.unwrap_or_default();
        #[expect(clippy::cast_precision_loss, reason = "an order need not be exact")]
        let count = |count: u64| count as f64;
        let rate = |of: fn(Rates) -> f64| self.rates.map_or(0.0, of);
        match by {
            SortBy::Name => 0.0,
            SortBy::Ready => count(stats.ready),
            SortBy::Oldest => {
                stats.oldest_ready_age.map_or(-1.0, |age| age.as_secs_f64())
            }
            SortBy::Scheduled => count(stats.scheduled),
            SortBy::Leased => count(stats.leased),
            SortBy::Dead => count(stats.dead),
            SortBy::Pushed => rate(|rates| rates.pushed),
            SortBy::Ended => rate(|rates| rates.ended),
            SortBy::Died => count(self.died()),
        }
    }
}

/// The column by which the queues are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum SortBy {
    #[default]
    Name,
    Ready,
    Oldest,
    Scheduled,
    Leased,
    Dead,
    Pushed,
    Ended,
    Died,
}

impl SortBy {
    pub(super) const ALL: [Self; 9] = [
        Self::Name,
        Self::Ready,
        Self::Oldest,
        Self::Scheduled,
        Self::Leased,
        Self::Dead,
        Self::Pushed,
        Self::Ended,
        Self::Died,
    ];

    /// The column that is this many to the right, round the end.
    fn right(self, columns: usize) -> Self {
        let at = Self::ALL.iter().position(|column| *column == self).unwrap_or(0);
        Self::ALL[(at + columns) % Self::ALL.len()]
    }

    pub(super) fn next(self) -> Self {
        self.right(1)
    }

    pub(super) fn previous(self) -> Self {
        self.right(Self::ALL.len() - 1)
    }
}

/// The list of the queues.
#[derive(Debug, Default)]
pub(super) struct Overview {
    queues: BTreeMap<QueueName, QueueRow>,
    /// How many queues the store has, of which some may not be read. `None` before the
    /// first answer.
    pub(super) all: Option<usize>,
    pub(super) sort: SortBy,
    /// Whether the order is turned round: names from the last one, numbers from the
    /// smallest.
    pub(super) is_reversed: bool,
    /// Only the queues whose names contain this text are shown.
    pub(super) filter: String,
    selected: Selected<QueueName>,
}

impl Overview {
    pub(super) fn add(&mut self, sample: Sample, now: Instant, interval: Duration) {
        self.all = Some(sample.all);
        let is_listed =
            |name: &QueueName| sample.queues.iter().any(|(it, _)| it == name);
        self.queues.retain(|name, _| is_listed(name));
        for (name, counts) in sample.queues {
            let row =
                self.queues.entry(name.clone()).or_insert_with(|| QueueRow::new(name));
            row.add(counts, now, interval);
        }
        self.settle();
    }

    pub(super) fn queue(&self, name: &QueueName) -> Option<&QueueRow> {
        self.queues.get(name)
    }

    /// How many queues are read.
    pub(super) fn sampled(&self) -> usize {
        self.queues.len()
    }

    /// The queues that are shown, in their order.
    pub(super) fn rows(&self) -> Vec<&QueueRow> {
        let is_shown = |row: &&QueueRow| row.name.as_str().contains(&self.filter);
        let mut rows: Vec<_> = self.queues.values().filter(is_shown).collect();
        // The map has the order of the names, and the sort keeps it among equals.
        rows.sort_by(|one, other| {
            let (one, other) = (one.rank(self.sort), other.rank(self.sort));
            other.partial_cmp(&one).unwrap_or(Ordering::Equal)
        });
        if self.is_reversed {
            rows.reverse();
        }
        rows
    }

    fn names(&self) -> Vec<QueueName> {
        self.rows().into_iter().map(|row| row.name.clone()).collect()
    }

    pub(super) fn selected(&self) -> usize {
        self.selected.at()
    }

    pub(super) fn selected_row(&self) -> Option<&QueueRow> {
        self.rows().get(self.selected.at()).copied()
    }

    pub(super) fn go(&mut self, to: Move) {
        let names = self.names();
        self.selected.go(to, names);
    }

    /// Follows the selected queue after the list has changed.
    pub(super) fn settle(&mut self) {
        let names = self.names();
        self.selected.settle(names);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(queues: &[(&str, u64)]) -> Sample {
        let counts = |(name, ready): &(&str, u64)| {
            let mut stats = Stats::new();
            stats.ready = *ready;
            (QueueName::new(*name).unwrap(), Ok(("sqlite", stats)))
        };
        Sample { all: queues.len(), queues: queues.iter().map(counts).collect() }
    }

    fn names(overview: &Overview) -> Vec<&str> {
        overview.rows().into_iter().map(|row| row.name.as_str()).collect()
    }

    fn of(queues: &[(&str, u64)]) -> Overview {
        let mut overview = Overview::default();
        overview.add(sample(queues), Instant::now(), Duration::from_secs(2));
        overview
    }

    #[test]
    fn queues_are_sorted_and_filtered() {
        let mut overview = of(&[("b", 5), ("a", 1), ("c", 9), ("d", 5)]);
        assert_eq!(names(&overview), ["a", "b", "c", "d"]);
        overview.sort = SortBy::Ready;
        assert_eq!(names(&overview), ["c", "b", "d", "a"]);
        overview.is_reversed = true;
        assert_eq!(names(&overview), ["a", "d", "b", "c"]);
        overview.filter = "c".to_owned();
        assert_eq!(names(&overview), ["c"]);
    }

    /// Each column sorts by its own figure. A job that is new was pushed, and one that is dead
    /// has died.
    #[test]
    fn each_column_is_sorted_by_its_own_figure() {
        use SortBy::{Dead, Died, Ended, Leased, Oldest, Pushed, Ready, Scheduled};

        type Figure = (&'static [SortBy], fn(&mut Stats));
        let figures: [Figure; 6] = [
            (&[Ready, Pushed], |stats| stats.ready = 1),
            (&[Oldest], |stats| stats.oldest_ready_age = Some(Duration::ZERO)),
            (&[Scheduled, Pushed], |stats| stats.scheduled = 1),
            (&[Leased, Pushed], |stats| stats.leased = 1),
            (&[Dead, Died, Pushed], |stats| stats.dead = 1),
            (&[Ended, Pushed], |stats| stats.finished = 1),
        ];
        for (columns, set) in figures {
            let (now, interval) = (Instant::now(), Duration::from_secs(2));
            let mut overview = Overview::default();
            overview.add(sample(&[("a", 0), ("b", 0)]), now, interval);
            let mut second = sample(&[("a", 0), ("b", 0)]);
            set(&mut second.queues[1].1.as_mut().expect("it was read").1);
            overview.add(second, now + interval, interval);
            for by in SortBy::ALL {
                overview.sort = by;
                let first = if columns.contains(&by) { "b" } else { "a" };
                let what = format!("sorted by {by:?}, b leads in {columns:?}");
                assert_eq!(names(&overview)[0], first, "{what}");
            }
        }
    }

    #[test]
    fn the_selection_follows_its_queue() {
        let mut overview = of(&[("a", 1), ("b", 5)]);
        overview.go(Move::Last);
        overview.sort = SortBy::Ready;
        overview.settle();
        assert_eq!(overview.selected_row().unwrap().name.as_str(), "b");
        assert_eq!(overview.selected(), 0);
    }

    #[test]
    fn a_queue_that_is_gone_is_not_shown() {
        let mut overview = of(&[("a", 1), ("b", 5)]);
        overview.add(sample(&[("b", 6)]), Instant::now(), Duration::from_secs(2));
        assert_eq!(names(&overview), ["b"]);
    }

    #[test]
    fn a_failure_keeps_the_last_counts() {
        let mut overview = of(&[("a", 1)]);
        let name = QueueName::new("a").unwrap();
        let failed = Sample { all: 1, queues: vec![(name, Err("down".to_owned()))] };
        overview.add(failed, Instant::now(), Duration::from_secs(2));
        let rows = overview.rows();
        assert_eq!(rows[0].stats.unwrap().ready, 1);
        assert_eq!(rows[0].trouble.as_deref(), Some("down"));
    }

    #[test]
    fn the_columns_go_round() {
        assert_eq!(SortBy::Died.next(), SortBy::Name);
        assert_eq!(SortBy::Name.previous(), SortBy::Died);
        assert_eq!(SortBy::Ready.next().previous(), SortBy::Ready);
    }
}
