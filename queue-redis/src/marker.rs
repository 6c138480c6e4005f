//! The marker of a queue: it names the backend that owns the keys (R25).
//!
//! ```text
//!  {Q}:marker  STRING  relq 4 processing-list mode=shared
//!                           | |               '-- options, as in a URL
//!                           | '-- backend
//!                           '-- format of the keys
//! ```
//!
//! The marker is written before the first write to a queue and stays until a client
//! deletes the key. A relq that finds a newer format, or an option that it does not
//! know, refuses to use the queue. So later versions may store keys in another way.

use std::fmt;

/// The format of the keys that this version of relq writes. In format 1 no entry ends with
/// times, and no id says when its job was pushed. In format 2 no entry says that the result
/// of its job is kept. In format 3 no job is held.
pub(crate) const FORMAT: u32 = 4;

/// The first word of every marker.
const MARK: &str = "relq";

/// The backend that owns the keys of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    pub(crate) format: u32,
    pub(crate) backend: String,
    pub(crate) options: Vec<String>,
}

impl Marker {
    pub(crate) fn new(
        backend: &str,
        options: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let options = options.into_iter().map(Into::into).collect();
        Self { format: FORMAT, backend: backend.to_owned(), options }
    }

    /// Parses the value of the marker's key; `None` if it is not a marker.
    pub(crate) fn parse(value: &[u8]) -> Option<Self> {
        let is_shown = |byte: &u8| byte.is_ascii_graphic() || *byte == b' ';
        let text = std::str::from_utf8(value).ok()?;
        let mut words = text.split(' ').filter(|_| value.iter().all(is_shown));
        if words.next()? != MARK {
            return None;
        }
        let (format, backend) = (words.next()?.parse().ok()?, words.next()?.to_owned());
        Some(Self { format, backend, options: words.map(str::to_owned).collect() })
    }

    /// The backend's name.
    pub fn backend(&self) -> &str {
        &self.backend
    }

    /// The backend's options, each in the form `name=value` that a URL has.
    pub fn options(&self) -> &[String] {
        &self.options
    }

    /// Whether the marker has the format that this version writes. The first write to a
    /// queue of an earlier format raises the number.
    pub(crate) fn is_current(&self) -> bool {
        self.format == FORMAT
    }

    /// The same marker in the format that this version writes.
    pub(crate) fn raised(self) -> Self {
        Self { format: FORMAT, ..self }
    }

    /// Whether a newer version of relq has written the marker, so that this one must
    /// not use the queue.
    pub fn is_newer(&self) -> bool {
        self.format > FORMAT
    }
}

/// The text that is stored under the marker's key.
impl fmt::Display for Marker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { format, backend, options } = self;
        write!(f, "{MARK} {format} {backend}")?;
        options.iter().try_for_each(|option| write!(f, " {option}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_read_as_it_is_written() {
        for (backend, options, text) in [
            ("zset", &[][..], "relq 4 zset"),
            ("circular", &["finish=lrem"], "relq 4 circular finish=lrem"),
        ] {
            let marker = Marker::new(backend, options.iter().copied());

            assert_eq!(marker.to_string(), text);
            assert_eq!(Marker::parse(text.as_bytes()), Some(marker));
        }
    }

    #[test]
    fn a_newer_format_is_known_as_one() {
        let marker = Marker::parse(b"relq 5 zset partitions=4").unwrap();

        assert!(marker.is_newer());
        assert_eq!(marker.options(), ["partitions=4"]);
    }

    #[test]
    fn a_damaged_marker_is_not_read() {
        let damaged: [&[u8]; 7] = [
            b"",
            b"relq",
            b"relq 1",
            b"relq one zset",
            b"celery 1 zset",
            b"relq 4 zs\x1bet",
            b"relq 4 zset \xff",
        ];
        for value in damaged {
            assert_eq!(Marker::parse(value), None, "{value:?}");
        }
    }
}
