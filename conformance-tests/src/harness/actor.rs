//! One client of a case's store, and its calls.

use std::{num::NonZeroU32, ops::Deref, sync::Arc, time::Duration};

use relq_core::{
    ClaimRequest, Delivery, Disposition, Error, JobId, NewJob, Queue, Settlement,
    Stats, WorkerId,
    capabilities::Limits,
    operator::{JobState, JobView, PeekRequest},
    outcome::{Extended, Pushed, Recovered, Settled},
};

use super::{
    call_log::CallLog,
    checks::listed,
    store_site::StoreSite,
    times::{BRIEF, HELD},
};
use crate::spec::class::Class;

/// A listing of more pages than this goes in circles.
const MOST_PAGES: u32 = 20_000;

/// One client of the store, with a connection and a worker id of its own.
#[derive(Clone)]
pub(crate) struct Actor {
    queue: Arc<dyn Queue>,
    worker: WorkerId,
    site: Arc<StoreSite>,
    calls: CallLog,
}

impl Deref for Actor {
    type Target = dyn Queue;

    fn deref(&self) -> &Self::Target {
        &*self.queue
    }
}

impl Actor {
    pub(super) fn new(
        queue: Arc<dyn Queue>,
        worker_id: &str,
        site: Arc<StoreSite>,
        calls: CallLog,
    ) -> Self {
        Self { queue, worker: worker(worker_id), site, calls }
    }

    /// Returns the actor's queue, on which a case can run a worker.
    pub(crate) fn queue(&self) -> Arc<dyn Queue> {
        Arc::clone(&self.queue)
    }

    pub(crate) fn worker(&self) -> &WorkerId {
        &self.worker
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.capabilities().limits
    }

    /// Returns what the backend promises by the capabilities that it declares, such as
    /// its order of delivery.
    pub(crate) fn class(&self) -> Class {
        Class::of(self.capabilities())
    }

    /// Returns an actor with the same connection and another worker id.
    pub(crate) fn acting_as(&self, name: &str) -> Self {
        Self { worker: worker(name), ..self.clone() }
    }

    /// Pushes jobs, all of which must be stored; returns their ids.
    pub(crate) async fn store<J: Into<NewJob>>(
        &self,
        jobs: impl IntoIterator<Item = J>,
    ) -> Vec<JobId> {
        let jobs: Vec<NewJob> = jobs.into_iter().map(Into::into).collect();
        let pushed = self.push(&jobs, None).await.expect("the push is taken");
        pushed.into_iter().map(stored).collect()
    }

    /// Pushes one job, which must be stored; returns its id.
    pub(crate) async fn store_one(&self, job: impl Into<NewJob>) -> JobId {
        self.store([job.into()]).await.remove(0)
    }

    /// Pushes one job. Returns whether it was stored or is a duplicate.
    pub(crate) async fn offer(&self, job: impl Into<NewJob>) -> Pushed {
        let pushed = self.push(&[job.into()], None).await;
        pushed.expect("the push is taken").remove(0)
    }

    /// Returns a request that claims up to `max` jobs without waiting, by a lease that
    /// outlives the case.
    pub(crate) fn ask(&self, max: u32) -> ClaimRequest {
        self.ask_by(max, HELD)
    }

    /// Returns a request that claims up to `max` jobs without waiting, by a lease of
    /// the length `lease`.
    pub(crate) fn ask_by(&self, max: u32, lease: Duration) -> ClaimRequest {
        let max = NonZeroU32::new(max).expect("a claim asks for one at least");
        ClaimRequest::new(self.worker.clone(), lease).max(max)
    }

    /// Claims up to `max` jobs by a lease that outlives the case.
    pub(crate) async fn take(&self, max: u32) -> Vec<Delivery> {
        self.take_all_round(self.ask(max)).await
    }

    /// Claims one job, which must be ready.
    pub(crate) async fn take_one(&self) -> Delivery {
        let mut taken = self.take(1).await;
        assert_eq!(taken.len(), 1, "R1: a claim gets a job: one job is ready");
        taken.remove(0)
    }

    /// Claims up to `max` jobs by a lease that the case lets expire.
    pub(crate) async fn take_briefly(&self, max: u32) -> Vec<Delivery> {
        self.take_all_round(self.ask_by(max, BRIEF)).await
    }

    /// Claims one job, which must be ready, by a lease that the case lets expire.
    pub(crate) async fn take_one_briefly(&self) -> Delivery {
        let mut taken = self.take_briefly(1).await;
        assert_eq!(taken.len(), 1, "R1: a claim gets a job: one job is ready");
        taken.remove(0)
    }

    /// Repeats the claim, without waiting, until it has as many jobs as requested. For
    /// most backends it stops after one claim, because that finds all ready jobs. For
    /// the others it repeats the claim as often as the class allows (R9).
    async fn take_all_round(&self, mut ask: ClaimRequest) -> Vec<Delivery> {
        let (wanted, class) = (ask.max.get() as usize, self.class());
        let mut taken = Vec::new();
        let mut in_vain = 0;
        loop {
            taken.extend(self.claim(&ask).await.expect("the claim is answered"));
            let rest = u32::try_from(wanted.saturating_sub(taken.len()));
            let Some(rest) = rest.ok().and_then(NonZeroU32::new) else { return taken };
            // For most backends one claim finds all ready jobs (`patience` is zero).
            if class.patience(u64::MAX) == 0
                || in_vain >= class.patience(self.figures().await.unfinished())
            {
                return taken;
            }
            ask = ask.max(rest);
            in_vain += 1;
        }
    }

