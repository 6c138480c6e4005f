//! Recovery: the reaper's work on any pattern.

use relq_core::{Error, error::Operation, outcome::Recovered};

use super::Bookkeeping;
use crate::PartialEffect;

impl Bookkeeping {
    /// Recovers up to a page each of expired leases, by the pattern's function
    /// `expired`, of due jobs, and of records that need not be remembered any longer.
    /// The owner of the queue is checked first (R25).
    ///
    /// # Errors
    /// The error of one of these steps; [`Error::Interrupted`] if another step was
    /// done.
    pub async fn recover(
        &self,
        page: u32,
        expired: impl Future<Output = Result<Recovered, Error>>,
    ) -> Result<Recovered, Error> {
        self.conn.confirm_owner(Operation::Recover).await?;
        let (expired, due, forgot) = tokio::join!(
            expired,
            self.promote(Operation::Recover, page),
            self.forget(page),
        );
        let mut partial = PartialEffect::default();
        partial.add(&expired);
        partial.add(&due);
        partial.add(&forgot);
        let whole = |error| partial.whole(error);
        let (expired, due) = (expired.map_err(whole)?, due.map_err(whole)?);
        Ok(Recovered {
            promoted: due.promoted,
            more: expired.more || due.more || forgot.map_err(whole)?,
            next_in: expired.next_in.into_iter().chain(due.next_in).min(),
            ..expired
        })
    }
}
