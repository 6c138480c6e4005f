//! `relq import` of jobs whose ids the store knows already: of jobs that have ended, and of
//! jobs that the file has twice.

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

    /// A live export has a job twice that moved meanwhile. Its second line is no job that has
    /// ended.
    fn a_job_that_is_twice_in_the_file_is_stored_once(store) {
        store.push("-q from --id twice x");
        let lines = store.relq("export -q from --live").ok();
        let (head, rest) = lines.split_once('\n').unwrap();
        let (job, _) = rest.split_once('\n').unwrap();
        let twice = format!("{head}\n{job}\n{job}\n{{\"exported\":2}}\n");

        let out = store.relq("import - -q to").input(twice).ok();

        assert_eq!(out, "1 stored\n1 were stored before\n");
        assert_eq!(store.count("to", "ready"), 1);
    }
}

/// A backend without an index of jobs tells them apart, too.
#[test]
fn known_ids_are_told_apart_without_an_index() {
    let store = Store::on("circular", Server::start());

    a_job_that_is_twice_in_the_file_is_stored_once(&store);
    a_job_that_has_ended_is_not_stored_and_named(&store);
}
