//! What an operator does in a play.

use queue_core::{JobId, Which};

use super::{
    book::{Knowledge, Verdict},
    operation::{Act, Strike, Who},
    play::{Effect, Play},
    stage::Heard,
};

impl Play {
    /// What an operator does, and nobody else.
    pub(super) async fn operate(
        &mut self,
        who: Who,
        strike: Option<Strike>,
        act: &Act,
    ) -> Verdict {
        match act {
            Act::Cancel { job } => match self.recent(*job).and_then(|at| self.id(at)) {
                Some(id) => self.cancel(who, strike, id).await,
                None => Ok(()),
            },
            Act::CancelUnknown => {
                let unknown = JobId::new("unknown").expect("a valid id");
                self.cancel(who, strike, unknown).await
            }
            Act::Pause => self.steer(who, strike, true).await,
            Act::Resume => self.steer(who, strike, false).await,
            Act::Redrive => self.redrive(who, strike, None).await,
            Act::RedriveOne { job } => match self.recent(*job) {
                Some(at) => self.redrive(who, strike, Some(at)).await,
                None => Ok(()),
            },
            Act::PurgeDead => self.purge_dead(who, strike).await,
            Act::Purge => self.purge(who, strike).await,
            other => Err(format!("`{other}` is no operator's")),
        }
    }

    pub(super) async fn cancel(
        &mut self,
        who: Who,
        strike: Option<Strike>,
        id: JobId,
    ) -> Verdict {
        let named = id.clone();
        let ended = self
            .stage
            .call(who, strike, |queue| {
                Box::pin(async move { queue.cancel(&named).await })
            })
            .await?;
        match ended.heard()? {
            Heard::Answer(answer) => self.book.cancelled(&id, answer),
            other => self.unanswered(&other, &Effect::Cancel(id)),
        }
    }

    pub(super) async fn steer(
        &mut self,
        who: Who,
        strike: Option<Strike>,
        pauses: bool,
    ) -> Verdict {
        let ended = self
            .stage
            .call(who, strike, |queue| {
                Box::pin(async move {
                    if pauses { queue.pause().await } else { queue.resume().await }
                })
            })
            .await?;
        match ended.heard()? {
            Heard::Answer(()) => {
                self.book.steered(pauses, Knowledge::Done);
                Ok(())
            }
            other => self.unanswered(&other, &Effect::Steer(pauses)),
        }
    }

    pub(super) async fn redrive(
        &mut self,
        who: Who,
        strike: Option<Strike>,
        job: Option<usize>,
    ) -> Verdict {
        let which = match job.map(|at| self.id(at)) {
            None => Which::All,
            Some(None) => return Ok(()),
            Some(Some(id)) => Which::Only(vec![id]),
        };
        let ended = self
            .stage
            .call(who, strike, |queue| {
                Box::pin(async move { queue.redrive(&which).await })
            })
            .await?;
        match ended.heard()? {
            Heard::Answer(answer) => self.book.redriven(job, &answer),
            other => self.unanswered(&other, &Effect::Redrive(job)),
        }
    }

    pub(super) async fn purge_dead(
        &mut self,
        who: Who,
        strike: Option<Strike>,
    ) -> Verdict {
        let ended = self
            .stage
            .call(who, strike, |queue| {
                Box::pin(async move { queue.purge_dead(&Which::All).await })
            })
            .await?;
        match ended.heard()? {
            Heard::Answer(removed) => self.book.dead_purged(removed),
            other => self.unanswered(&other, &Effect::PurgeDead),
        }
    }

    pub(super) async fn purge(&mut self, who: Who, strike: Option<Strike>) -> Verdict {
        let ended = self
            .stage
            .call(who, strike, |queue| Box::pin(async move { queue.purge().await }))
            .await?;
        match ended.heard()? {
            Heard::Answer(removed) => self.book.purged(removed),
            other => self.unanswered(&other, &Effect::Purge),
        }
    }
}
