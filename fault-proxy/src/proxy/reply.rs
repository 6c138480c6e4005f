//! Splits the bytes that a server sends into replies and announcements of RESP2 and
//! RESP3, without changing them.

use bytes::{Bytes, BytesMut};

use super::frame::{Malformed, line, number};

/// The number of complete replies before the first malformed one. Benchmarks use it to
/// measure the cost of parsing.
pub fn replies_in(sent: &[u8]) -> usize {
    let (mut buffer, mut parser) = (BytesMut::from(sent), ReplyParser::default());
    std::iter::from_fn(|| parser.next(&mut buffer).ok().flatten()).count()
}

/// The state of parsing the reply at the head of the buffer.
#[derive(Debug, Default)]
pub(crate) struct ReplyParser {
    at: usize,
    /// How many bytes of an incomplete line were already searched for the line end.
    searched: usize,
    /// How many values of the reply are still to come. `None` before its first byte.
    missing: Option<usize>,
}

impl ReplyParser {
    /// Removes the next complete reply from the buffer. `None` if it is incomplete.
    pub(crate) fn next(
        &mut self,
        buffer: &mut BytesMut,
    ) -> Result<Option<Bytes>, Malformed> {
        let mut missing = self.missing.unwrap_or(1);
        while missing > 0 {
            let Some(more) = self.value(buffer)? else {
                self.missing = Some(missing);
                return Ok(None);
            };
            missing = (missing - 1) + more;
        }
        let whole = std::mem::take(self).at;
        Ok(Some(buffer.split_to(whole).freeze()))
    }

    /// Skips one value, or the header of an aggregate. Returns how many values the
    /// aggregate has (0 for a single value). `None` if the bytes are incomplete.
    fn value(&mut self, buffer: &mut BytesMut) -> Result<Option<usize>, Malformed> {
        let Some(kind) = buffer.get(self.at).copied() else { return Ok(None) };
        if matches!(kind, b'+' | b'-' | b':' | b',' | b'#' | b'_' | b'(') {
            return Ok(self.text(buffer).then_some(0));
        }
        let Some(line) = line(buffer, self.at)? else { return Ok(None) };
        let count = number(&buffer[line.start + 1..line.end])?;
        let (count, after) = (usize::try_from(count).ok(), line.end + 2);
        let follow = match kind {
            b'$' | b'=' | b'!' => {
                return Ok(self.bytes(buffer, after, count).then_some(0));
            }
            b'*' | b'~' | b'>' => count.unwrap_or(0),
            b'%' => 2 * count.unwrap_or(0),
            // An attribute comes before the value that it describes, so one more
            // follows.
            b'|' => 2 * count.unwrap_or(0) + 1,
            _ => return Err(Malformed("unknown reply type")),
        };
        self.at = after;
        Ok(Some(follow))
    }

    fn text(&mut self, buffer: &BytesMut) -> bool {
        let from = self.searched.max(self.at);
        match buffer[from..].iter().position(|byte| *byte == b'\n') {
            Some(end) => self.at = from + end + 1,
            None => self.searched = buffer.len(),
        }
        self.at > from
    }

    fn bytes(
        &mut self,
        buffer: &mut BytesMut,
        from: usize,
        count: Option<usize>,
    ) -> bool {
        let end = count.map_or(from, |count| from + count + 2);
        if buffer.len() < end {
            buffer.reserve(end - buffer.len());
            return false;
        }
        self.at = end;
        true
    }
}

/// Whether the server refused a command with this reply.
pub fn is_error(reply: &[u8]) -> bool {
    matches!(reply.first(), Some(b'-' | b'!'))
}

/// A message that the server sends without a request, or as the reply to a
/// subscription.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Announcement<'a> {
    /// The kind: `message`, `subscribe`, `invalidate` and so on.
    pub(crate) kind: &'a [u8],
    /// The integer at the message's end, which is the current number of subscriptions.
    /// `None` if it does not end with an integer.
    pub(crate) count: Option<i64>,
}

