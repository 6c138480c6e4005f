//! Claims that wait by a blocking move into a processing list.

use std::{sync::Arc, thread, time::Duration};

use futures_util::{StreamExt as _, stream::FuturesUnordered};
use relq_conformance::{assert_within, server::Server};
use relq_core::{
    operator::{Cancelled, JobState, PeekRequest},
    outcome::Settled,
    *,
};
use relq_processing_list::Mode;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, UnixStream},
    runtime::Builder,
    time::Instant,
};

use crate::fixture::*;

/// R20: a job that any client pushes with the pattern's own command reaches an idle
/// worker at once. After the push, the server runs only the claim script that follows
/// the move.
#[tokio::test]
async fn a_bare_push_reaches_a_waiting_worker_in_one_hop() {
    for mode in MODES {
        let server = Server::start();
        let queue = Arc::new(open(&server, mode).await);
        let claim = waiter(&server, &queue).await;
        say(&server, &[b"CONFIG", b"RESETSTAT"]);

        say(&server, &[b"LPUSH", b"q", b"hello"]);
        let delivery = claim.await.unwrap().unwrap();

        assert_eq!((&delivery.payload[..], delivery.attempt()), (&b"hello"[..], 1));
        assert_eq!((calls(&server, "blmove"), calls(&server, "evalsha")), (0, 1));
        assert_sound(&queue).await;
        assert_eq!(queue.ack(&delivery.receipt).await.unwrap(), Settled::Applied);
    }
}

/// R22: a claim that times out cancels its blocking move, so that jobs pushed later go
/// to other claims.
#[tokio::test]
async fn a_claim_that_gives_up_calls_its_move_off() {
    for mode in MODES {
        let server = Server::start();
        let queue = Arc::new(open(&server, mode).await);
        let claim = waiter(&server, &queue).await;
        claim.abort();
        until("the move is called off", || waiting(&server) == 0).await;

        queue.push_one("job".into()).await.unwrap();

        assert_eq!(take(&queue, &ask("other")).await.payload, "job");
        assert_sound(&queue).await;
    }
}

/// R22: a job that a blocking move brings while its claim is dropped goes back to the queue,
/// and its attempt does not count.
#[tokio::test]
async fn a_job_moved_for_a_claim_that_gave_up_goes_back() {
    for mode in MODES {
        let server = Server::start();
        let queue = Arc::new(open(&server, mode).await);
        for _ in 0..30 {
            let claim = waiter(&server, &queue).await;
            say(&server, &[b"LPUSH", b"q", b"job"]);
            claim.abort();
            let gone = claim.await.map_or(None, |delivered| delivered);
            if let Some(delivered) = gone {
                queue.ack(&delivered.receipt).await.unwrap();
                continue;
            }
            let got = queue.claim_one(&ask("other").wait(LONG)).await.unwrap().unwrap();
            assert_eq!(got.attempt(), 1);
            queue.ack(&got.receipt).await.unwrap();
        }
        assert_sound(&queue).await;
        assert_eq!(queue.stats().await.unwrap().finished, 30);
    }
}

/// R22: a blocking move brings a job after its claim has reached its time limit, and before
/// the server releases the move. The claim returns the job. Otherwise the job would wait
/// until its lease has expired.
#[tokio::test]
async fn a_job_moved_behind_the_limit_of_a_claim_is_returned() {
    for mode in MODES {
        let server = Server::start();
        let queue = Arc::new(open(&server, mode).await);
        // The move waits on at the server, because the claim may not release it.
        say(&server, &[b"ACL", b"SETUSER", b"default", b"-client|unblock"]);
        let waiter = Arc::clone(&queue);
        let asking = ask("w").wait(BRIEF);
        let claim = tokio::spawn(async move { waiter.claim_one(&asking).await });
        let is_refused = || {
            let stats = say(&server, &[b"INFO", b"commandstats"]);
            stats.iter().any(|line| line.starts_with("cmdstat_client|unblock:"))
        };
        until("the claim has reached its limit", is_refused).await;

        say(&server, &[b"LPUSH", b"q", b"job"]);

        let taken = claim.await.unwrap().unwrap().expect("R22: the claim has the job");
        assert_eq!((&taken.payload[..], taken.attempt()), (&b"job"[..], 1));
        assert_sound(&queue).await;
    }
}

