//! The records of a reading, as bytes that are sorted.
//!
//! ```text
//!  1      'i' for a job's id, 'p' for a pair of lease and element
//!  4 + n  the id, or the name of the pair
//!  1      the source: the kind of key in which the record was seen
//!  rest   the value that distinguishes records of one source, or the unique key
//! ```
//!
//! So the records of one id follow each other, and the places of a job come before the
//! records that must belong to it.

use std::mem;

use bytes::Bytes;

use crate::external_sort::ExternalSort;

const ID: u8 = b'i';
const PAIR: u8 = b'p';

/// The kind of key in which a record was seen. The records of one id are sorted in this
/// order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// A sorted set of ids, whose entries are in the hash `jobs`. The record's value is
    /// the number of the set.
    ById,
    /// A list or another key that may have equal elements.
    Element,
    /// A job that is stored under a name of its own. The record's value is the name.
    Named,
    /// The sorted set of dead jobs.
    Dead,
    /// The hash `jobs` of entries.
    Entry,
    /// The hash `errors` of last errors.
    Error,
    /// The sorted set `ids` of client-made ids, for a job that has not ended.
    BoundId,
    /// The hash `unique`. The record has the id of the job that holds a unique key, and
    /// its value is the unique key.
    Holder,
    /// A lease of a pair. The record's value is the member of its sorted set.
    Lease,
    /// A leased element of a pair. The record has no value.
    LeasedElement,
    /// The entry of a held job. The record's value is the id of its leader.
    Held,
    /// The same entry. The record has the id of the leader, and its value is the size of
    /// the entry and the id of the held job.
    HeldBy,
    /// The list of a leader's followers. The record has the id of a follower, and its
    /// value is the id of the leader.
    Listed,
    /// The same list. The record has the id of the leader, and its value is that of a
    /// follower.
    Follower,
    /// The size of the followers' entries in that list.
    FollowerBytes,
    /// The sorted set of orphans.
    Orphan,
}

impl Source {
    const ALL: [Self; 16] = [
        Self::ById,
        Self::Element,
        Self::Named,
        Self::Dead,
        Self::Entry,
        Self::Error,
        Self::BoundId,
        Self::Holder,
        Self::Lease,
        Self::LeasedElement,
        Self::Held,
        Self::HeldBy,
        Self::Listed,
        Self::Follower,
        Self::FollowerBytes,
        Self::Orphan,
    ];

    /// Whether equal records of this source are separate elements. Equal records of the
    /// other sources are one record that a scan returned twice.
    pub(super) fn repeats(self) -> bool {
        matches!(self, Self::Element | Self::LeasedElement)
    }
}

/// One fact that a reading found in a key: a job, or a value that belongs to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record<'a> {
    table: u8,
    pub(super) name: &'a [u8],
    pub(super) source: Source,
    pub(super) value: &'a [u8],
}

impl<'a> Record<'a> {
    /// Creates the record of a job with this id, or of a value that belongs to that
    /// job.
    pub(super) fn of_id(id: &'a [u8], source: Source, value: &'a [u8]) -> Self {
        Self { table: ID, name: id, source, value }
    }

    /// Creates the record of a lease or of a leased element with this name.
    pub(super) fn of_pair(name: &'a [u8], source: Source, value: &'a [u8]) -> Self {
        Self { table: PAIR, name, source, value }
    }

    /// Creates the record of a field or member `name`, with its `value`, in a key of
    /// the bookkeeping. Returns `None` for a value that needs no existing job: the id
    /// of an ended job, or a unique key that no job holds.
    pub(super) fn in_key(
        source: Source,
        name: &'a Bytes,
        value: &'a Bytes,
    ) -> Option<Self> {
        match source {
            Source::Holder => {
                let space = value.iter().position(|byte| *byte == b' ')?;
                Some(Self::of_id(&value[space + 1..], source, name))
            }
            Source::BoundId if &value[..] != b"inf" => None,
            _ => Some(Self::of_id(name, source, b"")),
        }
    }

    pub(super) fn push_to(self, sort: &mut ExternalSort) {
        let length = u32::try_from(self.name.len()).expect("a name is below 4 GiB");
        let head = [self.table];
        let source = [self.source as u8];
        sort.push(&[&head, &length.to_be_bytes(), self.name, &source, self.value]);
    }

    /// Decodes the bytes that `push_to` has written; `None` if they are damaged.
    pub(super) fn read(bytes: &'a [u8]) -> Option<Self> {
        let (table, rest) = bytes.split_first()?;
        let (length, rest) = rest.split_first_chunk::<{ mem::size_of::<u32>() }>()?;
        let (name, rest) =
            rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        let (source, value) = rest.split_first()?;
        let source = *Source::ALL.get(usize::from(*source))?;
        Some(Self { table: *table, name, source, value })
    }

    /// Whether both records have the same id, or the same lease name.
    pub(super) fn is_beside(&self, other: &Record<'_>) -> bool {
        (self.table, self.name) == (other.table, other.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written() {
        for (number, source) in Source::ALL.into_iter().enumerate() {
            assert_eq!(source as usize, number);
            for record in [
                Record::of_id(b"an id", source, b"\0 value"),
                Record::of_pair(b"", source, b""),
            ] {
                let mut sort = ExternalSort::new(1);
                record.push_to(&mut sort);
                let mut sorted = sort.into_sorted().unwrap();

                let bytes = sorted.next().unwrap().unwrap();

                assert_eq!(Record::read(bytes), Some(record));
            }
        }
    }
}
