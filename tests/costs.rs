//! Measures the cost of a job on each Redis backend, in figures that hardly vary
//! between runs. A change that makes a figure worse fails this test, so
//! `docs/patterns.md` stays correct.
//!
//! `COSTS=write cargo test --all-features --test costs` writes the table again.

use std::{
    num::NonZeroU32,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use relq::{
    ClaimRequest, Disposition, JobId, NewJob, Queue, QueueName, Receipt, Settlement,
    WorkerId, capabilities::Capability, environment::Environment,
};
use relq_claim_by_sadd::{BySaddConfig, BySaddQueue};
use relq_conformance::{
    figures::{Figures, FiguresTable},
    server::Server,
};
use relq_timer_buckets::{TimerBucketsConfig, TimerBucketsQueue};

const PAGE: &str = "docs/patterns.md";

/// The names of the example backends in the folder `examples`.
const EXAMPLES: [&str; 2] = ["claim-by-sadd", "timer-buckets"];

/// How many jobs each measurement uses.
const JOBS: u32 = 1000;

/// How many jobs one call handles in the measurements of large calls.
const BATCH: u32 = 100;

const PAYLOAD: usize = 256;

/// The largest allowed difference between a measured figure and the figure in the
/// table. The bytes vary with the number of digits of a counter. The reads vary with
/// how the operating system splits the data of a connection. The commands vary on a
/// backend that chooses a key at random.
const TOLERANCE: f64 = 0.06;

/// Adds up the memory of all keys.
const MEMORY_OF_KEYS: &[u8] = b"local cursor, sum = '0', 0 \
    repeat \
      local page = redis.call('SCAN', cursor, 'COUNT', 1000) \
      for _, key in ipairs(page[2]) do \
        sum = sum + redis.call('MEMORY', 'USAGE', key, 'SAMPLES', 0) \
      end \
      cursor = page[1] \
    until cursor == '0' \
    return sum";

/// The cost of some work for the server, for each job.
#[derive(Clone, Copy)]
struct Cost {
    commands: f64,
    round_trips: f64,
    bytes: f64,
}

/// The columns of the table, each with its unit.
const COLUMNS: [&str; 11] = [
    "push one: commands",
    "round trips",
    "bytes",
    "work one: commands",
    "round trips",
    "bytes",
    "push 100: commands",
    "bytes",
    "work 100: commands",
    "bytes",
    "memory waiting",
];

#[tokio::test]
async fn no_job_costs_more_than_is_written() {
    let mut measured = Figures::new();
    let on_redis = relq::backends().filter(|backend| *backend != "sqlite");
    for backend in on_redis.chain(EXAMPLES) {
        measured.insert(backend.to_owned(), measure(backend).await);
    }
    let table = FiguresTable {
        page: Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE),
        name: "costs",
        columns: &COLUMNS,
        tolerance: |_| TOLERANCE,
        command: "cargo test --all-features --test costs",
    };
    table.check(&measured);
}

/// The columns of the table of kept results, each with its unit.
const RESULT_COLUMNS: [&str; 8] = [
    "push one: commands",
    "bytes",
    "work one: commands",
    "bytes",
    "push 100: bytes",
    "work 100: commands",
    "bytes",
    "memory of a result",
];

/// The size of the results that the jobs of the table of kept results have.
const RESULT: usize = 100;

#[tokio::test]
async fn no_kept_result_costs_more_than_is_written() {
    let mut measured = Figures::new();
    for backend in relq::backends().filter(|backend| *backend != "sqlite") {
        let server = Server::start_on_tcp();
        let queue = open(backend, &server.url()).await;
        if queue.result_queue().is_some() {
            measured
                .insert(backend.to_owned(), measure_results(&server, &*queue).await);
        }
    }
    let table = FiguresTable {
        page: Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE),
        name: "result-costs",
        columns: &RESULT_COLUMNS,
        tolerance: |_| TOLERANCE,
        command: "cargo test --all-features --test costs",
    };
    table.check(&measured);
}

/// Measures what jobs cost that keep a result, in the order of the columns.
async fn measure_results(server: &Server, queue: &dyn Queue) -> Vec<f64> {
    let empty = memory(server);
    let push_one = cost(server, async {
        for _ in 0..JOBS {
            queue.push(&kept(1), None).await.expect("the push is taken");
        }
    })
    .await;
    let done = || Disposition::DoneWith { result: vec![b'r'; RESULT].into() };
    let work_one = cost(server, work_as(queue, 1, done)).await;
    let push_many = cost(server, async {
        for _ in 0..JOBS / BATCH {
            queue.push(&kept(BATCH), None).await.expect("the push is taken");
        }
    })
    .await;
    let work_many = cost(server, work_as(queue, BATCH, done)).await;
    let memory = (memory(server) - empty) / f64::from(2 * JOBS);
    vec![
        push_one.commands,
        push_one.bytes,
        work_one.commands,
        work_one.bytes,
        push_many.bytes,
        work_many.commands,
        work_many.bytes,
        memory,
    ]
}

