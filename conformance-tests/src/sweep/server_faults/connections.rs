//! Connections to the server that an operator kills.

use std::time::Duration;

use super::fixture::{FaultFixture, clients, eventually, is_waited_at, push_plain};
use crate::server::Server;

const LEASE: Duration = Duration::from_secs(3);

/// A number of connections that is higher than that of a worker and a queue together.
/// The loop over the connections ends at this number.
const MANY: usize = 20;

/// R21: whichever connection of an idle worker is killed, the worker runs the next job.
pub(super) async fn each_connection_of_an_idle_worker_may_be_killed(
    fixture: &FaultFixture,
) {
    let server = Server::start();
    let queue = fixture.connect(&server).await;
    let worker = fixture.work(&server, LEASE).await;
    worker.works(&*queue).await;
    // Each new connection has a higher id than all earlier ones. So the loop kills each
    // connection once if it goes from the lowest id to the highest.
    let mut last = 0;
    let mut killed = 0;
    while let Some(next) = first_after(&server, last).filter(|_| killed < MANY) {
        eventually("a waiting claim", async || is_waited_at(&server)).await;
        let answer =
            server.command(&[b"CLIENT", b"KILL", b"ID", next.to_string().as_bytes()]);
        // The worker may have closed the connection in the meantime.
        killed += usize::from(answer == b":1\r\n");
        last = next;
        worker.works(&*queue).await;
    }

    assert!(killed >= 3, "a worker has more than {killed} connections");
    server.command(&[b"CLIENT", b"KILL", b"TYPE", b"normal"]);
    worker.works(&*queue).await;
    worker.end().await;
}

/// R21: a call on a broken connection fails, and a later call succeeds again.
pub(super) async fn a_killed_connection_heals(fixture: &FaultFixture) {
    let server = Server::start();
    let queue = fixture.connect(&server).await;
    push_plain(&*queue, &["a"]).await;
    server.command(&[b"CLIENT", b"KILL", b"TYPE", b"normal"]);

    let mut healed = None;
    eventually("an answer", async || {
        healed = queue.stats().await.ok();
        healed.is_some()
    })
    .await;

    assert_eq!(healed.map(|stats| stats.ready), Some(1));
}

fn first_after(server: &Server, last: u64) -> Option<u64> {
    clients(server, "").into_iter().filter(|id| *id > last).min()
}
