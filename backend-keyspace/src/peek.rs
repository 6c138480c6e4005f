//! Looking at jobs without touching them.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures_util::FutureExt;
use relq_core::{
    Error, JobState, JobView, Operation, Page, PageCursor, PeekRequest, StateDetail,
    Timestamp, WorkerId,
};
use relq_redis::{
    Reply,
    bookkeeping::{self, Look},
    command,
};

use crate::{lease::Lease, scripts::Store};

/// Ready jobs of one page at most, whatever is asked for: their payloads are read too.
const MAX_PAGE: usize = 1000;

/// Pages of the database that are looked at for one page of ready jobs, which may be few
/// among many leased ones.
const SWEEPS: usize = 100;

/// How many keys such a page is at least, while there are ready jobs among them, and
/// after one without.
const FEW_KEYS: u32 = 100;
const MANY_KEYS: u32 = 1000;

/// The bytes that a length takes in a cursor.
const LENGTH: usize = 2;

pub(crate) async fn peek(store: &Store, ask: &PeekRequest) -> Result<Page, Error> {
    if ask.state == JobState::Ready {
        return ready(store, ask).await;
    }
    bookkeeping::page(&[()], ask, |(), look| leased(store, look).boxed()).await
}

async fn leased(store: &Store, look: Look) -> Result<Vec<JobView>, Error> {
    let members = store.bookkeeping.members(&store.keys.leased, look).await?;
    let keys: Vec<_> = members.iter().map(|(key, _)| key.clone()).collect();
    let entries = values(store, &keys).await?;
    let element = |((key, until), entry): ((Bytes, Timestamp), Option<Bytes>)| {
        Some((entry.unwrap_or_default(), holder(&key, until)?))
    };
    let elements = members.into_iter().zip(entries).filter_map(element).collect();
    store.bookkeeping.views_of(elements).await
}

/// Who holds a job. One that some other client renamed is held by nobody known.
fn holder(key: &Bytes, until: Timestamp) -> Option<StateDetail> {
    let (worker, since) = match Lease::parse(key) {
        Some(lease) => (lease.worker, lease.since),
        None => (WorkerId::new("unknown").ok()?, until),
    };
    Some(StateDetail::Leased { worker, since, until })
}

/// Ready jobs in no order but that of the server's own hash.
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
        // Few among many: larger pages, which hold few of them.
        count = if page.items.is_empty() { MANY_KEYS } else { few };
        position.is_last = &page.next[..] == START;
        position.cursor = page.next;
        position.keys.extend(page.items);
        position.keys.sort_unstable();
        position.keys.dedup();
    }
    let left = position.keys.split_off(position.keys.len().min(limit));
    let jobs = views(store, std::mem::replace(&mut position.keys, left)).await?;
    Ok(Page { jobs, next: position.written() })
}

const START: &[u8] = b"0";

/// Where a page of ready jobs begins: where SCAN goes on, and the keys that it has shown
/// and nobody has seen yet. To ask it again from the same place would not do: it shows
/// other keys there once the server has made its table larger.
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

    /// None where nothing is left. A name too long to be written holds no valid id.
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

async fn views(store: &Store, keys: Vec<Bytes>) -> Result<Vec<JobView>, Error> {
    let values = values(store, &keys).await?;
    let ready = |value: Bytes| (value, StateDetail::Ready);
    store.bookkeeping.views_of(values.into_iter().flatten().map(ready).collect()).await
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
