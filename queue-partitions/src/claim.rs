//! Claims: a sweep over the parts, and the wait after a sweep that found nothing.
//!
//! ```text
//!  sweep  the part whose turn it is, for all free slots
//!         the next parts, for the slots that are left
//!  full, or all parts were asked ---------------------> deliver
//!  nothing: wait on all parts at once, and begin the next
//!           sweep at the part that woke the claim
//! ```
//!
//! A part that fails is left out, and the others go on. The claim fails if every part
//! fails, or if a part has an error that only a person can repair. If the reply of a part
//! was lost, jobs may be leased that the claim does not return (R10), so a claim that has
//! no other job says so (R21). A claim that does not wait, and finds no job, also fails if
//! one part could not be asked, because that part may have jobs. A claim that waits asks
//! the part again meanwhile.

use std::{num::NonZeroU32, time::Duration};

use relq_core::{
    ClaimRequest, Delivery, Disposition, Error, ReliableQueue, Settlement,
    error::Operation,
};

use crate::{FairTurn, Partitioned, joined::PartErrors, receipt::wrap};

/// Whether a claim asks the part again that it asked first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskAgain {
    Ask,
    Skip,
}

/// The jobs of a claim so far.
struct Gathered {
    ask: ClaimRequest,
    jobs: Vec<Delivery>,
    /// Whether a part was asked and did not fail.
    has_answer: bool,
    errors: PartErrors,
}

impl<Q: ReliableQueue + ?Sized> Partitioned<Q> {
    /// Claims from all parts, and waits for up to `ask.wait` if they have no job.
    pub(crate) async fn claim_from_all(
        &self,
        ask: &ClaimRequest,
    ) -> Result<Vec<Delivery>, Error> {
        let clock = self.environment.clock();
        let deadline = clock.elapsed().saturating_add(ask.wait);
        let mut first = self.turn.next();
        loop {
            let mut gathered = self.nothing_gathered(ask);
            self.sweep(FairTurn::beginning_at(first, self.parts.len()), &mut gathered)
                .await?;
            if gathered.jobs.is_empty() && (ask.wait.is_zero() || !gathered.has_answer)
            {
                self.sweep_parts_that_are_down(first, &mut gathered).await?;
            }
            let left = deadline.saturating_sub(clock.elapsed());
            if !gathered.jobs.is_empty() || gathered.has_failed() || ask.wait.is_zero()
            {
                return gathered.end();
            }
            if left.is_zero() {
                return Ok(Vec::new());
            }
            first = self.wait_for_any(left).await;
        }
    }

    /// Claims jobs for the free slots of a claim that already has `jobs`, or the error of
    /// the part that was asked first.
    pub(crate) async fn fill(
        &self,
        ask: &ClaimRequest,
        (jobs, errors): (Vec<Delivery>, PartErrors),
        (asked, again): (usize, AskAgain),
    ) -> Result<Vec<Delivery>, Error> {
        let nothing = self.nothing_gathered(ask);
        let mut gathered = Gathered { jobs, errors, has_answer: true, ..nothing };
        let others = FairTurn::beginning_at(asked, self.parts.len()).skip(1);
        let again = (again == AskAgain::Ask).then_some(asked);
        self.sweep(others.chain(again), &mut gathered).await?;
        gathered.end()
    }

    fn nothing_gathered(&self, ask: &ClaimRequest) -> Gathered {
        let most = ask.max.min(self.capabilities().limits.max_jobs_per_call);
        let ask = ask.clone().wait(Duration::ZERO).max(most);
        let errors = PartErrors::default();
        Gathered { ask, jobs: Vec::new(), has_answer: false, errors }
    }

    /// Asks the parts that are up, in that order, until all slots are filled.
    async fn sweep(
        &self,
        parts: impl Iterator<Item = usize>,
        gathered: &mut Gathered,
    ) -> Result<(), Error> {
        for part in parts.filter(|part| self.health.is_up(*part)) {
            let Some(left) = gathered.slots_left() else { break };
            self.claim_from(part, left, gathered).await?;
            // The leases of the jobs so far run, and other parts may be as silent, for
            // example because they are on the same node.
            if !gathered.jobs.is_empty() && !self.health.silent_for(part).is_zero() {
                break;
            }
        }
        Ok(())
    }

