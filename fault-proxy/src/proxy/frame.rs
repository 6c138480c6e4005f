//! The lines and numbers of the Redis protocol, which requests and replies both
//! contain.

use std::ops::Range;

/// The largest header in bytes: the type byte of RESP, such as `$` or `*`, and a
/// length, with spare room.
const MAX_HEADER: usize = 64;

/// The reason why some bytes do not follow the Redis protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

/// The position of the header that begins at `from`, without its line end. `None` while
/// it is incomplete.
pub(crate) fn line(
    buffer: &[u8],
    from: usize,
) -> Result<Option<Range<usize>>, Malformed> {
    let rest = &buffer[from..];
    match rest.iter().take(MAX_HEADER).position(|byte| *byte == b'\n') {
        Some(at) if at > 0 && rest[at - 1] == b'\r' => Ok(Some(from..from + at - 1)),
        Some(_) => Err(Malformed("a line must end in CR LF")),
        None if rest.len() >= MAX_HEADER => Err(Malformed("the header is too long")),
        None => Ok(None),
    }
}

pub(crate) fn number(digits: &[u8]) -> Result<i64, Malformed> {
    let digits = std::str::from_utf8(digits).ok();
    digits.and_then(|digits| digits.parse().ok()).ok_or(Malformed("expected a number"))
}
