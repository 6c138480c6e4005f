//! Carrying out verdicts.

use async_trait::async_trait;
use queue_core::{Error, Operation, Receipt};
use queue_redis::shelf::{Failure, Finish, Settles};

use crate::{lease, scripts::Store};

#[async_trait]
impl Settles for Store {
    fn has_ties(&self, receipt: &Receipt) -> bool {
        lease::has_ties(receipt)
    }

    fn lease(&self, receipt: &Receipt) -> Vec<u8> {
        receipt.token().to_vec()
    }

    async fn finish(
        &self,
        finish: Finish,
        receipts: &[&Receipt],
    ) -> Result<Vec<usize>, Error> {
        self.finish(receipts, finish).await
    }

    async fn fail(&self, failures: &[Failure<'_>]) -> Result<Vec<usize>, Error> {
        self.shelf.fail(Operation::Settle, failures).await
    }

    async fn give_back(&self, leases: &[Vec<u8>]) -> Result<Vec<usize>, Error> {
        self.shelf.give_back(Operation::Settle, leases).await
    }
}
