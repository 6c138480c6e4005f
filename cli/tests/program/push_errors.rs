//! Tests of `relq push` when it is stopped, when its server dies, and when its input is
//! large.

use std::{
    io::Write,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use crate::{
    on_each_store,
    relq::{Running, Store, wait_until},
};

/// The time between two lines: longer than a busy machine takes to store one.
const LATER: Duration = Duration::from_secs(3);

/// Starts a push of standard input. Returns when `lines` lines are stored and the
/// program waits for more.
fn push_of(store: &Store, lines: u32) -> Running {
    store.create();
    let mut push = store.relq("push --quiet --file -").start();
    feed(&mut push, 1..=lines);
    wait_until("the lines are stored", || {
        store.count("default", "ready") == u64::from(lines)
    });
    push
}

fn feed(push: &mut Running, lines: impl Iterator<Item = u32>) {
    let text: String = lines.map(|n| format!("{n}\n")).collect();
    push.child.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
}

on_each_store! {
    fn a_stopped_push_says_how_many_lines_are_stored(store) {
        let mut push = push_of(store, 2500);
        push.signal(Signal::INT);
        let ended = push.end_by_itself();
        assert_eq!(ended.code, Some(1));
        assert!(ended.err.contains("the first 2500 lines are stored"), "{}", ended.err);
        assert!(ended.err.contains("go on with line 2501"), "{}", ended.err);
        assert_eq!(ended.out, b"2500\n");
    }

    /// A line is pushed when it arrives, without waiting for others to fill a call.
    fn a_slow_input_is_pushed_line_by_line(store) {
        let mut push = push_of(store, 1);
        feed(&mut push, 2..=2);
        wait_until("the second is stored", || store.count("default", "ready") == 2);
        assert_eq!(push.end().code, Some(0));
    }

    /// A line that arrives later is due at the time that was given, and not later.
    fn each_line_is_due_at_the_same_time(store) {
        store.create();
        let line = "push --quiet --at 2099-12-24T18:00:00Z --file -";
        let mut push = store.relq(line).start();
        for number in 1..=2 {
            let start = Instant::now();
            wait_until("some time has passed", || start.elapsed() > LATER);
            feed(&mut push, number..=number);
            wait_until("the line is stored", || {
                store.count("default", "scheduled") == u64::from(number)
            });
        }
        assert_eq!(push.end().code, Some(0));
        let jobs = store.relq("peek --state scheduled --json").json();
        let [first, second] = [0, 1].map(|at: usize| jobs[at]["due_ms"].as_i64().unwrap());
        let apart = Duration::from_millis(first.abs_diff(second));
        assert!(apart < LATER / 2, "{apart:?}");
    }

    fn ids_that_nobody_reads_do_not_stop_the_push(store) {
        let mut push = store.relq("push --file -").start_without_output();
        feed(&mut push, 1..=20_000);
        assert_eq!(push.end().code, Some(0));
        assert_eq!(store.count("default", "ready"), 20_000);
    }
}

#[test]
fn a_push_without_its_server_says_how_many_lines_are_stored() {
    let mut store = Store::redis();
    let mut push = push_of(&store, 1500);
    store.server().kill();
    feed(&mut push, 1501..=1600);
    push.wait_for_error("trying again");
    push.signal(Signal::TERM);
    let ended = push.end_by_itself();
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains("the first 1500 lines are stored"), "{}", ended.err);
}

/// A first signal waits for the reply of the call under way, and a second one does not.
#[test]
fn a_second_signal_ends_a_push_without_a_reply() {
    let mut store = Store::redis();
    let mut push = push_of(&store, 3);
    let of_server = |store: &mut Store, words: &[&[u8]]| {
        String::from_utf8_lossy(&store.server().command(words)).into_owned()
    };
    of_server(&mut store, &[b"CLIENT", b"PAUSE", b"600000", b"WRITE"]);
    feed(&mut push, 4..=5);
    wait_until("the call is under way", || {
        of_server(&mut store, &[b"INFO", b"clients"]).contains("blocked_clients:1")
    });
    push.signal(Signal::INT);
    push.signal(Signal::TERM);
    let ended = push.end_by_itself();
    assert_eq!(ended.code, Some(1));
    assert!(ended.err.contains("by a second signal"), "{}", ended.err);
    assert!(ended.err.contains("the first 3 lines are stored"), "{}", ended.err);
    assert!(
        ended.err.contains("it is not known whether lines 4 to 5 are stored"),
        "{}",
        ended.err
    );
}

