//! A lease: a stamped element of a processing list, and the token of a receipt.
//!
//! ```text
//!  F5 52 51 01 FF | n | name, n bytes | entry with this delivery counted
//!
//!  name:  worker / nonce of the queue / since (us) / nonce of the claim - number kind
//!         \________ session ________/
//! ```
//!
//! The original pattern removes a job by its value. A late removal then removes the
//! next job that is equal. Here no two leases share a name, so no two elements are
//! equal, and removal by value is a fence (R7). The kind is `t` for a job with side
//! records (a unique key, an id of the client's, an earlier failure) and `p` for a
//! plain one. The name of a job in the shared list contains no nonce of a queue.

use std::time::Duration;

use bytes::Bytes;
use relq_core::{Receipt, WorkerId, environment::Timestamp};

use crate::session::{Session, Site};

/// The first bytes of a stamp: the mark that begins every entry, and a flags byte that
/// no entry has.
const STAMP: [u8; 5] = [0xF5, b'R', b'Q', 1, 0xFF];

/// An element of a processing list, parsed: the name of its lease, and the job's entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lease {
    /// The lease's name, which is its member in the sorted set of lease ends.
    pub(crate) name: Bytes,
    pub(crate) site: Site,
    pub(crate) worker: WorkerId,
    pub(crate) since: Timestamp,
    /// A text that orders the leases of one worker: an older lease sorts first.
    pub(crate) order: String,
    /// The job's entry, with this delivery counted in its attempt.
    pub(crate) entry: Bytes,
}

impl Lease {
    /// Parses an element of a processing list. Returns `None` if it has no valid stamp.
    pub(crate) fn parse(element: &Bytes) -> Option<Self> {
        let rest = element.strip_prefix(&STAMP)?;
        let (length, rest) = rest.split_first()?;
        let (name, entry) = rest.split_at_checked(usize::from(*length))?;
        Self::named(&element.slice_ref(name), element.slice_ref(entry))
    }

    /// Parses a lease's name without its element, so the entry is empty. Returns `None`
    /// if relq did not write the name.
    pub(crate) fn of_name(name: &Bytes) -> Option<Self> {
        Self::named(name, Bytes::new())
    }

    fn named(name: &Bytes, entry: Bytes) -> Option<Self> {
        let text = std::str::from_utf8(name).ok()?;
        let mut parts = text.splitn(4, '/');
        let (worker, nonce) = (WorkerId::new(parts.next()?).ok()?, parts.next()?);
        let (since_us, claim) = (parts.next()?.parse::<u64>().ok()?, parts.next()?);
        let session = &text[..worker.as_str().len() + 1 + nonce.len()];
        let site = if nonce.is_empty() {
            Site::Shared
        } else {
            Site::Own(Session::parse(session.as_bytes())?)
        };
        Some(Self {
            name: name.clone(),
            site,
            worker,
            since: Timestamp::from_unix_ms(0).plus(Duration::from_micros(since_us)),
            order: format!("{since_us:020}/{claim}"),
            entry,
        })
    }

    /// Parses the token of a receipt. Returns `None` if this backend did not issue it.
    pub(crate) fn of(receipt: &Receipt) -> Option<Self> {
        Self::parse(receipt.token())
    }

    /// Whether the job has side records (a unique key, a client-made id, an earlier
    /// failure), which its settlement must remove.
    pub(crate) fn has_side_records(&self) -> bool {
        self.name.ends_with(b"t")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(name: &str) -> Bytes {
        let length = u8::try_from(name.len()).unwrap();
        [&STAMP, &[length][..], name.as_bytes(), b"entry"].concat().into()
    }

    #[test]
    fn a_stamp_is_read() {
        let lease = Lease::parse(&element("w/abc/17/n-10001t")).unwrap();

        assert_eq!(lease.site.session(), "w/abc");
        assert_eq!(
            (&lease.name[..], &lease.entry[..]),
            (&b"w/abc/17/n-10001t"[..], &b"entry"[..])
        );
        assert!(lease.has_side_records());
        let shared = Lease::parse(&element("w//17/n-10001p")).unwrap();
        assert_eq!((shared.site, shared.worker.as_str()), (Site::Shared, "w"));
    }

    #[test]
    fn an_invalid_stamp_is_refused_without_a_panic() {
        let whole = element("w/abc/17/n-10001t");
        for length in 0..whole.len() - b"entry".len() {
            assert_eq!(Lease::parse(&whole.slice(..length)), None, "{length}");
        }
        for name in ["", "w", "w/a*/1/n", "w/abc/x/n", "/abc/1/n", "w/abc/1"] {
            assert_eq!(Lease::parse(&element(name)), None, "{name}");
        }
    }
}
