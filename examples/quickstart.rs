//! Pushes three jobs, runs them, and ends when none is left.
//!
//! ```sh
//! cargo run --features sqlite --example quickstart         # a file, no server
//! cargo run --example quickstart -- redis://127.0.0.1/0    # Redis
//! ```

use std::{error::Error, sync::Arc, time::Duration};

use relq::{
    NewJob, Queue, QueueName, ReliableQueueExt,
    worker::{Failure, JobContext, Worker},
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).unwrap_or("sqlite:relq.db".into());
    let queue = relq::connect(&url, &QueueName::new("greetings")?).await?;
    println!("{} done", greet_all(queue).await?);
    Ok(())
}

/// Pushes the jobs and runs them. Returns how many are done.
pub(crate) async fn greet_all(queue: Arc<dyn Queue>) -> Result<u64, Box<dyn Error>> {
    for name in ["anna", "ben", "zoë"] {
        queue.push_one(NewJob::new(name)).await?;
    }

    // A worker in production runs until it is told to stop. This worker runs until the
    // queue is empty.
    let summary = Worker::new(queue.clone())
        .handle_signals()
        .run_until_empty(queue, Duration::MAX, greet)
        .await?;
    Ok(summary.done)
}

/// Handles one job. The worker acknowledges the job if this returns `Ok`, and retries
/// it after an error.
async fn greet(job: JobContext) -> Result<(), Failure> {
    println!("hello, {}", std::str::from_utf8(job.payload())?);
    Ok(())
}
