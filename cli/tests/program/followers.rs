//! `relq push --after`: a job runs when the job that it follows is done (R30).

use std::{env, fs, path::Path, process::Command};

use serde_json::json;

use crate::{
    on_each_store,
    relq::{Ended, Store},
};

/// Runs `script` on each job until no job is left that could run.
fn work(store: &Store, script: &str) -> Ended {
    store.relq_with(&["work", "--until-empty", "--", "sh", "-c", script]).run()
}

/// The first block of shell commands on the page `docs/followers.md` that begins with this
/// comment.
fn example(comment: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/followers.md");
    let page = fs::read_to_string(page).unwrap();
    let block = page.split_once(&format!("```sh\n# {comment}\n")).unwrap().1;
    block.split_once("```").unwrap().0.to_owned()
}

/// Runs shell commands that call `relq`, and returns what the last one prints.
fn run_example(store: &Store, comment: &str) -> Vec<String> {
    let program = Path::new(env!("CARGO_BIN_EXE_relq")).parent().unwrap();
    let path = format!("{}:{}", program.display(), env::var("PATH").unwrap());
    let (first, last) = example(comment).trim_end().rsplit_once('\n').map_or_else(
        || panic!("the example {comment} has one line"),
        |(first, last)| (first.to_owned(), last.to_owned()),
    );
    let script = format!("set -e\n{{\n{first}\n}} >&2\n{last}\n");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).current_dir(store.folder.path());
    shell.env("PATH", path).env("RELQ_URL", &store.url).env_remove("RELQ_LOG");
    let ended = shell.output().unwrap();
    let error = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{error}");
    let out = String::from_utf8(ended.stdout).unwrap();
    out.lines().map(str::to_owned).collect()
}

fn run_the_fan_in(store: &Store) {
    let mut out = run_example(store, "fan-in");
    assert_eq!(out.pop().as_deref(), Some("join"));
    out.sort();
    assert_eq!(out, ["page 1", "page 2", "page 3"]);
}

