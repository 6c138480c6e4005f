//! The result of one run of a workload, and the medians of several runs.

use std::time::Duration;

use serde::Serialize;

use crate::{spent::Spent, workload::Workload};

/// The result of one run of a workload.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sample {
    pub(crate) jobs: u64,
    pub(crate) took: Duration,
    /// The delivery time of each job. Empty if the workload does not measure it.
    pub(crate) latencies: Vec<Duration>,
    /// The resources that the server spent on the run. `None` without a server.
    pub(crate) spent: Option<Spent>,
    /// Whether each job was handled once and none was missing; `None` if the workload
    /// handles no jobs.
    pub(crate) exact: Option<bool>,
}

impl Sample {
    fn rate(&self) -> f64 {
        count(self.jobs) / self.took.as_secs_f64().max(1e-9)
    }

    fn percentile_us(&self, of_100: usize) -> Option<f64> {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        let last = sorted.len().checked_sub(1)?;
        Some(sorted[last * of_100 / 100].as_secs_f64() * 1e6)
    }

    /// Returns the median latency of this run divided by the median latency of `raw`.
    fn median_of(&self, raw: &Self) -> Option<f64> {
        Some(self.percentile_us(50)? / raw.percentile_us(50)?)
    }

    fn per_job(&self, figure: impl Fn(&Spent) -> f64) -> Option<f64> {
        self.spent.as_ref().map(|spent| figure(spent) / count(self.jobs.max(1)))
    }
}

/// The figures in one line of the tables: the medians over all repetitions.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Figures {
    pub(crate) backend: String,
    pub(crate) workload: String,
    pub(crate) durability: String,
    pub(crate) jobs_per_s: Option<f64>,
    /// The jobs per second of the slowest and of the fastest repetition.
    pub(crate) jobs_per_s_spread: Option<(f64, f64)>,
    /// The result divided by the result of the store without relq: the median over the
    /// repetitions. For `W5`, the median time divided by the median time of that store.
    pub(crate) of_raw: Option<f64>,
    pub(crate) p50_us: Option<f64>,
    pub(crate) p99_us: Option<f64>,
    pub(crate) commands_per_job: Option<f64>,
    pub(crate) round_trips_per_job: Option<f64>,
    pub(crate) bytes_per_job: Option<f64>,
    pub(crate) redis_cpu_us_per_job: Option<f64>,
    pub(crate) memory_bytes_per_job: Option<f64>,
    pub(crate) exact: Option<bool>,
}

impl Figures {
    /// Computes the figures of a workload on a backend from the samples of all
    /// repetitions. `raw` holds the samples of the store without relq.
    pub(crate) fn of(
        backend: &str,
        workload: Workload,
        durability: &str,
        samples: &[Sample],
        raw: &[Sample],
    ) -> Self {
        let all = |figure: &dyn Fn(&Sample) -> Option<f64>| {
            median(samples.iter().filter_map(figure).collect())
        };
        let is_timed = workload == Workload::HandOver;
        let rates: Vec<_> = samples.iter().map(Sample::rate).collect();
        let pairs = samples.iter().zip(raw);
        let ratios = if is_timed {
            pairs.filter_map(|(sample, raw)| sample.median_of(raw)).collect()
        } else {
            pairs.map(|(sample, raw)| sample.rate() / raw.rate()).collect()
        };
        let spread = spread(&rates);
        let exact: Option<Vec<_>> = samples.iter().map(|sample| sample.exact).collect();
        Self {
            backend: backend.to_owned(),
            workload: workload.name().to_owned(),
            durability: durability.to_owned(),
            jobs_per_s: median(rates).filter(|_| !is_timed),
            jobs_per_s_spread: spread.filter(|_| !is_timed),
            of_raw: median(ratios),
            p50_us: all(&|sample| sample.percentile_us(50)),
            p99_us: all(&|sample| sample.percentile_us(99)),
            commands_per_job: all(&|one| one.per_job(|spent| count(spent.commands))),
            round_trips_per_job: all(&|one| one.per_job(|spent| count(spent.reads))),
            bytes_per_job: all(&|one| one.per_job(|spent| count(spent.bytes))),
            redis_cpu_us_per_job: all(&|one| one.per_job(|spent| spent.cpu_us)),
            memory_bytes_per_job: all(&|one| match workload {
                Workload::PushBatches => one.per_job(|spent| spent.memory),
                _ => None,
            }),
            exact: exact.map(|all| all.into_iter().all(|is_exact| is_exact)),
        }
    }
}

/// Returns the smallest and the largest of some figures.
fn spread(figures: &[f64]) -> Option<(f64, f64)> {
    let least = figures.iter().copied().reduce(f64::min);
    least.zip(figures.iter().copied().reduce(f64::max))
}

/// Returns the median: the middle figure, or the mean of the two in the middle.
pub(crate) fn median(mut figures: Vec<f64>) -> Option<f64> {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match figures.len() {
        0 => None,
        even if even.is_multiple_of(2) => {
            Some(f64::midpoint(figures[middle - 1], figures[middle]))
        }
        _ => Some(figures[middle]),
    }
}

/// Converts a count to a floating-point number.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub(crate) fn count(of: u64) -> f64 {
    of as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(jobs: u64, seconds: u64) -> Sample {
        Sample { jobs, took: Duration::from_secs(seconds), ..Sample::default() }
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
    }

    #[test]
    fn ratios_are_taken_within_each_repetition() {
        let samples = [sample(100, 1), sample(10, 1), sample(30, 1)];
        let raw = [sample(200, 1), sample(10, 1), sample(30, 2)];

        let figures = Figures::of("zset", Workload::PushOne, "none", &samples, &raw);

        assert_eq!(figures.jobs_per_s, Some(30.0));
        assert_eq!(figures.jobs_per_s_spread, Some((10.0, 100.0)));
        assert_eq!(figures.of_raw, Some(1.0));
        assert_eq!((figures.p50_us, figures.exact), (None, None));
    }
}
