//! The call that stores jobs as they were in a queue (R34).

use async_trait::async_trait;
use relq_core::{
    Error,
    operator::{JobView, RestoreQueue},
    outcome::Pushed,
};

use super::RedisQueue;
use crate::{bookkeeping::Restored, pattern::Pattern};

#[async_trait]
impl<P: Pattern> RestoreQueue for RedisQueue<P> {
    async fn restore(&self, jobs: &[JobView]) -> Result<Vec<Pushed>, Error> {
        let checked = P::capabilities().check_restore(jobs)?;
        let jobs = jobs.iter().zip(checked);
        let jobs: Vec<_> =
            jobs.filter_map(|(view, job)| Restored::new(view, job)).collect();
        self.pattern.bookkeeping().restore(&jobs).await
    }
}