/// The lines of one read go to several parts of the queue by several calls. If a later call
/// fails, those before it have stored their lines.
#[test]
fn a_push_to_several_parts_says_how_many_lines_are_stored() {
    let mut store = Store::redis();
    store.url.push_str("?partitions=3");
    let lines = |numbers: std::ops::Range<u32>| {
        numbers.map(|number| format!("{number}\n")).collect::<String>()
    };
    let push = "push --unique-payload --file -";
    store.relq(push).input(lines(1..31)).ok();
    // From now on the part stores no job with a unique key.
    let keys = b"{default:2}:unique";
    store.server().command(&[b"DEL", keys]);
    store.server().command(&[b"SET", keys, b"another client's"]);

    let error = store.relq(push).input(lines(31..61)).fails(1);

    let stored = store.count("default", "ready") - 30;
    assert!((2..30).contains(&stored), "{stored} were stored before: {error}");
    let told = format!("the first {stored} lines are stored, so go on with line ");
    assert!(error.contains(&told), "{stored} lines are stored: {error}");
}

/// The open of a FIFO waits for its writer, and a signal ends the wait.
#[cfg(target_os = "linux")]
#[test]
fn a_push_of_a_fifo_without_a_writer_can_be_stopped() {
    let store = Store::sqlite();
    store.shell("mkfifo lines").ok();
    let mut push = store.relq("push --file lines").start();
    wait_until("it handles signals", || handles(&push, Signal::TERM));

    push.signal(Signal::TERM);

    let ended = push.end_by_itself();
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    let words = "the push was stopped: by a signal; nothing was stored";
    assert!(ended.err.contains(words), "{}", ended.err);
}

/// Whether the program has a handler for this signal.
#[cfg(target_os = "linux")]
fn handles(running: &Running, signal: Signal) -> bool {
    let status = format!("/proc/{}/status", running.child.id());
    let status = std::fs::read_to_string(status).unwrap();
    let handled = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    let handled = u64::from_str_radix(handled.trim(), 16).unwrap();
    handled & (1_u64 << (signal.as_raw() - 1)) != 0
}

/// R4: a call whose reply was lost is repeated, and its jobs are stored once.
#[test]
fn a_push_outlives_its_server_and_stores_each_line_once() {
    let mut store =
        Store::redis_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let mut push = push_of(&store, 10);
    let mut expected = 10;
    for _ in 0..5 {
        // The server may be killed before, while or after it stores the jobs of a call.
        feed(&mut push, expected + 1..=expected + 5000);
        expected += 5000;
        store.server().kill();
        store.server().restart();
    }
    let ended = push.end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_eq!(store.count("default", "ready"), u64::from(expected));

    let line = format!("peek --json --limit {}", expected + 1);
    let jobs = store.relq(&line).json();
    let mut payloads: Vec<u32> = jobs
        .as_array()
        .unwrap()
        .iter()
        .map(|job| job["payload"].as_str().unwrap().parse().unwrap())
        .collect();
    payloads.sort_unstable();
    assert!(payloads.into_iter().eq(1..=expected));
}

#[test]
fn a_line_above_the_limit_ends_the_push_after_those_before_it() {
    let store = Store::sqlite();
    let mut input = b"a\nb\n".to_vec();
    input.resize(65 << 20, b'x');
    let error = store.relq("push --quiet --file -").input(input).fails(1);
    assert!(error.contains("line 3 is longer than"), "{error}");
    assert!(error.contains("the first 2 lines are stored"), "{error}");
    assert_eq!(store.count("default", "ready"), 2);
}

/// Pushes `lines` lines. Returns the largest resident memory of the program, in KiB.
#[cfg(target_os = "linux")]
fn peak_of_a_push(lines: u32) -> u64 {
    let store = Store::sqlite();
    // All lines are stored when this returns, and the program waits for more input.
    let push = push_of(&store, lines);
    let status = format!("/proc/{}/status", push.child.id());
    let status = std::fs::read_to_string(status).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches("kB").trim().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn ten_times_as_many_lines_take_no_more_memory() {
    let (few, many) = (peak_of_a_push(40_000), peak_of_a_push(400_000));
    assert!(many <= few + few / 4, "{few} KiB grew to {many} KiB");
}
