//! The loop that owns the slots and the pending settlements, and decides when to call
//! the store.
//!
//! ```text
//!  ended    | free slots | call
//! ----------+------------+---------------------------------------------
//!  some     | some       | settle and claim in one round trip
//!  some     | none, or a | settle
//!           | claim waits|
//!  none     | some       | claim, waiting until a job is ready
//!  none     | none       | none: a handler ends next
//! ```
//!
//! Jobs that end while a call settles go with the next call. So many handlers share a
//! call when the store is busy, and a single handler never waits. A worker with many
//! slots has two such calls pending, each for half of the slots, so that it runs the
//! jobs of one while the store works on the other. [`claim_size`](crate::claim_size)
//! handles jobs that are not started.
//!
//! A worker may claim jobs before a slot is free for them: see `prefetch`.
//!
//! A worker on several queues has one such loop for each. Their slots come from a
//! [pool](crate::slot_pool). A claim of such a loop does not wait, because the others
//! could not use its slots meanwhile. After a claim that found nothing, the loop waits
//! for a job without a slot:
//!
//! ```text
//!  state of the queue             | slots | call
//! --------------------------------+-------+----------------------------
//!  it may have jobs               | some  | claim, without a wait
//!  its last claim found nothing   | none  | wait for a job, and lease none
//!  its last claim failed          | none  | claim one job, after a pause
//!  a call has no reply for long   | none  | none: the reply comes next
//! ```

mod ended;
mod late;
mod pooled;
mod prefetch;
mod room;

use std::{num::NonZeroU32, sync::Arc};

use self::prefetch::Prefetch;
use futures_lite::future::{poll_once, yield_now};
use relq_core::{
    ClaimRequest, Delivery, Disposition, Error, QueueName, WorkerId,
    error::{Operation, RetryAdvice},
};

use crate::{
    JobContext, WorkerError,
    attempt::Ended,
    backoff::{Backoff, Sleep},
    calls::{Answer, CALL_LIMIT, Calls, LAST_CHECK, slots},
    claim_size::{ClaimSize, Sent},
    context::ClaimedFrom,
    held::Held,
    lease_clock::Moment,
    settings::Settings,
    settling::Settling,
    shutdown::Shutdown,
    slots::Slots,
};

/// A worker with at least this many slots keeps two calls pending at once, each for
/// half of the slots.
const SHARED_FROM: usize = 16;

pub(crate) struct ClaimLoop {
    pub(crate) slots: Slots,
    pub(crate) calls: Calls,
    pub(crate) settling: Settling,
    pub(crate) settings: Settings,
    worker: WorkerId,
    claimed_from: ClaimedFrom,
    held: Arc<Held>,
    claiming: Backoff,
    claim_size: ClaimSize,
    prefetch: Prefetch,
    phase: ClaimPhase,
    /// Whether the last claim found no job.
    is_idle: bool,
    /// The timer of the next check for calls that have no reply in time.
    next_call_check: Sleep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClaimPhase {
    /// No claim has succeeded yet. In this phase, an error that a retry cannot repair
    /// ends the worker at once.
    Untried,
    Working,
    /// The worker is stopping: jobs that a pending claim returns are given back.
    Stopping,
}

/// The arguments for a new claim loop. The loop creates the rest of its state itself.
pub(crate) struct ClaimLoopParts {
    pub(crate) slots: Slots,
    pub(crate) calls: Calls,
    pub(crate) settings: Settings,
    pub(crate) worker: WorkerId,
    /// The name of the queue, if the worker serves several.
    pub(crate) queue: Option<QueueName>,
    pub(crate) held: Arc<Held>,
}

impl ClaimLoop {
    pub(crate) fn new(parts: ClaimLoopParts) -> Self {
        let ClaimLoopParts { slots, calls, settings, worker, queue, held } = parts;
        let environment = settings.environment.clone();
        let claimed_from = ClaimedFrom { queue: calls.queue(), name: queue };
        Self {
            settling: Settling::new(
                Arc::clone(&held),
                settings.observers.clone(),
                environment.clone(),
            )
            .of(calls.order()),
            next_call_check: environment.clock().sleep(CALL_LIMIT),
            claiming: Backoff::new("claiming", environment),
            claim_size: ClaimSize::new(slots.most_held(), settings.wait()),
            prefetch: Prefetch::new(settings.prefetch, settings.lease),
            phase: ClaimPhase::Untried,
            is_idle: false,
            slots,
            calls,
            settings,
            worker,
            claimed_from,
            held,
        }
    }

