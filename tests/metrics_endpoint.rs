//! Runs the code of the example `metrics_endpoint`, and reads its page over HTTP.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../examples/metrics_endpoint.rs"]
#[allow(dead_code, reason = "the test has a main function of its own")]
mod example;

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use relq::{
    QueueName,
    metrics::{DURATION_BUCKETS, MetricsObserver},
    worker::Worker,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// The time limit of the test.
const LIMIT: Duration = Duration::from_secs(20);

/// Reads the page as Prometheus does. Returns its lines.
async fn scrape(server: SocketAddr) -> Vec<String> {
    let mut connection = TcpStream::connect(server).await.unwrap();
    let request = "GET /metrics HTTP/1.1\r\nHost: relq\r\nConnection: close\r\n\r\n";
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut reply = String::new();
    connection.read_to_string(&mut reply).await.unwrap();
    assert!(reply.starts_with("HTTP/1.1 200 OK\r\n"), "{reply}");
    reply.lines().map(ToOwned::to_owned).collect()
}

/// Returns the value of a metric with these labels, in any order.
fn value(page: &[String], name: &str, labels: &[&str]) -> Option<f64> {
    let is_it = |line: &&String| {
        let (metric, _) = line.rsplit_once(' ').unwrap_or_default();
        let Some((found, all)) = metric.split_once('{') else { return false };
        let all: Vec<_> = all.trim_end_matches('}').split(',').collect();
        found == name
            && all.len() == labels.len()
            && labels.iter().all(|label| all.contains(label))
    };
    let line = page.iter().find(is_it)?;
    line.rsplit_once(' ').unwrap().1.parse().ok()
}

/// Reads the page until a metric of the queue has this value. Returns its lines.
async fn page_with(server: SocketAddr, name: &str, wanted: f64) -> Vec<String> {
    let start = Instant::now();
    loop {
        let page = scrape(server).await;
        if value(&page, name, &[r#"queue="emails""#]) == Some(wanted) {
            return page;
        }
        assert!(start.elapsed() < LIMIT, "{name} is not {wanted}: {page:#?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn page_has_the_numbers_of_the_jobs() {
    let name = QueueName::new("emails").unwrap();
    let queue = relq::connect("sqlite::memory:", &name).await.unwrap();
    let handle = example::install_recorder().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(example::serve(listener, handle));

    example::push_some(&*queue).await.unwrap();
    let watch = tokio::spawn(example::watch(queue.clone(), name.clone()));
    let waiting = page_with(address, "relq_jobs_ready", 3.0).await;
    watch.abort();
    Worker::new(queue.clone())
        .observe(MetricsObserver::new(&name))
        .run_until_empty(queue, Duration::MAX, example::send)
        .await
        .unwrap();
    let page = scrape(address).await;
    server.abort();

    let (queue, kind) = (r#"queue="emails""#, r#"kind="welcome""#);
    let of = |name: &str, labels: &[&str]| value(&page, name, labels);
    let outcome = |outcome| of("relq_jobs_ended_total", &[queue, kind, outcome]);
    assert_eq!(of("relq_jobs_claimed_total", &[queue]), Some(3.0), "{page:#?}");
    assert_eq!(outcome(r#"outcome="done""#), Some(2.0));
    assert_eq!(outcome(r#"outcome="buried""#), Some(1.0));
    assert_eq!(of("relq_jobs_buried_total", &[queue]), Some(1.0));
    assert_eq!(of("relq_jobs_running", &[queue]), Some(0.0));
    assert_eq!(of("relq_job_latency_seconds_count", &[queue]), Some(3.0));
    let age = value(&waiting, "relq_oldest_ready_age_seconds", &[queue]).unwrap();
    assert!((0.0..LIMIT.as_secs_f64()).contains(&age), "{age}");
    let duration = |suffix: &str, labels: &[&str]| {
        of(&format!("relq_job_duration_seconds_{suffix}"), labels)
    };
    assert_eq!(duration("count", &[queue, kind]), Some(3.0));
    assert!(duration("sum", &[queue, kind]).unwrap() >= 0.04);
    for bound in DURATION_BUCKETS {
        let jobs = duration("bucket", &[queue, kind, &format!("le=\"{bound}\"")]);
        // Two of the three jobs take 20 ms.
        let most = if bound < 0.02 { 1.0 } else { 3.0 };
        assert!((0.0..=most).contains(&jobs.unwrap()), "{bound}: {jobs:?}");
    }
    let help = "# HELP relq_job_duration_seconds How long an attempt ran.";
    assert!(page.iter().any(|line| line == help), "{page:#?}");
}
