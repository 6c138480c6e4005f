//! The call that restores jobs, of a queue with one deliberate fault.

use async_trait::async_trait;
use relq_core::{
    Error,
    operator::{JobView, RestoreQueue},
    outcome::Pushed,
};

use super::{OverriddenQueue, Right};

impl Right {
    /// Returns the call of the queue that restores jobs.
    ///
    /// # Panics
    /// When the queue has none. Then the queue with overrides has none either.
    pub fn restorer(&self) -> &dyn RestoreQueue {
        self.queue.restore_queue().expect("the healthy queue restores jobs")
    }
}

#[async_trait]
impl RestoreQueue for OverriddenQueue {
    async fn restore(&self, jobs: &[JobView]) -> Result<Vec<Pushed>, Error> {
        self.overrides.restore(&self.right, jobs).await
    }
}
