//! How a job is written as one element of a list or one field of a hash.
//!
//! ```text
//!  offset  bytes
//!  0       4      mark: F5 52 51 01; no UTF-8 text begins with F5
//!  4       1      flags: 1 indexed id, 2 unique key, 4 expiry, 8 lease,
//!                 16 headers, 32 bare, 64 piece of a batch, 128 held
//!  5       1      priority, 0 to 9; plus 16 enqueue time, 32 ready time,
//!                 64 kept result
//!  6       2      deliveries so far
//!  8       2      deliveries at most
//!  10      1 + n  id
//!          8      when it expires, ms since 1970, 0 never     (flag 4)
//!          8      its lease, ms                               (flag 8)
//!          8      how long its result is kept, ms             (64)
//!          8      its delay, ms                               (flag 128)
//!          1 + n  the id of its leader                        (flag 128)
//!          1 + n  its unique key                              (flag 2)
//!          1 + n  its batch                                   (flag 64)
//!          4 + n  its headers: 4 + name, 4 + value, …         (flag 16)
//!          rest   payload
//!          6      when it was pushed, ms since 1970           (16)
//!          6      when it became ready again, ms since 1970   (32)
//! ```
//!
//! The id of most jobs says when they were pushed (`timed_id.rs`), and then the entry need
//! not. The times are at the end, where a script that only moves jobs need not look for
//! them. A job is held until its leader is done (R30); the step that releases it removes the
//! flag and both fields.
//!
//! Numbers are unsigned and big-endian. An element that does not begin with the mark is
//! a bare payload that another client pushed (R20). The step that leases it adds a
//! header with the flag `bare`.

mod field;

use std::{num::NonZeroU16, time::Duration};

use bytes::{BufMut, Bytes};
use relq_core::{
    Headers, JobId, NewJob, Priority, batch::BatchId, environment::Timestamp,
    limits::DEFAULT_MAX_ATTEMPTS, unique::UniqueKey,
};

use self::field::{
    TIME, batch_of, delay_and_leader_of, headers_of, put_headers, put_short,
    put_short_time, short_text, short_time, take, take_end, time_of, u8_of, u16_of,
    u64_of, unique_key_of,
};
use crate::timed_id;

/// The first bytes of every entry. The last of them is the version of the layout.
pub const MARK: [u8; 4] = [0xF5, b'R', b'Q', 1];

/// Lua functions that read and rewrite entries, for
/// [`Script::with_library`](crate::Script::with_library).
pub const LUA: &str = include_str!("../lua/entry.lua");

/// The time of the push in an entry for a script that sets it, because only the server
/// knows the exact time.
pub const SET_BY_SCRIPT: Timestamp = Timestamp::from_unix_ms(0);

/// The number of bytes in an entry before the byte with the length of the id.
const FIXED: usize = 10;

/// Where an entry has its flags.
const FLAGS: usize = 4;

/// Where an entry has the number of its deliveries.
const ATTEMPT: usize = 6;

const INDEXED: u8 = 1;
const UNIQUE: u8 = 2;
const EXPIRES: u8 = 4;
const LEASE: u8 = 8;
const HEADERS: u8 = 16;
const BARE: u8 = 32;
const PIECE: u8 = 64;
const HELD: u8 = 128;

/// In the byte of the priority: the entry ends with these times.
const ENQUEUE_TIME: u8 = 16;
const READY_TIME: u8 = 32;

/// In the byte of the priority: the result of the job is kept (R29).
const KEPT_RESULT: u8 = 64;

/// The error for an entry that cannot be read, with the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed entry: {0}")]
pub struct Malformed(&'static str);

impl Malformed {
    /// The reason why the entry cannot be read.
    pub fn reason(self) -> &'static str {
        self.0
    }
}

/// The fields of a stored job.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// The job's id.
    pub id: JobId,
    /// Whether the id must be remembered: the client chose it (R4), or the result of the
    /// job is kept by it (R29).
    pub is_indexed: bool,
    /// Whether another client pushed the job as a bare payload (R20).
    pub is_bare: bool,
    /// The job's priority among the ready jobs (R15).
    pub priority: Priority,
    /// The number of deliveries so far.
    pub attempt: u16,
    /// How many times the job may be delivered before it is buried.
    pub max_attempts: NonZeroU16,
    /// When the job expires; `None` if it does not expire.
    pub expires_at: Option<Timestamp>,
    /// The job's own lease length; `None` if the claim decides it.
    pub lease: Option<Duration>,
    /// How long the result of the job is kept; `None` if it is not kept.
    pub keep_result: Option<Duration>,
    /// The job that must be done before this one becomes ready; `None` if the job is not
    /// held (R30).
    pub leader: Option<JobId>,
    /// The delay of a held job, which begins when its leader is done; zero for any other
    /// job.
    pub delay: Duration,
    /// When the job was pushed; `None` if its producer did not record it.
    pub enqueued_at: Option<Timestamp>,
    /// The unique key of the job, if it has one.
    pub unique: Option<UniqueKey>,
    /// The batch that the job is a piece of, or `None`.
    pub batch: Option<BatchId>,
    /// The job's headers, as the producer set them.
    pub headers: Headers,
    /// The payload, as it was pushed.
    pub payload: Bytes,
}

