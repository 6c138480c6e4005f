//! A web service with its worker in one process: an endpoint that enqueues a job, a page
//! of metrics, and one signal that stops both in good order.
//!
//! ```sh
//! cargo run --features json,metrics,sqlite --example axum_service
//! curl -H 'content-type: application/json' -d '{"to":"anna@example.org"}' \
//!   http://127.0.0.1:8080/emails
//! curl http://127.0.0.1:8080/metrics
//! ```
//!
//! It ends at Ctrl-C or SIGTERM. An argument names another store, such as
//! redis://127.0.0.1/0.

use std::{error::Error, io, sync::Arc};

use axum::{
    Json,
    extract::State,
    http::StatusCode,
    routing::{get, post},
};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use relq::{
    Queue, QueueName,
    metrics::{DURATION_BUCKETS, MetricsObserver},
    outcome::Pushed,
    worker::{
        CancellationToken, Enqueue, Failure, Job, JobContext, Router, Summary, Worker,
    },
};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SendEmail {
    pub(crate) to: String,
}

impl Job for SendEmail {
    const KIND: &'static str = "send-email";
}

/// The state that the endpoints share.
#[derive(Clone)]
struct App {
    queue: Arc<dyn Queue>,
    metrics: PrometheusHandle,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).unwrap_or("sqlite:relq.db".into());
    let name = QueueName::new("emails")?;
    let queue = relq::connect(&url, &name).await?;
    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    println!("http://{}/emails", listener.local_addr()?);
    let summary = run(listener, queue, &name).await?;
    println!("{summary:?}");
    Ok(())
}

/// Serves requests and runs jobs until a signal, or until one of the two fails.
///
/// After the signal the service accepts no more requests and claims no more jobs. It
/// finishes those that have begun: jobs get the grace time of the worker.
pub(crate) async fn run(
    listener: TcpListener,
    queue: Arc<dyn Queue>,
    name: &QueueName,
) -> Result<Summary, Box<dyn Error>> {
    let app = App { queue: queue.clone(), metrics: install_recorder()? };
    let stop = CancellationToken::new();
    let server = axum::serve(listener, endpoints(app))
        .with_graceful_shutdown(stop.clone().cancelled_owned());
    let worker = Worker::new(queue)
        .observe(MetricsObserver::new(name))
        .stop_on(stop.clone().cancelled_owned())
        .run(Router::new().job(send));
    let (signal, served, summary) = tokio::join!(
        stopping(&stop, until_signal(&stop)),
        stopping(&stop, server.into_future()),
        stopping(&stop, worker),
    );
    signal?;
    served?;
    Ok(summary?)
}

/// Stops the whole service when one of its parts ends.
async fn stopping<T>(stop: &CancellationToken, part: impl Future<Output = T>) -> T {
    let ended = part.await;
    stop.cancel();
    ended
}

async fn until_signal(stop: &CancellationToken) -> io::Result<()> {
    tokio::select! {
        signal = tokio::signal::ctrl_c() => signal,
        signal = terminate() => signal,
        () = stop.cancelled() => Ok(()),
    }
}

#[cfg(unix)]
async fn terminate() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    signal(SignalKind::terminate())?.recv().await;
    Ok(())
}

#[cfg(not(unix))]
async fn terminate() -> io::Result<()> {
    std::future::pending().await
}

fn endpoints(app: App) -> axum::Router {
    axum::Router::new()
        .route("/emails", post(enqueue))
        .route("/metrics", get(async |State(app): State<App>| app.metrics.render()))
        .with_state(app)
}

/// Responds with the id of the job when the job is stored, so the email is sent even if
/// this process ends now. An error means that the job may not be stored.
async fn enqueue(
    State(app): State<App>,
    Json(email): Json<SendEmail>,
) -> (StatusCode, String) {
    match app.queue.enqueue(&email).await {
        Ok(Pushed::Stored(id)) => (StatusCode::ACCEPTED, id.to_string()),
        Ok(Pushed::Duplicate { existing, .. }) => {
            (StatusCode::OK, existing.to_string())
        }
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error.to_string()),
    }
}

async fn send(email: SendEmail, job: JobContext) -> Result<(), Failure> {
    if !email.to.contains('@') {
        return Err(Failure::dead(format!("{:?} is not an address", email.to)));
    }
    println!("to {}, attempt {}", email.to, job.attempt());
    Ok(())
}

/// Makes a Prometheus recorder the recorder of this process, before the observer is
/// created. The example `metrics_endpoint` also bounds the memory of the recorder.
fn install_recorder() -> Result<PrometheusHandle, Box<dyn Error>> {
    let times = Matcher::Suffix("_seconds".into());
    let builder =
        PrometheusBuilder::new().set_buckets_for_metric(times, &DURATION_BUCKETS)?;
    Ok(builder.install_recorder()?)
}
