//! Records the stats of a queue as gauges.

use metrics::{Label, SharedString, Unit, describe_gauge, gauge};
use relq_core::{QueueName, Stats};

const READY: &str = "relq_jobs_ready";
const SCHEDULED: &str = "relq_jobs_scheduled";
const LEASED: &str = "relq_jobs_leased";
const OVERDUE: &str = "relq_jobs_overdue";
const DEAD: &str = "relq_jobs_dead";
const OLDEST: &str = "relq_oldest_ready_age_seconds";

/// Records the stats of the queue of this name, which is the label `queue`, as gauges.
///
/// The numbers belong to the queue and not to a worker, so one process of an application
/// records them, at an interval such as 15 seconds:
///
/// ```
/// use relq_core::{Error, Operator, QueueName};
/// use relq_metrics::record_stats;
///
/// async fn look_at(queue: &dyn Operator, name: &QueueName) -> Result<(), Error> {
///     record_stats(name, &queue.stats().await?);
///     Ok(())
/// }
/// ```
pub fn record_stats(queue: &QueueName, stats: &Stats) {
    describe();
    let queue = SharedString::from_shared(queue.as_str().into());
    let set = |name: &'static str, value: f64| {
        gauge!(name, vec![Label::new("queue", queue.clone())]).set(value);
    };
    let numbers = [
        (READY, stats.ready),
        (SCHEDULED, stats.scheduled),
        (LEASED, stats.leased),
        (OVERDUE, stats.overdue),
        (DEAD, stats.dead),
    ];
    for (name, jobs) in numbers {
        #[allow(clippy::cast_precision_loss, reason = "no queue has 2^53 jobs")]
        set(name, jobs as f64);
    }
    set(OLDEST, oldest_age(stats));
}

/// The value of the gauge. A recorder cannot remove a gauge, and an age of zero would hide
/// that jobs wait, so an age that is not known is not a number.
fn oldest_age(stats: &Stats) -> f64 {
    match (stats.oldest_ready_age, stats.ready) {
        (Some(age), _) => age.as_secs_f64(),
        (None, 0) => 0.0,
        (None, _) => f64::NAN,
    }
}

fn describe() {
    let gauges = [
        (READY, "Jobs that a worker could claim now."),
        (SCHEDULED, "Jobs that wait for their time, or for the job that they follow."),
        (LEASED, "Jobs that a worker holds."),
        (
            OVERDUE,
            "Leased jobs whose lease has expired and that are not recovered yet.",
        ),
        (DEAD, "Dead letters."),
    ];
    for (name, meaning) in gauges {
        describe_gauge!(name, Unit::Count, meaning);
    }
    let oldest = "How long the oldest ready job has been waiting for a worker.";
    describe_gauge!(OLDEST, Unit::Seconds, oldest);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use metrics_exporter_prometheus::PrometheusBuilder;

    use super::*;

    /// Each number of the stats is the value of its own gauge.
    #[test]
    fn each_number_has_its_gauge() {
        let mut stats = Stats::new();
        (stats.ready, stats.scheduled, stats.leased) = (1, 2, 3);
        (stats.overdue, stats.dead) = (4, 5);
        (stats.finished, stats.discarded, stats.cancelled) = (6, 7, 8);
        stats.next_due_in = Some(Duration::from_secs(9));
        stats.oldest_ready_age = Some(Duration::from_secs(10));
        let recorder = PrometheusBuilder::new().build_recorder();
        let mail = QueueName::new("mail").unwrap();

        metrics::with_local_recorder(&recorder, || record_stats(&mail, &stats));

        let page = recorder.handle().render();
        let samples = page.lines().filter(|it| !it.is_empty() && !it.starts_with('#'));
        let mut samples: Vec<_> = samples.collect();
        samples.sort_unstable();
        let expected = [
            r#"relq_jobs_dead{queue="mail"} 5"#,
            r#"relq_jobs_leased{queue="mail"} 3"#,
            r#"relq_jobs_overdue{queue="mail"} 4"#,
            r#"relq_jobs_ready{queue="mail"} 1"#,
            r#"relq_jobs_scheduled{queue="mail"} 2"#,
            r#"relq_oldest_ready_age_seconds{queue="mail"} 10"#,
        ];
        assert_eq!(samples, expected);
    }

    fn age(ready: u64, oldest_ready_age: Option<Duration>) -> f64 {
        let mut stats = Stats::new();
        (stats.ready, stats.oldest_ready_age) = (ready, oldest_ready_age);
        oldest_age(&stats)
    }

    /// An alert on the age must not take jobs of an unknown age for new ones.
    #[test]
    fn an_unknown_age_is_not_a_number() {
        assert_eq!(age(0, None).to_bits(), 0.0_f64.to_bits());
        assert_eq!(
            age(2, Some(Duration::from_millis(1500))).to_bits(),
            1.5_f64.to_bits()
        );
        assert!(age(2, None).is_nan());
    }
}
