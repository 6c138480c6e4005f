//! Plays one sequence on a store, with the reference beside it.

use std::{collections::BTreeMap, sync::Arc};

use queue_core::{Capability, JobId, NewJob, PushToken, QueueName};

use super::{
    book::{Book, Knowledge, Verdict, WINDOW},
    claiming::Asked,
    draft,
    operation::{Act, Operation, Strike, Who},
    pushing::ms,
    settling::Said,
    stage::{Heard, Site, Stage},
};
use crate::{Subject, class::Class};

/// What a call does to the store, once it happens.
#[derive(Debug, Clone)]
pub(super) enum Effect {
    Push(Vec<NewJob>, Option<u8>),
    /// A push that the book knows by its call.
    LatePush(u32),
    Claim(Asked),
    Settle(Vec<Said>),
    /// Which run of which worker names which receipts.
    Extend(usize, Vec<usize>, u64),
    Leave(usize),
    Recover,
    Cancel(JobId),
    Redrive(Option<usize>),
    PurgeDead,
    Purge,
    Steer(bool),
}

/// One sequence under way.
pub(crate) struct Play {
    pub(super) stage: Stage,
    pub(super) book: Book,
    /// The receipts that each worker was told of, the dead before it included.
    pub(super) told: BTreeMap<Who, Vec<usize>>,
    /// The run that each worker is in.
    pub(super) runs: BTreeMap<Who, usize>,
    pub(super) run: usize,
    late: Vec<Effect>,
    payloads: usize,
    pub(super) telling: Telling,
}

/// How much a play says while it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Telling {
    Nothing,
    /// After each operation the figures, and what is thought of each job.
    All,
}

/// What was counted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Played {
    pub(crate) operations: u64,
    pub(crate) faults_fired: u64,
}

/// Plays a sequence to its end.
pub(crate) async fn play(
    site: &Site,
    subject: Arc<dyn Subject>,
    queue: QueueName,
    sequence: &[Operation],
    telling: Telling,
) -> Result<Played, String> {
    let stage = Stage::set(site, subject, queue).await?;
    let mut play = Play::on(stage, telling);
    let played = play.all(sequence).await;
    let faults_fired = play.stage.faults_fired;
    play.stage.strike_set();
    played.map(|()| Played { operations: sequence.len() as u64, faults_fired })
}

impl Play {
    fn on(stage: Stage, telling: Telling) -> Self {
        let class = Class::of(stage.capabilities());
        Self {
            stage,
            book: Book::new(class),
            told: BTreeMap::new(),
            runs: BTreeMap::new(),
            run: 0,
            late: Vec::new(),
            payloads: 0,
            telling,
        }
    }

    async fn all(&mut self, sequence: &[Operation]) -> Verdict {
        for (number, operation) in sequence.iter().enumerate() {
            let at =
                |wrong| format!("operation {}, `{operation}`: {wrong}", number + 1);
            self.one(operation).await.map_err(at)?;
        }
        self.end().await.map_err(|wrong| format!("in the end: {wrong}"))
    }

    async fn one(&mut self, operation: &Operation) -> Verdict {
        let Operation { who, act, strike } = operation;
        let (who, strike) = (*who, *strike);
        match act {
            Act::Push { jobs, token } => {
                let jobs = self.jobs(jobs);
                self.book.calls.remove(token);
                let token =
                    Some(*token).filter(|token| *token > 0 && self.has_tokens());
                self.push(who, strike, jobs, token, self.book.step).await?;
            }
            Act::Repeat { token } => self.repeat(who, strike, *token).await?,
            Act::Claim { max, lease } => self.claim(who, strike, *max, *lease).await?,
            Act::Settle(words) => self.settle(who, strike, words).await?,
            Act::Turn { words, max, lease } => {
                self.turn(who, strike, words, (*max, *lease)).await?;
            }
            Act::Extend { receipts, lease } => {
                self.extend(who, strike, receipts, *lease).await?;
            }
            Act::Leave => self.leave(who, strike).await?,
            Act::Recover { page } => self.recover(who, strike, *page).await?,
            Act::Advance(step) => self.advance(*step).await?,
            Act::Release => self.release().await?,
            operated => self.operate(who, strike, operated).await?,
        }
        self.look().await
    }

    fn has_tokens(&self) -> bool {
        self.stage.capabilities().claims(Capability::PushTokens)
    }

