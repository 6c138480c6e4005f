//! What is looked at after each operation of a play, and how it ends.

use std::num::NonZeroU32;

use queue_core::{Error, JobState, PeekRequest};

use super::{
    book::Verdict,
    draft,
    operation::{Says, Who, Word},
    play::{Play, Telling},
};

/// Rounds of recovering and draining in the end; each outlasts all leases and delays.
const ROUNDS: usize = 3;

/// Pages of recovery in a row that may say that there is more.
const MOST_PAGES: usize = 100;

impl Play {
    /// At rest, after every operation: the figures and the audit.
    pub(super) async fn look(&mut self) -> Verdict {
        self.book.conclude()?;
        let said = |error: Error| error.full_message();
        let stats = self.stage.witness().stats().await.map_err(said)?;
        if self.telling == Telling::All {
            self.book.tell(&stats);
        }
        self.book.counted(&stats)?;
        let audit = self.stage.witness().audit().await.map_err(said)?;
        self.book.audited(&audit, &stats)?;
        self.book.conclude()
    }

    /// Heals, lets all that is late arrive and all leases and delays end, and drains.
    pub(super) async fn end(&mut self) -> Verdict {
        self.release().await?;
        self.look().await?;
        self.steer(Who::Nobody, None, false).await?;
        for _ in 0..ROUNDS {
            self.pass(draft::step(4));
            self.look().await?;
            self.recover_all().await?;
            self.drain().await?;
        }
        self.dead_are_kept().await?;
        self.book.duplicates_are_bounded()?;
        let troubles = self.stage.troubles();
        if troubles.is_empty() {
            Ok(())
        } else {
            Err(format!("the gate: {troubles:?}"))
        }
    }

    async fn recover_all(&mut self) -> Verdict {
        for _ in 0..MOST_PAGES {
            let page = NonZeroU32::new(100).expect("not zero");
            let answer = self.stage.witness().recover(page).await;
            let answer = answer.map_err(|error| error.full_message())?;
            self.book.recovered(100, &answer)?;
            self.look().await?;
            if !answer.more {
                return Ok(());
            }
        }
        Err(format!("R9: there is more to recover after {MOST_PAGES} pages"))
    }

    async fn drain(&mut self) -> Verdict {
        let mut in_vain = 0;
        loop {
            let first = self.told.get(&Who::Nobody).map_or(0, Vec::len);
            self.claim(Who::Nobody, None, 100, 1).await?;
            self.look().await?;
            let all = self.told.get(&Who::Nobody).map_or(0, Vec::len);
            if all == first {
                if in_vain == self.book.class.patience(self.book.unfinished()) {
                    return Ok(());
                }
                in_vain += 1;
                continue;
            }
            let words: Vec<_> = (0..all - first)
                .filter_map(|receipt| u8::try_from(receipt).ok())
                .map(|receipt| Word { receipt, says: Says::Done })
                .collect();
            self.settle(Who::Nobody, None, &words).await?;
            self.look().await?;
        }
    }

    async fn dead_are_kept(&mut self) -> Verdict {
        let limit = NonZeroU32::new(1000).expect("not zero");
        let ask = PeekRequest::new(JobState::Dead, limit);
        let page = self.stage.witness().peek(&ask).await;
        let page = page.map_err(|error| error.full_message())?;
        let ids: Vec<_> = page.jobs.into_iter().map(|job| job.id).collect();
        self.book.dead_are(&ids)
    }
}
