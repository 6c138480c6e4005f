//! Splits the bytes that a client sends into requests, without changing them. A request
//! is an array of bulk strings.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    ops::Range,
};

use bytes::{Bytes, BytesMut};

use super::frame::{Malformed, line, number};

/// The largest number of arguments of a command. It and [`MAX_ARG_BYTES`] are limits of
/// Redis itself.
const MAX_ARGS: i64 = 1024 * 1024;
const MAX_ARG_BYTES: usize = 512 * 1024 * 1024;

/// The most bytes that are reserved for an argument before it has arrived, because a
/// client may announce more bytes than it sends.
const MAX_RESERVED: usize = 32 * 1024 * 1024;

/// One command as the client sent it.
#[derive(Debug, Clone)]
pub struct Request {
    bytes: Bytes,
    args: Vec<Range<usize>>,
    /// The position of the first argument's header.
    head: usize,
}

impl Request {
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The number of its arguments, its name among them.
    pub(crate) fn len(&self) -> usize {
        self.args.len()
    }

    /// The argument at that index. The name has index 0.
    pub fn arg(&self, at: usize) -> Option<&[u8]> {
        Some(&self.bytes[self.args.get(at)?.clone()])
    }

    /// Its arguments in their order, its name first.
    pub fn args(&self) -> impl Iterator<Item = &[u8]> {
        self.args.iter().map(|range| &self.bytes[range.clone()])
    }

    /// The argument at that index in upper case, for command names and keywords. Empty
    /// if there is none.
    pub fn word(&self, at: usize) -> String {
        String::from_utf8_lossy(self.arg(at).unwrap_or_default()).to_ascii_uppercase()
    }

    /// A digest of the command and its arguments.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.bytes.hash(&mut hasher);
        hasher.finish()
    }

    /// The request with another argument at that index, as pieces to send in order.
    pub(crate) fn with_arg(&self, at: usize, arg: &[u8]) -> Vec<Bytes> {
        vec![
            self.bytes.slice(..self.start_of(at)),
            bulk(arg),
            self.bytes.slice(self.start_of(at + 1)..),
        ]
    }

    /// The request with another argument at that index and more arguments at its end,
    /// as pieces to send in order.
    pub(crate) fn with_arg_and(
        &self,
        at: usize,
        arg: &[u8],
        more: &[String],
    ) -> Vec<Bytes> {
        let mut pieces = vec![
            Bytes::from(format!("*{}\r\n", self.len() + more.len())),
            self.bytes.slice(self.head..self.start_of(at)),
            bulk(arg),
            self.bytes.slice(self.start_of(at + 1)..),
        ];
        pieces.extend(more.iter().map(|arg| bulk(arg.as_bytes())));
        pieces
    }

    fn start_of(&self, at: usize) -> usize {
        if at == 0 { self.head } else { self.args[at - 1].end + 2 }
    }
}

/// The bytes of a command with these arguments, as a client sends them.
pub(crate) fn encode<'a>(args: impl ExactSizeIterator<Item = &'a [u8]>) -> Bytes {
    let mut bytes = BytesMut::from(format!("*{}\r\n", args.len()).as_bytes());
    args.for_each(|arg| bytes.extend_from_slice(&bulk(arg)));
    bytes.freeze()
}

/// The bytes of a bulk string with this text.
pub(crate) fn bulk(text: &[u8]) -> Bytes {
    let mut bytes = format!("${}\r\n", text.len()).into_bytes();
    bytes.extend_from_slice(text);
    bytes.extend_from_slice(b"\r\n");
    bytes.into()
}

/// The number of complete requests before the first malformed one. Benchmarks use it to
/// measure the cost of parsing.
pub fn requests_in(sent: &[u8]) -> usize {
    let (mut buffer, mut parser) = (BytesMut::from(sent), RequestParser::default());
    std::iter::from_fn(|| parser.next(&mut buffer).ok().flatten()).count()
}

/// The state of parsing the request at the head of the buffer. It remembers its
/// position, so that no byte is parsed twice even if a request arrives in small pieces.
#[derive(Debug, Default)]
pub(crate) struct RequestParser {
    at: usize,
    head: usize,
    wanted: Option<usize>,
    /// The length of the argument whose header was read. `None` before that.
    arg_bytes: Option<usize>,
    args: Vec<Range<usize>>,
}