/// Passes connections on to the server while it is polled, and cuts them when it is dropped.
async fn relay(listener: &TcpListener, server: &Server) -> ! {
    let mut connections = FuturesUnordered::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (mut client, _) = accepted.unwrap();
                let mut upstream = UnixStream::connect(server.socket()).await.unwrap();
                connections.push(async move {
                    copy_bidirectional(&mut client, &mut upstream).await
                });
            }
            Some(_) = connections.next() => {}
        }
    }
}

/// R4, R20: a move brings a bare payload, and the connection ends before the replies of the
/// move and of the claim script arrive. The claim moves again, and the next bare payload has
/// an id of its own.
#[tokio::test]
async fn a_lost_reply_gives_no_id_twice() {
    for mode in MODES {
        let server = Server::start();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        let leased = || say(&server, &[b"ZCARD", b"{q}:leased"]);
        let mut relaying = Box::pin(relay(&listener, &server));
        let queue = tokio::select! {
            queue = open_as(&url, mode) => Arc::new(queue),
            never = &mut relaying => never,
        };
        let claim = tokio::select! {
            claim = waiter(&server, &queue) => claim,
            never = &mut relaying => never,
        };

        say(&server, &[b"LPUSH", b"q", b"first"]);
        until("the first job is leased", || leased() == [":1"]).await;
        drop(relaying);
        say(&server, &[b"LPUSH", b"q", b"second"]);
        let second = tokio::select! {
            second = claim => second.unwrap().expect("the claim waits"),
            never = relay(&listener, &server) => never,
        };

        assert_eq!(second.payload, "second");
        assert_eq!(leased(), [":2"]);
        let held = PeekRequest::new(JobState::Leased, many(10));
        let page = open(&server, mode).await.peek(&held).await.unwrap();
        let is_second = |id: &JobId| id == second.receipt.job();
        let same =
            page.jobs.iter().filter(|job| job.id.as_ref().is_some_and(is_second));
        assert_eq!(same.count(), 1, "{mode:?}: {:?}", page.jobs);
    }
}

/// R21: if the server loses its scripts while a move waits, no job is lost: the claim
/// looks again and finds the moved job.
#[tokio::test]
async fn a_move_survives_forgotten_scripts() {
    for mode in MODES {
        assert_within(Duration::from_secs(1), async || {
            let server = Server::start();
            let queue = Arc::new(open(&server, mode).await);
            let claim = waiter(&server, &queue).await;
            say(&server, &[b"SCRIPT", b"FLUSH"]);

            let start = Instant::now();
            say(&server, &[b"LPUSH", b"q", b"job"]);

            assert_eq!(claim.await.unwrap().unwrap().payload, "job");
            start.elapsed()
        })
        .await;
    }
}

/// R23: jobs that a claim of the shared mode has moved, and not leased yet, are ready jobs:
/// an operator sees them in their order, cancels them and purges them.
#[tokio::test]
async fn an_operator_reaches_the_jobs_that_a_claim_moved() {
    let server = Server::start();
    let queue = open(&server, Mode::Shared).await;
    let first = queue.push_one("1".into()).await.unwrap();
    queue.push_one("2".into()).await.unwrap();
    say(&server, &[b"RENAME", b"q", b"{q}:handed"]);
    queue.push_one("3".into()).await.unwrap();

    let ready = PeekRequest::new(JobState::Ready, many(10));
    let page = queue.peek(&ready).await.unwrap();
    let payloads: Vec<_> = page.jobs.iter().map(|job| &job.payload[..]).collect();
    assert_eq!(payloads, [b"1", b"2", b"3"]);
    let cancelled = queue.cancel(first.job()).await.unwrap();
    assert_eq!(cancelled, Cancelled::Removed(JobState::Ready));
    assert_eq!(queue.purge().await.unwrap(), 2);
    assert_eq!(queue.claim_one(&ask("w")).await.unwrap(), None);
}

