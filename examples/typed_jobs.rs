//! Runs jobs of an application type, with retries. It shows a mail server that is busy
//! at first, an address that is never valid, and a payload that cannot be decoded.
//!
//! ```sh
//! cargo run --features json,sqlite --example typed_jobs
//! cargo run --features json,sqlite --example typed_jobs -- redis://127.0.0.1/0
//! ```

use std::{error::Error, num::NonZeroU16, time::Duration};

use relq::{
    NewJob, Queue, QueueName, ReliableQueueExt,
    operator::{JobState, PeekRequest},
    worker::{Failure, JobContext, RetryPolicy, Worker, json, json_job},
};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Email {
    to: String,
    subject: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).unwrap_or("sqlite::memory:".into());
    let queue = relq::connect(&url, &QueueName::new("emails")?).await?;
    push_some(&*queue).await?;

    let retry =
        RetryPolicy::exponential(Duration::from_millis(100), Duration::from_secs(60))?;
    let summary = Worker::new(queue.clone())
        .timeout(Duration::from_secs(10))
        .retry(retry)
        .handle_signals()
        .run_until_empty(queue.clone(), Duration::MAX, json(send))
        .await?;
    println!("{summary:?}");
    print_dead(&*queue).await
}

async fn push_some(queue: &dyn Queue) -> Result<(), Box<dyn Error>> {
    let email = |to: &str| Email { to: to.into(), subject: "welcome".into() };
    queue.push_one(json_job(&email("anna@example.org"))?).await?;
    queue.push_one(json_job(&email("nowhere"))?).await?;
    let unreadable = NewJob::new("{\"to\":7}").max_attempts(NonZeroU16::MIN);
    queue.push_one(unreadable).await?;
    Ok(())
}

/// Sends an email. The worker retries after any error, unless it is a `Failure` that
/// says otherwise.
async fn send(email: Email, job: JobContext) -> Result<(), Failure> {
    if !email.to.contains('@') {
        return Err(Failure::dead(format!("{:?} is no address", email.to)));
    }
    if job.attempt() < 3 {
        println!("attempt {}: the server is busy", job.attempt());
        return Err("the server is busy".into());
    }
    println!("attempt {}: {:?} to {}", job.attempt(), email.subject, email.to);
    Ok(())
}

async fn print_dead(queue: &dyn Queue) -> Result<(), Box<dyn Error>> {
    let ask = PeekRequest::new(JobState::Dead, 10.try_into()?);
    for job in queue.peek(&ask).await?.jobs {
        let payload = String::from_utf8_lossy(&job.payload);
        println!("dead: {payload}: {}", job.last_error.unwrap_or_default());
    }
    Ok(())
}
