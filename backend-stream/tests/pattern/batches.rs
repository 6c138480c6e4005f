//! Tests of batches on this backend only: of the streams that hold their pieces, and of
//! changes that other clients make.

use std::{
    num::NonZeroU32,
    time::{Duration, Instant},
};

use relq_conformance::{
    assert_within,
    proxy::{Fault, FaultProxy, VirtualClock, When},
    server::Server,
};
use relq_core::{
    batch::{
        Added, BatchId, BatchOutcome, BatchPriority, BatchQueue, BatchStatus, Change,
        Created, NewBatch, OnComplete,
    },
    environment::Environment,
    error::Effect,
    operator::{Cancelled, JobState, PeekRequest, Selection},
    outcome::Extended,
    *,
};
use relq_stream::{StreamConfig, StreamQueue};

use crate::fixture::*;

pub(crate) fn id() -> BatchId {
    BatchId::new("b").unwrap()
}

/// Creates the batch, adds `count` pieces and seals it.
pub(crate) async fn submit(queue: &StreamQueue, batch: NewBatch, count: u32) {
    assert_eq!(queue.create(&batch).await.unwrap(), Created::Stored);
    let pieces: Vec<_> = (0..count).map(|n| NewJob::new(n.to_string())).collect();
    let added = queue.add(&batch.id, &pieces, None).await.unwrap();
    assert!(matches!(added, Added::Stored(_)), "{added:?}");
    queue.seal(&batch.id).await.unwrap().unwrap();
}

/// Returns a batch that pushes a completion job to the queue `name`. The payload of
/// that job is the batch's id.
fn tell(batch: &str, name: &str) -> NewBatch {
    let on_complete = OnComplete::new(NewJob::new(batch.to_owned()));
    let on_complete = on_complete.queue(QueueName::new(name).unwrap());
    NewBatch::new(BatchId::new(batch).unwrap()).on_complete(on_complete)
}

/// Completes `letters` batches while the queue for their completion jobs refuses
/// pushes, so all these jobs stay in the outbox.
pub(crate) async fn fill_outbox(server: &Server, queue: &StreamQueue, letters: u32) {
    say(server, "SET there foreign");
    for number in 0..letters {
        submit(queue, tell(&format!("b{number}"), "there"), 0).await;
    }
    assert_eq!(in_outbox(server), u64::from(letters));
    say(server, "DEL there");
}

pub(crate) fn in_outbox(server: &Server) -> u64 {
    say(server, "SCARD {q}:batch:outbox")
        .trim_matches([':', '\r', '\n'])
        .parse()
        .unwrap()
}

pub(crate) async fn status(queue: &StreamQueue) -> BatchStatus {
    queue.batch(&id()).await.unwrap().unwrap()
}

/// B3: a batch has as many slots in use as the consumer `leased` holds entries of the
/// batch's stream.
#[tokio::test]
async fn slots_are_pending_entries() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    submit(&queue, NewBatch::new(id()).limit(NonZeroU32::new(2)), 5).await;

    let held = queue.claim(&ask("w").max(many(5))).await.unwrap();

    assert_eq!(held.len(), 2);
    let pending = say(&server, "XPENDING {q}:batch:pieces:b relq");
    assert!(pending.contains("leased") && pending.starts_with("*4\r\n:2"), "{pending}");
    assert_sound(&queue).await;
}

/// B6: a completed batch leaves only its record, which is removed after its retention.
#[tokio::test]
async fn a_completed_batch_is_its_record() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    submit(&queue, NewBatch::new(id()).retention(NewBatch::MIN_RETENTION), 3).await;
    let held = take(&queue, 3).await;
    finish(&queue, held).await;
    assert_eq!(status(&queue).await.outcome(), Some(BatchOutcome::Done));
    let of_batches = || {
        let keys = keys(&server).into_iter();
        keys.filter(|key| key.starts_with("{q}:batch")).collect::<Vec<_>>()
    };
    assert_eq!(
        of_batches(),
        ["ended", "ids", "record:b", "told"].map(|it| format!("{{q}}:batch:{it}"))
    );

    after_the_retention(&server).await;
    queue.recover(many(10)).await.unwrap();

    assert_eq!(of_batches(), [""; 0], "B6: the keys after one recovery");
}

