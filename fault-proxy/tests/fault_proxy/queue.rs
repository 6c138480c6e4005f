//! Runs a real backend through the proxy. The backend has no hooks for tests, and no
//! test sleeps in real time.

use std::{
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, Instant},
};

use relq_core::{
    ClaimRequest, Disposition, Error, NewJob, QueueName, ReliableQueue, Settlement,
    WorkerId,
    environment::{Environment, OsRandomness},
    outcome::Settled,
};
use relq_fault_proxy::proxy::{Behind, Endpoint, Fault};
use relq_zset::{ZsetConfig, ZsetQueue};

use super::ProxyFixture;

const LEASE: Duration = Duration::from_secs(3600);
const PAGE: NonZeroU32 = NonZeroU32::new(100).expect("not zero");

impl ProxyFixture {
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
    let fixture = ProxyFixture::new();
    let queue = fixture.queue(&fixture.actor).await.unwrap();
    queue.push(&[NewJob::new("resize 42")], None).await.unwrap();
    let late = queue.claim(&ask("w1")).await.unwrap().remove(0);
    assert_eq!(queue.recover(PAGE).await.unwrap().requeued, 0);

    fixture.clock.advance(LEASE + Duration::from_millis(1));

    assert_eq!(queue.recover(PAGE).await.unwrap().requeued, 1);
    let again = queue.claim(&ask("w2")).await.unwrap().remove(0);
    assert_eq!(again.attempt(), 2);
    assert_eq!(&again.payload[..], b"resize 42");
    let done = Settlement::new(late.receipt, Disposition::Done);
    assert_eq!(queue.settle(&[done]).await.unwrap(), [Settled::LeaseLost]);
}

#[tokio::test]
async fn a_claim_whose_reply_was_lost_comes_back() {
    let fixture = ProxyFixture::new();
    let reaper = fixture.proxy.actor("reaper").unwrap();
    let producer = fixture.queue(&reaper).await.unwrap();
    producer.push(&[NewJob::new("job")], None).await.unwrap();
    let worker = fixture.queue(&fixture.actor).await.unwrap();
    fixture.proxy.plan("worker", 2, Fault::After(Behind::Dropped));

    let error = worker.claim(&ask("w1")).await.unwrap_err();
    fixture.actor.gone().await;

    assert!(matches!(error, Error::Interrupted { .. }), "{error}");
    assert!(producer.claim(&ask("w2")).await.unwrap().is_empty());
    fixture.clock.advance(LEASE + Duration::from_millis(1));
    assert_eq!(producer.recover(PAGE).await.unwrap().requeued, 1);
    assert_eq!(producer.claim(&ask("w2")).await.unwrap()[0].attempt(), 2);
}

#[tokio::test]
async fn a_waiting_claim_ends_by_the_virtual_clock() {
    let fixture = ProxyFixture::new();
    let queue = Arc::new(fixture.queue(&fixture.actor).await.unwrap());
    let started = Instant::now();
    let mut waiting = tokio::spawn({
        let queue = Arc::clone(&queue);
        async move { queue.claim(&ask("w1").wait(LEASE)).await }
    });

    // A claim that waits sets three timers on the virtual clock: one of its own and one
    // for each of two notifiers.
    let claimed = loop {
        tokio::select! {
            biased;
            claimed = &mut waiting => break claimed,
            () = fixture.clock.asleep(3) => drop(fixture.clock.advance_to_next()),
        }
    };

    assert!(claimed.unwrap().unwrap().is_empty());
    assert!(started.elapsed() < LEASE / 100);
    assert_eq!(fixture.proxy.troubles(), [""; 0]);
}

#[tokio::test]
async fn the_same_run_makes_the_same_steps() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let fixture = ProxyFixture::new();
        let queue = fixture.queue(&fixture.actor).await.unwrap();
        queue.push(&[NewJob::new("a"), NewJob::new("b")], None).await.unwrap();
        let taken = queue.claim(&ask("w1")).await.unwrap().remove(0);
        let done = Settlement::new(taken.receipt, Disposition::Done);
        queue.settle_and_claim(&[done], &ask("w1")).await.claimed.unwrap();
        queue.recover(PAGE).await.unwrap();
        runs.push(fixture.proxy.steps());
    }

    assert!(runs[0].len() > 5);
    assert_eq!(runs[0], runs[1]);
}
