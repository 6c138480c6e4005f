//! The contender that uses Redis without relq. It does the same work as the backends
//! with the fewest commands, so that they can be compared with it.

use std::{sync::Arc, time::Instant};

use redis::{aio::MultiplexedConnection, cmd, pipe};

use crate::{
    failure::CommandResult,
    meter::{Meter, failed},
    plan::Plan,
    pushing::{Numbers, in_tasks},
    sample::Sample,
    server::Server,
    tally::Tally,
    workload::{BATCH, Workload},
};

/// The Lua script that takes several jobs from a list and leases them, with the fewest
/// commands.
const CLAIM: &str = "
    local taken = redis.call('RPOP', KEYS[1], ARGV[1])
    if not taken then return {} end
    local leases = {}
    for i, element in ipairs(taken) do
      leases[2 * i - 1], leases[2 * i] = ARGV[2], element
    end
    redis.call('ZADD', KEYS[2], unpack(leases))
    return taken";

/// Redis without relq, as a contender. It has two keys that only the benchmark uses,
/// and one connection for each kind of command.
#[derive(Debug)]
pub(crate) struct RawRedis {
    conn: MultiplexedConnection,
    /// The connection for the command that waits until a job arrives.
    waiting: MultiplexedConnection,
    meter: Meter,
    queue: String,
    taken: String,
    tally: Arc<Tally>,
    pushed: u64,
}

impl RawRedis {
    pub(crate) async fn open(server: &Server, name: &str) -> CommandResult<Self> {
        Ok(Self {
            conn: server.connect().await?,
            waiting: server.connect().await?,
            meter: Meter::new(server.connect().await?),
            queue: name.to_owned(),
            taken: format!("{{{name}}}:taken"),
            tally: Arc::new(Tally::new(0)),
            pushed: 0,
        })
    }

    pub(crate) async fn clean_up(&mut self) -> CommandResult {
        let mut unlink = cmd("UNLINK");
        unlink.arg(&self.queue).arg(&self.taken);
        unlink.query_async(&mut self.conn).await.map_err(|error| failed(&error))
    }

    pub(crate) async fn run(
        &mut self,
        workload: Workload,
        plan: &Plan,
    ) -> CommandResult<Sample> {
        if workload == Workload::DrainAhead {
            self.begin(plan.many).push_batches(plan).await?;
        }
        let before = self.meter.read().await?;
        let began = Instant::now();
        let is_drain = match workload {
            Workload::PushOne => self.begin(plan.single).push_one(plan).await?,
            Workload::PushTasks => self.begin(plan.many).push_tasks(plan).await?,
            Workload::PushBatches => self.begin(plan.many).push_batches(plan).await?,
            Workload::DrainOne => self.drain_one().await?,
            Workload::DrainTasks => self.drain_tasks().await?,
            Workload::DrainAhead | Workload::DrainBatches => {
                self.drain_batches().await?
            }
            Workload::HandOver => self.begin(plan.handed).hand_over(plan).await?,
        };
        let took = began.elapsed();
        let spent = Some(self.meter.since(before).await?);
        let exact = is_drain.then(|| self.tally.is_exact(self.pushed));
        let latencies = self.tally.latencies();
        Ok(Sample { jobs: self.pushed, took, latencies, spent, exact })
    }

    fn begin(&mut self, jobs: u64) -> &mut Self {
        self.tally = Arc::new(Tally::new(jobs));
        self.pushed = jobs;
        self
    }

    async fn push_one(&mut self, plan: &Plan) -> CommandResult<bool> {
        let numbers = Numbers::below(self.pushed, plan.patience);
        let (tally, queue) = (Arc::clone(&self.tally), self.queue.clone());
        push(self.conn.clone(), queue, tally, numbers.clone(), plan.payload).await?;
        self.pushed = numbers.given();
        Ok(false)
    }

    async fn push_tasks(&mut self, plan: &Plan) -> CommandResult<bool> {
        let numbers = Numbers::below(self.pushed, plan.patience);
        in_tasks(|| {
            let (tally, queue) = (Arc::clone(&self.tally), self.queue.clone());
            push(self.conn.clone(), queue, tally, numbers.clone(), plan.payload)
        })
        .await?;
        self.pushed = numbers.given();
        Ok(false)
    }

