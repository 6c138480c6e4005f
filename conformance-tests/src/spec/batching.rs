//! The rules for batches (B1 to B8): how calls change the possible states of a batch.
//! `batch_checks.rs` checks what calls return.

use std::num::NonZeroU32;

use relq_core::{
    NewJob,
    batch::{BatchId, BatchOutcome, BatchPriority, BatchState, BatchStatus, Created},
};

use super::{
    possible_state::{End, InBatch, JobLocation, Ms, PossibleState},
    reference::{CheckResult, Job, Knowledge, Reference, add},
};
use crate::spec::ready_order::{BatchRank, ReadyPosition};

/// A batch in the reference model, with every state that the batch may be in.
#[derive(Debug, Clone)]
pub(crate) struct Batch {
    pub(crate) id: BatchId,
    pub(crate) possible_states: Vec<PossibleBatch>,
    /// The number of the operation that created the batch: older batches come first
    /// (B4).
    pub(super) born: u32,
    /// The status that a call returned after the batch had completed. Later calls must
    /// return the same status (B6). `None` until then.
    pub(super) record: Option<BatchStatus>,
    /// Whether a client that cancelled the batch may have died before it dropped all
    /// waiting pieces.
    lingers: bool,
}

/// One possible state of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PossibleBatch {
    pub(crate) phase: Phase,
    pub(crate) priority: BatchPriority,
    pub(crate) limit: Option<NonZeroU32>,
    /// The index of the batch's completion job in [`Reference::jobs`].
    pub(crate) completion: usize,
}

/// The state of a batch, as far as calls decide it. Whether a sealed or cancelled batch
/// has completed follows from its pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Absent,
    Open,
    Sealed,
    Cancelled,
}

/// How one call changes a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchChange {
    Nothing,
    Seal,
    Cancel,
    Alter(BatchPriority, Option<NonZeroU32>),
}

impl Batch {
    pub(crate) fn may_be(&self, phase: Phase) -> bool {
        self.possible_states.iter().any(|possible| possible.phase == phase)
    }

    pub(crate) fn is(&self, phase: Phase) -> bool {
        self.possible_states.iter().all(|possible| possible.phase == phase)
    }

    /// Whether the batch was cancelled, certainly or perhaps. `None` means that it was
    /// not.
    fn cancelled(&self) -> Option<Knowledge> {
        match (self.is(Phase::Cancelled), self.may_be(Phase::Cancelled)) {
            (true, _) => Some(Knowledge::Done),
            (false, true) => Some(Knowledge::Maybe),
            (false, false) => None,
        }
    }

    pub(super) fn keep(
        &mut self,
        rule: &str,
        is_possible: impl Fn(&PossibleBatch) -> bool,
    ) -> CheckResult {
        let known = self.possible_states.clone();
        self.possible_states.retain(is_possible);
        if self.possible_states.is_empty() {
            return Err(format!("{rule}: batch {}, with {known:?}", self.id));
        }
        Ok(())
    }
}

impl PossibleBatch {
    fn after(self, change: BatchChange) -> Self {
        match (change, self.phase) {
            (BatchChange::Nothing, _) | (_, Phase::Absent) => self,
            (BatchChange::Seal, Phase::Open) => Self { phase: Phase::Sealed, ..self },
            (BatchChange::Seal, _) => self,
            (BatchChange::Cancel, _) => Self { phase: Phase::Cancelled, ..self },
            (BatchChange::Alter(priority, limit), _) => {
                Self { priority, limit, ..self }
            }
        }
    }
}

impl Reference {
    /// Returns the state of a batch that a call creates, and adds the completion job of
    /// the batch to the model. That job is absent until the batch completes.
    pub(crate) fn new_batch(
        &mut self,
        (priority, limit): (BatchPriority, Option<NonZeroU32>),
        completion: &NewJob,
    ) -> PossibleBatch {
        let absent = vec![self.absent()];
        let index = self.jobs.len();
        self.add_job(completion, None, None, absent);
        self.jobs[index].pushed = None;
        PossibleBatch { phase: Phase::Open, priority, limit, completion: index }
    }