    /// Runs until the worker is asked to stop.
    pub(crate) async fn serve(
        &mut self,
        shutdown: &mut Shutdown,
    ) -> Result<(), WorkerError> {
        let readiness = self.slots.readiness_changes();
        loop {
            self.send_calls();
            let slot_news = self.slot_news();
            tokio::select! {
                biased;
                () = shutdown.stop_asked() => return Ok(()),
                answer = self.calls.next_answer() => {
                    // Check again: the request to stop may have arrived after the check
                    // at the head of the loop.
                    if poll_once(shutdown.stop_asked()).await.is_some() {
                        self.stop_claiming();
                        self.answered_late(answer);
                        return Ok(());
                    }
                    self.answered(answer)?;
                    self.let_handlers_start().await;
                }
                (job, ended) = self.slots.next_ended() => {
                    self.all_ended(job, ended);
                    self.let_another_call_go().await;
                }
                ready = readiness.next() => ready?,
                () = self.claiming.pause_over() => {}
                () = self.settling.backoff.pause_over() => {}
                () = self.prefetch.time_is_up() => self.give_back_waiting(),
                () = &mut self.next_call_check => self.time_out_calls()?,
                () = slot_news => {}
            }
        }
    }

    /// Lets a started handler run before the next claim. If it blocks its thread, another
    /// thread continues this loop.
    async fn let_handlers_start(&mut self) {
        if !self.slots.is_empty() && self.room().is_some() {
            yield_now().await;
        }
    }

    /// Yields before the next call, if two calls may be pending, so that the other one
    /// reaches the store first. The next call then also settles the jobs of handlers that
    /// end during the yield.
    async fn let_another_call_go(&mut self) {
        if self.is_shared() {
            yield_now().await;
            self.more_ended();
        }
    }

    /// Stops claiming. Jobs that a pending claim still returns are given back.
    pub(crate) fn stop_claiming(&mut self) {
        self.phase = ClaimPhase::Stopping;
        for job in self.slots.take_waiting() {
            self.ended(job, Ended::CutOff);
        }
    }

    /// Handles running jobs and pending calls until none is left. The caller limits the
    /// time.
    pub(crate) async fn drain(&mut self) {
        while self.is_busy() {
            self.send_calls();
            tokio::select! {
                biased;
                answer = self.calls.next_answer() => self.answered_late(answer),
                (job, ended) = self.slots.next_ended() => self.all_ended(job, ended),
                () = self.settling.backoff.pause_over() => {}
            }
        }
    }

    /// Stops at once. Settlements that are not confirmed are given up and logged.
    pub(crate) fn give_up(&mut self) {
        self.settling.give_up(self.calls.abandon());
    }

    /// Gives back a job whose handler did not start or did not end, without counting
    /// the attempt (R24).
    pub(crate) fn give_back(&mut self, job: JobContext) {
        self.settle(job, Disposition::GiveBack);
    }

    fn is_busy(&self) -> bool {
        !self.slots.is_empty() || !self.settling.is_empty() || self.calls.is_settling()
    }

    /// Sends the calls that may be sent now. The handler is ready for each job before its
    /// claim, so that no lease runs while its job waits.
    fn send_calls(&mut self) {
        if self.slots.are_pooled() {
            self.calls.notice_overdue(self.now());
        }
        self.slots.report_asked(self.calls.asked_in_time());
        if self.may_settle() {
            let room = self.room();
            if let Some(settle_call) =
                self.settling.next_settle_call(slots(self.share()))
            {
                let sent = self.now();
                let room = room.map(|room| room.min(self.share()));
                match room.and_then(|room| self.slots.make_ready(room)) {
                    Some(room) => {
                        self.slots.take(slots(room));
                        self.calls.settle_and_claim(settle_call, self.ask(room), sent);
                    }
                    None => self.calls.settle(settle_call, sent),
                }
            }
        }
        if let Some(room) = self.room().filter(|_| !self.calls.is_claiming()) {
            if let Some(room) = self.slots.make_ready(room) {
                self.slots.take(slots(room));
                let ask = self.ask(room).wait(self.claim_wait());
                self.calls.claim(ask, slots(room), self.now());
            }
        } else if self.slots.are_pooled() && self.may_claim() {
            self.call_without_a_slot();
        }
    }

    /// Whether to send the settlements now. While another call settles, a second call
    /// is worth sending only if it carries many settlements.
    fn may_settle(&self) -> bool {
        match self.calls.settling() {
            0 => true,
            1 if self.settling.backoff.is_failing() => false,
            1 => self.is_shared() && self.settling.fresh() >= slots(self.share()),
            _ => false,
        }
    }

