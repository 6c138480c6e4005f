//! Results of handlers that are not yet settled in the store.
//!
//! Dispositions gather here while the last call is pending. A failed call keeps its
//! dispositions together and is repeated until it succeeds or the leases have expired.
//! A disposition is never dropped without a log line, and never turned into another
//! (sidekiq#4138). If a call fails again, its dispositions are sent one by one,
//! alternating with new ones. So a store that refuses retries, for example, still
//! accepts finished jobs.
//!
//! A queue of several parts ([`Order::ByPart`]) may take the settlements of some parts
//! while the store of another is down. New dispositions of such a queue do not wait for
//! the pause of a failed call, unless the last new call has failed, too.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use relq_core::{
    Disposition, Error, Settlement,
    capabilities::Order,
    environment::Environment,
    error::{Effect, Operation},
    outcome::Settled,
    results::MAX_RESULT,
};

use crate::{
    JobContext, WorkerError, backoff::Backoff, context::LeaseEnd, held::Held,
    observer::JobOutcome, observers::Observers,
};

/// The most bytes of results that one call carries, but for a single result. A larger call
/// would delay the settlements of small jobs, and the claim that goes with it.
const MAX_RESULTS_OF_CALL: usize = 4 * MAX_RESULT;

/// The settlements that one call carries, and the jobs that they settle.
#[derive(Default)]
pub(crate) struct SettleCall {
    settlements: Arc<Vec<Settlement>>,
    jobs: Vec<JobContext>,
    /// Whether an earlier call, which failed, may have applied the settlements.
    is_uncertain: bool,
    has_failed: bool,
}

pub(crate) struct Settling {
    fresh: SettleCall,
    failed: VecDeque<SettleCall>,
    /// Whether the next call carries new dispositions. Otherwise it carries those of a
    /// failed call; the two take turns.
    is_freshs_turn: bool,
    /// Whether the settlements of one call may go to several stores.
    has_parts: bool,
    /// Whether a call that was sent for the first time has failed, and no call has
    /// succeeded since.
    takes_none: bool,
    held: Arc<Held>,
    observers: Observers,
    pub(crate) backoff: Backoff,
}

impl Settling {
    pub(crate) fn new(
        held: Arc<Held>,
        observers: Observers,
        environment: Environment,
    ) -> Self {
        Self {
            fresh: SettleCall::default(),
            failed: VecDeque::new(),
            is_freshs_turn: false,
            has_parts: false,
            takes_none: false,
            held,
            observers,
            backoff: Backoff::new("settling", environment),
        }
    }

    /// Sets the order of the queue, which says whether it has several parts.
    pub(crate) fn of(self, order: Order) -> Self {
        Self { has_parts: order == Order::ByPart, ..self }
    }

    pub(crate) fn add(&mut self, job: JobContext, disposition: Disposition) {
        self.fresh.push(Settlement::new(job.receipt().clone(), disposition), job);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.failed.is_empty()
    }

    /// How many dispositions wait for a call.
    pub(crate) fn unsettled(&self) -> usize {
        let failed = self.failed.iter().map(|settle_call| settle_call.jobs.len());
        self.fresh() + failed.sum::<usize>()
    }

    /// How many dispositions wait that were not sent in any call yet.
    pub(crate) fn fresh(&self) -> usize {
        self.fresh.jobs.len()
    }

    /// The settlements for the next call. `None` if there are none, or during a pause
    /// after a failure.
    pub(crate) fn next_settle_call(&mut self, max: usize) -> Option<SettleCall> {
        let settle_call = self.waiting_settle_call(max)?;
        settle_call.jobs.iter().for_each(JobContext::settling);
        Some(settle_call)
    }

    /// Whether the store refuses settlements, as far as the last calls show. A queue of
    /// several parts refuses them only if it takes those of no part.
    pub(crate) fn refuses_all(&self) -> bool {
        if self.has_parts { self.takes_none } else { self.backoff.is_failing() }
    }

    /// Whether only the settlement of another job can show that some parts still take
    /// settlements. Failed settlements do not show this, because all of them may be of
    /// parts that are down.
    pub(crate) fn needs_probe(&self) -> bool {
        self.has_parts && self.takes_none
    }