    async fn push_batches(&mut self, plan: &Plan) -> CommandResult<bool> {
        let numbers = Numbers::below(self.pushed, plan.patience);
        while let Some(batch) = numbers.take_many(BATCH) {
            let mut pipeline = pipe();
            for number in batch {
                let payload = self.tally.payload(number, plan.payload);
                pipeline.lpush(&self.queue, payload).ignore();
            }
            let sent: Result<(), _> = pipeline.query_async(&mut self.conn).await;
            sent.map_err(|error| failed(&error))?;
        }
        self.pushed = numbers.given();
        Ok(false)
    }

    async fn drain_one(&mut self) -> CommandResult<bool> {
        let (queue, taken) = (self.queue.clone(), self.taken.clone());
        drain(self.conn.clone(), queue, taken, Arc::clone(&self.tally)).await?;
        Ok(true)
    }

    async fn drain_tasks(&mut self) -> CommandResult<bool> {
        in_tasks(|| {
            let (queue, taken) = (self.queue.clone(), self.taken.clone());
            drain(self.conn.clone(), queue, taken, Arc::clone(&self.tally))
        })
        .await?;
        Ok(true)
    }

    async fn drain_batches(&mut self) -> CommandResult<bool> {
        let script = redis::Script::new(CLAIM);
        loop {
            let mut call = script.key(&self.queue);
            call.key(&self.taken).arg(BATCH).arg(0);
            let taken: Vec<Vec<u8>> = call
                .invoke_async(&mut self.conn)
                .await
                .map_err(|error| failed(&error))?;
            if taken.is_empty() {
                return Ok(true);
            }
            let mut done = cmd("ZREM");
            done.arg(&self.taken).arg(&taken);
            let removed: Result<u64, _> = done.query_async(&mut self.conn).await;
            removed.map_err(|error| failed(&error))?;
            taken.iter().for_each(|payload| {
                self.tally.handled(payload);
            });
        }
    }

    async fn hand_over(&mut self, plan: &Plan) -> CommandResult<bool> {
        let numbers = Numbers::below(self.pushed, plan.patience);
        let mut waiting = self.waiting.clone();
        while let Some(number) = numbers.take() {
            let mut wait = cmd("BLMOVE");
            wait.arg(&self.queue).arg(&self.taken).arg("RIGHT").arg("LEFT").arg(5);
            let consumer = async {
                let payload: Vec<u8> = wait.query_async(&mut waiting).await?;
                self.tally.arrived(&payload);
                let mut done = cmd("LREM");
                done.arg(&self.taken).arg(-1).arg(payload);
                done.query_async::<()>(&mut waiting).await
            };
            let producer = async {
                tokio::time::sleep(std::time::Duration::from_millis(2)).await;
                let mut push = cmd("LPUSH");
                push.arg(&self.queue).arg(self.tally.payload(number, plan.payload));
                push.query_async::<()>(&mut self.conn.clone()).await
            };
            let ended = tokio::try_join!(consumer, producer);
            ended.map_err(|error| failed(&error))?;
        }
        self.pushed = numbers.given();
        Ok(true)
    }
}

async fn push(
    mut conn: MultiplexedConnection,
    queue: String,
    tally: Arc<Tally>,
    numbers: Numbers,
    payload: usize,
) -> CommandResult {
    while let Some(number) = numbers.take() {
        let mut push = cmd("LPUSH");
        push.arg(&queue).arg(tally.payload(number, payload));
        let pushed: Result<(), _> = push.query_async(&mut conn).await;
        pushed.map_err(|error| failed(&error))?;
    }
    Ok(())
}

async fn drain(
    mut conn: MultiplexedConnection,
    queue: String,
    taken: String,
    tally: Arc<Tally>,
) -> CommandResult {
    loop {
        let mut take = cmd("LMOVE");
        take.arg(&queue).arg(&taken).arg("RIGHT").arg("LEFT");
        let payload: Option<Vec<u8>> =
            take.query_async(&mut conn).await.map_err(|error| failed(&error))?;
        let Some(payload) = payload else { return Ok(()) };
        tally.handled(&payload);
        let mut done = cmd("LREM");
        done.arg(&taken).arg(-1).arg(payload);
        let removed: Result<(), _> = done.query_async(&mut conn).await;
        removed.map_err(|error| failed(&error))?;
    }
}
