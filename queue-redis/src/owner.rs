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

mod refusal;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use redis::{
    ErrorKind, RedisError, ToRedisArgs, Value, aio::ConnectionLike, from_redis_value,
};
use relq_core::QueueName;

use crate::{
    KeyPrefix, Partition, RedisConfig, layout, marker::Marker,
    server_clock::ServerClock,
};

const SEE: &str = include_str!("../lua/marker/see.lua");
const WRITE: &str = include_str!("../lua/marker/write.lua");
const RAISE: &str = include_str!("../lua/marker/raise.lua");
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
    /// A command that reads what the pattern checks when it opens the queue. It is sent
    /// together with the other checks of the first connection.
    pub(crate) first_look: Option<Arc<redis::Cmd>>,
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
            first_look: None,
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

    /// Sets a command that only reads, and whose reply the pattern checks when it opens
    /// the queue: see [`Conn::take_first_look`](crate::Conn::take_first_look).
    #[must_use]
    pub fn first_look(self, cmd: redis::Cmd) -> Self {
        Self { first_look: Some(Arc::new(cmd)), ..self }
    }

    /// The same owner for further connections of an opened queue.
    pub(crate) fn without_first_look(self) -> Self {
        Self { first_look: None, ..self }
    }

    /// Names the same backend, with the same options, as the owner of another queue,
    /// which may have parts of its own. A new queue gets as many as this one.
    #[must_use]
    pub fn of(&self, queue: QueueName) -> Self {
        Self {
            partition: self.partition.of_another(&queue),
            keys: KeyPrefix::new(queue),
            was_marked: Arc::default(),
            server_clock: Arc::default(),
            first_look: None,
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

    /// Writes the marker if it is absent, and checks it otherwise. Raises the format of an
    /// earlier one only after the check, so that a refused client changes nothing.
    pub(crate) async fn write(
        &self,
        conn: &mut impl ConnectionLike,
        config: &RedisConfig,
    ) -> Result<(), RedisError> {
        if !self.partition.may_be_new() {
            self.check_that_it_is_marked(conn, config).await?;
        }
        loop {
            let values = self.write_or_check(conn, config).await?;
            let Some(raising) = self.raising(&values) else { break };
            // If the marker changed meanwhile, it must be checked again.
            let is_raised: bool = raising.query_async(conn).await?;
            if is_raised {
                break;
            }
        }
        self.was_marked.store(true, Ordering::Release);
        Ok(())
    }

    /// Refuses a queue without a marker.
    async fn check_that_it_is_marked(
        &self,
        conn: &mut impl ConnectionLike,
        config: &RedisConfig,
    ) -> Result<(), RedisError> {
        let seen = self.seeing().query_async(conn).await?;
        self.judge_seen(seen, config)?;
        let was_marked = self.was_marked.load(Ordering::Acquire);
        if was_marked { Ok(()) } else { Err(refused(self.of_unknown_parts())) }
    }

    /// Writes the marker if it is absent, and checks it otherwise. Returns the values of
    /// the keys that name the owner.
    async fn write_or_check(
        &self,
        conn: &mut impl ConnectionLike,
        config: &RedisConfig,
    ) -> Result<Vec<Vec<u8>>, RedisError> {
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
        Ok(values)
    }

    /// Builds the command that raises the format of the marker, if it has an earlier one.
    /// `values` are those of the keys that name the owner, and were checked.
    pub(crate) fn raising(&self, values: &[Vec<u8>]) -> Option<redis::Cmd> {
        let accepted = values.first()?;
        let marker = Marker::parse(accepted).filter(|marker| !marker.is_current())?;
        let mut raising = redis::cmd("EVAL");
        raising.arg(RAISE).arg(1).arg(self.keys.part(layout::MARKER));
        raising.arg(accepted).arg(marker.raised().to_string());
        Some(raising)
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
    /// any client may push to them, and so is the stream that wakes calls which wait for
    /// results, because it outlives a purge.
    fn all_keys(&self) -> Vec<String> {
        let own = self.ownership().into_iter().map(|(key, _)| key);
        let is_owned = |part: &&str| ![layout::WAKE, layout::ENDED].contains(part);
        let parts = layout::parts().into_iter().filter(is_owned);
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
        why.map_or(Ok(()), |why| {
            // The queue has another owner since this client has seen its own marker. So the
            // client must not write that marker again, should it find none.
            self.was_marked.store(false, Ordering::Release);
            Err(refused(why))
        })
    }
}

/// The error for a queue that this backend must not use.
fn refused(why: String) -> RedisError {
    RedisError::from((ErrorKind::InvalidClientConfig, REFUSED, why))
}
