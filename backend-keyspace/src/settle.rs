//! Carrying out settlements.

use async_trait::async_trait;
use relq_core::{Error, Operation, Receipt};
use relq_redis::bookkeeping::{Failure, Finish, Settles};

use crate::{keys, lease, scripts::Store};

#[async_trait]
impl Settles for Store {
    fn has_side_records(&self, receipt: &Receipt) -> bool {
        lease::has_side_records(receipt)
    }

    fn lease(&self, receipt: &Receipt) -> Vec<u8> {
        lease::key_of(receipt).into()
    }

    async fn finish(
        &self,
        finish: Finish,
        receipts: &[&Receipt],
    ) -> Result<Vec<usize>, Error> {
        if finish.needs_side_records {
            self.finish_with_side_records(receipts, finish.how).await
        } else {
            self.finish(receipts, finish.how).await
        }
    }

    async fn fail(&self, failures: &[Failure<'_>]) -> Result<Vec<usize>, Error> {
        self.fail(Operation::Settle, failures).await
    }

    async fn give_back(&self, leases: &[Vec<u8>]) -> Result<Vec<usize>, Error> {
        self.give_back(Operation::Settle, leases).await
    }
}

impl Store {
    /// Schedules or buries failed jobs; answers the positions of the lost leases.
    pub(crate) async fn fail(
        &self,
        operation: Operation,
        failures: &[Failure<'_>],
    ) -> Result<Vec<usize>, Error> {
        let leases = failures.iter().map(|failure| text(&failure.lease));
        self.bookkeeping.with_keys(leases).fail(operation, failures).await
    }

    /// Makes jobs ready as if they had not been claimed; answers the positions of the
    /// lost leases.
    pub(crate) async fn give_back(
        &self,
        operation: Operation,
        leases: &[Vec<u8>],
    ) -> Result<Vec<usize>, Error> {
        let keys = leases.iter().flat_map(|lease| {
            let id = lease::id_of(&lease.clone().into());
            [text(lease), keys::item(&text(&id))]
        });
        self.bookkeeping.with_keys(keys).give_back(operation, leases).await
    }
}

/// Leases that relq made are text.
fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}
