//! The counts of a queue over the last hour, in minutes.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use relq_core::Stats;

/// How many minutes are kept.
const MINUTES: u64 = 60;

/// Over how long the present rate is measured.
const RATE_OVER: Duration = Duration::from_secs(60);

/// The samples of one minute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Minute {
    /// The number of the minute since the start of the page.
    at: u64,
    /// The most ready jobs of a sample.
    pub(crate) ready: u64,
    /// The jobs that ended: done, discarded or cancelled.
    pub(crate) ended: u64,
    /// The jobs that died. Those that were redriven or purged between two samples are not
    /// seen.
    pub(crate) died: u64,
}

/// The minutes of the last hour, and the samples of the last minute.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    minutes: VecDeque<Minute>,
    /// When a sample was taken, and how many jobs had ended until then.
    recent: VecDeque<(Instant, u64)>,
    last_dead: Option<u64>,
}

impl History {
    pub(crate) fn add(&mut self, minute: u64, now: Instant, stats: &Stats) {
        let ended = stats.finished + stats.discarded + stats.cancelled;
        let before = self.recent.back().map(|(_, ended)| *ended);
        let last = self.minute(minute);
        last.ready = last.ready.max(stats.ready);
        // A purge sets the totals to zero.
        last.ended += before.map_or(0, |before| ended.saturating_sub(before));
        let died = self.last_dead.map_or(0, |before| stats.dead.saturating_sub(before));
        self.minute(minute).died += died;
        self.last_dead = Some(stats.dead);
        if before.is_some_and(|before| before > ended) {
            self.recent.clear();
        }
        self.recent.push_back((now, ended));
        while self.recent.front().is_some_and(|(at, _)| now - *at > RATE_OVER) {
            self.recent.pop_front();
        }
    }

    /// The present minute, behind those that have ended.
    fn minute(&mut self, at: u64) -> &mut Minute {
        if self.minutes.back().is_none_or(|last| last.at != at) {
            self.minutes.push_back(Minute { at, ..Minute::default() });
        }
        while self.minutes.front().is_some_and(|first| first.at + MINUTES <= at) {
            self.minutes.pop_front();
        }
        self.minutes.back_mut().expect("it was just added")
    }

    /// The last hour, oldest first; `None` for a minute without a sample.
    pub(crate) fn hour(&self) -> Vec<Option<Minute>> {
        let now = self.minutes.back().map_or(0, |last| last.at);
        let at = |ago: u64| {
            let at = now.checked_sub(ago)?;
            self.minutes.iter().find(|minute| minute.at == at).copied()
        };
        (0..MINUTES).rev().map(at).collect()
    }

    /// How many jobs ended in a second, over the last minute. `None` before the second
    /// sample.
    pub(crate) fn rate(&self) -> Option<f64> {
        let ((first, before), (last, after)) =
            (self.recent.front()?, self.recent.back()?);
        let seconds = (*last - *first).as_secs_f64();
        #[allow(clippy::cast_precision_loss, reason = "a rate is shown with one digit")]
        (seconds > 0.0).then(|| (after - before) as f64 / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(ready: u64, finished: u64, dead: u64) -> Stats {
        let mut stats = Stats::new();
        (stats.ready, stats.finished, stats.dead) = (ready, finished, dead);
        stats
    }

    fn minutes(history: &History) -> Vec<(u64, u64, u64)> {
        let known = history.hour().into_iter().flatten();
        known.map(|minute| (minute.ready, minute.ended, minute.died)).collect()
    }

    #[test]
    fn samples_add_up_in_minutes() {
        let (mut history, now) = (History::default(), Instant::now());
        let at = |seconds| now + Duration::from_secs(seconds);

        history.add(0, at(0), &stats(5, 100, 3));
        assert_eq!(history.rate(), None);
        history.add(0, at(10), &stats(9, 120, 4));
        history.add(1, at(70), &stats(2, 130, 1));

        assert_eq!(minutes(&history), [(9, 20, 1), (2, 10, 0)]);
        assert_eq!(history.rate(), Some(10.0 / 60.0));
    }

    #[test]
    fn a_purge_is_no_negative_rate() {
        let (mut history, now) = (History::default(), Instant::now());
        history.add(0, now, &stats(5, 100, 3));

        history.add(0, now + Duration::from_secs(5), &stats(0, 0, 0));

        assert_eq!(minutes(&history), [(5, 0, 0)]);
        assert_eq!(history.rate(), None);
    }

    #[test]
    fn an_hour_is_kept() {
        let (mut history, now) = (History::default(), Instant::now());
        for minute in [0, 1, 30, 60] {
            history.add(minute, now, &stats(minute, 0, 0));
        }

        assert_eq!(minutes(&history), [(1, 0, 0), (30, 0, 0), (60, 0, 0)]);
        assert_eq!(history.hour().len(), 60);
    }
}
