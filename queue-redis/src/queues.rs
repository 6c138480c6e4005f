//! Finds all queues of a server or a cluster, by their markers (R25).
//!
//! ```text
//!  one server    SCAN; the cursor of a page is that of SCAN
//!  a cluster     SCAN on one master after the other, in the order of their addresses;
//!                the cursor of a page is MASTER/CURSOR
//! ```

use futures_util::future::join_all;
use relq_core::{Bytes, Error, QueueName, error::Operation, operator::PageCursor};

use crate::{
    Conn, KeyPrefix, Marker, RedisConfig, Reply, command, error, layout,
    partition::Stored,
    topology::{Address, Cluster, Topology},
};

/// The name of these calls in errors: they are for the queues of all backends.
const BACKEND: &str = "redis";

/// The number of keys of the server that one page of queues scans.
const PAGE: u32 = 1000;

/// A queue that was found by its marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkedQueue {
    /// The name of the queue.
    pub name: QueueName,
    /// The marker; `None` if the user may not read it, or if the value is not a marker.
    pub marker: Option<Marker>,
    /// The URL to open the queue with, without user and password; `None` if `marker` is
    /// `None`.
    pub url: Option<String>,
}

impl MarkedQueue {
    /// Whether the queue is a part of another one, behind its first part. The first part
    /// has the name of the whole, and its URL opens all parts.
    pub fn is_later_part(&self) -> bool {
        let marker = self.marker.as_ref();
        marker.is_some_and(|marker| matches!(Stored::of(marker), Stored::Other(_)))
    }
}

/// A page of the queues of a database or a cluster.
#[derive(Debug, Clone, Default)]
pub struct QueuesPage {
    /// The queues of this page, unsorted. A queue may be on more than one page.
    pub queues: Vec<MarkedQueue>,
    /// The position where the next page begins; `None` on the last page.
    pub next: Option<PageCursor>,
}

/// Reads a page of the queues in the database, found by their markers with `SCAN`. In a
/// cluster the listing visits one master after the other. If one of them cannot be reached,
/// the listing stops there; a queue whose slot moves meanwhile may be missing.
///
/// # Errors
/// The errors of [`Conn::open`], and [`Error::Invalid`] for a cursor that names no place
/// of this listing, also because its server is no longer a master of the cluster.
pub async fn marked_queues(
    config: RedisConfig,
    after: Option<&PageCursor>,
) -> Result<QueuesPage, Error> {
    let config = config.anywhere();
    let Topology::Cluster(cluster) = &config.topology else {
        let cursor = after.map_or(Some(0), read_number).ok_or_else(unknown_cursor)?;
        let (queues, next) = scan(&config, &config, cursor).await?;
        return Ok(QueuesPage { queues, next: next.map(write_number) });
    };
    let masters = masters(cluster, &config).await?;
    let place = match after {
        None => masters.first().map(|first| Place { master: first.clone(), cursor: 0 }),
        Some(cursor) => Place::read(cursor, &masters),
    };
    let Place { master, cursor } = place.ok_or_else(unknown_cursor)?;
    let (queues, next) = scan(&config, &config.on_server(&master), cursor).await?;
    let next = match next {
        Some(cursor) => Some(Place { master, cursor }),
        None => {
            let later = masters.into_iter().find(|other| *other > master);
            later.map(|master| Place { master, cursor: 0 })
        }
    };
    Ok(QueuesPage { queues, next: next.map(|place| place.write()) })
}

/// Where in a cluster a page begins.
struct Place {
    master: Address,
    cursor: u64,
}

impl Place {
    /// Reads a cursor. `None` if it has another form, or if its server is not one of
    /// `masters`: a cursor must not make relq connect to any other server.
    fn read(cursor: &PageCursor, masters: &[Address]) -> Option<Self> {
        let (master, cursor) = std::str::from_utf8(&cursor.0).ok()?.rsplit_once('/')?;
        let master = masters.iter().find(|known| known.to_string() == master)?;
        Some(Self { master: master.clone(), cursor: cursor.parse().ok()? })
    }

    fn write(&self) -> PageCursor {
        PageCursor(Bytes::from(format!("{}/{}", self.master, self.cursor)))
    }
}

fn read_number(cursor: &PageCursor) -> Option<u64> {
    std::str::from_utf8(&cursor.0).ok()?.parse().ok()
}

fn write_number(cursor: u64) -> PageCursor {
    PageCursor(Bytes::from(cursor.to_string()))
}

