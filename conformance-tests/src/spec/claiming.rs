//! The rules for claims: how they change the possible states of jobs.

use relq_core::Delivery;

use super::{
    claim_order::Taken,
    ready_order::{LAST, Ready},
};
use super::{
    possible_state::{JobLocation, Lease, Ms, PossibleState},
    pushing::ms,
    reference::{CheckResult, Job, Knowledge, ObservedLease, Reference},
    sequence::Steps,
};

/// The arguments of a claim, and the worker that makes it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    /// The index of the run of the worker that claims. A restart begins a new run.
    pub(crate) run: usize,
    pub(crate) max: usize,
    pub(crate) lease: Ms,
    pub(crate) waits: bool,
}

impl Reference {
    /// Records a claim that returned, and checks the jobs that it returned.
    pub(crate) fn claimed(&mut self, asked: Asked, answer: &[Delivery]) -> CheckResult {
        let expired_in_between = self.may_meet_expired();
        let taken = self.taken(asked, answer)?;
        if self.class.patience(u64::MAX) > 0 {
            return self.passed_over(asked, &taken);
        }
        if answer.is_empty() {
            return self.nothing_was_left();
        }
        if answer.len() < asked.max && !expired_in_between {
            return self.nobody_ready_was_left(&taken);
        }
        Ok(())
    }

    /// Records a claim that returned although a fault hit it. It returns the jobs that
    /// it leased before the fault, and takes no more. Expired jobs that it found may
    /// still be leased, and so may jobs of a later step whose reply was lost. A claim that
    /// waits may go on after it lost a reply. The jobs of that reply stay leased until
    /// their leases end (R10). If the lost reply was that of a move without a lease, the
    /// claim may return the moved job.
    pub(crate) fn claimed_despite_fault(
        &mut self,
        asked: Asked,
        answer: &[Delivery],
    ) -> CheckResult {
        if asked.waits {
            self.maybe_claimed(asked);
        }
        let taken = self.taken(asked, answer)?;
        if self.class.patience(u64::MAX) > 0 {
            self.passed_over(asked, &taken)?;
        } else if answer.is_empty() {
            self.nothing_was_left()?;
        }
        match self.steps {
            Steps::Usual => self.maybe_claimed_expired(asked),
            Steps::OfOneJob => self.maybe_claimed(asked),
        }
        Ok(())
    }

    /// Checks and records each job that a claim returned. Returns their possible
    /// positions.
    fn taken(
        &mut self,
        asked: Asked,
        answer: &[Delivery],
    ) -> Result<Vec<Taken>, String> {
        if answer.len() > asked.max {
            return Err(format!("R6: {} jobs for {}", answer.len(), asked.max));
        }
        if !answer.is_empty() {
            self.paused.retain(|paused| !paused);
            if self.paused.is_empty() {
                return Err("R6: a paused queue delivers".to_owned());
            }
        }
        let mut taken = Vec::new();
        for (index, delivery) in answer.iter().enumerate() {
            taken.push(self.delivered(asked, index, delivery)?);
        }
        self.answer_is_in_order(&taken)?;
        self.nobody_was_passed(&taken)?;
        for one in &taken {
            if let Some(number) = self.jobs[one.job].batch {
                self.limit_holds(number)?;
            }
        }
        self.may_bury_overdue();
        Ok(taken)
    }

    /// Records that a claim may have buried jobs that have no attempt left or that have
    /// expired. Only a backend whose claims take over expired leases does this.
    fn may_bury_overdue(&mut self) {
        let now = self.now;
        if !self.class.claims_take_over() {
            return;
        }
        self.maybe(|job, possible| {
            let is_over = job.is_last(possible) || possible.may_be_expired(now);
            let is_buried = is_over && possible.overdue(now).is_some();
            let buried = possible.taken_over().at(JobLocation::Dead);
            if is_buried { vec![buried] } else { Vec::new() }
        });
    }

    /// Records a claim whose reply was lost: any claimable job may be leased. Expired
    /// jobs may be leased too, if the claim ended before it buried them.
    pub(crate) fn maybe_claimed(&mut self, asked: Asked) {
        self.maybe_leased(asked, |_| true);
        self.maybe_moved(asked);
    }

    /// Records that expired jobs which a claim found may still be leased.
    fn maybe_claimed_expired(&mut self, asked: Asked) {
        let now = self.now;
        self.maybe_leased(asked, |possible| possible.may_be_expired(now));
    }

