//! The name of a lease. It is the key of the job while the job is leased, and a member
//! of the sorted set. Without the id, it is the token of a receipt.
//!
//! ```text
//!  processing_ id _ nonce of the claim - number / since (us) / worker
//!                   \___________ token of the receipt, and its kind __/
//! ```
//!
//! No two leases share a name (R7): each claim call has its own nonce, so RENAMENX to
//! the new name cannot clash. The name is parsed from its end, because an id may be any
//! text. The worker comes last, so that `release_worker` finds all leases of the
//! worker. Only receipts carry the kind: `t` for a job with side records (a unique key,
//! an id of the client's, an earlier failure), `p` for a plain job.

use std::time::Duration;

use bytes::Bytes;
use relq_core::{Receipt, WorkerId, environment::Timestamp};
use relq_redis::entry::Entry;

use crate::keys::PROCESSING;

/// The parts that all lease names of one claim have in common.
#[derive(Debug)]
pub(crate) struct Claim<'a> {
    pub(crate) worker: &'a WorkerId,
    pub(crate) since_us: &'a str,
    pub(crate) nonce: &'a str,
}

impl Claim<'_> {
    /// Returns the token of the lease with the number `position` in this claim. No
    /// other lease has the same token.
    pub(crate) fn token(&self, position: usize) -> String {
        let Self { worker, since_us, nonce } = self;
        format!("{nonce}-{position}/{since_us}/{worker}")
    }
}

/// Returns the key that holds job `id` while the job is leased with `token`.
pub(crate) fn key(id: &str, token: &str) -> String {
    format!("{PROCESSING}{id}_{token}")
}

/// Returns the receipt's token for an entry that is leased with `token`. Its last
/// letter says whether the job has side records.
pub(crate) fn receipt_token(token: &str, entry: &Entry) -> String {
    let has_side_records = entry.has_side_records() || entry.attempt > 1;
    format!("{token}{}", if has_side_records { 't' } else { 'p' })
}

/// Returns the key that holds the leased job to which the receipt belongs.
pub(crate) fn key_of(receipt: &Receipt) -> String {
    key_by(receipt.token(), receipt.job().as_str())
}

/// Returns the key that holds the leased job `id`, built from the token of its receipt.
/// The last letter of that token is the kind, and is not part of the key.
pub(crate) fn key_by(token: &[u8], id: &str) -> String {
    let token = String::from_utf8_lossy(token);
    let mut token = token.chars();
    token.next_back();
    key(id, token.as_str())
}

/// Whether this receipt token belongs to a job with side records, such as a unique key,
/// which must be freed when the job ends.
pub(crate) fn has_side_records(token: &[u8]) -> bool {
    token.ends_with(b"t")
}

/// Returns the suffix that the keys of all jobs leased by this worker have in common.
pub(crate) fn suffix(worker: &WorkerId) -> String {
    format!("/{worker}")
}

/// The parts of the key of a leased job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) worker: WorkerId,
    pub(crate) since: Timestamp,
    pub(crate) id: Bytes,
}

impl Lease {
    /// Parses a processing key. Returns `None` if relq did not make it.
    pub(crate) fn parse(key: &Bytes) -> Option<Self> {
        let rest = key.strip_prefix(PROCESSING.as_bytes())?;
        let mut parts = rest.rsplitn(3, |byte| *byte == b'/');
        let mut text = || std::str::from_utf8(parts.next()?).ok();
        let (worker, since_us) = (text()?, text()?);
        let named = parts.next()?;
        let end = named.iter().rposition(|byte| *byte == b'_')?;
        let since_us: u64 = since_us.parse().ok()?;
        Some(Self {
            worker: WorkerId::new(worker).ok()?,
            since: Timestamp::from_unix_ms(0).plus(Duration::from_micros(since_us)),
            id: key.slice_ref(&named[..end]),
        })
    }
}

/// The id of the job that has this processing key. Any client may have made the key.
pub(crate) fn id_of(key: &Bytes) -> Bytes {
    let whole = || key.slice(PROCESSING.len().min(key.len())..);
    Lease::parse(key).map_or_else(whole, |lease| lease.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(id: &str, worker: &str) -> Bytes {
        let worker = WorkerId::new(worker).unwrap();
        let claim = Claim { worker: &worker, since_us: "1500000", nonce: "n0nce" };
        key(id, &claim.token(7)).into()
    }

    #[test]
    fn any_id_and_worker_are_read_as_they_were_written() {
        for id in ["7", "a_b", "_", "a/b", "x/1/w", "processing_1_n-0/2/w", "ü~2"] {
            for worker in ["w", "host:1:abc", "_", "a_b.c-d"] {
                let read = Lease::parse(&lease(id, worker)).unwrap();

                assert_eq!(
                    (&read.id[..], read.worker.as_str()),
                    (id.as_bytes(), worker)
                );
                assert_eq!(read.since, Timestamp::from_unix_ms(1500));
            }
        }
    }

    #[test]
    fn a_key_of_some_other_client_is_no_lease_and_has_an_id() {
        for (key, id) in [("processing_7", "7"), ("processing_", ""), ("item_7", "")] {
            let key = Bytes::from(key);

            assert_eq!(Lease::parse(&key), None);
            if key.starts_with(b"processing_") {
                assert_eq!(id_of(&key), id);
            }
        }
    }
}
