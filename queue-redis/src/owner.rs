//! Which backend owns a queue, and what happens when another backend opens it (R25).
//!
//! ```text
//!  connect    the marker is read before any call uses the connection
//!  write      unless the connection is known to be marked: the marker is written first,
//!             on the same connection, by one script that also looks for other keys
//!  recover    the marker is compared again, and written where it is gone
//! ```
//!
//! | the marker | other keys of relq | |
//! |---|---|---|
//! | names this backend | | go on |
//! | names another backend, or is newer | | [`Error::Unusable`](relq_core::Error::Unusable) |
//! | names this backend, in an earlier format | | the first write raises the format |
//! | is absent | none | a new queue: the first write marks it |
//! | is absent | some | `Unusable`, unless this client has seen the marker before |
//!
//! If the keys are deleted while workers run, as by a `FLUSHALL`, the workers write the
//! marker again; no other client can. A worker that dies after it wrote the marker and
//! before it wrote anything else leaves only the marker, which does no harm.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use redis::{
    ErrorKind, RedisError, ToRedisArgs, Value, aio::ConnectionLike, from_redis_value,
};
use relq_core::{QueueName, error::Operation};

use crate::{
    KeyPrefix, Partition, RedisConfig,
    layout::{self, Layout},
    marker::{FORMAT, Marker},
    partition::{self, Stored},
    server_clock::ServerClock,
};

const SEE: &str = include_str!("../lua/marker/see.lua");
const WRITE: &str = include_str!("../lua/marker/write.lua");
const REMOVE: &str = include_str!("../lua/marker/remove.lua");

/// The first words of the error for a queue that this client must not use.
pub(crate) const REFUSED: &str = "the queue cannot be used";

/// The owner of a queue: a backend with its options.
#[derive(Debug, Clone)]
pub struct Owner {
    pub(crate) backend: &'static str,
    pub(crate) keys: KeyPrefix,
    options: Vec<&'static str>,
    pub(crate) partition: Partition,
    database: Option<&'static str>,
    /// Whether this client has seen its own marker on the queue. All connections of the
    /// client share this value.
    was_marked: Arc<AtomicBool>,
    /// The clock of the server that all connections of the client lead to.
    pub(crate) server_clock: Arc<ServerClock>,
}

/// The reply to [`Owner::seeing`]: the number of other keys, the values of the keys that
/// name the owner, and the server's time.
type Seen = (u64, Vec<Option<Vec<u8>>>, [i64; 2]);

/// The result of reading the marker on a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    Marked,
    /// The marker is absent or has an earlier format, so that a write must come first.
    Unmarked,
}

impl Owner {
    /// Names `backend` as the owner of `queue`.
    pub fn new(backend: &'static str, queue: QueueName) -> Self {
        Self {
            backend,
            keys: KeyPrefix::new(queue),
            options: Vec::new(),
            partition: Partition::Whole,
            database: None,
            was_marked: Arc::default(),
            server_clock: Arc::default(),
        }
    }

    /// Adds an option of the backend, in the form `name=value` that a URL has.
    #[must_use]
    pub fn option(mut self, option: &'static str) -> Self {
        self.options.push(option);
        self
    }

    /// Says which part of a queue of several parts the queue is.
    #[must_use]
    pub fn partition(self, partition: Partition) -> Self {
        Self { partition, ..self }
    }

    /// For a pattern that uses all keys of a database: sets the key that contains the
    /// name of the queue to which the database belongs.
    #[must_use]
    pub fn database(self, key: &'static str) -> Self {
        Self { database: Some(key), ..self }
    }

    /// Names the same backend, with the same options, as the owner of another queue,
    /// which may have parts of its own.
    #[must_use]
    pub fn of(&self, queue: QueueName) -> Self {
        Self {
            keys: KeyPrefix::new(queue),
            was_marked: Arc::default(),
            server_clock: Arc::default(),
            partition: Partition::WholeOrFirst,
            ..self.clone()
        }
    }

    /// The marker that this owner writes.
    pub(crate) fn marker(&self) -> Marker {
        let own = self.options.iter().map(|&option| option.to_owned());
        Marker::new(self.backend, own.chain(self.partition.option()))
    }

    /// Returns the keys whose values name the owner, and the value that each must have.
    pub(crate) fn ownership(&self) -> Vec<(String, String)> {
        let marker = (self.keys.part(layout::MARKER), self.marker().to_string());
        let database = self.database.map(|key| (key.to_owned(), self.keys.producer()));
        [marker].into_iter().chain(database).collect()
    }

