//! The calls to the store that a claim loop has sent and that have no reply yet.
//!
//! One call can both settle and claim. A claim that waits for a job carries no
//! settlements, so it never delays a settlement. The loop polls the futures of the
//! calls itself, so a reply wakes the loop directly, without a task in between.

use std::{
    future::{Future, poll_fn},
    num::NonZeroU32,
    pin::Pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use relq_core::{
    ClaimRequest, Delivery, Error, ReliableQueue,
    capabilities::Order,
    error::{ErrorContext, Operation},
    outcome::{Settled, SettledAndClaimed},
};

use crate::{claim_size::Sent, lease_clock::Moment, settling::SettleCall};

/// A call without a reply for this long counts as lost, or for the length of its leases if
/// that is longer. Backends end a silent call much sooner (R21). If a backend did not, a
/// worker without this limit would stall for ever, and its heartbeats would keep its jobs from
/// other workers (taskforcesh/bullmq#4479). A reply that keeps arriving is not silence, and the
/// worker cannot see that it does. The jobs of a claim can run as long as their leases.
pub(crate) const CALL_LIMIT: Duration = Duration::from_secs(60);

/// How long the loop still waits for a reply after a check has found that a call exceeds
/// [`CALL_LIMIT`]. Then it gives up the call. The reply may have arrived already, while
/// handlers kept every thread busy.
pub(crate) const LAST_CHECK: Duration = Duration::from_secs(1);

/// How long the slots of a claim stay reserved, if several queues share the slots. After
/// this time the other queues use them, and the claim's jobs wait for others. A store
/// that works replies much sooner.
pub(crate) const OVERDUE_AFTER: Duration = Duration::from_millis(500);

pub(crate) struct Calls {
    queue: Arc<dyn ReliableQueue>,
    under_way: Vec<Call>,
}

struct Call {
    reply: Pin<Box<dyn Future<Output = Reply> + Send>>,
    /// The settlements that the call carries. `None` if it only claims.
    settle_call: Option<SettleCall>,
    /// The most jobs that the call may return. `None` if it does not claim.
    asked: Option<NonZeroU32>,
    /// How many slots are kept for the jobs that the call returns.
    reserved: usize,
    sent: Sent,
    /// After how long without a reply the worker gives up the call.
    limit: Duration,
    /// Whether the call has no reply after [`OVERDUE_AFTER`]. Only a worker on several
    /// queues checks this.
    is_overdue: bool,
    /// Whether the last check found the call past its limit and without a reply.
    is_late: bool,
}

/// The reply to a call: the results of its settlements, of its claim and of its wait. A
/// result is `None` if the call did not ask for it.
#[derive(Default)]
struct Reply {
    settled: Option<Result<Vec<Settled>, Error>>,
    claimed: Option<Result<Vec<Delivery>, Error>>,
    waited: Option<Result<(), Error>>,
}

/// A reply, together with the settlements and the time of its call.
pub(crate) struct Answer {
    pub(crate) settled: Option<(SettleCall, Result<Vec<Settled>, Error>)>,
    pub(crate) claimed: Option<Result<Vec<Delivery>, Error>>,
    pub(crate) waited: Option<Result<(), Error>>,
    /// How many slots are kept for the claimed jobs.
    pub(crate) reserved: usize,
    /// When the call was sent, and how long its claim could wait for a job.
    pub(crate) sent: Sent,
}

impl Calls {
    pub(crate) fn new(queue: Arc<dyn ReliableQueue>) -> Self {
        Self { queue, under_way: Vec::with_capacity(3) }
    }

    pub(crate) fn queue(&self) -> Arc<dyn ReliableQueue> {
        Arc::clone(&self.queue)
    }

    pub(crate) fn max_jobs_per_call(&self) -> NonZeroU32 {
        self.queue.capabilities().limits.max_jobs_per_call
    }

    pub(crate) fn order(&self) -> Order {
        self.queue.capabilities().order
    }

    pub(crate) fn is_settling(&self) -> bool {
        self.settling() > 0
    }

    /// How many pending calls carry settlements.
    pub(crate) fn settling(&self) -> usize {
        self.under_way.iter().filter(|call| call.settle_call.is_some()).count()
    }

    pub(crate) fn is_claiming(&self) -> bool {
        self.under_way.iter().any(|call| call.asked.is_some())
    }

    /// Whether a pending claim may wait for a job to become ready.
    pub(crate) fn is_waiting(&self) -> bool {
        self.under_way.iter().any(Call::waits)
    }

    /// The most jobs that all pending claims together may return.
    pub(crate) fn asked(&self) -> usize {
        self.under_way.iter().filter_map(|call| call.asked).map(slots).sum()
    }

    /// The most jobs that the pending claims together may return for which the handler stays
    /// ready. A claim that is overdue gives up its part, as it gives up its slots.
    pub(crate) fn asked_in_time(&self) -> usize {
        let calls = self.under_way.iter().filter(|call| !call.is_overdue);
        calls.filter_map(|call| call.asked).map(slots).sum()
    }

    /// How many slots are kept for the jobs of all pending claims.
    pub(crate) fn reserved(&self) -> usize {
        self.under_way.iter().map(|call| call.reserved).sum()
    }

    /// Whether the store has left a call without a reply for [`OVERDUE_AFTER`].
    pub(crate) fn is_any_overdue(&self) -> bool {
        self.under_way.iter().any(|call| call.is_overdue)
    }

    /// When the next call is overdue, by the steady clock.
    pub(crate) fn next_overdue(&self) -> Option<Duration> {
        let calls = self.under_way.iter().filter(|call| call.can_be_overdue());
        calls.map(Call::overdue_at).min()
    }

    /// Gives up the slots of each call that is overdue by `now`.
    pub(crate) fn notice_overdue(&mut self, now: Moment) {
        for call in self.under_way.iter_mut().filter(|call| call.can_be_overdue()) {
            if call.overdue_at() <= now.steady_time {
                (call.is_overdue, call.reserved) = (true, 0);
            }
        }
    }

    /// How many settlements the pending calls carry.
    pub(crate) fn unsettled(&self) -> usize {
        let calls = self.under_way.iter().filter_map(|call| call.settle_call.as_ref());
        calls.map(SettleCall::len).sum()
    }

    pub(crate) fn settle_and_claim(
        &mut self,
        settle_call: SettleCall,
        ask: ClaimRequest,
        now: Moment,
    ) {
        let sent = Sent { at: now, wait: Duration::ZERO };
        let (asked, ask_max, limit) = (Some(ask.max), ask.max, limit_of(&ask));
        let (queue, settlements) = (Arc::clone(&self.queue), settle_call.settlements());
        let reply = Box::pin(async move {
            let SettledAndClaimed { settled, claimed } =
                queue.settle_and_claim(&settlements, &ask).await;
            Reply { settled: Some(settled), claimed: Some(claimed), waited: None }
        });
        self.under_way.push(Call {
            reply,
            settle_call: Some(settle_call),
            asked,
            reserved: slots(ask_max),
            sent,
            limit,
            is_overdue: false,
            is_late: false,
        });
    }

    pub(crate) fn settle(&mut self, settle_call: SettleCall, now: Moment) {
        let sent = Sent { at: now, wait: Duration::ZERO };
        let (queue, settlements) = (Arc::clone(&self.queue), settle_call.settlements());
        let reply = Box::pin(async move {
            let settled = queue.settle(&settlements).await;
            Reply { settled: Some(settled), ..Reply::default() }
        });
        self.under_way.push(Call {
            reply,
            settle_call: Some(settle_call),
            asked: None,
            reserved: 0,
            sent,
            limit: CALL_LIMIT,
            is_overdue: false,
            is_late: false,
        });
    }

    /// Sends a claim. The store may delay its reply up to `ask.wait` until a job is
    /// ready. `reserved` is the number of slots that are kept for its jobs.
    pub(crate) fn claim(&mut self, ask: ClaimRequest, reserved: usize, now: Moment) {
        let sent = Sent { at: now, wait: ask.wait };
        let (asked, limit) = (Some(ask.max), limit_of(&ask));
        let queue = Arc::clone(&self.queue);
        let reply = Box::pin(async move {
            let claimed = queue.claim(&ask).await;
            Reply { claimed: Some(claimed), ..Reply::default() }
        });
        self.under_way.push(Call {
            reply,
            settle_call: None,
            asked,
            reserved,
            sent,
            limit,
            is_overdue: false,
            is_late: false,
        });
    }

    /// Waits up to `limit` until a claim may find a job, and leases nothing.
    pub(crate) fn wait_for_jobs(&mut self, limit: Duration, now: Moment) {
        let queue = Arc::clone(&self.queue);
        let reply = Box::pin(async move {
            let waited = queue.wait_for_jobs(limit).await;
            Reply { waited: Some(waited), ..Reply::default() }
        });
        self.under_way.push(Call {
            reply,
            settle_call: None,
            asked: None,
            reserved: 0,
            sent: Sent { at: now, wait: limit },
            limit: CALL_LIMIT,
            is_overdue: false,
            is_late: false,
        });
    }

    /// Completes with the next reply; never completes when no call is pending.
    pub(crate) async fn next_answer(&mut self) -> Answer {
        poll_fn(|context| {
            for index in 0..self.under_way.len() {
                let polled = self.under_way[index].reply.as_mut().poll(context);
                if let Poll::Ready(reply) = polled {
                    return Poll::Ready(self.under_way.swap_remove(index).with(reply));
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Whether the next check will give up a call.
    pub(crate) fn is_any_late(&self) -> bool {
        self.under_way.iter().any(|call| call.is_late)
    }

    /// Gives up each call that has exceeded its limit both now and at the last
    /// check. Between the two checks the loop reads replies that arrived while handlers
    /// kept every thread busy.
    pub(crate) fn time_out(&mut self, now: Moment) -> Vec<Answer> {
        let at = |operation| ErrorContext {
            backend: self.queue.capabilities().backend,
            operation,
        };
        let lost = |operation, limit: Duration| Error::Interrupted {
            at: at(operation),
            source: format!("no answer within {limit:?}").into(),
        };
        let is_late = |call: &mut Call| {
            let was_late = call.is_late;
            call.is_late = call.sent.took(now) >= call.limit;
            was_late
        };
        self.under_way
            .extract_if(.., is_late)
            .map(|call| {
                let lost = |operation| lost(operation, call.limit);
                let settled =
                    call.settle_call.as_ref().map(|_| Err(lost(Operation::Settle)));
                let claimed = call.asked.map(|_| Err(lost(Operation::Claim)));
                let waited = call.only_waits().then(|| Err(lost(Operation::Claim)));
                call.with(Reply { settled, claimed, waited })
            })
            .collect()
    }

    /// Drops the claim that waits in the store for a ready job, if there is one. This
    /// loses no settlement, because such a claim carries none.
    pub(crate) fn drop_waiting_claim(&mut self) {
        self.under_way.retain(|call| !call.waits());
    }

    /// Drops all pending calls. Returns their settlements.
    ///
    /// Jobs that a dropped claim leased are given back when the worker is released.
    pub(crate) fn abandon(&mut self) -> impl Iterator<Item = SettleCall> {
        self.under_way.drain(..).filter_map(|call| call.settle_call)
    }
}

impl Call {
    fn waits(&self) -> bool {
        self.settle_call.is_none() && !self.sent.wait.is_zero()
    }

    fn only_waits(&self) -> bool {
        self.settle_call.is_none() && self.asked.is_none()
    }

    fn can_be_overdue(&self) -> bool {
        !self.is_overdue && !self.only_waits()
    }

    fn overdue_at(&self) -> Duration {
        self.sent.at.steady_time.saturating_add(OVERDUE_AFTER)
    }

    fn with(self, reply: Reply) -> Answer {
        Answer {
            settled: self.settle_call.zip(reply.settled),
            claimed: reply.claimed,
            waited: reply.waited,
            reserved: self.reserved,
            sent: self.sent,
        }
    }
}

fn limit_of(ask: &ClaimRequest) -> Duration {
    ask.lease.max(CALL_LIMIT)
}

pub(crate) fn slots(jobs: NonZeroU32) -> usize {
    usize::try_from(jobs.get()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use relq_core::{
        Disposition, JobId, QueueName, Receipt, WorkerId, environment::Environment,
        error::Effect,
    };
    use relq_memory::MemoryStore;

    use super::*;
    use crate::{JobContext, held::Held, observers::Observers, settling::Settling};

    fn ask(jobs: u32) -> ClaimRequest {
        let worker = WorkerId::new("worker").unwrap();
        let jobs = NonZeroU32::new(jobs).unwrap();
        ClaimRequest::new(worker, Duration::from_secs(30)).max(jobs)
    }

    fn calls() -> Calls {
        let name = QueueName::new("q").unwrap();
        let queue = MemoryStore::default().open(name, Environment::default());
        Calls::new(Arc::new(queue))
    }

    /// R21: a call without a reply is given up at the second check that finds it too old, with
    /// an error for each thing that it asked for. It may have taken effect.
    #[test]
    fn calls_without_a_reply_are_given_up_as_what_they_were() {
        let (mut calls, start) = (calls(), Moment::default());
        let limit = Moment::awake(CALL_LIMIT);
        calls.claim(ask(3), 3, start);
        calls.settle_and_claim(SettleCall::default(), ask(4), start);
        calls.settle(SettleCall::default(), start);
        calls.wait_for_jobs(CALL_LIMIT, start);
        calls.claim(ask(5), 5, Moment::awake(LAST_CHECK));

        let early = Moment::awake(CALL_LIMIT - Duration::from_millis(1));
        let early = calls.time_out(early);
        assert!(early.is_empty() && !calls.is_any_late(), "no call is too old");
        assert!(calls.time_out(limit).is_empty(), "the first check looks again");
        assert!(calls.is_any_late(), "the first check marks the calls");
        let given_up = calls.time_out(limit);

        let mut lost = Vec::new();
        for Answer { settled, claimed, waited, .. } in given_up {
            let settled = settled.map(|(_, result)| result.map(drop));
            let results = [settled, claimed.map(|result| result.map(drop)), waited];
            let errors = results.map(|result| result.map(Result::unwrap_err));
            lost.push(errors.map(|error| {
                error.map(|error| (error.at().operation, error.effect()))
            }));
        }
        let settle = Some((Operation::Settle, Effect::Maybe));
        let claim = Some((Operation::Claim, Effect::Maybe));
        let expected = [
            [None, claim, None],
            [settle, claim, None],
            [settle, None, None],
            [None, None, claim],
        ];
        assert_eq!(lost, expected, "the settlements, the claim and the wait");
        assert_eq!(calls.asked(), 5, "the call that was sent later");
    }

    /// R21: the reply to a claim may keep arriving for long, for example because of a large job
    /// and a slow link. It is awaited as long as its leases run.
    #[test]
    fn a_claim_of_long_leases_is_awaited_as_long() {
        let (mut calls, lease, mut long) = (calls(), 10 * CALL_LIMIT, ask(1));
        long.lease = lease;
        calls.claim(long.clone(), 1, Moment::default());
        calls.settle_and_claim(SettleCall::default(), long, Moment::default());
        let mut given_up_at = |at| {
            let at = Moment::awake(at);
            calls.time_out(at).len() + calls.time_out(at).len()
        };

        assert_eq!(given_up_at(lease - Duration::from_millis(1)), 0);
        assert_eq!(given_up_at(lease), 2);
    }

    /// The jobs of a pending claim count until the reply, so that no other claim asks for
    /// jobs for the same slots. Its slots are kept for them, and the handler stays ready for
    /// them, only until it is overdue.
    #[test]
    fn a_claim_keeps_its_slots_until_it_is_overdue() {
        let [first, second] = [1, 2].map(Duration::from_secs);
        let mut calls = calls();
        calls.claim(ask(3), 3, Moment::awake(first));
        calls.settle_and_claim(SettleCall::default(), ask(4), Moment::awake(second));
        calls.wait_for_jobs(CALL_LIMIT, Moment::default());
        assert_eq!((calls.asked(), calls.reserved()), (7, 7));
        assert!(calls.is_claiming() && !calls.is_any_overdue());
        let overdue = calls.next_overdue();
        assert_eq!(overdue, Some(first + OVERDUE_AFTER), "a wait keeps no slot");

        calls.notice_overdue(Moment::awake(first + OVERDUE_AFTER));

        assert_eq!((calls.asked(), calls.reserved()), (7, 4));
        assert_eq!(
            calls.asked_in_time(),
            4,
            "the handler stays ready for an overdue claim"
        );
        assert!(calls.is_claiming() && calls.is_any_overdue());
        assert_eq!(calls.next_overdue(), Some(second + OVERDUE_AFTER));
    }

    /// R18: a claim that is dropped because the machine was suspended, or because its clock
    /// was set forward, may have taken a job, whose attempt is then lost.
    #[test]
    fn a_suspend_makes_no_call_overdue_and_gives_up_none() {
        let mut calls = calls();
        calls.claim(ask(1), 1, Moment::default());
        let woken = Moment { lease_time: CALL_LIMIT, steady_time: OVERDUE_AFTER / 2 };

        calls.notice_overdue(woken);
        let given_up = [calls.time_out(woken), calls.time_out(woken)];

        assert_eq!(given_up.map(|answers| answers.len()), [0, 0], "calls given up");
        assert_eq!(calls.reserved(), 1, "the slot of the claim");
    }

    /// The settlements of so many jobs.
    fn settlements(jobs: usize) -> SettleCall {
        let held = Arc::new(Held::new(None, Duration::ZERO));
        let mut settling =
            Settling::new(held, Observers::default(), Environment::default());
        for _ in 0..jobs {
            let receipt = Receipt::new(JobId::new("job").unwrap(), 1, "token");
            let delivery = Delivery::new(receipt, "", Duration::from_secs(30));
            settling.add(JobContext::new(delivery), Disposition::Done);
        }
        settling.next_settle_call(jobs).unwrap()
    }

    /// R24: at shutdown, the worker drops the claim that waits at the store, because it would
    /// take the jobs that the worker gives back. It reads the replies to all other calls,
    /// which may settle jobs or return some.
    #[test]
    fn only_a_claim_that_waits_is_dropped() {
        let (mut calls, now) = (calls(), Moment::default());
        calls.claim(ask(1), 1, now);
        assert!(!calls.is_waiting(), "the claim does not wait");
        calls.settle(settlements(2), now);
        calls.settle_and_claim(settlements(3), ask(4), now);
        calls.claim(ask(8).wait(Duration::from_secs(5)), 8, now);
        assert!(calls.is_waiting(), "the last claim waits");

        calls.drop_waiting_claim();

        assert!(!calls.is_waiting(), "no claim waits any more");
        assert_eq!(calls.asked(), 1 + 4, "the jobs of the other claims");
        assert_eq!(calls.unsettled(), 2 + 3, "the settlements");
    }

    /// A pending claim keeps the worker from sending another one. A settlement does not.
    #[test]
    fn a_call_that_only_settles_claims_nothing() {
        let (mut calls, now) = (calls(), Moment::default());
        calls.settle(settlements(1), now);
        assert!(!calls.is_claiming(), "it only settles");

        calls.claim(ask(1), 1, now);

        assert!(calls.is_claiming(), "a claim is pending");
    }
}
