//! Reads jobs for an operator without changing them.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures_util::FutureExt;
use relq_core::{
    Error, WorkerId,
    environment::Timestamp,
    error::Operation,
    operator::{JobState, JobView, Page, PageCursor, PeekRequest, StateDetail},
};
use relq_redis::{
    Reply,
    bookkeeping::{
        Look, PageSize, REPLY_BYTES, SectionPart, SectionRequest, cannot_be_read,
        in_order, next_offset, offset_of,
    },
    command,
};

use crate::{
    claim::{id_in, wrong_id},
    lease::Lease,
    scripts::Store,
};

/// The maximum number of ready jobs on a page, even if the request asks for more. The
/// limit keeps replies small, because a page contains payloads.
const MAX_PAGE: usize = 1000;

/// The maximum number of database pages that are scanned for one page of ready jobs.
/// Without a limit a scan could be long, if ready jobs are few among many leased ones.
const SWEEPS: usize = 100;

/// The least number of keys to scan for a page of ready jobs: `FEW_KEYS` after a page
/// of the database that contains ready jobs, `MANY_KEYS` after one that contains none.
const FEW_KEYS: u32 = 100;
const MANY_KEYS: u32 = 1000;

/// The number of bytes in which a page cursor stores the length of a key.
const LENGTH: usize = 2;

pub(crate) async fn peek(store: &Store, ask: &PeekRequest) -> Result<Page, Error> {
    if ask.state == JobState::Ready {
        return ready(store, ask).await;
    }
    let read = |(), asked| leased(store, asked).boxed();
    store.bookkeeping.list(&in_order(&[()]), ask, read).await
}

async fn leased(store: &Store, asked: SectionRequest) -> Result<SectionPart, Error> {
    let (offset, count) = (offset_of(&asked), asked.count);
    let (bookkeeping, leases) = (&store.bookkeeping, &store.keys.leased);
    let members = bookkeeping.members(leases, Look { offset, count }).await?;
    let next = next_offset(&asked, offset, members.len());
    let keys: Vec<_> = members.iter().map(|(key, _)| key.clone()).collect();
    let entries = values(store, &keys).await?;
    let mut elements = Vec::new();
    for ((key, until), entry) in members.into_iter().zip(entries) {
        // A job that has ended since the leases were read has no entry. If it is still
        // leased, another client has removed the entry.
        if entry.is_some() || bookkeeping.has_member(leases, &key).await? {
            let holder = holder(&key, until);
            elements.extend(holder.map(|holder| (entry.unwrap_or_default(), holder)));
        }
    }
    let mut jobs = bookkeeping.views_of(elements).await?;
    let is_removed = |job: &&mut JobView| job.id.is_none() && job.payload.is_empty();
    for job in jobs.iter_mut().filter(is_removed) {
        job.unreadable = Some(cannot_be_read("its entry was removed"));
    }
    Ok(SectionPart { jobs, next, other_bytes: 0 })
}

/// Returns the worker that holds a leased job, and since when. If another client
/// renamed the job's key, the worker is called `unknown`.
fn holder(key: &Bytes, until: Timestamp) -> Option<StateDetail> {
    let (worker, since) = match Lease::parse(key) {
        Some(lease) => (lease.worker, lease.since),
        None => (WorkerId::new("unknown").ok()?, until),
    };
    Some(StateDetail::Leased { worker, since, until })
}

