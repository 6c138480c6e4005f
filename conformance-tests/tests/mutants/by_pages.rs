//! Overrides with a bug at the joint between two pages or steps of a call.

use std::num::NonZeroU32;

use relq_conformance::{
    async_trait,
    overrides::{Override, Right},
};
use relq_core::{
    operator::{JobState, Page, PeekRequest, Redriven, Selection},
    outcome::{Extended, Settled},
    *,
};
use std::time::Duration;

/// The size of a page: that of a step in the cases of joints.
const PAGE: NonZeroU32 = NonZeroU32::new(7).expect("not zero");

fn page() -> usize {
    PAGE.get() as usize
}

/// The ids of the dead jobs, from the first on.
async fn dead(right: &Right, most: NonZeroU32) -> Result<Vec<JobId>, Error> {
    let ask = PeekRequest::new(JobState::Dead, most);
    let jobs = right.peek(&ask).await?.jobs;
    Ok(jobs.into_iter().filter_map(|job| job.id).collect())
}

/// A redrive that ends at the first page of which no job can be moved.
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

/// A purge of dead jobs that goes on behind its first page, although the others moved
/// up when the page was removed.
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

/// Settles step by step, and reports lost leases by their position in the step.
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

/// Gives jobs back step by step from the first on, so that those of the last step are
/// at the front.
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

/// Shows pages without the job that is the first of the next page.
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

/// Extends the leases of the first step only, and reports the others as extended.
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
