//! Every Lua script of this backend, and a typed function to call each.

mod operator;
mod worker;

use bytes::Bytes;
use relq_core::{Error, QueueName, error::Operation};
use relq_redis::{Conn, Reply, Script, bookkeeping::Bookkeeping, command};

use crate::{
    Mode,
    keys::Keys,
    session::{Session, Site},
};

pub(crate) use worker::{Asked, Claimed, How, TakeBackReason};

relq_redis::pattern_scripts! {
    of crate::capabilities::OF_PER_WORKER; in "../../lua/"; library pattern;
    beat, cancel_listed, claim, finish, purge, stats, suspects, take_back, take_named,
}

/// The scripts that a queue in this mode sends.
pub(crate) fn scripts(mode: Mode) -> impl Iterator<Item = &'static Script> {
    let others = match mode {
        Mode::PerWorker => "extend",
        Mode::Shared => "beat",
    };
    all_scripts().filter(move |script| script.name() != others)
}

/// The names of all scripts that a queue of this backend sends, for tools that monitor
/// the server or test the backend.
pub fn script_names(mode: Mode) -> impl Iterator<Item = &'static str> {
    scripts(mode).map(Script::name)
}

/// The connection and the keys of one queue. Its methods call the scripts.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    pub(crate) conn: Conn,
    pub(crate) keys: Keys,
    pub(crate) bookkeeping: Bookkeeping,
}

impl Store {
    pub(crate) fn new(conn: Conn, queue: QueueName) -> Self {
        let keys = Keys::new(queue);
        let bookkeeping = Bookkeeping::new(
            &conn,
            &keys.bookkeeping,
            keys.of_pattern(),
            &BOOKKEEPING_SCRIPTS,
        );
        Self { conn, keys, bookkeeping }
    }

    /// The lists that hold leased jobs: the shared one, and those of all registered
    /// sessions.
    pub(crate) async fn sites(&self, operation: Operation) -> Result<Vec<Site>, Error> {
        Ok(sites_of(&self.members(operation).await?))
    }

    /// All members of the sorted sets of registered and retired sessions. Another
    /// client may have added members that are not sessions.
    async fn members(&self, operation: Operation) -> Result<Vec<Bytes>, Error> {
        let members = |set| self.members_of(operation, set);
        let (working, retired) =
            tokio::try_join!(members(&self.keys.workers), members(&self.keys.retired))?;
        Ok([working, retired].concat())
    }

    async fn members_of(
        &self,
        operation: Operation,
        set: &str,
    ) -> Result<Vec<Bytes>, Error> {
        let mut cmd = command("ZRANGE");
        cmd.arg(set).arg(0).arg(-1);
        let members = self.conn.call(operation, &cmd).await?.list()?;
        members.into_iter().map(Reply::bytes).collect()
    }

    /// The keys of these processing lists. Scripts take them after the pattern keys.
    fn lists(&self, sites: &[Site]) -> Vec<String> {
        sites.iter().map(|site| self.keys.list(site)).collect()
    }
}

/// The shared list, and the own list of each member that is a session.
fn sites_of(members: &[Bytes]) -> Vec<Site> {
    let own = members.iter().filter_map(|member| Session::parse(member));
    std::iter::once(Site::Shared).chain(own.map(Site::Own)).collect()
}

/// Parses a reply that lists sessions, and leaves out members that are not sessions.
fn sessions(reply: Reply) -> Result<Vec<Session>, Error> {
    let members = reply.list()?.into_iter().map(Reply::bytes);
    let members = members.collect::<Result<Vec<_>, _>>()?;
    Ok(members.iter().filter_map(|member| Session::parse(member)).collect())
}
