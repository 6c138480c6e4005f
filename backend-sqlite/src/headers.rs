//! Encodes headers as bytes. Each name and each value is stored as its length, followed
//! by its text.

use relq_core::Headers;

/// Encodes headers for the column `headers`; `None` if there are none.
pub(crate) fn encode(headers: &Headers) -> Option<Vec<u8>> {
    if headers.is_empty() {
        return None;
    }
    let mut bytes = Vec::with_capacity(headers.total_bytes() + 16);
    for text in headers.iter().flat_map(|(name, value)| [name, value]) {
        let length = u32::try_from(text.len()).expect("below the limit on headers");
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    Some(bytes)
}

/// Decodes bytes that [`encode`] wrote. Returns `None` for any other bytes.
pub(crate) fn decode(bytes: Option<&[u8]>) -> Option<Headers> {
    let mut rest = bytes.unwrap_or_default();
    let mut headers = Vec::new();
    while !rest.is_empty() {
        headers.push((take_text(&mut rest)?, take_text(&mut rest)?));
    }
    Some(headers.into_iter().collect())
}

fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let (text, after) = after.split_at_checked(length)?;
    *rest = after;
    std::str::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R2: decoded headers have the same texts in the same order as the encoded ones.
    #[test]
    fn headers_come_back_as_they_were_set() {
        let headers: Headers =
            [("b", "2"), ("", "\0\n:"), ("ключ", "")].into_iter().collect();

        let bytes = encode(&headers).unwrap();

        assert_eq!(decode(Some(&bytes)), Some(headers));
    }

    /// R3: `decode` refuses truncated bytes and wrong lengths.
    #[test]
    fn damaged_headers_are_seen() {
        let bytes = encode(&[("name", "value")].into_iter().collect()).unwrap();

        for end in 1..bytes.len() {
            assert_eq!(decode(Some(&bytes[..end])), None, "cut at {end}");
        }
        assert_eq!(decode(Some(&[255; 8])), None);
    }
}
