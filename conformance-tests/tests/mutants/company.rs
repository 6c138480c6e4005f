//! Overrides with a bug that shows only when several calls run at the same moment.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use relq_conformance::{
    async_trait,
    overrides::{Override, Right},
};
use relq_core::{
    environment::Timestamp,
    limits::MAX_JOBS_PER_CALL,
    outcome::{Extended, Pushed, Settled},
    *,
};
use tokio::task::yield_now;

/// Counts the calls on a connection that have begun and not ended.
#[derive(Default)]
struct Running(AtomicUsize);

struct Call<'a>(&'a Running);

impl Running {
    /// Begins a call, and yields so that other calls at the same moment begin too.
    /// Returns the call, and how many calls were already running.
    async fn begin(&self) -> (Call<'_>, usize) {
        let number = self.0.fetch_add(1, Ordering::SeqCst);
        let call = Call(self);
        for _ in 0..3 {
            yield_now().await;
        }
        (call, number)
    }

    fn is_company(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 1
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Exchanges the results of calls that run at the same moment: each result goes to the
/// next caller instead of its own.
#[derive(Default)]
struct Shifted<T>(Mutex<VecDeque<T>>);

impl<T: Clone> Shifted<T> {
    /// Stores this call's result, and returns the result of the call before it. Returns
    /// the call's own result if no other call runs at the same moment.
    fn pass_on(&self, own: T, running: &Running) -> T {
        let mut others = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let got = others.pop_front().unwrap_or_else(|| own.clone());
        if running.is_company() {
            others.push_back(own);
        } else {
            others.clear();
        }
        got
    }
}

/// Returns the ids of the jobs that one caller has pushed to another caller.
#[derive(Default)]
pub(crate) struct PushesMixedUp(Running, Shifted<Vec<Pushed>>);

#[async_trait]
impl Override for PushesMixedUp {
    async fn push(
        &self,
        right: &Right,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        let _call = self.0.begin().await;
        let own = right.push(jobs, token).await?;
        Ok(self.1.pass_on(own, &self.0))
    }
}

/// Returns the result of one caller's settlement to another caller.
#[derive(Default)]
pub(crate) struct SettlementsMixedUp(Running, Shifted<Vec<Settled>>);

#[async_trait]
impl Override for SettlementsMixedUp {
    async fn settle(
        &self,
        right: &Right,
        done: &[Settlement],
    ) -> Result<Vec<Settled>, Error> {
        let _call = self.0.begin().await;
        let own = right.settle(done).await?;
        Ok(self.1.pass_on(own, &self.0))
    }
}

/// Refuses a valid push that runs at the same moment as an invalid one.
#[derive(Default)]
pub(crate) struct RefusedTogether(Running, Mutex<bool>);

impl RefusedTogether {
    fn is_refused(&self) -> std::sync::MutexGuard<'_, bool> {
        self.1.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Override for RefusedTogether {
    async fn push(
        &self,
        right: &Right,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        let most = MAX_JOBS_PER_CALL.get() as usize;
        *self.is_refused() |= jobs.len() > most;
        let _call = self.0.begin().await;
        if *self.is_refused() {
            return right.push(&vec![NewJob::new("too many"); most + 1], token).await;
        }
        right.push(jobs, token).await
    }
}

/// Several callers share a command whose reply is lost. Only the first learns that the
/// command may have run; the others are told that nothing happened.
#[derive(Default)]
pub(crate) struct LostForTheFirst(Running);

#[async_trait]
impl Override for LostForTheFirst {
    async fn push(
        &self,
        right: &Right,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        let (_call, number) = self.0.begin().await;
        right.push(jobs, token).await.map_err(|error| match error {
            Error::Interrupted { at, source } if number > 0 => {
                Error::Unavailable { at, source }
            }
            other => other,
        })
    }
}

/// Carries out only one of several heartbeats at the same moment, and reports success
/// to every caller.
#[derive(Default)]
pub(crate) struct OneHeartbeat(Running);

#[async_trait]
impl Override for OneHeartbeat {
    async fn extend(
        &self,
        right: &Right,
        worker: &WorkerId,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Vec<Extended>, Error> {
        let (_call, number) = self.0.begin().await;
        if number == 0 {
            return right.extend(worker, held, lease).await;
        }
        let until = Timestamp::from_unix_ms(i64::MAX);
        Ok(vec![Extended::Until(until); held.len()])
    }
}

/// Delivers the same jobs to all workers that claim at the same moment.
#[derive(Default)]
pub(crate) struct SameJobs(Running, Shifted<Vec<Delivery>>);

#[async_trait]
impl Override for SameJobs {
    async fn claim(
        &self,
        right: &Right,
        ask: &ClaimRequest,
    ) -> Result<Vec<Delivery>, Error> {
        if !ask.wait.is_zero() {
            return right.claim(ask).await;
        }
        let _call = self.0.begin().await;
        let own = right.claim(ask).await?;
        if let Some(others) = self.1.pass_on(own.clone(), &self.0).first() {
            return Ok(vec![others.clone()]);
        }
        Ok(own)
    }
}

/// Reports that all settlements of a call may have happened, although the server
/// refused the call.
pub(crate) struct AllMaybe;

#[async_trait]
impl Override for AllMaybe {
    async fn settle(
        &self,
        right: &Right,
        done: &[Settlement],
    ) -> Result<Vec<Settled>, Error> {
        right.settle(done).await.map_err(|error| match error {
            Error::Unavailable { at, source } => Error::Interrupted { at, source },
            other => other,
        })
    }
}

/// Reports a release that the server refused as if the worker had had no jobs to give
/// back.
pub(crate) struct NothingToRelease;

#[async_trait]
impl Override for NothingToRelease {
    async fn release_worker(
        &self,
        right: &Right,
        worker: &WorkerId,
    ) -> Result<outcome::Released, Error> {
        Ok(right.release_worker(worker).await.unwrap_or(outcome::Released { jobs: 0 }))
    }
}

/// Reports a missing permission as an outage, as if a retry could succeed.
pub(crate) struct DeniedForNow;

#[async_trait]
impl Override for DeniedForNow {
    async fn claim(
        &self,
        right: &Right,
        ask: &ClaimRequest,
    ) -> Result<Vec<Delivery>, Error> {
        right.claim(ask).await.map_err(|error| match error {
            Error::Denied { at, source } => Error::Unavailable { at, source },
            other => other,
        })
    }
}

/// Stores each job without one of its options, which the function removes.
pub(crate) struct Forgetful(pub(crate) fn(NewJob) -> NewJob);

#[async_trait]
impl Override for Forgetful {
    async fn push(
        &self,
        right: &Right,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        let jobs: Vec<_> = jobs.iter().cloned().map(self.0).collect();
        right.push(&jobs, token).await
    }
}
