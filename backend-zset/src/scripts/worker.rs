//! Calls the scripts that producers, workers and reapers need.

use std::time::Duration;

use bytes::Bytes;
use relq_core::{
    ClaimRequest, Error, Receipt, WorkerId,
    environment::Timestamp,
    error::{ErrorContext, Operation},
    outcome::Recovered,
};
use relq_redis::{
    Call, Parts, Reply,
    bookkeeping::{Bookkeeping, Ended, Finish, Step, WITH_RESULTS, WaitHint},
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
        let reply = call.run(&self.conn, Operation::Claim).await?;
        claimed(reply.parts()?, &ask.worker, &nonce)
    }

    fn claim_call(&self, ask: &ClaimRequest, nonce: &str) -> Call<'static> {
        with_claim(SCRIPTS.claim.keys(&self.claim_keys()), ask, nonce)
    }

    /// Ends finished jobs without side records, at most as many as one script call
    /// handles, and claims new jobs in the same script.
    pub(crate) async fn finish_and_claim(
        &self,
        receipts: &[&Receipt],
        ask: &ClaimRequest,
    ) -> (Result<Step, Error>, Result<Claimed, Error>) {
        let nonce = self.conn.environment().random().text(12);
        let totals = &self.keys.bookkeeping.totals;
        let keys: Vec<_> = self.claim_keys().into_iter().chain([totals]).collect();
        let call = with_claim(SCRIPTS.finish_and_claim.keys(&keys), ask, &nonce);
        let mut call = call.arg(Ended::Finished.total());
        receipts.iter().for_each(|receipt| call.push_arg(lease::member(receipt)));
        let operations = [Operation::Settle, Operation::Claim];
        match call.run_both(&self.conn, operations).await {
            Ok(reply) => {
                finished_and_claimed(reply, receipts.len(), &ask.worker, &nonce)
            }
            Err([finished, claimed]) => (Err(finished), Err(claimed)),
        }
    }

    /// Returns the keys of a claim, in the order in which `claim.lua` takes them.
    fn claim_keys(&self) -> [&String; 10] {
        let (keys, bookkeeping) = (&self.keys, &self.keys.bookkeeping);
        [
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
        ]
    }

    /// Removes leased jobs that have ended, as many as one script call handles.
    pub(crate) async fn finish(
        &self,
        receipts: &[&Receipt],
        Finish { how, needs_side_records }: Finish,
    ) -> Result<Step, Error> {
        let (keys, bookkeeping) = (&self.keys, &self.keys.bookkeeping);
        let own = [&keys.leased, &keys.held, &bookkeeping.totals];
        let mut call = if needs_side_records {
            let records = [&bookkeeping.unique, &bookkeeping.ids, &bookkeeping.errors];
            let keys = self.with_absent([own, records].concat());
            let call = SCRIPTS.finish_with_side_records.keys(&keys);
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

    /// Ends finished jobs that have side records, and stores their results.
    pub(crate) async fn finish_with_results(
        &self,
        jobs: &[(&Receipt, &Bytes)],
    ) -> Result<Step, Error> {
        let (keys, bookkeeping) = (&self.keys, &self.keys.bookkeeping);
        let keys = self.with_absent(vec![
            &keys.leased,
            &keys.held,
            &bookkeeping.totals,
            &bookkeeping.unique,
            &bookkeeping.ids,
            &bookkeeping.errors,
        ]);
        let call = SCRIPTS.finish_with_side_records.keys(&keys);
        let mut call = call.arg(WITH_RESULTS).arg(Bookkeeping::memory_ms());
        for (receipt, result) in jobs {
            call.push_arg(lease::member(receipt));
            call.push_arg(&result[..]);
        }
        Step::read(call.run(&self.conn, Operation::Settle).await?)
    }

    /// Recovers a page of overdue leases.
    pub(crate) async fn recover(&self, page: u32) -> Result<Recovered, Error> {
        let call = self.bookkeeping.call(&SCRIPTS.recover).arg(page);
        Bookkeeping::recovered(call.run(&self.conn, Operation::Recover).await?)
    }

    /// Passes a notification on to the notifier of another worker.
    pub(crate) async fn pass_on(&self, most: u32) -> Result<(), Error> {
        let keys = &self.keys;
        let call = SCRIPTS
            .pass_on
            .keys(&[&keys.handed, &keys.ready, &keys.bookkeeping.wake])
            .arg(most);
        call.run(&self.conn, Operation::Claim).await.map(drop)
    }
}

/// Adds the arguments of a claim, in the order of `claim.lua`.
fn with_claim<'a>(call: Call<'a>, ask: &ClaimRequest, nonce: &str) -> Call<'a> {
    call.arg(ask.worker.as_str())
        .arg(nonce)
        .arg(millis(ask.lease))
        .arg(ask.max.get())
        .arg(entry::uncounted_bare_header())
}

/// Reads the reply of the script that ends jobs and claims.
fn finished_and_claimed(
    reply: Reply,
    jobs: usize,
    worker: &WorkerId,
    nonce: &str,
) -> (Result<Step, Error>, Result<Claimed, Error>) {
    let mut parts = match reply.parts() {
        Ok(parts) => parts,
        Err(error) => {
            let at = ErrorContext { operation: Operation::Claim, ..error.at() };
            let source = error.to_string().into();
            return (Err(error), Err(Error::Unreadable { at, source }));
        }
    };
    let finished = lost(&mut parts).map(|lost| Step { handled: jobs, lost });
    (finished, claimed(parts, worker, nonce))
}

/// Reads the positions of the lost leases, at the end of a reply.
fn lost(parts: &mut Parts) -> Result<Vec<usize>, Error> {
    let count = parts.last_part().count()?;
    (0..count).map(|_| parts.last_part().position()).collect()
}

/// Reads the reply of the claim script.
fn claimed(mut parts: Parts, worker: &WorkerId, nonce: &str) -> Result<Claimed, Error> {
    let due_in = parts.last_part().optional_ms()?;
    let is_paused = parts.last_part().number()? == 1;
    let since_us = parts.last_part().text()?;
    let hint = WaitHint { is_paused, due_in };
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
