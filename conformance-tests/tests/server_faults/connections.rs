//! Connections that an operator kills.

use std::time::Duration;

use conformance_tests::server::Server;

use super::stage::{RunningWorker, clients, connect, eventually};

const LEASE: Duration = Duration::from_secs(3);

/// More connections than a worker and a queue have.
const MANY: usize = 20;

/// R21: whichever connection of an idle worker is killed, the next job is worked.
#[tokio::test]
async fn each_connection_of_an_idle_worker_may_be_killed() {
    let server = Server::start();
    let queue = connect(&server).await;
    let worker = RunningWorker::start(&server, LEASE).await;
    worker.works(&*queue).await;
    // A new connection has a higher id, so that each is killed in its turn.
    let mut last = 0;
    let mut killed = 0;
    while let Some(next) = first_after(&server, last).filter(|_| killed < MANY) {
        eventually("a waiting claim", async || is_waited_at(&server)).await;
        let answer =
            server.command(&[b"CLIENT", b"KILL", b"ID", next.to_string().as_bytes()]);
        // None is killed when the worker itself closed it in the meantime.
        killed += usize::from(answer == b":1\r\n");
        last = next;
        worker.works(&*queue).await;
    }

    assert!(killed >= 3, "a worker has more than {killed} connections");
    server.command(&[b"CLIENT", b"KILL", b"TYPE", b"normal"]);
    worker.works(&*queue).await;
    worker.end().await;
}

fn is_waited_at(server: &Server) -> bool {
    !clients(server, "flags=b").is_empty()
}

fn first_after(server: &Server, last: u64) -> Option<u64> {
    let ids = clients(server, "");
    ids.iter().map(|id| id.parse().unwrap()).filter(|id| *id > last).min()
}