/// R1, R13: a job that a claim of the shared mode has moved, and not leased yet, is the next
/// job for a worker of either mode.
#[tokio::test]
async fn a_job_that_a_claim_moved_is_the_next_in_each_mode() {
    for mode in MODES {
        let server = Server::start();
        let queue = open(&server, mode).await;
        queue.push_one("moved".into()).await.unwrap();
        say(&server, &[b"RENAME", b"q", b"{q}:handed"]);
        queue.push_one("ready".into()).await.unwrap();

        for expected in ["moved", "ready"] {
            let claimed = queue.claim_one(&ask("w")).await.unwrap();
            let payload = claimed.map(|job| job.payload);
            assert_eq!(
                payload.as_deref(),
                Some(expected.as_bytes()),
                "R13: the next job of {mode:?}"
            );
        }
        assert_sound(&queue).await;
    }
}

/// R6: a job that a claim of the shared mode has moved counts in the bytes of the claim that
/// takes it, as the ready jobs do.
#[tokio::test]
async fn a_job_that_a_claim_moved_counts_in_the_bytes_of_the_next_claim() {
    for mode in MODES {
        let server = Server::start();
        let queue = open(&server, mode).await;
        let large = |name: u8| NewJob::new(vec![name; ClaimRequest::MAX_BYTES * 2 / 5]);
        queue.push_one(large(b'1')).await.unwrap();
        say(&server, &[b"RENAME", b"q", b"{q}:handed"]);
        for name in [b'2', b'3', b'4'] {
            queue.push_one(large(name)).await.unwrap();
        }

        for expected in ["12", "34"] {
            let claimed = queue.claim(&ask("w").max(many(10))).await.unwrap();
            let names = claimed.iter().map(|job| char::from(job.payload[0]));
            let names: String = names.collect();
            assert_eq!(names, expected, "R6: the jobs of one claim of {mode:?}");
        }
        assert_sound(&queue).await;
    }
}

/// R27: the oldest ready job is one that a claim of the shared mode has moved, and not leased
/// yet.
#[tokio::test]
async fn a_job_that_a_claim_moved_has_an_age() {
    let server = Server::start();
    let queue = open(&server, Mode::Shared).await;
    queue.push_one("moved".into()).await.unwrap();
    let age = async || queue.stats().await.unwrap().oldest_ready_age;
    let pushed = age().await.expect("R27: the age of the pushed job");

    say(&server, &[b"RENAME", b"q", b"{q}:handed"]);

    let moved = age().await.expect("R27: the age of the moved job");
    assert!(moved >= pushed, "R27: the age goes on: {moved:?} after {pushed:?}");
}

/// R22: an idle connection is driven by the runtime that opened it. A claim on another
/// runtime does not wait on that connection, which would take until the limit of the wait.
#[tokio::test]
async fn a_claim_uses_no_connection_of_another_runtime() {
    for mode in MODES {
        assert_within(Duration::from_secs(5), async || {
            let claiming = || claim_on_a_second_runtime(mode);
            thread::scope(|scope| scope.spawn(claiming).join().unwrap())
        })
        .await;
    }
}

/// Waits once on a runtime that is not driven afterwards, and again on a second one for a job
/// that is pushed once the server has the move. Returns how long the second claim takes.
fn claim_on_a_second_runtime(mode: Mode) -> Duration {
    let server = Server::start();
    let runtime = || Builder::new_current_thread().enable_all().build().unwrap();
    let (first, second) = (runtime(), runtime());
    let queue = first.block_on(open(&server, mode));
    let brief = ask("w").wait(BRIEF);
    assert_eq!(first.block_on(queue.claim_one(&brief)).unwrap(), None);
    first.block_on(until("the move ends", || waiting(&server) == 0));

    let asking = ask("w").wait(LONG);
    second.block_on(async {
        let start = Instant::now();
        let push = async {
            until("a move waits", || waiting(&server) == 1).await;
            queue.push_one("job".into()).await.unwrap();
        };
        let (claimed, ()) = tokio::join!(queue.claim_one(&asking), push);
        assert_eq!(claimed.unwrap().unwrap().payload, "job");
        start.elapsed()
    })
}

