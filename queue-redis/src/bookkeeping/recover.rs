//! Recovery: what a reaper does on any pattern.

use relq_core::{Error, Operation, Recovered};

use super::Bookkeeping;
use crate::PartialEffect;

impl Bookkeeping {
    /// Recovers up to a page of each: ended leases as `expired` does it, which is the
    /// pattern's own, what is due, and what need not be remembered. Whose the queue is
    /// is looked at before (R25).
    ///
    /// # Errors
    /// That of one of them; [`Error::Interrupted`] when another was done.
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
