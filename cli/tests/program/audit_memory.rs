//! Tests that `relq audit` of a large queue needs no more memory than of a small one.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use relq_conformance::server::Server;

use crate::relq::{Store, eventually};

/// How many KiB more memory the audit of the larger queue may use. The audit sorts some
/// records in memory and reads pages of the store, so its memory grows a little.
const MOST_GROWTH_KIB: u64 = 24 * 1024;

/// How long before the end of an audit the last reading of its memory may be: the audit of
/// a small queue takes some 20 ms. For a longer one, it may be this part of its time.
const UNWATCHED: Duration = Duration::from_millis(5);
const UNWATCHED_PART: u32 = 20;

/// Runs `relq audit` on a queue of `jobs` jobs without problems. Returns the largest
/// resident memory of the process, in KiB.
fn peak_of_audit(store: &Store, jobs: u64) -> u64 {
    let (peak, out) = audit(store);
    let counted = if jobs == 1 { "1 job".to_owned() } else { format!("{jobs} jobs") };
    assert_eq!(out, format!("{counted} looked at, 0 problems\n"));
    peak
}

/// Runs `relq audit`. Returns the largest resident memory of the process, in KiB, and
/// its output.
fn audit(store: &Store) -> (u64, String) {
    eventually("an audit is watched to its end", || {
        let mut audit = store.relq("audit").start();
        let peak = peak_of(audit.child.id());
        let ended = audit.end();
        assert_eq!(ended.err, "");
        Some((peak?, String::from_utf8(ended.out).unwrap()))
    })
}

/// Waits for the end of a process. Returns its largest resident memory, in KiB. `None` if
/// the test had no time to watch the process until shortly before its end.
fn peak_of(process: u32) -> Option<u64> {
    let status = format!("/proc/{process}/status");
    let (began, mut last) = (Instant::now(), None);
    // Linux reports the peak only while the process runs. The peak never decreases, so
    // the last value is the largest one.
    loop {
        let now = Instant::now();
        let read = fs::read_to_string(&status).ok();
        let Some(peak) = read.as_deref().and_then(peak_in) else { break };
        last = Some((now, peak));
        thread::sleep(Duration::from_millis(1));
    }
    let (read, peak) = last?;
    let unwatched = read.elapsed();
    let most = UNWATCHED.max(began.elapsed() / UNWATCHED_PART);
    (unwatched < most).then_some(peak)
}

fn peak_in(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Pushes jobs with these numbers. One half is ready; the other half is scheduled, with
/// unique keys.
fn push(store: &Store, numbers: std::ops::Range<u64>) {
    let middle = numbers.start.midpoint(numbers.end);
    let lines = |numbers: std::ops::Range<u64>| {
        numbers.map(|n| format!("{n}\n")).collect::<String>()
    };
    let ready = lines(numbers.start..middle);
    store.relq("push --quiet --file -").input(ready).ok();
    let held = lines(middle..numbers.end);
    store.relq("push --quiet --delay 1h --unique-payload --file -").input(held).ok();
}

fn does_not_grow_with_jobs(store: &Store) {
    push(store, 0..20_000);
    let small = peak_of_audit(store, 20_000);
    push(store, 20_000..200_000);
    let large = peak_of_audit(store, 200_000);
    let growth = large.saturating_sub(small);
    assert!(growth < MOST_GROWTH_KIB, "{small} KiB, then {large} KiB");
}

macro_rules! on_each_backend {
    ($($name:ident: $store:expr,)*) => {$(
        /// R23: the audit of ten times as many jobs needs about as much memory.
        #[test]
        fn $name() {
            does_not_grow_with_jobs(&$store);
        }
    )*};
}

on_each_backend! {
    audit_memory_is_flat_on_circular: Store::on("circular", Server::start()),
    audit_memory_is_flat_on_keyspace: Store::on("keyspace", Server::start()),
    audit_memory_is_flat_on_processing_list: Store::on("processing-list", Server::start()),
    audit_memory_is_flat_on_sqlite: Store::sqlite(),
    audit_memory_is_flat_on_stream: Store::on("stream", Server::start()),
    audit_memory_is_flat_on_zset: Store::on("zset", Server::start()),
}

/// R23: the audit reads the payloads of scheduled jobs only in pages.
#[test]
fn audit_memory_does_not_grow_with_payloads() {
    let store = Store::redis();
    let megabyte = "x".repeat(1024 * 1024);
    let lines = |count| format!("{megabyte}\n").repeat(count);
    store.relq("push --quiet --delay 1h --file -").input(lines(8)).ok();
    let small = peak_of_audit(&store, 8);
    store.relq("push --quiet --delay 1h --file -").input(lines(92)).ok();
    let large = peak_of_audit(&store, 100);
    let growth = large.saturating_sub(small);
    assert!(growth < MOST_GROWTH_KIB, "{small} KiB, then {large} KiB");
}

/// R23: among more leases than fit in the memory of the audit, the audit names the one
/// whose job is missing.
#[test]
fn audit_finds_one_problem_among_many_leases() {
    let mut store = Store::redis();
    store.create();
    store.push("job");
    let small = peak_of_audit(&store, 1);
    let lease = "for n = 1, 100000 do
        local lease = 'w/1700000000000000/nonce-' .. (10000 + n) .. 'p/' .. n
        redis.call('ZADD', KEYS[1], 9e12, lease)
        if n ~= 77777 then redis.call('HSET', KEYS[2], lease, ('x'):rep(200)) end
    end";
    let keys: [&[u8]; 2] = [b"{default}:leased", b"{default}:held"];
    store.server().command(&[b"EVAL", lease.as_bytes(), b"2", keys[0], keys[1]]);

    let (large, out) = audit(&store);

    let problem =
        "lease or entry w/1700000000000000/nonce-87777p/77777 without the other";
    assert_eq!(out, format!("{problem}\n100001 jobs looked at, 1 problem\n"));
    let growth = large.saturating_sub(small);
    assert!(growth < MOST_GROWTH_KIB, "{small} KiB, then {large} KiB");
}
