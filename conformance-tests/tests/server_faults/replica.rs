//! A replica that takes its master's place.

use conformance_tests::server::Server;
use queue_core::{Settled, Settlement, Verdict};

use super::stage::{ask, connect, eventually, payloads, places, push_plain};

/// Starts a server that follows `master`, and waits until it does.
async fn replica_of(master: &Server) -> Server {
    let replica = Server::start_on_tcp();
    let url = master.url();
    let port = url.rsplit_once(':').unwrap().1.split_once('/').unwrap().0;
    replica.command(&[b"REPLICAOF", b"127.0.0.1", port.as_bytes()]);
    eventually("replication", async || {
        let role = replica.command(&[b"INFO", b"replication"]);
        String::from_utf8(role).unwrap().contains("master_link_status:up")
    })
    .await;
    replica
}

/// R1, R7: what the replica has heard of goes on at it as if nothing had been: jobs
/// are kept, and leases held by receipts of the old master are settled.
#[tokio::test]
async fn a_promoted_replica_goes_on() {
    let mut master = Server::start_on_tcp();
    let replica = replica_of(&master).await;
    let queue = connect(&master).await;
    push_plain(&*queue, &["a", "b", "c"]).await;
    let held = queue.claim(&ask(2)).await.unwrap();
    let before = places(&*queue).await;
    eventually("the replica's copy", async || offset(&master) == offset(&replica))
        .await;

    master.kill();
    replica.command(&[b"REPLICAOF", b"NO", b"ONE"]);

    let queue = connect(&replica).await;
    assert_eq!(places(&*queue).await, before);
    let done =
        held.iter().map(|one| Settlement::new(one.receipt.clone(), Verdict::Done));
    let settled = queue.settle(&done.collect::<Vec<_>>()).await.unwrap();
    assert_eq!(settled, [Settled::Applied; 2]);
    assert_eq!(payloads(&queue.claim(&ask(9)).await.unwrap()), ["c"]);
}

/// R21: a queue whose server was demoted and promoted again goes on by itself.
#[tokio::test]
async fn a_master_that_comes_back_is_used_again() {
    let master = Server::start_on_tcp();
    let queue = connect(&master).await;
    push_plain(&*queue, &["a"]).await;
    // Port 1 listens nowhere, so that no data is copied from there.
    master.command(&[b"REPLICAOF", b"127.0.0.1", b"1"]);

    let refused = queue.claim(&ask(1)).await.unwrap_err();
    assert_eq!(refused.happened(), queue_core::Happened::No, "{refused}");
    assert_eq!(refused.retry_advice(), queue_core::RetryAdvice::Safe, "{refused}");

    master.command(&[b"REPLICAOF", b"NO", b"ONE"]);
    eventually("a claim", async || {
        queue.claim(&ask(1)).await.is_ok_and(|got| payloads(&got) == ["a"])
    })
    .await;
}

fn offset(server: &Server) -> String {
    let info = server.command(&[b"INFO", b"replication"]);
    let info = String::from_utf8(info).unwrap();
    let found = info.lines().find_map(|line| line.strip_prefix("master_repl_offset:"));
    found.unwrap().to_owned()
}