    fn maybe_leased(
        &mut self,
        asked: Asked,
        is_meant: impl Fn(&PossibleState) -> bool,
    ) {
        if !self.paused.contains(&false) {
            return;
        }
        let (now, step) = (self.now, self.step);
        let takes_over = self.class.claims_take_over();
        self.maybe(|job, possible| {
            let is_dropped = job.is_cancelled(possible) == Some(Knowledge::Done);
            if is_dropped || !is_meant(possible) {
                return Vec::new();
            }
            let is_taken_over = takes_over && possible.overdue(now).is_some();
            after_lost_claim((job, possible), asked, (now, step), is_taken_over)
        });
    }

    /// Records that a claim that waited may have moved a job to its worker without leasing
    /// it: the worker died, or the reply to the move was lost. A pause does not stop a move
    /// that waits.
    fn maybe_moved(&mut self, asked: Asked) {
        if !asked.waits || !self.class.moves_before_leasing() {
            return;
        }
        let at = (self.now, self.step);
        self.maybe(|job, possible| match possible.location {
            JobLocation::Ready(_) => {
                vec![possible.at(JobLocation::Moved(lost_lease(job, asked, at)))]
            }
            _ => Vec::new(),
        });
    }

    fn delivered(
        &mut self,
        asked: Asked,
        index: usize,
        delivery: &Delivery,
    ) -> Result<Taken, String> {
        let payload = delivery.payload.escape_ascii();
        let Some(at) = self.job_of(&delivery.payload) else {
            return Err(format!("UNEXPECTED, R3: {payload} was never pushed"));
        };
        self.check_delivery(at, asked, delivery)?;
        self.check_time(at, delivery.enqueued_at)?;
        self.may_be_delivered(at, asked, delivery)?;
        let (now, attempt) = (self.now, delivery.attempt());
        self.keep(at, "R11: not this attempt", |possible| {
            possible.attempt + 1 == attempt
        })?;
        let places = self.places_of(at);
        let was_leased =
            self.jobs[at].possible_states.iter().all(|it| it.lease().is_some());
        self.jobs[at].returns += u32::from(was_leased);
        let lease = Lease {
            receipt: Some(self.observed.len()),
            run: asked.run,
            until: now + ms(delivery.lease),
            claim: self.step,
            index,
        };
        self.jobs[at].deliver(delivery, lease);
        let receipt = delivery.receipt.clone();
        self.observed.push(ObservedLease { receipt, job: at, lease });
        Ok(Taken { job: at, places })
    }

    /// Rules out the possible states in which a claim must not deliver the job.
    fn may_be_delivered(
        &mut self,
        job: usize,
        asked: Asked,
        delivery: &Delivery,
    ) -> CheckResult {
        let now = self.now;
        self.may_be_of(job, delivery)?;
        let most = u32::from(self.jobs[job].spec.max_attempts.get());
        let takes_over = self.class.claims_take_over();
        self.keep(job, "R6, R11, R14, R17: must not be delivered now", |possible| {
            let is_overdue =
                possible.overdue(now).is_some() && !possible.is_expired(now);
            let is_taken_over = takes_over && is_overdue && possible.attempt < most;
            let is_moved_to_it = asked.waits && possible.is_moved_to(asked.run);
            possible.is_claimable(now) || is_taken_over || is_moved_to_it
        })
    }

    /// B7, B8: checks that a live piece is delivered with its batch and that the batch
    /// was not cancelled, and that any other job is delivered without a batch.
    fn may_be_of(&mut self, job: usize, delivery: &Delivery) -> CheckResult {
        let Job { batch, cancelled, .. } = self.jobs[job];
        let own = batch.map(Self::batch_id);
        let rule = format!("B7, B8: delivered of batch {:?}", delivery.batch);
        self.keep(job, &rule, |possible| {
            let expected = own.as_ref().filter(|_| !possible.is_detached);
            let is_dropped = cancelled == Some(Knowledge::Done);
            delivery.batch.as_ref() == expected && !(expected.is_some() && is_dropped)
        })
    }

    /// Returns the positions that the job may have had among the ready jobs. A due job
    /// may already be ready, so it has a position as well.
    fn places_of(&self, job: usize) -> Vec<Ready> {
        let job = &self.jobs[job];
        let location = |possible: &PossibleState| match possible.location {
            JobLocation::Leased(lease) | JobLocation::Moved(lease) => {
                lease.back(&self.class, LAST)
            }
            other => other,
        };
        let ready = |possible| self.ready(job, possible, location(possible));
        job.possible_states.iter().flat_map(ready).collect()
    }

