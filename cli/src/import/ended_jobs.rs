//! Tells the jobs that this import has stored already from jobs that ended before it. The
//! store knows the ids of both, and stores neither again (R4, R34).
//!
//! The queue was empty before the import, and the import stores each id once. So a job whose
//! id is known has ended, or the reply to the call that stored it was lost.

use relq::{JobId, Queue, operator::JobLookup};

use crate::push::{Sender, Unsent};

/// Finds out whether a job whose id the store knows has ended.
#[derive(Debug)]
pub(super) struct EndedJobs<'a> {
    sender: &'a Sender,
    queue: &'a dyn Queue,
}

impl<'a> EndedJobs<'a> {
    pub(super) fn new(sender: &'a Sender, queue: &'a dyn Queue) -> Self {
        Self { sender, queue }
    }

    /// Whether the job with this id, which the store knows, has ended.
    pub(super) async fn have(&self, id: &JobId) -> Result<bool, Unsent> {
        // A backend without an index cannot restore jobs, and the repetition of a push with
        // its token returns the first reply. So a known id is that of an ended job.
        let Some(index) = self.queue.inspect_queue() else { return Ok(true) };
        let found = self.sender.repeat(async || index.job(id).await).await?;
        Ok(matches!(found, JobLookup::Ended { .. }))
    }
}