/// Waits until the shortest retention of a batch that has completed is over, by the
/// server's clock.
async fn after_the_retention(server: &Server) {
    let clock = || {
        let time = say(server, "TIME");
        time.lines().nth(2).unwrap().parse::<u64>().unwrap()
    };
    let over = clock() + NewBatch::MIN_RETENTION.as_secs() + 1;
    while clock() < over {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// B5, B6: a completion job that another queue refuses keeps its batch past the retention. It
/// is pushed when that queue takes it.
#[tokio::test]
async fn a_refused_completion_outlasts_the_retention() {
    let server = Server::start();
    let (queue, there) = (open(&server, "q").await, open(&server, "there").await);
    say(&server, "SET there foreign");
    submit(&queue, tell("b", "there").retention(NewBatch::MIN_RETENTION), 0).await;
    after_the_retention(&server).await;
    // Each recovery looks at one batch.
    let mut recoveries = 1;
    while queue.recover(many(1)).await.unwrap().more {
        recoveries += 1;
        assert!(recoveries < 10, "B6: it is looked at again and again");
    }
    assert_eq!(in_outbox(&server), 1);

    say(&server, "DEL there");
    let start = std::time::Instant::now();
    while there.stats().await.unwrap().ready == 0 {
        queue.recover(many(10)).await.unwrap();
        assert!(start.elapsed() < LONG, "the completion job is lost");
    }

    assert_eq!(take_one(&there).await.payload, "b");
    assert_sound(&there).await;
}

/// A call that waits for a batch sends few commands, although another batch has completed
/// before.
#[tokio::test]
async fn a_wait_after_another_completion_is_quiet() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    submit(&queue, NewBatch::new(BatchId::new("before").unwrap()), 0).await;
    assert_eq!(queue.create(&NewBatch::new(id())).await.unwrap(), Created::Stored);
    say(&server, "CONFIG RESETSTAT");

    let wait = Duration::from_secs(3);
    let status = queue.wait_batch(&id(), wait).await.unwrap().unwrap();

    assert_eq!(status.outcome(), None);
    let asked = calls(&server, "xread");
    assert!((1..=6).contains(&asked), "{asked} commands in {wait:?}");
}

/// A call that waits for a batch, and that the server does not let wait for its completion,
/// reads the batch's record from time to time instead of all the time.
#[tokio::test]
async fn a_wait_that_cannot_listen_is_quiet() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    assert_eq!(queue.create(&NewBatch::new(id())).await.unwrap(), Created::Stored);
    say(&server, "ACL SETUSER default -xread");
    say(&server, "CONFIG RESETSTAT");

    let wait = Duration::from_secs(3);
    let status = queue.wait_batch(&id(), wait).await.unwrap().unwrap();

    assert_eq!(status.outcome(), None);
    let refused = refusals(&server, "xread");
    assert!((1..=7).contains(&refused), "{refused} commands in {wait:?}");
}

/// B7: a batch whose canceller has died after its first page gives no piece.
#[tokio::test]
async fn a_half_cancelled_batch_gives_nothing() {
    let server = Server::start();
    let proxy = FaultProxy::start(server.address(), VirtualClock::new()).unwrap();
    let url = proxy.actor("operator").unwrap().url().to_owned();
    let environment = Environment::default().with_max_jobs_per_step(many(2));
    let config = StreamConfig::new(&url).unwrap().environment(environment);
    let name = QueueName::new("q").unwrap();
    let operator = StreamQueue::connect(config, name).await.unwrap();
    let queue = open(&server, "q").await;
    // The server now knows the script, so that each page is one command.
    submit(&queue, NewBatch::new(BatchId::new("first").unwrap()), 1).await;
    operator.cancel_batch(&BatchId::new("first").unwrap()).await.unwrap();
    submit(&queue, NewBatch::new(id()), 6).await;

    let second_page = proxy.steps_by("operator").len() + 2;
    let error = Fault::Error("OOM the test says so".to_owned());
    proxy.plan("operator", u32::try_from(second_page).unwrap(), error);
    let failed = operator.cancel_batch(&id()).await.unwrap_err();
    assert_eq!(failed.effect(), Effect::Maybe, "{}", failed.full_message());

    assert!((1..6).contains(&status(&queue).await.dropped));
    assert_eq!(queue.claim_one(&ask("w")).await.unwrap(), None);
    while queue.recover(many(10)).await.unwrap().more {}
    assert_eq!(status(&queue).await.outcome(), Some(BatchOutcome::Cancelled));
    assert_sound(&queue).await;
}

