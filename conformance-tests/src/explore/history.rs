//! The calls of a run, and the search for an order in which they may have taken effect.
//!
//! Calls that overlap in time may have taken effect in either order. A run goes by the
//! rules if the reference accepts its calls in at least one order that keeps each call
//! before those that began after it had ended: linearizability (Herlihy and Wing, 1990),
//! found by the search of Wing and Gong (1993).

use std::time::Duration;

use relq_core::capabilities::Capabilities;

use crate::spec::{
    operation::{Act, Operation, Who},
    tape::{Judge, Look, RecordedCall, Reply},
};

/// A call that ran while others did.
#[derive(Debug, Clone)]
pub(super) struct Overlapping {
    pub(super) call: RecordedCall,
    /// The actor that makes the call. If the call releases a worker, the call itself
    /// names the actor of that worker, which may be another.
    pub(super) actor: Who,
    /// When the call began. Moments are numbers that increase with each event of the
    /// run.
    pub(super) began: usize,
    /// The moment when the call ended. `None` if it has not ended.
    pub(super) ended: Option<usize>,
    /// Whether the actor died before it sent the first command of the call.
    pub(super) was_never_sent: bool,
    /// Whether a command of the call may still run, although the actor is dead.
    pub(super) is_late: bool,
}

/// The calls of a run: those of the setup, those of the actors, which may overlap, and
/// those after them.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    pub(super) setup: Vec<RecordedCall>,
    pub(super) overlapping: Vec<Overlapping>,
    pub(super) after: Vec<Recorded>,
    /// The time of the clock when the setup began.
    pub(super) start: Duration,
    /// The last moment, which counts the beginnings and ends of calls.
    moments: usize,
}

/// A call at the end of a run, or the stats that were read while no call was running.
#[derive(Debug, Clone)]
pub(super) enum Recorded {
    Call(RecordedCall),
    Look(Look),
}

impl History {
    /// Records that a call begins. Returns its number.
    pub(super) fn begins(
        &mut self,
        actor: Who,
        (operation, payloads): (Operation, usize),
        now: Duration,
    ) -> usize {
        let call = RecordedCall {
            is_lost: true,
            began_at: now.saturating_sub(self.start),
            ..RecordedCall::alone(operation, payloads, Vec::new())
        };
        let began = self.next_moment();
        self.overlapping.push(Overlapping {
            call,
            actor,
            began,
            ended: None,
            was_never_sent: false,
            is_late: false,
        });
        self.overlapping.len() - 1
    }

    pub(super) fn ends(&mut self, number: usize, replies: Vec<Reply>) {
        let ended = self.next_moment();
        let one = &mut self.overlapping[number];
        one.ended = Some(ended);
        one.call.replies = replies;
        one.call.is_lost = false;
    }

    /// Records that an actor died. If its current call had sent a command, the call may
    /// have taken effect until now.
    pub(super) fn dies(&mut self, who: Who, has_sent: bool) {
        let ended = self.next_moment();
        let is_open = |one: &Overlapping| one.actor == who && one.ended.is_none();
        for one in self.overlapping.iter_mut().filter(|one| is_open(one)) {
            one.ended = Some(ended);
            one.was_never_sent = !has_sent;
        }
    }

    /// Records that an actor died while a command of its current call was on its way.
    /// The rest of the call may take effect until that command has run. The commands
    /// before it have taken effect by now, so they are judged as a call of their own
    /// without a reply.
    pub(super) fn dies_late(&mut self, who: Who, has_sent: bool) {
        let ended = self.next_moment();
        let Some(at) = self.call_of(who) else { return };
        let mut late = Overlapping { is_late: true, ..self.overlapping[at].clone() };
        if has_sent {
            self.overlapping[at].ended = Some(ended);
            late.began = ended;
            self.overlapping.push(late);
        } else {
            self.overlapping[at] = late;
        }
    }

    /// Records that the delayed commands of dead actors have run.
    pub(super) fn late_arrives(&mut self) {
        let ended = self.next_moment();
        let is_due = |one: &&mut Overlapping| one.is_late && one.ended.is_none();
        for one in self.overlapping.iter_mut().filter(is_due) {
            one.ended = Some(ended);
        }
    }

    /// Records that a connection of an actor broke during its current call.
    pub(super) fn is_hit(&mut self, who: Who) {
        if let Some(at) = self.call_of(who) {
            self.overlapping[at].call.is_hit = true;
        }
    }

    /// Returns the number of the actor's current call. `None` if it has none.
    pub(super) fn call_of(&self, who: Who) -> Option<usize> {
        let is_open =
            |one: &Overlapping| one.actor == who && one.ended.is_none() && !one.is_late;
        self.overlapping.iter().position(is_open)
    }

    /// Returns the numbers of the calls that have not ended.
    pub(super) fn open(&self) -> Vec<usize> {
        let all = self.overlapping.iter().enumerate();
        all.filter(|(_, one)| one.ended.is_none()).map(|(at, _)| at).collect()
    }

    /// Of the calls in `open`, returns those that have ended now: the actor, and the
    /// call with its replies as text.
    pub(super) fn returned(&self, open: &[usize]) -> Vec<(Who, String)> {
        let ended = open.iter().map(|at| &self.overlapping[*at]);
        let ended = ended.filter(|one| one.ended.is_some() && !one.call.is_lost);
        let text = |one: &Overlapping| {
            let RecordedCall { operation, replies, .. } = &one.call;
            (one.actor, format!("`{operation}` {replies:?}"))
        };
        ended.map(text).collect()
    }

    fn next_moment(&mut self) -> usize {
        self.moments += 1;
        self.moments
    }

