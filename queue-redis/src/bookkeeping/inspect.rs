//! Finds a job by its id, runs a scheduled job now, and keeps the list of the workers
//! that run (R31, R32, R33).

use std::num::NonZeroU32;

use bytes::{Buf, Bytes};
use relq_core::{
    Error, JobId, WorkerId,
    environment::Timestamp,
    error::Operation,
    operator::{
        JobLookup, JobRecord, JobView, PageCursor, RunNow, StateDetail,
        WORKER_FORGOTTEN_AFTER, WorkerReport, WorkerView, WorkersPage,
    },
};

use super::{
    Bookkeeping,
    members::{Member, position, score_and_name},
    peek::{Stored, dead},
};
use crate::{Call, Parts, Script, entry::millis, error::unreadable};

/// The maximum number of workers of a page, even if more are requested.
const MAX_WORKERS: u32 = 1000;

/// The number of bytes of a time in a worker's row of the hash `runs`.
const SINCE: usize = 6;

impl Bookkeeping {
    /// Looks for a job where the queue has an index: among the scheduled and the dead
    /// jobs, the ready ones whose entry is in `jobs`, and the remembered ids. A job that
    /// is not found may be leased, too.
    pub(crate) async fn find_job(&self, job: &JobId) -> Result<JobLookup, Error> {
        let operation = Operation::ReadJob;
        let call = self.call(&self.scripts.find_job).arg(job.as_str());
        let mut parts = call.run(&self.conn, operation).await?.parts()?;
        let (place, score) = (parts.part().text()?, parts.part().bytes()?);
        let followers = parts.part().optional_bytes()?.unwrap_or_default();
        let followers = followers_in(&followers);
        let score = Member { name: Bytes::new(), score };
        let found = match place.as_str() {
            "scheduled" => {
                let due = score.time();
                stored(job, &mut parts, |_| StateDetail::Scheduled { due })?
            }
            "ready" => stored(job, &mut parts, |_| StateDetail::Ready)?,
            "dead" => stored(job, &mut parts, |error| dead(score.time(), error))?,
            // See `remember_id`.
            "ended" => {
                let was_done = !score.score.contains(&b'.');
                return Ok(JobLookup::Ended { was_done, until: score.time() });
            }
            "unseen" => return Ok(JobLookup::MaybeReady { followers }),
            other => {
                return Err(unreadable(self.conn.at(operation), format!("{other:?}")));
            }
        };
        Ok(JobLookup::Stored(Box::new(JobRecord::new(found, followers))))
    }

    /// Makes a scheduled job ready. The second value says whether it is a piece of a
    /// batch.
    pub(crate) async fn run_now(&self, job: &JobId) -> Result<(RunNow, bool), Error> {
        let operation = Operation::RunNow;
        let call = self.call(&self.scripts.run_now).arg(job.as_str());
        let mut parts = call.run(&self.conn, operation).await?.parts()?;
        let unreadable = |what: String| unreadable(self.conn.at(operation), what);
        match parts.part().text()?.as_str() {
            "ready" => Ok((RunNow::Ready, parts.part().number()? == 1)),
            "held" => {
                let leader = JobId::new(parts.part().text()?);
                let leader = leader.map_err(|error| unreadable(error.to_string()))?;
                Ok((RunNow::Following { leader }, false))
            }
            "not scheduled" => Ok((RunNow::NotScheduled, false)),
            other => Err(unreadable(format!("{other:?}"))),
        }
    }

    /// Stores that a worker runs.
    pub(crate) async fn report_worker(
        &self,
        report: &WorkerReport,
    ) -> Result<(), Error> {
        let call = self
            .of_workers(&self.scripts.report_worker)
            .arg(report.worker.as_str())
            .arg(report.slots.get())
            .arg(millis(WORKER_FORGOTTEN_AFTER));
        call.run(&self.conn, Operation::ReportWorker).await.map(drop)
    }

    /// Stores that a worker runs no longer.
    pub(crate) async fn remove_worker(&self, worker: &WorkerId) -> Result<(), Error> {
        let call = self.of_workers(&self.scripts.remove_worker).arg(worker.as_str());
        call.run(&self.conn, Operation::ReleaseWorker).await.map(drop)
    }

