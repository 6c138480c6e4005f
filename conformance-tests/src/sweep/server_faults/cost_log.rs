//! Measures what the operations of a test cost the server, and fails the test if a
//! request costs too much.

use std::{collections::BTreeMap, time::Duration};

use relq_core::{
    Delivery, Queue, Settlement,
    operator::{JobState, PeekRequest},
    outcome::{Extended, Settled},
};

use super::fixture::{many, worker_id};
use crate::server::Server;

/// The address of a script in an entry of the slow log.
const OF_SCRIPT: &[u8] = b"$3\r\n?:0\r\n";

/// How often a test runs before it fails. If the machine stands still, the system may count
/// that as processor time of the server.
const RUNS: usize = 3;

/// The operations that cost more than allowed, each with its costs.
pub(super) type Excesses = BTreeMap<String, String>;

/// Runs a test on a fresh server, and again if an operation costs too much. Fails if the
/// same operation costs too much in all of [`RUNS`] runs.
pub(super) async fn assert_within_limits(mut run: impl AsyncFnMut() -> Excesses) {
    let mut excesses = run().await;
    for _ in 1..RUNS {
        if excesses.is_empty() {
            break;
        }
        let again = run().await;
        excesses.retain(|operation, _| again.contains_key(operation));
    }
    assert_eq!(excesses, Excesses::new());
}

/// A script whose processor time tells how fast the machine is at the moment.
const YARDSTICK: &[u8] = b"for i = 1, 1000 do redis.call('HSET', KEYS[1], i, i) end
    return redis.call('DEL', KEYS[1])";

/// The processor time of [`YARDSTICK`] at the full speed of the machine for which the limits
/// are written: the shortest of 400 runs on Redis 7.0 and two virtual processors. The median
/// of a busy hour was 5 ms.
const YARDSTICK_CPU: Duration = Duration::from_micros(3400);

/// The highest allowed cost of one request, on average over an operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct MostCost {
    /// The server's processor time. Unlike the time on a clock, it does not count the
    /// time of other programs. It is higher on a slow or busy machine: see [`YARDSTICK`].
    pub(super) cpu: Duration,
    /// The size of the reply in bytes.
    pub(super) bytes: u64,
}

/// Measures what each operation costs the server.
pub(super) struct CostLog<'a> {
    server: &'a Server,
    most: MostCost,
    excesses: Excesses,
}

/// Counters of the server, which grow from its start. The difference of two readings is
/// the cost of an operation.
struct Cost {
    cpu: Duration,
    bytes: u64,
}

impl<'a> CostLog<'a> {
    /// Makes the server write each request into its slow log, so that they can be
    /// counted.
    pub(super) fn new(server: &'a Server, most: MostCost) -> Self {
        for setting in
            [["slowlog-log-slower-than", "0"], ["slowlog-max-len", "1000000"]]
        {
            let [name, value] = setting.map(str::as_bytes);
            let reply = server.command(&[b"CONFIG", b"SET", name, value]);
            assert_eq!(reply, b"+OK\r\n", "{setting:?}");
        }
        Self { server, most, excesses: Excesses::new() }
    }

    /// Carries out an operation, and records it if its requests cost too much on
    /// average.
    pub(super) async fn during<T>(
        &mut self,
        operation: &str,
        calls: impl Future<Output = T>,
    ) -> T {
        // To empty a long log and to read it take time, too.
        self.server.command(&[b"SLOWLOG", b"RESET"]);
        let before = self.cost();
        let result = calls.await;
        let after = self.cost();
        let requests = self.requests();
        let cpu = (after.cpu - before.cpu) / requests;
        let bytes = (after.bytes - before.bytes) / u64::from(requests);
        let is_slow =
            cpu > self.most.cpu && cpu > self.most.cpu.mul_f64(self.slowness());
        if is_slow || bytes > self.most.bytes {
            let costs = format!(
                "{requests} requests, each of {cpu:?} of the server's processor time and \
                 {bytes} bytes of reply"
            );
            self.record(operation, costs);
        }
        result
    }

    /// The number of requests since the slow log was emptied. Before version 7.2 a server
    /// also logs the commands that scripts send; their client has the address `?:0`.
    fn requests(&self) -> u32 {
        let log = self.server.command(&[b"SLOWLOG", b"GET", b"-1"]);
        let of_scripts = log.windows(OF_SCRIPT.len()).filter(|part| *part == OF_SCRIPT);
        let entries = log
            .strip_prefix(b"*")
            .and_then(|log| log.split(|byte| *byte == b'\r').next());
        let entries =
            entries.and_then(|count| str::from_utf8(count).ok()?.parse().ok());
        let entries: usize = entries.expect("SLOWLOG GET answers with a list");
        // Three of them are of this log: the command that has emptied it, and the two that
        // have read the counters.
        let requests = (entries - of_scripts.count() - 3).max(1);
        u32::try_from(requests).expect("no test sends so many requests")
    }

    fn cost(&self) -> Cost {
        let info = self.server.command(&[b"INFO", b"cpu", b"stats"]);
        let info = String::from_utf8_lossy(&info).into_owned();
        let field = |name: &str| {
            let of = |line: &str| {
                line.strip_prefix(name)?.strip_prefix(':').map(str::to_owned)
            };
            info.lines().find_map(of).unwrap_or_else(|| panic!("INFO has {name}"))
        };
        let seconds =
            |name| Duration::from_secs_f64(field(name).parse().expect("a time"));
        let bytes = field("total_net_output_bytes").parse().expect("a number");
        let cpu =
            seconds("used_cpu_user_main_thread") + seconds("used_cpu_sys_main_thread");
        Cost { cpu, bytes }
    }

    /// How many times as long as [`YARDSTICK_CPU`] the server takes now for
    /// [`YARDSTICK`], and at least 1. It is the median of several runs.
    fn slowness(&self) -> f64 {
        let mut times: Vec<_> = (0..5)
            .map(|_| {
                let before = self.cost().cpu;
                self.server.command(&[b"EVAL", YARDSTICK, b"1", b"yardstick"]);
                self.cost().cpu - before
            })
            .collect();
        times.sort();
        times[times.len() / 2].div_duration_f64(YARDSTICK_CPU).max(1.0)
    }

    /// Records that an operation has exceeded a limit.
    pub(super) fn record(&mut self, operation: &str, costs: String) {
        self.excesses.insert(operation.to_owned(), costs);
    }

    /// The operations that have exceeded a limit.
    pub(super) fn excesses(self) -> Excesses {
        self.excesses
    }
}

pub(super) async fn extend(queue: &dyn Queue, held: &[Delivery]) {
    let receipts: Vec<_> = held.iter().map(|one| one.receipt.clone()).collect();
    let lease = Duration::from_secs(60);
    for extended in
        queue.extend(&worker_id(), &receipts, lease).await.expect("extended")
    {
        assert!(matches!(extended, Extended::Until(_)), "{extended:?}");
    }
}

pub(super) async fn settle(queue: &dyn Queue, settlements: &[Settlement]) {
    for settled in queue.settle(settlements).await.expect("settled") {
        assert_eq!(settled, Settled::Applied);
    }
}

/// Reads all jobs in a state, and returns the number of jobs on each page.
pub(super) async fn peek(queue: &dyn Queue, state: JobState) -> Vec<usize> {
    let (mut pages, mut ask) = (Vec::new(), PeekRequest::new(state, many(100)));
    loop {
        let page = queue.peek(&ask).await.expect("peeked");
        pages.push(page.jobs.len());
        let Some(next) = page.next else { return pages };
        ask = ask.after(next);
    }
}
