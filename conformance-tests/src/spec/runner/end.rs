//! The end of a sequence.

use std::num::NonZeroU32;

use super::super::{
    draft,
    operation::{DispositionKind, DraftSettlement, STATES, Who},
    reference::CheckResult,
    runner::{Runner, Scrutiny},
};

/// How often the end of a sequence recovers and drains the queue. Before each time, all
/// leases and delays end.
const ROUNDS: usize = 3;

/// How many consecutive pages of recovery may report that there is more to recover.
const MOST_PAGES: usize = 100;

impl Runner {
    /// Ends the sequence: lets delayed commands run and all leases and delays end,
    /// drains the queue, and makes the final checks.
    pub(in crate::spec) async fn end(&mut self) -> CheckResult {
        self.release().await?;
        self.look().await?;
        self.steer(Who::Nobody, None, false).await?;
        self.seal_all().await?;
        for _ in 0..ROUNDS {
            self.pass(draft::step(4));
            self.look().await?;
            self.recover_all().await?;
            self.drain().await?;
        }
        self.scrutiny = Scrutiny::Full;
        self.look().await?;
        for state in STATES {
            self.peek(Who::Nobody, None, state).await?;
        }
        self.reference.batches_have_ended()?;
        self.reference.duplicates_are_bounded()?;
        let troubles = self.actors.troubles();
        if troubles.is_empty() {
            Ok(())
        } else {
            Err(format!("the proxy: {troubles:?}"))
        }
    }

    async fn recover_all(&mut self) -> CheckResult {
        for _ in 0..MOST_PAGES {
            let page = NonZeroU32::new(100).expect("not zero");
            let answer = self.actors.witness().recover(page).await;
            let answer = answer.map_err(|error| error.full_message())?;
            self.reference.recovered(100, &answer)?;
            self.look().await?;
            if !answer.more {
                return Ok(());
            }
        }
        Err(format!("R9: there is more to recover after {MOST_PAGES} pages"))
    }

    async fn drain(&mut self) -> CheckResult {
        let mut in_vain = 0;
        loop {
            let first = self.observed.get(&Who::Nobody).map_or(0, Vec::len);
            self.claim(Who::Nobody, None, (100, 1, 0)).await?;
            self.look().await?;
            let all = self.observed.get(&Who::Nobody).map_or(0, Vec::len);
            if all == first {
                if in_vain == self.reference.class.patience(self.reference.unfinished())
                {
                    return Ok(());
                }
                in_vain += 1;
                continue;
            }
            let words: Vec<_> = (0..all - first)
                .filter_map(|receipt| u8::try_from(receipt).ok())
                .map(|receipt| DraftSettlement {
                    receipt,
                    disposition: DispositionKind::Done,
                })
                .collect();
            self.settle(Who::Nobody, None, &words).await?;
            self.look().await?;
        }
    }
}
