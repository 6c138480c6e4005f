//! The commands that a new connection sends before any call uses it, in one round trip.
//!
//! ```text
//!  handshake  HELLO with user and password, SELECT        one round trip
//!  opening    CLIENT SETNAME, INFO, the marker (EVAL_RO),
//!             SCRIPT EXISTS                               one round trip
//! ```
//!
//! The client library sends the handshake itself and waits for its replies, so CLIENT
//! SETNAME is sent with the opening. INFO is sent once for each opened queue, on its
//! first connection, and so is the command of a pattern that checks its database.
//!
//! A user may lack the right to CLIENT SETNAME or to SCRIPT EXISTS, as the users of
//! earlier versions do. A connection of such a user has no name, and treats each script
//! as unknown to the server.

use futures_util::{FutureExt as _, future::BoxFuture};
use redis::{Cmd, FromRedisValue, Pipeline, RedisResult, Value};

use crate::{
    Owner, RedisConfig, Script, link::Link, owner::Known, server_info::ServerInfo,
};

/// The purpose of a connection, which is part of the name that `CLIENT LIST` shows.
///
/// All calls of one opened queue share a connection, so the name does not say whether
/// they push, claim or operate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// The connection is for the calls of one queue.
    Client,
    /// The connection is for blocking commands: those of idle claims, or of a wait for
    /// a batch.
    Waiter,
    /// The connection is for an operator's calls on a marker, or on more than one
    /// queue.
    Operator,
}

/// The first connection of an opened queue, with the replies to the commands that are
/// sent on this connection only. Each may be the error with which the server refused the
/// command.
pub(crate) struct First {
    pub(crate) link: Link,
    pub(crate) info: RedisResult<String>,
    /// The reply to [`Owner::first_look`]; `None` if the pattern has no such command.
    pub(crate) look: Option<RedisResult<Value>>,
}

/// The commands that are sent on a new connection before any call uses it, and how to
/// read their replies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opening<'a> {
    role: Role,
    /// The owner whose marker is read, if the connection is for one queue.
    owner: Option<&'a Owner>,
    /// The scripts that calls may send; the server is asked which of them it has.
    scripts: &'a [&'static Script],
}

impl<'a> Opening<'a> {
    /// Creates the opening of a connection that many calls share.
    pub(crate) fn of_calls(
        owner: Option<&'a Owner>,
        scripts: &'a [&'static Script],
    ) -> Self {
        let role = if owner.is_some() { Role::Client } else { Role::Operator };
        Self { role, owner, scripts }
    }

    /// Creates the opening of a connection for blocking commands.
    pub(crate) fn of_a_wait(
        owner: Option<&'a Owner>,
        scripts: &'a [&'static Script],
    ) -> Self {
        Self { role: Role::Waiter, owner, scripts }
    }

    /// Connects, and checks that this client may use the queue.
    pub(crate) fn open(
        self,
        config: &'a RedisConfig,
    ) -> BoxFuture<'a, RedisResult<Link>> {
        let opening = async move {
            let mut link = Link::open(config).await?;
            let mut asking = redis::pipe();
            self.ask(&mut asking);
            let replies = link.ask_all(asking, config.response_timeout).await?;
            self.read(replies, &link, config)?;
            Ok(link)
        };
        opening.boxed()
    }

    /// Connects, and checks that this client may use the queue. Also asks what is asked
    /// once for each opened queue.
    pub(crate) async fn open_first(self, config: &RedisConfig) -> RedisResult<First> {
        let mut link = Link::open(config).await?;
        let mut asking = redis::pipe();
        asking.add_command(ServerInfo::asking());
        self.ask(&mut asking);
        let look = self.owner.and_then(|owner| owner.first_look.as_deref());
        if let Some(look) = look {
            asking.add_command(look.clone());
        }
        let mut replies = link.ask_all(asking, config.response_timeout).await?;
        let mut others = replies.split_off(1);
        let look = look.and_then(|_| others.pop());
        self.read(others, &link, config)?;
        let info = replies.pop().unwrap_or(Ok(Value::Nil));
        let info = info.and_then(|info| Ok(String::from_redis_value(info)?));
        Ok(First { link, info, look })
    }

    fn ask(self, asking: &mut Pipeline) {
        asking.add_command(self.naming());
        if let Some(owner) = self.owner {
            asking.add_command(owner.seeing());
        }
        if !self.scripts.is_empty() {
            asking.add_command(Script::which_exist(self.scripts));
        }
    }

    /// Reads the replies to the commands of [`ask`](Self::ask).
    fn read(
        self,
        replies: Vec<RedisResult<Value>>,
        link: &Link,
        config: &RedisConfig,
    ) -> RedisResult<()> {
        let mut replies = replies.into_iter();
        let mut next = || replies.next().unwrap_or(Ok(Value::Nil));
        if let Err(error) = next() {
            tracing::debug!(%error, "the connection has no name in CLIENT LIST");
        }
        if let Some(owner) = self.owner {
            let known = owner.judge_seen(next()?, config)?;
            link.set_marked(known == Known::Marked);
        }
        if !self.scripts.is_empty() {
            link.scripts.learn(self.scripts, next());
        }
        Ok(())
    }

    fn naming(self) -> Cmd {
        let mut cmd = redis::cmd("CLIENT");
        cmd.arg("SETNAME").arg(self.name());
        cmd
    }

    /// The name of the connection: `relq:ROLE:QUEUE`, or `relq:ROLE` if it is not for
    /// one queue.
    fn name(self) -> String {
        let role = match self.role {
            Role::Client => "client",
            Role::Waiter => "waiter",
            Role::Operator => "operator",
        };
        match self.owner {
            Some(owner) => format!("relq:{role}:{}", encoded(&owner.keys.producer())),
            None => format!("relq:{role}"),
        }
    }
}

/// The queue's name in the characters that CLIENT SETNAME accepts: printable ASCII
/// without the space. All other bytes, and the percent sign, are percent-encoded.
fn encoded(queue: &str) -> String {
    let mut name = String::with_capacity(queue.len());
    for byte in queue.bytes() {
        match byte {
            b'!'..=b'~' if byte != b'%' => name.push(char::from(byte)),
            _ => name.push_str(&format!("%{byte:02X}")),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use relq_core::QueueName;

    use super::*;

    #[test]
    fn the_name_says_the_role_and_the_queue() {
        let owner = Owner::new("zset", QueueName::new("emails").unwrap());
        let calls = |owner| Opening::of_calls(owner, &[]).name();
        let wait = Opening::of_a_wait(Some(&owner), &[]).name();

        assert_eq!(calls(Some(&owner)), "relq:client:emails");
        assert_eq!(wait, "relq:waiter:emails");
        assert_eq!(calls(None), "relq:operator");
    }

    #[test]
    fn each_queue_has_a_name_of_its_own_that_the_server_takes() {
        for (queue, name) in [
            ("a:b/c~!", "a:b/c~!"),
            ("two words", "two%20words"),
            ("two%20words", "two%2520words"),
            ("line\nbreak\u{7f}", "line%0Abreak%7F"),
            ("é", "%C3%A9"),
        ] {
            assert_eq!(encoded(queue), name);
        }
    }
}
