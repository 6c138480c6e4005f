//! The name of a lease: a member of the sorted set, and the token of a receipt.
//!
//! ```text
//!  worker / since (us) / nonce of the claim - number kind / id
//!  \________________ token of the receipt ______________/
//! ```
//!
//! No two leases have the same name (R7), because each claim call has a nonce of its
//! own. The worker comes first, so that `release_worker` finds the worker's leases by
//! prefix. The kind is `t` for a job with side records to clean up (a unique key, a
//! client-made id, an earlier failure) and `p` for a plain job.

use std::time::Duration;

use bytes::Bytes;
use relq_core::{Receipt, WorkerId, environment::Timestamp};

/// The number of a claim's first lease. All numbers have the same number of digits, so
/// that the leases of one claim sort by them.
const FIRST: usize = 10_001;

/// The parts that all lease names of one claim have in common.
#[derive(Debug)]
pub(crate) struct Claim<'a> {
    pub(crate) worker: &'a WorkerId,
    pub(crate) since_us: &'a str,
    pub(crate) nonce: &'a str,
}

impl Claim<'_> {
    /// Returns the lease token of the job at `position`, counted from 0, in the claim's
    /// reply.
    pub(crate) fn token(&self, position: usize, element: &Bytes) -> Bytes {
        const FLAGS: usize = 4;
        const ATTEMPT: std::ops::Range<usize> = 6..8;
        let has_side_records = !element[FLAGS].is_multiple_of(4);
        let kind =
            if has_side_records || element[ATTEMPT] != [0, 0] { 't' } else { 'p' };
        let Self { worker, since_us, nonce } = self;
        let number = FIRST + position;
        format!("{worker}/{since_us}/{nonce}-{number}{kind}").into()
    }
}

/// Returns the lease's name, a member of the sorted set, for a receipt.
pub(crate) fn member(receipt: &Receipt) -> Vec<u8> {
    join(receipt.token(), receipt.job().as_str().as_bytes())
}

/// Joins a lease's token and the id of its job to the name of the lease.
pub(crate) fn join(token: &[u8], id: &[u8]) -> Vec<u8> {
    [token, b"/", id].concat()
}

/// Whether the end of the job must also change records beside it, such as a unique key.
pub(crate) fn has_side_records(token: &[u8]) -> bool {
    token.ends_with(b"t")
}

/// The parts of a lease's name, which is a member of the sorted set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) worker: WorkerId,
    pub(crate) since: Timestamp,
    pub(crate) order: String,
    pub(crate) id: Bytes,
}

impl Lease {
    /// Parses a member of the sorted set; `None` when relq did not write it.
    pub(crate) fn parse(member: &Bytes) -> Option<Self> {
        let mut parts = member.splitn(4, |byte| *byte == b'/');
        let mut text = || std::str::from_utf8(parts.next()?).ok();
        let (worker, since_us, nonce) = (text()?, text()?, text()?);
        let id = member.slice_ref(parts.next()?);
        let since_us: u64 = since_us.parse().ok()?;
        Some(Self {
            worker: WorkerId::new(worker).ok()?,
            since: Timestamp::from_unix_ms(0).plus(Duration::from_micros(since_us)),
            order: format!("{since_us:020}/{nonce}"),
            id,
        })
    }
}
