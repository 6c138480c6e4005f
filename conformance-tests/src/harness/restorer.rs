//! The call of an actor that restores jobs (R34).

use relq_core::{
    Error, JobId,
    operator::{JobView, RestoreQueue},
    outcome::Pushed,
};

use super::{actor::Actor, checks::id};

impl Actor {
    /// Returns the queue's call that restores jobs. Panics if the backend has none.
    pub(crate) fn restorer(&self) -> &dyn RestoreQueue {
        self.restore_queue().expect("the backend restores jobs")
    }

    /// Restores jobs. Returns whether each was stored or is a duplicate.
    pub(crate) async fn restore(&self, jobs: &[JobView]) -> Vec<Pushed> {
        self.restorer().restore(jobs).await.expect("the call is answered")
    }

    /// Restores jobs, all of which must be stored.
    pub(crate) async fn restore_all(&self, jobs: &[JobView]) {
        let stored: Vec<_> =
            jobs.iter().map(|job| Pushed::Stored(id_of(job))).collect();
        assert_eq!(self.restore(jobs).await, stored, "R34: all are stored");
    }

    /// Restores jobs, which must be refused as [`Error::Invalid`].
    pub(crate) async fn is_refused(&self, jobs: &[JobView]) -> String {
        match self.restorer().restore(jobs).await {
            Err(Error::Invalid { reason, .. }) => reason,
            other => panic!("R34: {other:?}"),
        }
    }
}

/// The job with these changes.
pub(crate) fn but(mut job: JobView, change: impl FnOnce(&mut JobView)) -> JobView {
    change(&mut job);
    job
}

/// The id of a job to restore, which has one.
pub(crate) fn id_of(job: &JobView) -> JobId {
    job.id.clone().unwrap_or_else(|| id("none"))
}
