//! The counts of a queue over time, from samples of its statistics.

use std::{
    collections::VecDeque,
    num::NonZeroU16,
    time::{Duration, Instant},
};

use crate::Stats;

/// How long the samples are kept that a rate is computed from.
const KEPT_FOR: Duration = Duration::from_secs(60);

/// The jobs that came and went between two samples of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Flow {
    /// The jobs that were pushed.
    pub pushed: u64,
    /// The jobs that ended: done, discarded or cancelled.
    pub ended: u64,
    /// The jobs that were buried. Those that were redriven or purged between the two
    /// samples are not seen.
    pub died: u64,
}

impl Flow {
    /// The jobs that came and went between two samples, the earlier one first. The
    /// numbers are too low if dead jobs were purged in between. `None` if the whole queue
    /// was purged, which sets its totals to zero.
    pub fn between((earlier, later): (&Stats, &Stats)) -> Option<Self> {
        let ended = all_ended(later).checked_sub(all_ended(earlier))?;
        let pushed = (stored(later) + ended).saturating_sub(stored(earlier));
        let died = later.dead.saturating_sub(earlier.dead);
        Some(Self { pushed, ended, died })
    }
}

/// The jobs that have ended since the queue was created or purged.
fn all_ended(stats: &Stats) -> u64 {
    stats.finished + stats.discarded + stats.cancelled
}

/// The jobs that the queue has.
fn stored(stats: &Stats) -> u64 {
    stats.unfinished() + stats.dead
}

/// How many jobs come and go in a second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Rates {
    /// The jobs that are pushed in a second.
    pub pushed: f64,
    /// The jobs that end in a second: done, discarded or cancelled.
    pub ended: f64,
}

impl Rates {
    /// The rates of a flow in this time. `None` if the time is zero.
    pub fn new(flow: Flow, elapsed: Duration) -> Option<Self> {
        let seconds = elapsed.as_secs_f64();
        let a_second = |jobs: u64| {
            #[allow(clippy::cast_precision_loss, reason = "a rate need not be exact")]
            let jobs = jobs as f64;
            jobs / seconds
        };
        (seconds > 0.0).then(|| Self {
            pushed: a_second(flow.pushed),
            ended: a_second(flow.ended),
        })
    }
}

/// The samples of a queue in one span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Span {
    /// The most ready jobs of a sample.
    pub ready: u64,
    /// The jobs that came and went.
    pub flow: Flow,
}

/// The recent past of a queue, in spans of equal length, for charts and rates.
///
/// The caller reads [`stats`](crate::Operator::stats) from time to time and adds it.
///
/// ```
/// use std::{num::NonZeroU16, time::{Duration, Instant}};
/// use relq_core::{Stats, operator::StatsHistory};
///
/// let hour = NonZeroU16::new(60).expect("not zero");
/// let minute = Duration::from_secs(60);
/// let mut history = StatsHistory::new(minute, hour);
///
/// let (mut stats, began) = (Stats::new(), Instant::now());
/// history.add(began, &stats);
/// stats.finished = 30; // in ten seconds, 30 jobs were pushed and done
/// history.add(began + Duration::from_secs(10), &stats);
///
/// assert_eq!(history.spans().len(), 60);
/// let rates = history.rates(minute).expect("there are two samples");
/// assert_eq!((rates.pushed, rates.ended), (3.0, 3.0)); // jobs in a second
/// ```
#[derive(Debug, Clone)]
pub struct StatsHistory {
    length: Duration,
    most: NonZeroU16,
    began: Option<Instant>,
    spans: VecDeque<(u128, Span)>,
    recent: VecDeque<(Instant, Stats)>,
}

impl StatsHistory {
    /// Keeps the last `most` spans of this length. A length of zero counts as one
    /// millisecond.
    pub fn new(length: Duration, most: NonZeroU16) -> Self {
        Self {
            length: length.max(Duration::from_millis(1)),
            most,
            began: None,
            spans: VecDeque::new(),
            recent: VecDeque::new(),
        }
    }

