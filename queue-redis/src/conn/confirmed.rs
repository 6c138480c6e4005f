//! Calls that return only when replicas have their writes (`?replicas=N`).
//!
//! ```text
//!  the call         EVALSHA … or LPUSH …
//!  touch            writes the marker again, with the same value
//!  WAIT N timeout   holds the connection until N replicas have all of it
//! ```
//!
//! The three commands are sent together. WAIT waits only for the writes of its own
//! connection. That is not enough if a call repeats one that took effect on another
//! connection: the repetition writes nothing, and since Redis 7.2 WAIT would return at
//! once. Therefore the touch writes something after the earlier call. A replica that
//! has the touch also has the earlier call.
//!
//! While a connection waits in WAIT, it runs no other call. So the calls that wait for
//! replicas have a connection of their own, which claims and heartbeats do not share.

use std::{num::NonZeroU32, time::Duration};

use futures_util::{FutureExt as _, future::BoxFuture};
use redis::{Cmd, Pipeline, RedisResult, Value};
use relq_core::error::Operation;

use super::{Conn, Failed, Inner, all_steps, redirected::Request};
use crate::{Owner, layout, link::Link};

const TOUCH: &str = include_str!("../../lua/marker/touch.lua");

/// How many replicas must have a write, and how long a call waits for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Replication {
    pub(crate) replicas: NonZeroU32,
    pub(crate) timeout: Duration,
}

impl Replication {
    /// The commands that follow a call and wait for the replicas.
    fn waiting(self, owner: &Owner) -> [Cmd; 2] {
        let mut touch = redis::cmd("EVAL");
        touch.arg(TOUCH).arg(1).arg(owner.keys.part(layout::MARKER));
        let mut wait = redis::cmd("WAIT");
        // WAIT reads a time of 0 as "for ever".
        let timeout_ms = self.timeout.as_millis().max(1);
        wait.arg(self.replicas.get())
            .arg(u64::try_from(timeout_ms).unwrap_or(u64::MAX));
        [touch, wait]
    }

    /// Reads the replies to the commands of [`waiting`](Self::waiting).
    ///
    /// # Errors
    /// A sentence that says why it is not known whether enough replicas have the write.
    fn read(
        self,
        touched: RedisResult<Value>,
        reached: RedisResult<Value>,
    ) -> Result<(), String> {
        let Self { replicas: wanted, timeout } = self;
        match (touched, reached) {
            (Ok(Value::Int(1)), Ok(Value::Int(reached))) => {
                if reached >= i64::from(wanted.get()) {
                    return Ok(());
                }
                Err(format!(
                    "{reached} of {wanted} replicas had it after {timeout:?}: check the \
                     replicas of the server, or name fewer with replicas=…"
                ))
            }
            (Ok(Value::Int(0)), _) => {
                Err("the queue's marker was removed meanwhile".to_owned())
            }
            (Err(error), _) | (_, Err(error)) => {
                Err(format!("the server refused WAIT: {error}"))
            }
            (_, Ok(other)) => Err(format!("WAIT returned {other:?}")),
        }
    }
}

/// Whether a call of `operation` waits for replicas. A call waits if its caller relies
/// on its result after a fail-over: a push, a settlement, a tick, or an operator's change.
/// Claims, heartbeats and recoveries do not wait. If a fail-over loses one of them, a
/// job only runs once more. Reports of workers and of progress do not wait either: the
/// next report replaces one that was lost.
fn is_confirmed(operation: Operation) -> bool {
    use Operation::{
        Claim, Extend, Recover, ReleaseWorker, ReportProgress, ReportWorker,
    };
    let may_be_lost = matches!(
        operation,
        Claim | Extend | Recover | ReleaseWorker | ReportProgress | ReportWorker
    );
    !operation.only_reads() && !may_be_lost
}

impl Conn {
    /// The connections for a call of `operation`.
    pub(crate) fn for_operation(&self, operation: Operation) -> &Self {
        match &self.0.confirmed {
            Some(confirmed) if is_confirmed(operation) => confirmed,
            _ => self,
        }
    }

    /// Whether calls that change the queue wait for replicas, so that a settlement must
    /// not share a command with a claim.
    pub(crate) fn waits_for_replicas(&self) -> bool {
        self.0.confirmed.is_some()
    }