    /// Reads a page of the workers that run. They are listed by the time of their last
    /// report, and a report moves a worker to a later page. So no worker is missed that
    /// goes on reporting.
    pub(crate) async fn workers(
        &self,
        after: Option<&PageCursor>,
        limit: NonZeroU32,
    ) -> Result<WorkersPage, Error> {
        let operation = Operation::ReadWorkers;
        let most = limit.get().min(MAX_WORKERS);
        let mut call = self
            .of_workers(&self.scripts.list_workers)
            .arg(most)
            .arg(millis(WORKER_FORGOTTEN_AFTER));
        if let Some(PageCursor(after)) = after {
            let (until, name) =
                score_and_name(after).ok_or_else(|| self.not_a_cursor(operation))?;
            call.push_arg(&until[..]);
            call.push_arg(&name[..]);
        }
        let mut parts = call.run(&self.conn, operation).await?.parts()?;
        let (mut page, mut listed, mut last) = (WorkersPage::default(), 0, None);
        while let Some(name) = parts.next() {
            let (name, score) = (name.bytes()?, parts.part().bytes()?);
            let run = parts.part().optional_bytes()?;
            listed += 1;
            last = Some(position(&score, &name));
            let until = Member { name: name.clone(), score }.time();
            page.workers.extend(run.and_then(|run| worker_in(&name, &run, until)));
        }
        page.next = last.filter(|_| listed == most).map(PageCursor);
        Ok(page)
    }

    fn of_workers<'a>(&self, script: &'a Script) -> Call<'a> {
        script.keys(&[&self.keys.alive, &self.keys.runs])
    }
}

/// Reads the entry and the error of a job from the rest of a reply.
fn stored(
    job: &JobId,
    parts: &mut Parts,
    detail: impl FnOnce(Option<&str>) -> StateDetail,
) -> Result<JobView, Error> {
    let id = Bytes::copy_from_slice(job.as_str().as_bytes());
    let entry = parts.part().optional_bytes()?.unwrap_or_default();
    let error = parts.part().optional_bytes()?;
    Ok(Stored { id: &id, entry: Some(entry), error }.view(detail))
}

/// The ids in a list of held followers: see `keys.rs`. An entry that is cut off, as
/// another client may write it, ends the list.
fn followers_in(list: &Bytes) -> Vec<JobId> {
    const SIZE: usize = 4;
    let mut rest = list.slice(SIZE.min(list.len())..);
    let mut followers = Vec::new();
    while rest.has_remaining() {
        let length = usize::from(rest.get_u8());
        if rest.remaining() < length {
            break;
        }
        let id = rest.split_to(length);
        let id = std::str::from_utf8(&id).ok().and_then(|id| JobId::new(id).ok());
        followers.extend(id);
    }
    followers
}

/// The worker of a row of the hash `runs`; `None` if another client wrote it.
fn worker_in(name: &Bytes, run: &Bytes, until: Timestamp) -> Option<WorkerView> {
    let worker = WorkerId::new(std::str::from_utf8(name).ok()?).ok()?;
    let mut run = run.clone();
    if run.len() != SINCE + size_of::<u32>() {
        return None;
    }
    let since = i64::try_from(run.get_uint(SINCE)).ok()?;
    let slots = NonZeroU32::new(run.get_u32())?;
    let since = Timestamp::from_unix_ms(since);
    Some(WorkerView::new(worker, slots, since).until(until))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_followers_that_is_cut_ends_early() {
        let list = Bytes::from_static(b"\0\0\0\x09\x01a\x02bc");
        let ids = |list: &Bytes| -> Vec<_> {
            followers_in(list).iter().map(ToString::to_string).collect()
        };

        assert_eq!(ids(&list), ["a", "bc"]);
        assert_eq!(ids(&list.slice(..8)), ["a"]);
        for length in 0..6 {
            assert!(ids(&list.slice(..length)).is_empty(), "{length}");
        }
    }

    #[test]
    fn a_row_that_another_client_wrote_is_no_worker() {
        let read = |name: &'static str, run: &'static [u8]| {
            let until = Timestamp::from_unix_ms(9);
            worker_in(&Bytes::from(name), &Bytes::from(run), until)
        };

        let worker = read("w", b"\0\0\0\0\x01\0\0\0\0\x07").unwrap();
        assert_eq!(worker.since.unix_ms(), 256);
        assert_eq!((worker.slots.get(), worker.until.unix_ms()), (7, 9));
        assert_eq!(read("w", b"\0\0\0\0\x01\0\0\0\0\0"), None);
        assert_eq!(read("w", b"foreign"), None);
        assert_eq!(read("", b"\0\0\0\0\x01\0\0\0\0\x07"), None);
    }
}
