//! Tests of purges of many batches.

use relq_conformance::{
    proxy::{Fault, FaultProxy, VirtualClock},
    server::Server,
};
use relq_core::{
    batch::{Added, BatchId, BatchOutcome, BatchQueue, NewBatch},
    error::Effect,
    outcome::{Extended, Pushed, Settled},
    results::JobResult,
    *,
};
use relq_stream::{StreamConfig, StreamQueue};

use crate::{
    batches::{fill_outbox, id, status, submit},
    fixture::*,
};

/// R23: a purge removes all batches, even if one script call cannot remove them all.
#[tokio::test]
async fn a_purge_removes_any_number_of_batches() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let names = (0..501).map(|number| BatchId::new(format!("b{number}")).unwrap());
    for batch in names {
        submit(&queue, NewBatch::new(batch), 1).await;
    }
    push(&queue, "plain").await;
    take_one(&queue).await;
    // Another client's keys in place of side records are removed as well.
    say(&server, "SET {q}:ids theirs");
    say(&server, "SET {q}:unique theirs");

    let purged = queue.purge().await.unwrap();

    assert_eq!(purged, 502);
    assert_eq!(keys(&server), ["{q}:marker"]);
}

/// R23, R4, R29, R30: a purge that fails at its second step has forgotten all about the pieces
/// that it has removed, and nothing about the others. The results of the removed ones say so,
/// and their followers are cancelled.
#[tokio::test]
async fn an_interrupted_purge_leaves_a_batch_with_its_other_pieces() {
    const PIECES: usize = 700;
    let server = Server::start();
    let proxy = FaultProxy::start(server.address(), VirtualClock::new()).unwrap();
    let operator = operator(&proxy).await;
    let queue = open(&server, "q").await;
    let pieces = create_before_others(&queue, PIECES).await;
    let follower = |leader: usize| {
        let job =
            NewJob::new("follows").after(piece_id(leader)).id(follower_id(leader));
        job.keep_result(LEASE)
    };
    let followers = [follower(0), follower(PIECES - 1)];
    queue.push(&followers, None).await.unwrap();
    // The second delivery has a last error, which tells of the first.
    let brief = ClaimRequest::new(WorkerId::new("gone").unwrap(), BRIEF).max(many(2));
    queue.claim(&brief).await.unwrap();
    until(&queue, |stats| stats.overdue == 2).await;
    assert_eq!(queue.recover(many(10)).await.unwrap().requeued, 2);
    let held = queue.claim(&brief).await.unwrap();

    fail_at_second_step(&proxy, &operator).await;

    let left = status(&queue).await;
    let removed = usize::try_from(left.dropped).unwrap();
    assert!((1..PIECES).contains(&removed), "{left:?}");
    assert_eq!(left.leased, 0, "B3: the slots of removed pieces are free: {left:?}");
    assert_eq!(queue.stats().await.unwrap().leased, 0, "R23");
    let recovered = queue.recover(many(10)).await.unwrap();
    assert_eq!((recovered.requeued, recovered.buried), (0, 0));
    assert_eq!(queue.ack(&held[0].receipt).await.unwrap(), Settled::LeaseLost);
    assert_eq!(dead(&queue).await, []);
    assert_sound(&queue).await;
    let ids = [0, PIECES - 1].map(|number| [piece_id(number), follower_id(number)]);
    let results = queue.result_queue().unwrap();
    let told = results.read_results(ids.as_flattened()).await.unwrap();
    let cancelled = JobResult::Cancelled { leader: Some(piece_id(0)) };
    let removed_ones = [Some(JobResult::Purged), Some(cancelled)];
    assert_eq!(told[..2], removed_ones, "R29, R30: a removed piece and its follower");
    let unfinished = Some(JobResult::Unfinished { progress: None });
    assert_eq!(
        told[2..],
        [unfinished.clone(), unfinished],
        "R29, R30: those that stay"
    );
    let again = queue.push(&pieces, None).await.unwrap();
    let is_new = |pushed: &Pushed| matches!(pushed, Pushed::Stored(_));
    assert!(again[..removed].iter().all(is_new), "{again:?}");
    assert!(!again[removed..].iter().any(is_new), "{again:?}");

    let one_follower = 1;
    assert_eq!(queue.purge().await.unwrap(), PIECES as u64 + one_follower);
    assert_eq!(keys(&server), ["{q}:ended", "{q}:marker"]);
}

/// Opens the queue behind the proxy, under the name `operator`.
async fn operator(proxy: &FaultProxy) -> StreamQueue {
    let url = proxy.actor("operator").unwrap().url().to_owned();
    let config = StreamConfig::new(&url).unwrap();
    let name = QueueName::new("q").unwrap();
    let operator = StreamQueue::connect(config, name).await.unwrap();
    // The server then knows the script, so that each step is one command.
    operator.purge().await.unwrap();
    operator
}

/// Makes a purge whose second step fails.
async fn fail_at_second_step(proxy: &FaultProxy, operator: &StreamQueue) {
    let second_step = proxy.steps_by("operator").len() + 2;
    let error = Fault::Error("OOM the test says so".to_owned());
    proxy.plan("operator", u32::try_from(second_step).unwrap(), error);
    let failed = operator.purge().await.unwrap_err();
    assert_eq!(failed.effect(), Effect::Maybe, "{}", failed.full_message());
}

