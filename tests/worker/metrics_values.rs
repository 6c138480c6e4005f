//! Tests that each event of a job changes the metric that is meant for it, by its value.

use std::{sync::Arc, time::Duration};

use metrics_exporter_prometheus::PrometheusHandle;
use relq::{
    NewJob, QueueName,
    metrics::MetricsObserver,
    worker::{Failure, JobContext, KIND_HEADER},
};

use crate::{
    clocks::PartingClock,
    faulty::{Fault, Faulty},
    fixture::{Fixture, LONG_LEASE, Running, worker_on},
    metrics::RECORDER,
};

/// How long the job is delayed, and how long its handler then runs. Each sum of a histogram
/// of durations can so be told from the others.
const DELAY: Duration = Duration::from_millis(400);
const RUN: Duration = Duration::from_millis(150);

/// The samples of one queue.
#[derive(Debug)]
struct Page(Vec<String>);

impl Page {
    fn of(recorder: &PrometheusHandle, queue: &str) -> Self {
        let label = format!("queue=\"{queue}\"");
        let page = recorder.render();
        let its = page.lines().filter(|line| line.contains(&label));
        Self(its.map(ToOwned::to_owned).collect())
    }

    /// The value of the only sample of this metric.
    fn value(&self, name: &str) -> f64 {
        let start = format!("{name}{{");
        let found = self.0.iter().filter(|line| line.starts_with(&start));
        let found: Vec<_> = found.collect();
        assert_eq!(found.len(), 1, "{name}: {:?}", self.0);
        found[0].rsplit(' ').next().unwrap().parse().unwrap()
    }

    /// The samples of this metric.
    fn samples(&self, name: &str) -> Vec<&str> {
        let start = format!("{name}{{");
        let found = self.0.iter().filter(|line| line.starts_with(&start));
        let mut found: Vec<_> = found.map(String::as_str).collect();
        found.sort_unstable();
        found
    }
}

/// A worker on the queue of the fixture, whose metrics have this name as their queue.
fn observed(fixture: &Fixture, name: &str) -> relq::worker::Worker {
    let name = QueueName::new(name).unwrap();
    fixture.worker().observe(MetricsObserver::new(&name))
}

/// The durations are in seconds, and each is in the histogram of its name: of a delayed job,
/// the time since its push is long, the time since its claim is short, and it runs for a
/// while.
pub(crate) async fn durations_are_in_their_histograms(fixture: Fixture) {
    let recorder = PrometheusHandle::clone(&RECORDER);
    fixture.push(NewJob::new("late").delay(DELAY)).await;

    let worker = Running::start(observed(&fixture, "timed"), async |_: JobContext| {
        tokio::time::sleep(RUN).await;
        Ok::<_, Failure>(())
    });
    worker.until(|summary| summary.done == 1).await;
    worker.stop().await;

    let page = Page::of(&recorder, "timed");
    let sum = |name: &str| page.value(&format!("relq_{name}_seconds_sum"));
    let (wait, latency, ran) =
        (sum("job_wait"), sum("job_latency"), sum("job_duration"));
    // The store notes the push, and the worker the start, in whole milliseconds. So the
    // difference may be up to 2 ms too short.
    let least = DELAY.as_secs_f64() - 0.002;
    assert!((least..20.0).contains(&latency), "{latency}");
    assert!((RUN.as_secs_f64()..20.0).contains(&ran), "{ran}");
    assert!((0.0..latency).contains(&wait), "{wait} of {latency}");
}

