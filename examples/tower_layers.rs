//! Runs jobs through three layers of tower: a rate limit, a concurrency limit and a
//! time-out.
//!
//! ```sh
//! cargo run --features sqlite,tower --example tower_layers
//! ```
//!
//! An argument names another store, such as redis://127.0.0.1/0.

use std::{error::Error, time::Duration};

use relq::{
    NewJob, Queue, QueueName, ReliableQueueExt,
    worker::{Failure, Handler, JobContext, SharedService, Worker, layered},
};
use tower::ServiceBuilder;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).unwrap_or("sqlite::memory:".into());
    let queue = relq::connect(&url, &QueueName::new("emails")?).await?;
    push_some(&*queue).await?;

    let summary = Worker::new(queue.clone())
        .handle_signals()
        .run_until_empty(queue, Duration::MAX, with_layers(send))
        .await?;
    println!("{summary:?}");
    Ok(())
}

/// Puts the layers around a handler. The first layer is the outermost. The worker claims a
/// job only when both limits allow it.
pub(crate) fn with_layers(handler: impl Handler) -> impl Handler {
    layered(handler, |service| {
        ServiceBuilder::new()
            .layer_fn(SharedService::new) // the rate limit is not `Clone`
            .rate_limit(100, Duration::from_secs(1))
            .concurrency_limit(4)
            .timeout(Duration::from_millis(200))
            .service(service)
    })
}

pub(crate) async fn push_some(queue: &dyn Queue) -> Result<(), Box<dyn Error>> {
    for address in ["anna@example.org", "berta@example.org", "slow@example.org"] {
        let job = NewJob::new(address).max_attempts(2.try_into()?);
        queue.push_one(job).await?;
    }
    Ok(())
}

/// Sends an email. The first attempt for the address "slow" never ends, so the time-out
/// fails it.
pub(crate) async fn send(job: JobContext) -> Result<(), Failure> {
    let address = std::str::from_utf8(job.payload())?;
    if address.starts_with("slow") && !job.is_redelivery() {
        std::future::pending::<()>().await;
    }
    println!("to {address}, attempt {}", job.attempt());
    Ok(())
}
