//! A server process that is killed and started again.

use relq_core::{Error, NewJob, ReliableQueueExt, outcome::Settled};

use super::fixture::{FaultFixture, eventually, fill_with_a_batch, places};
use crate::server::Server;

/// R1, R21: a server that syncs its file on each write loses nothing when it is killed,
/// and a lease from before the kill can be settled after the restart.
pub(super) async fn a_killed_server_comes_back_with_every_job(fixture: &FaultFixture) {
    let mut server =
        Server::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let queue = fixture.connect(&server).await;
    let leased = fill_with_a_batch(&*queue).await;
    let before = places(&*queue).await;
    server.kill();

    let down = queue.push_one(NewJob::new("x")).await.expect_err("the server is down");
    assert!(matches!(down, Error::Unavailable { .. } | Error::Interrupted { .. }));
    server.restart();

    eventually("an answer", async || queue.stats().await.is_ok()).await;
    assert_eq!(places(&*queue).await, before);
    for one in leased {
        let settled = queue.ack(&one.receipt).await.expect("answered");
        assert_eq!(settled, Settled::Applied);
    }
}
