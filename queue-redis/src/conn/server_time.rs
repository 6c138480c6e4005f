//! The server's time, which a client estimates and at times asks for (R27).

use futures_util::{FutureExt as _, future::BoxFuture};
use relq_core::{environment::Timestamp, error::Operation};

use super::{Conn, command};
use crate::link::Link;

impl Conn {
    /// An estimate of the server's time, without asking it. `None` if the calls are not
    /// for one queue.
    pub(crate) fn server_time(&self) -> Option<Timestamp> {
        let owner = self.0.owner.as_ref()?;
        owner.server_clock.now(self.environment().clock())
    }

    /// Asks the server for its time, so that the next push has a good estimate. `None` if
    /// the call is not a push, or the last reading is not old. The first poll sends the
    /// question.
    pub(super) fn reading_time(
        &self,
        link: &Link,
        operation: Operation,
    ) -> Option<BoxFuture<'_, ()>> {
        let owner = self.0.owner.as_ref().filter(|_| operation == Operation::Push)?;
        let (server, clock) = (&owner.server_clock, self.environment().clock());
        if !server.is_to_be_read(clock) {
            return None;
        }
        let mut link = link.clone();
        let reading = async move {
            let asked = clock.elapsed();
            match link.ask(&command("TIME"), self.response_timeout()).await {
                Ok(time) => {
                    server.correct(time, clock.elapsed().saturating_sub(asked), clock);
                }
                Err(error) => {
                    tracing::debug!(%error, "the server's time is not known");
                }
            }
        };
        Some(reading.boxed())
    }
}
