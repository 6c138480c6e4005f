//! Reads a queue's streams without changing them.

use std::collections::BTreeMap;

use bytes::Bytes;
use relq_core::{Error, batch::BatchId, error::Operation, operator::PeekOrder};
use relq_redis::{
    Reply,
    bookkeeping::in_order,
    code_of, command,
    entry::{self, Entry},
};

use crate::{
    keys::{GROUP, LEASED, READY, Stream},
    scripts::Store,
};

/// How many pending entries one command reads: more than a page has entries, because
/// XPENDING also lists pending ids whose stream entry was deleted.
const PENDING_PAGE: usize = 2000;

/// The field of an entry that holds the payload. The other fields are headers.
const PAYLOAD: &[u8] = b"job";

/// An entry as it was read from a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// The entry's id in the stream.
    pub(crate) id: Bytes,
    /// The entry's fields and values, alternating.
    pub(crate) fields: Vec<Bytes>,
}

impl Found {
    fn of(reply: Reply) -> Result<Self, Error> {
        let mut parts = reply.list()?.into_iter();
        let id = parts.next().map_or(Ok(Bytes::new()), Reply::bytes)?;
        let fields = parts.next().map_or(Ok(Vec::new()), Reply::list)?;
        let fields = fields.into_iter().map(Reply::bytes).collect::<Result<_, _>>()?;
        Ok(Self { id, fields })
    }

    /// Returns how many bytes all fields and values take.
    pub(crate) fn bytes(&self) -> usize {
        self.fields.iter().map(Bytes::len).sum()
    }

    /// Returns the job as it was pushed: the value of the only field or, if there are
    /// several fields, of the field `job`.
    pub(crate) fn element(&self) -> Bytes {
        if let [_, value] = &self.fields[..] {
            return value.clone();
        }
        self.payload().cloned().unwrap_or_default()
    }

    /// Returns the job as a claim leases it: the value of the only field or, if there are
    /// several, the entry that `bare_entry` in `pattern.lua` makes of them.
    pub(crate) fn entry(&self) -> Bytes {
        if let [_, value] = &self.fields[..] {
            return value.clone();
        }
        let others = self.pairs().filter(|(name, _)| &name[..] != PAYLOAD);
        let headers: Vec<_> =
            others.map(|(name, value)| (&name[..], &value[..])).collect();
        let id = String::from_utf8_lossy(&self.id);
        let payload = self.payload().map_or(&b""[..], |payload| &payload[..]);
        entry::encode_bare(&id, &headers, payload).into()
    }

    /// Whether the entry has several fields, and none is the payload.
    pub(crate) fn lacks_payload(&self) -> bool {
        self.fields.len() != 2 && self.payload().is_none()
    }

    /// The value of the last field that is called `job`.
    fn payload(&self) -> Option<&Bytes> {
        let values = self.pairs().filter(|(name, _)| &name[..] == PAYLOAD);
        values.map(|(_, value)| value).last()
    }

    fn pairs(&self) -> impl Iterator<Item = (&Bytes, &Bytes)> {
        self.fields.chunks_exact(2).map(|pair| (&pair[0], &pair[1]))
    }

    /// Whether this is the entry of the job with the given id. If another client added
    /// the job, the job's id is the id of its entry.
    pub(crate) fn is_of(&self, job: &[u8]) -> bool {
        let element = self.element();
        Entry::decode(&element)
            .map_or(&self.id[..] == job, |entry| entry.id.as_str().as_bytes() == job)
    }
}

/// The record of the consumer group about an entry that it has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pending {
    pub(crate) is_leased: bool,
    /// How often the entry was delivered.
    pub(crate) deliveries: u16,
}

impl Pending {
    fn of(reply: Reply) -> Result<Option<(Bytes, Self)>, Error> {
        let mut parts = reply.list()?.into_iter();
        let (Some(id), Some(consumer), Some(_idle), Some(count)) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Ok(None);
        };
        let consumer = consumer.bytes()?;
        let is_next = u64::from(&consumer[..] == READY.as_bytes());
        let deliveries = count.count()?.saturating_sub(is_next);
        let is_leased = &consumer[..] == LEASED.as_bytes();
        let deliveries = u16::try_from(deliveries).unwrap_or(u16::MAX);
        Ok(Some((id.bytes()?, Self { is_leased, deliveries })))
    }
}

/// Which entries of a stream to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range<'a> {
    /// The id behind which they begin in this order; empty at the first one.
    pub(crate) after: &'a [u8],
    pub(crate) order: PeekOrder,
    /// The maximum number of entries.
    pub(crate) count: usize,
}

impl<'a> Range<'a> {
    /// Up to `count` entries behind the id `after`, the oldest first.
    pub(crate) fn oldest_after(after: &'a [u8], count: usize) -> Self {
        Self { after, order: PeekOrder::AsServed, count }
    }
}

/// A range of a stream's entries, with the group's state of those that it has read.
#[derive(Debug)]
pub(crate) struct StreamPage {
    pub(crate) entries: Vec<Found>,
    /// The group's state of each entry of the page that is pending, by entry id.
    pub(crate) pending: BTreeMap<Bytes, Pending>,
}