/// Returns ready jobs in the order of the server's hash table.
async fn ready(store: &Store, ask: &PeekRequest) -> Result<Page, Error> {
    let limit = usize::try_from(ask.limit.get()).unwrap_or(MAX_PAGE).min(MAX_PAGE);
    let mut position = ScanPosition::read(ask.after.as_ref());
    let few = ask.limit.get().clamp(FEW_KEYS, MANY_KEYS);
    let mut count = few;
    for _ in 0..SWEEPS {
        if position.keys.len() >= limit || position.is_last {
            break;
        }
        let page = store.scan(Operation::Peek, &position.cursor, count).await?;
        // If a page of the database has no ready job, few of the keys are ready jobs:
        // scan more keys for the next page.
        count = if page.items.is_empty() { MANY_KEYS } else { few };
        position.is_last = &page.next[..] == START;
        position.cursor = page.next;
        position.keys.extend(page.items);
        position.keys.sort_unstable();
        position.keys.dedup();
    }
    let shown = position.keys.len().min(limit);
    let (items, read) = values_of_page(store, &position.keys[..shown]).await?;
    position.keys.drain(..read);
    let (items, values): (Vec<_>, Vec<_>) = items.into_iter().unzip();
    let jobs = values.into_iter().map(|value| (value, StateDetail::Ready)).collect();
    let mut jobs = store.bookkeeping.views_of(jobs).await?;
    for (job, item) in jobs.iter_mut().zip(&items) {
        if let Some(why) = wrong_id(item, job.id.as_ref()) {
            job.unreadable = Some(cannot_be_read(&why));
        }
        // Push, cancel and claim know the job by the id in its key (R20), whatever the
        // value of the key is.
        job.id = id_in(item).or(job.id.take());
    }
    Ok(Page { jobs, next: position.written() })
}

const START: &[u8] = b"0";

/// The position of the next page of ready jobs: the cursor of SCAN, and the keys that
/// SCAN has returned but no page has shown. These keys are stored, because a second
/// SCAN from the same cursor returns other keys after the server has grown its hash
/// table.
#[derive(Debug)]
struct ScanPosition {
    cursor: Bytes,
    is_last: bool,
    keys: Vec<Bytes>,
}

impl ScanPosition {
    fn read(cursor: Option<&PageCursor>) -> Self {
        let start = Self {
            cursor: Bytes::from_static(START),
            is_last: false,
            keys: Vec::new(),
        };
        let Some(PageCursor(bytes)) = cursor else { return start };
        let mut parts = Vec::new();
        let mut rest = bytes.clone();
        while rest.remaining() >= LENGTH {
            let length = usize::from(rest.get_u16()).min(rest.len());
            parts.push(rest.split_to(length));
        }
        let mut parts = parts.into_iter();
        match parts.next() {
            Some(cursor) => {
                let is_last = &cursor[..] == START;
                Self { cursor, is_last, keys: parts.collect() }
            }
            None => start,
        }
    }

    /// Converts the position into a cursor. Returns `None` after the last page. A key
    /// that is too long for a cursor holds no valid job id and is left out.
    fn written(&self) -> Option<PageCursor> {
        if self.is_last && self.keys.is_empty() {
            return None;
        }
        let mut bytes = BytesMut::new();
        for part in std::iter::once(&self.cursor).chain(&self.keys) {
            if let Ok(length) = u16::try_from(part.len()) {
                bytes.put_u16(length);
                bytes.extend_from_slice(part);
            }
        }
        Some(PageCursor(bytes.freeze()))
    }
}

/// Reads the values of the first keys, up to the one that fills [`REPLY_BYTES`].
/// Returns the keys with their values, and how many keys were read. A key that was
/// deleted has no value.
async fn values_of_page(
    store: &Store,
    keys: &[Bytes],
) -> Result<(Vec<(Bytes, Bytes)>, usize), Error> {
    let (mut found, mut read) = (Vec::new(), 0);
    let (mut size, mut bytes) = (PageSize::of_payloads(), 0);
    while read < keys.len() && bytes < REPLY_BYTES {
        let count = size.count_of(keys.len() - read);
        let asked = &keys[read..read + count];
        let page = asked.iter().cloned().zip(values(store, asked).await?);
        let before = found.len();
        found.extend(page.filter_map(|(key, value)| Some((key, value?))));
        let page_bytes = found[before..].iter().map(|(_, value)| value.len()).sum();
        size.adapt(page_bytes);
        (read, bytes) = (read + count, bytes + page_bytes);
    }
    Ok((found, read))
}

async fn values(store: &Store, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>, Error> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let mut cmd = command("MGET");
    keys.iter().for_each(|key| {
        cmd.arg(&key[..]);
    });
    let values = store.conn.call(Operation::Peek, &cmd).await?.list()?;
    values.into_iter().map(Reply::optional_bytes).collect()
}
