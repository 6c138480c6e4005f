//! Tests that the metrics of a worker are those that `queue-metrics/README.md` documents.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use relq::{
    ClaimRequest, NewJob, QueueName, WorkerId,
    metrics::{DURATION_BUCKETS, MetricsObserver, record_stats},
    worker::{Failure, JobContext, KIND_HEADER},
};

use crate::{
    faulty::{Fault, Faulty},
    fixture::{Fixture, Running, eventually, queue_name},
    leases::BeatenTime,
};

/// The recorder of the process, which all tests share. Each uses a queue's name of its own.
pub(crate) static RECORDER: LazyLock<PrometheusHandle> = LazyLock::new(|| {
    let builder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Prefix("relq_".into()), &DURATION_BUCKETS);
    builder.unwrap().install_recorder().unwrap()
});

const README: &str = include_str!("../../queue-metrics/README.md");

/// The type and the labels of each metric, by its name.
type Metrics = BTreeMap<String, (String, BTreeSet<String>)>;

/// Reads the table of the documentation: a name, a type and labels in each line.
fn documented() -> Metrics {
    let lines = README.lines().filter(|line| line.starts_with("| `relq_"));
    lines
        .map(|line| {
            let cells: Vec<_> = line.split('|').map(str::trim).collect();
            let labels = cells[3].split(", ").map(|label| label.trim_matches('`'));
            let labels = labels.map(ToOwned::to_owned).collect();
            (cells[1].trim_matches('`').to_owned(), (cells[2].to_owned(), labels))
        })
        .collect()
}

/// The values of a label that the documentation lists.
fn documented_values(label: &str) -> Vec<&'static str> {
    let (_, list) = README.split_once(&format!("\n* `{label}` is ")).unwrap();
    let (values, _) = list.split_once("\n* ").unwrap();
    values.split('`').skip(1).step_by(2).collect()
}

/// Reads the types and the labels from a page for Prometheus.
fn emitted(page: &str) -> Metrics {
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types
        .map(|line| {
            let (name, kind) = line.split_once(' ').unwrap();
            let samples = page.lines().filter(|line| line.starts_with(name));
            let labels = samples.flat_map(labels_of).filter(|label| label != "le");
            (name.to_owned(), (kind.to_owned(), labels.collect()))
        })
        .collect()
}

fn labels_of(sample: &str) -> Vec<String> {
    let labels = sample.split_once('{').map(|(_, labels)| labels);
    let labels = labels.and_then(|labels| labels.split_once('}'));
    let pairs = labels.map_or("", |(labels, _)| labels).split(',');
    pairs.filter_map(|pair| Some(pair.split_once('=')?.0.to_owned())).collect()
}

/// Pushes two jobs and claims them as a worker that dies: one has a further attempt.
async fn leave_jobs_of_a_dead_worker(fixture: &Fixture) {
    for attempts in [1, 2] {
        let job = NewJob::new("left").max_attempts(attempts.try_into().unwrap());
        fixture.push(job).await;
    }
    let dead = WorkerId::new("dead").unwrap();
    let ask = ClaimRequest::new(dead, Duration::from_millis(1));
    let ask = ask.max(2.try_into().unwrap());
    assert_eq!(fixture.queue.claim(&ask).await.unwrap().len(), 2);
}

/// Creates a handler whose first run of the job `contended` ends when its lease is lost.
fn contended() -> impl relq::worker::Handler {
    let is_lost = Arc::new(AtomicBool::new(false));
    move |job: JobContext| {
        let is_first = job.payload() == "contended" && !is_lost.swap(true, SeqCst);
        async move {
            if is_first {
                job.cancelled().await;
            }
            Ok::<_, Failure>(())
        }
    }
}