fn unknown_cursor() -> Error {
    let reason = "the cursor names no place of this listing, or its server is no longer \
                  a master of the cluster: begin with the first page";
    let at = error::at_connecting(BACKEND);
    Error::Invalid { at, reason: reason.to_owned() }
}

/// The masters that have slots, in the order of their addresses.
async fn masters(
    cluster: &Cluster,
    config: &RedisConfig,
) -> Result<Vec<Address>, Error> {
    let masters = cluster.masters(config).await;
    masters.map_err(|error| error::before_send(error::at_connecting(BACKEND), error))
}

/// Reads a page of the markers on one server. Returns the cursor of the next page, if
/// there is one.
async fn scan(
    whole: &RedisConfig,
    server: &RedisConfig,
    cursor: u64,
) -> Result<(Vec<MarkedQueue>, Option<u64>), Error> {
    let conn = Conn::open(BACKEND, server.clone()).await?;
    let mut scan = command("SCAN");
    scan.arg(cursor).arg("MATCH").arg(format!("{{*}}:{}", layout::MARKER));
    scan.arg("COUNT").arg(PAGE);
    let mut parts = conn.call(Operation::Connect, &scan).await?.parts()?;
    let next: u64 = parts.part().text()?.parse().unwrap_or(0);
    let keys = parts.part().list()?.into_iter().map(Reply::bytes);
    let names = keys.collect::<Result<Vec<_>, _>>()?;
    let names = names.iter().filter_map(|key| name_of(key));
    let queues = join_all(names.map(|name| read(&conn, whole, name))).await;
    let queues = queues.into_iter().collect::<Result<_, _>>()?;
    Ok((queues, Some(next).filter(|next| *next != 0)))
}

/// The name of the queue whose marker has this key; `None` if `key` is not a marker's.
fn name_of(key: &[u8]) -> Option<QueueName> {
    let name = std::str::from_utf8(key).ok()?.strip_prefix('{')?;
    QueueName::new(name.strip_suffix(layout::MARKER)?.strip_suffix("}:")?).ok()
}

async fn read(
    conn: &Conn,
    config: &RedisConfig,
    name: QueueName,
) -> Result<MarkedQueue, Error> {
    let keys = KeyPrefix::new(name.clone());
    let value = match get_marker(conn, &keys).await {
        // In a cluster, the slot of the queue has moved since the page was read.
        Err(Error::WrongServer { .. }) => {
            let there = Conn::open(BACKEND, config.clone().for_queue(&keys)).await?;
            get_marker(&there, &keys).await
        }
        answer => answer,
    };
    let value = match value {
        // The user may not read the key, or the key has another type.
        Err(Error::Denied { .. } | Error::Unusable { .. }) => None,
        value => value?,
    };
    let marker = value.and_then(|value| Marker::parse(&value));
    let url = marker.as_ref().map(|marker| config.url_of(marker));
    Ok(MarkedQueue { name, marker, url })
}

async fn get_marker(conn: &Conn, keys: &KeyPrefix) -> Result<Option<Bytes>, Error> {
    let mut get = command("GET");
    get.arg(keys.part(layout::MARKER));
    conn.call(Operation::Connect, &get).await?.optional_bytes()
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

    #[test]
    fn a_cursor_of_one_server_is_a_number() {
        for cursor in [7, u64::MAX] {
            assert_eq!(read_number(&write_number(cursor)), Some(cursor));
        }
        for other in ["", "-1", "a:1/7"] {
            assert_eq!(read_number(&PageCursor(Bytes::from(other))), None, "{other}");
        }
    }

    #[test]
    fn a_cursor_names_a_master_of_the_cluster_only() {
        let master = |host: &str| Address { host: host.to_owned(), port: 1 };
        let masters = [master("::1"), master("a")];
        for (text, place) in [
            ("[::1]:1/7", Some((0, 7))),
            ("a:1/0", Some((1, 0))),
            ("b:1/0", None),
            ("a:2/0", None),
            ("a:1", None),
            ("a:1/", None),
            ("7", None),
        ] {
            let cursor = PageCursor(Bytes::from(text));
            let read = Place::read(&cursor, &masters);
            let read = read.inspect(|read| assert_eq!(read.write(), cursor));
            let read = read.map(|read| (read.master, read.cursor));
            let expected = place.map(|(at, cursor)| (masters[at].clone(), cursor));
            assert_eq!(read, expected, "{text}");
        }
    }
}