    fn waiting_settle_call(&mut self, max: usize) -> Option<SettleCall> {
        let is_pausing = self.backoff.is_pausing();
        if is_pausing && self.refuses_all() {
            return None;
        }
        let is_freshs_turn = std::mem::replace(&mut self.is_freshs_turn, false);
        if !is_pausing && (!is_freshs_turn || self.fresh.is_empty()) {
            while let Some(settle_call) = self.failed.pop_front() {
                let settle_call = self.without_lost(settle_call);
                if !settle_call.is_empty() {
                    self.is_freshs_turn = true;
                    return Some(settle_call);
                }
            }
        }
        if self.fresh.is_empty() {
            // If no failed settlement is left, because their leases have ended, it is not
            // known any more whether the parts still refuse settlements.
            self.takes_none &= !self.failed.is_empty();
            return None;
        }
        let rest = self.fresh.split_off(self.fresh.fitting(max));
        Some(std::mem::replace(&mut self.fresh, rest))
    }

    pub(crate) fn answered(
        &mut self,
        settle_call: SettleCall,
        result: Result<Vec<Settled>, Error>,
        give_up_after: Duration,
    ) -> Result<(), WorkerError> {
        match result {
            Ok(settled) => self.settled(&settle_call, &settled),
            Err(error) => {
                self.observers.call_failed(Operation::Settle, &error);
                self.not_settled(settle_call, &error);
                // If the store refuses the content of a settlement, it is not repeated.
                let is_kept = !is_refused(&error);
                if is_kept && self.backoff.is_hopeless(&error, give_up_after) {
                    return Err(WorkerError::Store(error));
                }
            }
        }
        Ok(())
    }

    /// Gives up the settlements that are not confirmed, including those of abandoned
    /// calls. Logs each.
    pub(crate) fn give_up(&mut self, abandoned: impl Iterator<Item = SettleCall>) {
        let fresh = std::mem::take(&mut self.fresh);
        let failed = std::mem::take(&mut self.failed).into_iter();
        let abandoned = abandoned.map(|call| SettleCall { is_uncertain: true, ..call });
        for settle_call in failed.chain([fresh]).chain(abandoned) {
            for job in &settle_call.jobs {
                let why = "the worker ended before its settlement was confirmed";
                self.not_confirmed(job, settle_call.is_uncertain, why);
            }
        }
    }

    fn settled(&mut self, settle_call: &SettleCall, settled: &[Settled]) {
        self.takes_none = false;
        self.backoff.works_in_part();
        // The outage continues while settlements of a failed call wait for a
        // repetition.
        if self.failed.is_empty() {
            self.backoff.succeeded();
        }
        self.held.remove(&settle_call.jobs);
        let pairs = settle_call.jobs.iter().zip(&*settle_call.settlements).enumerate();
        for (index, (job, settlement)) in pairs {
            match settled.get(index) {
                Some(Settled::Applied) => {
                    let outcome = JobOutcome::of_settled(job, &settlement.disposition);
                    self.observers.ended(job, outcome);
                }
                Some(Settled::LeaseLost) => {
                    let why = "the store no longer knows its lease";
                    self.not_confirmed(job, settle_call.is_uncertain, why);
                }
                None => self.not_confirmed(job, true, "the store returned no result"),
            }
        }
    }

    fn not_settled(&mut self, mut settle_call: SettleCall, error: &Error) {
        settle_call.is_uncertain |= error.effect() != Effect::No;
        // While the store or its replicas are unavailable, it is useless to send the
        // settlements one by one: each would fail as the whole call did. Of several parts
        // only some may be unavailable.
        let is_away = !self.has_parts
            && matches!(
                error,
                Error::Unavailable { .. }
                    | Error::ReadOnly { .. }
                    | Error::NotReplicated { .. }
            );
        self.takes_none |= !settle_call.has_failed;
        let has_failed_again =
            std::mem::replace(&mut settle_call.has_failed, true) && !is_away;
        if settle_call.is_uncertain {
            settle_call.jobs.iter().for_each(JobContext::perhaps_settled);
        }
        settle_call.jobs.iter().for_each(JobContext::settling_failed);
        self.backoff.failed(error);
        let is_refused = is_refused(error);
        if settle_call.jobs.len() > 1 && (is_refused || has_failed_again) {
            // Send the settlements one by one, so that a refused one does not fail the
            // others.
            self.failed.extend(settle_call.into_singles());
        } else if !is_refused {
            self.failed.push_back(settle_call);
        } else {
            self.held.remove(&settle_call.jobs);
            for job in &settle_call.jobs {
                let why = "the store refuses its settlement";
                self.not_confirmed(job, settle_call.is_uncertain, why);
            }
        }
    }

