//! The name of a lease: a member of the sorted set, and the token of a receipt.
//!
//! ```text
//!  worker / since (us) / nonce of the claim - number / kind counts / stream : id / job
//!  \____________________ token of the receipt ____________________________/
//! ```
//!
//! No two leases share a name (R7): each claim call has its own nonce. The worker comes
//! first, so that `release_worker` finds all leases of the worker by prefix. The kind
//! is `t` for a piece and for a job with side records (a unique key, an id of the
//! client's, an earlier failure), and `p` for a plain job. The counts are the job's
//! attempt and, after a dot, how often this entry was delivered: a job that failed is
//! pushed as a new entry, which stores its earlier attempts. The stream is its letter,
//! or `b:` and the id of a batch. The id after it is the entry's id in that stream.

use std::time::Duration;

use bytes::Bytes;
use relq_core::{Receipt, WorkerId, environment::Timestamp};

use crate::keys::Stream;

/// Returns the name of the lease that a receipt proves. The name is a member of the
/// sorted set `leased`.
pub(crate) fn member(receipt: &Receipt) -> Vec<u8> {
    join(receipt.token(), receipt.job().as_str().as_bytes())
}

/// Joins a lease's token and its job's id to the name of the lease.
pub(crate) fn join(token: &[u8], id: &[u8]) -> Vec<u8> {
    [token, b"/", id].concat()
}

/// The parts of a lease's token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) worker: WorkerId,
    pub(crate) since: Timestamp,
    /// Whether the job has records besides its entry, such as a unique key.
    pub(crate) has_side_records: bool,
    /// Which attempt of the job this delivery is, counted from 1 over all its entries.
    pub(crate) attempt: u16,
    /// Which delivery of this entry it is, counted from 1. A retry adds a new entry.
    pub(crate) deliveries: u16,
    pub(crate) stream: Stream,
    /// The id of the job's entry in its stream.
    pub(crate) entry_id: String,
}

impl Token {
    /// Parses a token. Returns `None` if relq did not write it.
    pub(crate) fn parse(token: &[u8]) -> Option<Self> {
        let parts: Vec<_> = std::str::from_utf8(token).ok()?.split('/').collect();
        let [worker, since_us, _call, count, place] = parts[..] else { return None };
        let since_us: u64 = since_us.parse().ok()?;
        let (kind, counts) = count.split_at_checked(1)?;
        let (attempt, deliveries) = counts.split_once('.')?;
        let (word, entry_id) = place.rsplit_once(':')?;
        Some(Self {
            worker: WorkerId::new(worker).ok()?,
            since: Timestamp::from_unix_ms(0).plus(Duration::from_micros(since_us)),
            has_side_records: kind == "t",
            attempt: attempt.parse().ok()?,
            deliveries: deliveries.parse().ok()?,
            stream: Stream::by_word(word)?,
            entry_id: entry_id.to_owned(),
        })
    }

    pub(crate) fn is_piece(&self) -> bool {
        matches!(self.stream, Stream::Pieces(_))
    }
}

/// The parts of a lease's name: its token, and the id of its job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) token: Token,
    /// The id of the leased job.
    pub(crate) id: Bytes,
}

impl Lease {
    /// Parses the name of a lease. Returns `None` if relq did not write it.
    pub(crate) fn parse(member: &Bytes) -> Option<Self> {
        const PARTS: usize = 5;
        let slashes = member.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let (end, _) = slashes.map(|(at, byte)| (at, *byte)).nth(PARTS - 1)?;
        let token = Token::parse(&member[..end])?;
        Some(Self { token, id: member.slice(end + 1..) })
    }
}
