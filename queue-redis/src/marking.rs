//! What an operator does about markers: see one, write one, find all queues.

use futures_util::future::join_all;
use relq_core::{Error, Operation, QueueName};

use crate::{
    Conn, Marker, Owner, RedisConfig, Reply, command,
    layout::{self, Layout},
};

const CHANGE: &str = include_str!("../lua/marker/change.lua");

/// Keys of the server that one page of queues looks at.
const PAGE: u32 = 1000;

/// What there is of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// A marker, and the URL that it means.
    Marked {
        /// What it says.
        marker: Marker,
        /// Where to open the queue, without user and password.
        url: String,
    },
    /// Something else where the marker should be.
    Damaged(Vec<u8>),
    /// No marker, but keys of relq's.
    Unmarked,
    /// No key of relq's.
    Nothing,
}

/// A queue that was found by its marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkedQueue {
    /// Its name.
    pub name: QueueName,
    /// What its marker says; `None` when the user may not read it, or it is no marker.
    pub marker: Option<Marker>,
    /// Where to open it, without user and password.
    pub url: Option<String>,
}

/// A page of the queues of a database.
#[derive(Debug, Clone, Default)]
pub struct QueuesPage {
    /// In no order. A queue may be on more than one page.
    pub queues: Vec<MarkedQueue>,
    /// Where the next page begins; `None` when this is the last.
    pub next: Option<u64>,
}

/// Says what there is of the queue of that owner. Nothing is written.
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

/// Writes the marker of that owner on a queue at rest, whatever was there before.
///
/// # Errors
/// [`Error::Unusable`] when the queue is not at rest, when it has keys that the owner's
/// pattern does not know, or when a newer relq wrote it; as [`Conn::open`].
pub async fn mark(config: RedisConfig, owner: &Owner) -> Result<(), Error> {
    let conn = Conn::open(owner.backend, config.clone()).await?;
    let (_, values) = look(&conn, owner).await?;
    let meant = owner.supports().into_iter().map(|(_, value)| Some(value.into_bytes()));
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

/// A page of the queues that are in the database, by `SCAN`: found by their markers.
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
    let mut reply = conn.call(Operation::Connect, &scan).await?.list()?.into_iter();
    let mut part = || reply.next().unwrap_or_else(|| Reply::nothing(&conn));
    let next: u64 = part().text()?.parse().unwrap_or(0);
    let keys = part().list()?.into_iter().map(Reply::bytes);
    let names = keys.collect::<Result<Vec<_>, _>>()?;
    let names = names.iter().filter_map(|key| name_of(key));
    let queues = join_all(names.map(|name| read(&conn, &config, name))).await;
    let queues = queues.into_iter().collect::<Result<_, _>>()?;
    Ok(QueuesPage { queues, next: Some(next).filter(|next| *next != 0) })
}

/// The name in the key of a marker, if it is one.
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
        // A key that the user may not read, or that is of another type.
        Err(Error::Denied { .. } | Error::Unusable { .. }) => None,
        answer => answer?.optional_bytes()?,
    };
    let marker = value.and_then(|value| Marker::parse(&value));
    let url = marker.as_ref().map(|marker| config.url_of(marker));
    Ok(MarkedQueue { name, marker, url })
}

/// How many keys of relq's there are, and what the keys hold that say whose they are.
async fn look(
    conn: &Conn,
    owner: &Owner,
) -> Result<(u64, Vec<Option<Vec<u8>>>), Error> {
    let reply = conn.call(Operation::Connect, &owner.seeing()).await?;
    let mut parts = reply.list()?.into_iter();
    let mut part = || parts.next().unwrap_or_else(|| Reply::nothing(conn));
    let (others, values) = (part().count()?, part().list()?);
    let value = |value: Reply| Ok(value.optional_bytes()?.map(Into::into));
    Ok((others, values.into_iter().map(value).collect::<Result<_, Error>>()?))
}

fn change(owner: &Owner, seen: &[u8], is_others: bool) -> redis::Cmd {
    let layout = Layout::of(owner.backend);
    let claims = owner.supports();
    let mut keys = vec![owner.keys.producer()];
    keys.extend(["leased", "marks", "workers"].map(|part| owner.keys.part(part)));
    keys.extend(claims.iter().map(|(key, _)| key.clone()));
    let foreign = layout.map(Layout::foreign_parts).unwrap_or_default();
    keys.extend(foreign.into_iter().map(|part| owner.keys.part(part)));
    let mut cmd = command("EVAL");
    cmd.arg(CHANGE).arg(keys.len()).arg(keys);
    cmd.arg(layout.and_then(|layout| layout.queue).unwrap_or_default());
    cmd.arg(seen).arg(if is_others { "owned" } else { "own" });
    claims.iter().for_each(|(_, value)| {
        cmd.arg(value);
    });
    cmd
}

/// Why the marker was not written, if it was not.
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
                "the queue {queue:?} has {leases} leases that have ended: recover them \
                 first, by the backend that its marker names"
            ))
        }
        Some("other") => {
            let key = parts.next().map(Reply::text).transpose()?.unwrap_or_default();
            Some(format!(
                "the queue {queue:?} has the key {key:?}, as no queue of the backend \
                 {asked} has it: name the backend that wrote it, or purge the queue by \
                 that one first"
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
