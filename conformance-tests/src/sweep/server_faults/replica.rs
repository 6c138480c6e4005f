//! A replica that is promoted to be the master.

use std::collections::BTreeSet;

use relq_core::{Disposition, Settlement, operator::JobState, outcome::Settled};

use super::{
    batches::{submit, telling},
    fixture::{FaultFixture, ask, eventually, payloads, places, push_plain, take},
};
use crate::server::Server;

/// Starts a server that replicates `master`, and waits until it is in sync.
async fn replica_of(master: &Server) -> Server {
    let replica = Server::start_on_tcp();
    let url = master.url();
    let port = url.rsplit_once(':').and_then(|(_, rest)| rest.split_once('/'));
    let (port, _) = port.expect("the URL names a port and a database");
    replica.command(&[b"REPLICAOF", b"127.0.0.1", port.as_bytes()]);
    eventually("replication", async || {
        let role = replica.command(&[b"INFO", b"replication"]);
        String::from_utf8_lossy(&role).contains("master_link_status:up")
    })
    .await;
    replica
}

/// R1, R7: a promoted replica keeps all jobs that were replicated to it, and accepts
/// receipts that the old master issued.
pub(super) async fn a_promoted_replica_goes_on(fixture: &FaultFixture) {
    let mut master = Server::start_on_tcp();
    let replica = replica_of(&master).await;
    let queue = fixture.connect(&master).await;
    push_plain(&*queue, &["a", "b", "c"]).await;
    let mut held = take(&*queue, 3).await;
    if queue.batch_queue().is_some() {
        submit(&*queue, &telling("begun", 1), &["piece", "next piece"]).await;
        held.extend(take(&*queue, 1).await);
    }
    push_plain(&*queue, &["d"]).await;
    let before = places(&*queue).await;
    eventually("the replica's copy", async || offset(&master) == offset(&replica))
        .await;

    master.kill();
    replica.command(&[b"REPLICAOF", b"NO", b"ONE"]);

    let queue = fixture.connect(&replica).await;
    assert_eq!(places(&*queue).await, before);
    let done =
        held.iter().map(|one| Settlement::new(one.receipt.clone(), Disposition::Done));
    let settled = queue.settle(&done.collect::<Vec<_>>()).await.expect("answered");
    assert!(settled.iter().all(|one| *one == Settled::Applied), "{settled:?}");
    let ready = before.jobs.values().filter(|(state, _)| *state == JobState::Ready);
    let ready = take(&*queue, ready.count()).await;
    let taken: BTreeSet<_> =
        payloads(&held).into_iter().chain(payloads(&ready)).collect();
    assert!(taken.iter().eq(before.jobs.keys()), "{taken:?}");
}

/// R21: a queue works again by itself after its server was made a replica and then a
/// master again.
pub(super) async fn a_master_that_comes_back_is_used_again(fixture: &FaultFixture) {
    let master = Server::start_on_tcp();
    let queue = fixture.connect(&master).await;
    push_plain(&*queue, &["a"]).await;
    // Nothing listens on port 1, so the server becomes a replica and copies no data.
    master.command(&[b"REPLICAOF", b"127.0.0.1", b"1"]);

    let refused = queue.claim(&ask(1)).await.expect_err("a replica only reads");
    assert_eq!(refused.effect(), relq_core::error::Effect::No, "{refused}");
    assert_eq!(
        refused.retry_advice(),
        relq_core::error::RetryAdvice::Safe,
        "{refused}"
    );

    master.command(&[b"REPLICAOF", b"NO", b"ONE"]);
    eventually("a claim", async || {
        queue.claim(&ask(1)).await.is_ok_and(|got| payloads(&got) == ["a"])
    })
    .await;
}

fn offset(server: &Server) -> String {
    let info = server.command(&[b"INFO", b"replication"]);
    let info = String::from_utf8_lossy(&info);
    let found = info.lines().find_map(|line| line.strip_prefix("master_repl_offset:"));
    found.expect("the server reports its offset").to_owned()
}
