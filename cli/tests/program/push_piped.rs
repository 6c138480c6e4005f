//! `relq push` and `relq batch submit` read standard input when it is a pipe, and
//! `relq push --at`.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::{on_each_store, relq::Store};

on_each_store! {
    fn piped_lines_are_pushed_without_an_option(store) {
        assert_eq!(store.relq("push --quiet").input("a\nb\n").ok(), "2\n");
        assert_eq!(store.relq("push -f - --quiet").input("c\n").ok(), "1\n");
        assert_eq!(store.relq("push --quiet --null").input("d\0e").ok(), "2\n");
        assert_eq!(store.count("default", "ready"), 5);
        let error = store.relq("push").fails(2);
        assert!(error.contains("nothing to push: give payloads"), "{error}");
        // Given payloads are all that is pushed.
        assert_eq!(store.relq("push --quiet x").input("f\ng\n").ok(), "1\n");
        assert_eq!(store.relq("push --quiet -f -").ok(), "0\n", "an empty file");
    }

    /// A command of a worker pushes the lines of its payload.
    fn a_command_pushes_the_lines_of_its_payload(store) {
        store.relq("push --null").input("a\nb\n").ok();
        let relq = env!("CARGO_BIN_EXE_relq");
        store.relq(&format!("work --until-empty -- {relq} push -q other")).ok();
        assert_eq!(store.count("other", "ready"), 2);
    }

    fn a_job_is_ready_at_its_time(store) {
        store.relq("push --id later --at 2099-12-24T18:00:00Z a").ok();
        store.relq_with(&["push", "--id", "past", "--at", "1999-12-24 18:00", "b"]).ok();
        let later = &store.relq("peek --state scheduled --json").json()[0];
        assert_eq!(later["id"], "later");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
        let due = later["due_ms"].as_i64().unwrap();
        assert!(i128::from(due) > i128::try_from(now).unwrap(), "{due}");
        let at: i64 = 4_101_818_400_000;
        assert!((due - at).abs() < 60_000, "{due} is not {at}");
        assert_eq!(store.relq("peek --json").json()[0]["id"], "past");
    }
}

/// A file is read in place of a pipe, and `/dev/null` holds nothing.
#[test]
fn a_file_as_standard_input_is_read() {
    let store = Store::sqlite();
    std::fs::write(store.file("lines"), "a\nb\n").unwrap();
    std::fs::write(store.file("batches"), "0:x\n").unwrap();
    let relq =
        |line: &str| store.shell(&format!("\"$0\" {line}")).env("RELQ_URL", &store.url);

    assert_eq!(relq("push -q from --quiet <lines").ok(), "2\n");
    assert_eq!(relq("batch submit --id b <batches").ok(), "b\n");
    relq("pause -q from").ok();
    relq("export -q from >jobs").ok();
    assert_eq!(relq("import -q to <jobs").ok(), "2 stored\n");

    for command in ["push", "batch submit", "import"] {
        let error = relq(&format!("{command} </dev/null")).fails(2);
        assert!(error.contains("nothing to "), "{command}: {error}");
    }
}

#[test]
fn a_time_without_a_zone_is_local() {
    let store = Store::sqlite();
    let push = store.relq("push --at 2099-07-01T12:00 a").env("TZ", "America/New_York");
    push.ok();
    let due = store.relq("peek --state scheduled --json").json()[0]["due_ms"].as_i64();
    let noon_in_new_york = 4_086_604_800_000;
    assert!((due.unwrap() - noon_in_new_york).abs() < 60_000, "{due:?}");
}

#[test]
fn a_single_payload_that_was_not_stored_is_no_line() {
    let store = Store::redis();
    let mut gone = Store::redis();
    gone.server().kill();
    let error = store.relq_with(&["push", "--after", "no-such-job", "a"]).fails(1);
    assert!(error.contains("nothing was stored") && !error.contains("line"), "{error}");
    let error = gone.relq("push a").fails(1);
    assert!(error.contains("the store is unavailable"), "{error}");
}
