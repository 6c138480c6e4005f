//! Tests of properties that only this pattern has. The conformance suite has the tests
//! that all backends share.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use relq_conformance::server::Server;
use relq_core::{
    operator::{JobState, PageCursor, PeekRequest, Selection},
    outcome::{Pushed, Settled},
    unique::UniqueKey,
    *,
};
use relq_zset::{ZsetConfig, ZsetQueue};
use tokio::runtime::Runtime;

const LEASE: Duration = Duration::from_secs(30);
const LONG: Duration = Duration::from_secs(20);

async fn open(server: &Server, name: &str) -> ZsetQueue {
    let config = ZsetConfig::new(&server.url()).unwrap();
    ZsetQueue::connect(config, QueueName::new(name).unwrap()).await.unwrap()
}

fn ask(worker: &str) -> ClaimRequest {
    ClaimRequest::new(WorkerId::new(worker).unwrap(), LEASE)
}

fn many(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

async fn assert_sound(queue: &ZsetQueue) {
    assert_eq!(queue.audit().await.unwrap().problems, Vec::<String>::new());
}

/// R20: a payload that any client pushes with `LPUSH` is a job.
#[tokio::test]
async fn a_bare_push_wakes_a_waiting_claim_at_once() {
    let server = Server::start();
    let queue = open(&server, "emails").await;
    let asking = ask("w").wait(LONG);
    let start = Instant::now();
    let claim = queue.claim_one(&asking);
    let push = async {
        while !waits(&server) {
            tokio::task::yield_now().await;
        }
        server.command(&[b"LPUSH", b"emails", b"hello"]);
    };

    let (delivery, ()) = tokio::join!(claim, push);

    assert_eq!(&delivery.unwrap().unwrap().payload[..], b"hello");
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    assert_sound(&queue).await;
}

fn waits(server: &Server) -> bool {
    let clients = server.command(&[b"CLIENT", b"LIST"]);
    String::from_utf8_lossy(&clients).contains("cmd=blmove")
}

/// A job that uses every option leaves no key behind after it has ended.
#[tokio::test]
async fn a_job_with_every_option_ends_and_leaves_nothing_behind() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let job = NewJob::new("x")
        .unique(UniqueKey::new("k").unwrap())
        .expires_in(LEASE)
        .priority(Priority::HIGHEST)
        .header("a", "b");
    queue.push_one(job).await.unwrap();

    let first = queue.claim_one(&ask("w")).await.unwrap().unwrap();
    queue.retry(&first.receipt, Duration::ZERO, "no luck").await.unwrap();
    let second = queue.claim_one(&ask("w")).await.unwrap().unwrap();
    assert_eq!(second.attempt(), 2);
    assert_sound(&queue).await;
    assert_eq!(queue.ack(&second.receipt).await.unwrap(), Settled::Applied);

    assert_sound(&queue).await;
    assert_eq!(keys(&server), ["{q}:marker", "{q}:totals", "{q}:wake"]);
}

/// A plain waiting job is stored as one list element and nothing else.
#[tokio::test]
async fn a_thousand_jobs_are_claimed_in_order_and_finished_in_one_call() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let jobs: Vec<_> = (0..1000).map(|n: u32| NewJob::new(n.to_string())).collect();
    queue.push(&jobs, None).await.unwrap();

    let taken = queue.claim(&ask("w").max(many(1000))).await.unwrap();
    let payloads: Vec<_> = taken.iter().map(|d| d.payload.clone()).collect();
    let pushed: Vec<_> = jobs.iter().map(|job| job.payload.clone()).collect();
    assert_eq!(payloads, pushed);

    let done: Vec<_> = taken
        .into_iter()
        .map(|d| Settlement::new(d.receipt, Disposition::Done))
        .collect();
    let settled = queue.settle(&done).await.unwrap();
    assert!(settled.iter().all(|answer| *answer == Settled::Applied));
    let again = queue.settle(&done).await.unwrap();
    assert!(again.iter().all(|answer| *answer == Settled::LeaseLost));
    assert_eq!(queue.stats().await.unwrap().finished, 1000);
    assert_sound(&queue).await;
}

fn keys(server: &Server) -> Vec<String> {
    let answer = server.command(&[b"KEYS", b"*"]);
    let text = String::from_utf8(answer).unwrap();
    let mut keys: Vec<_> = text.lines().skip(2).step_by(2).map(str::to_owned).collect();
    keys.sort();
    keys
}

