//! A real backend through the gate, with no hook in it and no real sleep.

use std::{
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, Instant},
};

use backend_zset::{ZsetConfig, ZsetQueue};
use conformance_tests::fault::{Behind, Endpoint, Fault};
use queue_core::{
    ClaimRequest, Environment, Error, NewJob, OsRandomness, QueueName, ReliableQueue,
    Settled, Settlement, Verdict, WorkerId,
};

use super::Stage;

const LEASE: Duration = Duration::from_secs(3600);
const PAGE: NonZeroU32 = NonZeroU32::new(100).expect("not zero");

impl Stage {
    async fn queue(&self, endpoint: &Endpoint) -> Result<ZsetQueue, Error> {
        let clock = Arc::new(self.clock.clone());
        let environment = Environment::new(clock, Arc::new(OsRandomness));
        let config = ZsetConfig::new(endpoint.url()).expect("the url is valid");
        let name = QueueName::new("jobs").expect("the name is valid");
        ZsetQueue::connect(config.environment(environment), name).await
    }
}

fn ask(worker: &str) -> ClaimRequest {
    ClaimRequest::new(WorkerId::new(worker).expect("a valid id"), LEASE)
}

#[tokio::test]
async fn an_expired_lease_is_redelivered_without_a_sleep() {
    let stage = Stage::new();
    let queue = stage.queue(&stage.actor).await.unwrap();
    queue.push(&[NewJob::new("resize 42")], None).await.unwrap();
    let late = queue.claim(&ask("w1")).await.unwrap().remove(0);
    assert_eq!(queue.recover(PAGE).await.unwrap().requeued, 0);

    stage.clock.advance(LEASE + Duration::from_millis(1));

    assert_eq!(queue.recover(PAGE).await.unwrap().requeued, 1);
    let again = queue.claim(&ask("w2")).await.unwrap().remove(0);
    assert_eq!(again.attempt(), 2);
    assert_eq!(&again.payload[..], b"resize 42");
    let done = Settlement::new(late.receipt, Verdict::Done);
    assert_eq!(queue.settle(&[done]).await.unwrap(), [Settled::LeaseLost]);
}

#[tokio::test]
async fn a_claim_whose_reply_was_lost_comes_back() {
    let stage = Stage::new();
    let reaper = stage.gate.actor("reaper").unwrap();
    let producer = stage.queue(&reaper).await.unwrap();
    producer.push(&[NewJob::new("job")], None).await.unwrap();
    let worker = stage.queue(&stage.actor).await.unwrap();
    stage.gate.plan("worker", 1, Fault::After(Behind::Dropped));

    let error = worker.claim(&ask("w1")).await.unwrap_err();
    stage.actor.gone().await;

    assert!(matches!(error, Error::Interrupted { .. }), "{error}");
    assert!(producer.claim(&ask("w2")).await.unwrap().is_empty());
    stage.clock.advance(LEASE + Duration::from_millis(1));
    assert_eq!(producer.recover(PAGE).await.unwrap().requeued, 1);
    assert_eq!(producer.claim(&ask("w2")).await.unwrap()[0].attempt(), 2);
}

#[tokio::test]
async fn a_waiting_claim_ends_by_the_virtual_clock() {
    let stage = Stage::new();
    let queue = Arc::new(stage.queue(&stage.actor).await.unwrap());
    let started = Instant::now();
    let mut waiting = tokio::spawn({
        let queue = Arc::clone(&queue);
        async move { queue.claim(&ask("w1").wait(LEASE)).await }
    });

    // The claim's own pause, and two doorbells at the server.
    let claimed = loop {
        tokio::select! {
            biased;
            claimed = &mut waiting => break claimed,
            () = stage.clock.asleep(3) => drop(stage.clock.advance_to_next()),
        }
    };

    assert!(claimed.unwrap().unwrap().is_empty());
    assert!(started.elapsed() < LEASE / 100);
    assert_eq!(stage.gate.troubles(), [""; 0]);
}

#[tokio::test]
async fn the_same_run_makes_the_same_steps() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let stage = Stage::new();
        let queue = stage.queue(&stage.actor).await.unwrap();
        queue.push(&[NewJob::new("a"), NewJob::new("b")], None).await.unwrap();
        let taken = queue.claim(&ask("w1")).await.unwrap().remove(0);
        let done = Settlement::new(taken.receipt, Verdict::Done);
        queue.turn(&[done], &ask("w1")).await.claimed.unwrap();
        queue.recover(PAGE).await.unwrap();
        runs.push(stage.gate.steps());
    }

    assert!(runs[0].len() > 5);
    assert_eq!(runs[0], runs[1]);
}
