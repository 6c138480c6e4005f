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

use super::Caller;

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
        let can = caller.queue.capabilities();
        let next = can.supports(Capability::Inspect).then_some(now);
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
        self.call.spawn(async move {
            let call =
                async { caller.open_another().await?.report_worker(&report).await };
            ended.run_until_cancelled(call).await.unwrap_or(Ok(()))
        });
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
