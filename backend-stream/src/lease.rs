//! The name of a lease: a member of the sorted set, and the token of a receipt.
//!
//! ```text
//!  worker / since (us) / nonce of the claim - number / kind counts / stream : id / job
//!  \____________________ token of the receipt ____________________________/
//! ```
//!
//! No two leases share a name (R7): the nonce is the claim call's own. The worker comes
//! first, so that `release_worker` finds all that is its own by prefix. The kind is `t` for a job
//! with something to clean up behind it (a unique key, an id of the client's, an
//! earlier failure) or for a piece, and `p` for a plain one. The counts are its attempt
//! and, behind a dot, how often this entry was delivered: a job that failed is pushed
//! anew, and its entry says of how many attempts. The place is the letter of a stream,
//! or `b:` and the id of a batch, and the id of the entry there.

use std::time::Duration;

use bytes::Bytes;
use relq_core::{Receipt, Timestamp, WorkerId};

use crate::keys::Stream;

/// The member of the sorted set that a receipt stands for.
pub(crate) fn member(receipt: &Receipt) -> Vec<u8> {
    join(receipt.token(), receipt.job().as_str().as_bytes())
}

/// The member of a lease by its token and the id of its job.
pub(crate) fn join(token: &[u8], id: &[u8]) -> Vec<u8> {
    [token, b"/", id].concat()
}

/// What a token says of its lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) worker: WorkerId,
    pub(crate) since: Timestamp,
    /// Whether ending the job touches more than the job itself.
    pub(crate) has_side_records: bool,
    /// Which delivery it is, from 1.
    pub(crate) attempt: u16,
    /// Which delivery of the entry, from 1.
    pub(crate) deliveries: u16,
    pub(crate) stream: Stream,
    /// The id of the entry in its stream.
    pub(crate) entry_id: String,
}

impl Token {
    /// Reads a token, or `None` when relq did not write it.
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

/// What a member of the sorted set says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) token: Token,
    /// The id of its job.
    pub(crate) id: Bytes,
}

impl Lease {
    /// Reads a member, or `None` when relq did not write it.
    pub(crate) fn parse(member: &Bytes) -> Option<Self> {
        const PARTS: usize = 5;
        let slashes = member.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let (end, _) = slashes.map(|(at, byte)| (at, *byte)).nth(PARTS - 1)?;
        let token = Token::parse(&member[..end])?;
        Some(Self { token, id: member.slice(end + 1..) })
    }
}
