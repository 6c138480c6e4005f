//! The name of a lease. It is a field of the hashes and a member of sets, and contains
//! the token of a receipt.
//!
//! ```text
//!  worker / since (us) / nonce of the claim - number / id
//!  \_____________ token of the receipt ____________/
//! ```
//!
//! No two leases have the same name (R7), because each claim call has a nonce of its
//! own.

use std::time::Duration;

use bytes::Bytes;
use relq_core::{WorkerId, environment::Timestamp};

/// Builds the name of a lease from its token and the id of its job.
pub(crate) fn join(token: &[u8], id: &[u8]) -> Vec<u8> {
    [token, b"/", id].concat()
}

/// The fields in the name of a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) worker: WorkerId,
    pub(crate) since: Timestamp,
    /// A text that sorts the leases of one worker in the order of their claims.
    pub(crate) order: String,
    pub(crate) id: Bytes,
}

impl Lease {
    /// Parses the name of a lease. Returns `None` if this backend did not write the
    /// name.
    pub(crate) fn parse(name: &Bytes) -> Option<Self> {
        let mut parts = name.splitn(4, |byte| *byte == b'/');
        let mut text = || std::str::from_utf8(parts.next()?).ok();
        let (worker, since_us, nonce) = (text()?, text()?, text()?);
        let id = name.slice_ref(parts.next()?);
        let since_us: u64 = since_us.parse().ok()?;
        Some(Self {
            worker: WorkerId::new(worker).ok()?,
            since: Timestamp::from_unix_ms(0).plus(Duration::from_micros(since_us)),
            order: format!("{since_us:020}/{nonce}"),
            id,
        })
    }
}
