//! Carrying out settlements.

use async_trait::async_trait;
use relq_core::{Error, Operation, Receipt};
use relq_redis::bookkeeping::{Failure, Finish, Settles};

use crate::{
    lease::{self, Token},
    scripts::Store,
};

#[async_trait]
impl Settles for Store {
    /// A token that is not relq's is of no lease, whatever is done with it.
    fn has_side_records(&self, receipt: &Receipt) -> bool {
        Token::parse(receipt.token()).is_some_and(|token| token.has_side_records)
    }

    fn lease(&self, receipt: &Receipt) -> Vec<u8> {
        lease::member(receipt)
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
        self.bookkeeping.fail(Operation::Settle, failures).await
    }

    async fn give_back(&self, leases: &[Vec<u8>]) -> Result<Vec<usize>, Error> {
        self.bookkeeping.give_back(Operation::Settle, leases).await
    }
}
