//! Runs the example `producer.py`, which pushes without a library, and works on its jobs.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    process::{Command, Output},
    sync::{Arc, Mutex},
    time::Duration,
};

use relq::{
    Queue, QueueName,
    worker::{Failure, Job, JobContext, Router, State, Worker},
};
use relq_conformance::server::Server;
use serde::{Deserialize, Serialize};

/// The jobs that the handlers received.
type Received = Arc<Mutex<Vec<String>>>;

#[derive(Serialize, Deserialize)]
struct SendEmail {
    to: String,
}

impl Job for SendEmail {
    const KIND: &'static str = "send-email";
}

/// Runs the example with arguments, against the server of the URL.
fn run_producer(url: &str, arguments: &[&str]) -> Output {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/producer.py");
    let mut command = Command::new("python3");
    command.arg(path).args(arguments).env("REDIS_URL", url);
    command.output().expect("python3 is installed")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Runs the example, which must succeed, and returns what it prints.
fn produce(url: &str, arguments: &[&str]) -> String {
    let output = run_producer(url, arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

async fn open(url: &str) -> Arc<dyn Queue> {
    relq::connect(url, &QueueName::new("emails").unwrap()).await.unwrap()
}

/// Runs all jobs of the queue, and returns what the handlers received.
async fn work(queue: Arc<dyn Queue>) -> Vec<String> {
    async fn raw(job: JobContext, received: Received) -> Result<(), Failure> {
        received.lock().unwrap().push(text(job.payload()));
        Ok(())
    }
    let received = Received::default();
    let for_raw = Arc::clone(&received);
    let router = Router::new()
        .job(async |email: SendEmail, State(received): State<Received>| {
            received.lock().unwrap().push(format!("email to {}", email.to));
            Ok::<_, Failure>(())
        })
        .raw(move |job: JobContext| raw(job, Arc::clone(&for_raw)))
        .with_state(Arc::clone(&received));
    let summary = Worker::new(queue.clone())
        .concurrency(1.try_into().unwrap())
        .run_until_empty(queue, Duration::MAX, router)
        .await
        .unwrap();
    let received = received.lock().unwrap().clone();
    assert_eq!(summary.done, received.len() as u64);
    received
}

/// R20: `LPUSH` is a push, and its jobs run in the order of the command.
#[tokio::test]
async fn plain_jobs_of_the_producer_run() {
    let server = Server::start_on_tcp();
    let url = server.url();

    let printed = produce(&url, &["emails", "hello", "zoë *\r\n"]);

    assert_eq!(printed, "2\n");
    assert_eq!(work(open(&url).await).await, ["hello", "zoë *\r\n"]);
}

/// R20: a field of `XADD` is a header, so the handler of the kind runs.
#[tokio::test]
async fn jobs_of_a_kind_run_their_handler() {
    let server = Server::start_on_tcp();
    let url = server.url();
    let kind = ["--stream", "--kind", "send-email", "emails", r#"{"to":"anna"}"#];

    let printed = produce(&url, &kind);
    produce(&url, &["--stream", "emails", "hello"]);

    let (id, _) = printed.trim_end().split_once('-').unwrap();
    assert!(id.parse::<u64>().is_ok(), "the id of an entry: {printed}");
    let queue = open(&format!("stream+{url}")).await;
    assert_eq!(work(queue).await, ["email to anna", "hello"]);
}

#[tokio::test]
async fn a_push_that_fails_says_why() {
    let server = Server::start_on_tcp();
    let url = server.url();
    server.command(&[b"SET", b"emails", b"text"]);

    let refused = run_producer(&url, &["emails", "hello"]);
    let kind = run_producer(&url, &["--kind", "send-email", "emails", "hello"]);
    drop(server);
    let unreachable = run_producer(&url, &["emails", "hello"]);

    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("WRONGTYPE"), "{refused:?}");
    assert_eq!(kind.status.code(), Some(2));
    assert!(text(&kind.stderr).contains("--kind needs --stream"), "{kind:?}");
    assert_eq!(unreachable.status.code(), Some(1));
    assert!(text(&unreachable.stderr).contains("refused"), "{unreachable:?}");
}
