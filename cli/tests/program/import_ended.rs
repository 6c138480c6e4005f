//! `relq import` of jobs that have ended and whose ids the store remembers.

use relq_conformance::server::Server;

use crate::{on_each_store, relq::Store};

on_each_store! {
    /// R4: the store remembers the id of a job that has ended, and does not store the job. The
    /// import does not count it as one that is there.
    fn a_job_that_has_ended_is_not_stored_and_named(store) {
        store.push("--id gone x");
        store.push("--id other y");
        store.relq("pause").ok();
        let lines = store.relq("export").ok();
        store.relq("cancel gone other").ok();

        let ended = store.relq("import -").input(&*lines).run();

        assert_eq!(ended.code, Some(1), "{}", ended.err);
        assert_eq!(String::from_utf8(ended.out).unwrap(), "0 stored\n");
        let words = "not stored: 2 jobs that have ended, whose ids are remembered: gone, other";
        assert!(ended.err.contains(words), "{}", ended.err);
        assert_eq!(store.count("default", "ready"), 0);
    }
}

/// A backend without an index of jobs remembers the ids, too.
#[test]
fn a_job_that_has_ended_is_named_without_an_index() {
    let store = Store::on("circular", Server::start());

    a_job_that_has_ended_is_not_stored_and_named(&store);
}