    /// Checks the reply to [`seeing`](Self::seeing) on a new connection, before any
    /// call uses the connection.
    pub(crate) fn judge_seen(
        &self,
        reply: Value,
        config: &RedisConfig,
    ) -> Result<Known, RedisError> {
        let (others, values, time) = from_redis_value::<Seen>(reply)?;
        self.server_clock.learn(time, config.environment.clock());
        for (at, value) in values.iter().enumerate() {
            value.as_ref().map_or(Ok(()), |value| self.judge(at, value, config))?;
        }
        let marker = values.first().and_then(Option::as_deref);
        if marker.is_some() {
            self.was_marked.store(true, Ordering::Release);
        } else if others > 0 && !self.was_marked.load(Ordering::Acquire) {
            return Err(refused(self.unmarked(config)));
        }
        let is_current =
            marker.and_then(Marker::parse).is_some_and(|it| it.is_current());
        let is_marked = values.iter().all(Option::is_some);
        Ok(if is_marked && is_current { Known::Marked } else { Known::Unmarked })
    }

    /// Writes the marker if it is absent, and checks it otherwise.
    pub(crate) async fn write(
        &self,
        conn: &mut impl ConnectionLike,
        config: &RedisConfig,
    ) -> Result<(), RedisError> {
        let was_marked = self.was_marked.load(Ordering::Acquire);
        let mut writing =
            self.command("EVAL", WRITE, if was_marked { "again" } else { "first" });
        self.ownership().iter().for_each(|(_, value)| {
            writing.arg(value);
        });
        let values: Option<Vec<Vec<u8>>> = writing.query_async(conn).await?;
        let Some(values) = values else { return Err(refused(self.unmarked(config))) };
        for (at, value) in values.iter().enumerate() {
            self.judge(at, value, config)?;
        }
        self.was_marked.store(true, Ordering::Release);
        Ok(())
    }

    /// Builds the command that writes the marker of a new queue if it is absent.
    pub(crate) fn writing_first(&self) -> redis::Cmd {
        let mut writing = self.command("EVAL", WRITE, "first");
        self.ownership().iter().for_each(|(_, value)| {
            writing.arg(value);
        });
        writing
    }

    /// Builds the command that reads the keys which name the owner. A user who may only
    /// read can run it.
    pub(crate) fn seeing(&self) -> redis::Cmd {
        self.command("EVAL_RO", SEE, self.ownership().len())
    }

    /// Builds the command that removes the marker if the queue has no other key.
    pub(crate) fn removing(&self) -> redis::Cmd {
        let scope = if self.database.is_some() { "database" } else { "keys" };
        let mut keys = self.all_keys();
        keys.push(self.keys.producer());
        let mut cmd = redis::cmd("EVAL");
        cmd.arg(REMOVE).arg(keys.len()).arg(keys).arg(scope);
        self.ownership().iter().for_each(|(_, value)| {
            cmd.arg(value);
        });
        cmd
    }

    fn command(&self, name: &str, script: &str, first: impl ToRedisArgs) -> redis::Cmd {
        let keys = self.all_keys();
        let mut cmd = redis::cmd(name);
        cmd.arg(script).arg(keys.len()).arg(keys).arg(first);
        cmd
    }

    /// All keys that relq's queues may have, the keys that name the owner first. The
    /// key that producers push to and the key that wakes a worker are left out, because
    /// any client may push to them.
    fn all_keys(&self) -> Vec<String> {
        let own = self.ownership().into_iter().map(|(key, _)| key);
        let parts = layout::parts().into_iter().filter(|part| *part != layout::WAKE);
        let others = parts.map(|part| self.keys.part(part));
        own.chain(others).collect()
    }

    /// Checks whether this backend may use the queue, from the value of a key that
    /// names the owner.
    fn judge(
        &self,
        at: usize,
        value: &[u8],
        config: &RedisConfig,
    ) -> Result<(), RedisError> {
        let why = if at == 0 {
            self.why_not(Marker::parse(value), value, config)
        } else {
            self.why_no_database(value, config)
        };
        why.map_or(Ok(()), |why| Err(refused(why)))
    }