/// B5, B10: a purge fails after the step that has removed the last piece of a batch, and
/// before the step that removes the batch. The batch then completes.
#[tokio::test]
async fn a_purge_that_ends_behind_the_last_piece_leaves_no_running_batch() {
    // As many as one step removes.
    const PIECES: u32 = 500;
    let server = Server::start();
    let proxy = FaultProxy::start(server.address(), VirtualClock::new()).unwrap();
    let operator = operator(&proxy).await;
    let queue = open(&server, "q").await;
    submit(&queue, NewBatch::new(id()), PIECES).await;
    for number in 0..PIECES {
        let ended = BatchId::new(format!("b{number}")).unwrap();
        submit(&queue, NewBatch::new(ended), 0).await;
    }

    fail_at_second_step(&proxy, &operator).await;

    let left = status(&queue).await;
    let counts = (left.dropped, left.waiting, left.outcome());
    assert_eq!(counts, (u64::from(PIECES), 0, None), "B2: {left:?}");
    let start = std::time::Instant::now();
    while status(&queue).await.outcome().is_none() {
        queue.recover(many(10)).await.unwrap();
        assert!(start.elapsed() < LONG, "B5: the batch does not complete");
    }
    assert_eq!(status(&queue).await.outcome(), Some(BatchOutcome::Done));
    assert_sound(&queue).await;
}

/// R7, R4, R29, B2: a purge fails after it has removed leased pieces, and their producer adds
/// the same pieces again, or pushes jobs of their ids, before the leases would have ended. The
/// holders of the removed pieces keep no lease, and end none of the new jobs.
#[tokio::test]
async fn a_holder_from_before_an_interrupted_purge_ends_no_new_job() {
    const PIECES: usize = 700;
    let server = Server::start();
    let proxy = FaultProxy::start(server.address(), VirtualClock::new()).unwrap();
    let operator = operator(&proxy).await;
    let queue = open(&server, "q").await;
    let pieces = create_before_others(&queue, PIECES).await;
    let held = take(&queue, 4).await;

    fail_at_second_step(&proxy, &operator).await;

    assert_eq!(queue.stats().await.unwrap().leased, 0, "R23: the jobs are gone");
    let is_new = |pushed: &Pushed| matches!(pushed, Pushed::Stored(_));
    let added = queue.add(&id(), &pieces[..2], None).await.unwrap();
    let Added::Stored(added) = added else { panic!("{added:?}") };
    let pushed = queue.push(&pieces[2..4], None).await.unwrap();
    assert!(added.iter().chain(&pushed).all(is_new), "{added:?} {pushed:?}");
    let before = status(&queue).await;
    let receipts: Vec<_> = held.iter().map(|one| one.receipt.clone()).collect();
    let extended =
        queue.extend(&WorkerId::new("w").unwrap(), &receipts, LEASE).await.unwrap();
    assert_eq!(extended, [Extended::LeaseLost; 4]);
    for receipt in &receipts {
        assert_eq!(
            queue.ack(receipt).await.unwrap(),
            Settled::LeaseLost,
            "{receipt:?}"
        );
    }
    let after = status(&queue).await;
    assert_eq!((after.done, after.waiting), (before.done, before.waiting), "B2");
    assert_eq!(queue.stats().await.unwrap().finished, 0);
    let results = queue.result_queue().unwrap();
    let told = results.read_results(&[0, 2].map(piece_id)).await.unwrap();
    let unfinished = Some(JobResult::Unfinished { progress: None });
    assert_eq!(told, [unfinished.clone(), unfinished], "R29");
    assert_eq!(dead(&queue).await, []);
    assert_sound(&queue).await;
}

/// Creates a batch with so many pieces, and behind it 500 others, with which a purge takes more
/// than one step. Returns the pieces.
async fn create_before_others(queue: &StreamQueue, pieces: usize) -> Vec<NewJob> {
    let known =
        |number: usize| NewJob::new("known").id(piece_id(number)).keep_result(LEASE);
    let pieces: Vec<_> = (0..pieces).map(known).collect();
    queue.create(&NewBatch::new(id())).await.unwrap();
    queue.add(&id(), &pieces, None).await.unwrap();
    for number in 0..500 {
        let batch = BatchId::new(format!("b{number}")).unwrap();
        queue.create(&NewBatch::new(batch)).await.unwrap();
    }
    pieces
}

fn piece_id(number: usize) -> JobId {
    JobId::new(format!("piece-{number}")).unwrap()
}

/// The id of the job that follows this piece.
fn follower_id(piece: usize) -> JobId {
    JobId::new(format!("follower-{piece}")).unwrap()
}

/// R23: also a completion job that cannot be delivered.
#[tokio::test]
async fn a_purge_removes_what_was_not_delivered() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    fill_outbox(&server, &queue, 2).await;
    say(&server, "HDEL {q}:batch:record:b1 completion_queue");

    queue.purge().await.unwrap();

    assert_eq!(keys(&server), ["{q}:marker", "{there}:marker"]);
}
