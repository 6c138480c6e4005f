//! The calls of producers, workers and reapers.

use std::time::Duration;

use bytes::Bytes;
use queue_core::{
    ClaimRequest, Error, OnDuplicate, Operation, PushToken, Receipt, Recovered,
    Timestamp,
};
use queue_redis::{Reply, command, entry, entry::millis};

use super::{MEMORY, SCRIPTS, Store, counts, optional_ms, positions};
use crate::lease;

/// A job as the push script takes it.
#[derive(Debug)]
pub(crate) struct NewEntry<'a> {
    pub(crate) job: &'a queue_core::NewJob,
    pub(crate) id: &'a queue_core::JobId,
    pub(crate) entry: Vec<u8>,
}

/// What the claim script found.
#[derive(Debug)]
pub(crate) struct Claimed {
    pub(crate) since_us: String,
    pub(crate) is_paused: bool,
    pub(crate) due_in: Option<Duration>,
    pub(crate) entries: Vec<Bytes>,
}

/// How a job ends that is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Finished,
    Discarded,
}

impl Ended {
    fn total(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Discarded => "discarded",
        }
    }
}

/// What the fail script is to do with one lease.
#[derive(Debug)]
pub(crate) struct Failure<'a> {
    pub(crate) lease: Vec<u8>,
    /// `None` buries.
    pub(crate) after: Option<Duration>,
    pub(crate) why: char,
    pub(crate) error: &'a str,
}

impl Store {
    /// Appends plain entries: the pattern's own producer command, atomic as it is.
    pub(crate) async fn append(&self, entries: &[Vec<u8>]) -> Result<(), Error> {
        let mut cmd = command("LPUSH");
        cmd.arg(&self.keys.ready).arg(entries);
        self.conn.call(Operation::Push, &cmd).await.map(drop)
    }

