//! Stats and peek: calls that read jobs and change nothing.

use std::{
    num::{NonZeroU16, NonZeroU32},
    time::Duration,
};

use relq_core::{
    Bytes, Headers, JobId, Priority, Stats, WorkerId,
    batch::BatchId,
    environment::Timestamp,
    operator::{
        JobParts, JobState, JobView, Page, PageCursor, PeekOrder, PeekRequest,
        StateDetail,
    },
    unique::UniqueKey,
};

use crate::call::Call;
use crate::claim::{DAMAGED_HEADERS, NO_PAYLOAD, unreadable};
use crate::failure::Failure;
use crate::followers::NEVER;
use crate::headers;
use crate::statements::{Listing, PeekKey, Peeked};
use crate::store::Store;

/// The maximum number of jobs in one page of a peek. It is limited because the payloads
/// of all these jobs are held in memory.
const LARGEST_PAGE: u32 = 1000;

/// Counts the jobs in each state.
pub(crate) struct Count;

impl Call for Count {
    type Answer = Stats;

    const LOOKS_FIRST: bool = true;

    fn look(&self, store: &Store<'_>) -> Result<Option<Stats>, Failure> {
        store.stats().map(Some)
    }

    fn run(&self, store: &Store<'_>) -> Result<Stats, Failure> {
        store.stats()
    }
}

/// Reads one page of the jobs in a state.
pub(crate) struct Peek {
    listing: Listing,
    after: PeekKey,
    limit: u32,
}

impl Peek {
    /// Turns the operator's request into a call. Fails if another backend made its
    /// cursor, or a listing in the other order did.
    pub(crate) fn new(ask: &PeekRequest) -> Result<Self, Failure> {
        let after = match &ask.after {
            None => PeekKey::start(ask.order),
            Some(cursor) => {
                read_cursor(cursor, ask.order).ok_or_else(foreign_cursor)?
            }
        };
        let largest = NonZeroU32::new(LARGEST_PAGE).unwrap_or(NonZeroU32::MIN);
        let PeekRequest { state, order, parts, .. } = *ask;
        let listing = Listing { state, order, parts };
        Ok(Self { listing, after, limit: ask.limit.min(largest).get() })
    }

    fn page(&self, store: &Store<'_>) -> Result<Page, Failure> {
        let Listing { state, order, parts } = self.listing;
        let (rows, is_cut) = store.peek(self.listing, self.after, self.limit)?;
        let is_full = is_cut || u32::try_from(rows.len()) == Ok(self.limit);
        let next =
            rows.last().filter(|_| is_full).map(|row| write_cursor(row.key, order));
        let shown = match parts {
            JobParts::Whole => view,
            JobParts::Outline => outline,
        };
        let jobs = rows.into_iter().map(|row| shown(state, row));
        Ok(Page { jobs: jobs.collect::<Result<_, _>>()?, next })
    }
}

impl Call for Peek {
    type Answer = Page;

    const LOOKS_FIRST: bool = true;

    fn look(&self, store: &Store<'_>) -> Result<Option<Page>, Failure> {
        self.page(store).map(Some)
    }

    fn run(&self, store: &Store<'_>) -> Result<Page, Failure> {
        self.page(store)
    }
}

/// The failure for a cursor that belongs to another listing.
pub(crate) fn foreign_cursor() -> Failure {
    Failure::invalid(
        "the page cursor is not one that this backend made for this listing",
    )
}

/// A cursor: the letter of its order, and the sort keys of the last job that was shown.
fn write_cursor(PeekKey(first, second): PeekKey, order: PeekOrder) -> PageCursor {
    let letter = letter(order);
    PageCursor(Bytes::from(format!("{letter}:{first}:{second}")))
}

fn read_cursor(cursor: &PageCursor, order: PeekOrder) -> Option<PeekKey> {
    let text = std::str::from_utf8(&cursor.0).ok()?.strip_prefix(letter(order))?;
    let (first, second) = text.strip_prefix(':')?.split_once(':')?;
    Some(PeekKey(first.parse().ok()?, second.parse().ok()?))
}