    /// Removes jobs whose lease was lost while they waited for their settlement: the
    /// worker must not settle them (R7).
    fn without_lost(&self, settle_call: SettleCall) -> SettleCall {
        if settle_call.jobs.iter().all(|job| job.lease_end().is_none()) {
            return settle_call;
        }
        let SettleCall { is_uncertain, has_failed, .. } = settle_call;
        let mut kept = SettleCall { is_uncertain, has_failed, ..SettleCall::default() };
        for (job, settlement) in settle_call.into_pairs() {
            match job.lease_end() {
                None => kept.push(settlement, job),
                Some(LeaseEnd::Cancelled) => {
                    self.observers.ended(&job, JobOutcome::Cancelled);
                }
                Some(LeaseEnd::Lost) => {
                    let why = "its lease ended before its settlement was confirmed";
                    self.not_confirmed(&job, is_uncertain, why);
                }
            }
        }
        kept
    }

    /// Counts, tells and logs a job whose settlement the store has not confirmed.
    fn not_confirmed(&self, job: &JobContext, is_uncertain: bool, why: &str) {
        let (id, attempt) = (job.id(), job.attempt());
        if job.lease_end() == Some(LeaseEnd::Cancelled) {
            // A heartbeat has reported the job as cancelled, so it is not delivered
            // again.
            self.observers.ended(job, JobOutcome::Cancelled);
        } else if is_uncertain {
            // The store may have settled the job in a call whose reply never arrived, or
            // which too few replicas confirmed. If its lease is gone, that call may be the
            // reason.
            self.observers.ended(job, JobOutcome::Uncertain);
            tracing::warn!(
                %id,
                attempt,
                "the job is perhaps settled, by a call that was not confirmed: {why}"
            );
        } else {
            self.observers.ended(job, JobOutcome::Lost);
            tracing::warn!(%id, attempt, "the outcome of a job is lost: {why}");
        }
    }
}

impl SettleCall {
    pub(crate) fn len(&self) -> usize {
        self.jobs.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// The settlements of the call. They are shared with the call's future, because
    /// they are still needed here if that future is dropped.
    pub(crate) fn settlements(&self) -> Arc<Vec<Settlement>> {
        Arc::clone(&self.settlements)
    }

    /// How many of the settlements one call carries: at most `max`, and at least one.
    fn fitting(&self, max: usize) -> usize {
        let mut bytes = 0;
        let fitting = self.settlements.iter().take(max).take_while(|settlement| {
            bytes += result_bytes(settlement);
            bytes <= MAX_RESULTS_OF_CALL
        });
        fitting.count().max(1)
    }

    fn push(&mut self, settlement: Settlement, job: JobContext) {
        Arc::make_mut(&mut self.settlements).push(settlement);
        self.jobs.push(job);
    }

    fn split_off(&mut self, at: usize) -> Self {
        let at = at.min(self.jobs.len());
        Self {
            settlements: Arc::new(Arc::make_mut(&mut self.settlements).split_off(at)),
            jobs: self.jobs.split_off(at),
            is_uncertain: self.is_uncertain,
            has_failed: self.has_failed,
        }
    }

    fn into_pairs(self) -> impl Iterator<Item = (JobContext, Settlement)> {
        let settlements = Arc::unwrap_or_clone(self.settlements);
        self.jobs.into_iter().zip(settlements)
    }

    fn into_singles(self) -> impl Iterator<Item = Self> {
        let Self { is_uncertain, has_failed, .. } = self;
        self.into_pairs().map(move |(job, settlement)| Self {
            settlements: Arc::new(vec![settlement]),
            jobs: vec![job],
            is_uncertain,
            has_failed,
        })
    }
}

fn result_bytes(settlement: &Settlement) -> usize {
    match &settlement.disposition {
        Disposition::DoneWith { result } => result.len(),
        _ => 0,
    }
}

/// Whether the error is a refusal of the call's content, which no repetition can
/// change.
fn is_refused(error: &Error) -> bool {
    matches!(error, Error::Invalid { .. } | Error::Unsupported { .. })
}

#[cfg(test)]
mod tests {
    use relq_core::{
        Delivery, JobId, Receipt,
        error::{ErrorContext, Operation},
    };

