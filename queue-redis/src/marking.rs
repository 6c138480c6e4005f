//! Operator calls on markers: read a marker, write one, remove one.

use relq_core::{Error, error::Operation};

use crate::{
    Conn, Marker, Owner, RedisConfig, Reply, command,
    layout::{KeyType, Layout},
    partition::{self, Stored},
};

const CHANGE: &str = include_str!("../lua/marker/change.lua");

/// The state of a queue's marker and keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// The queue has a marker, which says how to open it.
    Marked {
        /// The stored marker.
        marker: Marker,
        /// The URL to open the queue with, without user and password.
        url: String,
    },
    /// The marker's key has a value that is not a marker.
    Damaged(Vec<u8>),
    /// The queue has no marker, but other keys of relq.
    Unmarked,
    /// The queue has no keys of relq.
    Nothing,
}

/// Reads which marker and keys the owner's queue has. Writes nothing.
///
/// # Errors
/// The errors of [`Conn::open`].
pub async fn see(config: RedisConfig, owner: &Owner) -> Result<Seen, Error> {
    let conn = open(owner, &config).await?;
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

/// Writes the owner's marker if the queue has no key of relq yet. The marker of any other
/// queue is checked, and gets the present format if it has an earlier one.
///
/// # Errors
/// [`Error::Unusable`] if the owner must not use the queue; otherwise the errors of
/// [`Conn::open`].
pub async fn mark_if_new(config: RedisConfig, owner: &Owner) -> Result<(), Error> {
    let conn = open(owner, &config).await?;
    loop {
        let values = write_first(&conn, owner).await?;
        if let Some(why) = owner.why_not_written(values.as_deref(), &config) {
            let at = conn.at(Operation::Connect);
            return Err(Error::Unusable { at, source: why.into() });
        }
        let Some(raising) = owner.raising(&values.unwrap_or_default()) else { break };
        // If the marker changed meanwhile, it must be checked again.
        if conn.call(Operation::Connect, &raising).await?.number()? == 1 {
            break;
        }
    }
    Ok(())
}

/// Writes the owner's marker if the queue is new. Returns the values of the keys that name
/// the owner; `None` if the queue has other keys and no marker.
async fn write_first(
    conn: &Conn,
    owner: &Owner,
) -> Result<Option<Vec<Vec<u8>>>, Error> {
    let reply = conn.call(Operation::Connect, &owner.writing_first()).await?;
    if reply.is_nil() {
        return Ok(None);
    }
    let values = reply.list()?.into_iter().map(|value| Ok(value.bytes()?.into()));
    values.collect::<Result<_, Error>>().map(Some)
}

/// Writes the owner's marker on an idle queue, replacing any earlier marker. If only the
/// number of parts of the queue changes, the queue need not be idle.
///
/// # Errors
/// [`Error::Unusable`] if the queue is in use, if it has keys that the owner's pattern
/// does not know, if it is paused and its number of parts is to change, if it has schedules
/// and is to get several parts, or if a newer relq wrote it; otherwise the errors of
/// [`Conn::open`].
pub async fn mark(config: RedisConfig, owner: &Owner) -> Result<(), Error> {
    let conn = open(owner, &config).await?;
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
    let change = change(owner, &value.unwrap_or_default(), seen.as_ref());
    let answer = conn.call(Operation::Connect, &change).await?;
    match read_refusal(owner, answer)? {
        None => Ok(()),
        Some(why) => unusable(why),
    }
}

/// Removes the marker of a queue that has no other key. Returns whether the queue has
/// no marker now; a queue with other keys, or with the marker of another owner, keeps
/// it.
///
/// # Errors
/// The errors of [`Conn::open`].
pub async fn unmark(config: RedisConfig, owner: &Owner) -> Result<bool, Error> {
    let conn = open(owner, &config).await?;
    let reply = conn.call(Operation::Purge, &owner.removing()).await?;
    Ok(reply.number()? == 1)
}

/// Connects to the server that has the owner's queue.
async fn open(owner: &Owner, config: &RedisConfig) -> Result<Conn, Error> {
    Conn::open(owner.backend, config.clone().for_queue(&owner.keys)).await
}

/// Reads how many other keys of relq exist for the queue, and the values of the keys
/// that name the owner.
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

/// The kind of change that a new marker makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChangeKind {
    /// The marker named another backend.
    Owned,
    /// The marker was missing or damaged, or had other options.
    Own,
    /// At most the number of parts changes. Clients that were opened with both numbers
    /// continue to work.
    Resized,
}