/// How a piece becomes ready.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// Its retry is due.
    Due,
    /// An operator runs it, while it waits for its retry.
    RunNow,
    /// Its worker returns it as failed.
    Retried,
}

/// B7, R30: a piece that is made ready after its batch was half cancelled ends, and its
/// follower with it. The cancellation has set the state, and has not come to the piece yet.
#[tokio::test]
async fn a_piece_made_ready_in_a_half_cancelled_batch_ends_with_its_follower() {
    for way in [Way::Due, Way::RunNow, Way::Retried] {
        let server = Server::start();
        let queue = open(&server, "q").await;
        queue.create(&NewBatch::new(id())).await.unwrap();
        let leader = JobId::new("leader").unwrap();
        let piece = NewJob::new("piece").id(leader.clone());
        queue.add(&id(), &[piece], None).await.unwrap();
        let follower = NewJob::new("follower").after(leader.clone());
        queue.push(&[follower], None).await.unwrap();
        let held = take_one(&queue).await;
        if way != Way::Retried {
            let delay = if way == Way::Due { BRIEF } else { LEASE };
            queue.retry(&held.receipt, delay, "again").await.unwrap();
        }
        say(&server, "HSET {q}:batch:record:b state cancelling");

        match way {
            Way::Due => {}
            Way::RunNow => {
                queue.inspect_queue().unwrap().run_now(&leader).await.unwrap();
            }
            Way::Retried => {
                queue.retry(&held.receipt, Duration::ZERO, "again").await.unwrap();
            }
        }
        let give_up = Instant::now() + LONG;
        while queue.stats().await.unwrap().cancelled < 2 {
            assert!(Instant::now() < give_up, "R30: the follower is still held");
            let claimed = queue.claim(&ask("w").max(many(9))).await.unwrap();
            assert_eq!(claimed.len(), 0, "B7, R30: the jobs that run");
        }

        while queue.recover(many(10)).await.unwrap().more {}
        assert_eq!(status(&queue).await.outcome(), Some(BatchOutcome::Cancelled));
        assert_sound(&queue).await;
    }
}

/// B7, R21: a heartbeat ends large pieces of a cancelled batch in steps of about a mebibyte.
/// It extends the leases of the others, and the next heartbeat ends these.
#[tokio::test]
async fn a_heartbeat_ends_large_cancelled_pieces_in_steps() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    queue.create(&NewBatch::new(id())).await.unwrap();
    let large = NewJob::new(vec![b'x'; ClaimRequest::MAX_BYTES * 3 / 5]);
    queue.add(&id(), &vec![large; 3], None).await.unwrap();
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(take_one(&queue).await.receipt);
    }
    queue.cancel_batch(&id()).await.unwrap();
    let worker = ask("w").worker;
    let is_cancelled = async || {
        let extended = queue.extend(&worker, &held, LEASE).await.unwrap();
        let lost = extended.contains(&Extended::LeaseLost);
        assert!(!lost, "B7: no lease is lost: {extended:?}");
        extended.iter().map(|one| *one == Extended::Cancelled).collect::<Vec<_>>()
    };

    let first = is_cancelled().await;
    let second = is_cancelled().await;

    assert_eq!(first, [true, true, false], "R21: the pieces that the first call ends");
    assert_eq!(second, [true; 3], "B7: the pieces that have ended by the second call");
    let status = status(&queue).await;
    assert_eq!((status.outcome(), status.dropped), (Some(BatchOutcome::Cancelled), 3));
    assert_sound(&queue).await;
}

