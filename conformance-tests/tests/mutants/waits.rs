//! Overrides of a wait that leases nothing. Each has one bug.

use std::{num::NonZeroU32, sync::Mutex, time::Duration};

use relq_conformance::{
    async_trait,
    overrides::{Override, Right},
};
use relq_core::{
    operator::{JobState, PeekRequest, StateDetail},
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