impl<'a> Announcement<'a> {
    /// Parses an announcement of RESP2 or RESP3. `None` for an ordinary reply.
    pub(crate) fn read(reply: &'a [u8]) -> Option<Self> {
        if !matches!(reply.first(), Some(b'*' | b'>')) {
            return None;
        }
        let after_head = line(reply, 0).ok()??.end + 2;
        let kind_head = line(reply, after_head).ok()??;
        let [b'$', digits @ ..] = &reply[kind_head.clone()] else { return None };
        let from = kind_head.end + 2;
        let kind =
            reply.get(from..from + usize::try_from(number(digits).ok()?).ok()?)?;
        Some(Self { kind, count: last_number(reply) })
    }

    /// Whether the announcement confirms a command that changes subscriptions.
    pub(crate) fn is_confirmation(&self) -> bool {
        let kind = self.kind;
        kind.ends_with(b"subscribe")
    }

    /// Whether RESP2 has this kind of announcement. It has only confirmations and
    /// messages.
    pub(crate) fn is_pubsub(&self) -> bool {
        self.is_confirmation() || self.kind.ends_with(b"message")
    }
}

fn last_number(reply: &[u8]) -> Option<i64> {
    let line = reply.strip_suffix(b"\r\n")?;
    let start = line.iter().rposition(|byte| *byte == b'\n')? + 1;
    let [b':', digits @ ..] = &line[start..] else { return None };
    number(digits).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reply of each type in both protocol versions: complete, empty and null.
    const REPLIES: [&[u8]; 19] = [
        b"+OK\r\n",
        b"-ERR no\r\n",
        b":-42\r\n",
        b"$5\r\na\r\n$b\r\n",
        b"$0\r\n\r\n",
        b"$-1\r\n",
        b"*-1\r\n",
        b"*0\r\n",
        b"*2\r\n*1\r\n:1\r\n$1\r\nx\r\n",
        b"_\r\n",
        b"#t\r\n",
        b",-1.5e9\r\n",
        b"(3492890328409238509324850943850943825024385\r\n",
        b"!5\r\nERR x\r\n",
        b"=7\r\ntxt:abc\r\n",
        b"%2\r\n+a\r\n*1\r\n:1\r\n+b\r\n_\r\n",
        b"~1\r\n:1\r\n",
        b">2\r\n+kind\r\n*0\r\n",
        b"|1\r\n+ttl\r\n:3600\r\n*1\r\n:1\r\n",
    ];

    #[test]
    fn replies_are_cut_apart_however_they_are_split() {
        let (mut parser, mut buffer) = (ReplyParser::default(), BytesMut::new());
        let mut cut = Vec::new();
        for byte in REPLIES.concat() {
            buffer.extend_from_slice(&[byte]);
            cut.extend(parser.next(&mut buffer).unwrap());
        }

        assert_eq!(cut, REPLIES);
        assert!(buffer.is_empty());
    }

    #[test]
    fn replies_are_cut_apart_when_they_come_together() {
        let mut buffer = BytesMut::from(&REPLIES.concat()[..]);
        let mut parser = ReplyParser::default();

        let next = || parser.next(&mut buffer).unwrap();
        let cut: Vec<_> = std::iter::from_fn(next).collect();

        assert_eq!(cut, REPLIES);
    }

    #[test]
    fn bytes_that_are_no_reply_are_malformed() {
        for bytes in [&b"hello\r\n"[..], b"$x\r\n", b"*1\n", b"$1234567890\n"] {
            let mut buffer = BytesMut::from(bytes);

            assert!(ReplyParser::default().next(&mut buffer).is_err(), "{bytes:?}");
        }
    }

    #[test]
    fn announcements_are_known_in_both_versions() {
        let of_two = b"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:2\r\n";
        let of_three = b">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:2\r\n";
        let expected = Announcement { kind: b"subscribe", count: Some(2) };

        assert_eq!(Announcement::read(of_two), Some(expected));
        assert!(Announcement::read(of_three).unwrap().is_confirmation());
        assert_eq!(Announcement::read(b"*1\r\n:1\r\n"), None);
    }
}