    /// The reason why this backend must not use a queue with that marker; `None` if it
    /// may.
    pub(crate) fn why_not(
        &self,
        marker: Option<Marker>,
        value: &[u8],
        config: &RedisConfig,
    ) -> Option<String> {
        let (queue, asked) = (self.keys.producer(), self.backend);
        let Some(marker) = marker else { return Some(self.no_marker(value, config)) };
        let newer = |what: String| {
            Some(format!(
                "the queue {queue:?} was written by a newer relq: its marker \
                 \"{marker}\" has {what}; nothing was changed: use a newer relq"
            ))
        };
        if marker.is_newer() {
            return newer(format!(
                "the format {}, and this relq knows {FORMAT}",
                marker.format
            ));
        }
        if marker.backend != asked {
            let (owner, url) = (&marker.backend, config.url_of(&marker));
            return Some(format!(
                "the queue {queue:?} belongs to the backend {owner}, but the backend \
                 {asked} opened it; nothing was changed: open it with {url}"
            ));
        }
        let known = Layout::of(asked).map_or(&[][..], |layout| layout.options);
        let unknown = marker
            .options
            .iter()
            .find(|it| !known.contains(&it.as_str()) && !partition::is_known(it));
        if let Some(option) = unknown {
            return newer(format!("{option}, which is not known here"));
        }
        self.why_not_this_part(&marker, config)
    }

    fn no_marker(&self, value: &[u8], config: &RedisConfig) -> String {
        let (queue, asked) = (self.keys.producer(), self.backend);
        let (key, value) = (self.keys.part(layout::MARKER), value.escape_ascii());
        let set = self.command_to_set(config);
        format!(
            "the key {key:?} holds \"{value}\", which is no marker of a queue: if the \
             backend {asked} wrote the queue {queue:?}, stop its clients and correct the \
             marker with `{set}`"
        )
    }

    /// The reason why a client that opened the queue as this part must not use a queue
    /// with that marker of the same backend.
    fn why_not_this_part(
        &self,
        marker: &Marker,
        config: &RedisConfig,
    ) -> Option<String> {
        let stored = Stored::of(marker);
        if self.partition.admits(stored) {
            return None;
        }
        let queue = self.keys.producer();
        let why = match (self.partition, stored) {
            (Partition::Other { number }, Stored::First(_)) => format!(
                "the queue {queue:?} is a queue of its own and cannot be part {number} \
                 of another; nothing was changed: move its jobs to another name, or \
                 give the partitioned queue another name"
            ),
            (_, Stored::Other(number)) => {
                is_a_part(&queue, number, &config.url_of(marker))
            }
            (Partition::Whole, Stored::First(parts)) => format!(
                "the queue {queue:?} has {parts} parts; nothing was changed: open it \
                 with {}",
                config.url_of(marker)
            ),
            (_, Stored::First(parts)) => format!(
                "the queue {queue:?} has {parts} {}, and was opened with another \
                 number; nothing was changed: open it with {}, or change the number \
                 as docs/scale.md says, of which `{}` is the last step",
                if parts == 1 { "part" } else { "parts" },
                config.url_of(marker),
                self.command_to_set(config)
            ),
        };
        Some(why)
    }

    /// Why this client must not use the queue whose keys have these values, as
    /// [`writing_first`](Self::writing_first) returns them; `None` if it may.
    pub(crate) fn why_not_written(
        &self,
        values: Option<&[Vec<u8>]>,
        config: &RedisConfig,
    ) -> Option<String> {
        let Some(values) = values else { return Some(self.unmarked(config)) };
        let marker = values.first().map(Vec::as_slice).unwrap_or_default();
        self.why_not(Marker::parse(marker), marker, config)
    }

    /// Returns the reason why this queue must not use the database: the database's key
    /// names another queue as the owner.
    pub(crate) fn why_no_database(
        &self,
        value: &[u8],
        config: &RedisConfig,
    ) -> Option<String> {
        if value == self.keys.producer().as_bytes() {
            return None;
        }
        let other = String::from_utf8_lossy(value);
        Some(format!(
            "the database at {config} belongs to the queue {other:?}, and a queue of \
             this pattern needs a database of its own: name another one in the URL, \
             as in redis://host/2"
        ))
    }

    fn unmarked(&self, config: &RedisConfig) -> String {
        let (queue, asked, set) =
            (self.keys.producer(), self.backend, self.command_to_set(config));
        format!(
            "the queue {queue:?} has keys of relq's and no marker that says which \
             backend wrote them; nothing was changed: if it was {asked}, stop its \
             clients and write the marker with `{set}`"
        )
    }

