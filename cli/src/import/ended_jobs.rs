//! Tells the jobs that this import has stored already from jobs that ended before it. The
//! store knows the ids of both, and stores neither again (R4, R34).
//!
//! The queue was empty before the import, so a job whose id is known has ended, or is one
//! that the import itself has stored: it is in the file twice, or the reply to a call was
//! lost.

use std::collections::HashSet;

use relq::{JobId, Queue, operator::JobLookup};

use crate::push::{Sender, Unsent};

/// Finds out whether a job whose id the store knows has ended.
#[derive(Debug)]
pub(super) struct EndedJobs<'a> {
    sender: &'a Sender,
    queue: &'a dyn Queue,
    /// The jobs that this import has stored, if the backend has no index of jobs.
    stored: HashSet<JobId>,
}

impl<'a> EndedJobs<'a> {
    pub(super) fn new(sender: &'a Sender, queue: &'a dyn Queue) -> Self {
        Self { sender, queue, stored: HashSet::new() }
    }

    /// Notes that the import has stored a job.
    pub(super) fn note_stored(&mut self, id: JobId) {
        if self.queue.inspect_queue().is_none() {
            self.stored.insert(id);
        }
    }

    /// Whether the job with this id, which the store knows, has ended.
    pub(super) async fn have(&self, id: &JobId) -> Result<bool, Unsent> {
        let Some(index) = self.queue.inspect_queue() else {
            return Ok(!self.stored.contains(id));
        };
        let found = self.sender.repeat(async || index.job(id).await).await?;
        Ok(matches!(found, JobLookup::Ended { .. }))
    }
}
