//! Measures the cost of a claim for the table in the README, and checks the usual case.

use std::time::{Duration, Instant};

use relq_conformance::server::Server;
use relq_core::*;

use crate::fixture::{ask, lease_many, open, say, sent};

/// How many claims are measured for one row of the table.
const CLAIMS: usize = 31;

/// Measures claims of one job among `leased` and `ready` jobs. Returns the median
/// number of commands and the median time.
async fn measure(leased: usize, ready: usize) -> (u64, Duration) {
    let server = Server::start();
    let queue = open(&server).await;
    lease_many(&server, &queue, leased).await;
    queue.push_all(&vec![NewJob::new("x"); ready]).await.unwrap();
    let (mut commands, mut times) = (Vec::new(), Vec::new());
    for _ in 0..CLAIMS {
        say(&server, "CONFIG RESETSTAT");
        let start = Instant::now();
        let taken = queue.claim_one(&ask("w")).await.unwrap();
        times.push(start.elapsed());
        commands.push(sent(&server));
        assert_eq!(taken.is_some(), ready > 0);
        if let Some(taken) = taken {
            queue.ack(&taken.receipt).await.unwrap();
            queue.push_one(NewJob::new("x")).await.unwrap();
        }
    }
    commands.sort_unstable();
    times.sort_unstable();
    (commands[CLAIMS / 2], times[CLAIMS / 2])
}

#[tokio::test]
#[ignore = "prints figures for the README, which depend on the machine"]
async fn cost_of_a_claim() {
    println!("| leased | ready | commands a claim of one | time |");
    for (leased, ready) in [
        (10, 1),
        (1000, 1),
        (100_000, 1),
        (1000, 1000),
        (100_000, 100_000),
        (100_000, 0),
    ] {
        let (commands, time) = measure(leased, ready).await;
        println!("| {leased} | {ready} | {commands} | {time:.1?} |");
    }
}

/// With as many ready jobs as leased ones, the first draw finds a ready job.
#[tokio::test]
async fn a_claim_is_two_commands_where_ready_jobs_are_many() {
    let (commands, _) = measure(2000, 2000).await;

    assert_eq!(commands, 2);
}
