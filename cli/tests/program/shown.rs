//! Untrusted text that is shown to an operator cannot control the terminal, and is cut
//! to its width.

use std::{fs::File, io::Read, os::fd::OwnedFd};

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{Winsize, tcsetwinsize},
};

use crate::{on_each_store, relq::Store};

/// Characters that a terminal would interpret (a control sequence, a change of
/// direction) or not show (a zero-width space, a byte order mark, a filler, a tag).
const NASTY: &str = "a\x1b[2Jb\u{202e}c\u{200b}d\u{feff}e\u{3164}f\u{e0041}g\u{9b}h";
const SHOWN: &str =
    "a\\u{1b}[2Jb\\u{202e}c\\u{200b}d\\u{feff}e\\u{3164}f\\u{e0041}g\\u{9b}h";

/// The characters of [`NASTY`] that a name may contain: all but control characters.
const NASTY_NAME: &str = "a\u{202e}b\u{200b}c";
const SHOWN_NAME: &str = "a\\u{202e}b\\u{200b}c";

#[track_caller]
fn assert_tame(text: &str) {
    let is_nasty = |c: char| (c.is_control() && c != '\n') || NASTY_NAME.contains(c);
    let found: String =
        text.chars().filter(|c| is_nasty(*c) && !c.is_ascii()).collect();
    assert!(found.is_empty(), "{found:?} in {text:?}");
    assert!(!text.contains(['\x1b', '\r', '\x07']), "{text:?}");
}

on_each_store! {
    fn a_payload_is_shown_with_escapes_and_is_exact_as_json(store) {
        store.relq("push --file - --null").input(NASTY).ok();
        let text = store.relq("peek").ok();
        assert!(text.contains(SHOWN), "{text}");
        assert_tame(&text);
        assert_eq!(store.relq("peek --json").json()[0]["payload"], NASTY);
    }

    fn text_of_any_script_is_shown_as_it_is(store) {
        let text = "Zürich 東京　都 हिन्दी e\u{301} ไทย עברית 🎉 \\ \"quoted\"";
        store.relq("push --file -").input(text).ok();
        let shown = store.relq("peek").ok();
        assert!(shown.contains(text), "{shown}");
    }

    fn an_error_is_shown_with_escapes(store) {
        store.relq("push --file - --null --max-attempts 1").input(NASTY).ok();
        let line = ["work", "--until-empty", "--exec", "sh", "-c", "cat >&2; exit 1"];
        store.relq_with(&line).fails(3);
        let text = store.relq("dead list").ok();
        assert!(text.contains(&format!("exit status: 1: {SHOWN}")), "{text}");
        assert_tame(&text);
        assert_tame(&store.relq("dead list --group").ok());
        let error = store.relq("dead list --json").json()[0]["last_error"].clone();
        assert!(error.as_str().unwrap().ends_with(NASTY), "{error}");
    }

    fn a_waiting_job_is_listed_with_its_last_error(store) {
        store.push("job");
        let line = ["work", "--until-empty", "--retry", "60years", "--", "false"];
        store.relq_with(&line).fails(4);
        let text = store.relq("peek --state scheduled").ok();
        assert!(text.ends_with("\n  exit status: 1\n"), "{text}");
    }

    fn names_are_shown_with_escapes(store) {
        let on = |line: &[&str]| {
            store.relq_with(&[&["-q", NASTY_NAME], line].concat()).run()
        };
        assert_eq!(on(&["push", "--id", NASTY_NAME, "job"]).code, Some(0));
        for line in [
            &["stats"][..],
            &["peek"],
            &["result", NASTY_NAME],
            &["cancel", NASTY_NAME],
            &["purge"],
            &["pause"],
            &["work", "--exec", "true", "--until-empty"],
        ] {
            let ended = on(line);
            let said = String::from_utf8(ended.out).unwrap() + &ended.err;
            assert_tame(&said);
            let names_nothing = line == ["pause"];
            assert!(said.contains(SHOWN_NAME) || names_nothing, "{line:?}: {said}");
        }
    }

    fn the_log_is_written_with_escapes(store) {
        let push = ["push", "--id", NASTY_NAME, "--max-attempts", "1", "job"];
        store.relq_with(&push).ok();
        let work = store.relq("work --until-empty --exec false").env("RELQ_LOG", "trace");
        let ended = work.run();
        assert_eq!(ended.code, Some(3), "{}", ended.err);
        assert!(ended.err.contains(&format!("id={SHOWN_NAME}")), "{}", ended.err);
        assert_tame(&ended.err);
    }

    /// A long id takes half of the line at most, so that the rest of it is seen.
    fn a_long_id_leaves_room_for_the_payload(store) {
        let id = "long-id-".repeat(15);
        store.relq_with(&["push", "--id", &id, "payload"]).ok();
        let text = store.relq("peek").ok();
        let row = text.lines().last().unwrap();
        assert!(row.contains('…') && row.ends_with("payload"), "{text}");
        assert_eq!(store.relq("peek --json").json()[0]["id"], id);
    }

    /// Without a terminal, the line is cut at the default width.
    fn a_long_payload_is_cut_to_the_line(store) {
        let long = ["x".repeat(70_000), "漢".repeat(70_000), "\x1b".repeat(70_000)];
        store.relq("push --file - --max-attempts 1").input(long.join("\n")).ok();
        store.push("short --max-attempts 1");
        for (state, line) in [("ready", "peek"), ("dead", "dead list")] {
            if state == "dead" {
                store.relq("work --until-empty --exec false").fails(3);
            }
            let text = store.relq(line).ok();
            let cut: Vec<_> = text.lines().filter(|line| line.ends_with('…')).collect();
            assert_eq!(cut.len(), 3, "{text}");
            let columns = |line: &str| -> usize {
                line.chars().map(|c| if c == '漢' { 2 } else { 1 }).sum()
            };
            assert!(cut.iter().all(|line| (198..=200).contains(&columns(line))));
            assert!(text.lines().any(|line| line.ends_with("short")), "{text}");
        }
    }
}