on_each_store! {
    fn the_chain_of_the_page_runs_in_order(store) {
        assert_eq!(run_example(store, "chain"), ["upload 42", "check 42", "publish 42"]);
        assert_eq!(store.count("default", "finished"), 3);
        store.relq("audit").ok();
    }

    /// The ids that the program prints name the leaders.
    fn each_line_of_a_file_follows_the_job(store) {
        let leader = store.push("--keep-result 1h leader").remove(0);
        let line = format!("push --quiet --after {leader} --file -");
        store.relq(&line).input("a\nb\nc\n").ok();
        assert_eq!(store.count("default", "scheduled"), 3);

        let out = store.relq("work --until-empty --concurrency 1 --exec sed s/$/,/").ok();

        assert_eq!(out, "leader,a,b,c,");
    }

    fn a_held_job_is_shown_without_a_due_time(store) {
        store.push("--id leader leader");
        store.push("--id follower --after leader payload");

        let shown = store.relq("peek --state scheduled --json").json();
        let stats = store.relq("stats --json").json();
        let text = store.relq("peek --state scheduled").ok();

        assert_eq!(shown[0]["after"], "leader");
        assert_eq!(shown[0].get("due_ms"), None);
        assert_eq!((&stats["scheduled"], &stats["next_due_in_ms"]), (&json!(1), &json!(null)));
        let line = text.lines().position(|line| line.starts_with("follower ")).unwrap();
        let note = text.lines().nth(line + 1).unwrap_or_default();
        assert_eq!(note.trim(), "after leader", "{text}");
    }

    fn the_delay_counts_from_the_end_of_the_leader(store) {
        store.push("--id leader leader");
        store.push("--after leader --delay 1h payload");
        assert_eq!(work(store, "cat").code, Some(4), "the follower is left");

        let job = &store.relq("peek --state scheduled --json").json()[0];

        let due_in = job["due_ms"].as_i64().unwrap() - job["enqueued_at_ms"].as_i64().unwrap();
        assert!(due_in >= 3_600_000, "{job}");
        assert_eq!(job.get("after"), None);
    }

    fn a_job_whose_leader_is_done_is_ready(store) {
        store.push("--id leader leader");
        work(store, "cat");
        store.push("--after leader payload");
        assert_eq!(store.count("default", "ready"), 1);
    }

    fn a_job_that_cannot_follow_is_refused(store) {
        store.push("--id gone gone");
        store.relq("cancel gone").ok();
        let plain = store.push("plain").remove(0);

        let gone = store.relq("push --after gone a b").fails(1);
        let unknown = store.relq(&format!("push --after {plain} --wait --keep-result 1h a"));
        let unknown = unknown.fails(1);
        let itself = store.relq("push --id a --after a a").fails(1);

        let wanted = "the job \"gone\" cannot be followed: it has ended, and was not done";
        assert!(gone.contains(wanted), "{gone}");
        let wanted = format!(
            "the job \"{plain}\" cannot be followed: no job with this id is remembered; push \
             the job that is followed with --id or --keep-result"
        );
        assert!(unknown.contains(&wanted), "{unknown}");
        assert!(itself.contains("the job \"a\" follows itself"), "{itself}");
        for error in [gone, unknown, itself] {
            assert_eq!(error.lines().count(), 1, "{error}");
        }
        assert_eq!(store.count("default", "ready"), 1, "only the plain one");
    }

    fn one_job_has_a_hundred_followers(store) {
        store.push("--id leader leader");
        let lines = "follower\n".repeat(100);
        store.relq("push --quiet --after leader --file -").input(lines).ok();
        let error = store.relq("push --after leader a").fails(1);
        assert!(error.contains("it has 100 followers"), "{error}");
        assert_eq!(work(store, "true").code, Some(0));
        assert_eq!(store.count("default", "finished"), 101);
    }

    /// Each job of the chain names the one that it followed.
    fn the_result_of_a_cancelled_follower_names_its_leader(store) {
        store.push("--id a a");
        store.push("--id b --after a --keep-result 1h b");
        store.push("--id c --after b --keep-result 1h c");
        store.relq("result b").fails(4);

        store.relq("cancel a").ok();

        let found = store.relq("result --json b c").run();
        let found: serde_json::Value = serde_json::from_slice(&found.out).unwrap();
        let told = [0, 1].map(|at| (found[at]["state"].clone(), found[at]["followed"].clone()));
        let wanted = ["a", "b"].map(|leader| (json!("cancelled"), json!(leader)));
        assert_eq!(told, wanted);
        let text = store.relq("result b c").run();
        assert_eq!(text.code, Some(5), "{}", text.err);
        let out = String::from_utf8(text.out).unwrap();
        assert_eq!(out, "b cancelled: it followed a\nc cancelled: it followed b\n");
        let error = store.relq("push --wait --keep-result 1h --id b b").fails(5);
        assert!(error.contains("the job b was cancelled: it followed a"), "{error}");
        assert_eq!(store.count("default", "cancelled"), 3);
    }

    /// A dead job holds its followers until it is redriven or purged.
    fn a_dead_leader_holds_its_followers(store) {
        store.push("--id leader --max-attempts 1 leader");
        store.push("--after leader payload");
        assert_eq!(work(store, "false").code, Some(4), "the follower is left");
        assert_eq!(store.count("default", "scheduled"), 1);

        store.relq("dead redrive leader").ok();
        let ended = work(store, "cat; echo");

        assert_eq!(ended.code, Some(0), "{}", ended.err);
        assert_eq!(ended.out, b"leader\npayload\n");
    }
}

#[test]
fn the_fan_in_of_the_page_runs_on_sqlite() {
    run_the_fan_in(&Store::sqlite());
}

#[test]
fn the_fan_in_of_the_page_runs_on_a_stream() {
    run_the_fan_in(&Store::stream());
}

#[test]
fn the_chain_of_the_page_runs_on_a_stream() {
    let out = run_example(&Store::stream(), "chain");
    assert_eq!(out, ["upload 42", "check 42", "publish 42"]);
}

#[test]
fn a_backend_without_followers_says_so() {
    let store = Store::on_tcp("circular");
    let error = store.relq("push --after leader job").fails(1);
    assert!(
        error.contains("a job to follow is not an option of this backend"),
        "{error}"
    );
}
