//! A server that is away while a worker waits at it.

use std::time::Duration;

use conformance_tests::server::Server;

use super::stage::{RunningWorker, clients, connect, eventually};

/// Claims wait for a third of it.
const LEASE: Duration = Duration::from_millis(1500);
const WAIT: Duration = Duration::from_millis(500);

/// R21: an idle worker outlives a server that was killed and is away for that long.
async fn worker_outlives_an_outage_of(outage: Duration) {
    let mut server = Server::start_with(&["--appendonly", "yes"]);
    let queue = connect(&server).await;
    let worker = RunningWorker::start(&server, LEASE).await;
    worker.works(&*queue).await;
    eventually("a waiting claim", async || is_waited_at(&server)).await;

    server.kill();
    tokio::time::sleep(outage).await;
    server.restart();

    worker.works(&*queue).await;
    worker.end().await;
}

fn is_waited_at(server: &Server) -> bool {
    !clients(server, "flags=b").is_empty()
}

#[tokio::test]
async fn an_outage_shorter_than_a_wait_is_outlived() {
    worker_outlives_an_outage_of(WAIT / 5).await;
}

#[tokio::test]
async fn an_outage_longer_than_a_wait_is_outlived() {
    worker_outlives_an_outage_of(WAIT * 3).await;
}