/// R23, B4: pieces are listed in the order of their batches, also after the priority of one
/// was changed.
#[tokio::test]
async fn pieces_are_listed_in_the_changed_order_of_their_batches() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    for name in ["first", "second"] {
        let batch = NewBatch::new(BatchId::new(name).unwrap());
        queue.create(&batch).await.unwrap();
        queue.add(&batch.id, &[name.into()], None).await.unwrap();
    }
    let listed = async || {
        let ask = PeekRequest::new(JobState::Ready, many(10));
        let jobs = queue.peek(&ask).await.unwrap().jobs;
        jobs.into_iter().map(|job| job.payload).collect::<Vec<_>>()
    };
    assert_eq!(listed().await, ["first", "second"]);

    let change = Change::default().priority(BatchPriority::HIGHEST);
    queue.alter(&BatchId::new("second").unwrap(), &change).await.unwrap();

    assert_eq!(listed().await, ["second", "first"]);
    assert_eq!(served(&queue).await, ["second", "first"]);
}

/// B4: the priority of a batch counts before its age, also if the queue has had more than a
/// million batches in between.
#[tokio::test]
async fn an_urgent_batch_goes_before_one_that_is_much_older() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let store = async |name: &'static str, priority: u8| {
        let batch = NewBatch::new(BatchId::new(name).unwrap());
        let batch = batch.priority(BatchPriority::new(priority).unwrap());
        queue.create(&batch).await.unwrap();
        queue.add(&batch.id, &[name.into()], None).await.unwrap();
    };
    store("low", 49).await;
    say(&server, "HSET {q}:totals batches 1048600");
    store("high", 50).await;

    assert_eq!(served(&queue).await, ["high", "low"]);
}

/// R1, B7: if an open batch is listed in the key `cancelling` by mistake, it keeps its
/// pieces.
#[tokio::test]
async fn a_batch_that_is_open_is_not_swept() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    submit(&queue, NewBatch::new(id()), 3).await;
    say(&server, "SADD {q}:batch:cancelling b");

    assert!(!queue.recover(many(10)).await.unwrap().more);

    assert_eq!((status(&queue).await.waiting, served(&queue).await.len()), (3, 3));
}

/// B7: when a batch completes, it is removed from the key `cancelling`.
#[tokio::test]
async fn a_batch_that_completes_is_swept_no_more() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    submit(&queue, NewBatch::new(id()), 1).await;
    let held = take(&queue, 1).await;
    queue.cancel_batch(&id()).await.unwrap();
    say(&server, "SADD {q}:batch:cancelling b");

    finish(&queue, held).await;

    assert_eq!(status(&queue).await.outcome(), Some(BatchOutcome::Cancelled));
    assert!(!keys(&server).contains(&"{q}:batch:cancelling".to_owned()));
}

/// B2: an operator can cancel a piece in any state. The piece is dropped, and counted
/// once.
#[tokio::test]
async fn a_cancelled_piece_is_dropped_wherever_it_is() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    submit(&queue, NewBatch::new(id()), 3).await;
    let held = take(&queue, 3).await;
    queue.retry(&held[0].receipt, LEASE, "no").await.unwrap();
    queue.give_back(&held[1].receipt).await.unwrap();

    for (at, state) in
        [(0, JobState::Scheduled), (1, JobState::Ready), (2, JobState::Leased)]
    {
        let cancelled = queue.cancel(held[at].job()).await.unwrap();
        assert_eq!(cancelled, Cancelled::Removed(state));
    }

    let status = status(&queue).await;
    assert_eq!((status.outcome(), status.dropped), (Some(BatchOutcome::Done), 3));
    assert_eq!(queue.stats().await.unwrap().cancelled, 3);
    assert_sound(&queue).await;
}

