//! `relq work --until-empty`: the exit code tells whether all jobs were done.

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

    /// Jobs that were dead before the run do not change its exit code.
    fn until_empty_does_not_count_jobs_that_were_dead_before(store) {
        store.push("bad --max-attempts 1");
        work(store, "false").fails(3);
        store.push("good");
        assert_eq!(work(store, "true").run().code, Some(0));
    }

    /// A job that recovery buries during the run counts as dead, although no command of
    /// this worker failed.
    fn until_empty_counts_the_jobs_that_recovery_buries(store) {
        store.push("job --max-attempts 1");
        let mut other = store.relq("work --lease 3s --exec sleep 1000").start();
        wait_until("it is leased", || store.count("default", "leased") == 1);
        other.kill();
        let said = work(store, "true").fails(3);
        assert!(said.contains("1 job died"), "{said}");
    }

    /// A job that died during the run counts, even if another client has removed it
    /// before the end of the run.
    fn until_empty_counts_a_job_that_died_and_was_removed(store) {
        store.push("bad good --max-attempts 1");
        let script = "test $(cat) = good || exit 1; \
            until $RELQ dead purge --all | grep -q ^1; do sleep 0.1; done";
        let said = work(store, script).env("RELQ", env!("CARGO_BIN_EXE_relq")).fails(3);
        assert!(said.contains("1 job died"), "{said}");
        assert_eq!(store.count("default", "dead"), 0);
    }

    fn until_empty_ends_with_4_when_another_worker_holds_a_job(store) {
        store.push("held");
        let mut other = store.relq("work --concurrency 1 --exec sleep 1000").start();
        wait_until("it is leased", || store.count("default", "leased") == 1);
        store.push("free");
        let mut working = work(store, "true").start();
        wait_until("the other is done", || store.count("default", "finished") == 1);
        working.signal(rustix::process::Signal::TERM);
        let ended = working.end();
        assert_eq!(ended.code, Some(4), "{}", ended.err);
        assert!(ended.err.contains("1 job is left"), "{}", ended.err);
        other.stop_hard();
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