    /// Stores jobs that use options; answers the duplicates as flat triples.
    pub(crate) async fn push(
        &self,
        jobs: &[NewEntry<'_>],
        token: Option<&PushToken>,
    ) -> Result<Vec<Reply>, Error> {
        let keys = &self.keys;
        let mut call = SCRIPTS
            .push
            .keys(&[
                &keys.ready,
                &keys.ranked,
                &keys.later,
                &keys.jobs,
                &keys.unique,
                &keys.ids,
                &keys.calls,
                &keys.answers,
                &keys.wake,
            ])
            .arg(token.map_or("", PushToken::as_str))
            .arg(millis(MEMORY));
        for NewEntry { job, id, entry } in jobs {
            let key = job.unique.as_ref().map_or("", |unique| unique.key.as_str());
            let reschedules = job
                .unique
                .as_ref()
                .is_some_and(|unique| unique.on_duplicate == OnDuplicate::Reschedule);
            // An expiry of nothing at all is the shortest there is, not none.
            let expires_in = job.expires_in.map_or(0, |expiry| millis(expiry).max(1));
            call.push_arg(id.as_str());
            call.push_arg(entry);
            call.push_arg(millis(job.delay));
            call.push_arg(expires_in);
            call.push_arg(job.priority.level());
            call.push_arg(key);
            call.push_arg(if reschedules { "reschedule" } else { "keep" });
            call.push_arg(u8::from(job.id.is_some()));
        }
        call.run(&self.conn, Operation::Push).await?.list()
    }

    pub(crate) async fn claim(
        &self,
        ask: &ClaimRequest,
        max: u32,
        nonce: &str,
    ) -> Result<Claimed, Error> {
        let keys = &self.keys;
        let reply = SCRIPTS
            .claim
            .keys(&[
                &keys.ready,
                &keys.handed,
                &keys.ranked,
                &keys.later,
                &keys.leased,
                &keys.held,
                &keys.unique,
                &keys.paused,
                &keys.wake,
                &keys.jobs,
            ])
            .arg(ask.worker.as_str())
            .arg(nonce)
            .arg(millis(ask.lease))
            .arg(max)
            .arg(entry::bare_header())
            .run(&self.conn, Operation::Claim)
            .await?;
        let mut parts = reply.list()?.into_iter();
        let mut part = || parts.next().unwrap_or_else(|| Reply::nothing(&self.conn));
        let since_us = part().text()?;
        let is_paused = part().number()? == 1;
        let due_in = optional_ms(part().number()?);
        let entries = parts.map(Reply::bytes).collect::<Result<_, _>>()?;
        Ok(Claimed { since_us, is_paused, due_in, entries })
    }

    /// Ends jobs; answers the positions of the leases that were lost.
    pub(crate) async fn finish(
        &self,
        receipts: &[&Receipt],
        how: Ended,
    ) -> Result<Vec<usize>, Error> {
        let keys = &self.keys;
        let mut call = SCRIPTS
            .finish
            .keys(&[&keys.leased, &keys.held, &keys.totals])
            .arg(how.total());
        receipts.iter().for_each(|receipt| call.push_arg(lease::member(receipt)));
        positions(call.run(&self.conn, Operation::Settle).await?)
    }

    /// As `finish`, for jobs with something to clean up behind them.
    pub(crate) async fn finish_tied(
        &self,
        receipts: &[&Receipt],
        how: Ended,
    ) -> Result<Vec<usize>, Error> {
        let keys = &self.keys;
        let mut call = SCRIPTS
            .finish_tied
            .keys(&[
                &keys.leased,
                &keys.held,
                &keys.totals,
                &keys.unique,
                &keys.ids,
                &keys.errors,
            ])
            .arg(how.total())
            .arg(millis(MEMORY));
        receipts.iter().for_each(|receipt| call.push_arg(lease::member(receipt)));
        positions(call.run(&self.conn, Operation::Settle).await?)
    }

    /// Schedules or buries failed jobs; answers the positions of the lost leases.
    pub(crate) async fn fail(
        &self,
        operation: Operation,
        failures: &[Failure<'_>],
    ) -> Result<Vec<usize>, Error> {
        let keys = &self.keys;
        let mut call = SCRIPTS.fail.keys(&[
            &keys.leased,
            &keys.held,
            &keys.jobs,
            &keys.later,
            &keys.dead,
            &keys.errors,
            &keys.unique,
            &keys.ids,
            &keys.wake,
        ]);
        for failure in failures {
            let after = failure
                .after
                .map_or(-1, |after| i64::try_from(millis(after)).unwrap_or(i64::MAX));
            call.push_arg(&failure.lease);
            call.push_arg(after);
            call.push_arg(failure.why.to_string());
            call.push_arg(failure.error);
        }
        positions(call.run(&self.conn, operation).await?)
    }

    /// Puts jobs back to the front, the first of `leases` foremost; answers the
    /// positions of the lost leases.
    pub(crate) async fn give_back(
        &self,
        operation: Operation,
        leases: &[Vec<u8>],
    ) -> Result<Vec<usize>, Error> {
        let keys = &self.keys;
        let mut call = SCRIPTS.give_back.keys(&[
            &keys.leased,
            &keys.held,
            &keys.jobs,
            &keys.ready,
            &keys.ranked,
            &keys.unique,
            &keys.ids,
            &keys.wake,
        ]);
        leases.iter().for_each(|lease| call.push_arg(lease));
        positions(call.run(&self.conn, operation).await?)
    }

    /// Extends leases; answers their new end, and the positions of the lost and of
    /// the cancelled.
    pub(crate) async fn extend(
        &self,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<(Timestamp, Vec<usize>, Vec<usize>), Error> {
        let keys = &self.keys;
        let mut call =
            SCRIPTS.extend.keys(&[&keys.leased, &keys.cancelled]).arg(millis(lease));
        held.iter().for_each(|receipt| call.push_arg(lease::member(receipt)));
        let mut parts =
            call.run(&self.conn, Operation::Extend).await?.list()?.into_iter();
        let mut part = || parts.next().unwrap_or_else(|| Reply::nothing(&self.conn));
        let until = Timestamp::from_unix_ms(part().number()?);
        Ok((until, positions(part())?, positions(part())?))
    }

    /// Recovers a page of overdue leases.
    pub(crate) async fn recover(&self, page: u32) -> Result<Recovered, Error> {
        let keys = &self.keys;
        let call = SCRIPTS
            .recover
            .keys(&[
                &keys.leased,
                &keys.held,
                &keys.jobs,
                &keys.ready,
                &keys.ranked,
                &keys.dead,
                &keys.errors,
                &keys.unique,
                &keys.ids,
                &keys.wake,
            ])
            .arg(page);
        let counts = counts(call.run(&self.conn, Operation::Recover).await?)?;
        let count = |at: usize| counts.get(at).copied().unwrap_or(0);
        Ok(Recovered {
            requeued: u32::try_from(count(0)).unwrap_or(0),
            buried: u32::try_from(count(1)).unwrap_or(0),
            promoted: 0,
            more: count(2) == 1,
            next_in: optional_ms(counts.get(3).copied().unwrap_or(-1)),
        })
    }

    /// Makes a page of due jobs ready.
    pub(crate) async fn promote(
        &self,
        operation: Operation,
        page: u32,
    ) -> Result<Recovered, Error> {
        let keys = &self.keys;
        let call = SCRIPTS
            .promote
            .keys(&[&keys.later, &keys.jobs, &keys.ready, &keys.ranked, &keys.wake])
            .arg(page);
        let counts = counts(call.run(&self.conn, operation).await?)?;
        let count = |at: usize| counts.get(at).copied().unwrap_or(0);
        Ok(Recovered {
            promoted: u32::try_from(count(0)).unwrap_or(0),
            more: count(1) == 1,
            next_in: optional_ms(counts.get(2).copied().unwrap_or(-1)),
            ..Recovered::default()
        })
    }

    /// Forgets a page of what need not be remembered; says whether there is more.
    pub(crate) async fn forget(&self, page: u32) -> Result<bool, Error> {
        let keys = &self.keys;
        let call = SCRIPTS
            .forget
            .keys(&[&keys.ids, &keys.calls, &keys.answers, &keys.cancelled])
            .arg(page);
        Ok(call.run(&self.conn, Operation::Recover).await?.number()? == 1)
    }

    /// Lets another worker's doorbell ring.
    pub(crate) async fn pass_on(&self, most: u32) -> Result<(), Error> {
        let keys = &self.keys;
        let call =
            SCRIPTS.pass_on.keys(&[&keys.handed, &keys.ready, &keys.wake]).arg(most);
        call.run(&self.conn, Operation::Claim).await.map(drop)
    }
}