    /// Asks the parts that are down, until one of them has a job. A part that was silent
    /// counts as failed without a call until its time is over, because each call would wait
    /// for a time limit.
    async fn sweep_parts_that_are_down(
        &self,
        first: usize,
        gathered: &mut Gathered,
    ) -> Result<(), Error> {
        let parts = FairTurn::beginning_at(first, self.parts.len());
        for part in parts.filter(|part| !self.health.is_up(*part)) {
            if !gathered.jobs.is_empty() {
                break;
            }
            let Some(left) = gathered.slots_left() else { break };
            let silent_for = self.health.silent_for(part);
            match self.check_not_left_out(Operation::Claim, part, silent_for) {
                Ok(()) => self.claim_from(part, left, gathered).await?,
                Err(error) => gathered.errors.add(error),
            }
        }
        Ok(())
    }

    async fn claim_from(
        &self,
        part: usize,
        most: NonZeroU32,
        gathered: &mut Gathered,
    ) -> Result<(), Error> {
        let ask = gathered.ask.clone().max(most);
        let began = self.health.now();
        let claimed = self.parts[part].claim(&ask).await;
        let is_outage = self.notice_since(began, part, &claimed);
        match claimed {
            Ok(jobs) => {
                gathered.has_answer = true;
                gathered.jobs.extend(jobs.into_iter().map(|job| wrap(part, job)));
                self.give_back_excess(gathered).await;
            }
            Err(error) if is_outage => gathered.errors.add(error),
            Err(error) if gathered.jobs.is_empty() => {
                return Err(gathered.errors.ended_by(error));
            }
            Err(error) => {
                let error = error.full_message();
                tracing::warn!(part, error, "a claim ends with the jobs that it has");
            }
        }
        Ok(())
    }

    /// Gives back the last jobs of a claim if its jobs together exceed
    /// [`ClaimRequest::MAX_BYTES`]. Each part keeps to that limit, but several parts
    /// together may not.
    async fn give_back_excess(&self, gathered: &mut Gathered) {
        let excess = gathered.take_excess();
        if excess.is_empty() {
            return;
        }
        // Give them back in one call for each part, which keeps their order.
        let settlements: Vec<_> = excess
            .into_iter()
            .map(|job| Settlement::new(job.receipt, Disposition::GiveBack))
            .collect();
        if let Err(error) = self.settle_by_part(&settlements).await {
            let error = error.full_message();
            tracing::warn!(
                error,
                "jobs of a claim that was too large come back when their leases end"
            );
        }
    }
}

impl Gathered {
    /// How many more jobs the claim takes; `None` if it is full. It is full when it has
    /// half of the allowed bytes, because a part cannot be asked for fewer bytes than a
    /// whole claim.
    fn slots_left(&self) -> Option<NonZeroU32> {
        let bytes: usize = self.jobs.iter().map(Delivery::total_bytes).sum();
        let taken = u32::try_from(self.jobs.len()).ok()?;
        let left = self.ask.max.get().checked_sub(taken)?;
        NonZeroU32::new(left).filter(|_| bytes < ClaimRequest::MAX_BYTES / 2)
    }

    /// Removes the jobs after [`ClaimRequest::MAX_BYTES`], but never the first.
    fn take_excess(&mut self) -> Vec<Delivery> {
        let mut bytes = 0_usize;
        let fitting = self.jobs.iter().take_while(|job| {
            bytes = bytes.saturating_add(job.total_bytes());
            bytes <= ClaimRequest::MAX_BYTES
        });
        let fitting = fitting.count().max(1).min(self.jobs.len());
        self.jobs.split_off(fitting)
    }

    /// Whether a claim that has no job fails at once, also if it may wait.
    fn has_failed(&self) -> bool {
        !self.has_answer || self.errors.may_have_happened()
    }

    /// The result of a claim that does not go on.
    fn end(self) -> Result<Vec<Delivery>, Error> {
        match self.errors.end() {
            Some(error) if self.jobs.is_empty() => Err(error),
            _ => Ok(self.jobs),
        }
    }
}
