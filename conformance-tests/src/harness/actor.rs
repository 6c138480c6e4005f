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
    store_site::StoreSite,
    times::{BRIEF, HELD, WOKEN},
};
use crate::spec::class::Class;

/// One client of the store, with a connection and a worker id of its own.
#[derive(Clone)]
pub(crate) struct Actor {
    queue: Arc<dyn Queue>,
    worker: WorkerId,
    site: Arc<StoreSite>,
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
    ) -> Self {
        Self { queue, worker: worker(worker_id), site }
    }

    /// Its queue, for a worker.
    pub(crate) fn queue(&self) -> Arc<dyn Queue> {
        Arc::clone(&self.queue)
    }

    pub(crate) fn worker(&self) -> &WorkerId {
        &self.worker
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.capabilities().limits
    }

    /// The promises of the backend, by its classes.
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

    /// Pushes one job; returns the result.
    pub(crate) async fn offer(&self, job: impl Into<NewJob>) -> Pushed {
        let pushed = self.push(&[job.into()], None).await;
        pushed.expect("the push is taken").remove(0)
    }

    /// Requests `max` jobs by a lease that outlives the case, without waiting.
    pub(crate) fn ask(&self, max: u32) -> ClaimRequest {
        self.ask_by(max, HELD)
    }

    /// Requests `max` jobs by a lease of that length, without waiting.
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
        assert_eq!(taken.len(), 1, "one job is ready");
        taken.remove(0)
    }

    /// Claims up to `max` jobs by a lease that the case lets expire.
    pub(crate) async fn take_briefly(&self, max: u32) -> Vec<Delivery> {
        self.take_all_round(self.ask_by(max, BRIEF)).await
    }

    /// Claims one job, which must be ready, by a lease that the case lets expire.
    pub(crate) async fn take_one_briefly(&self) -> Delivery {
        let mut taken = self.take_briefly(1).await;
        assert_eq!(taken.len(), 1, "one job is ready");
        taken.remove(0)
    }

    /// Claims without waiting until it has as many jobs as requested, or none can be
    /// ready: after one empty claim, or after as many as the class allows (R9).
    async fn take_all_round(&self, mut ask: ClaimRequest) -> Vec<Delivery> {
        let (wanted, class) = (ask.max.get() as usize, self.class());
        let mut taken = Vec::new();
        let mut in_vain = 0;
        loop {
            taken.extend(self.claim(&ask).await.expect("the claim is answered"));
            let rest = u32::try_from(wanted.saturating_sub(taken.len()));
            let Some(rest) = rest.ok().and_then(NonZeroU32::new) else { return taken };
            // Most backends promise that one claim finds all ready jobs.
            if class.patience(u64::MAX) == 0
                || in_vain >= class.patience(self.figures().await.unfinished())
            {
                return taken;
            }
            ask = ask.max(rest);
            in_vain += 1;
        }
    }

    /// Claims up to `max` jobs and waits for them up to `wait`; time passes meanwhile.
    pub(crate) async fn take_within(&self, max: u32, wait: Duration) -> Vec<Delivery> {
        self.site.within(wait + WOKEN, self.take_waiting(max, wait)).await.0
    }

    /// Claims up to `max` jobs and waits for them up to `wait`. Another task may let
    /// time pass meanwhile.
    pub(crate) async fn take_waiting(&self, max: u32, wait: Duration) -> Vec<Delivery> {
        self.claim(&self.ask(max).wait(wait)).await.expect("the claim is answered")
    }

    /// Settles a job with `disposition`.
    pub(crate) async fn say(&self, of: &Delivery, disposition: Disposition) -> Settled {
        let settlement = Settlement::new(of.receipt.clone(), disposition);
        let settled = self.settle(&[settlement]).await;
        settled.expect("the settlement is answered").remove(0)
    }

    /// Settles a job that this worker holds as done.
    pub(crate) async fn finish(&self, held: &Delivery) {
        assert_eq!(self.say(held, Disposition::Done).await, Settled::Applied);
    }

    /// Extends the lease of one job, as a worker does that holds no other.
    pub(crate) async fn keep(
        &self,
        held: &Delivery,
        lease: Duration,
    ) -> Result<Extended, Error> {
        let named = std::slice::from_ref(&held.receipt);
        Ok(self.extend(&self.worker, named, lease).await?.remove(0))
    }

    /// Recovers until there is no more; returns the sums of all pages.
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

    /// All jobs in a state, page by page of at most `limit`.
    pub(crate) async fn list(&self, state: JobState, limit: u32) -> Vec<JobView> {
        let limit = NonZeroU32::new(limit).expect("not zero");
        let mut ask = PeekRequest::new(state, limit);
        let mut jobs = Vec::new();
        loop {
            let page = self.peek(&ask).await.expect("the peek is answered");
            assert!(page.jobs.len() <= limit.get() as usize, "a page keeps its limit");
            jobs.extend(page.jobs);
            match page.next {
                Some(next) => ask = ask.after(next),
                None => return jobs,
            }
        }
    }

    /// The only dead job.
    pub(crate) async fn the_dead_one(&self) -> JobView {
        let mut dead = self.list(JobState::Dead, 10).await;
        assert_eq!(dead.len(), 1, "one job is dead");
        dead.remove(0)
    }

    pub(super) async fn assert_audit_counts(&self, audited: u64) {
        let stats = self.figures().await;
        assert_eq!(audited, stats.unfinished() + stats.dead, "the audit saw every job");
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
