//! Carrying out verdicts.

use async_trait::async_trait;
use queue_core::{Error, Operation, Receipt};
use queue_redis::shelf::{Failure, Finish, Settles};

use crate::{
    lease::{self, Token},
    scripts::Store,
};

#[async_trait]
impl Settles for Store {
    /// A token that is not relq's is of no lease, whatever is done with it.
    fn has_ties(&self, receipt: &Receipt) -> bool {
        Token::parse(receipt.token()).is_some_and(|token| token.has_ties)
    }

    fn lease(&self, receipt: &Receipt) -> Vec<u8> {
        lease::member(receipt)
    }

    async fn finish(
        &self,
        finish: Finish,
        receipts: &[&Receipt],
    ) -> Result<Vec<usize>, Error> {
        if finish.is_tied {
            self.finish_tied(receipts, finish.how).await
        } else {
            self.finish(receipts, finish.how).await
        }
    }

    async fn fail(&self, failures: &[Failure<'_>]) -> Result<Vec<usize>, Error> {
        self.shelf.fail(Operation::Settle, failures).await
    }

    async fn give_back(&self, leases: &[Vec<u8>]) -> Result<Vec<usize>, Error> {
        self.shelf.give_back(Operation::Settle, leases).await
    }
}