/// Each way in which a job ends has its value of the label `outcome`, and is counted once.
pub(crate) async fn each_end_is_counted_as_what_it_was(fixture: Fixture) {
    let recorder = PrometheusHandle::clone(&RECORDER);
    for kind in ["done", "dead", "discard", "postpone", "retry"] {
        fixture.push(NewJob::new(kind).header(KIND_HEADER, kind)).await;
    }

    let worker = Running::start(observed(&fixture, "ends"), async |job: JobContext| {
        let hour = Duration::from_hours(1);
        match job.kind().unwrap_or_default() {
            "dead" => Err(Failure::dead("hopeless")),
            "discard" => Err(Failure::discard("not wanted")),
            "postpone" => Err(Failure::postpone(hour, "not now")),
            "retry" => Err(Failure::retry_after(hour, "again")),
            _ => Ok(()),
        }
    });
    let ended = |summary: &relq::worker::Summary| {
        summary.done
            + summary.dead
            + summary.discarded
            + summary.postponed
            + summary.retried
    };
    worker.until(|summary| ended(summary) == 5).await;
    worker.stop().await;

    let page = Page::of(&recorder, "ends");
    let of = |kind: &str, outcome: &str| {
        format!(
            "relq_jobs_ended_total{{queue=\"ends\",kind=\"{kind}\",outcome=\"{outcome}\"}} 1"
        )
    };
    let expected = [
        of("dead", "buried"),
        of("discard", "discarded"),
        of("done", "done"),
        of("postpone", "postponed"),
        of("retry", "retried"),
    ];
    assert_eq!(page.samples("relq_jobs_ended_total"), expected);
    assert_eq!(page.value("relq_jobs_buried_total").to_bits(), 1.0_f64.to_bits());
    assert_eq!(page.value("relq_jobs_claimed_total").to_bits(), 5.0_f64.to_bits());
    assert_eq!(page.value("relq_jobs_recovered_total").to_bits(), 0.0_f64.to_bits());
    assert_eq!(page.value("relq_jobs_running").to_bits(), 0.0_f64.to_bits());
}

/// R6: a job that comes too late is given back before its start. It never ran, so it leaves the
/// gauge of the running jobs and the histogram of their durations as they are.
pub(crate) async fn unstarted_job_counts_as_none_that_ran(fixture: Fixture) {
    let recorder = PrometheusHandle::clone(&RECORDER);
    fixture.push("late at first").await;
    let clock = PartingClock::default();
    let moved = clock.clone();
    let slow = Faulty::new(fixture.queue.clone()).on_claim(move |call, _| {
        let moved = moved.clone();
        let past_lease = move || moved.advance(LONG_LEASE * 2);
        (call == 0).then(|| Fault::Overtaken(Arc::new(past_lease)))
    });

    let observer = MetricsObserver::new(&QueueName::new("unstarted").unwrap());
    let worker = worker_on(Arc::new(slow)).observe(observer);
    let worker = worker.environment(clock.environment());
    let worker = Running::start(worker, async |_: JobContext| Ok::<_, Failure>(()));
    worker.until(|summary| summary.done == 1).await;
    worker.stop().await;

    let page = Page::of(&recorder, "unstarted");
    let of = |outcome: &str| {
        format!("relq_jobs_ended_total{{queue=\"unstarted\",outcome=\"{outcome}\"}} 1")
    };
    let ended = page.samples("relq_jobs_ended_total");
    assert_eq!(ended, [of("done"), of("given_back")], "each delivery");
    for (name, expected) in
        [("relq_jobs_running", 0.0_f64), ("relq_job_duration_seconds_count", 1.0)]
    {
        assert_eq!(page.value(name).to_bits(), expected.to_bits(), "{name}: {page:?}");
    }
}

/// A job whose settlement has no reply, and whose lease is gone then, has ended as well.
pub(crate) async fn uncertain_job_has_ended(fixture: Fixture) {
    let recorder = PrometheusHandle::clone(&RECORDER);
    fixture.push("paid").await;
    let flaky = Faulty::new(fixture.queue.clone())
        .on_settle(|call, _| (call == 0).then_some(Fault::AnswerLost));

    let observer = MetricsObserver::new(&QueueName::new("uncertain").unwrap());
    let worker = worker_on(Arc::new(flaky)).observe(observer);
    let worker = Running::start(worker, async |_: JobContext| Ok::<_, Failure>(()));
    worker.until(|summary| summary.uncertain == 1).await;
    worker.stop().await;

    let page = Page::of(&recorder, "uncertain");
    let ended = page.samples("relq_jobs_ended_total");
    let expected = r#"relq_jobs_ended_total{queue="uncertain",outcome="uncertain"} 1"#;
    assert_eq!(ended, [expected]);
    assert_eq!(page.value("relq_jobs_running").to_bits(), 0.0_f64.to_bits());
}
