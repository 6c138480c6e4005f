//! Looking at jobs without touching them.

use bytes::Bytes;
use futures_util::FutureExt;
use queue_core::{
    Error, JobState, JobView, Operation, Page, PageCursor, PeekRequest, StateDetail,
    Timestamp, WorkerId,
};
use queue_redis::{
    Reply, command,
    shelf::{self, Look},
};

use crate::{lease::Lease, scripts::Store};

/// Ready jobs of one page at most, whatever is asked for: their payloads are read too.
const MAX_PAGE: usize = 1000;

/// Pages of the database that are looked at for one page of ready jobs, which may be few
/// among many leased ones.
const SWEEPS: usize = 100;

/// Where jobs of a state are that is not `Ready`.
#[derive(Debug, Clone, Copy)]
enum Section {
    Later,
    Leased,
    Dead,
}

pub(crate) async fn peek(store: &Store, ask: &PeekRequest) -> Result<Page, Error> {
    let section = match ask.state {
        JobState::Ready => return ready(store, ask).await,
        JobState::Scheduled => Section::Later,
        JobState::Leased => Section::Leased,
        JobState::Dead => Section::Dead,
    };
    shelf::page(&[section], ask, |section, look| look_at(store, section, look).boxed())
        .await
}

async fn look_at(
    store: &Store,
    section: Section,
    look: Look,
) -> Result<Vec<JobView>, Error> {
    match section {
        Section::Later => store.shelf.peek_scheduled(look).await,
        Section::Leased => leased(store, look).await,
        Section::Dead => store.shelf.peek_dead(look).await,
    }
}

async fn leased(store: &Store, look: Look) -> Result<Vec<JobView>, Error> {
    let members = store.shelf.members(&store.keys.leased, look).await?;
    let keys: Vec<_> = members.iter().map(|(key, _)| key.clone()).collect();
    let entries = values(store, &keys).await?;
    let element = |((key, until), entry): ((Bytes, Timestamp), Option<Bytes>)| {
        Some((entry.unwrap_or_default(), holder(&key, until)?))
    };
    let elements = members.into_iter().zip(entries).filter_map(element).collect();
    store.shelf.views_of(elements).await
}

/// Who holds a job. One that some other client renamed is held by nobody known.
fn holder(key: &Bytes, until: Timestamp) -> Option<StateDetail> {
    let (worker, since) = match Lease::parse(key) {
        Some(lease) => (lease.worker, lease.since),
        None => (WorkerId::new("unknown").ok()?, until),
    };
    Some(StateDetail::Leased { worker, since, until })
}

/// Ready jobs in no order but that of the server's own hash. Where a page begins is told
/// by a page of the sweep and the last key of it that was shown, so that jobs which come
/// and go between two looks do not move the others.
async fn ready(store: &Store, ask: &PeekRequest) -> Result<Page, Error> {
    let limit = usize::try_from(ask.limit.get()).unwrap_or(MAX_PAGE).min(MAX_PAGE);
    let (mut cursor, mut shown) = read_cursor(ask.after.as_ref());
    let mut keys = Vec::new();
    for _ in 0..SWEEPS {
        let page = store.sweep(Operation::Peek, &cursor).await?;
        let mut items = page.items;
        items.sort_unstable();
        items.dedup();
        items.retain(|key| *key > shown);
        let room = limit - keys.len();
        if items.len() > room {
            items.truncate(room);
            shown = items.last().cloned().unwrap_or(shown);
            keys.extend(items);
            break;
        }
        keys.extend(items);
        (cursor, shown) = (page.next, Bytes::new());
        if &cursor[..] == b"0" {
            return Ok(Page { jobs: views(store, keys).await?, next: None });
        }
    }
    let next = [&cursor[..], b":", &shown].concat();
    let jobs = views(store, keys).await?;
    Ok(Page { jobs, next: Some(PageCursor(next.into())) })
}

fn read_cursor(cursor: Option<&PageCursor>) -> (Bytes, Bytes) {
    let start = || (Bytes::from_static(b"0"), Bytes::new());
    let Some(PageCursor(bytes)) = cursor else { return start() };
    let Some(colon) = bytes.iter().position(|byte| *byte == b':') else {
        return start();
    };
    (bytes.slice(..colon), bytes.slice(colon + 1..))
}

async fn views(store: &Store, keys: Vec<Bytes>) -> Result<Vec<JobView>, Error> {
    let values = values(store, &keys).await?;
    let ready = |value: Bytes| (value, StateDetail::Ready);
    store.shelf.views_of(values.into_iter().flatten().map(ready).collect()).await
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
