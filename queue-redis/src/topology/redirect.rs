//! The refusals of a cluster's node that say where a command belongs.
//!
//! The node did not run the command, so making the call again keeps R4 and R21. While a
//! slot moves from node to node key by key, a command that names a key which is not on
//! the node gets TRYAGAIN on both nodes until the move ends. relq's scripts name many
//! keys that a queue may not have, so a queue stands still for that time.

use std::time::{Duration, Instant};

use redis::{RedisError, RedisResult};

use super::Address;
use crate::{RedisConfig, error};

/// The pause before a refused call is first repeated, and the longest pause between
/// later attempts.
const PAUSE: (Duration, Duration) =
    (Duration::from_millis(10), Duration::from_millis(200));

/// A refusal of a cluster's node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Redirect {
    /// Another node is the master of the slot now.
    Moved(Address),
    /// The slot is moving to this node, which runs this one command already.
    Ask(Address),
    /// No node can run the command now: some of the keys are moving to another node, or
    /// the cluster has no master for the slot.
    Later,
}

impl Redirect {
    /// Reads the refusal; `None` for every other error.
    pub(crate) fn of(error: &RedisError) -> Option<Self> {
        let to = || Address::of_redirection(error.redirect_node()?.0);
        match error.code()? {
            "MOVED" => Some(to().map_or(Self::Later, Self::Moved)),
            "ASK" => Some(to().map_or(Self::Later, Self::Ask)),
            "TRYAGAIN" | "CLUSTERDOWN" => Some(Self::Later),
            _ => None,
        }
    }

    /// Remembers the new master of the slot, so that the next connection goes there.
    pub(crate) fn note(&self, config: &RedisConfig) {
        if let (Self::Moved(node), Some((cluster, slot))) = (self, config.cluster()) {
            cluster.moved(slot, node.clone());
        }
    }
}

/// The time limit for repeating a refused call, and the pause before the next attempt.
pub(crate) struct Patience {
    end: Instant,
    pause: Duration,
}

impl Patience {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { end: Instant::now() + limit, pause: PAUSE.0 }
    }

    /// Waits before the next attempt. Returns `false` at once if no time is left for
    /// one.
    pub(crate) async fn pause(&mut self) -> bool {
        if Instant::now() + self.pause >= self.end {
            return false;
        }
        tokio::time::sleep(self.pause).await;
        self.pause = (2 * self.pause).min(PAUSE.1);
        true
    }
}

/// Opens a connection. For a queue in a cluster, it tries again as long as nodes
/// redirect it. For every other queue it calls `open` once.
pub(crate) async fn until_settled<T, F>(
    config: &RedisConfig,
    mut open: impl FnMut() -> F,
) -> RedisResult<T>
where
    F: Future<Output = RedisResult<T>>,
{
    let mut patience = Patience::new(config.connect_timeout);
    loop {
        let error = match open().await {
            Err(error) if config.cluster().is_some() => error,
            outcome => return outcome,
        };
        let Some(redirect) = Redirect::of(&error) else { return Err(error) };
        redirect.note(config);
        if !patience.pause().await {
            return Err(error::unsettled(&error));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::refusal;

    /// R21: a call is repeated at the node that the refusal names, or later if it names
    /// none. A call that is refused for another reason would be refused again.
    #[test]
    fn a_refusal_says_where_to_repeat_the_call() {
        let node = || Address { host: "h".to_owned(), port: 1 };
        for (reply, redirect) in [
            ("MOVED 3728 h:1", Some(Redirect::Moved(node()))),
            ("MOVED 3728 :1", Some(Redirect::Later)),
            ("ASK 3728 h:1", Some(Redirect::Ask(node()))),
            ("ASK 3728 :1", Some(Redirect::Later)),
            (
                "TRYAGAIN Multiple keys request during rehashing of slot",
                Some(Redirect::Later),
            ),
            ("CLUSTERDOWN The cluster is down", Some(Redirect::Later)),
            ("CROSSSLOT Keys in request don't hash to the same slot", None),
            ("ERR unknown command", None),
        ] {
            assert_eq!(Redirect::of(&refusal(reply)), redirect, "{reply}");
        }
    }
}