    /// Claims up to `max` jobs and waits up to `wait` for the first. Advances the clock
    /// while it waits.
    #[track_caller]
    pub(crate) fn take_within(
        &self,
        max: u32,
        wait: Duration,
    ) -> impl Future<Output = Vec<Delivery>> {
        let limit = wait + self.site.response_limit();
        let taking = self.take_waiting(max, wait);
        let taking = self.site.within(limit, &self.calls, taking);
        async move { taking.await.0 }
    }

    /// Claims up to `max` jobs and waits up to `wait` for the first. It does not
    /// advance the clock: another task has to.
    pub(crate) async fn take_waiting(&self, max: u32, wait: Duration) -> Vec<Delivery> {
        self.claim(&self.ask(max).wait(wait)).await.expect("the claim is answered")
    }

    /// Settles one job with `disposition`. Returns whether the settlement was applied
    /// or the lease was lost.
    pub(crate) async fn say(&self, of: &Delivery, disposition: Disposition) -> Settled {
        let settlement = Settlement::new(of.receipt.clone(), disposition);
        let settled = self.settle(&[settlement]).await;
        settled.expect("the settlement is answered").remove(0)
    }

    /// Acks a job, and asserts that the ack is applied.
    pub(crate) async fn finish(&self, held: &Delivery) {
        let settled = self.say(held, Disposition::Done).await;
        let (job, attempt) = (held.job(), held.attempt());
        assert_eq!(
            settled,
            Settled::Applied,
            "R8: the holder's ack of job {job} on attempt {attempt}"
        );
    }

    /// Extends the lease of one job by a heartbeat that names no other job.
    pub(crate) async fn keep(
        &self,
        held: &Delivery,
        lease: Duration,
    ) -> Result<Extended, Error> {
        let named = std::slice::from_ref(&held.receipt);
        Ok(self.extend(&self.worker, named, lease).await?.remove(0))
    }

    /// Runs recoveries until there is nothing left to recover. Returns the sums of all
    /// their counts, and `next_in` of the last.
    pub(crate) async fn recover_all(&self) -> Recovered {
        let page = NonZeroU32::new(1000).expect("not zero");
        let mut sum = Recovered::default();
        loop {
            let one = self.recover(page).await.expect("the recovery is answered");
            sum.requeued += one.requeued;
            sum.buried += one.buried;
            sum.promoted += one.promoted;
            sum.next_in = one.next_in;
            if !one.more {
                return sum;
            }
        }
    }

    pub(crate) async fn figures(&self) -> Stats {
        self.stats().await.expect("the stats are answered")
    }

    /// Lists all jobs in a state. Each peek reads a page of at most `limit` jobs.
    pub(crate) async fn list(&self, state: JobState, limit: u32) -> Vec<JobView> {
        let limit = NonZeroU32::new(limit).expect("not zero");
        self.list_as(PeekRequest::new(state, limit)).await
    }

    /// Lists all jobs that a request asks for, page by page.
    pub(super) async fn list_as(&self, mut ask: PeekRequest) -> Vec<JobView> {
        let mut jobs = Vec::new();
        for pages in 0.. {
            assert!(pages < MOST_PAGES, "R23: the listing does not end");
            let page = self.peek(&ask).await.expect("the peek is answered");
            let most = ask.limit.get() as usize;
            let count = page.jobs.len();
            assert!(count <= most, "R23: a page of {most} jobs at most has {count}");
            jobs.extend(page.jobs);
            match page.next {
                Some(next) => ask = ask.after(next),
                None => break,
            }
        }
        jobs
    }

    /// Returns the dead job of the queue. Panics if there is not exactly one.
    pub(crate) async fn the_dead_one(&self) -> JobView {
        let mut dead = self.list(JobState::Dead, 10).await;
        assert_eq!(
            dead.len(),
            1,
            "R11: one job is dead, of these: {:?}",
            listed(&dead)
        );
        dead.remove(0)
    }

    /// Asserts that the audit has seen each job, and that each job is listed in the state in
    /// which the stats count it. Of very many jobs only the number is compared.
    pub(super) async fn assert_audit_counts(&self, audited: u64) {
        const MANY: u64 = 200;
        let stats = self.figures().await;
        let counted = stats.unfinished() + stats.dead;
        assert_eq!(audited, counted, "R23: the audit saw every job");
        if counted > MANY {
            return;
        }
        for (state, count) in [
            (JobState::Ready, stats.ready),
            (JobState::Scheduled, stats.scheduled),
            (JobState::Leased, stats.leased),
            (JobState::Dead, stats.dead),
        ] {
            let jobs = self.list(state, 100).await;
            assert_eq!(
                jobs.len() as u64,
                count,
                "R23: the number of {state:?} jobs: the listing has {:?}",
                listed(&jobs)
            );
        }
    }
}

fn worker(name: &str) -> WorkerId {
    WorkerId::new(name).expect("cases use valid worker ids")
}

fn stored(pushed: Pushed) -> JobId {
    match pushed {
        Pushed::Stored(id) => id,
        duplicate @ Pushed::Duplicate { .. } => panic!("not stored: {duplicate:?}"),
    }
}
