//! Carrying out settlements.

use async_trait::async_trait;
use relq_core::{Error, Operation, Receipt};
use relq_redis::bookkeeping::{Failure, Finish, Settles};

use crate::{lease, scripts::Store};

#[async_trait]
impl Settles for Store {
    fn has_side_records(&self, receipt: &Receipt) -> bool {
        lease::has_side_records(receipt)
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
        self.bookkeeping.fail(Operation::Settle, failures).await
    }

    async fn give_back(&self, leases: &[Vec<u8>]) -> Result<Vec<usize>, Error> {
        self.bookkeeping.give_back(Operation::Settle, leases).await
    }
}