    /// Whether two calls are pending at once, each for half of the slots.
    fn is_shared(&self) -> bool {
        self.slots.most_held() >= SHARED_FROM
    }

    /// The most jobs that one call settles, which is also the most that it claims.
    fn share(&self) -> NonZeroU32 {
        let max_jobs_per_call = self.calls.max_jobs_per_call();
        if !self.is_shared() {
            return max_jobs_per_call;
        }
        let half = u32::try_from(self.slots.most_held().div_ceil(2));
        let half = half.ok().and_then(NonZeroU32::new).unwrap_or(max_jobs_per_call);
        half.min(max_jobs_per_call)
    }

    fn ask(&self, room: NonZeroU32) -> ClaimRequest {
        ClaimRequest::new(self.worker.clone(), self.settings.lease).max(room)
    }

    fn answered(&mut self, answer: Answer) -> Result<(), WorkerError> {
        let Answer { settled, claimed, waited, reserved, sent } = answer;
        let settled = settled.map_or(Ok(()), |(settle_call, result)| {
            self.settling.answered(settle_call, result, self.settings.give_up_after)
        });
        let claimed = match claimed {
            Some(Ok(deliveries)) => {
                self.claimed(deliveries, reserved, sent);
                Ok(())
            }
            Some(Err(error)) => self.not_claimed(error),
            None => Ok(()),
        };
        let waited = waited.map_or(Ok(()), |waited| {
            self.is_idle = false;
            waited.or_else(|error| self.not_claimed(error))
        });
        settled.and(claimed).and(waited)
    }

    /// Handles a reply while the worker stops. A failed claim is not repeated then.
    fn answered_late(&mut self, answer: Answer) {
        if let Err(error) = self.answered(answer) {
            tracing::debug!(%error, "a call failed while stopping");
        }
    }

    fn time_out_calls(&mut self) -> Result<(), WorkerError> {
        let late = self.calls.time_out(self.now());
        let next = if self.calls.is_any_late() { LAST_CHECK } else { CALL_LIMIT / 2 };
        self.next_call_check = self.settings.environment.clock().sleep(next);
        late.into_iter().try_for_each(|answer| self.answered(answer))
    }

    fn claimed(&mut self, deliveries: Vec<Delivery>, reserved: usize, sent: Sent) {
        self.claiming.succeeded();
        if self.phase == ClaimPhase::Untried {
            self.phase = ClaimPhase::Working;
        }
        self.is_idle = deliveries.is_empty();
        let now = self.now();
        // The worker counts a lease from the time at which it sent the claim. The store
        // starts the lease later, so the worker never believes in a lease for too long.
        let sent_at = sent.at.lease_time;
        let held = |delivery: Delivery| {
            let until = sent_at.saturating_add(delivery.lease);
            JobContext::claimed(&self.claimed_from, delivery, until)
        };
        let (late, in_time): (Vec<_>, Vec<_>) = deliveries
            .into_iter()
            .map(held)
            .partition(|job| job.may_be_over(now.lease_time));
        let claimed = in_time.iter().chain(&late);
        let (claim_sent, replied) = (sent.at.steady_time, now.steady_time);
        self.settings.observers.claimed(claimed, claim_sent, replied);
        self.held.add(&in_time, sent_at);
        for (index, job) in in_time.into_iter().enumerate() {
            // If the claim took too long, other queues use its slots now.
            let is_slot_gone = index >= reserved && self.slots.are_pooled();
            // The store may return more jobs than the worker asked for. Jobs without a
            // free slot are given back.
            if self.phase == ClaimPhase::Stopping || !self.slots.have_place() {
                self.give_back(job);
            } else if is_slot_gone || self.slots.free() == 0 {
                self.slots.start_later(job, sent_at);
            } else {
                self.slots.start(job);
            }
        }
        self.time_waiting();
        self.not_started(late, sent, now);
    }

    fn not_claimed(&mut self, error: Error) -> Result<(), WorkerError> {
        self.settings.observers.call_failed(Operation::Claim, &error);
        let is_tried_again = match self.phase {
            ClaimPhase::Untried => error.retry_advice() != RetryAdvice::Never,
            ClaimPhase::Working => true,
            ClaimPhase::Stopping => false,
        };
        let limit = self.settings.give_up_after;
        if !is_tried_again || self.claiming.is_hopeless(&error, limit) {
            return Err(WorkerError::Claim(error));
        }
        self.claiming.failed(&error);
        Ok(())
    }

    fn now(&self) -> Moment {
        self.settings.lease_clock.now()
    }
}

#[cfg(test)]
pub(crate) mod tests;
