//! Overrides of the call that restores jobs, each with one bug.

use async_trait::async_trait;
use relq_conformance::overrides::{Override, Right};
use relq_core::{
    Error,
    operator::{JobView, StateDetail},
    outcome::Pushed,
};

/// Makes dead jobs ready, as an import that knows only pushes does.
pub(crate) struct RestoresDeadAsReady;

#[async_trait]
impl Override for RestoresDeadAsReady {
    async fn restore(
        &self,
        right: &Right,
        jobs: &[JobView],
    ) -> Result<Vec<Pushed>, Error> {
        let mut jobs = jobs.to_vec();
        for job in &mut jobs {
            if let StateDetail::Dead { .. } = job.detail {
                (job.detail, job.attempt) = (StateDetail::Ready, 0);
            }
        }
        right.restorer().restore(&jobs).await
    }
}