    use super::*;

    fn job(name: &str) -> JobContext {
        let receipt = Receipt::new(JobId::new(name).unwrap(), 1, name.to_owned());
        let delivery = Delivery::new(receipt, "", Duration::from_secs(30));
        JobContext::held_until(delivery, Duration::MAX)
    }

    /// The reply to a settlement never arrives, but the store may have applied it. The
    /// worker counts such jobs as uncertain, and not as lost.
    #[test]
    fn a_job_whose_settlement_got_no_reply_is_uncertain() {
        let held = Arc::new(Held::new(None, Duration::ZERO));
        let observers = Observers::default();
        let mut settling =
            Settling::new(held, observers.clone(), Environment::default());
        let (sent, unsent) = (job("sent"), job("unsent"));
        settling.add(sent.clone(), Disposition::Done);
        let call = settling.next_settle_call(1).unwrap();
        settling.add(unsent.clone(), Disposition::Done);

        let at = ErrorContext { backend: "test", operation: Operation::Settle };
        let silence = Error::Interrupted { at, source: "no reply".into() };
        sent.end_lease(LeaseEnd::Lost);
        unsent.end_lease(LeaseEnd::Lost);
        settling.answered(call, Err(silence), Duration::ZERO).unwrap();
        settling.give_up(std::iter::empty());

        let summary = observers.progress.summary();
        assert_eq!((summary.uncertain, summary.lost, summary.done), (1, 1, 0));
    }

    /// A heartbeat reports a job as cancelled before its settlement is sent. The worker
    /// counts it as cancelled, and not as lost, because it is not delivered again.
    #[test]
    fn a_cancelled_job_that_waits_for_its_settlement_is_not_lost() {
        let held = Arc::new(Held::new(None, Duration::ZERO));
        let observers = Observers::default();
        let mut settling =
            Settling::new(held, observers.clone(), Environment::default());
        let (sent, unsent) = (job("sent"), job("unsent"));
        settling.add(sent.clone(), Disposition::Done);
        let call = settling.next_settle_call(1).unwrap();
        settling.add(unsent.clone(), Disposition::Done);

        sent.end_lease(LeaseEnd::Cancelled);
        unsent.end_lease(LeaseEnd::Cancelled);
        settling.answered(call, Ok(vec![Settled::LeaseLost]), Duration::ZERO).unwrap();
        settling.give_up(std::iter::empty());

        let summary = observers.progress.summary();
        assert_eq!((summary.cancelled, summary.lost, summary.uncertain), (2, 0, 0));
    }

    /// When the leases of the jobs have ended whose settlements failed, a worker on a queue
    /// of several parts claims as before.
    #[tokio::test]
    async fn nothing_is_known_of_the_parts_when_nothing_is_left_to_settle() {
        let held = Arc::new(Held::new(None, Duration::ZERO));
        let settling =
            Settling::new(held, Observers::default(), Environment::default());
        let mut settling = settling.of(Order::ByPart);
        let job = job("of a part that is down");
        settling.add(job.clone(), Disposition::Done);
        let call = settling.next_settle_call(1).unwrap();
        settling.answered(call, Err(unavailable()), Duration::MAX).unwrap();
        assert!(settling.needs_probe());

        job.end_lease(LeaseEnd::Lost);
        settling.backoff.pause_over().await;

        assert!(settling.next_settle_call(1).is_none());
        assert!(!settling.needs_probe());
    }

    /// Large results are sent in several calls.
    #[test]
    fn the_results_of_one_call_are_bounded() {
        let held = Arc::new(Held::new(None, Duration::ZERO));
        let mut settling =
            Settling::new(held, Observers::default(), Environment::default());
        for name in ["1", "2", "3", "4", "5", "6"] {
            let result = vec![0; MAX_RESULT].into();
            settling.add(job(name), Disposition::DoneWith { result });
        }
        settling.add(job("small"), Disposition::Done);

        let mut calls = || settling.next_settle_call(100).map(|call| call.len());
        assert_eq!([calls(), calls(), calls()], [Some(4), Some(3), None], "by size");
    }

