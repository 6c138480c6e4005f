//! `relq work`: the output of commands that run at the same time.

use rustix::process::Signal;

use crate::{
    on_each_store,
    relq::{Store, wait_until},
};

/// A command that writes half a line to both outputs, pauses, and writes the other
/// half.
const HALVES: &str = "
    for n in 1 2 3 4 5; do
        printf 'out-'; printf 'err-' >&2; sleep 0.02; echo end; echo end >&2
    done";

on_each_store! {
    fn lines_of_commands_that_run_at_once_stay_whole(store) {
        store.push("a b c d e f g h");
        let line = ["work", "--until-empty", "--concurrency", "8", "--exec", "sh", "-c",
            HALVES];
        let ended = store.relq_with(&line).run();
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        let out = String::from_utf8(ended.out).unwrap();
        assert_eq!(out, "out-end\n".repeat(40));
        let of_commands = ended.err.lines().filter(|line| !line.starts_with("relq:"));
        assert!(of_commands.clone().all(|line| line == "err-end"), "{}", ended.err);
        assert_eq!(of_commands.count(), 40);
    }

    /// A log that cannot be written ends neither a worker nor a job.
    fn a_reader_of_errors_that_goes_away_stops_no_worker(store) {
        store.push("--max-attempts 1 a b c");
        for command in ["false", "ls /not-there"] {
            store.push("--max-attempts 1 a b c");
            let line = format!("work --until-empty --concurrency 2 --exec {command}");
            let ended = store.relq(&line).env("RELQ_LOG", "debug");
            assert_eq!(ended.start_without_errors().end().code, Some(3), "{command}");
        }
        assert_eq!(store.count("default", "dead"), 9);
    }

    /// A newline is added to a last line that has none: otherwise the next command's
    /// first line would continue it.
    fn a_last_line_without_its_newline_gets_one(store) {
        store.push("--max-attempts 1 a b c d");
        let line = "work --until-empty --concurrency 4 --exec cat";
        let out = store.relq(line).ok();
        let mut lines: Vec<_> = out.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["a", "b", "c", "d"]);
    }

    fn each_line_begins_with_its_jobs_id_on_request(store) {
        let ids = store.push("a b c d");
        let line = ["work", "--until-empty", "--tag", "--exec", "sh", "-c",
            "cat; echo; cat /dev/null; echo to-err >&2; printf last"];
        let ended = store.relq_with(&line).run();
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        let out = String::from_utf8(ended.out).unwrap();
        for (id, payload) in ids.iter().zip(["a", "b", "c", "d"]) {
            assert!(out.contains(&format!("{id}\t{payload}\n")), "{out}");
            assert!(out.contains(&format!("{id}\tlast\n")), "{out}");
            assert!(ended.err.contains(&format!("{id}\tto-err\n")), "{}", ended.err);
        }
        assert_eq!(out.lines().count(), 8);
    }

    /// If only one command runs at a time, its output is passed on unchanged.
    fn the_output_of_one_command_at_a_time_is_unchanged(store) {
        store.push("payload");
        let line = "work --until-empty --concurrency 1 --exec cat";
        assert_eq!(store.relq(line).ok(), "payload");
    }

    fn one_command_at_a_time_may_have_a_tag(store) {
        let id = store.push("payload").remove(0);
        let line = "work --until-empty --concurrency 1 --tag --exec cat";
        assert_eq!(store.relq(line).ok(), format!("{id}\tpayload\n"));
    }

    /// A line is kept in memory until it ends, so a line of more than 64 KiB is cut.
    fn a_line_longer_than_64_kib_is_cut_into_pieces(store) {
        store.push("job");
        let script = "head -c 150000 /dev/zero | tr '\\0' x; echo; echo next";
        let line = ["work", "--until-empty", "--concurrency", "2", "--exec", "sh", "-c",
            script];
        let out = store.relq_with(&line).ok();
        let lengths: Vec<_> = out.lines().map(str::len).collect();
        assert_eq!(lengths, [65_536, 65_536, 150_000 - 2 * 65_536, 4]);
    }

    fn the_error_of_a_job_has_no_tag(store) {
        store.push("job --max-attempts 1");
        let line = ["work", "--until-empty", "--tag", "--exec", "sh", "-c",
            "echo why >&2; exit 7"];
        store.relq_with(&line).run();
        let dead = &store.relq("dead list --json").json()[0];
        assert_eq!(dead["last_error"], "exit status: 7: why");
    }

    /// The last output of a command is printed even if a process that it left behind
    /// holds the output open.
    fn the_last_words_before_a_process_left_behind_are_printed(store) {
        store.push("job");
        let script = "printf words; sleep 5 & ";
        let line = ["work", "--until-empty", "--exec", "sh", "-c", script];
        let mut working = store.relq_with(&line).start();
        working.wait_for_error("1 done");
        assert!(working.end().out.starts_with(b"words\n"));
    }

    /// A process that a command left behind does not keep the job, even if it is never
    /// silent.
    fn a_process_left_behind_that_goes_on_writing_keeps_no_job(store) {
        store.push("job");
        let script = "(while :; do echo noise; sleep 0.02; done) & echo $! > left; \
                      echo words";
        let line = ["work", "--until-empty", "--exec", "sh", "-c", script];

        let out = store.relq_with(&line).ok();

        assert!(out.contains("words\n"), "{out}");
        assert_eq!(store.count("default", "finished"), 1);
        let left = std::fs::read_to_string(store.file("left")).unwrap();
        let left = rustix::process::Pid::from_raw(left.trim().parse().unwrap()).unwrap();
        // It may have ended with the output of relq.
        let killed = rustix::process::kill_process(left, Signal::KILL);
        assert!(matches!(killed, Ok(()) | Err(rustix::io::Errno::SRCH)), "{killed:?}");
    }

    /// A process that a command left behind can write long after the job has ended, because
    /// its output stays open.
    fn a_process_left_behind_may_write_later(store) {
        store.push("job");
        let script = "(until [ -e go ]; do sleep 0.05; done; echo late; echo later; \
                      touch written) & echo words";
        let mut working = store.relq_with(&["work", "--exec", "sh", "-c", script]).start();
        wait_until("the job is done", || store.count("default", "finished") == 1);

        std::fs::write(store.file("go"), "").unwrap();

        wait_until("it has written", || store.file("written").exists());
        working.signal(Signal::TERM);
        assert!(working.end().out.starts_with(b"words\n"));
    }
}

/// When the output of relq is closed, a command that writes ends, as in a shell's pipe.
#[test]
fn a_command_ends_when_the_output_of_relq_is_closed() {
    let store = Store::sqlite();
    store.push("job --max-attempts 1");
    let line = [
        "work",
        "--until-empty",
        "--concurrency",
        "2",
        "--exec",
        "sh",
        "-c",
        "yes >/dev/stdout",
    ];
    let ended = store.relq_with(&line).start_without_output().end();
    assert_eq!(ended.code, Some(3), "{}", ended.err);
}
