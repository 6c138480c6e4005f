//! Every script, and a typed function to call it.

mod operator;
mod worker;

use relq_core::{Error, QueueName, error::Operation};
use relq_redis::{Conn, Reply, Script, bookkeeping::Bookkeeping, command};

use crate::{
    Mode,
    keys::Keys,
    session::{Session, Site},
};

pub(crate) use worker::{Asked, Claimed, From, How, Taken};

relq_redis::pattern_scripts! {
    in "../../lua/"; library pattern;
    beat, cancel_listed, claim, finish, purge, stats, suspects, take_back,
}

/// The scripts that a queue in this mode sends.
pub(crate) fn scripts(mode: Mode) -> impl Iterator<Item = &'static Script> {
    let others = match mode {
        Mode::PerWorker => "extend",
        Mode::Shared => "beat",
    };
    all_scripts().filter(move |script| script.name() != others)
}

/// The names of all scripts that a queue of this backend sends. For tools that monitor
/// the server or judge the backend.
pub fn script_names(mode: Mode) -> impl Iterator<Item = &'static str> {
    scripts(mode).map(Script::name)
}

/// The keys of a queue and a connection, on which the scripts are called.
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
        let sessions = |set| self.sessions(operation, set);
        let (working, retired) = tokio::try_join!(
            sessions(&self.keys.workers),
            sessions(&self.keys.retired)
        )?;
        let own = working.into_iter().chain(retired).map(Site::Own);
        Ok(std::iter::once(Site::Shared).chain(own).collect())
    }

    async fn sessions(
        &self,
        operation: Operation,
        set: &str,
    ) -> Result<Vec<Session>, Error> {
        let mut cmd = command("ZRANGE");
        cmd.arg(set).arg(0).arg(-1);
        sessions(self.conn.call(operation, &cmd).await?)
    }

    /// The lists of these sites. Scripts take them after the pattern keys.
    fn lists(&self, sites: &[Site]) -> Vec<String> {
        sites.iter().map(|site| self.keys.list(site)).collect()
    }
}

/// Parses a list of sessions.
fn sessions(reply: Reply) -> Result<Vec<Session>, Error> {
    let members = reply.list()?.into_iter().map(Reply::bytes);
    let members = members.collect::<Result<Vec<_>, _>>()?;
    Ok(members.iter().filter_map(|member| Session::parse(member)).collect())
}
