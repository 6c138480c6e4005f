//! The lines and numbers that requests and replies have in common.

use std::ops::Range;

/// The longest header of a frame: a sign, digits, and some spare room.
const MAX_HEADER: usize = 64;

/// Bytes that do not follow the protocol, and the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

/// The header that begins at `from`, without its line end, once it is complete.
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