fn letter(order: PeekOrder) -> char {
    match order {
        PeekOrder::AsServed => 's',
        PeekOrder::NewestFirst => 'n',
    }
}

/// Converts a stored job to its outline: its id, its state and its last error.
fn outline(state: JobState, row: Peeked) -> Result<JobView, Failure> {
    let detail = detail(state, &row)?;
    let mut view = JobView::new(JobId::new(&row.id).ok(), Bytes::new(), detail);
    view.last_error = row.last_error;
    Ok(view)
}

/// Converts a stored job to the view that an operator gets. If the job is damaged, the
/// view holds the fields that can still be read.
pub(crate) fn view(state: JobState, row: Peeked) -> Result<JobView, Failure> {
    let detail = detail(state, &row)?;
    let id = JobId::new(&row.id).ok();
    let headers = headers::decode(row.headers.as_deref());
    let why = why_unreadable(&row, headers.as_ref());
    let mut view = JobView::new(id, row.payload.unwrap_or_default(), detail);
    view.attempt = row.attempt;
    let attempts = u16::try_from(row.max_attempts).ok().and_then(NonZeroU16::new);
    view.max_attempts = attempts.unwrap_or(NonZeroU16::MIN);
    view.priority = Priority::new(row.priority).unwrap_or_default();
    view.unique = row.unique_key.and_then(|key| UniqueKey::new(key).ok());
    view.expires_at = row.expires_at.map(Timestamp::from_unix_ms);
    view.enqueued_at = row.enqueued_at.map(Timestamp::from_unix_ms);
    view.headers = headers.unwrap_or_default();
    view.last_error = row.last_error;
    view.lease = row.lease_ms.map(Duration::from_millis);
    view.keep_result = row.keep_ms.map(Duration::from_millis);
    view.batch = row.batch.and_then(|id| BatchId::new(id).ok());
    view.unreadable = why;
    Ok(view)
}

/// The reason with which a claim buries a damaged job. `None` if the job can be delivered.
fn why_unreadable(row: &Peeked, headers: Option<&Headers>) -> Option<String> {
    let batch = row.batch.as_ref().and_then(|id| BatchId::new(id).err());
    let name = JobId::new(&row.id).err().or(batch).map(|error| error.to_string());
    let part = match (&row.payload, headers) {
        (None, _) => Some(NO_PAYLOAD),
        (_, None) => Some(DAMAGED_HEADERS),
        _ => None,
    };
    name.as_deref().or(part).map(unreadable)
}

fn detail(state: JobState, row: &Peeked) -> Result<StateDetail, Failure> {
    let known = match state {
        JobState::Ready => Some(StateDetail::Ready),
        JobState::Scheduled => scheduled(row),
        JobState::Leased => leased(row),
        JobState::Dead => dead(row),
    };
    known.ok_or_else(|| {
        Failure::unusable(format!("job {} is damaged; run an audit", row.id))
    })
}

fn scheduled(row: &Peeked) -> Option<StateDetail> {
    let due = row.at?;
    // Without its leader, a held follower of a damaged file is shown as never due.
    let leader = row.leader.as_ref().filter(|_| due == NEVER);
    Some(match leader.and_then(|leader| JobId::new(leader).ok()) {
        Some(leader) => {
            let delay = Duration::from_millis(row.delay_ms.unwrap_or_default());
            StateDetail::Following { leader, delay }
        }
        None => StateDetail::Scheduled { due: Timestamp::from_unix_ms(due) },
    })
}

fn leased(row: &Peeked) -> Option<StateDetail> {
    Some(StateDetail::Leased {
        worker: WorkerId::new(row.worker.as_deref()?).ok()?,
        since: Timestamp::from_unix_ms(row.since?),
        until: Timestamp::from_unix_ms(row.at?),
    })
}

fn dead(row: &Peeked) -> Option<StateDetail> {
    Some(StateDetail::Dead {
        reason: row.reason.clone()?,
        since: Timestamp::from_unix_ms(row.since?),
    })
}