    fn unavailable() -> Error {
        let at = ErrorContext { backend: "test", operation: Operation::Settle };
        Error::Unavailable { at, source: "away".into() }
    }

    fn of_parts() -> Settling {
        let held = Arc::new(Held::new(None, Duration::ZERO));
        Settling::new(held, Observers::default(), Environment::default())
            .of(Order::ByPart)
    }

    /// A part of the queue is down and its settlement waits for its repetition. Those of
    /// the other parts do not wait, until one of them fails.
    #[test]
    fn settlements_of_other_parts_do_not_wait_for_a_part_that_is_down() {
        let mut settling = of_parts();
        settling.add(job("fails"), Disposition::Done);
        settling.add(job("works"), Disposition::Done);
        let (fails, works) =
            (settling.next_settle_call(1), settling.next_settle_call(1));
        let limit = Duration::ZERO;
        settling.answered(fails.unwrap(), Err(unavailable()), limit).unwrap();
        assert!(settling.refuses_all() && settling.needs_probe());
        settling.answered(works.unwrap(), Ok(vec![Settled::Applied]), limit).unwrap();
        assert!(!settling.refuses_all() && settling.backoff.is_pausing());
        assert!(settling.next_settle_call(1).is_none());

        settling.add(job("new"), Disposition::Done);
        let new = settling.next_settle_call(1).unwrap();
        assert_eq!(new.jobs[0].id().as_str(), "new");
        settling.answered(new, Err(unavailable()), limit).unwrap();
        settling.add(job("waits"), Disposition::Done);

        assert!(settling.refuses_all());
        assert!(settling.next_settle_call(1).is_none());
    }

    /// A call for several parts fails because one of them is down. After its second failure
    /// its settlements are sent one by one, so that those of the other parts are confirmed.
    #[tokio::test]
    async fn the_settlements_of_other_parts_leave_the_call_that_fails() {
        let mut settling = of_parts();
        settling.add(job("1"), Disposition::Done);
        settling.add(job("2"), Disposition::Done);
        for length in [2, 2, 1] {
            let call = settling.next_settle_call(100).unwrap();
            assert_eq!(call.len(), length);
            settling.answered(call, Err(unavailable()), Duration::ZERO).unwrap();
            settling.backoff.pause_over().await;
        }
    }

    fn error(of: fn(ErrorContext) -> Error) -> Error {
        of(ErrorContext { backend: "test", operation: Operation::Settle })
    }

    /// R21: a worker gives up only if no settlement works. While one store of its queue denies
    /// them and another takes them, it goes on.
    #[tokio::test]
    async fn settlements_that_work_in_part_end_no_worker() {
        let denied = || error(|at| Error::Denied { at, source: "one store".into() });
        let (mut settling, limit) = (of_parts(), Duration::from_millis(1));
        settling.add(job("denied"), Disposition::Done);
        settling.add(job("works"), Disposition::Done);
        let (fails, works) =
            (settling.next_settle_call(1), settling.next_settle_call(1));
        settling.answered(fails.unwrap(), Err(denied()), limit).unwrap();
        settling.backoff.pause_over().await;
        settling.answered(works.unwrap(), Ok(vec![Settled::Applied]), limit).unwrap();

        let again = settling.next_settle_call(1).unwrap();
        let answered = settling.answered(again, Err(denied()), limit);

        answered.expect("the worker gives up, although a store takes settlements");
    }