/// The columns of the table of followers, each with its unit.
const FOLLOWER_COLUMNS: [&str; 8] = [
    "push a follower: commands",
    "bytes",
    "push 100: commands",
    "bytes",
    "end of a leader of one: commands",
    "bytes",
    "of a leader of 100: commands",
    "memory of a follower",
];

#[tokio::test]
async fn no_follower_costs_more_than_is_written() {
    let mut measured = Figures::new();
    for backend in relq::backends().filter(|backend| *backend != "sqlite") {
        let server = Server::start_on_tcp();
        let queue = open(backend, &server.url()).await;
        if queue.capabilities().supports(Capability::Followers) {
            let costs = measure_followers(&server, &*queue).await;
            measured.insert(backend.to_owned(), costs);
        }
    }
    let table = FiguresTable {
        page: Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE),
        name: "follower-costs",
        columns: &FOLLOWER_COLUMNS,
        tolerance: |_| TOLERANCE,
        command: "cargo test --all-features --test costs",
    };
    table.check(&measured);
}

/// Measures what followers cost, each figure for one follower, in the order of the columns:
/// first 1,000 leaders with one follower each, then 10 leaders with 100 each. The end of a
/// leader is measured from its claim, with the other leaders of its call.
async fn measure_followers(server: &Server, queue: &dyn Queue) -> Vec<f64> {
    push_leaders(queue, JOBS).await;
    let empty = memory(server);
    let push_one = cost(server, async {
        for leader in 0..JOBS {
            push_followers(queue, leader, 1).await;
        }
    })
    .await;
    let memory = (memory(server) - empty) / f64::from(JOBS);
    let end_of_one = cost(server, end_ready(queue, JOBS)).await;
    end_ready(queue, JOBS).await;

    push_leaders(queue, JOBS / BATCH).await;
    let push_many = cost(server, async {
        for leader in 0..JOBS / BATCH {
            push_followers(queue, leader, BATCH).await;
        }
    })
    .await;
    let end_of_many = cost(server, end_ready(queue, JOBS / BATCH)).await;
    assert_eq!(queue.stats().await.expect("the store answers").ready, u64::from(JOBS));
    vec![
        push_one.commands,
        push_one.bytes,
        push_many.commands,
        push_many.bytes,
        end_of_one.commands,
        end_of_one.bytes,
        end_of_many.commands,
        memory,
    ]
}

/// The id of a leader. The number of leaders makes it new in each measurement.
fn leader_id(leader: u32, of: u32) -> JobId {
    JobId::new(format!("leader-{of}-{leader}")).expect("the id is allowed")
}

async fn push_leaders(queue: &dyn Queue, count: u32) {
    for leader in 0..count {
        let job = jobs(1).remove(0).id(leader_id(leader, count));
        queue.push(&[job], None).await.expect("the push is taken");
    }
}

/// Pushes `count` followers of a leader in one call, as one of `JOBS / count` leaders.
async fn push_followers(queue: &dyn Queue, leader: u32, count: u32) {
    let leader = leader_id(leader, JOBS / count);
    let followers: Vec<_> =
        jobs(count).into_iter().map(|job| job.after(leader.clone())).collect();
    queue.push(&followers, None).await.expect("the push is taken");
}

/// Claims `count` jobs that are ready, one at a time, and finishes each.
async fn end_ready(queue: &dyn Queue, count: u32) {
    let worker = WorkerId::new("worker").expect("the id is allowed");
    let ask = ClaimRequest::new(worker, Duration::from_secs(600));
    for _ in 0..count {
        let claimed = queue.claim(&ask).await.expect("the claim is answered");
        let receipt = claimed.into_iter().next().expect("a job is ready").receipt;
        let done = [Settlement::new(receipt, Disposition::Done)];
        queue.settle(&done).await.expect("the settlement is taken");
    }
}

fn kept(count: u32) -> Vec<NewJob> {
    let kept = |job: NewJob| job.keep_result(Duration::from_secs(24 * 3600));
    jobs(count).into_iter().map(kept).collect()
}

/// Measures all figures of a backend, in the order of the columns.
async fn measure(backend: &str) -> Vec<f64> {
    let server = Server::start_on_tcp();
    let queue = open(backend, &server.url()).await;
    let queue = &*queue;

    let push_one = cost(&server, async {
        for _ in 0..JOBS {
            queue.push(&jobs(1), None).await.expect("the push is taken");
        }
    })
    .await;
    let work_one = cost(&server, work(queue, 1)).await;
    let push_many = cost(&server, async {
        for _ in 0..JOBS / BATCH {
            queue.push(&jobs(BATCH), None).await.expect("the push is taken");
        }
    })
    .await;
    let work_many = cost(&server, work(queue, BATCH)).await;
    let waiting = waiting(&server, queue).await;

    // Leave out the round trips of large calls, because the operating system decides
    // into how many reads it splits a large call.
    let of_one = |cost: Cost| [cost.commands, cost.round_trips, cost.bytes];
    let of_many = |cost: Cost| [cost.commands, cost.bytes];
    let ones = [push_one, work_one].into_iter().flat_map(of_one);
    let many = [push_many, work_many].into_iter().flat_map(of_many);
    ones.chain(many).chain([waiting]).collect()
}

