//! Operator calls on markers: read one, write one, find all queues.

use futures_util::future::join_all;
use relq_core::{Error, QueueName, error::Operation};

use crate::{
    Conn, Marker, Owner, RedisConfig, Reply, command,
    layout::{self, KeyType, Layout},
};

const CHANGE: &str = include_str!("../lua/marker/change.lua");

/// Number of the server's keys that one page of queues scans.
const PAGE: u32 = 1000;

/// The state of a queue's marker and keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// A marker, and the queue's URL according to it.
    Marked {
        /// The marker.
        marker: Marker,
        /// The URL to open the queue with, without user and password.
        url: String,
    },
    /// The marker's key has a value that is not a marker.
    Damaged(Vec<u8>),
    /// No marker, but other keys of relq.
    Unmarked,
    /// No keys of relq.
    Nothing,
}

/// A queue that was found by its marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkedQueue {
    /// The queue's name.
    pub name: QueueName,
    /// The marker; `None` if the user may not read it, or if the value is not a marker.
    pub marker: Option<Marker>,
    /// The URL to open the queue with, without user and password.
    pub url: Option<String>,
}

/// A page of the queues of a database.
#[derive(Debug, Clone, Default)]
pub struct QueuesPage {
    /// The queues, in no order. A queue may be on more than one page.
    pub queues: Vec<MarkedQueue>,
    /// The cursor of the next page; `None` on the last page.
    pub next: Option<u64>,
}

/// Reads what exists of that owner's queue. Nothing is written.
///
/// # Errors
/// As [`Conn::open`].
pub async fn see(config: RedisConfig, owner: &Owner) -> Result<Seen, Error> {
    let conn = Conn::open(owner.backend, config.clone()).await?;
    let (others, values) = look(&conn, owner).await?;
    Ok(match values.into_iter().next().flatten() {
        None if others == 0 => Seen::Nothing,
        None => Seen::Unmarked,
        Some(value) => match Marker::parse(&value) {
            Some(marker) => Seen::Marked { url: config.url_of(&marker), marker },
            None => Seen::Damaged(value),
        },
    })
}

/// Writes that owner's marker on an idle queue, replacing any earlier one.
///
/// # Errors
/// [`Error::Unusable`] if the queue is in use, if it has keys that the owner's pattern
/// does not know, or if a newer relq wrote it; otherwise as [`Conn::open`].
pub async fn mark(config: RedisConfig, owner: &Owner) -> Result<(), Error> {
    let conn = Conn::open(owner.backend, config.clone()).await?;
    let (_, values) = look(&conn, owner).await?;
    let meant =
        owner.ownership().into_iter().map(|(_, value)| Some(value.into_bytes()));
    if values.iter().cloned().eq(meant) {
        return Ok(());
    }
    let mut values = values.into_iter();
    let value = values.next().flatten();
    let seen = value.as_deref().and_then(Marker::parse);
    let at = conn.at(Operation::Connect);
    let unusable = |why: String| Err(Error::Unusable { at, source: why.into() });
    if let Some(seen) = seen.as_ref().filter(|seen| seen.is_newer()) {
        let queue = owner.keys.producer();
        return unusable(format!(
            "the queue {queue:?} was written by a newer relq: its marker is \"{seen}\"; \
             nothing was changed: use a newer relq"
        ));
    }
    let database = values.next().flatten();
    if let Some(why) = database.and_then(|name| owner.why_no_database(&name, &config)) {
        return unusable(why);
    }
    let is_others = seen.is_some_and(|seen| seen.backend() != owner.backend);
    let change = change(owner, &value.unwrap_or_default(), is_others);
    let answer = conn.call(Operation::Connect, &change).await?;
    match read_refusal(owner, answer)? {
        None => Ok(()),
        Some(why) => unusable(why),
    }
}

/// Removes the marker of a queue that has no other key. Returns whether the queue has no
/// marker now; a queue with other keys, or with the marker of another owner, keeps it.
///
/// # Errors
/// As [`Conn::open`].
pub async fn unmark(config: RedisConfig, owner: &Owner) -> Result<bool, Error> {
    let conn = Conn::open(owner.backend, config).await?;
    let reply = conn.call(Operation::Purge, &owner.removing()).await?;
    Ok(reply.number()? == 1)
}

/// A page of the queues in the database, found by their markers with `SCAN`.
///
/// # Errors
/// As [`Conn::open`].
pub async fn marked_queues(
    config: RedisConfig,
    cursor: u64,
) -> Result<QueuesPage, Error> {
    let conn = Conn::open("redis", config.clone()).await?;
    let mut scan = command("SCAN");
    scan.arg(cursor).arg("MATCH").arg(format!("{{*}}:{}", layout::MARKER));
    scan.arg("COUNT").arg(PAGE);
    let mut parts = conn.call(Operation::Connect, &scan).await?.parts()?;
    let next: u64 = parts.part().text()?.parse().unwrap_or(0);
    let keys = parts.part().list()?.into_iter().map(Reply::bytes);
    let names = keys.collect::<Result<Vec<_>, _>>()?;
    let names = names.iter().filter_map(|key| name_of(key));
    let queues = join_all(names.map(|name| read(&conn, &config, name))).await;
    let queues = queues.into_iter().collect::<Result<_, _>>()?;
    Ok(QueuesPage { queues, next: Some(next).filter(|next| *next != 0) })
}