/// B8: a redriven piece becomes a job without a batch. The record of its old batch does
/// not change.
#[tokio::test]
async fn a_redriven_piece_is_a_plain_job() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    submit(&queue, NewBatch::new(id()), 1).await;
    let held = take_one(&queue).await;
    assert_eq!(held.batch, Some(id()));
    queue.bury(&held.receipt, "no").await.unwrap();
    let before = status(&queue).await;
    assert_eq!(before.outcome(), Some(BatchOutcome::Failed));

    queue.redrive(&Selection::All).await.unwrap();

    let again = take_one(&queue).await;
    assert_eq!((&again.batch, again.job()), (&None, held.job()));
    finish(&queue, vec![again]).await;
    assert_eq!(status(&queue).await, before);
    assert_sound(&queue).await;
}

/// A claim of a piece reads only the batch of that piece, even if the queue has
/// thousands of batches.
#[tokio::test]
async fn a_claim_looks_at_no_batch_in_vain() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    for number in 0..300 {
        let full = BatchId::new(format!("full-{number}")).unwrap();
        let full = NewBatch::new(full).priority(BatchPriority::HIGHEST);
        submit(&queue, full.limit(NonZeroU32::new(1)), 2).await;
    }
    queue.claim(&ask("w").max(many(300))).await.unwrap();
    submit(&queue, NewBatch::new(id()), 1).await;
    say(&server, "CONFIG RESETSTAT");

    let held = take_one(&queue).await;

    assert_eq!(held.batch, Some(id()));
    assert!(calls(&server, "hmget") + calls(&server, "hget") < 10);
    assert_eq!(queue.claim_one(&ask("w")).await.unwrap(), None);
    assert!(calls(&server, "xreadgroup") < 5);
}

/// Waits until this number of clients wait for the completion of a batch. Returns their ids.
async fn waiting_clients(server: &Server, count: usize) -> Vec<String> {
    let start = std::time::Instant::now();
    loop {
        let clients = say(server, "CLIENT LIST");
        let waiting = clients.lines().filter(|client| client.contains("cmd=xread "));
        let id = |client: &str| client.split([' ', '=']).nth(1).unwrap().to_owned();
        let ids: Vec<_> = waiting.map(id).collect();
        if ids.len() >= count {
            return ids;
        }
        assert!(start.elapsed() < LONG, "they do not wait");
        tokio::task::yield_now().await;
    }
}

/// B5: when a batch completes, all callers that wait for it return at once, however
/// many there are. Before that they sleep.
#[tokio::test]
async fn all_waiters_for_a_batch_return_at_once() {
    assert_within(Duration::from_secs(1), async || {
        let server = Server::start();
        let queue = std::sync::Arc::new(open(&server, "q").await);
        submit(&queue, NewBatch::new(id()), 1).await;
        let held = take_one(&queue).await;
        let waiting: Vec<_> = (0..5)
            .map(|_| {
                let queue = std::sync::Arc::clone(&queue);
                tokio::spawn(async move { queue.wait_batch(&id(), LONG).await })
            })
            .collect();
        waiting_clients(&server, 5).await;

        let start = std::time::Instant::now();
        finish(&queue, vec![held]).await;

        for one in waiting {
            let known = one.await.unwrap().unwrap().unwrap();
            assert_eq!(known.outcome(), Some(BatchOutcome::Done));
        }
        start.elapsed()
    })
    .await;
}

/// B5: a call that waits for a batch learns of the completion although its connection breaks.
#[tokio::test]
async fn a_wait_goes_on_after_its_connection_breaks() {
    let server = Server::start();
    let queue = std::sync::Arc::new(open(&server, "q").await);
    submit(&queue, NewBatch::new(id()), 1).await;
    let held = take_one(&queue).await;
    let waiter = std::sync::Arc::clone(&queue);
    let waiting = tokio::spawn(async move { waiter.wait_batch(&id(), 3 * LONG).await });
    let clients = waiting_clients(&server, 1).await;

    say(&server, &format!("CLIENT KILL ID {}", clients[0]));
    finish(&queue, vec![held]).await;

    let known = waiting.await.unwrap().unwrap().unwrap();
    assert_eq!(known.outcome(), Some(BatchOutcome::Done));
}