    /// Sends the request, and waits until enough replicas have what it wrote.
    pub(super) fn attempt_confirmed<'a>(
        &'a self,
        replication: Replication,
        owner: &'a Owner,
        mut link: Link,
        request: Request<'a>,
    ) -> BoxFuture<'a, Result<Value, Failed>> {
        let attempt = async move {
            let mut asking = redis::pipe();
            if let Request::Call(call) = request
                && !link.scripts.has(call.script())
            {
                asking.add_command(call.script().loading());
            }
            asking.add_command(request.cmd().clone());
            add(&mut asking, replication.waiting(owner));
            let limit = self.response_timeout() + replication.timeout;
            let replies = match link.ask_all(asking, limit).await {
                Ok(replies) => replies,
                Err(error) => return self.judged(link, Err(error)).await,
            };
            let (reply, confirmed) = split(replication, replies);
            if let Request::Call(call) = request {
                link.scripts.heard(call.script(), &reply);
            }
            let value = self.judged(link, reply).await?;
            let confirmed =
                confirmed.or_else(|why| all_steps::note(self.0.backend, why));
            confirmed.map_err(Failed::Unconfirmed)?;
            Ok(value)
        };
        attempt.boxed()
    }
}

impl Inner {
    /// Creates the connections for the calls that wait for replicas. They are opened
    /// when they are first used.
    pub(super) fn confirming(&self) -> Option<Conn> {
        self.config.replication?;
        self.owner.as_ref()?;
        Some(Conn(std::sync::Arc::new(Self {
            backend: self.backend,
            owner: self.owner.clone(),
            scripts: self.scripts.clone(),
            config: self.config.clone(),
            is_in_cluster: self.is_in_cluster,
            by_runtime: Vec::new().into(),
            confirmed: None,
            replication: self.config.replication,
            first_look: None.into(),
        })))
    }
}

fn add(asking: &mut Pipeline, commands: [Cmd; 2]) {
    commands.into_iter().for_each(|cmd| {
        asking.add_command(cmd);
    });
}

/// Splits the replies of one write. Returns the reply to the call, and whether enough
/// replicas have the call.
fn split(
    replication: Replication,
    mut replies: Vec<RedisResult<Value>>,
) -> (RedisResult<Value>, Result<(), String>) {
    let mut next = || replies.pop().unwrap_or_else(|| Ok(Value::Nil));
    let (reached, touched, reply) = (next(), next(), next());
    (reply, replication.read(touched, reached))
}

#[cfg(test)]
mod tests {
    use std::io;

    use relq_core::QueueName;

    use super::*;

    fn replication(timeout: Duration) -> Replication {
        Replication { replicas: NonZeroU32::new(2).unwrap(), timeout }
    }

    /// R21: no call hangs for ever, and `WAIT` takes a time of zero for that.
    #[test]
    fn the_shortest_wait_for_replicas_ends() {
        let owner = Owner::new("zset", QueueName::new("q").unwrap());
        for (timeout, ms) in [
            (Duration::from_nanos(1), "1"),
            (Duration::from_micros(999), "1"),
            (Duration::from_millis(300), "300"),
        ] {
            let [_, wait] = replication(timeout).waiting(&owner);

            let mut expected = redis::cmd("WAIT");
            expected.arg("2").arg(ms);
            let (sent, expected) =
                (wait.get_packed_command(), expected.get_packed_command());
            assert_eq!(sent, expected, "the command for a timeout of {timeout:?}");
        }
    }

    /// R21: a call is confirmed only if the marker was written again and as many replicas
    /// have it as were asked for.
    #[test]
    fn only_enough_replicas_confirm_a_call() {
        let number = |number| -> RedisResult<Value> { Ok(Value::Int(number)) };
        let refused = || -> RedisResult<Value> { Err(io::Error::other("no").into()) };
        for (touched, reached, words) in [
            (number(1), number(2), None),
            (number(1), number(3), None),
            (number(1), number(1), Some("1 of 2 replicas had it after 1s")),
            (number(0), number(2), Some("the queue's marker was removed meanwhile")),
            (refused(), number(2), Some("the server refused WAIT")),
            (number(1), refused(), Some("the server refused WAIT")),
            (number(1), Ok(Value::Nil), Some("WAIT returned nil")),
        ] {
            let what = format!("touched {touched:?}, reached {reached:?}");

            let read = replication(Duration::from_secs(1)).read(touched, reached);

            let why = read.err();
            let is_told = match (&why, words) {
                (Some(why), Some(words)) => why.contains(words),
                (why, words) => why.is_none() && words.is_none(),
            };
            assert!(is_told, "{what}: {why:?}, and not {words:?}");
        }
    }
}
