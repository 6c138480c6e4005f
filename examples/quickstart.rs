//! Pushes three jobs, works them, and ends when none is left.
//!
//! ```sh
//! cargo run --example quickstart                           # a file, no server
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

    for name in ["anna", "ben", "zoë"] {
        queue.push_one(NewJob::new(name)).await?;
    }

    let summary = Worker::new(queue.clone())
        .concurrency(2)
        .handle_signals()
        .stop_on(until_empty(queue))
        .run(greet)
        .await?;
    println!("{} done", summary.done);
    Ok(())
}

/// Works on one job: `Ok` acknowledges it, an error has it tried again.
async fn greet(job: JobContext) -> Result<(), Failure> {
    println!("hello, {}", std::str::from_utf8(job.payload())?);
    Ok(())
}

/// A real worker runs until it is told to stop; this one until there is no work.
async fn until_empty(queue: Arc<dyn Queue>) {
    while queue.stats().await.is_ok_and(|stats| stats.unfinished() > 0) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
