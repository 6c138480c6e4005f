//! The forms of an element of the ring.
//!
//! ```text
//!  waiting      a bare payload of any client's, or an entry (relq_redis::entry)
//!  in process   F5 52 51 01  80  n  token  entry
//! ```
//!
//! `n` is one byte, the token's length; the entry counts the running delivery. No entry
//! has the flags `80`, so an element of this form that another client pushed counts as
//! a malformed entry (R20). The mark decides which elements are in process: an element
//! whose token has no mark only looks like one.

use bytes::Bytes;
use relq_redis::entry::MARK;

/// The number of bytes before the token in an element in process.
const HEAD: usize = 6;
const FLAGS: usize = 4;
const IN_PROCESS: u8 = 0x80;

/// The parts of an element in process: the token of the lease, and the job's entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InProcess {
    pub(crate) token: Bytes,
    pub(crate) entry: Bytes,
}

impl InProcess {
    /// Splits an element that has the form of a job in process into its token and its
    /// entry, which share the memory of `element`. Only a mark proves that the job is
    /// in process.
    pub(crate) fn read(element: &Bytes) -> Option<Self> {
        let is_marked = element.starts_with(&MARK);
        if !is_marked || *element.get(FLAGS)? != IN_PROCESS {
            return None;
        }
        let entry_at = HEAD + usize::from(*element.get(HEAD - 1)?);
        if entry_at == HEAD || element.len() < entry_at {
            return None;
        }
        let (token, entry) = (element.slice(HEAD..entry_at), element.slice(entry_at..));
        Some(Self { token, entry })
    }
}

/// Removes the entry from an element in process. The rest contains the token, which
/// identifies the lease.
pub(crate) fn without_entry(element: &Bytes) -> Bytes {
    InProcess::read(element).map_or_else(
        || element.clone(),
        |parts| element.slice(..element.len() - parts.entry.len()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element() -> Bytes {
        Bytes::from_static(b"\xF5RQ\x01\x80\x03w/1entry")
    }

    #[test]
    fn an_element_in_process_is_read_without_a_copy() {
        let element = element();

        let parts = InProcess::read(&element).unwrap();

        assert_eq!((&parts.token[..], &parts.entry[..]), (&b"w/1"[..], &b"entry"[..]));
        assert_eq!(&without_entry(&element)[..], b"\xF5RQ\x01\x80\x03w/1");
    }

    #[test]
    fn an_element_cut_short_or_without_a_token_is_not_in_process() {
        for length in 0..9 {
            assert_eq!(InProcess::read(&element().slice(..length)), None, "{length}");
        }
        assert_eq!(InProcess::read(&Bytes::from_static(b"\xF5RQ\x01\x80\0x")), None);
        assert_eq!(InProcess::read(&Bytes::from_static(b"\xF5RQ\x01\x20\x01xy")), None);
    }
}
