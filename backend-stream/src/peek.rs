//! Reads jobs for an operator without changing them.
//!
//! Ready jobs are read from the streams in the order of their ids, and leased ones are
//! skipped. Returned jobs were pushed before all jobs that were never delivered, so
//! this is also the order in which jobs are served.

use bytes::Bytes;
use futures_util::{FutureExt, future::try_join_all};
use relq_core::{
    Error, JobId,
    environment::Timestamp,
    error::Operation,
    operator::{JobParts, JobState, JobView, Page, PeekRequest, StateDetail},
};
use relq_redis::bookkeeping::{
    Member, SectionPart, SectionRequest, StoredJob, cannot_be_read, in_order, next_of,
};

use crate::{
    cancel,
    keys::Stream,
    lease::{Lease, Token},
    scripts::Store,
    streams::{Found, Range},
};

pub(crate) async fn peek(store: &Store, ask: &PeekRequest) -> Result<Page, Error> {
    if ask.state == JobState::Ready {
        let streams = store.ranked_streams(Operation::Peek).await?;
        let read = |stream, asked| ready(store, stream, asked).boxed();
        return store.bookkeeping.list(&streams, ask, read).await;
    }
    let read = |(), asked| leased(store, asked).boxed();
    store.bookkeeping.list(&in_order(&[()]), ask, read).await
}

/// Reads ready jobs of a stream. The next part begins behind the last entry that was
/// read.
async fn ready(
    store: &Store,
    stream: Stream,
    asked: SectionRequest,
) -> Result<SectionPart, Error> {
    let SectionRequest { after, count, order, .. } = asked;
    let after = after.unwrap_or_default();
    let range = Range { after: &after, order, count };
    let page = store.read_stream(Operation::Peek, &stream, range).await?;
    let last = page.entries.last().filter(|_| page.entries.len() >= count);
    let next = last.map(|last| last.id.clone());
    let (mut jobs, mut other_bytes) = (Vec::new(), 0);
    for found in &page.entries {
        let pending = page.pending.get(&found.id);
        if pending.is_some_and(|pending| pending.is_leased) {
            other_bytes += found.bytes();
            continue;
        }
        let deliveries = pending.map_or(0, |pending| pending.deliveries);
        jobs.push(Seen::new(
            Some(found),
            found.id.clone(),
            deliveries,
            StateDetail::Ready,
        ));
    }
    let jobs = views(store, Operation::Peek, jobs).await?;
    Ok(SectionPart { jobs, other_bytes, next })
}

async fn leased(store: &Store, asked: SectionRequest) -> Result<SectionPart, Error> {
    let found =
        store.bookkeeping.members_after(&store.keys.leased, None, &asked).await?;
    let jobs = match asked.parts {
        JobParts::Whole => whole(store, &found).await?,
        JobParts::Outline => {
            let known = found.iter().filter_map(|StoredJob { member, .. }| {
                let Lease { token, id } = Lease::parse(&member.name)?;
                let Token { worker, since, .. } = token;
                Some((id, StateDetail::Leased { worker, since, until: member.time() }))
            });
            store.bookkeeping.outlines(known.collect()).await?
        }
    };
    Ok(SectionPart { jobs, next: next_of(&asked, &found), other_bytes: 0 })
}

/// Looks for a leased job by its id, among the names of the leases.
pub(crate) async fn leased_job(
    store: &Store,
    operation: Operation,
    job: &JobId,
) -> Result<Option<JobView>, Error> {
    let leases = cancel::leases_of(store, operation, job).await?;
    let leases = leases
        .into_iter()
        .filter_map(|(name, until)| Lease::parse(&name).map(|lease| (lease, until)));
    for (lease, until) in leases {
        // The lease of a job that ended meanwhile has no entry.
        if let Some(found) = entry_of(store, operation, &lease).await? {
            let seen = vec![seen_of(lease, until, Some(&found))];
            return Ok(views(store, operation, seen).await?.into_iter().next());
        }
    }
    Ok(None)
}

/// Reads the jobs of leases.
async fn whole(store: &Store, leases: &[StoredJob]) -> Result<Vec<JobView>, Error> {
    let jobs = leases.iter().map(|lease| read_leased(store, &lease.member));
    let jobs = try_join_all(jobs).await?;
    views(store, Operation::Peek, jobs.into_iter().flatten().collect()).await
}

/// Reads the job of a lease. `None` if the job is not leased any longer.
async fn read_leased(store: &Store, member: &Member) -> Result<Option<Seen>, Error> {
    let Some(lease) = Lease::parse(&member.name) else { return Ok(None) };
    let found = entry_of(store, Operation::Peek, &lease).await?;
    // A job that has ended since the leases were read has no entry. If it is still leased,
    // another client has removed the entry.
    let leases = &store.keys.leased;
    if found.is_none() && !store.bookkeeping.has_member(leases, &member.name).await? {
        return Ok(None);
    }
    Ok(Some(seen_of(lease, member.time(), found.as_ref())))
}

async fn entry_of(
    store: &Store,
    operation: Operation,
    Lease { token, .. }: &Lease,
) -> Result<Option<Found>, Error> {
    store.read_entry(operation, &token.stream, &token.entry_id).await
}

fn seen_of(
    Lease { token, id }: Lease,
    until: Timestamp,
    found: Option<&Found>,
) -> Seen {
    let Token { worker, since, deliveries, .. } = token;
    let detail = StateDetail::Leased { worker, since, until };
    Seen::new(found, id, deliveries, detail)
}

/// A job as it is stored in a stream, with its delivery state.
struct Seen {
    entry: Bytes,
    /// Why no worker can run the job, if the bytes of its entry do not say so.
    unreadable: Option<&'static str>,
    /// The id to show if the entry was added by another client. An entry that relq added
    /// has it in its data.
    id: Bytes,
    /// How often this entry was delivered. Earlier attempts are stored in the entry.
    deliveries: u16,
    detail: StateDetail,
}

impl Seen {
    /// `found` is `None` if another client has deleted the entry. The reasons are those of
    /// the burial: see `claim.lua` and `pattern.lua`.
    fn new(
        found: Option<&Found>,
        id: Bytes,
        deliveries: u16,
        detail: StateDetail,
    ) -> Self {
        let unreadable = match found {
            None => Some("its entry was deleted from the stream"),
            Some(found) if found.lacks_payload() => {
                Some("its entry has no field \"job\"; the headers have its fields")
            }
            Some(_) => None,
        };
        let entry = found.map(Found::entry).unwrap_or_default();
        Self { entry, unreadable, id, deliveries, detail }
    }
}

async fn views(
    store: &Store,
    operation: Operation,
    seen: Vec<Seen>,
) -> Result<Vec<JobView>, Error> {
    let more: Vec<_> = seen
        .iter()
        .map(|one| (one.id.clone(), one.unreadable, u32::from(one.deliveries)))
        .collect();
    let entries = seen.into_iter().map(|one| (one.entry, one.detail)).collect();
    let mut jobs = store.bookkeeping.views_for(operation, entries).await?;
    for (job, (id, unreadable, deliveries)) in jobs.iter_mut().zip(more) {
        job.attempt = job.attempt.saturating_add(deliveries);
        if job.id.is_none() {
            let text = String::from_utf8(id.into()).ok();
            job.id = text.and_then(|text| JobId::new(text).ok());
        }
        if let Some(why) = unreadable {
            job.unreadable = Some(cannot_be_read(why));
        }
    }
    Ok(jobs)
}
