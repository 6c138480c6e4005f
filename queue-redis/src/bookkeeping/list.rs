//! Reading a list page by page.

use bytes::Bytes;
use relq_core::{Error, error::Operation};

use super::{Bookkeeping, PageSize};
use crate::{Reply, command};

/// Reads a list page by page from its left end. A push at that end shifts the elements
/// that were not read yet to later pages, so it hides none of them. A removal shifts them
/// to earlier pages. A search reads half of each page a second time with the next one, so
/// that no element is hidden unless more elements than these are removed between the two
/// replies. Elements that are so large that a page has only one are read once.
#[derive(Debug)]
pub struct ListPages<'a> {
    bookkeeping: &'a Bookkeeping,
    list: &'a str,
    operation: Operation,
    start: usize,
    size: PageSize,
    reads_again: bool,
    is_over: bool,
}

impl Bookkeeping {
    /// Prepares to read the list page by page, each element once. Sends nothing.
    pub fn list_pages<'a>(
        &'a self,
        list: &'a str,
        operation: Operation,
    ) -> ListPages<'a> {
        let size = PageSize::of_payloads();
        ListPages {
            bookkeeping: self,
            list,
            operation,
            start: 0,
            size,
            reads_again: false,
            is_over: false,
        }
    }

    /// Prepares to search the list page by page for a job to cancel, while elements are
    /// removed. An element may come twice. Sends nothing.
    pub fn search_pages<'a>(&'a self, list: &'a str) -> ListPages<'a> {
        ListPages { reads_again: true, ..self.list_pages(list, Operation::Cancel) }
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
        self.size.adapt(page.iter().map(Bytes::len).sum());
        let reads_again = self.reads_again && self.size.count() > 1;
        self.start += if reads_again { count / 2 } else { count };
        Ok(Some(page))
    }
}
