//! Overrides of the calls on followers, each with one bug.

use std::num::NonZeroU32;

use async_trait::async_trait;
use relq_conformance::overrides::{Override, Right};
use relq_core::{
    operator::{JobState, PeekRequest, StateDetail},
    outcome::Settled,
    *,
};

/// Cancels the held jobs when a worker buries one, as if a burial were an end.
pub(crate) struct CancelsTheFollowersOfTheDead;

#[async_trait]
impl Override for CancelsTheFollowersOfTheDead {
    async fn settle(
        &self,
        right: &Right,
        done: &[Settlement],
    ) -> Result<Vec<Settled>, Error> {
        let settled = right.settle(done).await?;
        let buries =
            |one: &Settlement| matches!(one.disposition, Disposition::Dead { .. });
        if done.iter().any(buries) {
            let page = NonZeroU32::new(100).expect("not zero");
            let held = right.peek(&PeekRequest::new(JobState::Scheduled, page)).await?;
            for job in held.jobs {
                if let (StateDetail::Following { .. }, Some(id)) = (job.detail, job.id)
                {
                    right.cancel(&id).await?;
                }
            }
        }
        Ok(settled)
    }
}
