//! Tests that no key stays behind when a job ends.

use std::time::Duration;

use relq_conformance::server::Server;
use relq_core::{outcome::Settled, unique::UniqueKey, *};

use crate::fixture::{LEASE, ask, assert_sound, keys, open};

/// A job with every option, once finished, leaves no key behind.
#[tokio::test]
async fn a_job_with_every_option_ends_and_leaves_nothing_behind() {
    let server = Server::start();
    let queue = open(&server).await;
    let job = NewJob::new("x")
        .unique(UniqueKey::new("k").unwrap())
        .expires_in(LEASE)
        .header("a", "b");
    queue.push_one(job).await.unwrap();

    let first = queue.claim_one(&ask("w")).await.unwrap().unwrap();
    queue.retry(&first.receipt, Duration::ZERO, "no luck").await.unwrap();
    let second = queue.claim_one(&ask("w")).await.unwrap().unwrap();
    assert_eq!(second.attempt(), 2);
    assert_sound(&queue).await;
    assert_eq!(queue.ack(&second.receipt).await.unwrap(), Settled::Applied);

    assert_sound(&queue).await;
    assert_eq!(
        keys(&server),
        ["relq:database", "{q}:marker", "{q}:totals", "{q}:wake"]
    );
}
