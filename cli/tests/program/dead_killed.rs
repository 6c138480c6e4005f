//! `relq dead retry` and `relq dead purge` with a filter, killed with SIGKILL in the middle.

use std::collections::BTreeSet;

use crate::{
    on_each_store,
    relq::{Store, wait_until},
};

/// The dead jobs that fit the filter `--payload fits`: they are ten calls to the store.
const FITTING: u64 = 10_000;
const OTHERS: u64 = 100;
const ALL: u64 = FITTING + OTHERS;

on_each_store! {
    /// R9, R12: a dead job is dead or ready, whenever the command is killed.
    fn a_killed_retry_loses_no_dead_job_and_is_repeated(store) {
        let queue = &killed_in_the_middle_of(store, "dead retry");
        let (dead, ready) = (payloads(store, queue, "dead"), payloads(store, queue, "ready"));
        assert!(dead.is_disjoint(&ready), "a job is dead and ready");
        assert_eq!((dead.len() + ready.len()) as u64, ALL);
        assert!(ready.iter().all(|payload| payload.starts_with("fits")));

        let moved = store.relq(&format!("dead retry --payload fits --json -q {queue}")).json();

        let moved = moved["moved"].as_u64().unwrap();
        assert_eq!(moved + ready.len() as u64, FITTING);
        assert_eq!(payloads(store, queue, "ready").len() as u64, FITTING);
        let left = payloads(store, queue, "dead");
        assert!(left.iter().all(|payload| payload.starts_with("other")));
        assert_eq!(left.len() as u64, OTHERS);
        assert_eq!(store.relq(&format!("audit --json -q {queue}")).json()["jobs"], ALL);
    }

    /// A dead job is dead or gone, and the counts of both runs add up.
    fn a_killed_purge_removes_what_fits_and_is_repeated(store) {
        let queue = &killed_in_the_middle_of(store, "dead purge");
        let left = payloads(store, queue, "dead");
        assert_eq!(left.iter().filter(|it| it.starts_with("other")).count() as u64, OTHERS);
        assert_eq!(store.count(queue, "ready"), 0);

        let purged = store.relq(&format!("dead purge --payload fits --json -q {queue}")).json();

        assert_eq!(purged["purged"].as_u64().unwrap(), left.len() as u64 - OTHERS);
        let left = payloads(store, queue, "dead");
        assert!(left.iter().all(|payload| payload.starts_with("other")));
        assert_eq!(left.len() as u64, OTHERS);
        assert_eq!(store.relq(&format!("audit --json -q {queue}")).json()["jobs"], OTHERS);
    }
}

/// Kills the command after it has begun to move jobs, and before it has moved all that fit.
/// Tries again on a new queue if the command ended too early. Returns the queue.
fn killed_in_the_middle_of(store: &Store, command: &str) -> String {
    for round in 0..20 {
        let queue = format!("round-{round}");
        fill(store, &queue);
        let line = format!("{command} --payload fits -q {queue}");
        let mut running = store.relq(&line).start();
        wait_until("it has begun", || store.count(&queue, "dead") < ALL);
        running.kill();
        if store.count(&queue, "dead") > OTHERS {
            return queue;
        }
    }
    panic!("`{command}` ended each time before it was killed");
}

/// Fills the queue with dead jobs. They have expired, so that no command has to fail for
/// each.
fn fill(store: &Store, queue: &str) {
    let fitting = (0..FITTING).map(|n| format!("fits-{n}\n"));
    let lines: String =
        fitting.chain((0..OTHERS).map(|n| format!("other-{n}\n"))).collect();
    let push = format!("push --quiet --expires-in 1ms -q {queue} --file -");
    store.relq(&push).input(lines).ok();
    store.relq(&format!("work --until-empty -q {queue} -- false")).fails(3);
    assert_eq!(store.count(queue, "dead"), ALL);
}

fn payloads(store: &Store, queue: &str, state: &str) -> BTreeSet<String> {
    let jobs =
        store.relq(&format!("peek --state {state} --json -n 20000 -q {queue}")).json();
    let jobs = jobs.as_array().unwrap();
    let found: BTreeSet<_> =
        jobs.iter().map(|job| job["payload"].as_str().unwrap().to_owned()).collect();
    assert_eq!(found.len(), jobs.len(), "a job is twice in the state {state}");
    found
}
