//! Overrides of a backend's calls. Each has one bug that real queues have had.

use std::{
    num::NonZeroU32,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use relq_conformance::{
    async_trait,
    overrides::{Override, Right},
};
use relq_core::{
    error::Effect,
    operator::{JobState, PeekRequest, Redriven, Selection, StateDetail},
    outcome::{Extended, Pushed, Recovered, Released, Settled, SettledAndClaimed},
    *,
};

/// Reads the ready jobs and then claims as many, and returns the payloads that it has
/// read. In between, another client may have taken these jobs.
pub(crate) struct PeekThenMove;

#[async_trait]
impl Override for PeekThenMove {
    async fn claim(
        &self,
        right: &Right,
        ask: &ClaimRequest,
    ) -> Result<Vec<Delivery>, Error> {
        let seen = right.peek(&PeekRequest::new(JobState::Ready, ask.max)).await?.jobs;
        tokio::time::sleep(Duration::from_millis(5)).await;
        let mut taken = right.claim(ask).await?;
        for (one, seen) in taken.iter_mut().zip(seen) {
            one.payload = seen.payload;
        }
        Ok(taken)
    }
}

/// Claims jobs in one command and sets the end of their leases in a second, although a
/// claim must do both at once.
pub(crate) struct LeaseAfterwards;

#[async_trait]
impl Override for LeaseAfterwards {
    async fn claim(
        &self,
        right: &Right,
        ask: &ClaimRequest,
    ) -> Result<Vec<Delivery>, Error> {
        let taken = right.claim(ask).await?;
        let receipts: Vec<_> = taken.iter().map(|one| one.receipt.clone()).collect();
        right.extend(&ask.worker, &receipts, ask.lease).await?;
        Ok(taken)
    }
}

/// Settles in two calls, so that a client that dies in between has settled a part.
pub(crate) struct SettleTwice;

#[async_trait]
impl Override for SettleTwice {
    async fn settle(
        &self,
        right: &Right,
        done: &[Settlement],
    ) -> Result<Vec<Settled>, Error> {
        let first = right.settle(done).await?;
        let second = right.settle(done).await?;
        let either = |(one, other)| {
            if one == Settled::Applied { one } else { other }
        };
        Ok(first.into_iter().zip(second).map(either).collect())
    }
}

/// Settles the jobs of one call one by one.
pub(crate) struct SettleOneByOne;

#[async_trait]
impl Override for SettleOneByOne {
    async fn settle(
        &self,
        right: &Right,
        done: &[Settlement],
    ) -> Result<Vec<Settled>, Error> {
        let mut settled = Vec::new();
        for one in done.chunks(1) {
            settled.extend(right.settle(one).await?);
        }
        Ok(settled)
    }
}

/// Pushes again after a lost reply, without a token, so that the jobs may be stored
/// twice.
pub(crate) struct PushAgain;

#[async_trait]
impl Override for PushAgain {
    async fn push(
        &self,
        right: &Right,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        match right.push(jobs, token).await {
            Err(error) if error.effect() == Effect::Maybe => {
                right.push(jobs, token).await
            }
            answer => answer,
        }
    }
}

/// Pushes the jobs of one call one by one, and repeats a push that the server refused.
pub(crate) struct PushOneByOne;

#[async_trait]
impl Override for PushOneByOne {
    async fn push(
        &self,
        right: &Right,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        let mut pushed = Vec::new();
        for job in jobs.chunks(1) {
            let answer = match right.push(job, token).await {
                Err(refused) if refused.effect() == Effect::No => {
                    right.push(job, token).await
                }
                answer => answer,
            };
            match answer {
                Ok(answer) => pushed.extend(answer),
                Err(refused) if refused.effect() == Effect::No => {
                    take_back(right, &pushed).await?;
                    return Err(refused);
                }
                Err(lost) => return Err(lost),
            }
        }
        Ok(pushed)
    }
}

/// Cancels the jobs pushed so far, because a refused call must store nothing. If the
/// client dies in the middle of it, some of the jobs stay.
async fn take_back(right: &Right, pushed: &[Pushed]) -> Result<(), Error> {
    for one in pushed {
        right.cancel(one.job()).await?;
    }
    Ok(())
}

/// Reports a push as stored although the store was full.
pub(crate) struct DropWhenFull;

#[async_trait]
impl Override for DropWhenFull {
    async fn push(
        &self,
        right: &Right,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        match right.push(jobs, token).await {
            Err(Error::Full { .. }) => {
                Ok(jobs.iter().map(|_| stored_nowhere(right)).collect())
            }
            answer => answer,
        }
    }
}

fn stored_nowhere(right: &Right) -> Pushed {
    let id = right.environment.random().text(12);
    Pushed::Stored(JobId::new(id).expect("the id is valid"))
}

/// Reports that a push has not happened although its reply was lost.
pub(crate) struct SurelyNot;

#[async_trait]
impl Override for SurelyNot {
    async fn push(
        &self,
        right: &Right,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        right.push(jobs, token).await.map_err(|error| match error {
            Error::Interrupted { at, source } => Error::Unavailable { at, source },
            other => other,
        })
    }
}

/// Reports that a call has not happened although a part of it was done.
pub(crate) struct NothingInPart;

impl NothingInPart {
    fn say<T>(answer: Result<T, Error>) -> Result<T, Error> {
        answer.map_err(|error| match error {
            Error::Interrupted { at, source } if source.is::<Error>() => {
                Error::Unavailable { at, source }
            }
            other => other,
        })
    }
}

#[async_trait]
impl Override for NothingInPart {
    async fn settle(
        &self,
        right: &Right,
        done: &[Settlement],
    ) -> Result<Vec<Settled>, Error> {
        Self::say(right.settle(done).await)
    }

    async fn recover(
        &self,
        right: &Right,
        page: NonZeroU32,
    ) -> Result<Recovered, Error> {
        Self::say(right.recover(page).await)
    }

    async fn redrive(
        &self,
        right: &Right,
        which: &Selection,
    ) -> Result<Redriven, Error> {
        Self::say(right.redrive(which).await)
    }
}

/// Checks whether a job is leased, and then ends it. In between, another client may
/// have cancelled the job.
pub(crate) struct LookThenEnd;

#[async_trait]
impl Override for LookThenEnd {
    async fn settle(
        &self,
        right: &Right,
        done: &[Settlement],
    ) -> Result<Vec<Settled>, Error> {
        let most = NonZeroU32::new(1000).expect("not zero");
        let leased = right.peek(&PeekRequest::new(JobState::Leased, most)).await?.jobs;
        let is_leased = |one: &Settlement| {
            leased.iter().any(|job| job.id.as_ref() == Some(one.receipt.job()))
        };
        let seen: Vec<_> = done.iter().map(is_leased).collect();
        if seen.contains(&true) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let settled = right.settle(done).await?;
        let misreported =
            |(settled, is_seen)| if is_seen { Settled::Applied } else { settled };
        Ok(settled.into_iter().zip(seen).map(misreported).collect())
    }
}

/// Takes the unique key in one call, and pushes the job in a second.
pub(crate) struct KeyFirst;

#[async_trait]
impl Override for KeyFirst {
    async fn push(
        &self,
        right: &Right,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        let mut named = jobs.to_vec();
        for job in named.iter_mut().filter(|job| job.unique.is_some()) {
            job.id = job.id.take().or_else(|| JobId::new("unique-one").ok());
        }
        let unique: Vec<_> =
            named.iter().filter(|job| job.unique.is_some()).cloned().collect();
        right.push(&unique, None).await?;
        right.push(&named, token).await
    }
}

/// Removes due jobs from the schedule in one call, and pushes them in a second.
pub(crate) struct RemoveThenPush;

#[async_trait]
impl Override for RemoveThenPush {
    async fn recover(
        &self,
        right: &Right,
        page: NonZeroU32,
    ) -> Result<Recovered, Error> {
        let now = right.environment.clock().now();
        let ask = PeekRequest::new(JobState::Scheduled, page);
        for job in right.peek(&ask).await?.jobs {
            let is_due =
                matches!(job.detail, StateDetail::Scheduled { due } if due <= now);
            if let (true, Some(id)) = (is_due, &job.id) {
                right.cancel(id).await?;
                right.push(&[NewJob::new(job.payload)], None).await?;
            }
        }
        right.recover(page).await
    }
}

/// Computes lease ends from the client's clock instead of the server's.
#[derive(Default)]
pub(crate) struct OwnClock {
    /// How far the client's clock is ahead of the server's (ms).
    ahead_ms: Mutex<i64>,
}

impl OwnClock {
    fn by_own_clock(&self, lease: Duration) -> Duration {
        let ahead = *self.ahead_ms.lock().unwrap_or_else(PoisonError::into_inner);
        let by = Duration::from_millis(ahead.unsigned_abs());
        if ahead < 0 {
            lease.saturating_sub(by).max(Duration::from_millis(1))
        } else {
            lease + by
        }
    }
}

#[async_trait]
impl Override for OwnClock {
    async fn claim(
        &self,
        right: &Right,
        ask: &ClaimRequest,
    ) -> Result<Vec<Delivery>, Error> {
        let taken = right.claim(ask).await?;
        let leased = right.peek(&PeekRequest::new(JobState::Leased, ask.max)).await?;
        for job in leased.jobs {
            if let StateDetail::Leased { since, .. } = job.detail {
                let own = right.environment.clock().now().unix_ms();
                let ahead = own - since.unix_ms();
                *self.ahead_ms.lock().unwrap_or_else(PoisonError::into_inner) = ahead;
            }
        }
        let receipts: Vec<_> = taken.iter().map(|one| one.receipt.clone()).collect();
        right.extend(&ask.worker, &receipts, self.by_own_clock(ask.lease)).await?;
        Ok(taken)
    }

    async fn extend(
        &self,
        right: &Right,
        worker: &WorkerId,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Vec<Extended>, Error> {
        right.extend(worker, held, self.by_own_clock(lease)).await
    }
}

/// Reads the stats in every second claim, so that two runs of the same calls send
/// different commands.
#[derive(Default)]
pub(crate) struct NowAndThen {
    claims: AtomicU32,
}

#[async_trait]
impl Override for NowAndThen {
    async fn claim(
        &self,
        right: &Right,
        ask: &ClaimRequest,
    ) -> Result<Vec<Delivery>, Error> {
        if self.claims.fetch_add(1, Ordering::Relaxed) % 2 == 1 {
            right.stats().await?;
        }
        right.claim(ask).await
    }
}

/// Ignores every call of `pause` after the first two.
#[derive(Default)]
pub(crate) struct PausedForGood {
    pauses: AtomicU32,
}

#[async_trait]
impl Override for PausedForGood {
    async fn pause(&self, right: &Right) -> Result<(), Error> {
        if self.pauses.fetch_add(1, Ordering::Relaxed) < 2 {
            right.pause().await?;
        }
        Ok(())
    }
}

/// Claims before it settles in `settle_and_claim`, which must settle first.
pub(crate) struct ClaimsFirst;

#[async_trait]
impl Override for ClaimsFirst {
    async fn settle_and_claim(
        &self,
        right: &Right,
        done: &[Settlement],
        ask: &ClaimRequest,
    ) -> SettledAndClaimed {
        let at_once = ask.clone().wait(Duration::ZERO);
        let claimed = right.claim(&at_once).await;
        SettledAndClaimed { settled: right.settle(done).await, claimed }
    }
}

/// Acks discarded jobs in `settle_and_claim`, if it settles no others.
pub(crate) struct AcksDiscardsBesideAClaim;

#[async_trait]
impl Override for AcksDiscardsBesideAClaim {
    async fn settle_and_claim(
        &self,
        right: &Right,
        done: &[Settlement],
        ask: &ClaimRequest,
    ) -> SettledAndClaimed {
        let mut done = done.to_vec();
        if done.iter().all(|one| one.disposition == Disposition::Discard) {
            done.iter_mut().for_each(|one| one.disposition = Disposition::Done);
        }
        right.settle_and_claim(&done, ask).await
    }
}

/// Reports success when a worker is released, but gives back none of its jobs.
pub(crate) struct LeavesNothing;

#[async_trait]
impl Override for LeavesNothing {
    async fn release_worker(&self, _: &Right, _: &WorkerId) -> Result<Released, Error> {
        Ok(Released { jobs: 0 })
    }
}

/// Does not say when the next lease ends or the next job is due, while a job is scheduled.
pub(crate) struct HidesWhatComesNext;

#[async_trait]
impl Override for HidesWhatComesNext {
    async fn recover(
        &self,
        right: &Right,
        page: NonZeroU32,
    ) -> Result<Recovered, Error> {
        let mut recovered = right.recover(page).await?;
        if right.stats().await?.scheduled > 0 {
            recovered.next_in = None;
        }
        Ok(recovered)
    }
}