impl Entry {
    /// Whether `element` begins with relq's mark. The entry behind the mark may still
    /// be malformed.
    pub fn is_marked(element: &[u8]) -> bool {
        element.starts_with(&MARK)
    }

    /// Whether the end of the job changes more than the job itself: an id to remember
    /// or a unique key to free.
    pub fn has_side_records(&self) -> bool {
        self.is_indexed || self.unique.is_some()
    }

    /// The reason why no worker can run a bare payload that begins with relq's mark (R20).
    /// `None` for any other job.
    pub fn malformed_payload(&self) -> Option<Malformed> {
        let is_wrong = self.is_bare && Self::is_marked(&self.payload);
        is_wrong.then(|| {
            Self::decode(&self.payload).err().unwrap_or(Malformed("unreadable"))
        })
    }

    /// Reads an entry. The payload shares the memory of `element`.
    ///
    /// # Errors
    /// When the element does not follow the layout.
    pub fn decode(element: &Bytes) -> Result<Self, Malformed> {
        let mut rest = element.clone();
        let Fixed { flags, times, keeps_result, priority, attempt, max_attempts } =
            Fixed::read(&mut rest)?;
        let id = short_text(&mut rest)?;
        let id = JobId::new(id).map_err(|_| Malformed("the id is not allowed"))?;
        let has = |flag| flags & flag != 0;
        let expires_at =
            has(EXPIRES).then(|| time_of(&mut rest)).transpose()?.flatten();
        let lease = has(LEASE).then(|| u64_of(&mut rest)).transpose()?;
        let keep_result = keeps_result.then(|| u64_of(&mut rest)).transpose()?;
        let held = has(HELD).then(|| delay_and_leader_of(&mut rest)).transpose()?;
        let (delay, leader) = held.unzip();
        let unique = has(UNIQUE).then(|| unique_key_of(&mut rest)).transpose()?;
        let batch = has(PIECE).then(|| batch_of(&mut rest)).transpose()?;
        let headers =
            if has(HEADERS) { headers_of(&mut rest)? } else { Headers::default() };
        let recorded = take_times(&mut rest, times)?;
        let is_made_here = !has(INDEXED) && !has(BARE);
        let in_its_id = || timed_id::time_of(&id).filter(|_| is_made_here);
        Ok(Self {
            enqueued_at: recorded.or_else(in_its_id),
            id,
            is_indexed: has(INDEXED),
            is_bare: has(BARE),
            priority,
            attempt,
            max_attempts,
            expires_at,
            lease: lease.map(Duration::from_millis),
            keep_result: keep_result.map(Duration::from_millis),
            leader,
            delay: delay.unwrap_or_default(),
            unique,
            batch,
            headers,
            payload: rest,
        })
    }
}

/// The fields of fixed length at the start of every entry, before the id.
struct Fixed {
    flags: u8,
    /// Which times the entry ends with.
    times: u8,
    keeps_result: bool,
    priority: Priority,
    attempt: u16,
    max_attempts: NonZeroU16,
}

impl Fixed {
    fn read(rest: &mut Bytes) -> Result<Self, Malformed> {
        if take(rest, MARK.len())? != MARK[..] {
            return Err(Malformed("the mark is missing"));
        }
        let flags = u8_of(rest)?;
        let level = u8_of(rest)?;
        let times = level & (ENQUEUE_TIME | READY_TIME);
        let keeps_result = level & KEPT_RESULT != 0;
        let level = level & !times & !KEPT_RESULT;
        let priority = Priority::new(level).ok_or(Malformed("no such priority"))?;
        let attempt = u16_of(rest)?;
        let max_attempts = NonZeroU16::new(u16_of(rest)?)
            .ok_or(Malformed("no attempts are allowed"))?;
        Ok(Self { flags, times, keeps_result, priority, attempt, max_attempts })
    }
}

/// Takes the recorded times off the end of an entry. Returns the time of the push if it is
/// one of them.
fn take_times(rest: &mut Bytes, times: u8) -> Result<Option<Timestamp>, Malformed> {
    if times & READY_TIME != 0 {
        take_end(rest, TIME)?;
    }
    (times & ENQUEUE_TIME != 0)
        .then(|| take_end(rest, TIME).map(short_time))
        .transpose()
}

/// Encodes a job as an entry. `pushed_at` is the time of the push, or [`SET_BY_SCRIPT`].
/// `None` leaves the time out of the entry, because the id contains it or because it is not
/// known.
///
/// The time of expiry is written as zero. The push script replaces it, because only the
/// server knows the exact time. A job that follows another one is written as a held job; the
/// script changes that if its leader is done already.
pub fn encode(job: &NewJob, id: &JobId, pushed_at: Option<Timestamp>) -> Vec<u8> {
    encode_in(job, id, None, pushed_at)
}

/// Encodes a new piece of a batch as an entry, in the same way as [`encode`]. The script
/// that adds it sets the time of the push.
pub fn encode_piece(job: &NewJob, id: &JobId, batch: &BatchId) -> Vec<u8> {
    encode_in(job, id, Some(batch), Some(SET_BY_SCRIPT))
}

