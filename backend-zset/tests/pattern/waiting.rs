//! Tests how an idle claim waits, and a call for a result (R11, R20, R29).

use std::{
    future::poll_fn,
    sync::Arc,
    task::Poll,
    thread,
    time::{Duration, Instant},
};

use relq_conformance::{assert_within, proxy::VirtualClock, server::Server};
use relq_core::{
    environment::{Environment, OsRandomness},
    operator::{Cancelled, JobState, PeekRequest},
    *,
};
use relq_zset::{ZsetConfig, ZsetQueue};
use tokio::runtime::Runtime;

use crate::fixture::*;

/// R20: a payload that any client pushes with `LPUSH` is a job.
#[tokio::test]
async fn a_bare_push_wakes_a_waiting_claim_at_once() {
    assert_within(Duration::from_secs(1), async || {
        let server = Server::start();
        let queue = open(&server, "emails").await;
        let asking = ask("w").wait(LONG);
        let claim = queue.claim_one(&asking);
        let push = async {
            while !waits(&server) {
                tokio::task::yield_now().await;
            }
            server.command(&[b"LPUSH", b"emails", b"hello"]);
            Instant::now()
        };

        let (delivery, pushed) = tokio::join!(claim, push);

        let took = pushed.elapsed();
        assert_eq!(&delivery.unwrap().unwrap().payload[..], b"hello");
        assert_sound(&queue).await;
        took
    })
    .await;
}

/// Idle workers send the server almost no commands.
#[tokio::test]
async fn an_idle_waiting_claim_sends_at_most_two_commands_a_second() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    queue.claim_one(&ask("w")).await.unwrap();
    server.command(&[b"CONFIG", b"RESETSTAT"]);
    let wait = Duration::from_secs(4);

    queue.claim_one(&ask("w").wait(wait)).await.unwrap();

    let sent = ["evalsha", "eval", "exists", "blmove", "blpop"]
        .map(|name| calls(&server, name));
    let sent: u64 = sent.iter().sum();
    assert!((1..=2 * wait.as_secs()).contains(&sent), "{sent} commands");
}

/// R11: a claim that waits finds a job of which no notification tells, whichever key
/// has it. The job is moved there from another queue, behind relq's back.
#[tokio::test]
async fn a_waiting_claim_looks_again_at_every_source() {
    let plain = NewJob::new("x");
    let moves: [(NewJob, &[(&str, &str)]); 4] = [
        (plain.clone(), &[("other", "q")]),
        (plain.clone(), &[("other", "{q}:handed")]),
        (
            plain.clone().priority(Priority::LOWEST),
            &[JOBS, ("{other}:ranked", "{q}:ranked")],
        ),
        (
            plain.delay(Duration::from_millis(1)),
            &[JOBS, ("{other}:later", "{q}:later")],
        ),
    ];
    for (job, keys) in moves {
        let server = Server::start();
        let [queue, other] = [open(&server, "q").await, open(&server, "other").await];
        other.push_one(job).await.unwrap();
        let asking = ask("w").wait(LONG);
        let move_it = async {
            while !waits(&server) {
                tokio::task::yield_now().await;
            }
            for (from, to) in keys {
                server.command(&[b"RENAME", from.as_bytes(), to.as_bytes()]);
            }
        };

        let (claimed, ()) = tokio::join!(queue.claim_one(&asking), move_it);

        assert_eq!(claimed.unwrap().expect("it is found").payload, "x", "{keys:?}");
    }
}

const JOBS: (&str, &str) = ("{other}:jobs", "{q}:jobs");

/// R23: jobs that a notifier has moved to its own list are ready jobs: an operator counts
/// them, sees them in their order, cancels them and purges them.
#[tokio::test]
async fn an_operator_reaches_the_jobs_that_a_notifier_moved() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let first = queue.push_one("1".into()).await.unwrap();
    queue.push_one("2".into()).await.unwrap();
    server.command(&[b"RENAME", b"q", b"{q}:handed"]);
    let stats = queue.stats().await.unwrap();
    assert!(stats.oldest_ready_age.is_some(), "R27: the moved jobs wait: {stats:?}");
    queue.push_one("3".into()).await.unwrap();

    let stats = queue.stats().await.unwrap();
    let audit = queue.audit().await.unwrap();
    assert_eq!((stats.ready, audit.jobs), (3, 3), "R23: {stats:?}, {audit:?}");
    assert_eq!(audit.problems, [""; 0], "R23: each job is in one place");
    let ready = PeekRequest::new(JobState::Ready, many(10));
    let page = queue.peek(&ready).await.unwrap();
    let payloads: Vec<_> = page.jobs.iter().map(|job| &job.payload[..]).collect();
    assert_eq!(payloads, [b"1", b"2", b"3"]);
    let cancelled = queue.cancel(first.job()).await.unwrap();
    assert_eq!(cancelled, Cancelled::Removed(JobState::Ready));
    assert_eq!(queue.purge().await.unwrap(), 2);
    assert_eq!(queue.claim_one(&ask("w")).await.unwrap(), None);
}