/// Control characters in a refused command line are shown as escapes, because a script
/// may have put untrusted text there.
#[test]
fn a_refused_command_line_is_shown_with_escapes() {
    let store = Store::sqlite();
    for line in [
        &["stats", "-q", NASTY][..],
        &["stats", "--url", NASTY],
        &["stats", "--url", "sqlite:no/such/\x1b[2J\u{202e}.db"],
        &[NASTY],
        &["push", "--delay", NASTY, "a"],
        &["push", "--file", NASTY],
        &["batch", "submit", "--file", NASTY],
        &["work", "--exec", NASTY],
    ] {
        let ended = store.relq_with(line).run();
        assert!(matches!(ended.code, Some(1 | 2)), "{line:?}");
        assert_tame(&ended.err);
        assert!(ended.err.contains("\\u{202e}"), "{line:?}: {}", ended.err);
    }
}

#[test]
fn the_help_shows_no_value_of_the_environment() {
    let store = Store::sqlite();
    let help = store.relq("work --help").env("RELQ_QUEUE", NASTY_NAME).ok();
    assert_tame(&help);
}

/// Opens a pseudo-terminal of `columns` columns. Returns the end that shows what is printed,
/// and the end for a program.
fn open_terminal(columns: u16) -> (OwnedFd, File) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
    let size = Winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&ours, size).unwrap();
    let theirs = File::options().read(true).write(true).open(name).unwrap();
    (ours, theirs)
}

/// Runs the program on a pseudo-terminal of `columns` columns. Returns what it prints.
fn on_terminal(store: &Store, line: &[&str], columns: u16) -> String {
    let (ours, theirs) = open_terminal(columns);
    let mut running = store.relq_with(line).start_on(theirs);
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    screen(ours)
}

fn screen(ours: OwnedFd) -> String {
    let mut screen = Vec::new();
    // The read ends with an error when the last process has closed the terminal.
    let _ = File::from(ours).read_to_end(&mut screen);
    String::from_utf8(screen).unwrap().replace("\r\n", "\n")
}

#[test]
fn a_table_is_no_wider_than_the_terminal() {
    let store = Store::sqlite();
    store.relq("push --file -").input(format!("{}\nshort", "漢".repeat(500))).ok();
    let screen = on_terminal(&store, &["peek"], 72);
    let lines: Vec<_> = screen.lines().collect();
    assert_eq!(lines.len(), 3, "{screen}");
    let wide = lines[1].chars().filter(|c| *c == '漢').count();
    let columns = lines[1].chars().count() + wide;
    assert!((71..=72).contains(&columns) && lines[1].ends_with('…'), "{screen}");
}

/// A person who tries a worker out beside its server is not told of a crash of that server,
/// unless the log is on. `ping` says it.
#[test]
fn a_worker_at_a_terminal_beside_its_server_starts_without_a_warning() {
    let store = Store::redis();
    let words = "no append-only file";
    for (log, is_logged) in [("warn", false), ("info", true)] {
        store.push("job");
        let (ours, theirs) = open_terminal(200);
        let worker = store.relq("work --until-empty -- true").env("RELQ_LOG", log);
        let ended = worker.start_with_errors_on(theirs).end();
        assert_eq!(ended.code, Some(0));
        let screen = screen(ours);
        assert!(screen.contains("1 done"), "{screen}");
        assert_eq!(screen.contains(words), is_logged, "{screen}");
    }
}

/// An id is printed unchanged if a program reads the output, and made printable on a
/// terminal.
#[test]
fn an_id_is_printed_as_it_is_where_a_program_reads_it() {
    let store = Store::sqlite();
    let push = ["push", "--id", NASTY_NAME, "job"];
    assert_eq!(store.relq_with(&push).ok(), format!("{NASTY_NAME}\n"));
    assert_eq!(on_terminal(&store, &push, 72), format!("{SHOWN_NAME}\n"));
}
