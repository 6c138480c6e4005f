//! Results of jobs: a hash of what became of them, and the calls that use it (R29).
//!
//! ```text
//!  push          results: u                   unfinished
//!  progress      results: r, the progress     unfinished, with a report
//!  the end       results: d, the result       done
//!                         i / c / p           discarded / cancelled / purged
//!                         c, a leader         cancelled because it followed that job
//!                kept:    when it is removed
//!  burial        results: x, why, the error   dead; until it is purged or redriven
//!  every end     ended:   the id, for the clients that wait
//! ```

use std::time::Duration;

use bytes::Bytes;
use relq_core::{
    Error, JobId,
    error::Operation,
    results::{JobResult, Reported},
};

use super::{Bookkeeping, peek};
use crate::{Cmd, Reply, command, error::unreadable};

impl Bookkeeping {
    /// Stores what a worker reports of a job that it holds by `lease`, in the form that the
    /// pattern's `find_leased` takes.
    ///
    /// # Errors
    /// The errors of [`Conn::call`](crate::Conn::call). All calls here have these errors.
    pub async fn report_progress(
        &self,
        lease: &[u8],
        progress: &[u8],
    ) -> Result<Reported, Error> {
        let operation = Operation::ReportProgress;
        let call = self.call(&self.scripts.report_progress).arg(lease).arg(progress);
        match call.run(&self.conn, operation).await?.text()?.as_str() {
            "stored" => Ok(Reported::Stored),
            "lost" => Ok(Reported::LeaseLost),
            "not kept" => Ok(Reported::NotKept),
            other => Err(unreadable(self.conn.at(operation), format!("{other:?}"))),
        }
    }

    /// Reads what became of jobs, in as many steps as their results need.
    ///
    /// # Errors
    /// See [`report_progress`](Self::report_progress); [`Error::Unreadable`] for a value
    /// that is no result.
    pub async fn read_results(
        &self,
        operation: Operation,
        jobs: &[JobId],
    ) -> Result<Vec<Option<JobResult>>, Error> {
        let most = self.max_jobs_per_step().get() as usize;
        let mut found = Vec::with_capacity(jobs.len());
        while found.len() < jobs.len() {
            let keys = [&self.keys.results, &self.keys.kept];
            let mut call = self.scripts.read_results.keys(&keys);
            let page = jobs[found.len()..].iter().take(most);
            page.for_each(|job| call.push_arg(job.as_str()));
            let read = call.run(&self.conn, operation).await?.list()?;
            if read.is_empty() {
                return Err(unreadable(self.conn.at(operation), "no result for a job"));
            }
            for reply in read {
                found.push(self.result(operation, reply)?);
            }
        }
        Ok(found)
    }

    /// The command that waits until a job ends whose result is kept, after the end with
    /// the id `last`.
    pub(crate) fn waiting_for_ends(
        &self,
        last: &str,
        most: usize,
        block: Duration,
    ) -> Cmd {
        let mut cmd = command("XREAD");
        cmd.arg("COUNT").arg(most).arg("BLOCK").arg(block.as_millis().to_string());
        cmd.arg("STREAMS").arg(&self.keys.ended).arg(last);
        cmd
    }

    /// The command that reads the id of the last end.
    pub(crate) fn reading_last_end(&self) -> Cmd {
        let mut cmd = command("XREVRANGE");
        cmd.arg(&self.keys.ended).arg("+").arg("-").arg("COUNT").arg(1);
        cmd
    }

    fn result(
        &self,
        operation: Operation,
        reply: Reply,
    ) -> Result<Option<JobResult>, Error> {
        let Some(stored) = reply.optional_bytes()? else { return Ok(None) };
        let result = parse(&stored);
        let wrong = || unreadable(self.conn.at(operation), "a value is no result");
        result.map(Some).ok_or_else(wrong)
    }
}

fn parse(stored: &Bytes) -> Option<JobResult> {
    let value = stored.get(1..).map(|value| stored.slice_ref(value));
    Some(match stored.first()? {
        b'u' => JobResult::Unfinished { progress: None },
        b'r' => JobResult::Unfinished { progress: value },
        b'd' => JobResult::Done { result: value? },
        b'x' => JobResult::Dead { error: peek::reason(&peek::text(&value?)) },
        b'i' => JobResult::Discarded,
        b'c' => JobResult::Cancelled { leader: leader_of(&value?)? },
        b'p' => JobResult::Purged,
        _ => return None,
    })
}

/// The leader in the record of a cancelled job: empty if the job itself was cancelled.
fn leader_of(value: &Bytes) -> Option<Option<JobId>> {
    let leader = (!value.is_empty()).then(|| JobId::new(peek::text(value)));
    leader.transpose().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_letter_is_a_result_and_others_are_none() {
        let read = |stored: &'static str| parse(&Bytes::from(stored));

        let progress = Some(Bytes::new());
        assert_eq!(read("u"), Some(JobResult::Unfinished { progress: None }));
        assert_eq!(read("r"), Some(JobResult::Unfinished { progress }));
        assert_eq!(read("d42"), Some(JobResult::Done { result: "42".into() }));
        let error = "its worker asked for no retry: no".into();
        assert_eq!(read("xfno"), Some(JobResult::Dead { error }));
        assert_eq!(read("i"), Some(JobResult::Discarded));
        assert_eq!(read("c"), Some(JobResult::Cancelled { leader: None }));
        let leader = Some(JobId::new("a").unwrap());
        assert_eq!(read("ca"), Some(JobResult::Cancelled { leader }));
        assert_eq!(read("p"), Some(JobResult::Purged));
        assert_eq!((read(""), read("?")), (None, None));
    }
}