    /// Adds a sample. The samples are added in the order of their times.
    pub fn add(&mut self, now: Instant, stats: &Stats) {
        let before = self.recent.back().map(|(_, before)| before);
        let flow = before.map(|before| Flow::between((before, stats)));
        if flow == Some(None) {
            self.recent.clear();
        }
        let span = self.span_at(now);
        span.ready = span.ready.max(stats.ready);
        let flow = flow.flatten().unwrap_or_default();
        span.flow.pushed += flow.pushed;
        span.flow.ended += flow.ended;
        span.flow.died += flow.died;
        self.recent.push_back((now, *stats));
        // Two samples are kept, however old, so that there is a rate.
        let is_old = |sample: &(Instant, Stats)| now - sample.0 > KEPT_FOR;
        while self.recent.len() > 2 && self.recent.front().is_some_and(is_old) {
            self.recent.pop_front();
        }
    }

    /// The present span, behind those that have ended.
    fn span_at(&mut self, now: Instant) -> &mut Span {
        let began = *self.began.get_or_insert(now);
        let at = (now - began).as_nanos() / self.length.as_nanos();
        if self.spans.back().is_none_or(|(last, _)| *last != at) {
            self.spans.push_back((at, Span::default()));
        }
        let most = u128::from(self.most.get());
        while self.spans.front().is_some_and(|(first, _)| first + most <= at) {
            self.spans.pop_front();
        }
        &mut self.spans.back_mut().expect("it was just added").1
    }

    /// All spans up to the last sample, oldest first; `None` for a span without a sample.
    pub fn spans(&self) -> Vec<Option<Span>> {
        let now = self.spans.back().map_or(0, |(last, _)| *last);
        let at = |ago: u16| {
            let at = now.checked_sub(u128::from(ago))?;
            self.spans.iter().find(|(span, _)| *span == at).map(|(_, span)| *span)
        };
        (0..self.most.get()).rev().map(at).collect()
    }