fn info(server: &Server, section: &str, field: &str) -> u64 {
    let answer = server.command(&[b"INFO", section.as_bytes()]);
    let text = String::from_utf8(answer).unwrap();
    let line =
        text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.unwrap().trim().parse().unwrap()
}

/// Memory use stays within the limits that the README states.
#[tokio::test]
async fn a_waiting_job_costs_little_more_than_a_list_element() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let payload = vec![b'x'; 256];
    let base = info(&server, "memory", "used_memory");
    let jobs = vec![NewJob::new(payload.clone()); 1000];
    for _ in 0..20 {
        queue.push(&jobs, None).await.unwrap();
    }
    let ours = info(&server, "memory", "used_memory") - base;

    let base = info(&server, "memory", "used_memory");
    for _ in 0..20 {
        let plain: Vec<&[u8]> = std::iter::once(&b"LPUSH"[..])
            .chain([&b"plain"[..]])
            .chain(std::iter::repeat_n(&payload[..], 1000))
            .collect();
        server.command(&plain);
    }
    let plain = info(&server, "memory", "used_memory") - base;

    assert!(ours * 100 <= plain * 115, "{ours} bytes against {plain}");
}

/// Concurrent pushes share commands, and each push is stored once.
#[tokio::test]
async fn concurrent_pushes_share_commands() {
    let server = Server::start();
    let queue = Arc::new(open(&server, "q").await);
    server.command(&[b"CONFIG", b"RESETSTAT"]);

    let push = |number: u32| {
        let queue = Arc::clone(&queue);
        async move { queue.push_one(number.to_string().into()).await }
    };
    let pushes: tokio::task::JoinSet<_> = (0..64).map(push).collect();
    let pushed = pushes.join_all().await;

    assert!(pushed.iter().all(|answer| matches!(answer, Ok(Pushed::Stored(_)))));
    assert_eq!(queue.stats().await.unwrap().ready, 64);
    let sent = calls(&server, "lpush");
    assert!((1..=16).contains(&sent), "{sent} commands for 64 pushes");
}

/// A producer that keeps its thread busy does not delay the pushes of other tasks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_producer_holds_up_no_other_push() {
    let server = Server::start();
    let queue = Arc::new(open(&server, "q").await);
    let answered = Arc::new(AtomicUsize::new(0));
    for round in 1..=24 {
        let push = |number: usize| {
            let (queue, answered) = (Arc::clone(&queue), Arc::clone(&answered));
            async move {
                queue.push_one("first".into()).await.unwrap();
                if number == round % 8 {
                    return stay_busy(|| answered.load(SeqCst) == round * 7);
                }
                queue.push_one("second".into()).await.unwrap();
                answered.fetch_add(1, SeqCst);
            }
        };
        let pushes: tokio::task::JoinSet<_> = (0..8).map(push).collect();
        pushes.join_all().await;
    }
}

/// A queue still works after a runtime ended while its pushes were under way.
#[test]
fn pushes_go_on_when_their_runtime_has_ended() {
    let server = Server::start();
    let [first, second] = [(); 2].map(|()| Runtime::new().unwrap());
    let queue = Arc::new(first.block_on(open(&server, "q")));
    server.command(&[b"CLIENT", b"PAUSE", b"60000", b"WRITE"]);
    for _ in 0..3 {
        let queue = Arc::clone(&queue);
        first.spawn(async move { queue.push_one("never told".into()).await });
    }
    let start = Instant::now();
    while !is_held(&server) {
        assert!(start.elapsed() < LONG, "no push is sent");
    }
    first.shutdown_background();
    server.command(&[b"CLIENT", b"UNPAUSE"]);

    let push = async { while queue.push_one("told".into()).await.is_err() {} };
    second.block_on(async { tokio::time::timeout(LONG, push).await.unwrap() });
}

/// Whether the server holds a call that it has not answered yet.
fn is_held(server: &Server) -> bool {
    let clients = server.command(&[b"CLIENT", b"LIST"]);
    String::from_utf8_lossy(&clients).contains("flags=b")
}

/// Keeps the thread busy, so that no other task runs on it.
fn stay_busy(until: impl Fn() -> bool) {
    let start = Instant::now();
    while !until() {
        assert!(start.elapsed() < LONG, "the others wait");
        thread::sleep(Duration::from_millis(1));
    }
}

