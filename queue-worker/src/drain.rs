//! How a worker shuts down (R24): handlers get the grace time and are then cut off,
//! their results are settled, and the other jobs are given back.

use std::{sync::Arc, time::Duration};

use futures_lite::future::or;
use relq_core::{
    ReliableQueue, WorkerId,
    environment::Environment,
    error::{Operation, RetryAdvice},
};

use tokio_util::sync::CancellationToken;

use crate::{
    JobContext, backoff::Backoff, claim_loop::ClaimLoop, observer::JobOutcome,
    observers::Observers, shutdown::Shutdown,
};

/// How long the worker waits for the end of handlers that it has cut off. A handler
/// that still runs after this time blocks its thread. The worker does not give back its
/// job, which becomes ready when the lease expires.
const CUT_OFF_LIMIT: Duration = Duration::from_secs(1);

/// After a hard stop, the last settlements may take this long, and the release of the
/// worker may take this long again.
const HARD_STOP_LIMIT: Duration = Duration::from_secs(1);

/// The time limit for the release of the worker. Jobs that are not given back by then
/// wait until their leases expire.
const RELEASE_LIMIT: Duration = Duration::from_secs(5);

pub(crate) struct Drain<'a> {
    pub(crate) shutdown: &'a mut Shutdown,
    /// Ends the reports that the worker runs. A report after the release would list the
    /// worker again (R33).
    pub(crate) reports_end: CancellationToken,
    pub(crate) environment: Environment,
    pub(crate) release: WorkerRelease,
}

/// Releases the worker: the store makes all its jobs ready again, even jobs of a claim
/// whose reply the worker never received.
pub(crate) struct WorkerRelease {
    pub(crate) queue: Arc<dyn ReliableQueue>,
    pub(crate) worker: WorkerId,
    pub(crate) environment: Environment,
    pub(crate) observers: Observers,
}

/// Whether a step of the shutdown ends early when a hard stop is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    UntilHalt,
    ToTheEnd,
}

impl Drain<'_> {
    pub(crate) async fn run(&mut self, claim_loop: &mut ClaimLoop) {
        let (grace, lease) = (claim_loop.settings.grace, claim_loop.settings.lease);
        claim_loop.stop_claiming();
        self.release.observers.progress.stopping();
        self.drain(claim_loop, grace, Patience::UntilHalt).await;
        // A claim that still waits at the store would take the jobs that the worker
        // gives back from here on.
        claim_loop.calls.drop_waiting_claim();
        if !claim_loop.slots.is_empty() {
            claim_loop.slots.cut_off();
            self.drain(claim_loop, CUT_OFF_LIMIT, Patience::ToTheEnd).await;
        }
        let stuck = claim_loop.slots.take_stuck();
        self.drain(claim_loop, lease, Patience::UntilHalt).await;
        if self.shutdown.is_halting() {
            self.drain(claim_loop, HARD_STOP_LIMIT, Patience::ToTheEnd).await;
        }
        claim_loop.give_up();
        self.reports_end.cancel();
        if stuck.is_empty() {
            return self.release_worker().await;
        }
        // If handlers still run, do not release the worker: another worker would run
        // their jobs at the same time.
        stuck.iter().for_each(|job| self.leave_behind(job));
    }

    /// Settles the results of handlers that end, and reads replies, until none is left
    /// or `limit` has passed.
    async fn drain(
        &mut self,
        claim_loop: &mut ClaimLoop,
        limit: Duration,
        patience: Patience,
    ) {
        tokio::select! {
            biased;
            () = claim_loop.drain() => {}
            () = self.environment.clock().sleep(limit) => {}
            () = self.shutdown.halt_asked(), if patience == Patience::UntilHalt => {}
        }
    }

    async fn release_worker(&mut self) {
        let Self { shutdown, environment, release, .. } = self;
        let clock = environment.clock();
        let hurried = async {
            shutdown.halt_asked().await;
            clock.sleep(HARD_STOP_LIMIT).await;
        };
        release.until(or(clock.sleep(RELEASE_LIMIT), hurried)).await;
    }

    fn leave_behind(&self, job: &JobContext) {
        let id = job.id();
        tracing::warn!(%id, "the handler cannot be stopped; its lease runs out");
        // The handler runs on, but this is the last event of its job.
        job.timing().ended_at(self.environment.clock().elapsed());
        self.release.observers.ended(job, JobOutcome::Lost);
    }
}

impl WorkerRelease {
    async fn until(&self, time_is_up: impl Future<Output = ()>) {
        tokio::select! {
            biased;
            () = self.try_until_it_works() => {}
            () = time_is_up => {
                tracing::warn!(
                    "could not release the worker; jobs that it holds wait for their \
                     leases"
                );
            }
        }
    }

    async fn try_until_it_works(&self) {
        let mut backoff =
            Backoff::new("releasing the worker", self.environment.clone());
        loop {
            let error = match self.queue.release_worker(&self.worker).await {
                Ok(released) => return self.observers.released(&released),
                Err(error) => error,
            };
            self.observers.call_failed(Operation::ReleaseWorker, &error);
            if error.retry_advice() == RetryAdvice::Never {
                let error = error.full_message();
                tracing::warn!(error, "cannot release the worker");
                return;
            }
            backoff.failed(&error);
            backoff.pause_over().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use relq_core::NewJob;

    use super::*;
    use crate::{
        claim_loop::tests::{claim_loop_of, job},
        settings::Settings,
        shutdown::Requests,
    };

    /// Shuts a claim loop down. Returns the token of its reports.
    async fn drain(claim_loop: &mut ClaimLoop) -> CancellationToken {
        let mut shutdown = Shutdown::listen(Requests::default()).unwrap();
        let reports_end = CancellationToken::new();
        let Settings { environment, observers, .. } = claim_loop.settings.clone();
        let release = WorkerRelease {
            queue: claim_loop.calls.queue(),
            worker: WorkerId::new("worker").unwrap(),
            environment: environment.clone(),
            observers,
        };
        let ended = reports_end.clone();
        let shutdown = &mut shutdown;
        Drain { shutdown, reports_end, environment, release }.run(claim_loop).await;
        ended
    }

    /// R33: a report after the release would list a worker that has ended.
    #[tokio::test]
    async fn the_reports_end_with_the_worker() {
        let mut claim_loop = claim_loop_of(Settings::default(), None);

        let reports_end = drain(&mut claim_loop).await;

        assert!(reports_end.is_cancelled(), "the worker is listed again");
    }

    /// R24: a worker that stops claims nothing more while its handlers run.
    #[tokio::test]
    async fn a_worker_claims_nothing_during_the_grace_time() {
        let grace = Duration::from_millis(20);
        let settings = Settings { grace, ..Settings::default() };
        let mut claim_loop = claim_loop_of(settings, None);
        claim_loop.slots.start(job("runs"));
        let queue = claim_loop.calls.queue();
        queue.push(&[NewJob::new("waits")], None).await.unwrap();

        drain(&mut claim_loop).await;

        let summary = claim_loop.settings.observers.progress.summary();
        assert_eq!(summary.given_back, 0, "a job was claimed, and given back");
    }
}
