//! The fields of an entry as bytes. The functions that write a field stand beside those that
//! read it.

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use relq_core::{
    Headers, JobId, batch::BatchId, environment::Timestamp, unique::UniqueKey,
};

use super::Malformed;

/// The number of bytes of a time at the end of an entry.
pub(super) const TIME: usize = 6;

/// Removes and returns the first bytes.
pub(super) fn take(rest: &mut Bytes, length: usize) -> Result<Bytes, Malformed> {
    if rest.len() < length {
        return Err(Malformed("it is cut short"));
    }
    Ok(rest.split_to(length))
}

/// Removes and returns the last bytes.
pub(super) fn take_end(rest: &mut Bytes, length: usize) -> Result<Bytes, Malformed> {
    let start = rest.len().checked_sub(length).ok_or(Malformed("it is cut short"))?;
    Ok(rest.split_off(start))
}

pub(super) fn u8_of(rest: &mut Bytes) -> Result<u8, Malformed> {
    take(rest, 1).map(|mut bytes| bytes.get_u8())
}

pub(super) fn u16_of(rest: &mut Bytes) -> Result<u16, Malformed> {
    take(rest, 2).map(|mut bytes| bytes.get_u16())
}

pub(super) fn u64_of(rest: &mut Bytes) -> Result<u64, Malformed> {
    take(rest, 8).map(|mut bytes| bytes.get_u64())
}

/// Reads a time of eight bytes. Zero means that there is none.
pub(super) fn time_of(rest: &mut Bytes) -> Result<Option<Timestamp>, Malformed> {
    let ms = i64::try_from(u64_of(rest)?).map_err(|_| Malformed("no such time"))?;
    Ok((ms != 0).then(|| Timestamp::from_unix_ms(ms)))
}

/// Writes a time in six bytes: enough until the year 10889.
pub(super) fn put_short_time(out: &mut Vec<u8>, time: Timestamp) {
    let ms = u64::try_from(time.unix_ms()).unwrap_or(0);
    out.put_uint(ms.min((1 << (8 * TIME)) - 1), TIME);
}

pub(super) fn short_time(mut bytes: Bytes) -> Timestamp {
    let ms = bytes.get_uint(TIME);
    Timestamp::from_unix_ms(i64::try_from(ms).expect("six bytes fit"))
}

/// Writes the length of a text in one byte, and then the text. The types of ids and
/// unique keys ensure that it has at most 255 bytes.
pub(super) fn put_short(out: &mut Vec<u8>, text: &str) {
    out.put_u8(u8::try_from(text.len()).expect("ids and keys have up to 255 bytes"));
    out.extend_from_slice(text.as_bytes());
}

pub(super) fn short_text(rest: &mut Bytes) -> Result<String, Malformed> {
    let length = u8_of(rest)?;
    text(take(rest, usize::from(length))?)
}

/// Reads the delay of a held job and its leader.
pub(super) fn delay_and_leader_of(
    rest: &mut Bytes,
) -> Result<(Duration, JobId), Malformed> {
    let delay = Duration::from_millis(u64_of(rest)?);
    let leader = JobId::new(short_text(rest)?)
        .map_err(|_| Malformed("the leader's id is not allowed"))?;
    Ok((delay, leader))
}

pub(super) fn unique_key_of(rest: &mut Bytes) -> Result<UniqueKey, Malformed> {
    let key = short_text(rest)?;
    UniqueKey::new(key).map_err(|_| Malformed("the unique key is not allowed"))
}

pub(super) fn batch_of(rest: &mut Bytes) -> Result<BatchId, Malformed> {
    let id = short_text(rest)?;
    BatchId::new(id).map_err(|_| Malformed("the batch's id is not allowed"))
}

pub(super) fn put_headers(out: &mut Vec<u8>, headers: &[(&[u8], &[u8])]) {
    // Each name and each value follows its length, which takes four bytes.
    let bytes = headers.iter().map(|(name, value)| 8 + name.len() + value.len());
    put_length(out, bytes.sum());
    for piece in headers.iter().flat_map(|(name, value)| [name, value]) {
        put_length(out, piece.len());
        out.extend_from_slice(piece);
    }
}

pub(super) fn headers_of(rest: &mut Bytes) -> Result<Headers, Malformed> {
    let mut block = long_bytes(rest)?;
    let mut headers = Vec::new();
    while !block.is_empty() {
        let name = text(long_bytes(&mut block)?)?;
        headers.push((name, text(long_bytes(&mut block)?)?));
    }
    Ok(headers.into_iter().collect())
}

fn put_length(out: &mut Vec<u8>, length: usize) {
    out.put_u32(
        u32::try_from(length).expect("headers are far below 4 GiB by the limits"),
    );
}

fn long_bytes(rest: &mut Bytes) -> Result<Bytes, Malformed> {
    let length = take(rest, 4).map(|mut bytes| bytes.get_u32())?;
    take(rest, usize::try_from(length).map_err(|_| Malformed("a length is too large"))?)
}

fn text(bytes: Bytes) -> Result<String, Malformed> {
    String::from_utf8(bytes.into()).map_err(|_| Malformed("a text is not UTF-8"))
}
