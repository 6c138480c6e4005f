//! `relq work --until-empty`: the exit code says what became of the jobs.

use crate::{
    on_each_store,
    relq::{Store, wait_until},
};

const WORK: &str = "work --until-empty --concurrency 1 --exec";

fn work(store: &Store, script: &str) -> crate::relq::Relq {
    let words: Vec<_> = WORK.split(' ').chain(["sh", "-c", script]).collect();
    store.relq_with(&words)
}

on_each_store! {
    fn until_empty_ends_with_0_when_every_job_is_done(store) {
        store.push("a b");
        assert_eq!(work(store, "true").run().code, Some(0));
        assert_eq!(work(store, "true").run().code, Some(0), "of an empty queue");
    }

    fn until_empty_ends_with_3_when_a_job_died(store) {
        store.push("good bad --max-attempts 1");
        let said = work(store, "test $(cat) = good").fails(3);
        assert!(said.contains("1 job died"), "{said}");
        assert!(said.contains("`relq dead list`"), "{said}");
    }

    /// The dead jobs of an earlier run are not counted again.
    fn until_empty_does_not_count_jobs_that_were_dead_before(store) {
        store.push("bad --max-attempts 1");
        work(store, "false").fails(3);
        store.push("good");
        assert_eq!(work(store, "true").run().code, Some(0));
    }

    /// A job whose last worker was killed is buried by the recovery, and not by a
    /// command that failed.
    fn until_empty_counts_the_jobs_that_recovery_buries(store) {
        store.push("job --max-attempts 1");
        let mut other = store.relq("work --lease 1s --exec sleep 10").start();
        wait_until("it is leased", || store.count("default", "leased") == 1);
        other.kill();
        let said = work(store, "true").fails(3);
        assert!(said.contains("1 job died"), "{said}");
    }

    fn until_empty_ends_with_4_when_a_job_waits_for_another_try(store) {
        store.push("bad --max-attempts 1");
        store.push("later --max-attempts 25");
        let said = work(store, "false").fails(4);
        assert!(said.contains("1 job is left"), "{said}");
        assert!(said.contains("1 job died"), "{said}");
        assert!(said.contains("--max-wait"), "{said}");
    }

    fn until_empty_ends_with_4_when_a_signal_leaves_jobs(store) {
        store.push("first second");
        let mut working = work(store, "touch begun; sleep 1").start();
        wait_until("a command runs", || store.file("begun").exists());
        working.signal(rustix::process::Signal::TERM);
        let ended = working.end();
        assert_eq!(ended.code, Some(4), "{}", ended.err);
        assert_eq!(store.count("default", "ready"), 1);
    }
}