    /// Records a `create` that returned, and checks whether the batch could exist
    /// before.
    pub(crate) fn created(
        &mut self,
        number: u8,
        new: PossibleBatch,
        answer: Created,
    ) -> CheckResult {
        let batch = self.batch_mut(number, new);
        let exists = answer == Created::Exists;
        batch.keep("B10: created", |it| (it.phase != Phase::Absent) == exists)?;
        if !exists {
            batch.possible_states.clear();
        }
        self.maybe_created(number, new);
        Ok(())
    }

    /// Records a `create` whose reply was lost: the batch may exist now.
    pub(crate) fn maybe_created(&mut self, number: u8, new: PossibleBatch) {
        let step = self.step;
        let batch = self.batch_mut(number, new);
        if batch.is(Phase::Absent) {
            batch.born = step;
            batch.record = None;
            batch.lingers = false;
        }
        if batch.possible_states.is_empty() || batch.may_be(Phase::Absent) {
            batch.possible_states.push(new);
        }
    }

    /// Applies a change to the possible states of a batch. If the change may not have
    /// happened, the earlier states stay possible as well. A batch that has completed
    /// does not change (B6, B7).
    pub(crate) fn batch_changed(
        &mut self,
        number: u8,
        change: BatchChange,
        known: Knowledge,
    ) {
        let Some(batch) = self.batches.get(&number) else { return };
        if batch.record.is_some() {
            return;
        }
        let mut after = Vec::new();
        for possible in &batch.possible_states {
            let completed = self.has_completed(possible);
            let changed = possible.after(change);
            let changed = (completed != Some(Knowledge::Done)).then_some(changed);
            let is_kept = known == Knowledge::Maybe || completed.is_some();
            for one in changed.into_iter().chain(is_kept.then_some(*possible)) {
                if !after.contains(&one) {
                    after.push(one);
                }
            }
        }
        let Some(batch) = self.batches.get_mut(&number) else { return };
        batch.possible_states = after;
        if change == BatchChange::Cancel {
            batch.lingers = known == Knowledge::Maybe;
        }
    }

    /// Whether a batch in this state has completed, and so has pushed its completion
    /// job: certainly, perhaps, or `None` if it has not.
    fn has_completed(&self, possible: &PossibleBatch) -> Option<Knowledge> {
        let completion = &self.jobs[possible.completion].possible_states;
        let is_closed = matches!(possible.phase, Phase::Sealed | Phase::Cancelled);
        let may_be_absent = completion.iter().any(PossibleState::is_absent);
        let may_be_pushed = !completion.iter().all(PossibleState::is_absent);
        match (is_closed && may_be_pushed, may_be_absent) {
            (false, _) => None,
            (true, true) => Some(Knowledge::Maybe),
            (true, false) => Some(Knowledge::Done),
        }
    }

    /// Records that a recovery reported that nothing is left to do. So no cancelled
    /// batch has waiting pieces any more.
    pub(crate) fn cancels_are_over(&mut self) {
        self.batches.values_mut().for_each(|batch| batch.lingers = false);
    }

    /// Records that a purge removed all batches, or may have.
    pub(crate) fn batches_purged(&mut self, known: Knowledge) {
        for batch in self.batches.values_mut() {
            let first = batch.possible_states[0];
            if known == Knowledge::Done {
                batch.possible_states.clear();
                batch.record = None;
            }
            if !batch.may_be(Phase::Absent) {
                batch
                    .possible_states
                    .push(PossibleBatch { phase: Phase::Absent, ..first });
            }
        }
    }

    /// Records that `add` refused pieces because of the reported state of the batch,
    /// and checks that the batch could be in that state.
    pub(crate) fn is_closed(
        &mut self,
        number: u8,
        state: Option<BatchState>,
    ) -> CheckResult {
        let Some(batch) = self.batches.get_mut(&number) else {
            return unknown(number, state.is_some());
        };
        let phase = state.map_or(Phase::Absent, phase);
        let rule = format!("B1: pieces refused, {state:?}");
        batch.keep(&rule, |it| it.phase == phase && phase != Phase::Open)
    }

    /// Records that `add` stored pieces, and checks that the batch could be open (B1).
    pub(crate) fn is_open(&mut self, number: u8) -> CheckResult {
        let Some(batch) = self.batches.get_mut(&number) else {
            return unknown(number, true);
        };
        batch.keep("B1: pieces stored", |it| it.phase == Phase::Open)
    }

