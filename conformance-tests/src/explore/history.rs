//! The calls of a run, and the search for an order in which they may have taken effect.
//!
//! Calls that overlap in time may have taken effect in either order. A run goes by the
//! rules if the reference accepts its calls in at least one order that keeps each call
//! before those that began after it had ended: linearizability (Herlihy and Wing, 1990),
//! found by the search of Wing and Gong (1993).

use std::sync::Arc;

use relq_core::capabilities::Capabilities;

use crate::{
    Subject,
    spec::{
        operation::{Act, Operation, Who},
        tape::{Judge, RecordedCall, Reply},
    },
};

/// A call that ran while others did.
#[derive(Debug, Clone)]
pub(super) struct Overlapping {
    pub(super) call: RecordedCall,
    /// The moment at which it began.
    pub(super) began: usize,
    /// The moment at which it ended, if it did.
    pub(super) ended: Option<usize>,
    /// Whether its actor died before its first command.
    was_never_sent: bool,
}

/// The calls of a run in three parts. Only those of the second overlap.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    pub(super) setup: Vec<RecordedCall>,
    pub(super) overlapping: Vec<Overlapping>,
    pub(super) after: Vec<Recorded>,
    /// Counts the beginnings and ends of calls.
    moments: usize,
}

/// A call at the end of a run, or a look at a queue that nobody uses.
#[derive(Debug, Clone)]
pub(super) enum Recorded {
    Call(RecordedCall),
    Look([Reply; 2]),
}

impl History {
    /// Records that a call begins. Returns its number.
    pub(super) fn begins(&mut self, operation: Operation, payloads: usize) -> usize {
        let call =
            RecordedCall { operation, payloads, replies: Vec::new(), is_lost: true };
        let began = self.next_moment();
        self.overlapping.push(Overlapping {
            call,
            began,
            ended: None,
            was_never_sent: false,
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

    /// Records that an actor died. A call that it had begun may have happened until now,
    /// if it had sent a command.
    pub(super) fn dies(&mut self, who: Who, has_sent: bool) {
        let ended = self.next_moment();
        let is_open =
            |one: &Overlapping| one.call.operation.who == who && one.ended.is_none();
        for one in self.overlapping.iter_mut().filter(|one| is_open(one)) {
            one.ended = Some(ended);
            one.was_never_sent = !has_sent;
        }
    }

    /// The calls that have not ended.
    pub(super) fn open(&self) -> Vec<usize> {
        let all = self.overlapping.iter().enumerate();
        all.filter(|(_, one)| one.ended.is_none()).map(|(at, _)| at).collect()
    }

    /// Those of these calls that have ended since: their actor, and the call and its
    /// replies as text.
    pub(super) fn returned(&self, open: &[usize]) -> Vec<(Who, String)> {
        let ended = open.iter().map(|at| &self.overlapping[*at]);
        let ended = ended.filter(|one| one.ended.is_some() && !one.call.is_lost);
        let text = |one: &Overlapping| {
            let RecordedCall { operation, replies, .. } = &one.call;
            (operation.who, format!("`{operation}` {replies:?}"))
        };
        ended.map(text).collect()
    }

    fn next_moment(&mut self) -> usize {
        self.moments += 1;
        self.moments
    }

    /// The pairs of calls of which the first ended before the second began.
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
    /// between two of its jobs. If no order is accepted, such a recovery is judged as
    /// one whose answer was lost: what it did is judged by the stats that follow.
    ///
    /// # Errors
    /// What is wrong with the order in which the calls ended, if no order is accepted.
    pub(super) async fn judge(
        &self,
        subject: &Arc<dyn Subject>,
        can: &Capabilities,
    ) -> Result<(), String> {
        let Err(wrong) = self.judge_all(subject, can).await else { return Ok(()) };
        let mut in_steps = self.clone();
        for at in 0..in_steps.overlapping.len() {
            let overlaps = self.overlaps(at);
            let one = &mut in_steps.overlapping[at].call;
            if overlaps && matches!(one.operation.act, Act::Recover { .. }) {
                one.replies.clear();
                one.is_lost = true;
            }
        }
        in_steps.judge_all(subject, can).await.map_err(|_| wrong)
    }

    /// Whether another call was under way during this one.
    fn overlaps(&self, at: usize) -> bool {
        let is_before = |one: &Overlapping, other: &Overlapping| {
            one.ended.is_some_and(|ended| ended < other.began)
        };
        let one = &self.overlapping[at];
        let mut others = self.overlapping.iter().enumerate();
        others.any(|(other_at, other)| {
            other_at != at && !is_before(one, other) && !is_before(other, one)
        })
    }

    async fn judge_all(
        &self,
        subject: &Arc<dyn Subject>,
        can: &Capabilities,
    ) -> Result<(), String> {
        let mut order: Vec<usize> = (0..self.overlapping.len()).collect();
        order.sort_by_key(|at| self.overlapping[*at].ended.unwrap_or(usize::MAX));
        let Err((accepted, wrong)) = self.try_order(&order, subject, can).await else {
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
                match self.try_order(&prefix, subject, can).await {
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

    /// The calls that may follow in an order: those before which no other call ended.
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

    /// Judges all calls, the overlapping ones in this order. The error has the number of
    /// overlapping calls that were accepted.
    async fn try_order(
        &self,
        order: &[usize],
        subject: &Arc<dyn Subject>,
        can: &Capabilities,
    ) -> Result<(), (usize, String)> {
        let mut judge = Judge::new(Arc::clone(subject), can);
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