/// R21: a worker that waits for jobs sends at most two commands a second.
#[tokio::test]
async fn an_idle_waiting_claim_sends_at_most_two_commands_a_second() {
    for mode in MODES {
        let server = Server::start();
        let queue = open(&server, mode).await;
        queue.claim_one(&ask("w").wait(Duration::from_millis(1))).await.unwrap();
        say(&server, &[b"CONFIG", b"RESETSTAT"]);
        let wait = Duration::from_secs(6);

        queue.claim_one(&ask("w").wait(wait)).await.unwrap();

        let sent = ["evalsha", "eval", "blmove", "blpop", "client|unblock"];
        let sent: u64 = sent.iter().map(|name| calls(&server, name)).sum();
        // One command more than the limit: the waiting connection reads the queue's
        // marker when it is opened (R25).
        let most = 2 * wait.as_secs() + 1;
        assert!((1..=most).contains(&sent), "{sent} commands");
    }
}

/// R14, R21: a claim whose blocking connection broke, and the claims after it, are served as
/// soon as a job is pushed: a new connection waits for it.
#[tokio::test]
async fn a_broken_move_is_begun_anew() {
    for mode in MODES {
        let server = Server::start();
        let queue = Arc::new(open(&server, mode).await);
        let claim = waiter(&server, &queue).await;
        let before = blocked(&server);
        assert_eq!(before.len(), 1, "one connection waits");

        say(&server, &[b"CLIENT", b"KILL", b"ID", before[0].as_bytes()]);

        let is_new = || blocked(&server).iter().any(|id| *id != before[0]);
        until("another connection waits", is_new).await;
        queue.push_one("first".into()).await.unwrap();
        assert_eq!(claim.await.unwrap().unwrap().payload, "first");

        let claim = waiter(&server, &queue).await;
        queue.push_one("second".into()).await.unwrap();
        assert_eq!(claim.await.unwrap().unwrap().payload, "second");
        assert_sound(&queue).await;
    }
}

/// The ids of the connections that wait for a blocking move.
fn blocked(server: &Server) -> Vec<String> {
    let clients = say(server, &[b"CLIENT", b"LIST"]);
    let waits = clients.iter().filter(|line| line.contains("cmd=blmove"));
    let id = |line: &String| {
        let id = line.split(' ').find_map(|word| word.strip_prefix("id="));
        id.unwrap().to_owned()
    };
    waits.map(id).collect()
}

/// R1: at the memory limit the server refuses a move, and runs the claim script behind it.
/// The script leases a job that the move of a dead claim left, and the job is delivered.
#[tokio::test]
async fn a_refused_move_drops_no_job_of_the_claim_behind_it() {
    let server = Server::start();
    let queue = open(&server, Mode::Shared).await;
    let limit = |bytes: &[u8]| say(&server, &[b"CONFIG", b"SET", b"maxmemory", bytes]);
    let refused = || {
        let stats = say(&server, &[b"INFO", b"commandstats"]);
        let mut moves = stats.iter().filter(|line| line.starts_with("cmdstat_blmove"));
        moves.any(|line| !line.contains("rejected_calls=0"))
    };
    limit(b"1");
    let asking = ask("w").wait(LONG);
    let leave_a_job = async {
        until("the move is refused", refused).await;
        limit(b"0");
        say(&server, &[b"LPUSH", b"{q}:handed", b"hello"]);
        limit(b"1");
    };

    let (claimed, ()) = tokio::join!(queue.claim_one(&asking), leave_a_job);

    let delivery = claimed.unwrap().expect("R1: the job is delivered");
    assert_eq!(&delivery.payload[..], b"hello");
}
