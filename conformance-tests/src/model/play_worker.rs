//! What workers and the reaper do in a play.

use std::num::NonZeroU32;

use queue_core::{
    ClaimRequest, Delivery, Error, Extended, Receipt, Settlement, Verdict as Ruling,
    WorkerId,
};

use super::{
    book::Verdict,
    claiming::Asked,
    draft,
    operation::{Says, Strike, Who, Word},
    play::{Effect, Play},
    pushing::ms,
    settling::Said,
    stage::{Ended, Heard},
};

impl Play {
    pub(super) async fn claim(
        &mut self,
        who: Who,
        strike: Option<Strike>,
        max: u8,
        lease: u8,
    ) -> Verdict {
        let (asked, ask) = self.ask(who, max, lease);
        let ended = self
            .stage
            .call(who, strike, |queue| Box::pin(async move { queue.claim(&ask).await }))
            .await?;
        self.bury_the_dead(who, &ended);
        self.heard_of_claim(who, asked, ended)
    }

    fn heard_of_claim(
        &mut self,
        who: Who,
        asked: Asked,
        ended: Ended<Result<Vec<Delivery>, Error>>,
    ) -> Verdict {
        let is_struck = ended.is_struck();
        match ended.heard()? {
            Heard::Answer(deliveries) => {
                let first = self.book.told.len();
                if is_struck {
                    self.book.claimed_though_struck(asked, &deliveries)?;
                } else {
                    self.book.claimed(asked, &deliveries)?;
                }
                let new = first..self.book.told.len();
                self.told.entry(who).or_default().extend(new);
                Ok(())
            }
            other => self.unanswered(&other, &Effect::Claim(asked)),
        }
    }

    pub(super) async fn settle(
        &mut self,
        who: Who,
        strike: Option<Strike>,
        words: &[Word],
    ) -> Verdict {
        let (said, settlements) = self.settlements(who, words);
        if said.is_empty() {
            return Ok(());
        }
        let ended = self
            .stage
            .call(who, strike, |queue| {
                Box::pin(async move { queue.settle(&settlements).await })
            })
            .await?;
        self.bury_the_dead(who, &ended);
        match ended.heard()? {
            Heard::Answer(answers) => self.book.settled(&said, &answers),
            other => self.unanswered(&other, &Effect::Settle(said)),
        }
    }

    pub(super) async fn turn(
        &mut self,
        who: Who,
        strike: Option<Strike>,
        words: &[Word],
        (max, lease): (u8, u8),
    ) -> Verdict {
        let (said, settlements) = self.settlements(who, words);
        let (asked, ask) = self.ask(who, max, lease);
        let mut ended = self
            .stage
            .call(who, strike, |queue| {
                Box::pin(async move { queue.turn(&settlements, &ask).await })
            })
            .await?;
        self.bury_the_dead(who, &ended);
        let (settled, claimed) = match ended.answer.take() {
            Some(turn) => (Some(turn.settled), Some(turn.claimed)),
            None => (None, None),
        };
        let settled = ended.part(settled);
        match settled.heard()? {
            Heard::Answer(answers) => self.book.settled(&said, &answers)?,
            other => self.unanswered(&other, &Effect::Settle(said))?,
        }
        self.book.conclude()?;
        let claimed = ended.part(claimed);
        self.heard_of_claim(who, asked, claimed)
    }

    pub(super) async fn extend(
        &mut self,
        who: Who,
        strike: Option<Strike>,
        receipts: &[u8],
        lease: u8,
    ) -> Verdict {
        let (run, worker) = self.worker(who);
        let mut named: Vec<_> =
            receipts.iter().filter_map(|one| self.told_by(who, *one)).collect();
        named.sort_unstable();
        named.dedup();
        if self.book.class.shares_heartbeat() {
            // The heartbeat of a worker speaks for no other, not even for the dead
            // whose place it took.
            named.retain(|told| self.book.told[*told].lease.run == run);
        }
        let lease = draft::lease(lease, &self.book.class);
        let until = self.book.now + ms(lease);
        let held: Vec<_> = named.iter().map(|told| self.receipt(*told)).collect();
        let ended = self
            .stage
            .call(who, strike, |queue| {
                Box::pin(async move { queue.extend(&worker, &held, lease).await })
            })
            .await?;
        self.bury_the_dead(who, &ended);
        match ended.heard()? {
            Heard::Answer(answers) => {
                let end = |answer: &Extended| match answer {
                    Extended::Until(at) => Some(self.stage.since_start(*at)),
                    _ => None,
                };
                let answers: Vec<_> =
                    answers.iter().map(|answer| (*answer, end(answer))).collect();
                self.book.extended(run, &named, until, &answers)
            }
            other => self.unanswered(&other, &Effect::Extend(run, named, ms(lease))),
        }
    }

