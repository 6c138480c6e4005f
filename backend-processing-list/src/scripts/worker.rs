//! Calls the scripts of claims, settlements, heartbeats and recovery.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use relq_core::{
    ClaimRequest, Error, WorkerId, environment::Timestamp, error::Operation,
    outcome::Recovered,
};
use relq_redis::{
    Call, PartialEffect, Reply,
    bookkeeping::{Beat, Bookkeeping, Failure, Finish, Step},
    command, entry,
    entry::millis,
};

use super::{SCRIPTS, Store, sessions};
use crate::{
    lease::Lease,
    session::{Session, Site},
};

/// How long recovery watches the list of a retired session. This is far longer than a
/// command of that session can be on its way or wait at the server.
const WATCH: Duration = Duration::from_secs(60);

/// How many active sessions, and how many retired ones, one recovery reads at most.
const SESSIONS: u32 = 1000;

/// The parameters of the claim script: the session that claims, the list that receives
/// the jobs, and the limits.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) session: Session,
    pub(crate) site: Site,
    pub(crate) lease: Duration,
    pub(crate) max: u32,
    pub(crate) how: How,
}

/// Which jobs a claim takes, and whether it registers its worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum How {
    /// Takes ready jobs.
    #[default]
    Now,
    /// Takes ready jobs. If none is ready, registers the worker, because the claim
    /// waits next and its blocking move may fill the worker's list.
    Waiting,
    /// Takes only a job that a blocking move has brought.
    Moved,
}

impl How {
    fn word(self) -> &'static str {
        match self {
            Self::Now => "now",
            Self::Waiting => "waiting",
            Self::Moved => "moved",
        }
    }
}

/// The result of the claim script. `due_in` is the time until the next delayed job is
/// due, `None` if there is none.
#[derive(Debug)]
pub(crate) struct Claimed {
    pub(crate) now: Timestamp,
    pub(crate) is_paused: bool,
    pub(crate) due_in: Option<Duration>,
    pub(crate) elements: Vec<Bytes>,
}

/// Why jobs are taken back. This decides whether their attempt counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TakeBackReason {
    /// Their lease has expired, so their worker is presumed dead. The attempt counts.
    LeaseExpired,
    /// Their worker is released: all its jobs are taken. The attempt does not count.
    WorkerReleased,
}

impl TakeBackReason {
    fn word(self) -> &'static str {
        match self {
            Self::LeaseExpired => "over",
            Self::WorkerReleased => "left",
        }
    }

    fn operation(self) -> Operation {
        match self {
            Self::LeaseExpired => Operation::Recover,
            Self::WorkerReleased => Operation::ReleaseWorker,
        }
    }
}

/// How far a search through a list has come.
#[derive(Debug, Clone, Copy)]
struct Search {
    /// How many elements, the oldest of the list, are still to be read; -1 at the beginning.
    unread: i64,
    /// When the first step ran, by the server's clock (ms); -1 at the beginning.
    began_ms: i64,
}

impl Search {
    const BEGINNING: Self = Self { unread: -1, began_ms: -1 };
}

impl Claimed {
    /// Parses the reply of the claim script.
    pub(crate) fn read(reply: Reply) -> Result<Self, Error> {
        let mut parts = reply.parts()?;
        let now_us = Duration::from_micros(parts.part().count()?);
        let is_paused = parts.part().number()? == 1;
        let due_in = parts.part().optional_ms()?;
        let elements = parts.map(Reply::bytes).collect::<Result<_, _>>()?;
        let now = Timestamp::from_unix_ms(0).plus(now_us);
        Ok(Self { now, is_paused, due_in, elements })
    }
}

impl Store {
    pub(crate) async fn claim(&self, asked: &Asked) -> Result<Claimed, Error> {
        let reply = self.claim_call(asked).run(&self.conn, Operation::Claim).await?;
        Claimed::read(reply)
    }

