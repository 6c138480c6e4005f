//! The original form of the pattern, in plain commands: the ids are in a list and in
//! the set `items`, the bodies are in keys, and the ids in process are in the set
//! `processing`.
//!
//! ```text
//!  push     SET item:ID body, SADD items ID, LPUSH Q ID
//!  claim    LRANGE Q 0 -1, then for each id: SADD processing ID, and if it answers 1
//!           SET until:ID time, GET item:ID
//!  done     SREM items ID, and if it answers 1
//!           LREM Q 0 ID, DEL item:ID until:ID, SREM processing ID
//!  again    SREM processing ID
//!  recover  SMEMBERS processing, then for each id: GET until:ID, and if that is over
//!           SREM processing ID
//! ```
//!
//! The list keeps the ids of jobs in process. The set does not say since when a job is
//! in process, so a worker writes the time until which it wants to work into a key of
//! its own.

use std::{
    borrow::Cow,
    collections::HashMap,
    fmt, io,
    num::NonZeroU32,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use relq_conformance::{Subject, async_trait, proxy::FaultProxy};
use relq_core::{
    ClaimRequest, Delivery, Disposition, Error, JobId, NewJob, Operator, Priority,
    PushToken, Queue, QueueName, Receipt, ReliableQueue, Settlement, Stats, WorkerId,
    capabilities::{Capabilities, LeaseScope, Limits, Order, RecoveryBound},
    environment::{Environment, Timestamp},
    error::{ErrorContext, Operation},
    operator::{Audit, Cancelled, Page, PeekRequest, Redriven, Selection},
    outcome::{Extended, Pushed, Recovered, Released, Settled},
};
use relq_redis::{Conn, RedisConfig, Reply, command};

const BACKEND: &str = "original";

/// The key of the list of ids.
const LIST: &str = "Q";

static CAPABILITIES: Capabilities = Capabilities {
    backend: BACKEND,
    supported: Cow::Borrowed(&[]),
    priorities: Priority::NORMAL..=Priority::NORMAL,
    lateness: Duration::from_secs(1),
    order: Order::Unordered,
    lease_scope: LeaseScope::Job,
    recovery: RecoveryBound::LeaseAndReaper,
    limits: Limits::DEFAULT,
};

/// Numbers that the contract requires but the pattern does not store. The test keeps
/// them outside the server, so that a run has the pattern's commands and no others.
#[derive(Debug, Default)]
struct Counts {
    attempts: HashMap<String, u32>,
    finished: u64,
}

/// The original form of the pattern, as a subject of the conformance suite.
#[derive(Default)]
pub(crate) struct Original(Arc<Mutex<Counts>>);

#[async_trait]
impl Subject for Original {
    /// Resets the counts. The server needs no reset, because each run begins on an
    /// empty one.
    async fn prepare(&self, _proxy: &FaultProxy) -> io::Result<()> {
        *counts(&self.0) = Counts::default();
        Ok(())
    }

    async fn connect(
        &self,
        endpoint: &str,
        _queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        let at = ErrorContext { backend: BACKEND, operation: Operation::Connect };
        let config = RedisConfig::new(endpoint);
        let config = config
            .map_err(|error| Error::Invalid { at, reason: error.to_string() })?
            .environment(environment.clone());
        let conn = Conn::open(BACKEND, config).await?;
        Ok(Arc::new(OriginalQueue { conn, counts: Arc::clone(&self.0) }))
    }
}

fn counts(counts: &Mutex<Counts>) -> MutexGuard<'_, Counts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

struct OriginalQueue {
    conn: Conn,
    counts: Arc<Mutex<Counts>>,
}

impl OriginalQueue {
    /// Sends one command.
    async fn send(
        &self,
        operation: Operation,
        name: &'static str,
        words: &[&[u8]],
    ) -> Result<Reply, Error> {
        let mut cmd = command(name);
        words.iter().for_each(|word| {
            cmd.arg(*word);
        });
        self.conn.call(operation, &cmd).await
    }

    /// Sends a command whose reply is a number, and returns whether the number is 1.
    async fn is_one(
        &self,
        operation: Operation,
        name: &'static str,
        words: [&str; 2],
    ) -> Result<bool, Error> {
        let reply = self.send(operation, name, &words.map(str::as_bytes)).await?;
        Ok(reply.number()? == 1)
    }

    async fn texts(
        &self,
        operation: Operation,
        name: &'static str,
        words: &[&[u8]],
    ) -> Result<Vec<String>, Error> {
        let reply = self.send(operation, name, words).await?;
        reply.list()?.into_iter().map(Reply::text).collect()
    }

    async fn store(&self, job: &NewJob) -> Result<Pushed, Error> {
        let id = self.conn.environment().random().text(4);
        self.send(Operation::Push, "SET", &[item(&id).as_bytes(), &job.payload])
            .await?;
        self.send(Operation::Push, "SADD", &[b"items", id.as_bytes()]).await?;
        self.send(Operation::Push, "LPUSH", &[LIST.as_bytes(), id.as_bytes()]).await?;
        Ok(Pushed::Stored(JobId::new(id).expect("plain characters")))
    }

    /// Claims a job if no other worker has claimed it: then the reply to SADD is 1.
    async fn claim_one(
        &self,
        id: &str,
        lease: Duration,
    ) -> Result<Option<Delivery>, Error> {
        let at = Operation::Claim;
        if !self.is_one(at, "SADD", ["processing", id]).await? {
            return Ok(None);
        }
        let attempt = self.count_attempt(id);
        let until = self.now().plus(lease).unix_ms().to_string();
        self.send(at, "SET", &[self::until(id).as_bytes(), until.as_bytes()]).await?;
        let body = self.send(at, "GET", &[item(id).as_bytes()]).await?;
        let Some(body) = body.optional_bytes()? else {
            self.send(at, "SREM", &[b"processing", id.as_bytes()]).await?;
            return Ok(None);
        };
        let job = JobId::new(id).expect("it was pushed");
        let token = format!("{id}-{attempt}");
        Ok(Some(Delivery::new(Receipt::new(job, attempt, token), body, lease)))
    }

    fn count_attempt(&self, id: &str) -> u32 {
        let mut counts = counts(&self.counts);
        let attempt = counts.attempts.entry(id.to_owned()).or_default();
        *attempt += 1;
        *attempt
    }

    async fn settle_one(&self, done: &Settlement) -> Result<Settled, Error> {
        let (at, id) = (Operation::Settle, done.receipt.job().as_str());
        let is_applied = match done.disposition {
            Disposition::Retry { .. }
            | Disposition::Postpone { .. }
            | Disposition::GiveBack => {
                self.is_one(at, "SREM", ["processing", id]).await?
            }
            _ => self.finish(id).await?,
        };
        let attempt = done.receipt.attempt();
        let is_counted = !matches!(
            done.disposition,
            Disposition::GiveBack | Disposition::Postpone { .. }
        );
        if is_applied && !is_counted {
            counts(&self.counts).attempts.insert(id.to_owned(), attempt - 1);
        }
        Ok(if is_applied { Settled::Applied } else { Settled::LeaseLost })
    }

    /// Ends a job if no other worker has ended it: then the reply to SREM is 1.
    async fn finish(&self, id: &str) -> Result<bool, Error> {
        let at = Operation::Settle;
        if !self.is_one(at, "SREM", ["items", id]).await? {
            return Ok(false);
        }
        counts(&self.counts).finished += 1;
        self.send(at, "LREM", &[LIST.as_bytes(), b"0", id.as_bytes()]).await?;
        self.send(at, "DEL", &[item(id).as_bytes(), until(id).as_bytes()]).await?;
        self.send(at, "SREM", &[b"processing", id.as_bytes()]).await?;
        Ok(true)
    }

    /// Whether the time has passed until which the worker of a job wanted to work.
    /// Returns `false` if the worker has not written this time.
    async fn is_over(&self, operation: Operation, id: &str) -> Result<bool, Error> {
        let until = self.send(operation, "GET", &[until(id).as_bytes()]).await?;
        let until = if until.is_nil() { None } else { Some(until.number()?) };
        Ok(until.is_some_and(|until| Timestamp::from_unix_ms(until) <= self.now()))
    }

    fn now(&self) -> Timestamp {
        self.conn.environment().clock().now()
    }

    fn unsupported<T>(&self, operation: Operation) -> Result<T, Error> {
        let at = self.conn.at(operation);
        Err(Error::Unsupported { at, option: "a call that no explored scene makes" })
    }
}

fn item(id: &str) -> String {
    format!("item:{id}")
}

fn until(id: &str) -> String {
    format!("until:{id}")
}

#[async_trait]
impl ReliableQueue for OriginalQueue {
    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    async fn push(
        &self,
        jobs: &[NewJob],
        _token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        let mut pushed = Vec::new();
        for job in jobs {
            pushed.push(self.store(job).await?);
        }
        Ok(pushed)
    }

    async fn claim(&self, ask: &ClaimRequest) -> Result<Vec<Delivery>, Error> {
        let words: [&[u8]; 3] = [LIST.as_bytes(), b"0", b"-1"];
        let ids = self.texts(Operation::Claim, "LRANGE", &words).await?;
        let mut claimed = Vec::new();
        for id in ids.iter().rev() {
            claimed.extend(self.claim_one(id, ask.lease).await?);
            if claimed.len() == ask.max.get() as usize {
                break;
            }
        }
        Ok(claimed)
    }

    async fn settle(&self, done: &[Settlement]) -> Result<Vec<Settled>, Error> {
        let mut settled = Vec::new();
        for one in done {
            settled.push(self.settle_one(one).await?);
        }
        Ok(settled)
    }

    async fn extend(
        &self,
        _: &WorkerId,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Vec<Extended>, Error> {
        let end = self.now().plus(lease);
        let mut extended = Vec::new();
        for one in held {
            let (key, end_ms) = (until(one.job().as_str()), end.unix_ms().to_string());
            let words = [key.as_bytes(), end_ms.as_bytes(), b"XX"];
            let reply = self.send(Operation::Extend, "SET", &words).await?;
            let is_lost = reply.is_nil();
            extended.push(if is_lost {
                Extended::LeaseLost
            } else {
                Extended::Until(end)
            });
        }
        Ok(extended)
    }

    async fn release_worker(&self, _: &WorkerId) -> Result<Released, Error> {
        self.unsupported(Operation::ReleaseWorker)
    }

    async fn recover(&self, _page: NonZeroU32) -> Result<Recovered, Error> {
        let at = Operation::Recover;
        let mut recovered = Recovered::default();
        for id in self.texts(at, "SMEMBERS", &[b"processing"]).await? {
            if self.is_over(at, &id).await?
                && self.is_one(at, "SREM", ["processing", &id]).await?
            {
                recovered.requeued += 1;
            }
        }
        Ok(recovered)
    }

    async fn open_another(&self) -> Result<Arc<dyn ReliableQueue>, Error> {
        let conn = self.conn.open_another().await?;
        Ok(Arc::new(Self { conn, counts: Arc::clone(&self.counts) }))
    }
}

#[async_trait]
impl Operator for OriginalQueue {
    async fn stats(&self) -> Result<Stats, Error> {
        let at = Operation::Stats;
        let items = self.send(at, "SCARD", &[b"items"]).await?.count()?;
        let mut stats = Stats::new();
        for id in self.texts(at, "SMEMBERS", &[b"processing"]).await? {
            stats.leased += 1;
            stats.overdue += u64::from(self.is_over(at, &id).await?);
        }
        stats.ready = items.saturating_sub(stats.leased);
        stats.finished = counts(&self.counts).finished;
        Ok(stats)
    }

    async fn peek(&self, _: &PeekRequest) -> Result<Page, Error> {
        self.unsupported(Operation::Peek)
    }

    async fn redrive(&self, _: &Selection) -> Result<Redriven, Error> {
        self.unsupported(Operation::Redrive)
    }

    async fn purge_dead(&self, _: &Selection) -> Result<u64, Error> {
        self.unsupported(Operation::Purge)
    }

    async fn purge(&self) -> Result<u64, Error> {
        self.unsupported(Operation::Purge)
    }

    async fn cancel(&self, _: &JobId) -> Result<Cancelled, Error> {
        self.unsupported(Operation::Cancel)
    }

    async fn pause(&self) -> Result<(), Error> {
        self.unsupported(Operation::Pause)
    }

    /// Does nothing, because this queue cannot be paused.
    async fn resume(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Checks nothing, because the scenes find lost jobs by claiming them.
    async fn audit(&self) -> Result<Audit, Error> {
        let stats = self.stats().await?;
        Ok(Audit { jobs: stats.unfinished(), problems: Vec::new() })
    }
}

impl fmt::Display for OriginalQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{BACKEND} queue at {}", self.conn)
    }
}

impl fmt::Debug for OriginalQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OriginalQueue({self})")
    }
}