    /// Returns the positions that a job at `location` may have among the ready jobs:
    /// one for each possible rank of its batch, and none if the location is not
    /// `Ready`.
    pub(super) fn ready(
        &self,
        job: &Job,
        possible: &PossibleState,
        location: JobLocation,
    ) -> Vec<Ready> {
        let JobLocation::Ready(position) = location else { return Vec::new() };
        let priority = job.spec.priority;
        match job.batch.filter(|_| !possible.is_detached) {
            None => vec![Ready { priority, position, batch: None }],
            Some(number) => self
                .ranks(number)
                .into_iter()
                .map(|rank| Ready { priority, position, batch: Some(rank) })
                .collect(),
        }
    }

    /// Checks that the job is delivered as it was pushed (R2), with a receipt that no
    /// other delivery has (R7).
    fn check_delivery(&self, at: usize, asked: Asked, got: &Delivery) -> CheckResult {
        let (job, spec) = (&self.jobs[at], &self.jobs[at].spec);
        let is_known = |observed: &ObservedLease| observed.receipt == got.receipt;
        let wrong = [
            (job.id.as_ref().is_some_and(|id| id != got.job()), "R3: another id"),
            (spec.headers != got.headers, "R2: other headers"),
            (
                spec.keep_result.is_some() != got.keeps_result,
                "R29: another word on whether its result is kept",
            ),
            (spec.priority != got.priority, "R15: another priority"),
            (spec.max_attempts != got.max_attempts, "R11: other attempts"),
            (spec.lease.map_or(asked.lease, ms) != ms(got.lease), "R6: another lease"),
            (self.observed.iter().any(is_known), "R7: a receipt given out twice"),
        ];
        match wrong.into_iter().find(|(is_wrong, _)| *is_wrong) {
            Some((_, rule)) => Err(format!("{rule}: {got:?}")),
            None => Ok(()),
        }
    }

    /// Whether a claim may find an expired job. Such a job counts towards the limit of
    /// the claim, but the claim does not return it.
    fn may_meet_expired(&self) -> bool {
        let now = self.now;
        let is_expired = |possible: &PossibleState| {
            let is_up = matches!(possible.location, JobLocation::Ready(_));
            is_up && possible.may_be_expired(now)
        };
        self.jobs.iter().any(|job| job.possible_states.iter().any(is_expired))
    }
}

impl Job {
    /// Records that a claim delivered the job with this lease.
    fn deliver(&mut self, delivery: &Delivery, lease: Lease) {
        self.id = Some(delivery.job().clone());
        self.runs += 1;
        for possible in std::mem::take(&mut self.possible_states) {
            let leased = PossibleState {
                location: JobLocation::Leased(lease),
                attempt: delivery.attempt(),
                ..possible.taken_over()
            };
            super::reference::add(&mut self.possible_states, leased);
        }
    }
}

/// The states that a claim whose reply was lost may have caused, for a job that the claim
/// may have found in this state. `is_taken_over` says whether the claim may end an
/// expired lease of the job.
fn after_lost_claim(
    (job, possible): (&Job, &PossibleState),
    asked: Asked,
    (now, step): (Ms, u32),
    is_taken_over: bool,
) -> Vec<PossibleState> {
    let is_own = |lease: &Lease| lease.receipt.is_none() && lease.run == asked.run;
    let is_expired = possible.may_be_expired(now);
    if possible.lease().is_some_and(is_own) && is_expired && !is_taken_over {
        // The last step of the claim buries the expired jobs that it found.
        return vec![possible.at(JobLocation::Dead)];
    }
    if !possible.is_up(now) && !is_taken_over {
        return Vec::new();
    }
    let possible = &possible.taken_over();
    if is_taken_over && job.is_last(possible) {
        return vec![possible.at(JobLocation::Dead)];
    }
    let lease = lost_lease(job, asked, (now, step));
    let attempt = possible.attempt + 1;
    let leased = PossibleState { attempt, ..possible.at(JobLocation::Leased(lease)) };
    if is_taken_over && is_expired {
        return vec![leased, possible.at(JobLocation::Dead)];
    }
    vec![leased]
}

/// The lease of a job that a claim whose reply was lost may have leased.
fn lost_lease(job: &Job, asked: Asked, (now, claim): (Ms, u32)) -> Lease {
    let until = now + job.spec.lease.map_or(asked.lease, ms);
    Lease { receipt: None, run: asked.run, until, claim, index: 0 }
}
