//! Heartbeats: extending leases by a script.

use std::time::Duration;

use redis::ToRedisArgs;
use relq_core::{Error, environment::Timestamp, error::Operation, outcome::Extended};

use super::Bookkeeping;
use crate::{Reply, entry::millis};

/// The result of one heartbeat: which leases were extended, lost or cancelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    until: Timestamp,
    lost: Vec<usize>,
    cancelled: Vec<usize>,
}

impl Beat {
    /// Reads the reply of a heartbeat script: {new end (ms), {positions of the
    /// lost leases}, {positions of the cancelled leases}}.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if the reply has another form.
    pub fn read(reply: Reply) -> Result<Self, Error> {
        let mut parts = reply.parts()?;
        let until = Timestamp::from_unix_ms(parts.part().number()?);
        Ok(Self {
            until,
            lost: parts.part().positions()?,
            cancelled: parts.part().positions()?,
        })
    }

    /// Returns the result for each of the `leases` leases that the heartbeat named.
    pub fn answers(self, leases: usize) -> Vec<Extended> {
        let mut answers = vec![Extended::Until(self.until); leases];
        let lost = self.lost.into_iter().map(|at| (at, Extended::LeaseLost));
        let cancelled = self.cancelled.into_iter().map(|at| (at, Extended::Cancelled));
        for (at, what) in lost.chain(cancelled) {
            // A position beyond the leases of the request is ignored.
            if let Some(answer) = answers.get_mut(at) {
                *answer = what;
            }
        }
        answers
    }
}

impl Bookkeeping {
    /// Extends the leases `held` in the sorted set `leased`, whose members are the names
    /// of leases. `held` must not be empty.
    ///
    /// # Errors
    /// The errors of [`Conn::call`](crate::Conn::call).
    pub async fn beat<N: ToRedisArgs>(
        &self,
        leased: &str,
        held: impl Iterator<Item = N>,
        lease: Duration,
    ) -> Result<Beat, Error> {
        let keys = [leased, &self.keys.cancelled];
        let mut call = self.scripts.extend.keys(&keys).arg(millis(lease));
        held.for_each(|name| call.push_arg(name));
        Beat::read(call.run(&self.conn, Operation::Extend).await?)
    }
}
