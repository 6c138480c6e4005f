//! Tests what jobs and calls cost the server (R21).

use std::time::Duration;

use relq_conformance::server::Server;
use relq_core::{
    operator::{JobState, PageCursor, PeekRequest},
    *,
};

use crate::fixture::*;

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

/// R21: large jobs may follow small ones, so a claim reads few elements at once, however
/// many small ones it has read.
#[tokio::test]
async fn a_claim_reads_at_most_16_elements_at_once() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    queue.push(&vec![NewJob::new("small"); 200], None).await.unwrap();
    let before = calls(&server, "lrange");

    let held = queue.claim(&ask("w").max(many(100))).await.unwrap();

    assert_eq!(held.len(), 100);
    // A page of one element, six of 16, and the last three.
    assert_eq!(calls(&server, "lrange") - before, 1 + 6 + 1);
}

fn info(server: &Server, section: &str, field: &str) -> u64 {
    let answer = server.command(&[b"INFO", section.as_bytes()]);
    let text = String::from_utf8(answer).unwrap();
    let line =
        text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.unwrap().trim().parse().unwrap()
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
/// where these jobs are as large as a step of the server may be, and leave out those of the
/// most urgent priorities, which wait the least.
#[tokio::test]
async fn stats_read_few_large_jobs() {
    const LARGE: usize = 700 * 1024;
    // The server's time of day may be slewed, so the test waits for twice as long.
    const AGE: Duration = Duration::from_millis(300);
    let server = Server::start();
    let queue = open(&server, "q").await;
    let push = async |priority: Priority| {
        let job = NewJob::new(vec![b'x'; LARGE]).priority(priority);
        queue.push_one(job).await.unwrap();
    };
    push(Priority::LOWEST).await;
    tokio::time::sleep(2 * AGE).await;
    for priority in (1..=9).filter_map(Priority::new) {
        push(priority).await;
    }
    let before = calls(&server, "hget");

    let stats = queue.stats().await.unwrap();

    assert!(stats.oldest_ready_age >= Some(AGE), "{stats:?}");
    assert!(calls(&server, "hget") - before <= 2, "it reads {stats:?} as a whole");
}

/// R21: a claim reads about as many bytes as one step moves, also where it has read several
/// jobs and room for less than one is left. Each read shows in the server's peak of memory.
#[tokio::test]
async fn a_claim_reads_no_more_than_a_step_moves() {
    const STEP: u64 = 1024 * 1024;
    let server = Server::start();
    let queue = open(&server, "q").await;
    // 17 of these jobs fill a step.
    for _ in 0..300 {
        queue.push_one(NewJob::new(vec![b'x'; 60 * 1024])).await.unwrap();
    }
    let peak = || info(&server, "memory", "used_memory_peak");
    let before = peak();

    let taken = queue.claim(&ask("w").max(many(300))).await.unwrap();

    assert!(taken.len() >= 17, "{} jobs", taken.len());
    let grown = peak() - before;
    assert!(grown < 8 * STEP, "the server took {grown} bytes more");
}
