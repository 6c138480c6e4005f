//! Runs jobs and serves the metrics of their worker and their queue to Prometheus.
//!
//! ```sh
//! cargo run --features metrics,sqlite --example metrics_endpoint
//! curl http://127.0.0.1:9464/metrics
//! ```
//!
//! It ends at Ctrl-C. An argument names another store, such as redis://127.0.0.1/0.

use std::{error::Error, sync::Arc, time::Duration};

use axum::{Router, routing::get};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use relq::{
    NewJob, Queue, QueueName, ReliableQueueExt,
    metrics::{DURATION_BUCKETS, MetricsObserver, record_stats},
    worker::{Failure, JobContext, Worker},
};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).unwrap_or("sqlite::memory:".into());
    let name = QueueName::new("emails")?;
    let queue = relq::connect(&url, &name).await?;
    push_some(&*queue).await?;

    let metrics = install_recorder()?;
    let listener = TcpListener::bind("127.0.0.1:9464").await?;
    println!("http://{}/metrics", listener.local_addr()?);
    let server = tokio::spawn(serve(listener, metrics));
    let watch = tokio::spawn(watch(queue.clone(), name.clone()));
    let summary = Worker::new(queue)
        .observe(MetricsObserver::new(&name))
        .handle_signals()
        .run(send)
        .await?;
    println!("{summary:?}");
    watch.abort();
    server.abort();
    Ok(())
}

/// Makes a Prometheus recorder the recorder of this process. It must be installed before
/// the observer is created, or it receives no descriptions of the metrics.
pub(crate) fn install_recorder() -> Result<PrometheusHandle, Box<dyn Error>> {
    let times = Matcher::Suffix("_seconds".into());
    let builder =
        PrometheusBuilder::new().set_buckets_for_metric(times, &DURATION_BUCKETS)?;
    Ok(builder.install_recorder()?)
}

/// Serves the page that Prometheus reads, until an error of the listener.
pub(crate) async fn serve(
    listener: TcpListener,
    metrics: PrometheusHandle,
) -> std::io::Result<()> {
    let page = metrics.clone();
    let page = get(move || async move { page.render() });
    let served = axum::serve(listener, Router::new().route("/metrics", page));
    tokio::select! {
        served = served.into_future() => served,
        () = upkeep(metrics) => Ok(()),
    }
}

/// The recorder keeps every measured time until its page is read. Without this, its memory
/// would grow while Prometheus is down.
async fn upkeep(metrics: PrometheusHandle) {
    let mut every = tokio::time::interval(Duration::from_secs(5));
    loop {
        every.tick().await;
        metrics.run_upkeep();
    }
}

/// Records the stats of the queue, which belong to no worker. One process of an application
/// does this for each queue. While the store is unavailable, the gauges keep their values.
pub(crate) async fn watch(queue: Arc<dyn Queue>, name: QueueName) {
    let mut every = tokio::time::interval(Duration::from_secs(15));
    loop {
        every.tick().await;
        match queue.stats().await {
            Ok(stats) => record_stats(&name, &stats),
            Err(error) => eprintln!("{}", error.full_message()),
        }
    }
}

pub(crate) async fn push_some(queue: &dyn Queue) -> Result<(), Box<dyn Error>> {
    for address in ["anna@example.org", "berta@example.org", "nowhere"] {
        queue.push_one(NewJob::new(address).header("kind", "welcome")).await?;
    }
    Ok(())
}

pub(crate) async fn send(job: JobContext) -> Result<(), Failure> {
    let address = std::str::from_utf8(job.payload())?;
    if !address.contains('@') {
        return Err(Failure::dead(format!("{address:?} is not an address")));
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
    println!("to {address}");
    Ok(())
}