/// R4: a token that was used to add pieces is refused for a push. A token that was used
/// for a push is refused for pieces.
#[tokio::test]
async fn a_token_belongs_to_its_call() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    queue.create(&NewBatch::new(id())).await.unwrap();
    let [one, two] = ["one", "two"].map(|it| PushToken::new(it).unwrap());
    let jobs = [NewJob::new("x")];
    queue.add(&id(), &jobs, Some(&one)).await.unwrap();
    queue.push(&jobs, Some(&two)).await.unwrap();

    let pushed = queue.push(&jobs, Some(&one)).await.unwrap_err();
    let added = queue.add(&id(), &jobs, Some(&two)).await.unwrap_err();

    for error in [pushed, added] {
        assert!(matches!(error, Error::Invalid { .. }), "{}", error.full_message());
    }
}

/// B5: if another queue refuses a completion job, the other completion jobs are still
/// pushed. `recover` pushes the refused job once the queue accepts it.
#[tokio::test]
async fn a_completion_that_is_refused_waits_in_the_outbox() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    say(&server, "SET closed foreign");
    submit(&queue, tell("one", "closed"), 0).await;
    submit(&queue, tell("two", "open"), 0).await;

    queue.recover(many(10)).await.unwrap();

    assert_eq!(in_outbox(&server), 1);
    let told = take_one(&open(&server, "open").await).await;
    assert_eq!(&told.payload[..], b"two");
    say(&server, "DEL closed");
    for _ in 0..3 {
        queue.recover(many(10)).await.unwrap();
    }
    assert_eq!(served(&open(&server, "closed").await).await, ["one"]);
    assert!(!keys(&server).contains(&"{q}:batch:outbox".to_owned()));
}

/// B5, B6: a client freezes after it has forwarded a completion job. Until it removes the batch
/// from the outbox, another client has done so, and the name is that of a later batch. The
/// completion job of that batch stays in the outbox, and is pushed.
#[tokio::test]
async fn a_late_forwarder_takes_no_completion_of_a_later_batch() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let there = open(&server, "there").await;
    let proxy = FaultProxy::start(server.address(), VirtualClock::new()).unwrap();
    let config = StreamConfig::new(proxy.actor("late").unwrap().url()).unwrap();
    let name = QueueName::new("q").unwrap();
    let late = StreamQueue::connect(config, name).await.unwrap();
    let brief = || tell("b", "there").retention(NewBatch::MIN_RETENTION);
    say(&server, "SET there foreign");
    submit(&queue, brief(), 0).await;
    say(&server, "DEL there");

    proxy.park();
    let forwarding = tokio::spawn(async move { late.seal(&id()).await });
    let mut frozen = proxy.parked(1).await.remove(0);
    while there.stats().await.unwrap().ready == 0 {
        assert!(proxy.pass("late", frozen.step), "{frozen}");
        frozen = proxy.parked(1).await.remove(0);
    }
    let start = Instant::now();
    while queue.batch(&id()).await.unwrap().is_some() {
        queue.recover(many(10)).await.unwrap();
        assert!(start.elapsed() < LONG, "B6: the record stays");
    }
    say(&server, "RENAME there aside");
    say(&server, "SET there foreign");
    submit(&queue, brief(), 0).await;
    say(&server, "RENAME aside there");
    assert_eq!(in_outbox(&server), 1);
    proxy.heal().await.unwrap();
    forwarding.await.unwrap().unwrap();

    assert_eq!(in_outbox(&server), 1, "{frozen} took the completion of a later batch");
    queue.recover(many(10)).await.unwrap();
    assert_eq!(served(&there).await, ["b", "b"]);
    assert_eq!(in_outbox(&server), 0);
}

