//! Waiting on all parts at once.
//!
//! A future of a part's claim must not be dropped, because jobs may stay leased, so an
//! idle claim waits by `wait_for_jobs`, which leases nothing. A part that is down is
//! probed meanwhile. The probe is a recovery of one job, which may be dropped at any
//! moment (R22).

use std::{num::NonZeroU32, time::Duration};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, select, select_all},
};
use relq_core::ReliableQueue;

use crate::Partitioned;

impl<Q: ReliableQueue + ?Sized> Partitioned<Q> {
    /// Waits until a part may have a job, or until `limit` has passed. Returns the part
    /// to begin the next sweep at.
    pub(crate) async fn wait_for_any(&self, limit: Duration) -> usize {
        let all = (0..self.parts.len()).map(|part| self.wait_for(part, limit));
        let any = select_all(all);
        let end = self.environment.clock().sleep(limit);
        match select(any, end).await {
            futures_util::future::Either::Left((((), part, _), _)) => part,
            futures_util::future::Either::Right(_) => self.turn.next(),
        }
    }

    /// Waits until the part may have a job, or until it can be reached again.
    fn wait_for(&self, part: usize, limit: Duration) -> BoxFuture<'_, ()> {
        let waiting = async move {
            while !self.health.is_up(part) {
                self.environment.clock().sleep(self.health.left_out_for(part)).await;
                if !self.is_still_down(part).await {
                    return;
                }
            }
            let waited = self.parts[part].wait_for_jobs(limit).await;
            // A wait may also end without an error while the part cannot be reached, so
            // its end does not show that the part is up.
            if waited.is_err() && self.notice(part, &waited) {
                // The other parts end the wait, or the limit does.
                std::future::pending::<()>().await;
            }
        };
        waiting.boxed()
    }

    async fn is_still_down(&self, part: usize) -> bool {
        let began = self.health.now();
        let probed = self.parts[part].recover(NonZeroU32::MIN).await;
        if let Ok(recovered) = probed {
            self.uncounted.add(recovered);
        }
        self.notice_since(began, part, &probed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use relq_core::{
        Error,
        environment::Environment,
        error::{ErrorContext, Operation},
    };
    use relq_memory::{MemoryQueue, MemoryStore};

    use super::*;

    /// A part that fails whenever it is claimed from is left out in the end, although the
    /// waits between the claims end without an error.
    #[tokio::test]
    async fn a_wait_that_ends_does_not_show_that_the_part_is_up() {
        let name = "emails".parse().unwrap();
        let part: MemoryQueue =
            MemoryStore::default().open(name, Environment::default());
        let queue = Partitioned::new(vec![Arc::new(part)], Environment::default());
        let queue = queue.unwrap();
        let fail = || {
            let at = ErrorContext { backend: "mine", operation: Operation::Claim };
            let error = Error::Unavailable { at, source: "no route".into() };
            queue.notice::<()>(0, &Err(error));
        };
        for _ in 1..4 {
            fail();
            queue.wait_for(0, Duration::from_millis(1)).await;
        }
        assert!(queue.health.is_up(0));
        fail();

        assert!(!queue.health.is_up(0));
    }
}