impl RequestParser {
    /// Removes the next complete request from the buffer. `None` if it is incomplete.
    pub(crate) fn next(
        &mut self,
        buffer: &mut BytesMut,
    ) -> Result<Option<Request>, Malformed> {
        let Some(wanted) = self.wanted(buffer)? else { return Ok(None) };
        while self.args.len() < wanted {
            if !self.next_arg(buffer)? {
                return Ok(None);
            }
        }
        let done = std::mem::take(self);
        let bytes = buffer.split_to(done.at).freeze();
        Ok(Some(Request { bytes, args: done.args, head: done.head }))
    }

    fn wanted(&mut self, buffer: &BytesMut) -> Result<Option<usize>, Malformed> {
        if self.wanted.is_none() {
            let Some(line) = line(buffer, 0)? else { return Ok(None) };
            let [b'*', digits @ ..] = &buffer[line.clone()] else {
                return Err(Malformed("a command must be an array of bulk strings"));
            };
            let count = number(digits)?;
            if count > MAX_ARGS {
                return Err(Malformed("invalid multibulk length"));
            }
            // Redis ignores empty and null arrays, and sends no reply to them.
            self.wanted = Some(usize::try_from(count).unwrap_or(0));
            (self.at, self.head) = (line.end + 2, line.end + 2);
        }
        Ok(self.wanted)
    }

    fn next_arg(&mut self, buffer: &mut BytesMut) -> Result<bool, Malformed> {
        let Some(bytes) = self.arg_bytes(buffer)? else { return Ok(false) };
        let end = self.at + bytes;
        if buffer.len() < end + 2 {
            buffer.reserve((end + 2 - buffer.len()).min(MAX_RESERVED));
            return Ok(false);
        }
        if &buffer[end..end + 2] != b"\r\n" {
            return Err(Malformed("a bulk string exceeds its length"));
        }
        self.args.push(self.at..end);
        (self.at, self.arg_bytes) = (end + 2, None);
        Ok(true)
    }

    fn arg_bytes(&mut self, buffer: &BytesMut) -> Result<Option<usize>, Malformed> {
        if self.arg_bytes.is_none() {
            let Some(line) = line(buffer, self.at)? else { return Ok(None) };
            let [b'$', digits @ ..] = &buffer[line.clone()] else {
                return Err(Malformed("expected a bulk string"));
            };
            let bytes = usize::try_from(number(digits)?).ok();
            let Some(bytes) = bytes.filter(|bytes| *bytes <= MAX_ARG_BYTES) else {
                return Err(Malformed("invalid bulk length"));
            };
            (self.at, self.arg_bytes) = (line.end + 2, Some(bytes));
        }
        Ok(self.arg_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(words: &[&[u8]]) -> Request {
        let mut buffer = BytesMut::from(&encode(words.iter().copied())[..]);
        RequestParser::default().next(&mut buffer).unwrap().unwrap()
    }

    #[test]
    fn requests_are_cut_apart_however_they_are_split() {
        let sent: [&[&[u8]]; 3] =
            [&[b"GET", b""], &[], &[b"SET", b"a\r\n*1\r\n", b"\0"]];
        let bytes = sent.map(|words| encode(words.iter().copied())).concat();
        let (mut parser, mut buffer) = (RequestParser::default(), BytesMut::new());
        let mut cut = Vec::new();
        for byte in &bytes {
            buffer.extend_from_slice(&[*byte]);
            cut.extend(parser.next(&mut buffer).unwrap());
        }

        let args: Vec<Vec<&[u8]>> = cut.iter().map(|r| r.args().collect()).collect();
        assert_eq!(args, sent);
        let passed: Vec<_> = cut.iter().flat_map(|r| r.bytes().to_vec()).collect();
        assert_eq!(passed, bytes);
    }

    #[test]
    fn an_argument_is_replaced_and_the_rest_is_as_it_was() {
        for at in 0..3 {
            let mut words: [&[u8]; 3] = [b"one", b"two", b"three"];
            let request = request(&words);
            words[at] = b"other";

            let pieces = request.with_arg(at, b"other").concat();

            assert_eq!(pieces, encode(words.into_iter()));
        }
    }

    #[test]
    fn arguments_are_added_at_the_end() {
        let request = request(&[b"EVAL", b"script", b"0"]);

        let pieces = request.with_arg_and(1, b"other", &["7".to_owned()]).concat();

        let expected: [&[u8]; 4] = [b"EVAL", b"other", b"0", b"7"];
        assert_eq!(pieces, encode(expected.into_iter()));
    }

    #[test]
    fn an_argument_that_is_announced_and_does_not_come_costs_little() {
        let mut buffer = BytesMut::from(&b"*1\r\n$536870912\r\n"[..]);

        assert!(RequestParser::default().next(&mut buffer).unwrap().is_none());

        assert!(buffer.capacity() <= 2 * MAX_RESERVED);
    }
}