impl ChangeKind {
    fn of(seen: Option<&Marker>, owner: &Owner) -> Self {
        let Some(seen) = seen else { return Self::Own };
        if seen.backend() != owner.backend {
            return Self::Owned;
        }
        let without_parts = |marker: &Marker| {
            let options = marker.options().iter();
            options.filter(|it| !partition::is_known(it)).cloned().collect::<Vec<_>>()
        };
        let is_first = |marker: &Marker| matches!(Stored::of(marker), Stored::First(_));
        let meant = owner.marker();
        let is_resized = without_parts(seen) == without_parts(&meant)
            && is_first(seen)
            && is_first(&meant);
        if is_resized { Self::Resized } else { Self::Own }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Owned => "owned",
            Self::Own => "own",
            Self::Resized => "resized",
        }
    }
}

/// How the number of parts changes, as a word for the script. If a queue of one part gets
/// several, its schedules would be out of reach.
fn change_of_parts(seen: Option<&Marker>, owner: &Owner) -> &'static str {
    let (meant, stored) = (Stored::of(&owner.marker()), seen.map(Stored::of));
    let has_parts = |stored: Stored| stored != Stored::First(1);
    if has_parts(meant) && !stored.is_some_and(has_parts) {
        "split"
    } else if stored == Some(meant) {
        "same"
    } else {
        "changed"
    }
}

/// Builds the command that writes the owner's marker in place of `seen`, whose stored
/// bytes are `value`.
fn change(owner: &Owner, value: &[u8], seen: Option<&Marker>) -> redis::Cmd {
    let layout = Layout::of(owner.backend);
    let ownership = owner.ownership();
    let mut keys = vec![owner.keys.producer()];
    keys.extend(
        ["leased", "marks", "workers", "schedules", "paused"]
            .map(|part| owner.keys.part(part)),
    );
    keys.extend(ownership.iter().map(|(key, _)| key.clone()));
    let foreign = layout.map(Layout::foreign_parts).unwrap_or_default();
    keys.extend(foreign.into_iter().map(|part| owner.keys.part(part)));
    let mut cmd = command("EVAL");
    cmd.arg(CHANGE).arg(keys.len()).arg(keys);
    cmd.arg(layout.and_then(|layout| layout.queue).map_or("", KeyType::name));
    cmd.arg(value).arg(ChangeKind::of(seen, owner).word());
    cmd.arg(change_of_parts(seen, owner));
    ownership.iter().for_each(|(_, value)| {
        cmd.arg(value);
    });
    cmd
}

/// The refusal of several parts for a queue that has schedules.
fn why_not_split(queue: &str, schedules: u64) -> String {
    format!(
        "the queue {queue:?} has {schedules} schedules, and a queue of several partitions \
         has none; nothing was changed: remove them with `relq cron remove`, and store \
         them in another queue"
    )
}

/// Reads from a script's reply why the marker was not written; `None` if it was
/// written.
fn read_refusal(owner: &Owner, answer: Reply) -> Result<Option<String>, Error> {
    let (queue, asked) = (owner.keys.producer(), owner.backend);
    let mut parts = answer.list()?.into_iter();
    let word = parts.next().map(Reply::text).transpose()?;
    let mut count = || parts.next().map_or(Ok(0), Reply::count);
    Ok(match word.as_deref() {
        Some("set") => None,
        Some("paused") => Some(format!(
            "the queue {queue:?} is paused, and its number of parts changes only while it \
             is not; nothing was changed: resume it first"
        )),
        Some("schedules") => Some(why_not_split(&queue, count()?)),
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
