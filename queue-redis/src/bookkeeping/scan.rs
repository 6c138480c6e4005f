//! Reading a hash or a sorted set page by page.

use std::collections::BTreeMap;

use bytes::Bytes;
use relq_core::{Error, JobId, environment::Timestamp, error::Operation};

use super::{Bookkeeping, Member, PageSize};
use crate::{Reply, command};

/// The kind of a scanned key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scanned {
    /// A hash: fields and values. The values may be payloads.
    Hash,
    /// A sorted set: members and scores.
    SortedSet,
}

/// Reads a hash or a sorted set page by page. A pair may be in several pages. A pair
/// that stays in the key throughout is in at least one.
///
/// A page has about [`REPLY_BYTES`](super::REPLY_BYTES). The server returns a hash or a
/// set that it stores in its compact form as one page. Its settings
/// `hash-max-listpack-entries` and `hash-max-listpack-value` keep such a hash small.
#[derive(Debug)]
pub struct ScanPages<'a> {
    bookkeeping: &'a Bookkeeping,
    operation: Operation,
    key: &'a str,
    scanned: Scanned,
    glob: &'a str,
    size: PageSize,
    /// The cursor of the next page; `None` after the last page.
    cursor: Option<String>,
}

impl ScanPages<'_> {
    /// Reads the next page; `None` after the last page.
    ///
    /// # Errors
    /// The errors of [`Conn::call`](crate::Conn::call).
    pub async fn next_page(&mut self) -> Result<Option<Vec<(Bytes, Bytes)>>, Error> {
        let Some(cursor) = self.cursor.take() else { return Ok(None) };
        let mut cmd = command(match self.scanned {
            Scanned::Hash => "HSCAN",
            Scanned::SortedSet => "ZSCAN",
        });
        cmd.arg(self.key).arg(&cursor).arg("MATCH").arg(self.glob);
        cmd.arg("COUNT").arg(self.size.count());
        let reply = self.bookkeeping.conn.call(self.operation, &cmd).await?;
        let mut parts = reply.parts()?;
        let next = parts.part().text()?;
        let mut found = parts.part().list()?.into_iter().map(Reply::bytes);
        let mut page = Vec::new();
        while let (Some(name), Some(value)) = (found.next(), found.next()) {
            page.push((name?, value?));
        }
        self.size
            .adapt(page.iter().map(|(name, value)| name.len() + value.len()).sum());
        self.cursor = (next != "0").then_some(next);
        Ok(Some(page))
    }
}

impl Bookkeeping {
    /// Prepares to read all of a hash or a sorted set page by page. Sends nothing.
    pub fn scan_pages<'a>(&'a self, scanned: Scanned, key: &'a str) -> ScanPages<'a> {
        self.scan_matching(Operation::Audit, scanned, key, "*")
    }

    /// Prepares to read all of a hash or a sorted set page by page, for an operation.
    /// Sends nothing.
    pub(super) fn scan_pages_for<'a>(
        &'a self,
        operation: Operation,
        scanned: Scanned,
        key: &'a str,
    ) -> ScanPages<'a> {
        self.scan_matching(operation, scanned, key, "*")
    }

    /// Prepares to read the fields or members whose names match a glob pattern, page by
    /// page. Sends nothing.
    fn scan_matching<'a>(
        &'a self,
        operation: Operation,
        scanned: Scanned,
        key: &'a str,
        glob: &'a str,
    ) -> ScanPages<'a> {
        let size = match scanned {
            Scanned::Hash => PageSize::of_payloads(),
            Scanned::SortedSet => PageSize::of_names(),
        };
        let (bookkeeping, cursor) = (self, Some("0".to_owned()));
        ScanPages { bookkeeping, operation, key, scanned, glob, size, cursor }
    }

    /// Reads the members of a sorted set whose names match a glob pattern, each once,
    /// with the result of `read` for the member and its score. Members for which `read`
    /// returns `None` are left out.
    ///
    /// # Errors
    /// The errors of [`Conn::call`](crate::Conn::call).
    pub async fn find_members<T>(
        &self,
        operation: Operation,
        set: &str,
        glob: &str,
        read: impl Fn(&Bytes, &Bytes) -> Option<T>,
    ) -> Result<Vec<(Bytes, T)>, Error> {
        let mut found = BTreeMap::new();
        let mut pages = self.scan_matching(operation, Scanned::SortedSet, set, glob);
        while let Some(page) = pages.next_page().await? {
            for (member, score) in page {
                match read(&member, &score) {
                    Some(item) => found.insert(member, item),
                    // Remove the member: an earlier page may have had it with another
                    // score, which `read` accepted.
                    None => found.remove(&member),
                };
            }
        }
        Ok(found.into_iter().collect())
    }

    /// Reads the leases of the sorted set `leased` whose names match a glob pattern,
    /// each with the result of `parse` for its name. Leases for which `parse` returns
    /// `None` are left out.
    ///
    /// # Errors
    /// The errors of [`find_members`](Self::find_members).
    pub async fn find_leases<L>(
        &self,
        operation: Operation,
        leased: &str,
        parse: impl Fn(&Bytes) -> Option<L>,
        glob: &str,
    ) -> Result<Vec<(Bytes, L)>, Error> {
        self.find_members(operation, leased, glob, |name, _| parse(name)).await
    }

    /// Reads the names of the leases of `job` in the sorted set `leased`, and when each
    /// ends. The names match a glob pattern, and `id_of` reads the id of the job in a
    /// name.
    ///
    /// # Errors
    /// The errors of [`find_members`](Self::find_members).
    pub async fn leases_of_job(
        &self,
        operation: Operation,
        leased: &str,
        job: &JobId,
        glob: &str,
        id_of: impl Fn(&Bytes) -> Option<Bytes>,
    ) -> Result<Vec<(Bytes, Timestamp)>, Error> {
        let end = |name: &Bytes, score: &Bytes| {
            let lease = Member { name: name.clone(), score: score.clone() };
            (id_of(name)? == job.as_str()).then(|| lease.time())
        };
        self.find_members(operation, leased, glob, end).await
    }
}