    async fn push(
        &mut self,
        who: Who,
        strike: Option<Strike>,
        jobs: Vec<NewJob>,
        number: Option<u8>,
        call: u32,
    ) -> Verdict {
        let token = number.map(|number| token(number, call));
        let (sent, with) = (jobs.clone(), token.clone());
        let ended = self
            .stage
            .call(who, strike, |queue| {
                Box::pin(async move { queue.push(&sent, with.as_ref()).await })
            })
            .await?;
        match ended.heard()? {
            Heard::Answer(answers) => {
                let token = number.zip(token.as_ref());
                self.book.pushed(&jobs, token, &answers)
            }
            other => self.unanswered(&other, &Effect::Push(jobs, number)),
        }
    }

    async fn repeat(
        &mut self,
        who: Who,
        strike: Option<Strike>,
        number: u8,
    ) -> Verdict {
        let now = self.book.now;
        let known = self.book.calls.get(&number);
        let Some(call) = known.filter(|call| now < call.first_at + WINDOW) else {
            return Ok(());
        };
        let (jobs, call) = (call.jobs.clone(), call.call);
        self.push(who, strike, jobs, Some(number), call).await
    }

    async fn advance(&mut self, step: u8) -> Verdict {
        if draft::outlasts_memory(step) {
            // What is late is so within a bound: tokens and ids outlast it.
            self.release().await?;
            self.book.conclude()?;
        }
        self.pass(draft::step(step));
        Ok(())
    }

    pub(super) fn pass(&mut self, time: std::time::Duration) {
        self.stage.advance(time);
        self.book.now += ms(time);
    }

    /// What was on its way arrives.
    pub(super) async fn release(&mut self) -> Verdict {
        self.stage.release().await?;
        for effect in std::mem::take(&mut self.late) {
            self.maybe(&effect);
            self.book.conclude()?;
        }
        Ok(())
    }

    /// Notes what became, or will become, of a call without an answer.
    pub(super) fn unanswered<T>(
        &mut self,
        heard: &Heard<T>,
        effect: &Effect,
    ) -> Verdict {
        if matches!(heard, Heard::Lost | Heard::LostAndLate) {
            self.maybe(effect);
        }
        if matches!(heard, Heard::Late | Heard::LostAndLate) {
            let late = match effect {
                Effect::Push(jobs, token) if matches!(heard, Heard::Late) => {
                    Effect::LatePush(self.book.push_is_late(jobs, *token))
                }
                Effect::Push(..) => Effect::LatePush(self.book.step),
                other => other.clone(),
            };
            self.late.push(late);
        }
        Ok(())
    }

    fn maybe(&mut self, effect: &Effect) {
        let book = &mut self.book;
        match effect {
            Effect::Push(jobs, token) => book.maybe_pushed(jobs, *token),
            Effect::LatePush(call) => book.maybe_stored_now(*call),
            Effect::Claim(asked) => book.maybe_claimed(*asked),
            Effect::Settle(said) => book.maybe_settled(said),
            Effect::Extend(run, named, lease) => {
                let until = book.now + lease;
                book.maybe_extended(*run, named, until);
            }
            Effect::Leave(run) => book.maybe_left(*run),
            Effect::Recover => book.maybe_recovered(),
            Effect::Cancel(id) => book.maybe_cancelled(id),
            Effect::Redrive(which) => book.maybe_redriven(*which),
            Effect::PurgeDead => book.maybe_dead_purged(),
            Effect::Purge => book.maybe_purged(),
            Effect::Steer(pauses) => book.steered(*pauses, Knowledge::Maybe),
        }
    }

    fn jobs(&mut self, drafts: &[super::operation::Draft]) -> Vec<NewJob> {
        let mut jobs = Vec::new();
        for one in drafts {
            self.payloads += 1;
            let payload = format!("job {}", self.payloads);
            jobs.push(draft::job(one, payload, &self.book.class));
        }
        jobs
    }

    /// A job, counted back from the newest.
    pub(super) fn recent(&self, back: u8) -> Option<usize> {
        self.book.jobs.len().checked_sub(usize::from(back) + 1)
    }

    pub(super) fn id(&self, job: usize) -> Option<JobId> {
        self.book.jobs[job].id.clone()
    }
}

fn token(number: u8, call: u32) -> PushToken {
    PushToken::new(format!("token-{number}-{call}")).expect("a valid token")
}