/// R21: a redrive skips a dead job whose entry was deleted.
#[tokio::test]
async fn a_redrive_ends_also_where_entries_are_gone() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let mut gone = None;
    for payload in ["gone", "kept"] {
        queue.push_one(payload.into()).await.unwrap();
        let held = queue.claim_one(&ask("w")).await.unwrap().unwrap();
        queue.bury(&held.receipt, "never").await.unwrap();
        gone.get_or_insert_with(|| held.job().to_string());
    }
    server.command(&[b"HDEL", b"{q}:jobs", gone.unwrap().as_bytes()]);

    let redriven = tokio::time::timeout(LONG, queue.redrive(&Selection::All)).await;

    assert_eq!(redriven.expect("it ends").unwrap().moved, 1);
}

/// R1, R3: an entry that another client damaged while its job was leased is not dropped
/// when the lease ends. It becomes a dead letter, like an entry that was damaged
/// before.
#[tokio::test]
async fn a_leased_entry_that_was_damaged_is_not_dropped() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    queue.push_one("x".into()).await.unwrap();
    let short =
        ClaimRequest::new(WorkerId::new("w").unwrap(), Duration::from_millis(1));
    queue.claim_one(&short).await.unwrap().unwrap();
    let held = server.command(&[b"HKEYS", b"{q}:held"]);
    let lease = String::from_utf8(held).unwrap().lines().nth(2).unwrap().to_owned();
    let damaged = b"\xf5RQ\x01broken";
    server.command(&[b"HSET", b"{q}:held", lease.as_bytes(), damaged]);

    let start = Instant::now();
    while queue.recover(many(10)).await.unwrap().requeued == 0 {
        assert!(start.elapsed() < LONG, "the lease does not end");
    }
    assert!(queue.claim_one(&ask("w")).await.unwrap().is_none());

    let dead = operator::PeekRequest::new(operator::JobState::Dead, many(10));
    let page = queue.peek(&dead).await.unwrap();
    let payloads: Vec<_> = page.jobs.iter().map(|job| &job.payload[..]).collect();
    assert_eq!(payloads, [damaged]);
    assert_sound(&queue).await;
}

/// R31: a job whose entry another client has damaged or removed is listed and found by its
/// id, in its state and with the bytes that are left. The other jobs are shown as always.
#[tokio::test]
async fn a_damaged_entry_is_shown() {
    let broken: &[u8] = b"\xf5RQ\x01broken";
    for damage in [Some(broken), None] {
        let server = Server::start();
        let queue = open(&server, "q").await;
        for state in STATES {
            store_pair(&queue, state).await;
            damage_first(&server, state, damage);
            are_shown(&queue, state, damage.unwrap_or_default()).await;
        }
    }
}

/// The states whose jobs have an entry in a hash: those of this pattern are ready jobs of
/// another priority than the normal one.
const STATES: [JobState; 4] =
    [JobState::Scheduled, JobState::Ready, JobState::Dead, JobState::Leased];

fn name_in(state: JobState, number: u32) -> JobId {
    JobId::new(format!("{}-{number}", state.as_str())).unwrap()
}

/// Stores two jobs in a state, whose ids say which one it is.
async fn store_pair(queue: &ZsetQueue, state: JobState) {
    for number in [1, 2] {
        let mut job = NewJob::new("payload").id(name_in(state, number));
        job.priority = Priority::LOWEST;
        if state == JobState::Scheduled {
            job.delay = LEASE;
        }
        if matches!(state, JobState::Dead | JobState::Leased) {
            job.priority = Priority::HIGHEST;
        }
        queue.push_one(job).await.unwrap();
        if matches!(state, JobState::Dead | JobState::Leased) {
            let held = queue.claim_one(&ask("w")).await.unwrap().unwrap();
            if state == JobState::Dead {
                queue.bury(&held.receipt, "never").await.unwrap();
            }
        }
    }
}

/// Replaces the entry of the first job of a state, or removes it.
fn damage_first(server: &Server, state: JobState, damage: Option<&[u8]>) {
    let id = name_in(state, 1);
    let (key, field) = match state {
        JobState::Leased => {
            let fields = server.command(&[b"HKEYS", b"{q}:held"]);
            let fields = String::from_utf8_lossy(&fields).into_owned();
            let lease = fields.lines().find(|line| line.ends_with(id.as_str()));
            ("{q}:held", lease.unwrap().to_owned())
        }
        _ => ("{q}:jobs", id.to_string()),
    };
    let (key, field) = (key.as_bytes(), field.as_bytes());
    match damage {
        Some(bytes) => server.command(&[b"HSET", key, field, bytes]),
        None => server.command(&[b"HDEL", key, field]),
    };
}

