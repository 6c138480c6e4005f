//! The Lua scripts of this backend, each with a typed function that calls it.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use relq_core::{
    ClaimRequest, Error, QueueName, Receipt, Stats, environment::Timestamp,
    error::Operation, outcome::Recovered,
};
use relq_redis::{
    Conn, Reply, Script,
    bookkeeping::{Beat, Bookkeeping, Finish, Step, WaitHint},
    command, entry,
    entry::millis,
    pattern::{Attempt, Claimed, LeasedJob},
};

use crate::{keys::Keys, lease};

relq_redis::pattern_scripts! {
    of crate::pattern::CAPABILITIES; in "../lua/"; library pattern;
    cancel_listed, claim, extend, finish, purge, recover, stats,
}

/// About how many leases one command reads.
const SCANNED: u32 = 1000;

/// The names of all scripts that a queue of this backend sends.
pub fn script_names() -> impl Iterator<Item = &'static str> {
    all_scripts().map(Script::name)
}

/// A connection and the keys of a queue. The scripts are called with them.
#[derive(Debug)]
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

    pub(crate) async fn claim(&self, ask: &ClaimRequest) -> Result<Claimed, Error> {
        let nonce = self.conn.environment().random().text(12);
        let call = self.bookkeeping.call(&SCRIPTS.claim);
        let call = call
            .arg(ask.worker.as_str())
            .arg(nonce)
            .arg(millis(ask.lease))
            .arg(ask.max.get())
            .arg(entry::uncounted_bare_header())
            .arg(ClaimRequest::MAX_BYTES);
        claimed(call.run(&self.conn, Operation::Claim).await?)
    }

    /// Ends the jobs of `receipts`, as many as one step handles.
    pub(crate) async fn finish(
        &self,
        receipts: &[&Receipt],
        finish: Finish,
    ) -> Result<Step, Error> {
        let mut call = self.bookkeeping.call(&SCRIPTS.finish);
        call.push_arg(finish.how.total());
        call.push_arg(Bookkeeping::memory_ms());
        for receipt in receipts {
            call.push_arg(lease::join(
                receipt.token(),
                receipt.job().as_str().as_ref(),
            ));
        }
        Step::read(call.run(&self.conn, Operation::Settle).await?)
    }

    /// Extends the leases of `held`, so that they run for `lease` from now.
    pub(crate) async fn extend(
        &self,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Beat, Error> {
        let mut call = self.bookkeeping.call(&SCRIPTS.extend).arg(millis(lease));
        for receipt in held {
            call.push_arg(lease::join(
                receipt.token(),
                receipt.job().as_str().as_ref(),
            ));
        }
        Beat::read(call.run(&self.conn, Operation::Extend).await?)
    }

    /// Checks the sets of the minutes that have begun, and recovers up to `page` leases
    /// that have expired.
    pub(crate) async fn recover(&self, page: u32) -> Result<Recovered, Error> {
        let call = self.bookkeeping.call(&SCRIPTS.recover).arg(page);
        Bookkeeping::recovered(call.run(&self.conn, Operation::Recover).await?)
    }

    /// Wakes another waiting claim, by leaving a token in a list. The list keeps one
    /// token at most.
    pub(crate) async fn notify(&self) -> Result<(), Error> {
        let wake = &self.keys.bookkeeping.wake;
        let (mut push, mut trim) = (command("LPUSH"), command("LTRIM"));
        push.arg(wake).arg(1);
        trim.arg(wake).arg(0).arg(0);
        self.conn.call(Operation::Claim, &push).await?;
        self.conn.call(Operation::Claim, &trim).await.map(drop)
    }

    pub(crate) async fn stats(&self) -> Result<Stats, Error> {
        let call = self.bookkeeping.call(&SCRIPTS.stats);
        Bookkeeping::stats(call.run(&self.conn, Operation::Stats).await?)
    }

    pub(crate) async fn purge(&self) -> Result<u64, Error> {
        let call = self.bookkeeping.call(&SCRIPTS.purge);
        call.run(&self.conn, Operation::Purge).await?.count()
    }

    /// Cancels a ready job, which is an element of the list. Returns whether it was
    /// still there.
    pub(crate) async fn cancel_listed(&self, element: &Bytes) -> Result<bool, Error> {
        let call = self.bookkeeping.call(&SCRIPTS.cancel_listed);
        let call = call.arg(&element[..]).arg(Bookkeeping::memory_ms());
        Ok(call.run(&self.conn, Operation::Cancel).await?.number()? == 1)
    }

    /// Returns all leases with the times when they end, the earliest end first.
    pub(crate) async fn leases(
        &self,
        operation: Operation,
    ) -> Result<Vec<(Timestamp, Bytes)>, Error> {
        let (mut found, mut cursor) = (BTreeMap::new(), None);
        while cursor.as_deref() != Some("0") {
            let mut cmd = command("HSCAN");
            cmd.arg(&self.keys.ends).arg(cursor.as_deref().unwrap_or("0"));
            cmd.arg("COUNT").arg(SCANNED);
            let mut parts = self.conn.call(operation, &cmd).await?.parts()?;
            cursor = Some(parts.part().text()?);
            let mut page = parts.part().list()?.into_iter();
            while let (Some(name), Some(end_ms)) = (page.next(), page.next()) {
                // If another client has overwritten the end with text, treat the lease
                // as expired.
                let end = Timestamp::from_unix_ms(end_ms.number().unwrap_or_default());
                found.insert(name.bytes()?, end);
            }
        }
        let mut leases: Vec<_> =
            found.into_iter().map(|(name, end)| (end, name)).collect();
        leases.sort_unstable();
        Ok(leases)
    }
}

/// Reads the reply of the claim script.
fn claimed(reply: Reply) -> Result<Claimed, Error> {
    let mut parts = reply.parts()?;
    let now = Timestamp::from_unix_ms(parts.part().number()?);
    let is_paused = parts.part().number()? == 1;
    let hint = WaitHint { is_paused, due_in: parts.part().optional_ms()? };
    let mut jobs = Vec::new();
    while let (Some(token), Some(entry)) = (parts.next(), parts.next()) {
        let (token, entry) = (token.bytes()?, entry.bytes()?);
        jobs.push(LeasedJob { token, entry, attempt: Attempt::InEntry });
    }
    Ok(Claimed {
        now,
        is_changed: !jobs.is_empty(),
        goes_on: !jobs.is_empty(),
        jobs,
        is_due: hint.is_due(),
        wake: hint.into(),
    })
}