async fn open(backend: &str, url: &str) -> Arc<dyn Queue> {
    let name = QueueName::new("costs").expect("the name is allowed");
    let (environment, address) = (Environment::default(), "the address is a URL");
    let opened: Result<Arc<dyn Queue>, _> = match backend {
        "claim-by-sadd" => {
            let config = BySaddConfig::new(url, environment).expect(address);
            BySaddQueue::connect(config, name).await.map(|queue| Arc::new(queue) as _)
        }
        "timer-buckets" => {
            let config = TimerBucketsConfig::new(url, environment).expect(address);
            TimerBucketsQueue::connect(config, name)
                .await
                .map(|queue| Arc::new(queue) as _)
        }
        _ => {
            let url = format!("{backend}+{url}");
            return relq::connect(&url, &name).await.expect("the queue opens");
        }
    };
    opened.expect("the queue opens")
}

/// Measures how many bytes of memory a waiting job takes. The queue has so many jobs
/// that the memory of the clients does not matter.
async fn waiting(server: &Server, queue: &dyn Queue) -> f64 {
    const MANY: u32 = 20_000;
    let empty = memory(server);
    for _ in 0..MANY / BATCH {
        queue.push(&jobs(BATCH), None).await.expect("the push is taken");
    }
    (memory(server) - empty) / f64::from(MANY)
}

fn jobs(count: u32) -> Vec<NewJob> {
    (0..count).map(|_| NewJob::new(vec![b'x'; PAYLOAD])).collect()
}

async fn work(queue: &dyn Queue, batch: u32) {
    work_as(queue, batch, || Disposition::Done).await;
}

/// Finishes all jobs. Each call settles the jobs that the previous call claimed, and
/// claims more. It is made in a millisecond of its own: the scripts write some records only
/// when the time that they hold has changed, and a slow machine must cost what a fast one does.
async fn work_as(queue: &dyn Queue, batch: u32, done: impl Fn() -> Disposition) {
    let worker = WorkerId::new("worker").expect("the id is allowed");
    let max = NonZeroU32::new(batch).expect("not zero");
    let ask = ClaimRequest::new(worker, Duration::from_secs(600)).max(max);
    let done = |receipt: Receipt| Settlement::new(receipt, done());
    let (mut held, mut worked) = (Vec::new(), 0);
    loop {
        another_millisecond().await;
        let both = queue.settle_and_claim(&held, &ask).await;
        both.settled.expect("the settlements are taken");
        let claimed = both.claimed.expect("the claim is answered");
        worked += claimed.len();
        held = claimed.into_iter().map(|delivery| done(delivery.receipt)).collect();
        if held.is_empty() {
            break;
        }
    }
    assert_eq!(worked, JOBS as usize, "each job was claimed once");
}

/// Waits until the clock shows another millisecond.
async fn another_millisecond() {
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let before = now().as_millis();
    while now().as_millis() == before {
        tokio::task::yield_now().await;
    }
}

/// Measures the cost of `work`. The cost of the measurement itself is subtracted.
async fn cost(server: &Server, work: impl Future<Output = ()>) -> Cost {
    let looking = {
        let before = Counters::read(server);
        Counters::read(server).minus(before)
    };
    let before = Counters::read(server);
    work.await;
    let spent = Counters::read(server).minus(before).minus(looking);
    let per_job = |figure: f64| figure / f64::from(JOBS);
    Cost {
        commands: per_job(spent.commands),
        round_trips: per_job(spent.reads),
        bytes: per_job(spent.bytes),
    }
}

#[derive(Clone, Copy)]
struct Counters {
    commands: f64,
    /// How often the server read data from a connection.
    reads: f64,
    bytes: f64,
}

impl Counters {
    fn read(server: &Server) -> Self {
        let info = info(server, "stats");
        let number = |name: &str| number_in(&info, name);
        Self {
            commands: number("total_commands_processed"),
            reads: number("total_reads_processed"),
            bytes: number("total_net_input_bytes") + number("total_net_output_bytes"),
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            commands: self.commands - other.commands,
            reads: self.reads - other.reads,
            bytes: self.bytes - other.bytes,
        }
    }
}

/// How many bytes all keys take. The memory that the server reports as a whole varies with the
/// buffers of its clients.
fn memory(server: &Server) -> f64 {
    let answer = server.command(&[b"EVAL", MEMORY_OF_KEYS, b"0"]);
    let answer = String::from_utf8(answer).expect("the server speaks UTF-8");
    let sum = answer.trim().strip_prefix(':').map(str::parse);
    sum.expect("the server answers a number").expect("it is a number")
}

fn info(server: &Server, section: &str) -> String {
    let answer = server.command(&[b"INFO", section.as_bytes()]);
    String::from_utf8(answer).expect("the server speaks UTF-8")
}

fn number_in(info: &str, name: &str) -> f64 {
    let mut lines = info.lines().filter_map(|line| line.split_once(':'));
    let value = lines.find(|(key, _)| *key == name).map(|(_, value)| value);
    let value = value.unwrap_or_else(|| panic!("the server tells {name}"));
    value.trim().parse().expect("it is a number")
}