    /// Applies the effects of batches on jobs: waiting pieces of a cancelled batch are
    /// dropped (B7), and a closed batch without live pieces pushes its completion (B5).
    pub(crate) fn tend_batches(&mut self) {
        let numbers: Vec<_> = self.batches.keys().copied().collect();
        for number in numbers {
            self.drop_waiting(number);
            self.complete(number);
        }
    }

    fn drop_waiting(&mut self, number: u8) {
        let (now, batch) = (self.now, &self.batches[&number]);
        let (cancelled, lingers) = (batch.cancelled(), batch.lingers);
        let pieces = self.jobs.iter_mut().filter(|job| job.batch == Some(number));
        for job in pieces {
            job.cancelled = cancelled;
            for possible in job.possible_states.clone() {
                if cancelled.is_none() || possible.in_batch() != Some(InBatch::Waiting)
                {
                    continue;
                }
                add(&mut job.possible_states, dropped(&possible, now));
                if cancelled == Some(Knowledge::Done) && !lingers {
                    job.possible_states.retain(|it| *it != possible);
                }
            }
        }
    }

    fn complete(&mut self, number: u8) {
        let is_live = |possible: &PossibleState| {
            matches!(possible.in_batch(), Some(InBatch::Waiting | InBatch::Leased))
        };
        let pieces = || self.jobs.iter().filter(|job| job.batch == Some(number));
        let may_be_over = pieces().all(|job| !job.possible_states.iter().all(is_live));
        let is_over = pieces().all(|job| !job.possible_states.iter().any(is_live));
        let possible_states = self.batches[&number].possible_states.clone();
        let position = ReadyPosition::Back {
            from: (self.step, 0),
            to: (self.step, usize::MAX),
            due: None,
        };
        for possible in &possible_states {
            let is_closed = matches!(possible.phase, Phase::Sealed | Phase::Cancelled);
            let job = &mut self.jobs[possible.completion];
            let absent = job.possible_states.iter().position(PossibleState::is_absent);
            if let Some(at) = absent.filter(|_| is_closed && may_be_over) {
                let pushed = job.possible_states[at].at(JobLocation::Ready(position));
                if is_over && possible_states.len() == 1 {
                    job.possible_states.remove(at);
                }
                add(&mut job.possible_states, pushed);
            }
        }
    }

    /// Returns the ranks that the batch may have, one for each of its possible states.
    /// Claims take pieces from the batches in the order of their ranks (B4).
    pub(crate) fn ranks(&self, number: u8) -> Vec<BatchRank> {
        let Some(batch) = self.batches.get(&number) else { return Vec::new() };
        let rank = |it: &PossibleBatch| BatchRank {
            number,
            priority: it.priority,
            born: batch.born,
        };
        batch.possible_states.iter().map(rank).collect()
    }

    pub(crate) fn batch_id(number: u8) -> BatchId {
        BatchId::new(format!("batch-{number}")).expect("a valid id")
    }

    fn batch_mut(&mut self, number: u8, new: PossibleBatch) -> &mut Batch {
        self.batches.entry(number).or_insert_with(|| Batch {
            id: Self::batch_id(number),
            possible_states: vec![PossibleBatch { phase: Phase::Absent, ..new }],
            born: 0,
            record: None,
            lingers: false,
        })
    }
}

/// The state of a piece after a cancel of its batch has dropped it.
pub(crate) fn dropped(possible: &PossibleState, now: Ms) -> PossibleState {
    possible.ended(End::Cancelled(None), now)
}

impl Job {
    /// Whether the job, in this state, is a piece of a cancelled batch: certainly,
    /// perhaps, or `None` if it is not.
    pub(crate) fn is_cancelled(&self, possible: &PossibleState) -> Option<Knowledge> {
        self.cancelled.filter(|_| !possible.is_detached)
    }
}

pub(super) fn phase(state: BatchState) -> Phase {
    match state {
        BatchState::Open => Phase::Open,
        BatchState::Cancelling | BatchState::Completed(BatchOutcome::Cancelled) => {
            Phase::Cancelled
        }
        BatchState::Sealed | BatchState::Completed(_) => Phase::Sealed,
    }
}

/// Fails if a batch exists that no call has created.
pub(super) fn unknown(number: u8, exists: bool) -> CheckResult {
    if exists {
        Err(format!("UNEXPECTED, B10: batch {number} was never created"))
    } else {
        Ok(())
    }
}
