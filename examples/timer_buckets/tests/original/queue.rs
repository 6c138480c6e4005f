//! The original form of the pattern, in plain commands: the ids are in a list, the
//! items in keys, and for each span of time a set names the ids to check when that span
//! has come.
//!
//! ```text
//!  push     SET item:ID body, RPUSH Q ID
//!  claim    LPOP Q, SADD look:SPAN ID, GET item:ID
//!  done     DEL item:ID, and if it answers 1 the job is done
//!  again    RPUSH Q ID
//!  recover  GET looked, TIME, SUNION of the sets whose span has come since then, for
//!           each id: EXISTS item:ID, and if it answers 1 RPUSH Q ID; DEL of these sets,
//!           SET looked
//! ```
//!
//! A span is a minute in the pattern. It is a second here, because the leases of the
//! scenes have three seconds.

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

/// The length of the time span of one set, in milliseconds.
const SPAN_MS: i64 = 1000;

/// A number of spans that is larger than a scene needs.
const SCENE: i64 = 99;

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
    /// The time until which the worker of each delivered job wants to work.
    leases: HashMap<String, Timestamp>,
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
        self.make_ready(Operation::Push, &id).await?;
        Ok(Pushed::Stored(JobId::new(id).expect("plain characters")))
    }

    async fn make_ready(&self, operation: Operation, id: &str) -> Result<(), Error> {
        let words = [LIST.as_bytes(), id.as_bytes()];
        self.send(operation, "RPUSH", &words).await.map(drop)
    }

    /// Claims the oldest job. `None` if the list is empty.
    async fn claim_one(&self, lease: Duration) -> Result<Option<Delivery>, Error> {
        let at = Operation::Claim;
        let id = self.send(at, "LPOP", &[LIST.as_bytes()]).await?;
        if id.is_nil() {
            return Ok(None);
        }
        let id = id.text()?;
        let until = self.now().plus(lease);
        self.send(at, "SADD", &[set(span_of(until)).as_bytes(), id.as_bytes()]).await?;
        let body = self.send(at, "GET", &[item(&id).as_bytes()]).await?;
        let Some(body) = body.optional_bytes()? else { return Ok(None) };
        let mut counts = counts(&self.counts);
        counts.leases.insert(id.clone(), until);
        let attempt = counts.attempts.entry(id.clone()).or_default();
        *attempt += 1;
        let job = JobId::new(&id).expect("it was pushed");
        let token = format!("{id}-{attempt}");
        Ok(Some(Delivery::new(Receipt::new(job, *attempt, token), body, lease)))
    }

    async fn settle_one(&self, done: &Settlement) -> Result<Settled, Error> {
        let (at, id) = (Operation::Settle, done.receipt.job().as_str());
        match done.disposition {
            Disposition::Retry { .. }
            | Disposition::Postpone { .. }
            | Disposition::GiveBack => {
                self.make_ready(at, id).await?;
            }
            _ if self.finish(id).await? => {}
            _ => return Ok(Settled::LeaseLost),
        }
        counts(&self.counts).leases.remove(id);
        Ok(Settled::Applied)
    }

    /// Ends a job if no other worker has ended it: then the reply to DEL is 1.
    async fn finish(&self, id: &str) -> Result<bool, Error> {
        let reply = self.send(Operation::Settle, "DEL", &[item(id).as_bytes()]).await?;
        let is_done = reply.number()? == 1;
        counts(&self.counts).finished += u64::from(is_done);
        Ok(is_done)
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

/// Returns the number of the first span that begins after `time`.
fn span_of(time: Timestamp) -> i64 {
    time.unix_ms().div_euclid(SPAN_MS) + 1
}

fn set(span: i64) -> String {
    format!("look:{span}")
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
        let mut claimed = Vec::new();
        while claimed.len() < ask.max.get() as usize {
            match self.claim_one(ask.lease).await? {
                Some(delivery) => claimed.push(delivery),
                None => break,
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
        _: &[Receipt],
        _: Duration,
    ) -> Result<Vec<Extended>, Error> {
        self.unsupported(Operation::Extend)
    }

    async fn release_worker(&self, _: &WorkerId) -> Result<Released, Error> {
        self.unsupported(Operation::ReleaseWorker)
    }

    async fn recover(&self, _page: NonZeroU32) -> Result<Recovered, Error> {
        let at = Operation::Recover;
        let looked = self.send(at, "GET", &[b"looked"]).await?;
        let time = self.send(at, "TIME", &[]).await?.parts()?.part().number()?;
        let now = span_of(Timestamp::from_unix_ms(time * 1000)) - 1;
        let first = if looked.is_nil() { now - SCENE } else { looked.number()? + 1 };
        let sets: Vec<_> = (first.min(now)..=now).map(set).collect();
        let sets: Vec<_> = sets.iter().map(String::as_bytes).collect();
        let mut recovered = Recovered::default();
        for id in self.texts(at, "SUNION", &sets).await? {
            let exists = self.send(at, "EXISTS", &[item(&id).as_bytes()]).await?;
            if exists.number()? == 1 {
                self.make_ready(at, &id).await?;
                counts(&self.counts).leases.remove(&id);
                recovered.requeued += 1;
            }
        }
        self.send(at, "DEL", &sets).await?;
        self.send(at, "SET", &[b"looked", now.to_string().as_bytes()]).await?;
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
        let words = [LIST.as_bytes()];
        let ready = self.send(Operation::Stats, "LLEN", &words).await?.count()?;
        let (mut stats, now) = (Stats::new(), self.now());
        stats.ready = ready;
        let counts = counts(&self.counts);
        stats.leased = counts.leases.len() as u64;
        stats.overdue =
            counts.leases.values().filter(|until| **until <= now).count() as u64;
        stats.finished = counts.finished;
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
