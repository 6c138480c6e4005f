//! Overrides with a bug at the boundary between two pages or steps of one call.

use std::num::NonZeroU32;

use relq_conformance::{
    async_trait,
    overrides::{Override, Right},
};
use relq_core::{
    operator::{JobState, Page, PeekRequest, Redriven, Selection},
    outcome::{Extended, Pushed, Settled},
    *,
};
use std::time::Duration;

/// The size of a page. It equals the size of a step in the cases about pages.
const PAGE: NonZeroU32 = NonZeroU32::new(7).expect("not zero");

fn page() -> usize {
    PAGE.get() as usize
}

/// Returns the ids of the first dead jobs, at most `most` of them.
async fn dead(right: &Right, most: NonZeroU32) -> Result<Vec<JobId>, Error> {
    let ask = PeekRequest::new(JobState::Dead, most);
    let jobs = right.peek(&ask).await?.jobs;
    Ok(jobs.into_iter().filter_map(|job| job.id).collect())
}

/// A redrive that ends after the first page in which no job can be moved, although jobs
/// of later pages could be.
pub(crate) struct RedriveUntilStuck;

#[async_trait]
impl Override for RedriveUntilStuck {
    async fn redrive(
        &self,
        right: &Right,
        which: &Selection,
    ) -> Result<Redriven, Error> {
        if *which != Selection::All {
            return right.redrive(which).await;
        }
        let mut all = Redriven::default();
        loop {
            let ids = dead(right, PAGE).await?;
            let Redriven { moved, duplicates } =
                right.redrive(&Selection::Only(ids)).await?;
            all.moved += moved;
            if moved == 0 {
                return Ok(Redriven { duplicates, ..all });
            }
        }
    }
}

/// A purge of dead jobs that skips every second page: it continues at the position
/// after the page that it removed, although the later jobs moved up.
pub(crate) struct PurgeEveryOtherPage;

#[async_trait]
impl Override for PurgeEveryOtherPage {
    async fn purge_dead(&self, right: &Right, which: &Selection) -> Result<u64, Error> {
        if *which != Selection::All {
            return right.purge_dead(which).await;
        }
        let (mut removed, mut passed) = (0, 0);
        loop {
            let ids = dead(right, NonZeroU32::new(1000).unwrap()).await?;
            let ids: Vec<_> = ids.into_iter().skip(passed).take(page()).collect();
            if ids.is_empty() {
                return Ok(removed);
            }
            removed += right.purge_dead(&Selection::Only(ids)).await?;
            passed += page();
        }
    }
}

/// Settles in steps, and reports lost leases by their position in their step instead of
/// their position in the call.
pub(crate) struct PositionsOfAStep;

#[async_trait]
impl Override for PositionsOfAStep {
    async fn settle(
        &self,
        right: &Right,
        done: &[Settlement],
    ) -> Result<Vec<Settled>, Error> {
        let mut answers = vec![Settled::Applied; done.len()];
        for step in done.chunks(page()) {
            for (at, settled) in right.settle(step).await?.into_iter().enumerate() {
                if settled == Settled::LeaseLost {
                    answers[at] = settled;
                }
            }
        }
        Ok(answers)
    }
}

/// Gives jobs back in steps, the first step first, so that the jobs of the last step
/// come to the front of the queue.
pub(crate) struct LastStepFirst;

#[async_trait]
impl Override for LastStepFirst {
    async fn settle(
        &self,
        right: &Right,
        done: &[Settlement],
    ) -> Result<Vec<Settled>, Error> {
        let mut answers = Vec::new();
        for step in done.chunks(page()) {
            answers.extend(right.settle(step).await?);
        }
        Ok(answers)
    }
}

/// Leaves out the last job of each page that another page follows. The next page begins
/// after that job, so no page shows it.
pub(crate) struct PagesWithAGap;

#[async_trait]
impl Override for PagesWithAGap {
    async fn peek(&self, right: &Right, ask: &PeekRequest) -> Result<Page, Error> {
        let mut shown = right.peek(ask).await?;
        if ask.limit == PAGE && shown.next.is_some() {
            shown.jobs.pop();
        }
        Ok(shown)
    }
}

/// Fills each page with as many jobs as the request allows, however large they are.
pub(crate) struct FullPages;

#[async_trait]
impl Override for FullPages {
    async fn peek(&self, right: &Right, ask: &PeekRequest) -> Result<Page, Error> {
        let mut all = right.peek(ask).await?;
        while let Some(next) = all.next.take() {
            let mut ask = ask.clone().after(next.clone());
            let left = ask.limit.get() as usize - all.jobs.len();
            let Some(left) = u32::try_from(left).ok().and_then(NonZeroU32::new) else {
                all.next = Some(next);
                break;
            };
            ask.limit = left;
            let more = right.peek(&ask).await?;
            all.jobs.extend(more.jobs);
            all.next = more.next;
        }
        Ok(all)
    }
}

/// Extends only the leases of the first step, and reports all others as extended too.
pub(crate) struct FirstStepExtended;

#[async_trait]
impl Override for FirstStepExtended {
    async fn extend(
        &self,
        right: &Right,
        worker: &WorkerId,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Vec<Extended>, Error> {
        let first = &held[..held.len().min(page())];
        let mut answers = right.extend(worker, first, lease).await?;
        let until = answers.iter().copied().find(|it| matches!(it, Extended::Until(_)));
        answers.resize(held.len(), until.unwrap_or(Extended::LeaseLost));
        Ok(answers)
    }
}

/// A push by parts of 64 jobs that takes the contents of the jobs behind the first part
/// from the place before.
pub(crate) struct ContentsOnePlaceOff;

#[async_trait]
impl Override for ContentsOnePlaceOff {
    async fn push(
        &self,
        right: &Right,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        let mut jobs = jobs.to_vec();
        for at in (65..jobs.len()).rev() {
            jobs[at].payload = jobs[at - 1].payload.clone();
        }
        right.push(&jobs, token).await
    }
}

/// A push by parts of 16 jobs that answers for the jobs behind the first part in another
/// order.
pub(crate) struct AnswersTurnedRound;

#[async_trait]
impl Override for AnswersTurnedRound {
    async fn push(
        &self,
        right: &Right,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        let mut answers = right.push(jobs, token).await?;
        if let Some(later) = answers.get_mut(16..) {
            later.reverse();
        }
        Ok(answers)
    }
}

/// A claim by steps, each of which has the whole limit of bytes to itself.
pub(crate) struct BytesOfAStep;

#[async_trait]
impl Override for BytesOfAStep {
    async fn claim(
        &self,
        right: &Right,
        ask: &ClaimRequest,
    ) -> Result<Vec<Delivery>, Error> {
        let wanted = ask.max.get() as usize;
        let step = ask.clone().max(ask.max.min(PAGE));
        let mut deliveries = right.claim(&step).await?;
        while deliveries.len() + page() <= wanted {
            let more = right.claim(&step).await?;
            if more.is_empty() {
                break;
            }
            deliveries.extend(more);
        }
        Ok(deliveries)
    }
}
