//! The calls of producers, workers and reapers.

use std::time::Duration;

use relq_core::{
    ClaimRequest, Error, Receipt, WorkerId, environment::Timestamp, error::Operation,
    outcome::Recovered,
};
use relq_redis::{
    Call, Reply,
    bookkeeping::{Bookkeeping, Finish, Step, WaitHint},
    entry,
    entry::millis,
    pattern::{Attempt, Claimed, LeasedJob},
};

use super::{SCRIPTS, Store};
use crate::lease::{self, Claim};

impl Store {
    pub(crate) async fn claim(&self, ask: &ClaimRequest) -> Result<Claimed, Error> {
        let nonce = self.conn.environment().random().text(12);
        let call = self.claim_call(ask, &nonce);
        claimed(call.run(&self.conn, Operation::Claim).await?, &ask.worker, &nonce)
    }

    fn claim_call(&self, ask: &ClaimRequest, nonce: &str) -> Call<'static> {
        let (keys, bookkeeping) = (&self.keys, &self.keys.bookkeeping);
        SCRIPTS
            .claim
            .keys(&[
                &keys.ready,
                &keys.handed,
                &keys.ranked,
                &bookkeeping.later,
                &keys.leased,
                &keys.held,
                &bookkeeping.unique,
                &bookkeeping.paused,
                &bookkeeping.wake,
                &bookkeeping.jobs,
            ])
            .arg(ask.worker.as_str())
            .arg(nonce)
            .arg(millis(ask.lease))
            .arg(ask.max.get())
            .arg(entry::uncounted_bare_header())
            .arg(ClaimRequest::MAX_BYTES)
    }

    /// Ends jobs, as many as one step handles.
    pub(crate) async fn finish(
        &self,
        receipts: &[&Receipt],
        Finish { how, needs_side_records }: Finish,
    ) -> Result<Step, Error> {
        let (keys, bookkeeping) = (&self.keys, &self.keys.bookkeeping);
        let own = [&keys.leased, &keys.held, &bookkeeping.totals];
        let mut call = if needs_side_records {
            let records = [&bookkeeping.unique, &bookkeeping.ids, &bookkeeping.errors];
            let call = SCRIPTS.finish_with_side_records.keys(&[own, records].concat());
            call.arg(how.total()).arg(Bookkeeping::memory_ms())
        } else {
            SCRIPTS.finish.keys(&own).arg(how.total())
        };
        receipts.iter().for_each(|receipt| call.push_arg(lease::member(receipt)));
        let reply = call.run(&self.conn, Operation::Settle).await?;
        if needs_side_records {
            Step::read(reply)
        } else {
            Step::whole(receipts.len(), reply)
        }
    }

    /// Recovers a page of overdue leases.
    pub(crate) async fn recover(&self, page: u32) -> Result<Recovered, Error> {
        let call = self.bookkeeping.call(&SCRIPTS.recover).arg(page);
        Bookkeeping::recovered(call.run(&self.conn, Operation::Recover).await?)
    }

    /// Wakes another worker's notifier.
    pub(crate) async fn pass_on(&self, most: u32) -> Result<(), Error> {
        let keys = &self.keys;
        let call = SCRIPTS
            .pass_on
            .keys(&[&keys.handed, &keys.ready, &keys.bookkeeping.wake])
            .arg(most);
        call.run(&self.conn, Operation::Claim).await.map(drop)
    }
}

/// Reads the reply of the claim script.
fn claimed(reply: Reply, worker: &WorkerId, nonce: &str) -> Result<Claimed, Error> {
    let mut parts = reply.parts()?;
    let since_us = parts.part().text()?;
    let is_paused = parts.part().number()? == 1;
    let hint = WaitHint { is_paused, due_in: parts.part().optional_ms()? };
    let claim = Claim { worker, since_us: &since_us, nonce };
    let leased = |(at, entry): (usize, Reply)| {
        let entry = entry.bytes()?;
        let token = claim.token(at, &entry);
        Ok(LeasedJob { token, entry, attempt: Attempt::AfterEntry })
    };
    let jobs: Vec<_> = parts.enumerate().map(leased).collect::<Result<_, Error>>()?;
    let since_us: u64 = since_us.parse().unwrap_or(u64::MAX);
    Ok(Claimed {
        now: Timestamp::from_unix_ms(0).plus(Duration::from_micros(since_us)),
        is_changed: !jobs.is_empty(),
        goes_on: !jobs.is_empty(),
        jobs,
        is_due: hint.is_due(),
        wake: hint.into(),
    })
}
