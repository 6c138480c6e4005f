//! Reads jobs for an operator without changing them.
//!
//! Ready jobs are read from the streams in the order of their ids, and leased ones are
//! skipped. Returned jobs were pushed before all jobs that were never delivered, so
//! this is also the order in which jobs are served.

use bytes::Bytes;
use futures_util::{FutureExt, future::try_join_all};
use relq_core::{
    Error, Headers, JobId,
    environment::Timestamp,
    error::Operation,
    limits::DEFAULT_MAX_ATTEMPTS,
    operator::{JobState, JobView, Page, PageCursor, PeekRequest, StateDetail},
};
use relq_redis::bookkeeping::{self, Look, PageSize, REPLY_BYTES};

use crate::{keys::Stream, lease::Lease, scripts::Store, streams::Found};

/// The maximum number of jobs on one page. A request cannot raise it, because the page
/// also reads the payloads.
const MAX_PAGE: usize = 1000;

pub(crate) async fn peek(store: &Store, ask: &PeekRequest) -> Result<Page, Error> {
    if ask.state == JobState::Ready {
        return peek_ready(store, ask).await;
    }
    bookkeeping::page(&[()], ask, |(), look| leased(store, look).boxed()).await
}

/// Reads one page of ready jobs. The cursor names the last entry that was read. The
/// page ends early after the job with which its bytes reach [`REPLY_BYTES`].
async fn peek_ready(store: &Store, ask: &PeekRequest) -> Result<Page, Error> {
    let limit = usize::try_from(ask.limit.get()).unwrap_or(MAX_PAGE).min(MAX_PAGE);
    let (first, mut after) = read_cursor(ask.after.as_ref());
    let (mut jobs, mut size, mut bytes) = (Vec::new(), PageSize::of_payloads(), 0);
    let streams = store.streams(Operation::Peek).await?;
    for stream in streams.iter().skip_while(|stream| **stream != first) {
        loop {
            let most = size.count();
            let page = store.read_stream(Operation::Peek, stream, &after, most).await?;
            let is_last = page.entries.len() < most;
            size.adapt(page.bytes());
            for found in &page.entries {
                if jobs.len() == limit || bytes >= REPLY_BYTES {
                    let next = Some(cursor(stream, &after));
                    return Ok(Page { jobs: views(store, jobs).await?, next });
                }
                after = found.id.clone();
                let pending = page.pending.get(&found.id);
                if pending.is_none_or(|pending| !pending.is_leased) {
                    let deliveries = pending.map_or(0, |pending| pending.deliveries);
                    let (id, detail) = (found.id.clone(), StateDetail::Ready);
                    let (element, headers) = (found.element(), found.headers());
                    bytes += found.bytes();
                    jobs.push(Seen { element, headers, id, deliveries, detail });
                }
            }
            if is_last {
                break;
            }
        }
        after = Bytes::new();
    }
    Ok(Page { jobs: views(store, jobs).await?, next: None })
}

/// Returns the cursor of the next page, which starts after the entry `after` of a
/// stream. If that stream's batch completes before the next request, the next page is
/// empty.
fn cursor(stream: &Stream, after: &Bytes) -> PageCursor {
    PageCursor([stream.word().as_bytes(), b"/", after].concat().into())
}

fn read_cursor(cursor: Option<&PageCursor>) -> (Stream, Bytes) {
    let text = cursor.and_then(|cursor| std::str::from_utf8(&cursor.0).ok());
    let parts = text.and_then(|text| text.split_once('/'));
    let parts = parts
        .and_then(|(word, after)| Some((Stream::by_word(word)?, after.to_owned())));
    let (stream, after) = parts.unwrap_or((Stream::Urgent, String::new()));
    (stream, after.into())
}

async fn leased(store: &Store, look: Look) -> Result<Vec<JobView>, Error> {
    let members = store.bookkeeping.members(&store.keys.leased, look).await?;
    let leases = members.iter().filter_map(|(member, until)| {
        Lease::parse(member).map(|lease| (lease, *until))
    });
    let jobs = leases.map(|(lease, until)| leased_one(store, lease, until));
    views(store, try_join_all(jobs).await?).await
}

async fn leased_one(
    store: &Store,
    lease: Lease,
    until: Timestamp,
) -> Result<Seen, Error> {
    let Lease { token, id } = lease;
    let found =
        store.read_entry(Operation::Peek, &token.stream, &token.entry_id).await?;
    let element = found.as_ref().map_or_else(Bytes::new, Found::element);
    let headers = found.as_ref().map_or_else(Headers::default, Found::headers);
    let detail =
        StateDetail::Leased { worker: token.worker, since: token.since, until };
    Ok(Seen { element, headers, id, deliveries: token.deliveries, detail })
}

/// A job as it is stored in a stream, with its delivery state.
struct Seen {
    element: Bytes,
    /// The headers to show if the entry was added by another client. An entry that relq
    /// added has them in its data.
    headers: Headers,
    /// The id to show if the entry was added by another client. An entry that relq added
    /// has it in its data.
    id: Bytes,
    /// How often this entry was delivered. Earlier attempts are stored in the entry.
    deliveries: u16,
    detail: StateDetail,
}

async fn views(store: &Store, seen: Vec<Seen>) -> Result<Vec<JobView>, Error> {
    let more: Vec<_> = seen
        .iter()
        .map(|one| (one.id.clone(), one.headers.clone(), u32::from(one.deliveries)))
        .collect();
    let elements = seen.into_iter().map(|one| (one.element, one.detail)).collect();
    let mut jobs = store.bookkeeping.views_of(elements).await?;
    for (job, (id, headers, deliveries)) in jobs.iter_mut().zip(more) {
        job.attempt = job.attempt.saturating_add(deliveries);
        if job.id.is_none() {
            let text = String::from_utf8(id.into()).ok();
            job.id = text.and_then(|text| JobId::new(text).ok());
            job.max_attempts = DEFAULT_MAX_ATTEMPTS;
            job.headers = headers;
        }
    }
    Ok(jobs)
}