/// The queue's name in the key of a marker; `None` if it is another key.
fn name_of(key: &[u8]) -> Option<QueueName> {
    let name = std::str::from_utf8(key).ok()?.strip_prefix('{')?;
    QueueName::new(name.strip_suffix(layout::MARKER)?.strip_suffix("}:")?).ok()
}

async fn read(
    conn: &Conn,
    config: &RedisConfig,
    name: QueueName,
) -> Result<MarkedQueue, Error> {
    let mut get = command("GET");
    get.arg(crate::KeyPrefix::new(name.clone()).part(layout::MARKER));
    let value = match conn.call(Operation::Connect, &get).await {
        // The user may not read the key, or it has another type.
        Err(Error::Denied { .. } | Error::Unusable { .. }) => None,
        answer => answer?.optional_bytes()?,
    };
    let marker = value.and_then(|value| Marker::parse(&value));
    let url = marker.as_ref().map(|marker| config.url_of(marker));
    Ok(MarkedQueue { name, marker, url })
}

/// The number of other keys of relq that exist, and the values of the keys that name
/// the owner.
async fn look(
    conn: &Conn,
    owner: &Owner,
) -> Result<(u64, Vec<Option<Vec<u8>>>), Error> {
    let reply = conn.call(Operation::Connect, &owner.seeing()).await?;
    let mut parts = reply.parts()?;
    let (others, values) = (parts.part().count()?, parts.part().list()?);
    let value = |value: Reply| Ok(value.optional_bytes()?.map(Into::into));
    Ok((others, values.into_iter().map(value).collect::<Result<_, Error>>()?))
}

fn change(owner: &Owner, seen: &[u8], is_others: bool) -> redis::Cmd {
    let layout = Layout::of(owner.backend);
    let ownership = owner.ownership();
    let mut keys = vec![owner.keys.producer()];
    keys.extend(["leased", "marks", "workers"].map(|part| owner.keys.part(part)));
    keys.extend(ownership.iter().map(|(key, _)| key.clone()));
    let foreign = layout.map(Layout::foreign_parts).unwrap_or_default();
    keys.extend(foreign.into_iter().map(|part| owner.keys.part(part)));
    let mut cmd = command("EVAL");
    cmd.arg(CHANGE).arg(keys.len()).arg(keys);
    cmd.arg(layout.and_then(|layout| layout.queue).map_or("", KeyType::name));
    cmd.arg(seen).arg(if is_others { "owned" } else { "own" });
    ownership.iter().for_each(|(_, value)| {
        cmd.arg(value);
    });
    cmd
}

/// Why the marker was not written; `None` if it was.
fn read_refusal(owner: &Owner, answer: Reply) -> Result<Option<String>, Error> {
    let (queue, asked) = (owner.keys.producer(), owner.backend);
    let mut parts = answer.list()?.into_iter();
    let word = parts.next().map(Reply::text).transpose()?;
    let mut count = || parts.next().map_or(Ok(0), Reply::count);
    Ok(match word.as_deref() {
        Some("set") => None,
        Some("leased") => {
            let (leases, left_ms) = (count()?, count()?);
            let left = left_ms.div_ceil(1000);
            Some(format!(
                "the queue {queue:?} is not at rest: {leases} leases or heartbeats of \
                 workers run, for {left} s at most; stop its workers, or wait"
            ))
        }
        Some("ended") => {
            let leases = count()?;
            Some(format!(
                "the queue {queue:?} has {leases} expired leases: recover them first, \
                 with the backend that its marker names"
            ))
        }
        Some("other") => {
            let key = parts.next().map(Reply::text).transpose()?.unwrap_or_default();
            Some(format!(
                "the queue {queue:?} has the key {key:?}, which no queue of the backend \
                 {asked} has: name the backend that wrote it, or purge the queue with \
                 that backend first"
            ))
        }
        _ => Some(format!("the marker of the queue {queue:?} changed meanwhile")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_known_by_the_key_of_its_marker() {
        let name = |key: &[u8]| name_of(key).map(|name| name.to_string());
        assert_eq!(name(b"{emails}:marker").as_deref(), Some("emails"));
        assert_eq!(name(b"{a:b c}:marker").as_deref(), Some("a:b c"));
        for other in
            [&b"{}:marker"[..], b"emails:marker", b"{\xff}:marker", b"{a}:mark"]
        {
            assert_eq!(name(other), None, "{other:?}");
        }
    }
}
