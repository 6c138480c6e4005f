//! `relq import` names the jobs that it refuses or leaves out.

use rustix::process::Signal;
use serde_json::json;

use crate::{
    export::{file_of, import, job},
    on_each_store,
    relq::{Store, wait_until},
};

on_each_store! {
    /// An import takes no job among those of a queue that has some, in whatever state. It
    /// could not tell jobs that ended from jobs that it has stored.
    fn a_queue_with_any_job_is_not_empty(store) {
        let lines = file_of(&[job("x", "")]);
        store.push("-q scheduled --delay 1h x");
        store.push("-q dead --max-attempts 1 x");
        store.relq("work -q dead --until-empty -- false").fails(3);
        store.push("-q leased x");
        let command = ["work", "-q", "leased", "--exec", "sleep", "100"];
        let mut working = store.relq_with(&command).start();
        wait_until("a job runs", || store.count("leased", "leased") == 1);

        for queue in ["scheduled", "dead", "leased"] {
            let error = import(store, &format!("-q {queue}"), &lines).fails(1);
            assert!(error.contains("nothing was stored"), "{queue}: {error}");
        }
        working.signal(Signal::TERM);
        working.signal(Signal::TERM);
        working.end_by_itself();
    }

    /// The whole file is checked first, so that the queue is not left paused.
    fn a_follower_of_a_job_that_is_skipped_is_refused_before_anything_is_stored(store) {
        store.create();
        let dead = job("d", r#","since_ms":7"#).replace("ready", "dead");
        let jobs = [dead, job("f", r#","after":"d""#)];

        let error = import(store, "--dead skip", &file_of(&jobs)).fails(1);

        assert!(error.contains("line 3: the job f follows the job d"), "{error}");
        let stats = store.relq("stats --json").json();
        let counts = (&stats["ready"], &stats["scheduled"], &stats["paused"]);
        assert_eq!(counts, (&json!(0), &json!(0), &json!(false)));
    }
}

/// The followers of a job that cannot be stored are named, and all others are stored. The
/// queue is not left paused: the job that holds the key could not run.
#[test]
fn followers_of_a_job_that_is_not_stored_are_left_out() {
    for store in [Store::sqlite(), Store::stream()] {
        let dead = job("dead", r#","unique":"k""#).replace("ready", "dead");
        let jobs = [
            job("live", r#","unique":"k""#),
            dead,
            job("second", r#","after":"dead""#),
            job("third", r#","after":"second""#),
            job("other", r#","after":"live""#),
        ];

        let error = import(&store, "--dead retry", &file_of(&jobs)).fails(1);

        assert!(error.contains("holds: dead"), "{error}");
        assert!(error.contains("2 jobs that follow one that was not"), "{error}");
        assert!(error.contains(": second, third"), "{error}");
        let stats = store.relq("stats --json").json();
        let counts = (&stats["ready"], &stats["scheduled"], &stats["paused"]);
        assert_eq!(counts, (&json!(1), &json!(1), &json!(false)));
    }
}
