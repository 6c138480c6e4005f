//! Runs jobs of one kind, with retries. It shows a mail server that is busy at first, an
//! address that is never valid, and a payload that cannot be decoded.
//!
//! ```sh
//! cargo run --features json,sqlite --example typed_jobs
//! cargo run --features json,sqlite --example typed_jobs -- redis://127.0.0.1/0
//! ```

use std::{error::Error, num::NonZeroU16, sync::Arc, time::Duration};

use relq::{
    NewJob, Queue, QueueName, ReliableQueueExt,
    operator::{JobState, PeekRequest},
    worker::{
        Enqueue, Failure, Job, JobContext, KIND_HEADER, RetryPolicy, Router, Summary,
        Worker,
    },
};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct SendEmail {
    to: String,
    subject: String,
}

impl Job for SendEmail {
    const KIND: &'static str = "send-email";

    fn timeout() -> Option<Duration> {
        Some(Duration::from_secs(10)) // of each attempt
    }

    fn retry_policy() -> Option<RetryPolicy> {
        RetryPolicy::exponential(Duration::from_millis(100), Duration::from_secs(60))
            .ok()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().nth(1).unwrap_or("sqlite::memory:".into());
    let queue = relq::connect(&url, &QueueName::new("emails")?).await?;
    push_some(&*queue).await?;

    println!("{:?}", run_all(&queue).await?);
    print_dead(&*queue).await
}

pub(crate) async fn push_some(queue: &dyn Queue) -> Result<(), Box<dyn Error>> {
    let email = |to: &str| SendEmail { to: to.into(), subject: "welcome".into() };
    queue.enqueue(&email("anna@example.org")).await?;
    queue.enqueue(&email("nowhere")).await?;
    // A job of another program, whose payload does not fit the type.
    let unfit = NewJob::new("{\"to\":7}").header(KIND_HEADER, SendEmail::KIND);
    queue.push_one(unfit.max_attempts(NonZeroU16::MIN)).await?;
    Ok(())
}

pub(crate) async fn run_all(queue: &Arc<dyn Queue>) -> Result<Summary, Box<dyn Error>> {
    let worker = Worker::new(queue.clone()).handle_signals();
    let router = Router::new().job(send);
    Ok(worker.run_until_empty(queue.clone(), Duration::MAX, router).await?)
}

/// Sends an email. The worker retries after any error, unless it is a `Failure` that
/// says otherwise.
async fn send(email: SendEmail, job: JobContext) -> Result<(), Failure> {
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