/// Asserts that both jobs of a state are listed in both orders, and that the first one is
/// found by its id.
async fn are_shown(queue: &ZsetQueue, state: JobState, left: &[u8]) {
    let ask = PeekRequest::new(state, many(10));
    for ask in [ask.clone(), ask.clone().newest_first(), ask.outline()] {
        let page = queue.peek(&ask).await.unwrap();
        let mut ids: Vec<_> = page.jobs.iter().map(|job| job.id.clone()).collect();
        ids.sort();
        let wanted = [1, 2].map(|number| Some(name_in(state, number)));
        assert_eq!(ids, wanted, "{ask:?}");
    }
    let inspect = queue.inspect_queue().unwrap();
    let found = inspect.job(&name_in(state, 1)).await.unwrap();
    // Without its entry, a leased job looks like one that has just ended.
    if state == JobState::Leased && left.is_empty() {
        return;
    }
    let operator::JobLookup::Stored(record) = found else {
        panic!("{state:?}: {found:?}")
    };
    assert_eq!(record.job.id, Some(name_in(state, 1)));
    assert_eq!(record.job.detail.state(), state);
    assert_eq!(&record.job.payload[..], left);
    let other = inspect.job(&name_in(state, 2)).await.unwrap();
    let operator::JobLookup::Stored(record) = other else {
        panic!("{state:?}: {other:?}")
    };
    assert_eq!(record.job.payload, "payload");
}

/// R33: the record of a worker that was released is removed, and not only left out of the
/// list, from which no later step would find it.
#[tokio::test]
async fn a_released_worker_leaves_no_record() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let worker = WorkerId::new("w").unwrap();
    let records = || server.command(&[b"EXISTS", b"{q}:alive", b"{q}:runs"]);
    let report = operator::WorkerReport::new(worker.clone(), many(1));
    queue.report_worker(&report).await.unwrap();
    assert_eq!(records(), b":2\r\n");

    queue.release_worker(&worker).await.unwrap();

    assert_eq!(records(), b":0\r\n");
}

/// R13, R21: the first call of a new connection settles before it claims, also on a
/// server that has only the script of the claim. A job that is given back is at the
/// front again.
#[tokio::test]
async fn a_server_without_scripts_settles_before_it_claims() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    for job in ["a", "b"] {
        queue.push_one(job.into()).await.unwrap();
    }
    let held = queue.claim_one(&ask("w")).await.unwrap().unwrap();
    server.command(&[b"SCRIPT", b"FLUSH"]);
    assert!(open(&server, "empty").await.claim_one(&ask("w")).await.unwrap().is_none());
    let another = open(&server, "q").await;

    let back = [Settlement::new(held.receipt, Disposition::GiveBack)];
    let both = another.settle_and_claim(&back, &ask("w")).await;

    assert_eq!(both.settled.unwrap(), [Settled::Applied]);
    assert_eq!(both.claimed.unwrap()[0].payload, "a");
}

/// Jobs that are done and have no side records end in the script that claims.
#[tokio::test]
async fn a_worker_settles_and_claims_by_one_script() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    for job in ["a", "b"] {
        queue.push_one(job.into()).await.unwrap();
    }
    let held = queue.claim_one(&ask("w")).await.unwrap().unwrap();
    server.command(&[b"CONFIG", b"RESETSTAT"]);

    let done = [Settlement::new(held.receipt, Disposition::Done)];
    let both = queue.settle_and_claim(&done, &ask("w")).await;

    assert_eq!(both.settled.unwrap(), [Settled::Applied]);
    assert_eq!(both.claimed.unwrap()[0].payload, "b");
    assert_eq!(calls(&server, "evalsha") + calls(&server, "eval"), 1);
    assert_sound(&queue).await;
}