    pub(super) async fn leave(&mut self, who: Who, strike: Option<Strike>) -> Verdict {
        let (run, worker) = self.worker(who);
        let ended = self
            .stage
            .call(who, strike, |queue| {
                Box::pin(async move { queue.leave(&worker).await })
            })
            .await?;
        // Whatever became of it, this run of the worker is over.
        self.runs.remove(&who);
        match ended.heard()? {
            Heard::Answer(released) => self.book.left(run, released.jobs),
            other => self.unanswered(&other, &Effect::Leave(run)),
        }
    }

    pub(super) async fn recover(
        &mut self,
        who: Who,
        strike: Option<Strike>,
        page: u8,
    ) -> Verdict {
        let size = NonZeroU32::new(u32::from(page.max(1))).expect("not zero");
        let ended = self
            .stage
            .call(who, strike, |queue| {
                Box::pin(async move { queue.recover(size).await })
            })
            .await?;
        self.bury_the_dead(who, &ended);
        match ended.heard()? {
            Heard::Answer(answer) => {
                self.book.recovered(u64::from(size.get()), &answer)
            }
            other => self.unanswered(&other, &Effect::Recover),
        }
    }

    fn ask(&mut self, who: Who, max: u8, lease: u8) -> (Asked, ClaimRequest) {
        let (run, worker) = self.worker(who);
        let lease = draft::lease(lease, &self.book.class);
        let max = NonZeroU32::new(u32::from(max.max(1))).expect("not zero");
        let ask = ClaimRequest::new(worker, lease).max(max);
        (Asked { run, max: max.get() as usize, lease: ms(lease) }, ask)
    }

    pub(super) fn worker(&mut self, who: Who) -> (usize, WorkerId) {
        let next = self.run + 1;
        let run = *self.runs.entry(who).or_insert(next);
        self.run = self.run.max(run);
        (run, WorkerId::new(format!("worker-{run}")).expect("a valid id"))
    }

    /// Who died comes back as another.
    fn bury_the_dead<T>(&mut self, who: Who, ended: &Ended<T>) {
        if ended.is_dead() {
            self.runs.remove(&who);
        }
    }

    fn settlements(&self, who: Who, words: &[Word]) -> (Vec<Said>, Vec<Settlement>) {
        let (mut said, mut settlements) = (Vec::<Said>::new(), Vec::new());
        for word in words {
            let Some(told) = self.told_by(who, word.receipt) else { continue };
            if said.iter().any(|other| other.told == told) {
                continue;
            }
            let (ruling, after) = ruling(word.says);
            said.push(Said { told, says: word.says, after });
            settlements.push(Settlement::new(self.receipt(told), ruling));
        }
        (said, settlements)
    }

    /// One of a worker's receipts, counted back from the newest.
    fn told_by(&self, who: Who, back: u8) -> Option<usize> {
        let told = self.told.get(&who)?;
        told.iter().rev().nth(usize::from(back)).copied()
    }

    fn receipt(&self, told: usize) -> Receipt {
        self.book.told[told].receipt.clone()
    }
}

fn ruling(says: Says) -> (Ruling, u64) {
    let error = || "it failed".to_owned();
    match says {
        Says::Done => (Ruling::Done, 0),
        Says::Discard => (Ruling::Discard, 0),
        Says::Bury => (Ruling::Dead { error: error() }, 0),
        Says::GiveBack => (Ruling::GiveBack, 0),
        Says::Retry(number) => {
            let after = draft::delay(number);
            (Ruling::Retry { after, error: error() }, ms(after))
        }
    }
}