/// B5, R25: a completion job for a queue of another backend stays in the outbox. The
/// refusal leaves the connection of this queue as it is, because other calls share it.
#[tokio::test]
async fn a_queue_of_another_backend_breaks_no_connection() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let before = connections(&server);
    assert_eq!(before.len(), 1, "{before:?}");
    server.command(&[b"SET", b"{closed}:marker", b"relq 4 zset"]);

    submit(&queue, tell("one", "closed"), 0).await;
    queue.recover(many(10)).await.unwrap();
    queue.stats().await.unwrap();

    assert_eq!(in_outbox(&server), 1);
    assert_eq!(connections(&server), before);
}

/// The ids of the connections that calls of the queue `q` share.
fn connections(server: &Server) -> Vec<String> {
    let clients = say(server, "CLIENT LIST");
    let of_queue = clients.lines().filter(|it| it.contains(" name=relq:client:q "));
    of_queue.map(|client| client.split(' ').next().unwrap().to_owned()).collect()
}

/// B5, R25: a completion job is not pushed to a queue that has keys and no marker. That
/// this client has seen the marker of its own queue says nothing about the other one.
#[tokio::test]
async fn a_completion_marks_no_queue_of_unknown_backend() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    say(&server, "ZADD {closed}:leased 1 x");

    submit(&queue, tell("one", "closed"), 0).await;
    queue.recover(many(10)).await.unwrap();

    assert_eq!(in_outbox(&server), 1);
    assert!(!keys(&server).contains(&"{closed}:marker".to_owned()));
}

/// B5: a completion job that its queue refuses does not fail a recovery that has pushed
/// others before.
#[tokio::test]
async fn a_refused_completion_behind_others_fails_no_recovery() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    fill_outbox(&server, &queue, 9).await;
    say(&server, "SET there foreign");
    say(&server, "SET closed foreign");
    submit(&queue, tell("refused", "closed"), 0).await;
    say(&server, "DEL there");

    queue.recover(many(100)).await.unwrap();

    assert_eq!(in_outbox(&server), 1);
    assert_eq!(served(&open(&server, "there").await).await.len(), 9);
}

/// Settles a piece while the outbox has 30 completion jobs for the queue `there`.
async fn settle_beside_a_full_outbox(server: &Server) -> StreamQueue {
    let queue = open(server, "q").await;
    fill_outbox(server, &open(server, "q").await, 30).await;
    submit(&queue, NewBatch::new(id()), 1).await;
    let held = take(&queue, 1).await;
    finish(&queue, held).await;
    queue
}

/// B5: a call that settles a piece pushes a few completion jobs to their queues before it
/// returns. It leaves the others to a task, which has not run yet on this runtime of one
/// thread.
#[tokio::test]
async fn a_settlement_forwards_a_handful() {
    let server = Server::start();

    let _queue = settle_beside_a_full_outbox(&server).await;

    assert_eq!(in_outbox(&server), 20);
}

