//! The calls of a run, and the search for an order in which they may have taken effect.
//!
//! Calls that overlap in time may have taken effect in either order. A run keeps the
//! rules if the reference accepts its calls in at least one order that keeps each call
//! before those that began after it had ended: linearizability (Herlihy and Wing, 1990),
//! found by the search of Wing and Gong (1993), which remembers the states that led to
//! no accepted order (Lowe, 2017).

use std::{
    collections::{BTreeSet, HashSet},
    time::Duration,
};

use relq_core::{capabilities::Capabilities, operator::Redriven};

use crate::spec::{
    operation::{Act, Operation, Who},
    recorded::{Judge, Look, RecordedCall, Reply},
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
            began_at: Some(now.saturating_sub(self.start)),
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

    /// Searches for an order that the reference accepts.
    ///
    /// A recovery goes from job to job, so calls that overlap with it may take effect
    /// between two of its jobs. A claim that waits may hold a job before it returns, as
    /// on `processing-list`. A release of its worker gives that job back and counts it,
    /// and the claim looks again. A redrive or purge of all dead jobs reads and moves them
    /// page by page, so jobs that die meanwhile may be on a later page. A recovery or
    /// release may also be judged as a call whose answer was lost: what it did is judged
    /// by the stats that follow. A redrive or purge may also be judged as two calls that
    /// share its answer.
    ///
    /// # Errors
    /// If no order of the calls is accepted: the first problem of the order in which they
    /// ended.
    pub(super) async fn judge(&self, can: &Capabilities) -> Result<(), String> {
        let mut as_ended: Vec<usize> = (0..self.overlapping.len()).collect();
        as_ended.sort_by_key(|at| self.overlapping[*at].ended.unwrap_or(usize::MAX));
        let Err(wrong) = self.try_order(&as_ended, can).await else { return Ok(()) };
        // A call without an answer is accepted in more orders, and a search that finds an
        // order ends early. So this search comes first.
        for in_steps in self.in_steps() {
            if in_steps.search(can).await.is_ok() {
                return Ok(());
            }
        }
        let tried = self.search(can).await;
        tried.map_err(|tried| {
            format!(
                "{wrong}\n(and so in each other order: {tried} beginnings were tried)"
            )
        })
    }

    /// Returns this history with each call that other calls may have interrupted as a
    /// call whose answer was lost, or as two calls, one for each way to share its answer
    /// between them. Empty if there is no such call.
    fn in_steps(&self) -> Vec<Self> {
        let interrupted: Vec<_> =
            (0..self.overlapping.len()).filter(|at| self.goes_in_steps(*at)).collect();
        if interrupted.is_empty() {
            return Vec::new();
        }
        interrupted.into_iter().fold(vec![self.clone()], |histories, at| {
            let parts = parts_of(&self.overlapping[at].call);
            let with = |history: &Self, (first, second): &(RecordedCall, _)| {
                let mut history = history.clone();
                history.overlapping[at].call = first.clone();
                if let Some(second) = second {
                    let call = Clone::clone(second);
                    let second =
                        Overlapping { call, ..history.overlapping[at].clone() };
                    history.overlapping.push(second);
                }
                history
            };
            let all = histories.iter();
            all.flat_map(|history| parts.iter().map(|parts| with(history, parts)))
                .collect()
        })
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
            act if goes_by_pages(act) => self.beside(at).next().is_some(),
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

    /// Searches for an order that the reference accepts, depth first. Two beginnings of an
    /// order that consist of the same calls and leave the reference alike have the same
    /// continuations, so only the first of them is continued (Lowe, 2017).
    ///
    /// # Errors
    /// The number of beginnings that were tried, if no order is accepted.
    async fn search(&self, can: &Capabilities) -> Result<(), usize> {
        let mut known = HashSet::new();
        let mut tried = 0;
        let mut prefixes = vec![Vec::new()];
        while let Some(prefix) = prefixes.pop() {
            tried += 1;
            let Ok(judge) = self.judge_of(&prefix, can).await else { continue };
            if prefix.len() == self.overlapping.len() {
                match self.judge_end(judge).await {
                    Ok(()) => return Ok(()),
                    Err(_) => continue,
                }
            }
            let calls: BTreeSet<_> = prefix.iter().copied().collect();
            if known.insert((calls, judge.fingerprint())) {
                let next = self.may_be_next(&prefix).rev();
                prefixes.extend(next.map(|next| [&prefix[..], &[next]].concat()));
            }
        }
        Err(tried)
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

    /// Judges all calls, with the overlapping ones in this order.
    async fn try_order(
        &self,
        order: &[usize],
        can: &Capabilities,
    ) -> Result<(), String> {
        let judge = self.judge_of(order, can).await?;
        self.judge_end(judge).await
    }

    /// Returns a judge that has accepted the setup and these overlapping calls.
    async fn judge_of(
        &self,
        prefix: &[usize],
        can: &Capabilities,
    ) -> Result<Judge, String> {
        let mut judge = Judge::new(can);
        for call in &self.setup {
            let judged = judge.call(call).await;
            judged.map_err(|wrong| {
                format!("in the setup, `{}`: {wrong}", call.operation)
            })?;
        }
        judge.fix_jobs();
        let calls = prefix.iter().map(|at| &self.overlapping[*at]);
        for Overlapping { call, .. } in calls.filter(|one| !one.was_never_sent) {
            let judged = judge.call(call).await;
            judged.map_err(|wrong| format!("`{}`: {wrong}", call.operation))?;
        }
        Ok(judge)
    }

    /// Judges the calls after the overlapping ones.
    async fn judge_end(&self, mut judge: Judge) -> Result<(), String> {
        for recorded in &self.after {
            match recorded {
                Recorded::Call(call) => judge.call(call).await.map_err(|wrong| {
                    format!("in the end, `{}`: {wrong}", call.operation)
                })?,
                Recorded::Look(replies) => {
                    let judged = judge.look(replies.clone()).await;
                    judged.map_err(|wrong| format!("in the end: {wrong}"))?;
                }
            }
        }
        judge.end()
    }
}

/// Whether the call reads all dead jobs page by page.
fn goes_by_pages(act: &Act) -> bool {
    matches!(act, Act::Redrive | Act::PurgeDead)
}

/// Returns the ways in which a call that others interrupted may be judged: by the stats
/// that follow, as one call without an answer, or as two calls, each with a part of the
/// answer.
fn parts_of(call: &RecordedCall) -> Vec<(RecordedCall, Option<RecordedCall>)> {
    let lost = || RecordedCall { replies: Vec::new(), is_lost: true, ..call.clone() };
    let answered = |reply| RecordedCall { replies: vec![reply], ..call.clone() };
    let two = |first, second| (answered(first), Some(answered(second)));
    match &call.replies[..] {
        [Reply::Redriven(Ok(all))] => (0..=all.moved)
            .flat_map(|moved| (0..=all.duplicates).map(move |same| (moved, same)))
            .map(|(moved, duplicates)| {
                let rest = Redriven {
                    moved: all.moved - moved,
                    duplicates: all.duplicates - duplicates,
                };
                let first = Redriven { moved, duplicates };
                two(Reply::Redriven(Ok(first)), Reply::Redriven(Ok(rest)))
            })
            .collect(),
        [Reply::Removed(Ok(all))] if goes_by_pages(&call.operation.act) => (0..=*all)
            .map(|some| two(Reply::Removed(Ok(some)), Reply::Removed(Ok(*all - some))))
            .collect(),
        _ if goes_by_pages(&call.operation.act) => vec![(lost(), Some(lost()))],
        _ => vec![(lost(), None)],
    }
}