    /// The shell command that marks the queue for this backend, to show in an error.
    fn command_to_set(&self, config: &RedisConfig) -> String {
        let queue = quoted(&self.keys.producer());
        let url = quoted(&config.url_of(&self.marker()));
        format!("relq marker set -q {queue} --url {url}")
    }
}

/// Whether a call of `operation` changes the queue.
pub(crate) fn is_write(operation: Operation) -> bool {
    use Operation::{Audit, Connect, Peek, ReadBatch, ReadSchedules, Stats, WaitBatch};
    !matches!(
        operation,
        Connect | Stats | Peek | Audit | ReadBatch | ReadSchedules | WaitBatch
    )
}

/// The error for a queue that this backend must not use.
fn refused(why: String) -> RedisError {
    RedisError::from((ErrorKind::InvalidClientConfig, REFUSED, why))
}

/// A word in the quotes that a shell needs, if it needs any.
fn quoted(word: &str) -> String {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:+@,=".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Says that the queue is a part of another one, and what to open in its place. `alone` is
/// the URL that opens this part alone.
fn is_a_part(queue: &str, number: u16, alone: &str) -> String {
    let whole = queue.strip_suffix(&format!(":{number}")).unwrap_or(queue);
    format!(
        "the queue {queue:?} is part {number} of the queue {whole:?}; nothing was changed: \
         open {whole:?}, whose URL `relq marker show -q {}` prints, or this part alone with \
         {alone}",
        quoted(whole)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why_not(asked: &'static str, marker: &str) -> Option<String> {
        let config = RedisConfig::new("redis://me:s3cret@host:7000/3").unwrap();
        let queue = QueueName::new("emails").unwrap();
        let value = marker.as_bytes();
        let why =
            Owner::new(asked, queue).why_not(Marker::parse(value), value, &config);
        assert!(!why.as_ref().is_some_and(|why| why.contains("s3cret")), "{why:?}");
        why
    }

    #[test]
    fn the_owner_and_its_options_are_let_in() {
        for (asked, marker) in [
            ("zset", "relq 2 zset"),
            ("processing-list", "relq 2 processing-list"),
            ("processing-list", "relq 2 processing-list mode=shared"),
            ("circular", "relq 2 circular finish=lrem"),
        ] {
            assert_eq!(why_not(asked, marker), None);
        }
    }

    #[test]
    fn others_are_told_whose_it_is_and_by_which_url() {
        for (marker, url) in [
            ("relq 2 stream", "stream+redis://host:7000/3"),
            (
                "relq 2 processing-list mode=shared",
                "processing-list+redis://host:7000/3?mode=shared",
            ),
        ] {
            let why = why_not("zset", marker).unwrap();

            assert!(why.contains(url) && why.contains("backend zset"), "{why}");
        }
    }

    #[test]
    fn what_is_newer_is_named() {
        for (marker, named) in [
            ("relq 3 zset", "format 3"),
            ("relq 2 zset tenants=4", "tenants=4"),
            ("relq 2 zset partitions=many", "partitions=many"),
            ("relq 2 processing-list mode=other", "mode=other"),
        ] {
            let asked =
                if marker.contains("list") { "processing-list" } else { "zset" };
            let why = why_not(asked, marker).unwrap();

            assert!(why.contains("newer relq") && why.contains(named), "{why}");
        }
    }

    #[test]
    fn a_queue_of_another_number_of_parts_is_told_how_to_open_it() {
        for (marker, words) in [
            (
                "relq 2 zset partitions=3",
                "open it with zset+redis://host:7000/3?partitions=3",
            ),
            ("relq 2 zset part=2", "relq marker show -q emails"),
        ] {
            let why = why_not("zset", marker).unwrap();

            assert!(
                why.contains(words) && why.contains("nothing was changed"),
                "{why}"
            );
        }
    }

    #[test]
    fn a_damaged_marker_names_the_command_that_mends_it() {
        let why = why_not("zset", "nonsense\n").unwrap();

        let command = "relq marker set -q emails --url zset+redis://host:7000/3";
        assert!(why.contains(command) && why.contains(r"nonsense\n"), "{why}");
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("a+b://c:1/2"), "a+b://c:1/2");
        assert_eq!(quoted("a?b=c"), "'a?b=c'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
