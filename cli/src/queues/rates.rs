//! How many jobs are pushed to a queue and end in a second, from two readings.

use relq::Stats;
use tokio::time::Instant;

/// How many jobs are pushed and end in a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rates {
    pub(super) pushed: f64,
    pub(super) ended: f64,
}

impl Rates {
    /// Computes the rates between two readings. `None` if the queue was purged in between,
    /// which resets its counters.
    pub(super) fn between(
        (first, began): (Stats, Instant),
        (second, ended): (Stats, Instant),
    ) -> Option<Self> {
        let seconds = ended.duration_since(began).as_secs_f64();
        let jobs_ended = all_ended(&second).checked_sub(all_ended(&first))?;
        let pushed = (stored(&second) + jobs_ended).saturating_sub(stored(&first));
        let a_second = |jobs: u64| {
            #[expect(clippy::cast_precision_loss, reason = "a rate need not be exact")]
            let jobs = jobs as f64;
            jobs / seconds
        };
        (seconds > 0.0)
            .then(|| Self { pushed: a_second(pushed), ended: a_second(jobs_ended) })
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn rates(first: [u64; 4], second: [u64; 4]) -> Option<(f64, f64)> {
        let stats = |[ready, dead, finished, cancelled]: [u64; 4]| {
            let mut stats = Stats::new();
            (stats.ready, stats.dead) = (ready, dead);
            (stats.finished, stats.cancelled) = (finished, cancelled);
            stats
        };
        let now = Instant::now();
        let later = now + Duration::from_secs(2);
        let rates = Rates::between((stats(first), now), (stats(second), later));
        rates.map(|rates| (rates.pushed, rates.ended))
    }

    #[test]
    fn jobs_that_came_and_went_are_counted() {
        let before = [10, 1, 5, 0];
        for (after, expected) in [
            ([10, 1, 5, 0], Some((0.0, 0.0))),
            ([14, 1, 5, 0], Some((2.0, 0.0))),
            ([6, 1, 9, 0], Some((0.0, 2.0))),
            ([10, 1, 8, 1], Some((2.0, 2.0))),
            // One died.
            ([9, 2, 5, 0], Some((0.0, 0.0))),
            // A dead one was purged.
            ([10, 0, 5, 0], Some((0.0, 0.0))),
            // The queue was purged.
            ([3, 0, 0, 0], None),
        ] {
            assert_eq!(rates(before, after), expected, "{after:?}");
        }
    }
}