/// B5: a client goes on forwarding until the outbox is empty. No recovery is necessary, and
/// no other call.
#[tokio::test]
async fn a_client_forwards_what_a_settlement_left() {
    let server = Server::start();

    let _queue = settle_beside_a_full_outbox(&server).await;

    let start = Instant::now();
    while in_outbox(&server) > 0 {
        assert!(start.elapsed() < LONG, "{} are left", in_outbox(&server));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let there = open(&server, "there").await;
    assert_eq!(there.stats().await.unwrap().ready, 30);
}

/// B5, R24: the release of a worker, after which its process may end, forwards what the
/// client has left in the outbox.
#[tokio::test]
async fn a_released_worker_leaves_no_completion() {
    let server = Server::start();
    let queue = settle_beside_a_full_outbox(&server).await;

    queue.release_worker(&WorkerId::new("w").unwrap()).await.unwrap();

    assert_eq!(in_outbox(&server), 0);
    assert_eq!(open(&server, "there").await.stats().await.unwrap().ready, 30);
}

/// B5: a settlement does not try a queue that has just refused a completion job, which could
/// take seconds on a silent node. A recovery tries it, and after a minute a settlement again.
#[tokio::test]
async fn a_refused_completion_delays_no_settlement() {
    let server = Server::start();
    let clock = VirtualClock::new();
    let environment =
        Environment::default().with_clock(std::sync::Arc::new(clock.clone()));
    let config = StreamConfig::new(&server.url()).unwrap().environment(environment);
    let name = QueueName::new("q").unwrap();
    let queue = StreamQueue::connect(config, name).await.unwrap();
    say(&server, "SET closed foreign");
    submit(&queue, tell("told", "closed"), 0).await;
    submit(&queue, NewBatch::new(id()), 11).await;
    let mut held = take(&queue, 11).await;
    let last = held.pop().unwrap();
    // Each try writes the marker first.
    let marker = "{closed}:marker".to_owned();
    let was_tried = || say(&server, &format!("DEL {marker}")) == ":1\r\n";
    assert!(was_tried());

    for piece in held {
        finish(&queue, vec![piece]).await;
    }

    assert!(!was_tried());
    queue.recover(many(10)).await.unwrap();
    assert!(was_tried());
    clock.advance(Duration::from_secs(60));
    finish(&queue, vec![last]).await;
    assert!(was_tried());
    assert_eq!(in_outbox(&server), 1);
}

/// B5: when a recovery has pushed the completion jobs that a queue had refused, the next
/// completion job for that queue is pushed at once again.
#[tokio::test]
async fn a_completion_is_told_at_once_after_its_queue_was_repaired() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    say(&server, "SET closed foreign");
    submit(&queue, tell("one", "closed"), 0).await;
    say(&server, "DEL closed");
    queue.recover(many(10)).await.unwrap();
    assert_eq!(in_outbox(&server), 0, "B5: the recovery pushes the refused job");

    submit(&queue, tell("two", "closed"), 0).await;

    assert_eq!(in_outbox(&server), 0, "B5: the next job waits for no recovery");
    assert_eq!(served(&open(&server, "closed").await).await, ["one", "two"]);
}

/// B5: a recovery succeeds although it cannot reach the queue of a completion job, as when
/// another node of a cluster is down. The next recovery pushes the job.
#[tokio::test]
async fn a_queue_out_of_reach_fails_no_recovery() {
    let server = Server::start();
    let proxy = FaultProxy::start(server.address(), VirtualClock::new()).unwrap();
    let url = proxy.actor("reaper").unwrap().url().to_owned();
    let config = StreamConfig::new(&url).unwrap();
    let name = QueueName::new("q").unwrap();
    let reaper = StreamQueue::connect(config, name).await.unwrap();
    let steps = || proxy.steps_by("reaper").len();
    // The first recovery also loads scripts and writes the marker.
    reaper.recover(many(10)).await.unwrap();
    let first = steps();
    reaper.recover(many(10)).await.unwrap();
    let step_of_push = steps() + (steps() - first) + 1;
    fill_outbox(&server, &open(&server, "q").await, 1).await;
    let cut = Fault::Cut(When::Before);
    proxy.plan("reaper", u32::try_from(step_of_push).unwrap(), cut);

    let recovered = reaper.recover(many(10)).await;

    assert_eq!(proxy.unfired(), []);
    recovered.unwrap();
    assert_eq!(in_outbox(&server), 1);
    reaper.recover(many(10)).await.unwrap();
    assert_eq!(in_outbox(&server), 0);
}

/// B5: recovery reports more work until it has pushed all completion jobs.
#[tokio::test]
async fn recovery_empties_the_outbox() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    fill_outbox(&server, &queue, 120).await;

    while queue.recover(many(1000)).await.unwrap().more {}

    assert_eq!(in_outbox(&server), 0);
    assert_eq!(served(&open(&server, "there").await).await.len(), 120);
}

/// R19: all keys of batches are in the slot of the queue.
#[tokio::test]
async fn batches_live_in_the_slot_of_their_queue() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    submit(&queue, NewBatch::new(id()), 2).await;
    take_one(&queue).await;

    let keys = keys(&server);

    assert!(keys.len() > 5, "{keys:?}");
    assert!(keys.iter().all(|key| key == "q" || key.starts_with("{q}:")), "{keys:?}");
}
