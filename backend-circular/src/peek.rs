//! Looking at jobs without changing them.
//!
//! Ready and leased jobs are elements of one ring, so a page of one state reads the
//! ring from its tail and skips the other elements.

use relq_core::{
    Error,
    error::Operation,
    limits::with_lost_lease,
    operator::{JobView, Page, PageCursor, PeekRequest},
};
use relq_redis::bookkeeping::{PageSize, REPLY_BYTES};

use crate::{
    ring::{self, Seen},
    scripts::Store,
};

/// The maximum number of jobs on a page, even if the request asks for more. The limit
/// keeps replies small, because a page contains payloads.
const MAX_PAGE: usize = 1000;

/// Returns one page of the jobs in the ring. The cursor is the number of elements that
/// earlier pages have passed. The page ends early with the job that fills
/// [`REPLY_BYTES`].
pub(crate) async fn peek(store: &Store, ask: &PeekRequest) -> Result<Page, Error> {
    let limit = usize::try_from(ask.limit.get()).unwrap_or(MAX_PAGE).min(MAX_PAGE);
    let mut passed = read_cursor(ask.after.as_ref());
    let (mut jobs, mut recovered, mut next) = (Vec::new(), Vec::new(), None);
    let (mut size, mut bytes) = (PageSize::of_payloads(), 0);
    loop {
        let seen = ring::read(store, Operation::Peek, passed, size.count()).await?;
        let is_last = seen.len() < size.count();
        size.adapt(seen.iter().map(Seen::bytes).sum());
        for one in seen {
            if jobs.len() == limit || bytes >= REPLY_BYTES {
                next = Some(PageCursor(passed.to_string().into()));
                break;
            }
            passed += 1;
            let is_recovered = one.is_recovered();
            let job = one.job().filter(|(_, detail)| detail.state() == ask.state);
            bytes += job.as_ref().map_or(0, |(element, _)| element.len());
            recovered.extend(job.as_ref().map(|_| is_recovered));
            jobs.extend(job);
        }
        if is_last || next.is_some() {
            let mut jobs = store.bookkeeping.views_of(jobs).await?;
            let recovered = jobs.iter_mut().zip(recovered).filter(|(_, is)| *is);
            recovered.for_each(|(job, _)| add_lost_lease(job));
            return Ok(Page { jobs, next });
        }
    }
}

/// Adds to the last error of a recovered job that the lease of its attempt expired (R11).
/// The script that recovers a job only changes its mark. The claim that takes the job over
/// stores this text.
fn add_lost_lease(job: &mut JobView) {
    job.last_error = Some(with_lost_lease(job.last_error.as_deref(), job.attempt));
}

fn read_cursor(cursor: Option<&PageCursor>) -> usize {
    let text = cursor.and_then(|cursor| std::str::from_utf8(&cursor.0).ok());
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}
