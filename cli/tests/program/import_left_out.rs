//! `relq import` names the jobs that it refuses or leaves out.

use serde_json::json;

use crate::{
    export::{export, file_of, import, job},
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
        working.stop_hard();
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

/// A job of another client may be larger than the import allows (R20). The refusal says how
/// the others are imported.
#[test]
fn a_job_that_is_refused_does_not_keep_the_others_out() {
    let (mut store, target) = (Store::stream(), Store::sqlite());
    store.push("small");
    let large = vec![b'y'; 70_000];
    let push: [&[u8]; 7] =
        [b"XADD", b"default", b"*", b"job", b"large", b"header", &large];
    store.server().command(&push);
    let mut lines: Vec<_> =
        export(&store, "default").lines().map(str::to_owned).collect();

    let error = import(&target, "", &lines.join("\n")).fails(1);

    let why = "a set of headers of 70006 bytes is over the limit of 65536: to import the \
               other jobs, delete this line from the file, and reduce the number in its \
               last line by one";
    assert!(error.contains("line 3: "), "{error}");
    assert!(error.contains(why), "{error}");
    assert_eq!(target.count("default", "ready"), 0);
    lines.remove(2);
    lines[2] = lines[2].replace('2', "1");
    let imported = import(&target, "", &lines.join("\n")).ok();
    assert_eq!(imported, "1 stored\n");
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