    /// Returns the pairs of calls in which the first call ended before the second
    /// began.
    pub(super) fn precedence(&self) -> Vec<(usize, usize)> {
        let all = || self.overlapping.iter().enumerate();
        let later = |ended: usize| all().filter(move |(_, one)| ended < one.began);
        all()
            .filter_map(|(at, one)| Some((at, one.ended?)))
            .flat_map(|(at, ended)| later(ended).map(move |(next, _)| (at, next)))
            .collect()
    }

    /// Searches an order that the reference accepts.
    ///
    /// A recovery goes from job to job, so calls that overlap with it may take effect
    /// between two of its jobs. A claim that waits may hold a job before it returns, as
    /// on `processing-list`. A release of its worker gives that job back and counts it,
    /// and the claim looks again. If no order is accepted, such a recovery or release is
    /// judged as one whose answer was lost: what it did is judged by the stats that
    /// follow.
    ///
    /// # Errors
    /// What is wrong with the order in which the calls ended, if no order is accepted.
    pub(super) async fn judge(&self, can: &Capabilities) -> Result<(), String> {
        let Err(wrong) = self.judge_all(can).await else { return Ok(()) };
        let mut in_steps = self.clone();
        for at in (0..self.overlapping.len()).filter(|at| self.goes_in_steps(*at)) {
            let call = &mut in_steps.overlapping[at].call;
            call.replies.clear();
            call.is_lost = true;
        }
        in_steps.judge_all(can).await.map_err(|_| wrong)
    }

    /// Whether other calls may take effect between the steps of this one.
    fn goes_in_steps(&self, at: usize) -> bool {
        let Operation { who, act, .. } = &self.overlapping[at].call.operation;
        let waits_for_it = |other: &Overlapping| {
            let Operation { who: waiter, act, .. } = &other.call.operation;
            waiter == who && matches!(act, Act::Claim { wait, .. } if *wait > 0)
        };
        match act {
            Act::Recover { .. } => self.beside(at).next().is_some(),
            Act::ReleaseWorker => self.beside(at).any(waits_for_it),
            _ => false,
        }
    }

    /// The other calls that were under way during this one.
    fn beside(&self, at: usize) -> impl Iterator<Item = &Overlapping> {
        let is_before = |one: &Overlapping, other: &Overlapping| {
            one.ended.is_some_and(|ended| ended < other.began)
        };
        let one = &self.overlapping[at];
        let others = self.overlapping.iter().enumerate();
        let others = others.filter(move |(other, _)| *other != at);
        others
            .map(|(_, other)| other)
            .filter(move |other| !is_before(one, other) && !is_before(other, one))
    }

    async fn judge_all(&self, can: &Capabilities) -> Result<(), String> {
        let mut order: Vec<usize> = (0..self.overlapping.len()).collect();
        order.sort_by_key(|at| self.overlapping[*at].ended.unwrap_or(usize::MAX));
        let Err((accepted, wrong)) = self.try_order(&order, can).await else {
            return Ok(());
        };
        // The calls that the reference accepted may still stand in a wrong order.
        let mut tried = 1_u32;
        let mut refused = vec![order[..order.len().min(accepted + 1)].to_vec()];
        let mut prefixes = vec![Vec::new()];
        while let Some(prefix) = prefixes.pop() {
            if refused.contains(&prefix) && prefix.len() < self.overlapping.len() {
                continue;
            }
            if prefix.len() == self.overlapping.len() {
                tried += 1;
                match self.try_order(&prefix, can).await {
                    Ok(()) => return Ok(()),
                    Err((accepted, _)) if accepted < prefix.len() => {
                        refused.push(prefix[..=accepted].to_vec());
                    }
                    Err(_) => {}
                }
                continue;
            }
            for next in self.may_be_next(&prefix).rev() {
                prefixes.push([prefix.as_slice(), &[next]].concat());
            }
        }
        Err(format!("{wrong}\n(and so in each of the {tried} orders that were tried)"))
    }

    /// Returns the calls that may follow `prefix` in an order: those that began before
    /// any other call of the rest ended.
    fn may_be_next(
        &self,
        prefix: &[usize],
    ) -> impl DoubleEndedIterator<Item = usize> + use<'_> {
        let left: Vec<_> =
            (0..self.overlapping.len()).filter(|at| !prefix.contains(at)).collect();
        let ended = |at: &usize| self.overlapping[*at].ended.unwrap_or(usize::MAX);
        let first_end = left.iter().map(ended).min().unwrap_or(usize::MAX);
        left.into_iter().filter(move |at| self.overlapping[*at].began < first_end)
    }

    /// Judges all calls, with the overlapping ones in this order. The error contains
    /// the number of overlapping calls that were accepted before the first wrong one.
    async fn try_order(
        &self,
        order: &[usize],
        can: &Capabilities,
    ) -> Result<(), (usize, String)> {
        let mut judge = Judge::new(can);
        for call in &self.setup {
            judge.call(call).await.map_err(|wrong| {
                (0, format!("in the setup, `{}`: {wrong}", call.operation))
            })?;
        }
        judge.fix_jobs();
        for (accepted, at) in order.iter().enumerate() {
            let Overlapping { call, was_never_sent, .. } = &self.overlapping[*at];
            if *was_never_sent {
                continue;
            }
            judge.call(call).await.map_err(|wrong| {
                (accepted, format!("`{}`: {wrong}", call.operation))
            })?;
        }
        let all = order.len();
        for recorded in &self.after {
            match recorded {
                Recorded::Call(call) => judge.call(call).await.map_err(|wrong| {
                    (all, format!("in the end, `{}`: {wrong}", call.operation))
                })?,
                Recorded::Look(replies) => judge
                    .look(replies.clone())
                    .await
                    .map_err(|wrong| (all, format!("in the end: {wrong}")))?,
            }
        }
        judge.end().map_err(|wrong| (all, wrong))
    }
}
