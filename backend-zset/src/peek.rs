//! Reads jobs for an operator without changing them.

use futures_util::FutureExt;
use relq_core::{
    Error,
    environment::Timestamp,
    operator::{JobState, JobView, Page, PeekRequest, StateDetail},
};
use relq_redis::bookkeeping::{self, Look};

use crate::{lease::Lease, scripts::Store};

/// One of the places that hold ready or leased jobs. They are listed in the order in
/// which their jobs are served.
#[derive(Debug, Clone, Copy)]
enum Section {
    Urgent,
    Handed,
    Ready,
    Patient,
    Leased,
}

/// Ready jobs with this rank or a higher one are served after the jobs of normal
/// priority: see `pattern.lua`.
const NORMAL_RANKS: u64 = 4 << 44;

/// The sections with the jobs of a state. Scheduled and dead jobs have none, because
/// the bookkeeping stores them.
fn sections(state: JobState) -> &'static [Section] {
    match state {
        JobState::Ready => {
            &[Section::Urgent, Section::Handed, Section::Ready, Section::Patient]
        }
        JobState::Leased => &[Section::Leased],
        JobState::Scheduled | JobState::Dead => &[],
    }
}

pub(crate) async fn peek(store: &Store, ask: &PeekRequest) -> Result<Page, Error> {
    bookkeeping::page(sections(ask.state), ask, |section, look| {
        look_at(store, section, look).boxed()
    })
    .await
}

async fn look_at(
    store: &Store,
    section: Section,
    look: Look,
) -> Result<Vec<JobView>, Error> {
    let (keys, bookkeeping) = (&store.keys, &store.bookkeeping);
    match section {
        Section::Handed => bookkeeping.peek_list(&keys.handed, look).await,
        Section::Ready => bookkeeping.peek_list(&keys.ready, look).await,
        Section::Urgent | Section::Patient => ranked(store, section, look).await,
        Section::Leased => leased(store, look).await,
    }
}

/// Jobs of other priorities than the normal one. All urgent ones come before the patient
/// ones in the sorted set.
async fn ranked(
    store: &Store,
    section: Section,
    Look { offset, count }: Look,
) -> Result<Vec<JobView>, Error> {
    let (bookkeeping, set) = (&store.bookkeeping, &store.keys.ranked);
    let urgent = bookkeeping.count_below(set, NORMAL_RANKS).await?;
    let look = match section {
        Section::Patient => Look { offset: urgent.saturating_add(offset), count },
        _ => Look { offset, count: count.min(urgent.saturating_sub(offset)) },
    };
    let members = bookkeeping.members(set, look).await?;
    bookkeeping.views(members, |_, _| StateDetail::Ready).await
}

async fn leased(store: &Store, look: Look) -> Result<Vec<JobView>, Error> {
    let members = store.bookkeeping.members(&store.keys.leased, look).await?;
    let leases: Vec<_> = members.iter().map(|(lease, _)| lease.clone()).collect();
    let entries = store.bookkeeping.fields(&store.keys.held, &leases).await?;
    let element = |((lease, until), entry): ((_, Timestamp), Option<_>)| {
        let Lease { worker, since, .. } = Lease::parse(&lease)?;
        let detail = StateDetail::Leased { worker, since, until };
        Some((entry.unwrap_or_default(), detail))
    };
    let elements = members.into_iter().zip(entries).filter_map(element).collect();
    let mut jobs = store.bookkeeping.views_of(elements).await?;
    // The stored entry does not count the delivery under way: see `held_entry`.
    jobs.iter_mut().for_each(|job| job.attempt = job.attempt.saturating_add(1));
    Ok(jobs)
}
