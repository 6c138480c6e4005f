//! Every script, and a typed function to call it by.

mod operator;
mod worker;

use std::sync::LazyLock;

use futures_util::future::try_join_all;
use queue_core::Error;
use queue_redis::{Conn, Reply, Script, entry};

use crate::keys::Keys;

pub(crate) use worker::{Claimed, Ended, Failure, NewEntry};

/// How long client-made ids and push tokens are remembered (R4).
pub(crate) const MEMORY: std::time::Duration = std::time::Duration::from_secs(5 * 60);

/// A queue's keys on a connection: what the scripts are called on.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    pub(crate) conn: Conn,
    pub(crate) keys: Keys,
}

macro_rules! scripts {
    ($($name:ident),* $(,)?) => {
        struct Scripts { $($name: Script),* }

        impl Scripts {
            fn all(&self) -> Vec<&Script> {
                vec![$(&self.$name),*]
            }
        }

        static SCRIPTS: LazyLock<Scripts> = LazyLock::new(|| {
            let library = [entry::LUA, include_str!("../../lua/moves.lua")].concat();
            Scripts {
                $($name: Script::with_library(
                    stringify!($name),
                    &library,
                    include_str!(concat!("../../lua/", stringify!($name), ".lua")),
                )),*
            }
        });
    };
}

scripts! {
    cancel, cancel_listed, claim, extend, fail, finish, finish_tied, forget, give_back,
    pass_on, promote, purge, purge_dead, push, recover, redrive, resume, stats,
}

impl Store {
    /// Loads every script in one round trip, so that calls that are sent together
    /// run in their order from the first on.
    pub(crate) async fn load_scripts(&self) -> Result<(), Error> {
        let load = |script: &'static Script| script.load(&self.conn);
        try_join_all(SCRIPTS.all().into_iter().map(load)).await.map(drop)
    }
}

/// Reads `{count, …}` answers.
fn counts(reply: Reply) -> Result<Vec<i64>, Error> {
    reply.list()?.into_iter().map(Reply::number).collect()
}

/// Reads a list of positions.
fn positions(reply: Reply) -> Result<Vec<usize>, Error> {
    let position = |reply: Reply| {
        reply.count().map(|at| usize::try_from(at).unwrap_or(usize::MAX))
    };
    reply.list()?.into_iter().map(position).collect()
}

/// The answer `-1` stands for "none".
fn optional_ms(ms: i64) -> Option<std::time::Duration> {
    u64::try_from(ms).ok().map(std::time::Duration::from_millis)
}
