//! The calls of operators.

use std::time::Duration;

use bytes::Bytes;
use queue_core::{Error, JobId, Operation, Redriven};
use queue_redis::{command, entry::millis};

use super::{MEMORY, SCRIPTS, Store, counts};

/// How long a cancelled job's lease is remembered after its end, so that the worker
/// is told `Cancelled` and not `LeaseLost`.
const CANCELLED_MEMORY: Duration = Duration::from_secs(60);

impl Store {
    /// Counts, in the order of the script.
    pub(crate) async fn stats(&self) -> Result<Vec<i64>, Error> {
        let keys = &self.keys;
        let call = SCRIPTS.stats.keys(&[
            &keys.ready,
            &keys.handed,
            &keys.ranked,
            &keys.later,
            &keys.leased,
            &keys.dead,
            &keys.totals,
            &keys.paused,
        ]);
        counts(call.run(&self.conn, Operation::Stats).await?)
    }

    /// Ends a job that is in no list; answers the word for where it was.
    pub(crate) async fn cancel(
        &self,
        job: &JobId,
        lease: Option<&Bytes>,
    ) -> Result<Option<Bytes>, Error> {
        let keys = &self.keys;
        let call = SCRIPTS
            .cancel
            .keys(&[
                &keys.later,
                &keys.ranked,
                &keys.leased,
                &keys.jobs,
                &keys.cancelled,
                &keys.errors,
                &keys.unique,
                &keys.ids,
                &keys.totals,
                &keys.held,
            ])
            .arg(job.as_str())
            .arg(lease.map_or(&[][..], |lease| lease))
            .arg(millis(MEMORY))
            .arg(millis(CANCELLED_MEMORY));
        call.run(&self.conn, Operation::Cancel).await?.optional_bytes()
    }

    /// Ends a job that is an element of `list`; answers whether it still was.
    pub(crate) async fn cancel_listed(
        &self,
        list: &str,
        element: &Bytes,
    ) -> Result<bool, Error> {
        let keys = &self.keys;
        let call = SCRIPTS
            .cancel_listed
            .keys(&[list, &keys.unique, &keys.ids, &keys.errors, &keys.totals])
            .arg(&element[..])
            .arg(millis(MEMORY));
        Ok(call.run(&self.conn, Operation::Cancel).await?.number()? == 1)
    }

    pub(crate) async fn redrive(&self, ids: &[Bytes]) -> Result<Redriven, Error> {
        let keys = &self.keys;
        let mut call = SCRIPTS.redrive.keys(&[
            &keys.dead,
            &keys.jobs,
            &keys.ready,
            &keys.ranked,
            &keys.errors,
            &keys.unique,
            &keys.wake,
        ]);
        ids.iter().for_each(|id| call.push_arg(&id[..]));
        let counts = counts(call.run(&self.conn, Operation::Redrive).await?)?;
        let count = |at: usize| {
            counts.get(at).and_then(|count| u64::try_from(*count).ok()).unwrap_or(0)
        };
        Ok(Redriven { moved: count(0), duplicates: count(1) })
    }

    pub(crate) async fn purge_dead(&self, ids: &[Bytes]) -> Result<u64, Error> {
        let keys = &self.keys;
        let mut call = SCRIPTS
            .purge_dead
            .keys(&[&keys.dead, &keys.jobs, &keys.errors, &keys.ids])
            .arg(millis(MEMORY));
        ids.iter().for_each(|id| call.push_arg(&id[..]));
        call.run(&self.conn, Operation::Purge).await?.count()
    }

    pub(crate) async fn purge(&self) -> Result<u64, Error> {
        let keys = &self.keys;
        let call = SCRIPTS.purge.keys(&[
            &keys.ready,
            &keys.handed,
            &keys.ranked,
            &keys.later,
            &keys.leased,
            &keys.dead,
            &keys.held,
            &keys.jobs,
            &keys.errors,
            &keys.unique,
            &keys.ids,
            &keys.calls,
            &keys.answers,
            &keys.cancelled,
            &keys.totals,
            &keys.wake,
        ]);
        call.run(&self.conn, Operation::Purge).await?.count()
    }

    pub(crate) async fn pause(&self) -> Result<(), Error> {
        let mut cmd = command("SET");
        cmd.arg(&self.keys.paused).arg(1);
        self.conn.call(Operation::Pause, &cmd).await.map(drop)
    }

    pub(crate) async fn resume(&self) -> Result<(), Error> {
        let call = SCRIPTS.resume.keys(&[&self.keys.paused, &self.keys.wake]);
        call.run(&self.conn, Operation::Resume).await.map(drop)
    }
}