/// Encodes a job that is restored (R34) as an entry with that many deliveries, in the same
/// way as [`encode`].
pub fn encode_restored(
    job: &NewJob,
    id: &JobId,
    attempt: u16,
    pushed_at: Option<Timestamp>,
) -> Vec<u8> {
    let mut out = encode(job, id, pushed_at);
    out[ATTEMPT..ATTEMPT + size_of::<u16>()].copy_from_slice(&attempt.to_be_bytes());
    out
}

fn encode_in(
    job: &NewJob,
    id: &JobId,
    batch: Option<&BatchId>,
    pushed_at: Option<Timestamp>,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(FIXED + 64 + job.payload.len());
    let flags = flags_of(job) | if batch.is_some() { PIECE } else { 0 };
    put_fixed(&mut out, flags, level_of(job, pushed_at), 0, job.max_attempts);
    put_short(&mut out, id.as_str());
    if job.expires_in.is_some() {
        out.put_u64(0);
    }
    if let Some(lease) = job.lease {
        out.put_u64(millis(lease));
    }
    if let Some(keep_result) = job.keep_result {
        out.put_u64(millis(keep_result));
    }
    if let Some(leader) = &job.after {
        out.put_u64(millis(job.delay));
        put_short(&mut out, leader.as_str());
    }
    if let Some(unique) = &job.unique {
        put_short(&mut out, unique.key.as_str());
    }
    if let Some(batch) = batch {
        put_short(&mut out, batch.as_str());
    }
    if !job.headers.is_empty() {
        let headers = job.headers.iter();
        let headers = headers.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        put_headers(&mut out, &headers.collect::<Vec<_>>());
    }
    out.extend_from_slice(&job.payload);
    if let Some(pushed_at) = pushed_at {
        put_short_time(&mut out, pushed_at);
    }
    out
}

/// Returns the bytes of the id in an entry. A script has checked that the entry follows
/// the layout, but not that the id is a valid [`JobId`].
pub fn id_of(element: &Bytes) -> Bytes {
    let length = element.get(FIXED).copied().map_or(0, usize::from);
    let start = (FIXED + 1).min(element.len());
    element.slice(start..(start + length).min(element.len()))
}

/// The start of the entry that a bare payload gets when it is leased: all fields before
/// the id's length, with one delivery counted. A script appends the id and the payload.
pub fn bare_header() -> Vec<u8> {
    bare_header_after(1)
}

/// Returns the start of the entry that a bare payload gets when it is leased, with no
/// delivery counted. Patterns use it that count a delivery when it ends.
pub fn uncounted_bare_header() -> Vec<u8> {
    bare_header_after(0)
}

/// Encodes a bare payload with headers as the entry that it gets when it is leased, with no
/// delivery counted. If a header is not UTF-8, the entry cannot be read.
pub fn encode_bare(id: &str, headers: &[(&[u8], &[u8])], payload: &[u8]) -> Vec<u8> {
    let mut out = uncounted_bare_header();
    put_short(&mut out, id);
    if !headers.is_empty() {
        out[FLAGS] |= HEADERS;
        put_headers(&mut out, headers);
    }
    out.extend_from_slice(payload);
    out
}

fn bare_header_after(deliveries: u16) -> Vec<u8> {
    let mut out = Vec::with_capacity(FIXED);
    let priority = Priority::NORMAL.level();
    put_fixed(&mut out, BARE, priority, deliveries, DEFAULT_MAX_ATTEMPTS);
    out
}

/// The duration in milliseconds, rounded up so that no time limit becomes shorter.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// Whether the id of a new job must be remembered: the client chose it (R4), or the result
/// of the job is kept by it (R29).
pub fn is_indexed(job: &NewJob) -> bool {
    job.id.is_some() || job.keep_result.is_some()
}

fn flags_of(job: &NewJob) -> u8 {
    let set = |is_set, flag| if is_set { flag } else { 0 };
    set(is_indexed(job), INDEXED)
        | set(job.unique.is_some(), UNIQUE)
        | set(job.expires_in.is_some(), EXPIRES)
        | set(job.lease.is_some(), LEASE)
        | set(!job.headers.is_empty(), HEADERS)
        | set(job.after.is_some(), HELD)
}

/// The priority of a new job, with the bits that say what else its entry has.
fn level_of(job: &NewJob, pushed_at: Option<Timestamp>) -> u8 {
    let times = if pushed_at.is_some() { ENQUEUE_TIME } else { 0 };
    let kept = if job.keep_result.is_some() { KEPT_RESULT } else { 0 };
    kept | times | job.priority.level()
}

fn put_fixed(
    out: &mut Vec<u8>,
    flags: u8,
    level: u8,
    attempt: u16,
    max_attempts: NonZeroU16,
) {
    out.extend_from_slice(&MARK);
    out.put_u8(flags);
    out.put_u8(level);
    out.put_u16(attempt);
    out.put_u16(max_attempts.get());
}

#[cfg(test)]
mod tests;
