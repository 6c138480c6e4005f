//! The functions that call the scripts for producers, workers and reapers.

use std::time::Duration;

use bytes::Bytes;
use relq_core::{
    ClaimRequest, Error, Receipt, environment::Timestamp, error::Operation,
    outcome::Recovered,
};
use relq_redis::{
    bookkeeping::{Beat, Bookkeeping, Finish, Step, WITH_RESULTS, WaitHint},
    command,
    entry::millis,
    pattern::{Attempt, Claimed, LeasedJob},
};

use super::{SCRIPTS, Store};
use crate::lease::{self, Token};

/// How long a foreign consumer of the group may be idle before recovery takes its
/// entries back. It has no leases, so nothing else limits its time.
const FOREIGN_CONSUMER_MAY_IDLE: Duration = Duration::from_secs(5 * 60);

impl Store {
    /// Adds jobs without options to the stream. A single job needs no script, only an
    /// XADD.
    pub(crate) async fn append(&self, entries: &[Vec<u8>]) -> Result<(), Error> {
        let stream = &self.keys.normal;
        if let [entry] = entries {
            let mut cmd = command("XADD");
            cmd.arg(stream).arg("*").arg("job").arg(&entry[..]);
            return self.conn.call(Operation::Push, &cmd).await.map(drop);
        }
        let call = SCRIPTS.append.keys(&[stream]).arg(entries);
        call.run(&self.conn, Operation::Push).await.map(drop)
    }

    pub(crate) async fn claim(&self, ask: &ClaimRequest) -> Result<Claimed, Error> {
        let nonce = self.conn.environment().random().text(12);
        let call = self
            .bookkeeping
            .call(&SCRIPTS.claim)
            .arg(ask.worker.as_str())
            .arg(nonce)
            .arg(millis(ask.lease))
            .arg(ask.max.get())
            .arg(ClaimRequest::MAX_BYTES);
        let reply = call.run(&self.conn, Operation::Claim).await?;
        let mut parts = reply.parts()?;
        let now = Timestamp::from_unix_ms(parts.part().number()?);
        let is_paused = parts.part().number()? == 1;
        let hint = WaitHint { is_paused, due_in: parts.part().optional_ms()? };
        // How many jobs the claim has buried, because another client deleted their
        // entry or because they have no payload.
        let buried = parts.part().count()?;
        let mut jobs = Vec::new();
        while let (Some(token), Some(entry)) = (parts.next(), parts.next()) {
            jobs.push(leased(token.bytes()?, entry.bytes()?));
        }
        let is_changed = !jobs.is_empty() || buried > 0;
        Ok(Claimed {
            now,
            jobs,
            is_due: hint.is_due(),
            wake: hint.into(),
            is_changed,
            goes_on: is_changed,
        })
    }

    /// Ends the jobs of these leases. One script call may handle only the first of
    /// them, so the result says how many it handled.
    pub(crate) async fn finish(
        &self,
        receipts: &[&Receipt],
        Finish { how, needs_side_records }: Finish,
    ) -> Result<Step, Error> {
        let mut call = if needs_side_records {
            let call = self.bookkeeping.call(&SCRIPTS.finish_with_side_records);
            call.arg(how.total()).arg(Bookkeeping::memory_ms())
        } else {
            self.bookkeeping.call(&SCRIPTS.finish).arg(how.total())
        };
        receipts.iter().for_each(|receipt| call.push_arg(lease::member(receipt)));
        let reply = call.run(&self.conn, Operation::Settle).await?;
        if needs_side_records {
            Step::read(reply)
        } else {
            Step::whole(receipts.len(), reply)
        }
    }

    /// Ends finished jobs that have side records, and stores their results.
    pub(crate) async fn finish_with_results(
        &self,
        jobs: &[(&Receipt, &Bytes)],
    ) -> Result<Step, Error> {
        let call = self.bookkeeping.call(&SCRIPTS.finish_with_side_records);
        let mut call = call.arg(WITH_RESULTS).arg(Bookkeeping::memory_ms());
        for (receipt, result) in jobs {
            call.push_arg(lease::member(receipt));
            call.push_arg(&result[..]);
        }
        Step::read(call.run(&self.conn, Operation::Settle).await?)
    }

    /// Extends leases. If a leased piece belongs to a cancelled batch, its lease ends
    /// instead.
    pub(crate) async fn extend(
        &self,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Beat, Error> {
        let call = self.bookkeeping.call(&SCRIPTS.extend).arg(millis(lease));
        let mut call = call.arg(Bookkeeping::cancelled_memory_ms());
        held.iter().for_each(|receipt| call.push_arg(lease::member(receipt)));
        Beat::read(call.run(&self.conn, Operation::Extend).await?)
    }

    /// Recovers a page of expired leases.
    pub(crate) async fn recover(&self, page: u32) -> Result<Recovered, Error> {
        let call = self.bookkeeping.call(&SCRIPTS.recover).arg(page);
        Bookkeeping::recovered(call.run(&self.conn, Operation::Recover).await?)
    }

    /// Takes back entries that a consumer of another program has held while it was idle
    /// for [`FOREIGN_CONSUMER_MAY_IDLE`], and those that a worker holds without a lease.
    /// Removes idle consumers of other programs that hold nothing.
    pub(crate) async fn adopt(&self, page: u32) -> Result<Recovered, Error> {
        let call = self.bookkeeping.call(&SCRIPTS.adopt);
        let call = call.arg(page).arg(millis(FOREIGN_CONSUMER_MAY_IDLE));
        Bookkeeping::recovered(call.run(&self.conn, Operation::Recover).await?)
    }

    /// Passes a notification on to another notifier, because this one has no waiting
    /// claim.
    pub(crate) async fn pass_on(&self) -> Result<(), Error> {
        let call = SCRIPTS.pass_on.keys(&[&self.keys.bookkeeping.wake]);
        call.run(&self.conn, Operation::Claim).await.map(drop)
    }
}

/// Builds a leased job from a token and an entry that the claim script returned. The
/// attempt in the token already counts this delivery.
fn leased(token: Bytes, entry: Bytes) -> LeasedJob {
    let attempt = Token::parse(&token).map_or(1, |token| token.attempt);
    LeasedJob { token, entry, attempt: Attempt::Number(attempt) }
}