    /// Builds the call of the claim script. It is sent on the queue's connection, or
    /// after a blocking move on a waiting connection.
    pub(crate) fn claim_call(&self, asked: &Asked) -> Call<'static> {
        let (keys, bookkeeping) = (&self.keys, &self.keys.bookkeeping);
        let is_own = asked.site != Site::Shared;
        // Each call has a nonce of its own, because the ids of bare payloads begin with it:
        // after a lost reply, a repeated move leases another job.
        let nonce = self.conn.environment().random().text(12);
        SCRIPTS
            .claim
            .keys(&[
                &keys.ready,
                &keys.handed,
                &keys.list(&asked.site),
                &keys.leased,
                &keys.workers,
                &keys.retired,
                &bookkeeping.later,
                &bookkeeping.unique,
                &bookkeeping.paused,
            ])
            .arg(asked.session.as_str())
            .arg(if is_own { "worker" } else { "job" })
            .arg(nonce)
            .arg(millis(asked.lease))
            .arg(asked.max)
            .arg(asked.how.word())
            .arg(entry::bare_header())
            .arg(ClaimRequest::MAX_BYTES)
    }

    /// Ends jobs whose leases are in one list. Returns the positions, from 0, of leases
    /// that were lost.
    pub(crate) async fn finish(
        &self,
        finish: Finish,
        site: &Site,
        tokens: Vec<&Bytes>,
    ) -> Result<Vec<usize>, Error> {
        let (keys, bookkeeping) = (&self.keys, &self.keys.bookkeeping);
        let window_ms =
            if finish.needs_side_records { Bookkeeping::memory_ms() } else { 0 };
        let mut call = SCRIPTS
            .finish
            .keys(&[
                &keys.list(site),
                &keys.leased,
                &bookkeeping.totals,
                &bookkeeping.unique,
                &bookkeeping.ids,
                &bookkeeping.errors,
            ])
            .arg(finish.how.total())
            .arg(window_ms);
        tokens.iter().for_each(|token| call.push_arg(&token[..]));
        call.run(&self.conn, Operation::Settle).await?.positions()
    }

    /// Schedules failed jobs for a retry or buries them. Handles as many as one step
    /// allows.
    pub(crate) async fn fail(
        &self,
        operation: Operation,
        failures: &[Failure<'_>],
    ) -> Result<Step, Error> {
        let lists = failures.iter().map(|failure| self.list_of(&failure.lease));
        self.bookkeeping.with_keys(lists).fail(operation, failures).await
    }

    /// Puts jobs back without counting their attempt. Handles as many as one step
    /// allows. The job of the last lease is claimed first.
    pub(crate) async fn give_back(
        &self,
        operation: Operation,
        leases: &[Vec<u8>],
    ) -> Result<Step, Error> {
        let lists = leases.iter().map(|lease| self.list_of(lease));
        self.bookkeeping.with_keys(lists).give_back(operation, leases).await
    }

    /// The key of the list that holds this leased element. For an element without a
    /// valid stamp, which is in no list, it returns the shared list: the script does
    /// not find the element there and reports a lost lease.
    fn list_of(&self, element: &[u8]) -> String {
        let lease = Lease::parse(&Bytes::copy_from_slice(element));
        self.keys.list(&lease.map_or(Site::Shared, |lease| lease.site))
    }

    /// Extends a worker's session, and the named leases in its list.
    pub(crate) async fn beat(
        &self,
        session: &Session,
        names: &[Bytes],
        lease: Duration,
    ) -> Result<Beat, Error> {
        let keys = &self.keys;
        let mut call = SCRIPTS
            .beat
            .keys(&[
                &keys.ready,
                &keys.leased,
                &keys.workers,
                &keys.bookkeeping.cancelled,
                &keys.own_list(session),
            ])
            .arg(session.as_str())
            .arg(millis(lease));
        names.iter().for_each(|name| call.push_arg(&name[..]));
        Beat::read(call.run(&self.conn, Operation::Extend).await?)
    }

    /// Takes back a page of the jobs in the lists of these sessions.
    pub(crate) async fn take_back(
        &self,
        reason: TakeBackReason,
        sessions: &[Session],
        page: u32,
    ) -> Result<Recovered, Error> {
        let sites: Vec<_> = sessions.iter().cloned().map(Site::Own).collect();
        let mut call = self
            .bookkeeping
            .with_keys(self.lists(&sites))
            .call(&SCRIPTS.take_back)
            .arg(reason.word())
            .arg(page)
            .arg(millis(WATCH));
        sessions.iter().for_each(|session| call.push_arg(session.as_str()));
        Bookkeeping::recovered(call.run(&self.conn, reason.operation()).await?)
    }

    /// Takes back the jobs of these leases, each from its list. The caller passes at
    /// most as many as one script handles. The job of the first lease becomes the next
    /// ready job.
    pub(crate) async fn take_leases(
        &self,
        reason: TakeBackReason,
        leases: &[Lease],
    ) -> Result<Recovered, Error> {
        let mut by_site = BTreeMap::<&Site, Vec<&Bytes>>::new();
        for lease in leases {
            by_site.entry(&lease.site).or_default().push(&lease.name);
        }
        let (mut taken, mut partial) = (Recovered::default(), PartialEffect::default());
        for (site, names) in by_site {
            let mut search = Search::BEGINNING;
            while search.unread != 0 {
                let step = self.take_named(reason, site, &names, search).await;
                let (requeued, buried, next) = partial.then(step)?;
                taken.requeued += requeued;
                taken.buried += buried;
                search = next;
            }
        }
        Ok(taken)
    }

    /// Searches a part of one list for leases, and takes their jobs back. Returns how many
    /// jobs were made ready and buried, and the search for the next step.
    async fn take_named(
        &self,
        reason: TakeBackReason,
        site: &Site,
        names: &[&Bytes],
        search: Search,
    ) -> Result<(u32, u32, Search), Error> {
        let mut call = self
            .bookkeeping
            .with_keys([self.keys.list(site)])
            .call(&SCRIPTS.take_named)
            .arg(reason.word())
            .arg(search.unread)
            .arg(search.began_ms);
        names.iter().for_each(|name| call.push_arg(&name[..]));
        let mut parts = call.run(&self.conn, reason.operation()).await?.parts()?;
        let mut number = || parts.part().number();
        let (requeued, buried) = (number()?, number()?);
        let search = Search { unread: number()?.max(0), began_ms: number()? };
        let count = |number| u32::try_from(number).unwrap_or(0);
        Ok((count(requeued), count(buried), search))
    }

    /// The leases and sessions that recovery must check: first `page` expired leases at
    /// most, then the active sessions, then the retired ones, each sorted by their end.
    /// Members of `leased` that are not leases are removed.
    pub(crate) async fn suspects(
        &self,
        page: u32,
    ) -> Result<(Vec<Lease>, Vec<Session>), Error> {
        let keys = &self.keys;
        let call = SCRIPTS
            .suspects
            .keys(&[&keys.leased, &keys.workers, &keys.retired])
            .arg(page)
            .arg(SESSIONS);
        let reply = call.run(&self.conn, Operation::Recover).await?;
        let mut parts = reply.parts()?;
        let names = parts.part().list()?.into_iter().rev().map(Reply::bytes);
        let names = names.collect::<Result<Vec<_>, _>>()?;
        let leases: Vec<_> = names.iter().filter_map(Lease::of_name).collect();
        if leases.len() < names.len() {
            self.remove_foreign_leases(&names).await?;
        }
        Ok((leases, [sessions(parts.part())?, sessions(parts.part())?].concat()))
    }

    /// Removes those of these members of `leased` that are not names of leases. Another
    /// client has added them. No job has such a name, so recovery would find them again
    /// at each page.
    async fn remove_foreign_leases(&self, names: &[Bytes]) -> Result<(), Error> {
        let mut cmd = command("ZREM");
        cmd.arg(&*self.keys.leased);
        for name in names.iter().filter(|name| Lease::of_name(name).is_none()) {
            cmd.arg(&name[..]);
            let name = String::from_utf8_lossy(name);
            tracing::warn!(%name, "removed a member that is not a lease");
        }
        self.conn.call(Operation::Recover, &cmd).await?;
        Ok(())
    }

    /// The leases that a worker has in the shared list, the oldest first.
    pub(crate) async fn leases_of(
        &self,
        worker: &WorkerId,
    ) -> Result<Vec<Lease>, Error> {
        let pattern = format!("{}/*", Session::shared(worker));
        let (operation, leased) = (Operation::ReleaseWorker, &self.keys.leased);
        let found =
            self.bookkeeping.find_leases(operation, leased, Lease::of_name, &pattern);
        let mut leases: Vec<_> =
            found.await?.into_iter().map(|(_, lease)| lease).collect();
        leases.sort_unstable_by(|a, b| a.order.cmp(&b.order));
        Ok(leases)
    }

    /// All sessions with this worker's name, registered or retired.
    pub(crate) async fn sessions_of(
        &self,
        worker: &WorkerId,
    ) -> Result<Vec<Session>, Error> {
        let pattern = format!("{worker}/*");
        let scan = |set| {
            let read = |session: &Bytes, _: &Bytes| Session::parse(session);
            let operation = Operation::ReleaseWorker;
            self.bookkeeping.find_members(operation, set, &pattern, read)
        };
        let (working, retired) =
            tokio::try_join!(scan(&self.keys.workers), scan(&self.keys.retired))?;
        let all = working.into_iter().chain(retired);
        Ok(all.map(|(_, session)| session).collect())
    }
}
