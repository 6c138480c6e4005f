//! The reports that the worker runs (R33). A report is a task of its own on the heartbeat
//! thread, so that a store that is slow to answer it delays no heartbeat. No lease and no
//! job depends on a report, and a worker never ends because of one.

use std::{sync::Arc, time::Duration};

use relq_core::{
    Error,
    capabilities::Capability,
    operator::{REPORT_INTERVAL, WorkerReport},
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::caller::Caller;

/// The reports of one worker on one queue.
pub(super) struct Reports {
    caller: Arc<Caller>,
    report: WorkerReport,
    /// When the next report is due. `None` while one is under way, and for a backend that
    /// lists no workers.
    next: Option<Duration>,
    /// When the last report was sent.
    sent: Duration,
    /// The report that is under way.
    call: JoinSet<Result<(), Error>>,
    /// The worker is about to be released: a later report would list it again.
    ended: CancellationToken,
    was_denied: bool,
}

impl Reports {
    /// The first report is due at `now`.
    pub(super) fn new(
        caller: Arc<Caller>,
        report: WorkerReport,
        now: Duration,
    ) -> Self {
        let can_list = caller.capabilities().supports(Capability::Inspect);
        let next = can_list.then_some(now);
        Self {
            caller,
            report,
            next,
            sent: now,
            call: JoinSet::new(),
            ended: CancellationToken::new(),
            was_denied: false,
        }
    }

    /// A token whose cancellation ends the reports.
    pub(super) fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }

    /// When the next report is due.
    pub(super) fn next(&self) -> Option<Duration> {
        self.next.filter(|_| !self.ended.is_cancelled())
    }

    /// Makes the next report due at `now`, because the worker may no longer be listed.
    pub(super) fn hurry(&mut self, now: Duration) {
        self.next = self.next.map(|next| next.min(now));
    }

    /// Sends a report if one is due.
    pub(super) fn send_if_due(&mut self, now: Duration) {
        if self.next().is_none_or(|next| next > now) {
            return;
        }
        (self.next, self.sent) = (None, now);
        let (caller, report) = (Arc::clone(&self.caller), self.report.clone());
        let ended = self.ended.clone();
        let reporting = async move {
            ended.run_until_cancelled(caller.report(&report)).await.unwrap_or(Ok(()))
        };
        self.call.spawn(reporting.in_current_span());
    }

    /// Waits for the end of the report that is under way. Returns `None` at once if there
    /// is none.
    pub(super) async fn answered(&mut self) -> Option<Result<(), Error>> {
        let answer = self.call.join_next().await?;
        Some(answer.unwrap_or_else(|panic| {
            tracing::error!(%panic, "a report of the worker panicked");
            Ok(())
        }))
    }

    /// Plans the next report after the answer to one. The interval counts from its start.
    pub(super) fn plan_next(&mut self, answer: &Result<(), Error>) {
        self.next = Some(self.sent.saturating_add(REPORT_INTERVAL));
        let Err(error) = answer else { return };
        let is_news = matches!(error, Error::Denied { .. }) && !self.was_denied;
        let error = error.full_message();
        if is_news {
            self.was_denied = true;
            tracing::warn!(error, "the worker is not listed: its reports are denied");
        } else {
            tracing::debug!(error, "a report of the worker failed");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use relq_core::{
        QueueName, WorkerId,
        environment::Environment,
        error::{ErrorContext, Operation},
        operator::InspectQueue as _,
    };
    use relq_memory::{MemoryQueue, MemoryStore};

    use super::*;
    use crate::lease_clock::LeaseClock;

    const START: Duration = Duration::from_secs(5);

    /// A queue, and the reports of a worker on it, whose first one is due at the start.
    fn reports() -> (MemoryQueue, Reports) {
        let (name, environment) =
            (QueueName::new("q").unwrap(), Environment::default());
        let queue = MemoryStore::default().open(name, environment.clone());
        let worker = WorkerId::new("w").unwrap();
        let report = WorkerReport::new(worker.clone(), NonZeroU32::MIN);
        let clock = LeaseClock::new(environment);
        let caller = Caller::new(Arc::new(queue.clone()), worker, clock);
        (queue, Reports::new(Arc::new(caller), report, START))
    }

    async fn listed(queue: &MemoryQueue) -> usize {
        queue.workers(None, NonZeroU32::MIN).await.unwrap().workers.len()
    }

    #[tokio::test]
    async fn a_report_is_sent_at_the_start_and_after_each_interval() {
        let (queue, mut reports) = reports();
        assert_eq!(reports.next(), Some(START), "the first report");

        reports.send_if_due(START);
        let answer = reports.answered().await.unwrap();
        reports.plan_next(&answer);

        assert_eq!(listed(&queue).await, 1, "the report is stored");
        let next = START + REPORT_INTERVAL;
        assert_eq!(reports.next(), Some(next), "the next report");
        reports.send_if_due(next - Duration::from_millis(1));
        assert!(reports.answered().await.is_none(), "it is not due");
    }

    #[tokio::test]
    async fn one_report_is_under_way_at_a_time() {
        let (_queue, mut reports) = reports();

        for seconds in [0, 30, 60] {
            reports.send_if_due(START + Duration::from_secs(seconds));
        }

        assert!(reports.answered().await.is_some());
        assert!(reports.answered().await.is_none(), "a second report was sent");
    }

    #[tokio::test]
    async fn a_failed_report_is_followed_by_the_next() {
        let (_queue, mut reports) = reports();
        reports.send_if_due(START);
        let at = ErrorContext { backend: "test", operation: Operation::ReportWorker };
        let denied = Error::Denied { at, source: "no".into() };

        reports.plan_next(&Err(denied));

        let next = Some(START + REPORT_INTERVAL);
        assert_eq!(reports.next(), next, "the report after a failed one");
    }

    #[tokio::test]
    async fn no_report_is_sent_after_the_end() {
        let (queue, mut reports) = reports();
        reports.ended().cancel();

        reports.send_if_due(START);

        assert_eq!(reports.next(), None, "no report is due");
        assert!(reports.answered().await.is_none(), "a report was sent");
        assert_eq!(listed(&queue).await, 0);
    }

    #[tokio::test]
    async fn a_report_under_way_is_dropped_at_the_end() {
        let (queue, mut reports) = reports();
        reports.send_if_due(START);

        reports.ended().cancel();

        assert!(reports.answered().await.is_some());
        assert_eq!(listed(&queue).await, 0, "the worker is listed again");
    }

    #[tokio::test]
    async fn a_suspend_makes_the_next_report_due() {
        let (_queue, mut reports) = reports();
        reports.plan_next(&Ok(()));
        let woken = START + Duration::from_secs(3);

        reports.hurry(woken);

        assert_eq!(reports.next(), Some(woken), "a report after a suspend");
    }
}