    /// A call for several jobs gets no reply, so it may have settled each of them. None of them
    /// counts as lost, also not one whose lease ends before the call is repeated, and those
    /// whose settlements are then sent one by one.
    #[tokio::test]
    async fn a_job_stays_uncertain_when_it_leaves_its_call() {
        let observers = Observers::default();
        let held = Arc::new(Held::new(None, Duration::ZERO));
        let mut settling =
            Settling::new(held, observers.clone(), Environment::default());
        let ends = job("ends");
        for job in [job("1"), ends.clone(), job("2")] {
            settling.add(job, Disposition::Done);
        }
        let limit = Duration::ZERO;
        let call = settling.next_settle_call(100).unwrap();
        let silence = error(|at| Error::Interrupted { at, source: "no reply".into() });
        settling.answered(call, Err(silence), limit).unwrap();
        settling.backoff.pause_over().await;
        ends.end_lease(LeaseEnd::Lost);
        let both = settling.next_settle_call(100).unwrap();
        assert_eq!(both.len(), 2, "the jobs that are left");
        let refused = error(|at| Error::Invalid { at, reason: "one of them".into() });
        settling.answered(both, Err(refused), limit).unwrap();
        settling.backoff.pause_over().await;

        for _ in 0..2 {
            let single = settling.next_settle_call(100).unwrap();
            assert_eq!(single.len(), 1, "one by one");
            settling.answered(single, Ok(vec![Settled::LeaseLost]), limit).unwrap();
        }

        let summary = observers.progress.summary();
        assert_eq!((summary.uncertain, summary.lost), (3, 0), "uncertain and lost");
    }

    /// A heartbeat may report a job as lost because the pending call has settled it. So the
    /// job is marked until the call is known to have failed.
    #[test]
    fn a_job_is_marked_while_a_call_settles_it() {
        let held = Arc::new(Held::new(None, Duration::ZERO));
        let mut settling =
            Settling::new(held, Observers::default(), Environment::default());
        let job = job("settled");
        settling.add(job.clone(), Disposition::Done);

        let call = settling.next_settle_call(1).unwrap();

        assert!(job.is_settling());
        settling.answered(call, Err(unavailable()), Duration::ZERO).unwrap();
        assert!(!job.is_settling());
    }

    /// A settlement that the store never takes must not keep new ones from it, nor may new
    /// ones keep it waiting for ever.
    #[tokio::test]
    async fn failed_settlements_and_new_ones_take_turns() {
        let held = Arc::new(Held::new(None, Duration::ZERO));
        let mut settling =
            Settling::new(held, Observers::default(), Environment::default());
        settling.add(job("fails"), Disposition::Done);
        settling.add(job("new"), Disposition::Done);

        for expected in ["fails", "fails", "new"] {
            let call = settling.next_settle_call(1).unwrap();
            assert_eq!(call.jobs[0].id().as_str(), expected);
            settling.answered(call, Err(unavailable()), Duration::ZERO).unwrap();
            settling.backoff.pause_over().await;
        }
    }

    /// Of two pending calls, one fails and then the other succeeds. The success must
    /// not end the pause, after which the failed call is repeated.
    #[test]
    fn a_success_beside_a_failure_does_not_end_a_pause() {
        let held = Arc::new(Held::new(None, Duration::ZERO));
        let mut settling =
            Settling::new(held, Observers::default(), Environment::default());
        settling.add(job("fails"), Disposition::Done);
        settling.add(job("works"), Disposition::Done);
        let (fails, works) =
            (settling.next_settle_call(1), settling.next_settle_call(1));

        let limit = Duration::ZERO;
        settling.answered(fails.unwrap(), Err(unavailable()), limit).unwrap();
        settling.answered(works.unwrap(), Ok(vec![Settled::Applied]), limit).unwrap();

        assert!(settling.backoff.is_pausing());
        assert!(settling.next_settle_call(1).is_none());
    }

    /// A store that has failed is not asked again before its pause is over, also not with
    /// new settlements. When it has taken the failed ones, the outage is over.
    #[tokio::test]
    async fn new_settlements_wait_until_a_failed_call_is_repeated() {
        let held = Arc::new(Held::new(None, Duration::ZERO));
        let mut settling =
            Settling::new(held, Observers::default(), Environment::default());
        settling.add(job("fails"), Disposition::Done);
        let call = settling.next_settle_call(1).unwrap();
        settling.answered(call, Err(unavailable()), Duration::ZERO).unwrap();
        settling.add(job("new"), Disposition::Done);
        assert_eq!(settling.fresh(), 1);
        assert!(settling.next_settle_call(1).is_none(), "there is no pause");

        settling.backoff.pause_over().await;
        let again = settling.next_settle_call(1).unwrap();
        assert_eq!(again.jobs[0].id().as_str(), "fails");
        settling.answered(again, Ok(vec![Settled::Applied]), Duration::ZERO).unwrap();

        assert!(!settling.refuses_all(), "the outage goes on");
    }
}