/// Exactly the documented metrics are emitted, with the documented types and labels,
/// and their values match the outcomes of the jobs.
pub(crate) async fn metrics_are_those_that_are_documented(fixture: Fixture) {
    LazyLock::force(&RECORDER);
    leave_jobs_of_a_dead_worker(&fixture).await;
    let id = WorkerId::new("loser").unwrap();

    let flaky = Faulty::new(fixture.queue.clone())
        .on_claim(|call, _| (call == 0).then_some(Fault::Unavailable));
    let time = BeatenTime::default();
    let worker = time
        .worker_on(Arc::new(flaky))
        // With one slot, no claim is under way while the clock moves. It would fail.
        .concurrency(NonZeroU32::MIN)
        .worker_id(id.clone())
        .observe(MetricsObserver::new(&queue_name()));
    let worker = Running::start(worker, contended());
    worker.until(|summary| summary.done == 1).await;
    fixture.push(NewJob::new("contended").header(KIND_HEADER, "resize")).await;
    worker.until_running(1).await;
    fixture.queue.release_worker(&id).await.unwrap();
    time.pass_to_next_beat();
    worker.until(|summary| (summary.lost, summary.done) == (1, 2)).await;
    fixture.until(|stats| stats.dead == 1).await;
    worker.stop().await;
    fixture.push("waiting").await;
    record_stats(&queue_name(), &fixture.stats().await);

    let page = RECORDER.render();
    assert_eq!(emitted(&page), documented(), "{page}");
    let expected = [
        r#"relq_jobs_claimed_total{queue="work"} 3"#,
        r#"relq_jobs_running{queue="work"} 0"#,
        r#"relq_jobs_buried_total{queue="work"} 1"#,
        r#"relq_jobs_recovered_total{queue="work"} 1"#,
        r#"relq_leases_lost_total{queue="work"} 1"#,
        r#"relq_calls_failed_total{queue="work",operation="claim"} 1"#,
        r#"relq_jobs_ended_total{queue="work",kind="resize",outcome="lost"} 1"#,
        r#"relq_jobs_ended_total{queue="work",kind="resize",outcome="done"} 1"#,
        r#"relq_jobs_ended_total{queue="work",outcome="done"} 1"#,
        r#"relq_job_duration_seconds_count{queue="work",kind="resize"} 2"#,
        r#"relq_job_wait_seconds_count{queue="work"} 3"#,
        // The first attempt of the contended job was given back, so it is not counted.
        r#"relq_job_latency_seconds_count{queue="work"} 2"#,
        r#"relq_jobs_ready{queue="work"} 1"#,
        r#"relq_jobs_dead{queue="work"} 1"#,
    ];
    for line in expected {
        assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
    }
}

/// A worker whose future is dropped tells no end of its jobs. The gauge must not count them
/// for ever.
pub(crate) async fn jobs_of_a_dropped_worker_leave_the_gauge(fixture: Fixture) {
    LazyLock::force(&RECORDER);
    let is_running = |jobs: u32| {
        let line = format!("relq_jobs_running{{queue=\"dropped\"}} {jobs}");
        RECORDER.render().lines().any(|found| found == line)
    };
    fixture.push("endless").await;

    let observer = MetricsObserver::new(&QueueName::new("dropped").unwrap());
    let worker = Running::start(fixture.worker().observe(observer), never_ends);
    eventually(|| is_running(1)).await;
    worker.drop_future().await;

    eventually(|| is_running(0)).await;
}

async fn never_ends(_: JobContext) -> Result<(), Failure> {
    std::future::pending().await
}

/// The counters without a label for the job exist before their first event, so that an
/// alert sees the first one.
#[test]
fn counters_begin_at_zero() {
    LazyLock::force(&RECORDER);
    let observer = MetricsObserver::new(&QueueName::new("unused").unwrap());

    let page = RECORDER.render();
    let is_its = |line: &&str| line.contains("queue=\"unused\"");
    for name in [
        "relq_jobs_claimed_total",
        "relq_jobs_buried_total",
        "relq_jobs_recovered_total",
        "relq_leases_lost_total",
        "relq_calls_failed_total",
    ] {
        let start = format!("{name}{{");
        let lines = page.lines().filter(is_its).filter(|line| line.starts_with(&start));
        let values: BTreeSet<_> =
            lines.filter_map(|line| line.rsplit(' ').next()).collect();
        assert_eq!(values, BTreeSet::from(["0"]), "{name} in\n{page}");
    }
    let operations = documented_values("operation");
    assert!(operations.contains(&"claim"), "{operations:?}");
    for operation in operations {
        let label = format!("operation=\"{operation}\"");
        let is_there = page.lines().filter(is_its).any(|line| line.contains(&label));
        assert!(is_there, "{operation} in\n{page}");
    }
    drop(observer);
}

/// Without the label for the kind, no metric has it.
pub(crate) async fn kinds_can_be_left_out(fixture: Fixture) {
    LazyLock::force(&RECORDER);
    fixture.push(NewJob::new("job").header(KIND_HEADER, "resize")).await;

    let observer = MetricsObserver::new(&QueueName::new("kindless").unwrap());
    let worker = fixture.worker().observe(observer.without_kinds());
    let worker = Running::start(worker, async |_: JobContext| Ok::<_, Failure>(()));
    worker.until(|summary| summary.done == 1).await;
    worker.stop().await;

    let page = RECORDER.render();
    let its: Vec<_> =
        page.lines().filter(|line| line.contains("queue=\"kindless\"")).collect();
    assert!(its.iter().any(|line| line.contains("outcome=\"done\"")), "{its:?}");
    assert!(its.iter().all(|line| !line.contains("kind=")), "{its:?}");
}
