//! Overrides of a wait that leases nothing. Each has one bug.

use std::time::Duration;

use relq_conformance::{
    async_trait,
    overrides::{Override, Right},
};
use relq_core::*;

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
