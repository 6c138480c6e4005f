//! Reading a list page by page.

use bytes::Bytes;
use relq_core::{Error, error::Operation};

use super::{Bookkeeping, PageSize};
use crate::{Reply, command};

/// Reads a list page by page from its left end. A push at that end shifts the elements
/// that were not read yet to later pages, so no element that stays in the list is
/// missed.
#[derive(Debug)]
pub struct ListPages<'a> {
    bookkeeping: &'a Bookkeeping,
    list: &'a str,
    operation: Operation,
    start: usize,
    size: PageSize,
    is_over: bool,
}

impl Bookkeeping {
    /// Prepares to read the list `key` page by page. Sends nothing.
    pub fn list_pages<'a>(
        &'a self,
        list: &'a str,
        operation: Operation,
    ) -> ListPages<'a> {
        let size = PageSize::of_payloads();
        ListPages { bookkeeping: self, list, operation, start: 0, size, is_over: false }
    }
}

impl ListPages<'_> {
    /// Reads the next page; `None` after the last page.
    ///
    /// # Errors
    /// The errors of [`Conn::call`](crate::Conn::call).
    pub async fn next_page(&mut self) -> Result<Option<Vec<Bytes>>, Error> {
        if self.is_over {
            return Ok(None);
        }
        let count = self.size.count();
        let mut cmd = command("LRANGE");
        cmd.arg(self.list).arg(self.start).arg(self.start + count - 1);
        let page = self.bookkeeping.conn.call(self.operation, &cmd).await?.list()?;
        let page = page.into_iter().map(Reply::bytes);
        let page = page.collect::<Result<Vec<_>, _>>()?;
        self.is_over = page.len() < count;
        self.start += count;
        self.size.adapt(page.iter().map(Bytes::len).sum());
        Ok(Some(page))
    }
}
