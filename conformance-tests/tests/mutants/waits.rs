//! Overrides of a wait that leases nothing, and of a waiting claim. Each has one bug.

use std::{
    num::NonZeroU32,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use relq_conformance::{
    Profile, Subject, async_trait, judge_case,
    overrides::{OverriddenQueue, Override, Right},
    own::Sqlite,
};
use relq_core::{
    environment::Environment,
    operator::{JobState, PeekRequest, StateDetail},
    outcome::Pushed,
    *,
};

/// Hears no notification: it waits until it is time to look again.
pub(crate) struct Deaf;

#[async_trait]
impl Override for Deaf {
    async fn wait_for_jobs(&self, right: &Right, limit: Duration) -> Result<(), Error> {
        let pause = limit.min(right.capabilities().lateness);
        right.environment.clock().sleep(pause).await;
        Ok(())
    }
}

/// Does not wait.
pub(crate) struct Restless;

#[async_trait]
impl Override for Restless {
    async fn wait_for_jobs(&self, _: &Right, _: Duration) -> Result<(), Error> {
        Ok(())
    }
}

/// Claims a job to see whether there is one, and keeps it.
pub(crate) struct Claiming;

#[async_trait]
impl Override for Claiming {
    async fn wait_for_jobs(&self, right: &Right, limit: Duration) -> Result<(), Error> {
        right.wait_for_jobs(limit).await?;
        let prober = WorkerId::new("prober").expect("a valid name");
        let lease = Duration::from_secs(30);
        right.claim(&ClaimRequest::new(prober, lease)).await.map(drop)
    }
}

/// Waits by a claim of its own, whose jobs it gives back. A wait that is dropped leaves the
/// claim behind, and the job that it takes stays leased.
pub(crate) struct LeftBehind;

#[async_trait]
impl Override for LeftBehind {
    async fn wait_for_jobs(&self, right: &Right, limit: Duration) -> Result<(), Error> {
        let prober = WorkerId::new("prober").expect("a valid name");
        let ask = ClaimRequest::new(prober, Duration::from_secs(30));
        let ask = ask.wait(limit.min(limits::MAX_DURATION));
        let queue = right.queue.clone();
        let claim = tokio::spawn(async move { queue.claim(&ask).await });
        let taken = claim.await.expect("the claim ends")?;
        let give_back = |one: &Delivery| {
            Settlement::new(one.receipt.clone(), Disposition::GiveBack)
        };
        let back: Vec<_> = taken.iter().map(give_back).collect();
        right.settle(&back).await.map(drop)
    }
}

/// Waits for as long as it is asked, and longer than a moment can be stored.
pub(crate) struct Unbounded;

#[async_trait]
impl Override for Unbounded {
    async fn wait_for_jobs(&self, right: &Right, limit: Duration) -> Result<(), Error> {
        let elapsed = right.environment.clock().elapsed();
        let deadline = elapsed.checked_add(limit).expect("a moment that can be stored");
        right.wait_for_jobs(deadline - elapsed).await
    }
}

/// Waits for the next delayed job for as long as it was away when a claim found nothing,
/// counted from the beginning of the wait.
#[derive(Default)]
pub(crate) struct CountsFromItself(Mutex<Option<Duration>>);

#[async_trait]
impl Override for CountsFromItself {
    async fn claim(
        &self,
        right: &Right,
        ask: &ClaimRequest,
    ) -> Result<Vec<Delivery>, Error> {
        let taken = right.claim(ask).await?;
        let first = PeekRequest::new(JobState::Scheduled, NonZeroU32::MIN);
        let next = right.peek(&first).await?.jobs.pop().map(|job| job.detail);
        let now = right.environment.clock().now();
        *self.0.lock().unwrap() = match next {
            Some(StateDetail::Scheduled { due }) => Some(due.since(now)),
            _ => None,
        };
        Ok(taken)
    }

    async fn wait_for_jobs(&self, right: &Right, limit: Duration) -> Result<(), Error> {
        let due_in = *self.0.lock().unwrap();
        match due_in {
            Some(due_in) => {
                right.environment.clock().sleep(due_in.min(limit)).await;
                Ok(())
            }
            None => right.wait_for_jobs(limit).await,
        }
    }
}

/// Claims that hear no notification and look again after each pause.
pub(crate) struct Polling {
    pause: Duration,
    /// Whether they look only if a job was pushed since they last looked.
    sees_pushes_only: bool,
    pushes: AtomicU32,
}

impl Polling {
    fn every(pause: Duration) -> Self {
        Self { pause, sees_pushes_only: false, pushes: AtomicU32::new(0) }
    }

    pub(crate) fn for_pushes() -> Self {
        Self { sees_pushes_only: true, ..Self::every(Duration::from_millis(100)) }
    }
}

#[async_trait]
impl Override for Polling {
    async fn push(
        &self,
        right: &Right,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        let pushed = right.push(jobs, token).await;
        self.pushes.fetch_add(1, Ordering::SeqCst);
        pushed
    }

    async fn claim(
        &self,
        right: &Right,
        ask: &ClaimRequest,
    ) -> Result<Vec<Delivery>, Error> {
        let clock = right.environment.clock();
        let end = clock.elapsed().saturating_add(ask.wait);
        let at_once = ask.clone().wait(Duration::ZERO);
        let mut seen = None;
        loop {
            let pushes = Some(self.pushes.load(Ordering::SeqCst));
            if !self.sees_pushes_only || seen != pushes {
                seen = pushes;
                let taken = right.claim(&at_once).await?;
                if !taken.is_empty() {
                    return Ok(taken);
                }
            }
            let left = end.saturating_sub(clock.elapsed());
            if left.is_zero() {
                return Ok(Vec::new());
            }
            clock.sleep(left.min(self.pause)).await;
        }
    }
}

/// SQLite with claims that only poll.
struct PollingSqlite;

#[async_trait]
impl Subject for PollingSqlite {
    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        let queue = Sqlite.connect(endpoint, queue, environment).await?;
        let right = Right { queue, environment: environment.clone() };
        let polling = Polling::every(Duration::from_secs(5));
        Ok(Arc::new(OverriddenQueue::new(right, Arc::new(polling))))
    }
}

/// The clock of an embedded store runs on, so a claim counts as woken for seconds. A claim
/// that polls within this time is noticed nevertheless.
#[test]
fn a_claim_that_polls_on_an_embedded_store_is_not_woken() {
    let case = "waiting::a_push_wakes";

    let words = judge_case(PollingSqlite, Profile::Embedded, case).unwrap_err();

    assert!(words.contains("the call waits for more than"), "{words}");
}