    /// How many jobs came and went in a second, between the last sample and the oldest one
    /// that is at most this much older. Samples are kept for a minute, the last two for
    /// longer. `None` if there is no such sample.
    pub fn rates(&self, over: Duration) -> Option<Rates> {
        let (last, after) = self.recent.back()?;
        let (first, before) = self.recent.iter().find(|(at, _)| *last - *at <= over)?;
        Rates::new(Flow::between((before, after))?, *last - *first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn stats([ready, finished, dead]: [u64; 3]) -> Stats {
        let mut stats = Stats::new();
        (stats.ready, stats.finished, stats.dead) = (ready, finished, dead);
        stats
    }

    /// The history of these samples, each with its time in seconds.
    fn history(samples: &[(u64, [u64; 3])]) -> StatsHistory {
        let mut history = StatsHistory::new(MINUTE, NonZeroU16::new(60).unwrap());
        let now = Instant::now();
        for (seconds, counts) in samples {
            history.add(now + Duration::from_secs(*seconds), &stats(*counts));
        }
        history
    }

    fn spans(history: &StatsHistory) -> Vec<(u64, [u64; 3])> {
        let known = history.spans().into_iter().flatten();
        known
            .map(|Span { ready, flow }| (ready, [flow.pushed, flow.ended, flow.died]))
            .collect()
    }

    #[test]
    fn samples_add_up_in_spans() {
        let history =
            history(&[(0, [5, 100, 3]), (10, [9, 120, 4]), (70, [2, 130, 1])]);

        assert_eq!(spans(&history), [(9, [25, 20, 1]), (2, [0, 10, 0])]);
        let rates = history.rates(MINUTE).unwrap();
        assert_eq!((rates.pushed, rates.ended), (0.0, 10.0 / 60.0));
    }

    /// A page that is open for days keeps the samples of a few minutes.
    #[test]
    fn old_samples_are_forgotten() {
        let seconds = KEPT_FOR.as_secs();
        let many: Vec<_> = (0..100).map(|at| (at * seconds / 3, [0, at, 0])).collect();

        assert!(history(&many).recent.len() <= 5, "{}", history(&many).recent.len());
    }

    #[test]
    fn a_rate_is_that_of_the_last_samples() {
        let history = history(&[(0, [0, 0, 0]), (50, [0, 500, 0]), (54, [8, 502, 0])]);

        let ended = |seconds| {
            history.rates(Duration::from_secs(seconds)).map(|rates| rates.ended)
        };
        assert_eq!(ended(4), Some(0.5));
        assert_eq!(ended(60), Some(502.0 / 54.0));
        assert_eq!(ended(3), None, "there is one sample");
    }

    #[test]
    fn a_purge_is_no_negative_rate() {
        let history = history(&[(0, [5, 100, 3]), (5, [0, 0, 0])]);

        assert_eq!(spans(&history), [(5, [0, 0, 0])]);
        assert_eq!(history.rates(MINUTE), None);
    }

    /// The totals begin at 0 after a purge, and cannot be compared with those before it.
    #[test]
    fn a_rate_after_a_purge_counts_from_the_purge_on() {
        let history = history(&[(0, [5, 100, 3]), (5, [0, 0, 0]), (10, [0, 50, 0])]);

        let rates = Rates { pushed: 10.0, ended: 10.0 };
        assert_eq!(history.rates(MINUTE), Some(rates));
    }

    #[test]
    fn the_last_spans_are_kept() {
        let minutes = [0, 1, 30, 60].map(|minute| (minute * 60, [minute, 0, 0]));
        let history = history(&minutes);

        let ready: Vec<_> = spans(&history).iter().map(|(ready, _)| *ready).collect();
        assert_eq!(ready, [1, 30, 60]);
        assert_eq!(history.spans().len(), 60);
    }

    /// Sets one number of the stats, and what a job more of that number is: pushed, ended
    /// and died.
    type Number = (fn(&mut Stats) -> &mut u64, [u64; 3]);

    const NUMBERS: [Number; 8] = [
        (|stats| &mut stats.ready, [1, 0, 0]),
        (|stats| &mut stats.scheduled, [1, 0, 0]),
        (|stats| &mut stats.leased, [1, 0, 0]),
        (|stats| &mut stats.overdue, [0, 0, 0]),
        (|stats| &mut stats.dead, [1, 0, 1]),
        (|stats| &mut stats.finished, [1, 1, 0]),
        (|stats| &mut stats.discarded, [1, 1, 0]),
        (|stats| &mut stats.cancelled, [1, 1, 0]),
    ];

    #[test]
    fn a_job_counts_by_the_number_that_it_is_in() {
        let mut before = Stats::new();
        for (number, _) in NUMBERS {
            *number(&mut before) = 7;
        }
        for (number, [pushed, ended, died]) in NUMBERS {
            let mut after = before;
            *number(&mut after) += 1;
            let flow = Flow::between((&before, &after));
            assert_eq!(flow, Some(Flow { pushed, ended, died }), "{after:?}");
        }
    }

    #[test]
    fn jobs_that_came_and_went_are_counted() {
        let counts = |[ready, dead, finished, cancelled]: [u64; 4]| {
            let mut stats = Stats::new();
            (stats.ready, stats.dead) = (ready, dead);
            (stats.finished, stats.cancelled) = (finished, cancelled);
            stats
        };
        let before = counts([10, 1, 5, 0]);
        for (after, expected) in [
            ([10, 1, 5, 0], Some((0, 0, 0))),
            ([14, 1, 5, 0], Some((4, 0, 0))),
            ([6, 1, 9, 0], Some((0, 4, 0))),
            ([10, 1, 8, 1], Some((4, 4, 0))),
            // One died.
            ([9, 2, 5, 0], Some((0, 0, 1))),
            // A dead one was purged.
            ([10, 0, 5, 0], Some((0, 0, 0))),
            // The queue was purged.
            ([3, 0, 0, 0], None),
        ] {
            let flow = Flow::between((&before, &counts(after)));
            let flow = flow.map(|flow| (flow.pushed, flow.ended, flow.died));
            assert_eq!(flow, expected, "{after:?}");
        }
    }
}
