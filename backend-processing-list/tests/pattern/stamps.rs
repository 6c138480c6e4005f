//! Jobs as elements of a list: a stamp makes equal payloads distinct.

use relq_conformance::server::Server;
use relq_core::{outcome::Settled, unique::UniqueKey, *};
use relq_processing_list::Mode;

use crate::fixture::*;

/// R7, R20: a late acknowledgement does not remove an equal job. Removal by value would
/// (`LREM`), but two stamped elements are never equal.
#[tokio::test]
async fn a_late_ack_of_a_bare_payload_removes_no_equal_job() {
    for mode in MODES {
        let patched_server = PatchedServer::healthy();
        let queue = patched_server.open(mode).await;
        say(&patched_server, &[b"LPUSH", b"q", b"same"]);
        let stale = take(&queue, &ask_briefly("w")).await;
        recover(&patched_server, &queue, 1).await;
        say(&patched_server, &[b"LPUSH", b"q", b"same"]);
        let held = queue.claim(&ask("w").max(many(2))).await.unwrap();
        assert_eq!(held.len(), 2);

        assert_eq!(queue.ack(&stale.receipt).await.unwrap(), Settled::LeaseLost);

        for one in &held {
            assert_eq!(queue.ack(&one.receipt).await.unwrap(), Settled::Applied);
        }
        assert_sound(&queue).await;
    }
}

/// A job that uses every push option leaves no key behind when it has ended.
#[tokio::test]
async fn a_job_with_every_option_ends_and_leaves_nothing_behind() {
    for (mode, left) in [
        (Mode::PerWorker, &["{q}:marker", "{q}:totals", "{q}:workers"][..]),
        (Mode::Shared, &["{q}:marker", "{q}:totals"]),
    ] {
        let server = Server::start();
        let queue = open(&server, mode).await;
        let job = NewJob::new("x")
            .unique(UniqueKey::new("k").unwrap())
            .expires_in(LEASE)
            .header("a", "b");
        queue.push_one(job).await.unwrap();

        let first = take(&queue, &ask("w")).await;
        queue
            .retry(&first.receipt, std::time::Duration::ZERO, "no luck")
            .await
            .unwrap();
        let second = take(&queue, &ask("w")).await;
        assert_eq!(second.attempt(), 2);
        assert_sound(&queue).await;
        assert_eq!(queue.ack(&second.receipt).await.unwrap(), Settled::Applied);

        assert_sound(&queue).await;
        assert_eq!(keys(&server), left);
    }
}

/// One call claims 1000 jobs in the order of their push, and one call settles them all.
#[tokio::test]
async fn a_thousand_jobs_are_claimed_in_order_and_finished_in_one_call() {
    for mode in MODES {
        let server = Server::start();
        let queue = open(&server, mode).await;
        let jobs: Vec<_> = (0..1000).map(|n: u32| NewJob::new(n.to_string())).collect();
        queue.push(&jobs, None).await.unwrap();

        let taken = queue.claim(&ask("w").max(many(1000))).await.unwrap();
        let payloads: Vec<_> = taken.iter().map(|d| d.payload.clone()).collect();
        let pushed: Vec<_> = jobs.iter().map(|job| job.payload.clone()).collect();
        assert_eq!(payloads, pushed);

        let done = |d: Delivery| Settlement::new(d.receipt, Disposition::Done);
        let done: Vec<_> = taken.into_iter().map(done).collect();
        let settled = queue.settle(&done).await.unwrap();
        assert!(settled.iter().all(|answer| *answer == Settled::Applied));
        let again = queue.settle(&done).await.unwrap();
        assert!(again.iter().all(|answer| *answer == Settled::LeaseLost));
        assert_eq!(queue.stats().await.unwrap().finished, 1000);
        assert_sound(&queue).await;
    }
}