/// R13: jobs that a notifier moved for claims which gave up go back in their order.
#[tokio::test]
async fn jobs_moved_for_a_claim_that_gave_up_keep_their_order() {
    let server = Server::start();
    let queue = Arc::new(open(&server, "q").await);
    let waiter = Arc::clone(&queue);
    let claim =
        tokio::spawn(async move { waiter.claim_one(&ask("w").wait(LONG)).await });
    until("a claim waits", || waits(&server)).await;
    claim.abort();
    assert!(claim.await.unwrap_err().is_cancelled());

    // Two other claims have given up, too, after their notifiers had moved a job.
    server.command(&[b"LPUSH", b"{q}:handed", b"a", b"b"]);
    server.command(&[b"LPUSH", b"q", b"c", b"d"]);

    let exists = |key: &[u8]| server.command(&[b"EXISTS", key]) == b":1\r\n";
    until("they are passed on", || exists(b"{q}:wake") && !exists(b"{q}:handed")).await;
    for payload in ["a", "b", "c", "d"] {
        let taken = queue.claim_one(&ask("w")).await.unwrap().unwrap();
        assert_eq!(taken.payload, payload, "R13: the order of the pushes");
    }
}

/// R9: a waiter that dies right after its blocking move leaves the job where no other waiter
/// is woken. The next recheck of another claim finds it.
#[tokio::test]
async fn a_job_that_a_dead_waiter_moved_is_found_by_a_recheck() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let moved = async {
        until("a claim waits", || waits(&server)).await;
        server.command(&[b"LPUSH", b"{q}:handed", b"moved"]);
    };

    let asking = ask("w").wait(Duration::from_secs(8));
    let (claimed, ()) = tokio::join!(queue.claim_one(&asking), moved);

    assert_eq!(claimed.unwrap().unwrap().payload, "moved");
    assert_sound(&queue).await;
}

/// R6: all jobs of a claim count in its bytes, wherever they were ready: the urgent ones,
/// those that a notifier has moved to its own list, those of the list of ready jobs, and
/// those of a low priority.
#[tokio::test]
async fn the_jobs_of_every_source_count_in_the_bytes_of_a_claim() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let large = |name: u8| NewJob::new(vec![name; ClaimRequest::MAX_BYTES * 2 / 5]);
    queue.push_one(large(b'2')).await.unwrap();
    server.command(&[b"RENAME", b"q", b"{q}:handed"]);
    queue.push_one(large(b'3')).await.unwrap();
    queue.push_one(large(b'1').priority(Priority::HIGHEST)).await.unwrap();
    queue.push_one(NewJob::new("4").priority(Priority::LOWEST)).await.unwrap();
    queue.push_one(large(b'5').priority(Priority::LOWEST)).await.unwrap();

    // The fourth job is small, but it is behind the third.
    for expected in ["12", "345"] {
        let claimed = queue.claim(&ask("w").max(many(10))).await.unwrap();
        let names = claimed.iter().map(|job| char::from(job.payload[0]));
        assert_eq!(names.collect::<String>(), expected, "R6: the jobs of one claim");
    }
    assert_sound(&queue).await;
}

/// Waits until the condition is true. Panics after `LONG`; `what` is in the message.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONG, "did not happen in time: {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// R11: a wait without a claim may have any limit.
#[tokio::test]
async fn a_wait_of_any_length_is_ended_by_a_push() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let push = async {
        while !waits(&server) {
            tokio::task::yield_now().await;
        }
        queue.push_one("x".into()).await.unwrap();
    };

    let (waited, ()) = tokio::join!(queue.wait_for_jobs(Duration::MAX), push);

    waited.unwrap();
    assert_eq!(queue.claim_one(&ask("w")).await.unwrap().unwrap().payload, "x");
}

/// How long a call waits on a runtime before that runtime ends.
const BRIEF: Duration = Duration::from_millis(100);

/// A task of the runtime that waited first listens for all waiting calls. If that runtime
/// ends, a call on another one listens again: it is woken, and does not wait for its
/// recheck after 2 s.
#[tokio::test]
async fn a_claim_is_woken_after_the_runtime_of_an_earlier_one_ended() {
    assert_within(Duration::from_secs(1), async || {
        on_a_second_runtime(
            async |queue| {
                queue.claim(&ask("w").wait(BRIEF)).await.unwrap();
            },
            async |queue| {
                assert!(queue.claim_one(&ask("w").wait(LONG)).await.unwrap().is_some());
            },
            async |queue| {
                queue.push_one("x".into()).await.unwrap();
            },
        )
    })
    .await;
}

