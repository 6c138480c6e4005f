//! Reads jobs for an operator without changing them.

use bytes::Bytes;
use futures_util::FutureExt;
use relq_core::{
    Error, JobId,
    error::Operation,
    operator::{
        JobParts, JobState, JobView, Page, PeekOrder, PeekRequest, StateDetail,
    },
};
use relq_redis::bookkeeping::{
    SectionPart, SectionRequest, StoredJob, cannot_be_read, in_order, next_of, position,
};

use crate::{cancel, lease::Lease, scripts::Store};

/// One of the places that hold ready or leased jobs. They are listed in the order in
/// which their jobs are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Urgent,
    Handed,
    Ready,
    Patient,
    Leased,
}

/// Ready jobs with this rank or a higher one are served after the jobs of normal
/// priority: see `pattern.lua`, where it is four times 2^44.
const NORMAL_RANKS: f64 = 70_368_744_177_664.0;

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
    let sections = in_order(sections(ask.state));
    let read = |section, asked| read_section(store, section, asked).boxed();
    store.bookkeeping.list(&sections, ask, read).await
}

async fn read_section(
    store: &Store,
    section: Section,
    asked: SectionRequest,
) -> Result<SectionPart, Error> {
    let (keys, bookkeeping) = (&store.keys, &store.bookkeeping);
    match section {
        Section::Handed => bookkeeping.list_elements(&keys.handed, &asked).await,
        Section::Ready => bookkeeping.list_elements(&keys.ready, &asked).await,
        Section::Urgent | Section::Patient => ranked(store, section, asked).await,
        Section::Leased => leased(store, &asked).await,
    }
}

/// Jobs of other priorities than the normal one. All urgent ones come before the patient
/// ones in the sorted set.
async fn ranked(
    store: &Store,
    section: Section,
    mut asked: SectionRequest,
) -> Result<SectionPart, Error> {
    let (bookkeeping, set) = (&store.bookkeeping, &store.keys.ranked);
    let begins_inside = match section {
        Section::Patient => asked.order == PeekOrder::AsServed,
        _ => asked.order == PeekOrder::NewestFirst,
    };
    if begins_inside && asked.after.is_none() {
        asked.after = Some(position(NORMAL_RANKS.to_string().as_bytes(), b""));
    }
    let entries = Some(&*bookkeeping.keys.jobs);
    let mut found = bookkeeping.members_after(set, entries, &asked).await?;
    let next = next_of(&asked, &found);
    let all = found.len();
    found.retain(|job| {
        (job.member.number() < NORMAL_RANKS) == (section == Section::Urgent)
    });
    // If jobs of the other section were removed, this section ends here.
    let next = next.filter(|_| found.len() == all);
    let view = |job: &StoredJob| job.view(&job.member.name, |_| StateDetail::Ready);
    let jobs = found.iter().map(view).collect();
    Ok(SectionPart { jobs, next, other_bytes: 0 })
}

async fn leased(store: &Store, asked: &SectionRequest) -> Result<SectionPart, Error> {
    let (keys, bookkeeping) = (&store.keys, &store.bookkeeping);
    let entries = match asked.parts {
        JobParts::Whole => Some(&*keys.held),
        JobParts::Outline => None,
    };
    let found = bookkeeping.members_after(&keys.leased, entries, asked).await?;
    let leases = found.iter().filter_map(|job| {
        let Lease { worker, since, id, .. } = Lease::parse(&job.member.name)?;
        let until = job.member.time();
        Some((job, id, StateDetail::Leased { worker, since, until }))
    });
    let jobs = match asked.parts {
        JobParts::Whole => leases
            .map(|(job, id, detail)| counting_delivery(job.view(&id, |_| detail)))
            .collect(),
        JobParts::Outline => {
            let known = leases.map(|(_, id, detail)| (id, detail)).collect();
            bookkeeping.outlines(known).await?
        }
    };
    Ok(SectionPart { jobs, next: next_of(asked, &found), other_bytes: 0 })
}

/// The stored entry of a leased job does not count the delivery under way: see
/// `held_entry`.
fn counting_delivery(mut job: JobView) -> JobView {
    job.attempt = job.attempt.saturating_add(1);
    job
}

/// Reads the jobs of leases.
async fn whole(
    store: &Store,
    operation: Operation,
    leases: Vec<(Bytes, StateDetail)>,
) -> Result<Vec<JobView>, Error> {
    let (names, details): (Vec<_>, Vec<_>) = leases.into_iter().unzip();
    let entries =
        store.bookkeeping.fields_for(operation, &store.keys.held, &names).await?;
    let entries = entries.into_iter().map(Option::unwrap_or_default);
    let elements = entries.zip(details).collect();
    let jobs = store.bookkeeping.views_for(operation, elements).await?;
    Ok(jobs.into_iter().map(counting_delivery).collect())
}

/// Looks for a leased job by its id, among the names of the leases.
pub(crate) async fn leased_job(
    store: &Store,
    operation: Operation,
    job: &JobId,
) -> Result<Option<JobView>, Error> {
    let leases = cancel::leases_of(store, operation, job).await?;
    let leases = leases.into_iter().filter_map(|(name, until)| {
        let Lease { worker, since, .. } = Lease::parse(&name)?;
        Some((name, StateDetail::Leased { worker, since, until }))
    });
    let found = whole(store, operation, leases.collect()).await?;
    // The lease of a job that ended meanwhile has no entry, and one that another client
    // has damaged has no id.
    let is_it = |view: &JobView| match &view.id {
        Some(id) => id == job,
        None => !view.payload.is_empty(),
    };
    let mut found = found.into_iter().find(is_it);
    if let Some(view) = &mut found
        && view.id.is_none()
    {
        let why = || cannot_be_read("the mark is missing");
        view.unreadable.get_or_insert_with(why);
        view.id = Some(job.clone());
    }
    Ok(found)
}