impl StreamPage {
    /// Returns how many bytes all entries of the page take.
    pub(crate) fn bytes(&self) -> usize {
        self.entries.iter().map(Found::bytes).sum()
    }
}

impl Store {
    /// Reads a range of a stream's entries.
    pub(crate) async fn read_stream(
        &self,
        operation: Operation,
        stream: &Stream,
        Range { after, order, count }: Range<'_>,
    ) -> Result<StreamPage, Error> {
        let (command_name, first, end) = match order {
            PeekOrder::AsServed => ("XRANGE", "-", "+"),
            PeekOrder::NewestFirst => ("XREVRANGE", "+", "-"),
        };
        let start = match after {
            [] => first.as_bytes().to_vec(),
            after => [b"(", after].concat(),
        };
        let mut cmd = command(command_name);
        cmd.arg(self.keys.stream(stream)).arg(start).arg(end).arg("COUNT").arg(count);
        let entries = self.conn.call(operation, &cmd).await?.list()?;
        let entries: Vec<_> =
            entries.into_iter().map(Found::of).collect::<Result<_, _>>()?;
        let ends = match (order, entries.first(), entries.last()) {
            (PeekOrder::AsServed, Some(first), Some(last)) => Some((first, last)),
            (PeekOrder::NewestFirst, Some(last), Some(first)) => Some((first, last)),
            _ => None,
        };
        let pending = match ends {
            Some((first, last)) => {
                self.pending_among(operation, stream, &first.id, &last.id).await?
            }
            None => BTreeMap::new(),
        };
        Ok(StreamPage { entries, pending })
    }

    /// Reads the group's state of the pending entries from one id to another.
    async fn pending_among(
        &self,
        operation: Operation,
        stream: &Stream,
        first: &Bytes,
        last: &Bytes,
    ) -> Result<BTreeMap<Bytes, Pending>, Error> {
        let mut cmd = command("XPENDING");
        cmd.arg(self.keys.stream(stream)).arg(GROUP).arg(&first[..]).arg(&last[..]);
        cmd.arg(PENDING_PAGE);
        let pending = match self.conn.call(operation, &cmd).await {
            // No claim has run yet, so the group does not exist.
            Err(error) if code_of(&error) == Some("NOGROUP") => Vec::new(),
            answer => answer?.list()?,
        };
        pending.into_iter().filter_map(|one| Pending::of(one).transpose()).collect()
    }

    /// Returns the streams of a queue in the order in which claims serve them: first
    /// the streams of jobs, then those of the batches that have not completed.
    pub(crate) async fn streams(
        &self,
        operation: Operation,
    ) -> Result<Vec<Stream>, Error> {
        let streams = self.ranked_streams(operation).await?;
        Ok(streams.into_iter().map(|(_, stream)| stream).collect())
    }

    /// Returns the [`streams`](Self::streams), each with its place among them. It keeps
    /// its place when a batch completes or is created.
    pub(crate) async fn ranked_streams(
        &self,
        operation: Operation,
    ) -> Result<Vec<(u64, Stream)>, Error> {
        let mut cmd = command("ZRANGE");
        cmd.arg(self.keys.running()).arg(0).arg(-1).arg("WITHSCORES");
        let mut streams = in_order(&Stream::OF_JOBS);
        let (first, mut free) = (streams.len() as u64, streams.len() as u64);
        for pair in self.conn.call(operation, &cmd).await?.list()? {
            let mut pair = pair.parts()?;
            let (id, rank) = (pair.part().text()?, pair.part().number()?);
            let Ok(id) = BatchId::new(id) else { continue };
            // No two batches have the same rank, unless another client has changed one.
            let rank = first.saturating_add(u64::try_from(rank).unwrap_or(0));
            let place = rank.max(free);
            free = place.saturating_add(1);
            streams.push((place, Stream::Pieces(id)));
        }
        Ok(streams)
    }

    /// Returns the id of the last entry that the group has read from a stream.
    pub(crate) async fn last_read(&self, stream: &Stream) -> Result<Bytes, Error> {
        let mut cmd = command("XINFO");
        cmd.arg("GROUPS").arg(self.keys.stream(stream));
        let groups = match self.conn.call(Operation::Audit, &cmd).await {
            Err(error) if code_of(&error) == Some("ERR") => Vec::new(),
            answer => answer?.list()?,
        };
        for group in groups {
            let mut parts = group.list()?.into_iter();
            let (mut is_ours, mut last) = (false, Bytes::new());
            while let (Some(name), Some(value)) = (parts.next(), parts.next()) {
                match &name.bytes()?[..] {
                    b"name" => is_ours = &value.bytes()?[..] == GROUP.as_bytes(),
                    b"last-delivered-id" => last = value.bytes()?,
                    _ => {}
                }
            }
            if is_ours {
                return Ok(last);
            }
        }
        Ok(Bytes::new())
    }

    /// Reads the entry with this id. Returns `None` if it was deleted.
    pub(crate) async fn read_entry(
        &self,
        operation: Operation,
        stream: &Stream,
        id: &str,
    ) -> Result<Option<Found>, Error> {
        let mut cmd = command("XRANGE");
        cmd.arg(self.keys.stream(stream)).arg(id).arg(id);
        let found = self.conn.call(operation, &cmd).await?.list()?.into_iter().next();
        found.map(Found::of).transpose()
    }
}
