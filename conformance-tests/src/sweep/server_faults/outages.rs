//! A server that cannot be reached for a while, and a worker whose claim waits at it.

use std::time::Duration;

use super::fixture::{FaultFixture, eventually, is_waited_at};
use crate::server::Server;

/// The worker's lease. Its claims wait for a third of it.
const LEASE: Duration = Duration::from_millis(1500);
const WAIT: Duration = Duration::from_millis(500);

/// R21: an idle worker survives an outage of its server that is shorter than its claims
/// wait.
pub(super) async fn an_outage_shorter_than_a_wait_is_outlived(fixture: &FaultFixture) {
    worker_outlives(fixture, WAIT / 5).await;
}

/// R21: an idle worker survives an outage of its server that is longer than its claims
/// wait.
pub(super) async fn an_outage_longer_than_a_wait_is_outlived(fixture: &FaultFixture) {
    worker_outlives(fixture, WAIT * 3).await;
}

async fn worker_outlives(fixture: &FaultFixture, outage: Duration) {
    let mut server = Server::start_with(&["--appendonly", "yes"]);
    let queue = fixture.connect(&server).await;
    let worker = fixture.work(&server, LEASE).await;
    worker.works(&*queue).await;
    eventually("a waiting claim", async || is_waited_at(&server)).await;

    server.kill();
    tokio::time::sleep(outage).await;
    server.restart();

    worker.works(&*queue).await;
    worker.end().await;
}