/// R21: a key of another type that only the claim reads does not keep jobs from being
/// settled. A key that the settlement changes makes both fail, and nothing is changed.
#[tokio::test]
async fn a_claim_that_is_refused_keeps_no_job_from_being_settled() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    for job in ["a", "b"] {
        queue.push_one(job.into()).await.unwrap();
    }
    let held = queue.claim_one(&ask("w")).await.unwrap().unwrap();
    let done = [Settlement::new(held.receipt, Disposition::Done)];

    server.command(&[b"RENAME", b"{q}:leased", b"aside"]);
    server.command(&[b"SET", b"{q}:leased", b"text"]);
    let neither = queue.settle_and_claim(&done, &ask("w")).await;
    server.command(&[b"RENAME", b"aside", b"{q}:leased"]);
    server.command(&[b"SET", b"{q}:later", b"text"]);
    let only_settled = queue.settle_and_claim(&done, &ask("w")).await;
    server.command(&[b"DEL", b"{q}:later"]);

    assert!(matches!(neither.settled, Err(Error::Unusable { .. })));
    assert!(matches!(neither.claimed, Err(Error::Unusable { .. })));
    assert_eq!(only_settled.settled.unwrap(), [Settled::Applied]);
    assert!(matches!(only_settled.claimed, Err(Error::Unusable { .. })));
    assert_eq!(queue.claim_one(&ask("w")).await.unwrap().unwrap().payload, "b");
    assert_sound(&queue).await;
}

/// Idle workers send the server almost no commands.
#[tokio::test]
async fn an_idle_waiting_claim_sends_at_most_two_commands_a_second() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    server.command(&[b"CONFIG", b"RESETSTAT"]);
    let wait = Duration::from_secs(4);

    queue.claim_one(&ask("w").wait(wait)).await.unwrap();

    let sent = ["evalsha", "eval", "blmove", "blpop"].map(|name| calls(&server, name));
    let sent: u64 = sent.iter().sum();
    assert!((1..=2 * wait.as_secs()).contains(&sent), "{sent} commands");
}

fn calls(server: &Server, command: &str) -> u64 {
    let answer = server.command(&[b"INFO", b"commandstats"]);
    let text = String::from_utf8(answer).unwrap();
    let prefix = format!("cmdstat_{command}:calls=");
    let count =
        text.lines().find_map(|line| line.strip_prefix(&prefix)?.split(',').next());
    count.map_or(0, |count| count.parse().unwrap())
}

/// R21: a page deep in the queue costs the server about as much as the first one, also
/// among members with the same score.
#[tokio::test]
async fn a_deep_page_takes_no_long_command() {
    const FILL: &[u8] = b"for first = 1, ARGV[1], 1000 do \
        local new = {} \
        for i = first, first + 999 do \
          new[#new + 1] = ARGV[2] \
          new[#new + 1] = 'id-' .. i \
        end \
        redis.call('ZADD', KEYS[1], unpack(new)) \
      end";
    const ROUNDS: usize = 5;
    let server = Server::start();
    let queue = open(&server, "q").await;
    let rank = (5_u64 << 44).to_string();
    server.command(&[b"CONFIG", b"SET", b"slowlog-log-slower-than", b"5000"]);
    for (state, set, score, place) in [
        (JobState::Dead, "{q}:dead", "0", 0),
        (JobState::Scheduled, "{q}:later", "0", 0),
        (JobState::Ready, "{q}:ranked", &rank, 3),
    ] {
        let filled = [b"EVAL", FILL, b"1", set.as_bytes(), b"500000", score.as_bytes()];
        server.command(&filled);
        let cursor = format!("s{place}:{score}:id-450000");
        let page = PeekRequest::new(state, many(100)).after(PageCursor(cursor.into()));

        // The shortest round counts, because the machine does other things, too.
        let mut shortest = usize::MAX;
        for _ in 0..ROUNDS {
            server.command(&[b"SLOWLOG", b"RESET"]);
            assert_eq!(queue.peek(&page).await.unwrap().jobs.len(), 100);
            let slow = server.command(&[b"SLOWLOG", b"LEN"]);
            shortest = shortest.min(usize::from(slow.trim_ascii() != b":0"));
        }
        assert_eq!(shortest, 0, "every page of {state:?} jobs took a long command");
    }
}

/// Stats read the first job of each priority, for the age of the oldest (R27). They stop
/// where these jobs are as large as a step of the server may be.
#[tokio::test]
async fn stats_read_few_large_jobs() {
    const LARGE: usize = 700 * 1024;
    let server = Server::start();
    let queue = open(&server, "q").await;
    for priority in (0..=9).filter_map(Priority::new) {
        let job = NewJob::new(vec![b'x'; LARGE]).priority(priority);
        queue.push_one(job).await.unwrap();
    }
    let before = calls(&server, "hget");

    let stats = queue.stats().await.unwrap();

    assert!(stats.oldest_ready_age.is_some(), "{stats:?}");
    assert!(calls(&server, "hget") - before <= 2, "it reads {stats:?} as a whole");
}
