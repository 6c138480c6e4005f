//! The token of a lease: a member of the sorted set of marks, and a part of the
//! element in process. The token in a receipt is the whole element.
//!
//! ```text
//!  worker / since (us) / nonce of the claim - number letter
//! ```
//!
//! No two leases have the same token (R7), because each claim call has a nonce of its
//! own. The worker comes first, so that `release_worker` finds the worker's leases by
//! prefix. The letter says what the end of the lease requires, for a script that has
//! the token and not the job:
//!
//! * `p`, plain: only its mark changes.
//! * `l`, last attempt: as `p` when the worker is released; if the lease expires, the
//!   job is buried.
//! * `k`, unique key: the job holds it past its expiry, so the key must be released.

use std::time::Duration;

use bytes::Bytes;
use relq_core::{Receipt, WorkerId, environment::Timestamp};

use crate::element::InProcess;

/// The fields of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) worker: WorkerId,
    pub(crate) since: Timestamp,
}

impl Lease {
    /// Parses a token; `None` when relq did not write it.
    pub(crate) fn parse(token: &[u8]) -> Option<Self> {
        let mut parts = token.splitn(3, |byte| *byte == b'/');
        let mut text = || std::str::from_utf8(parts.next()?).ok();
        let (worker, since_us) = (text()?, text()?.parse().ok()?);
        Some(Self {
            worker: WorkerId::new(worker).ok()?,
            since: Timestamp::from_unix_ms(0).plus(Duration::from_micros(since_us)),
        })
    }
}

/// The token of the lease that a receipt belongs to. For a forged receipt it is a value
/// that no lease has.
pub(crate) fn token(receipt: &Receipt) -> Bytes {
    InProcess::read(receipt.token()).map_or_else(Bytes::new, |parts| parts.token)
}

/// Whether ending the job touches more than the job itself: a unique key, an id to
/// remember, or the stored error of an earlier failure.
pub(crate) fn has_side_records(element: &Bytes) -> bool {
    const FLAGS: usize = 4;
    const ATTEMPT: std::ops::Range<usize> = 6..8;
    let Some(InProcess { entry, .. }) = InProcess::read(element) else {
        return false;
    };
    let is_plain = entry.get(FLAGS).is_some_and(|flags| flags.is_multiple_of(4))
        && entry.get(ATTEMPT) == Some(&[0, 1]);
    !is_plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_the_worker_and_the_time_of_the_claim() {
        let lease = Lease::parse(b"host:1:x/1500000/nonce-1p").unwrap();

        assert_eq!(lease.worker.as_str(), "host:1:x");
        assert_eq!(lease.since.unix_ms(), 1500);
        assert_eq!(Lease::parse(b"nothing of relq's"), None);
    }
}
