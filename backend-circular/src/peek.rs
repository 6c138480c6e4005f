//! Looking at jobs without changing them.
//!
//! Ready and leased jobs are elements of one ring, so a page of one state reads the
//! ring from its tail and skips the other elements.

use relq_core::{
    Error,
    error::Operation,
    operator::{Page, PageCursor, PeekRequest},
};

use crate::{ring, scripts::Store};

/// The maximum number of jobs of a page, however many are requested: their payloads are
/// read too.
const MAX_PAGE: usize = 1000;

/// One page of the jobs in the ring. The cursor is the number of elements passed so
/// far.
pub(crate) async fn peek(store: &Store, ask: &PeekRequest) -> Result<Page, Error> {
    let limit = usize::try_from(ask.limit.get()).unwrap_or(MAX_PAGE).min(MAX_PAGE);
    let mut passed = read_cursor(ask.after.as_ref());
    let (mut jobs, mut next) = (Vec::new(), None);
    loop {
        let seen = ring::read(store, Operation::Peek, passed).await?;
        let is_last = seen.len() < ring::PAGE;
        for one in seen {
            if jobs.len() == limit {
                next = Some(PageCursor(passed.to_string().into()));
                break;
            }
            passed += 1;
            jobs.extend(one.job().filter(|(_, detail)| detail.state() == ask.state));
        }
        if is_last || next.is_some() {
            let jobs = store.bookkeeping.views_of(jobs).await?;
            return Ok(Page { jobs, next });
        }
    }
}

fn read_cursor(cursor: Option<&PageCursor>) -> usize {
    let text = cursor.and_then(|cursor| std::str::from_utf8(&cursor.0).ok());
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}
