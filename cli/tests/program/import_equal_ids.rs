//! `relq import` of a file in which several lines have one id.

use relq_conformance::server::Server;
use serde_json::json;

use crate::{
    export::{file_of, import, job},
    on_each_store,
    relq::Store,
};

/// The payloads of the ready jobs, sorted.
fn payloads(store: &Store) -> Vec<String> {
    let jobs = store.relq("list --json").json();
    let payloads = jobs.as_array().unwrap().iter();
    let mut payloads: Vec<_> =
        payloads.map(|job| job["payload"].as_str().unwrap().to_owned()).collect();
    payloads.sort();
    payloads
}

/// A job of the id `a` with this payload.
fn job_of(payload: &str, more: &str) -> String {
    job("a", more).replace("\"p\"", &format!("\"{payload}\""))
}

/// A file of two jobs with the id `a`. The second job changed its state during the export,
/// so that it has two lines.
fn file_of_two_jobs() -> String {
    let failed = r#","attempt":1,"last_error":"it failed""#;
    file_of(&[
        job_of("first", ""),
        job_of("second", r#","attempt":1"#).replace("ready", "leased"),
        job_of("second", failed),
    ])
}

on_each_store! {
    /// A job that moved during a live export is stored once, and the other job of its id is
    /// not taken for the same one. An import that is repeated stores neither again.
    fn each_job_of_an_id_is_stored_once(store) {
        let lines = file_of_two_jobs();

        let report = import(store, "--json", &lines).json();

        let counts = ["stored", "known", "repeated"].map(|it| report[it].as_u64());
        assert_eq!(counts, [Some(2), Some(0), Some(1)], "{report}");
        assert_eq!(report["renamed"].as_array().unwrap().len(), 1, "{report}");
        let new = report["renamed"][0].as_str().unwrap();
        let payload = |id| store.relq(&format!("show {id} --json")).json()["payload"].clone();
        assert_eq!((payload("a"), payload(new)), (json!("first"), json!("second")));

        let again = import(store, "--resume", &lines).ok();

        assert!(again.starts_with("0 stored\n2 were stored before\n"), "{again}");
        assert!(again.contains("1 were in the file a second time\n"), "{again}");
        assert!(again.contains("1 got a new id, as another job of the file has"), "{again}");
        assert_eq!(payloads(store), ["first", "second"]);
    }

    /// R30: a follower whose leader may be either of two jobs could run too soon.
    fn a_follower_of_an_id_that_two_jobs_have_is_refused(store) {
        store.create();
        let jobs = [job_of("x", ""), job_of("y", ""), job("f", r#","after":"a""#)];

        let error = import(store, "", &file_of(&jobs)).fails(1);

        let words = "line 4: the job f follows the job a, and the file has several jobs";
        assert!(error.contains(words), "{error}");
        assert_eq!(store.count("default", "ready"), 0);
    }

    /// A job that is not stored leaves its id to the next one.
    fn a_job_keeps_its_id_beside_a_skipped_one(store) {
        let dead = job_of("dead", r#","since_ms":7"#).replace("ready", "dead");
        let lines = file_of(&[dead, job_of("alive", "")]);

        let out = import(store, "--dead skip", &lines).ok();

        assert_eq!(out, "1 stored\n1 dead ones skipped\n");
        assert_eq!(store.relq("show a --json").json()["payload"], json!("alive"));
    }
}

/// A backend that pushes each job anew stores it once, too.
#[test]
fn each_job_of_an_id_is_stored_once_without_an_index() {
    let store = Store::on("circular", Server::start());

    let out = import(&store, "", &file_of_two_jobs()).ok();

    assert!(out.starts_with("2 stored\n1 were in the file a second time\n"), "{out}");
    assert_eq!(payloads(&store), ["first", "second"]);
}

/// R4: a client pushes an id that relq made. Both jobs move to another store.
#[test]
fn two_jobs_of_one_id_move_from_each_redis_backend() {
    for backend in ["zset", "stream", "processing-list", "circular"] {
        let (from, to) = (Store::on(backend, Server::start()), Store::sqlite());
        let id = &from.push("first")[0];
        from.push(&format!("--id {id} second"));
        from.relq("pause").ok();
        let lines = from.relq("export").ok();

        let out = import(&to, "", &lines).ok();

        assert!(out.starts_with("2 stored\n1 got a new id"), "{backend}: {out}");
        assert_eq!(payloads(&to), ["first", "second"], "{backend}");
    }
}
