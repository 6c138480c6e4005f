//! The script calls of producers, workers and reapers.

use std::time::Duration;

use bytes::Bytes;
use relq_core::{
    ClaimRequest, Error, WorkerId, environment::Timestamp, error::Operation,
    outcome::Recovered,
};
use relq_redis::{
    Call, Reply,
    bookkeeping::{Beat, Bookkeeping, Failure, Finish, Step},
    entry,
    entry::millis,
};

use super::{SCRIPTS, Store, sessions};
use crate::{
    lease::Lease,
    session::{Session, Site},
};

/// For how long the list of a retired session is watched: far longer than one of its
/// commands may be in transit or wait at the server.
const WATCH: Duration = Duration::from_secs(60);

/// How many sessions of each kind one recovery reads.
const SESSIONS: u32 = 1000;

/// The session that claims, and the list that gets the jobs.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) session: Session,
    pub(crate) site: Site,
    pub(crate) lease: Duration,
    pub(crate) max: u32,
    pub(crate) nonce: String,
    pub(crate) how: How,
}

/// Which jobs a claim takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum How {
    /// Ready jobs.
    #[default]
    Now,
    /// Ready jobs. If none is ready, the worker is registered, because it waits next.
    Waiting,
    /// A job that a blocking move has brought.
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

/// The result of the claim script.
#[derive(Debug)]
pub(crate) struct Claimed {
    pub(crate) now: Timestamp,
    pub(crate) is_paused: bool,
    pub(crate) due_in: Option<Duration>,
    pub(crate) elements: Vec<Bytes>,
}

/// The jobs to take back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken<'a> {
    /// Leases by name. The first becomes the next ready job.
    pub(crate) leases: &'a [Lease],
    /// Sessions whose lists are searched.
    pub(crate) sessions: &'a [Session],
    /// Which jobs are taken from the lists and leases above.
    pub(crate) from: From,
}

/// Why jobs are taken back. This decides whether their attempt counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// Their lease has expired. The attempt counts.
    TheDead,
    /// Their worker is released: all named jobs are taken. The attempt does not count.
    AReleasedWorker,
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

    /// The call of a claim, for the queue's connection or for a waiting one.
    pub(crate) fn claim_call(&self, asked: &Asked) -> Call<'static> {
        let (keys, bookkeeping) = (&self.keys, &self.keys.bookkeeping);
        let is_own = asked.site != Site::Shared;
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
            .arg(&asked.nonce)
            .arg(millis(asked.lease))
            .arg(asked.max)
            .arg(asked.how.word())
            .arg(entry::bare_header())
            .arg(ClaimRequest::MAX_BYTES)
    }

    /// Ends jobs of one list. Returns the positions of the lost leases.
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

    /// Schedules or buries failed jobs, as many as one step handles.
    pub(crate) async fn fail(
        &self,
        operation: Operation,
        failures: &[Failure<'_>],
    ) -> Result<Step, Error> {
        let lists = failures.iter().map(|failure| self.list_of(&failure.lease));
        self.bookkeeping.with_keys(lists).fail(operation, failures).await
    }

    /// Puts jobs back uncounted, as many as one step handles. The job of the last lease
    /// is claimed first.
    pub(crate) async fn give_back(
        &self,
        operation: Operation,
        leases: &[Vec<u8>],
    ) -> Result<Step, Error> {
        let lists = leases.iter().map(|lease| self.list_of(lease));
        self.bookkeeping.with_keys(lists).give_back(operation, leases).await
    }

    /// The list that holds an element. An element without a valid stamp is in no list.
    /// For it this returns the shared list, where the script does not find it.
    fn list_of(&self, element: &[u8]) -> String {
        let lease = Lease::parse(&Bytes::copy_from_slice(element));
        self.keys.list(&lease.map_or(Site::Shared, |lease| lease.site))
    }

    /// Extends a worker's heartbeat, and the named leases in its list.
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

    /// Takes a page of jobs back.
    pub(crate) async fn take_back(
        &self,
        operation: Operation,
        taken: Taken<'_>,
        page: u32,
    ) -> Result<Recovered, Error> {
        let Taken { leases, sessions, from } = taken;
        let mut sites: Vec<_> = sessions.iter().cloned().map(Site::Own).collect();
        sites.extend(leases.iter().map(|lease| lease.site.clone()));
        let mut call = self
            .bookkeeping
            .with_keys(self.lists(&sites))
            .call(&SCRIPTS.take_back)
            .arg(if from == From::TheDead { "over" } else { "left" })
            .arg(page)
            .arg(millis(WATCH))
            .arg(leases.len());
        for (at, lease) in leases.iter().enumerate() {
            call.push_arg(&lease.name[..]);
            call.push_arg(sessions.len() + 1 + at);
        }
        sessions.iter().for_each(|session| call.push_arg(session.as_str()));
        Bookkeeping::recovered(call.run(&self.conn, operation).await?)
    }

    /// Takes back a page of a released worker's jobs.
    pub(crate) async fn release(&self, taken: Taken<'_>) -> Result<Recovered, Error> {
        let page = self.bookkeeping.max_jobs_per_step().get();
        self.take_back(Operation::ReleaseWorker, taken, page).await
    }

    /// The leases and sessions to check: expired leases, the earliest end first, then
    /// the sessions that end first, then retired ones.
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
        let leases = names.iter().filter_map(Lease::of_name).collect();
        Ok((leases, [sessions(parts.part())?, sessions(parts.part())?].concat()))
    }

    /// The leases of a worker in the shared list, the oldest first.
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

    /// All sessions of a worker, including recently retired ones.
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
