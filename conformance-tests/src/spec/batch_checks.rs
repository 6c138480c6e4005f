//! The rules for batches (B1 to B8): checks of what calls return about batches.

use relq_core::batch::{BatchId, BatchOutcome, BatchState, BatchStatus};

use super::{
    batching::{Batch, Phase, PossibleBatch, phase, unknown},
    possible_state::InBatch,
    reference::{CheckResult, Reference},
};

impl Reference {
    /// Checks a list of all batches that was read while no call was running.
    pub(crate) fn batches_seen(&mut self, listed: &[BatchStatus]) -> CheckResult {
        if !listed.is_sorted_by(|one, other| one.id < other.id) {
            return Err(format!("B6: batches are not listed by id: {listed:?}"));
        }
        let is_known =
            |id: &BatchId| self.batches.values().any(|batch| batch.id == *id);
        if let Some(other) = listed.iter().find(|status| !is_known(&status.id)) {
            return Err(format!("UNEXPECTED, B10: never created: {other:?}"));
        }
        let numbers: Vec<_> = self.batches.keys().copied().collect();
        for number in numbers {
            let id = &self.batches[&number].id;
            let status = listed.iter().find(|status| status.id == *id);
            self.batch_seen(number, status)?;
        }
        Ok(())
    }

    /// Checks a batch's status that was read while no call changed the batch.
    pub(crate) fn batch_seen(
        &mut self,
        number: u8,
        status: Option<&BatchStatus>,
    ) -> CheckResult {
        let Some(batch) = self.batches.get_mut(&number) else {
            return unknown(number, status.is_some());
        };
        let Some(status) = status else {
            batch.keep("LOST, B6: not there", |it| it.phase == Phase::Absent)?;
            return self.count_pieces(number, [0; 5]);
        };
        if let Some(record) = &batch.record {
            let is_same = record == status;
            let wrong = || format!("B6: the record {record:?} is now {status:?}");
            return if is_same { Ok(()) } else { Err(wrong()) };
        }
        batch.keep(&format!("B1, B7: {status:?}"), |it| {
            it.phase == phase(status.state)
                && (it.priority, it.limit) == (status.priority, status.limit)
        })?;
        self.add_up(number, status)?;
        self.completion_seen(number, status)
    }

    /// B2: checks that the status counts each piece once, and in the right state.
    fn add_up(&mut self, number: u8, status: &BatchStatus) -> CheckResult {
        let BatchStatus { total, done, failed, dropped, leased, waiting, .. } = *status;
        if total != status.ended() + leased + waiting {
            return Err(format!("CONSERVE, B2: miscounted: {status:?}"));
        }
        self.count_pieces(number, [waiting, leased, done, failed, dropped])
            .map_err(|wrong| format!("{wrong}: {status:?}"))
    }

    fn count_pieces(&mut self, number: u8, figures: [u64; 5]) -> CheckResult {
        for (place, figure) in InBatch::ALL.into_iter().zip(figures) {
            let rule = format!("CONSERVE, B2: {place:?} pieces");
            self.figure_is(&rule, figure, |job, possible| {
                job.batch == Some(number) && possible.in_batch() == Some(place)
            })?;
        }
        Ok(())
    }

    /// B5: checks that the batch has completed if and only if it is closed and its
    /// pieces have ended, and that its completion job was pushed exactly then.
    fn completion_seen(&mut self, number: u8, status: &BatchStatus) -> CheckResult {
        let is_over =
            status.state != BatchState::Open && status.leased + status.waiting == 0;
        let outcome = match phase(status.state) {
            Phase::Cancelled => BatchOutcome::Cancelled,
            _ if status.failed > 0 => BatchOutcome::Failed,
            _ => BatchOutcome::Done,
        };
        if status.outcome() != is_over.then_some(outcome) {
            return Err(format!("B5, B8: not the outcome: {status:?}"));
        }
        if status.completed_at.is_some() != is_over {
            return Err(format!("B5: not the time of a completion: {status:?}"));
        }
        let Some(batch) = self.batches.get_mut(&number) else { return Ok(()) };
        let (at, id) = (batch.possible_states[0].completion, batch.id.clone());
        if is_over {
            batch.record = Some(status.clone());
        }
        let id = id.completion_job(status.created_at);
        self.jobs[at].spec.id = Some(id.clone());
        self.jobs[at].id = Some(id);
        self.keep(at, "B5: the completion job", |it| it.is_absent() != is_over)
    }

    /// Checks at the end of a sequence, when all batches are sealed and all jobs have
    /// ended, that every batch has completed.
    pub(crate) fn batches_have_ended(&self) -> CheckResult {
        let runs = |batch: &&Batch| batch.record.is_none() && !batch.is(Phase::Absent);
        match self.batches.values().find(runs) {
            None => Ok(()),
            Some(batch) => Err(format!("B5, B10: {} has not completed", batch.id)),
        }
    }

    /// B3: returns how many slots of the batch are certainly in use, and how many may
    /// be in use.
    fn slots_in_use(&self, number: u8) -> (u64, u64) {
        self.count(|job, possible| {
            job.batch == Some(number) && possible.in_batch() == Some(InBatch::Leased)
        })
    }

    /// B3: checks after a claim of pieces of that batch that no more pieces are leased
    /// than its limit allows.
    pub(crate) fn limit_holds(&self, number: u8) -> CheckResult {
        let (used, _) = self.slots_in_use(number);
        let Some(batch) = self.batches.get(&number) else { return Ok(()) };
        let is_over = |it: &PossibleBatch| {
            it.limit.is_some_and(|limit| used > u64::from(limit.get()))
        };
        if batch.possible_states.iter().all(is_over) {
            return Err(format!(
                "B3: {used} leased: {} {:?}",
                batch.id, batch.possible_states
            ));
        }
        Ok(())
    }

    /// Returns the numbers of the batches whose ready pieces a claim may leave behind,
    /// because all slots may be in use or the batch may be cancelled (B3, B7).
    pub(crate) fn withheld(&self) -> Vec<u8> {
        let may_be_withheld = |(number, batch): (&u8, &Batch)| {
            let (_, used) = self.slots_in_use(*number);
            let is_full = |it: &PossibleBatch| {
                it.limit.is_some_and(|limit| used >= u64::from(limit.get()))
            };
            let is_closed =
                batch.may_be(Phase::Cancelled) || batch.may_be(Phase::Absent);
            let may_be = is_closed || batch.possible_states.iter().any(is_full);
            may_be.then_some(*number)
        };
        self.batches.iter().filter_map(may_be_withheld).collect()
    }
}