/// The same holds for a call that waits for a result, whose recheck comes after 10 s.
#[tokio::test]
async fn a_result_is_told_after_the_runtime_of_an_earlier_wait_ended() {
    let id = || JobId::new("kept").unwrap();
    let wait = async move |queue: &ZsetQueue, limit| {
        let results = queue.result_queue().unwrap();
        results.wait_result(&id(), limit).await.unwrap().unwrap()
    };
    assert_within(Duration::from_secs(5), async || {
        on_a_second_runtime(
            async |queue| {
                let job = NewJob::new("x").id(id()).keep_result(LONG);
                queue.push_one(job).await.unwrap();
                assert!(!wait(queue, BRIEF).await.has_ended());
            },
            async |queue| assert!(wait(queue, LONG).await.has_ended()),
            async |queue| {
                let job = queue.claim_one(&ask("w")).await.unwrap().unwrap();
                queue.ack(&job.receipt).await.unwrap();
            },
        )
    })
    .await;
}

/// Waits once on a runtime that then ends, and again on a second one. Returns how long the
/// second wait takes after the change for which it waits. The change is made when the server
/// has a blocked client again, and not that of the first wait.
fn on_a_second_runtime(
    first_wait: impl AsyncFn(&ZsetQueue) + Sync,
    second_wait: impl AsyncFn(&ZsetQueue) + Sync,
    change: impl AsyncFn(&ZsetQueue) + Sync,
) -> Duration {
    let waiting = || {
        let server = Server::start();
        let first = Runtime::new().unwrap();
        let queue = first.block_on(open(&server, "q"));
        first.block_on(first_wait(&queue));
        drop(first);
        let until = async |is_blocked: bool| {
            let has_blocked = || {
                let clients = server.command(&[b"INFO", b"clients"]);
                !String::from_utf8_lossy(&clients).contains("blocked_clients:0\r\n")
            };
            let start = Instant::now();
            while has_blocked() != is_blocked {
                assert!(start.elapsed() < LONG, "a call blocks: {}", has_blocked());
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let changing = async {
            until(true).await;
            change(&queue).await;
            Instant::now()
        };
        let second = Runtime::new().unwrap();
        second.block_on(until(false));
        let both = async { tokio::join!(second_wait(&queue), changing) };
        let ((), changed) = second.block_on(both);
        changed.elapsed()
    };
    thread::scope(|scope| scope.spawn(waiting).join().unwrap())
}

/// The time after which a call that waits for a result reads it again.
const RECHECK: Duration = Duration::from_secs(10);

/// R29: while a call waits for a result, the connection that listens for it breaks. The call
/// is told of an end that comes before the next connection, and does not wait for its
/// recheck.
#[tokio::test]
async fn an_end_that_no_connection_hears_is_told() {
    assert_within(RECHECK / 2, async || {
        let server = Server::start();
        let queue = open(&server, "q").await;
        let held = hold_kept(&queue).await;
        let ending = async {
            let listener = listener(&server).await;
            server.command(&[b"CLIENT", b"KILL", b"ID", listener.as_bytes()]);
            queue.ack(&held.receipt).await.unwrap();
            Instant::now()
        };
        let results = queue.result_queue().unwrap();

        let waiting = results.wait_result(held.job(), LONG);
        let (told, ended) = tokio::join!(waiting, ending);

        let took = ended.elapsed();
        assert!(told.unwrap().unwrap().has_ended());
        took
    })
    .await;
}

/// Pushes a job that keeps its result, and claims it.
async fn hold_kept(queue: &ZsetQueue) -> Delivery {
    queue.push_one(NewJob::new("x").keep_result(LEASE)).await.unwrap();
    queue.claim_one(&ask("w")).await.unwrap().unwrap()
}

/// Waits until a connection of the queue `q` listens for ends, and returns its id.
async fn listener(server: &Server) -> String {
    let start = Instant::now();
    loop {
        let clients = server.command(&[b"CLIENT", b"LIST"]);
        let clients = String::from_utf8_lossy(&clients).into_owned();
        let mut clients = clients.lines();
        let listens = |client: &&str| {
            client.contains(" name=relq:waiter:q ") && client.contains(" cmd=xread ")
        };
        if let Some(client) = clients.find(listens) {
            let id = client.split(' ').next().unwrap();
            return id.trim_start_matches("id=").to_owned();
        }
        assert!(start.elapsed() < LONG, "no connection listens");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// R29: a call listens for the end of its job before it reads what became of the job. So it
/// is told of an end between the two, and does not wait for its recheck.
#[tokio::test]
async fn an_end_beside_the_first_look_is_told() {
    assert_within(RECHECK / 2, async || {
        let server = Server::start();
        let queue = Arc::new(open(&server, "q").await);
        let [steady, held, last] =
            [hold_kept(&queue).await, hold_kept(&queue).await, hold_kept(&queue).await];
        let wait_for = |held: &Delivery| {
            let (queue, job) = (Arc::clone(&queue), held.job().clone());
            tokio::spawn(async move {
                queue.result_queue().unwrap().wait_result(&job, LONG).await
            })
        };
        // The first of these keeps the connection that listens, and the second tells when
        // that connection has heard of all ends.
        let (steady, last_told) = (wait_for(&steady), wait_for(&last));
        listener(&server).await;
        let mut waiting = queue.result_queue().unwrap().wait_result(held.job(), LONG);

        let looked = poll_fn(|cx| Poll::Ready(waiting.as_mut().poll(cx))).await;
        assert!(looked.is_pending(), "R29: the job has not ended");
        queue.ack(&held.receipt).await.unwrap();
        queue.ack(&last.receipt).await.unwrap();
        assert!(last_told.await.unwrap().unwrap().unwrap().has_ended());

        let ended = Instant::now();
        assert!(waiting.await.unwrap().unwrap().has_ended(), "R29: it has ended");
        steady.abort();
        ended.elapsed()
    })
    .await;
}

/// R29: a call that waits for a result reads it when as many ends are told at once as one
/// reply has. The end of its job may be among those that the server has dropped meanwhile.
#[tokio::test]
async fn an_end_that_many_others_displaced_is_told() {
    const DONE_UNTOLD: &[u8] = b"redis.call('HSET', KEYS[1], ARGV[1], 'd') \
        for _ = 1, 1000 do redis.call('XADD', KEYS[2], '*', 'id', 'other') end";
    assert_within(RECHECK / 2, async || {
        let server = Server::start();
        let queue = open(&server, "q").await;
        let held = hold_kept(&queue).await;
        let ending = async {
            listener(&server).await;
            let (results, ends) = (b"{q}:results", b"{q}:ended");
            let job = held.job().as_str().as_bytes();
            server.command(&[b"EVAL", DONE_UNTOLD, b"2", results, ends, job]);
            Instant::now()
        };
        let results = queue.result_queue().unwrap();

        let waiting = results.wait_result(held.job(), LONG);
        let (told, ended) = tokio::join!(waiting, ending);

        let took = ended.elapsed();
        assert!(told.unwrap().unwrap().has_ended(), "R29: it has ended");
        took
    })
    .await;
}

/// R29: the connection that listens for ends reads each of them once, also that of a job
/// for which no call waits.
#[tokio::test]
async fn an_end_is_read_once() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let (held, other) = (hold_kept(&queue).await, hold_kept(&queue).await);
    let ending = async {
        listener(&server).await;
        server.command(&[b"CONFIG", b"RESETSTAT"]);
        queue.ack(&other.receipt).await.unwrap();
        // A connection that reads the same end again does so thousands of times meanwhile.
        tokio::time::sleep(Duration::from_millis(300)).await;
    };

    tokio::select! {
        told = queue.result_queue().unwrap().wait_result(held.job(), LONG) => {
            panic!("R29: the job has not ended: {told:?}")
        }
        () = ending => {}
    }

    let reads = calls(&server, "xread");
    assert!(reads <= 5, "R29: one end was read by {reads} times XREAD");
}

/// R29: a call that waits for a result reads it again after a while although it is told of
/// no end. Here another client has overwritten the key of the ends, so that none is stored.
#[tokio::test]
async fn a_result_whose_end_is_not_told_is_found() {
    let server = Server::start();
    let clock = VirtualClock::new();
    let environment = Environment::new(Arc::new(clock.clone()), Arc::new(OsRandomness));
    let config = ZsetConfig::new(&server.url()).unwrap().environment(environment);
    let queue = ZsetQueue::connect(config, QueueName::new("q").unwrap()).await.unwrap();
    let held = hold_kept(&queue).await;
    server.command(&[b"SET", b"{q}:ended", b"x"]);
    let ending = async {
        // The call has read the result and waits. The task that listens for it cannot read
        // the key, and pauses.
        clock.asleep(2).await;
        queue.ack(&held.receipt).await.unwrap();
        clock.advance(RECHECK);
    };
    let results = queue.result_queue().unwrap();

    let waiting = results.wait_result(held.job(), 6 * RECHECK);
    let both = async { tokio::join!(waiting, ending) };
    let (told, ()) = tokio::time::timeout(LONG, both).await.expect("it looks again");

    assert!(told.unwrap().unwrap().has_ended());
}
