//! Mutants that send commands of their own.

use relq_conformance::{
    async_trait,
    overrides::{Override, Right},
};
use relq_core::{
    Disposition, Error, NewJob, PushToken, QueueName, Settlement,
    error::Operation,
    outcome::{Pushed, Settled},
};
use relq_redis::{
    Cmd, Conn, KeyPrefix, RedisConfig, Reply, bookkeeping::BookkeepingKeys, command,
};
use tokio::sync::OnceCell;

/// The connection on which a mutant sends its own commands.
pub(crate) struct OwnConnection {
    url: String,
    keys: BookkeepingKeys,
    conn: OnceCell<Conn>,
}

impl OwnConnection {
    pub(crate) fn new(url: &str, queue: &QueueName) -> Self {
        let keys = BookkeepingKeys::new(&KeyPrefix::new(queue.clone()));
        Self { url: url.to_owned(), keys, conn: OnceCell::new() }
    }

    async fn call(&self, cmd: &Cmd) -> Result<Reply, Error> {
        let open = || Conn::open("mutant", RedisConfig::new(&self.url).unwrap());
        self.conn.get_or_try_init(open).await?.call(Operation::Push, cmd).await
    }

    async fn run(
        &self,
        script: &str,
        key: &str,
        argument: &str,
    ) -> Result<Reply, Error> {
        let mut eval = command("EVAL");
        eval.arg(script).arg(1).arg(key).arg(argument);
        self.call(&eval).await
    }
}

/// Settles a job, which frees its unique key. Then frees the same key again, in another
/// command.
pub(crate) struct FreesTheKeyAgain(pub(crate) OwnConnection);

const KEY_OF: &str = "-- the unique key of a job
    local all = redis.call('HGETALL', KEYS[1])
    for i = 1, #all, 2 do
      if string.sub(all[i + 1], -#ARGV[1]) == ARGV[1] then return all[i] end
    end
    return ''";

#[async_trait]
impl Override for FreesTheKeyAgain {
    async fn settle(
        &self,
        right: &Right,
        done: &[Settlement],
    ) -> Result<Vec<Settled>, Error> {
        let unique = &self.0.keys.unique;
        let [Settlement { receipt, disposition: Disposition::Done, .. }] = done else {
            return right.settle(done).await;
        };
        let held = self.0.run(KEY_OF, unique, receipt.job().as_str()).await?.text()?;
        let settled = right.settle(done).await?;
        if settled == [Settled::Applied] && !held.is_empty() {
            let mut free = command("HDEL");
            free.arg(unique).arg(held);
            self.0.call(&free).await?;
        }
        Ok(settled)
    }
}

/// Looks for a push token in a separate command. If the token is not known, the push
/// stores its jobs and then the token, and does not look again.
pub(crate) struct LooksForTheToken(pub(crate) OwnConnection);

const MAY_BE_STORED: &str = "-- look for a push token
    local time = redis.call('TIME')
    local known_until = redis.call('ZSCORE', KEYS[1], ARGV[1])
    if known_until and tonumber(known_until) > time[1] * 1000 + time[2] / 1000 then
      return redis.call('DEL', 'unknown:' .. ARGV[1])
    end
    redis.call('SET', 'unknown:' .. ARGV[1], 1)
    return 1";

/// Makes the push rely on what the separate command has found.
pub(crate) const TRUSTS_THE_LOOK: [&str; 3] = [
    "push",
    "if token ~= '' then\n  local forget_at",
    "if token ~= '' and redis.call('EXISTS', 'unknown:' .. token) == 0 then\n  \
     local forget_at",
];

#[async_trait]
impl Override for LooksForTheToken {
    async fn push(
        &self,
        right: &Right,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        if let Some(token) = token {
            self.0.run(MAY_BE_STORED, &self.0.keys.calls, token.as_str()).await?;
        }
        right.push(jobs, token).await
    }
}
