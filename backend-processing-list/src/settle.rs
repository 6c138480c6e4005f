//! Settles leased jobs: ends them, retries or buries them, or gives them back.

use std::collections::BTreeMap;

use async_trait::async_trait;
use futures_util::future::join_all;
use relq_core::{Error, Receipt, error::Operation};
use relq_redis::{
    PartialEffect,
    bookkeeping::{Failure, Finish, Settles, Step, Steps},
};

use crate::{lease::Lease, scripts::Store, session::Site};

#[async_trait]
impl Settles for Store {
    fn steps(&self) -> Steps {
        self.bookkeeping.steps()
    }

    fn has_side_records(&self, receipt: &Receipt) -> bool {
        Lease::of(receipt).is_some_and(|lease| lease.has_side_records())
    }

    fn lease(&self, receipt: &Receipt) -> Vec<u8> {
        receipt.token().to_vec()
    }

    /// Ends jobs with one script call for each processing list that holds some of them.
    /// Nearly always this is one call.
    async fn finish(
        &self,
        finish: Finish,
        receipts: &[&Receipt],
    ) -> Result<Step, Error> {
        let (by_site, mut lost) = by_site(receipts);
        let calls = by_site.iter().map(|(site, positions)| {
            let tokens = positions.iter().map(|at| receipts[*at].token());
            self.finish(finish, site, tokens.collect())
        });
        let answers = join_all(calls).await;
        let partial = PartialEffect::of(&answers);
        for (answer, positions) in answers.into_iter().zip(by_site.values()) {
            let answer = answer.map_err(|error| partial.whole(error))?;
            lost.extend(answer.into_iter().filter_map(|at| positions.get(at)));
        }
        Ok(Step { handled: receipts.len(), lost })
    }

    async fn fail(&self, failures: &[Failure<'_>]) -> Result<Step, Error> {
        self.fail(Operation::Settle, failures).await
    }

    async fn give_back(&self, leases: &[Vec<u8>]) -> Result<Step, Error> {
        self.give_back(Operation::Settle, leases).await
    }
}

/// Groups the positions of the receipts by the list that holds their jobs. Returns
/// separately the positions of receipts that this backend did not issue.
fn by_site(receipts: &[&Receipt]) -> (BTreeMap<Site, Vec<usize>>, Vec<usize>) {
    let (mut by_site, mut lost) = (BTreeMap::<_, Vec<_>>::new(), Vec::new());
    for (at, receipt) in receipts.iter().enumerate() {
        match Lease::of(receipt) {
            Some(lease) => by_site.entry(lease.site).or_default().push(at),
            None => lost.push(at),
        }
    }
    (by_site, lost)
}
