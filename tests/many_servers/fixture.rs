//! Functions that the tests share. They wait for a condition, or push and run jobs
//! during a fail-over.

use std::{
    collections::BTreeSet,
    sync::Arc,
    time::{Duration, Instant},
};

use relq::{
    ClaimRequest, ConnectError, Disposition, Error, NewJob, Queue, QueueName,
    ReliableQueueExt, Settlement, WorkerId, error::Effect,
};
use relq_conformance::server::Node;

/// How long a test waits for a condition. A fail-over takes some seconds.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

const LEASE: Duration = Duration::from_secs(30);

/// A master, and a replica that has all of its data.
pub(crate) async fn master_and_replica() -> (Node, Node) {
    let master = Node::start("", &[]);
    let replica = Node::start(&format!("replicaof 127.0.0.1 {}\n", master.port()), &[]);
    eventually("the replica follows", || {
        replica.ask(&["INFO", "replication"]).contains("master_link_status:up")
    })
    .await;
    (master, replica)
}

pub(crate) fn name() -> QueueName {
    QueueName::new("emails").unwrap()
}

pub(crate) async fn open(url: &str) -> Arc<dyn Queue> {
    relq::connect(url, &name()).await.unwrap()
}

/// Opens a queue during a fail-over. Repeats the attempt until the new master serves
/// it.
pub(crate) async fn open_after_fail_over(url: &str) -> Arc<dyn Queue> {
    let start = Instant::now();
    loop {
        match relq::connect(url, &name()).await {
            Ok(queue) => return queue,
            Err(error) => assert!(start.elapsed() < LIMIT, "{url}: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Returns the message of the error with which relq refuses the URL.
pub(crate) async fn refusal(url: &str) -> String {
    match relq::connect(url, &name()).await {
        Err(ConnectError::Queue(error)) => error.full_message(),
        Err(error) => error.to_string(),
        Ok(_) => panic!("{url} is not refused"),
    }
}

/// Waits until the condition holds.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LIMIT, "not in {LIMIT:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Pushes a job, and repeats the push until it succeeds.
pub(crate) async fn push(queue: &dyn Queue, payload: &str) {
    let start = Instant::now();
    while let Err(error) = queue.push_one(NewJob::new(payload.to_owned())).await {
        // If the connection broke, the failed push may have stored the job. The tests
        // that count jobs break no connection during a push.
        assert!(start.elapsed() < LIMIT, "{payload} is not stored: {error}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Pushes these jobs. Panics if a push fails.
pub(crate) async fn push_all(
    queue: &dyn Queue,
    payloads: impl Iterator<Item = String>,
) {
    for payload in payloads {
        let pushed = queue.push_one(NewJob::new(payload.clone())).await;
        pushed.unwrap_or_else(|error| panic!("{payload}: {}", error.full_message()));
    }
}

/// Claims and finishes jobs until it has seen `count` different payloads. Repeats calls
/// that were refused and changed nothing.
pub(crate) async fn drain(queue: &dyn Queue, count: usize) -> BTreeSet<String> {
    let (start, mut payloads) = (Instant::now(), BTreeSet::new());
    let ask = ClaimRequest::new(WorkerId::new("worker").unwrap(), LEASE)
        .max(10.try_into().unwrap())
        .wait(Duration::from_millis(200));
    while payloads.len() < count {
        assert!(start.elapsed() < LIMIT, "{} of {count} jobs came", payloads.len());
        let Some(claimed) = unless_refused(queue.claim(&ask).await) else { continue };
        for job in claimed {
            let done = [Settlement::new(job.receipt.clone(), Disposition::Done)];
            while unless_refused(queue.settle(&done).await).is_none() {}
            payloads.insert(String::from_utf8(job.payload.to_vec()).unwrap());
        }
    }
    payloads
}

fn unless_refused<T>(outcome: Result<T, Error>) -> Option<T> {
    match outcome {
        Ok(value) => Some(value),
        Err(error) if error.effect() == Effect::No => None,
        Err(error) => panic!("{}", error.full_message()),
    }
}

/// The payloads `0`, `1` and so on, `count` in all.
pub(crate) fn numbers(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|number| number.to_string())
}
