//! The checks of batches, pieces and waits. Every backend makes them before it sends
//! anything to the store.

use std::time::Duration;

use super::NewBatch;
use crate::{Error, NewJob, Priority, capabilities::Capabilities, error::Operation};

impl Capabilities {
    /// Refuses a batch that is not valid.
    ///
    /// # Errors
    /// [`Error::Invalid`] for too much metadata, for a retention under
    /// [`NewBatch::MIN_RETENTION`] or too long to add to a time, and for a completion
    /// job with an id, a unique key or a job to follow of its own; and the errors of
    /// [`check_push`](Self::check_push) for that job.
    pub fn check_new_batch(&self, batch: &NewBatch) -> Result<(), Error> {
        let create = Operation::CreateBatch;
        let size = batch.metadata.len();
        if size > NewBatch::MAX_METADATA {
            let most = NewBatch::MAX_METADATA;
            let reason =
                format!("metadata of {size} bytes is over the limit of {most}");
            return Err(self.invalid(create, reason));
        }
        if batch.retention < NewBatch::MIN_RETENTION {
            return Err(self.invalid(create, "the retention is shorter than 1 s"));
        }
        self.check_duration(create, "the retention", batch.retention)?;
        let Some(on_complete) = &batch.on_complete else { return Ok(()) };
        if on_complete.job.id.is_some() || on_complete.job.unique.is_some() {
            let reason = "a completion job has no id and no unique key of its own";
            return Err(self.invalid(create, reason));
        }
        if on_complete.job.after.is_some() {
            let reason = "a completion job has no job to follow of its own";
            return Err(self.invalid(create, reason));
        }
        self.check_jobs(create, std::slice::from_ref(&on_complete.job))
    }

    /// Refuses pieces that the backend cannot store, before anything is written (R5).
    ///
    /// # Errors
    /// The errors of [`check_push`](Self::check_push), and [`Error::Invalid`] for a
    /// piece with a delay, an expiry, a unique key, a priority or a job to follow of its
    /// own.
    pub fn check_pieces(
        &self,
        pieces: &[NewJob],
        has_token: bool,
    ) -> Result<(), Error> {
        let add = Operation::AddPieces;
        self.check_batch(add, pieces.len())?;
        self.check_token(add, has_token)?;
        for piece in pieces {
            if let Some(option) = own_option(piece) {
                let reason = format!("a piece has no {option} of its own");
                return Err(self.invalid(add, reason));
            }
        }
        self.check_jobs(add, pieces)
    }

    /// Refuses a wait whose timeout is too long to add to a time.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a timeout above
    /// [`MAX_DURATION`](crate::limits::MAX_DURATION).
    pub fn check_wait(&self, timeout: Duration) -> Result<(), Error> {
        self.check_duration(Operation::WaitBatch, "the timeout", timeout)
    }
}

/// Returns the name of an option that the piece sets although only a batch may set it.
/// Returns `None` when the piece sets no such option.
fn own_option(piece: &NewJob) -> Option<&'static str> {
    let options = [
        (!piece.delay.is_zero(), "delay"),
        (piece.expires_in.is_some(), "expiry"),
        (piece.unique.is_some(), "unique key"),
        (piece.priority != Priority::NORMAL, "priority"),
        (piece.after.is_some(), "job to follow"),
    ];
    options.into_iter().find_map(|(is_set, option)| is_set.then_some(option))
}
