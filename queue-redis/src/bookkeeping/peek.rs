//! Reads jobs for an operator without changing them.

use bytes::Bytes;
use futures_util::FutureExt;
use relq_core::{
    Error, JobId,
    environment::Timestamp,
    error::Operation,
    operator::{
        JobParts, JobState, JobView, Page, PeekOrder, PeekRequest, StateDetail,
    },
};

use super::{
    Bookkeeping, Look, SectionPart, SectionRequest,
    listing::{in_order, next_offset, offset_of},
    members::{StoredJob, next_of},
};
use crate::{
    Reply, command,
    entry::{Entry, Malformed},
};

impl Bookkeeping {
    /// Reads one page of the scheduled or dead jobs, of any pattern. Scheduled jobs are
    /// served in the order of their due times, and held jobs last. Dead jobs are listed
    /// in the order in which they died.
    ///
    /// # Errors
    /// The errors of [`list`](Self::list).
    pub async fn peek_kept(&self, ask: &PeekRequest) -> Result<Page, Error> {
        let sections = in_order(&[ask.state]);
        self.list(&sections, ask, |state, asked| {
            async move {
                match state {
                    JobState::Dead => self.dead_jobs(asked).await,
                    _ => self.scheduled_jobs(asked).await,
                }
            }
            .boxed()
        })
        .await
    }

    async fn scheduled_jobs(
        &self,
        asked: SectionRequest,
    ) -> Result<SectionPart, Error> {
        let keys = &self.keys;
        let found = self.members_after(&keys.later, Some(&keys.jobs), &asked).await?;
        let next = next_of(&asked, &found);
        let view = |job: &StoredJob| {
            let due = job.member.time();
            job.view(&job.member.name, |_| StateDetail::Scheduled { due })
        };
        let jobs = found.iter().map(view).collect();
        Ok(SectionPart { jobs, next, other_bytes: 0 })
    }

    async fn dead_jobs(&self, asked: SectionRequest) -> Result<SectionPart, Error> {
        let entries = match asked.parts {
            JobParts::Whole => Some(&*self.keys.jobs),
            JobParts::Outline => None,
        };
        let found = self.members_after(&self.keys.dead, entries, &asked).await?;
        let next = next_of(&asked, &found);
        let view = |job: &StoredJob| {
            let since = job.member.time();
            job.view(&job.member.name, |error| dead(since, error))
        };
        let jobs = found.iter().map(view).collect();
        Ok(SectionPart { jobs, next, other_bytes: 0 })
    }

    /// Reads the elements of a list as ready jobs, from its right end to the left.
    ///
    /// # Errors
    /// The errors of [`Conn::call`](crate::Conn::call). All functions here have these
    /// errors.
    pub async fn peek_list(
        &self,
        list: &str,
        look: Look,
    ) -> Result<Vec<JobView>, Error> {
        let signed = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let Look { offset, count } = look;
        let (first, last) =
            (-signed(offset.saturating_add(count)), -signed(offset.saturating_add(1)));
        let mut elements = self.elements(list, first, last).await?;
        elements.reverse();
        self.views_of(elements).await
    }

    /// Reads the elements of a list as ready jobs. The next one to serve is at the right
    /// end. New jobs come to the left end, so from there on they shift the others to
    /// later parts: no job is missed, and some are read twice.
    ///
    /// # Errors
    /// The errors of [`peek_list`](Self::peek_list).
    pub async fn list_elements(
        &self,
        list: &str,
        asked: &SectionRequest,
    ) -> Result<SectionPart, Error> {
        let (offset, count) = (offset_of(asked), asked.count);
        let jobs = match asked.order {
            PeekOrder::AsServed => self.peek_list(list, Look { offset, count }).await?,
            PeekOrder::NewestFirst => {
                let signed = |number| i64::try_from(number).unwrap_or(i64::MAX);
                let last = signed(offset.saturating_add(count)) - 1;
                let elements = self.elements(list, signed(offset), last).await?;
                self.views_of(elements).await?
            }
        };
        let next = next_offset(asked, offset, jobs.len());
        Ok(SectionPart { jobs, next, other_bytes: 0 })
    }

    async fn elements(
        &self,
        list: &str,
        first: i64,
        last: i64,
    ) -> Result<Vec<(Bytes, StateDetail)>, Error> {
        let mut cmd = command("LRANGE");
        cmd.arg(list).arg(first).arg(last);
        let elements = self.conn.call(Operation::Peek, &cmd).await?.list()?;
        let ready = |element: Reply| Ok((element.bytes()?, StateDetail::Ready));
        elements.into_iter().map(ready).collect()
    }

    /// Turns list elements or entries, each with the state of its job, into views of
    /// the jobs.
    ///
    /// # Errors
    /// The errors of [`peek_list`](Self::peek_list).
    pub async fn views_of(
        &self,
        elements: Vec<(Bytes, StateDetail)>,
    ) -> Result<Vec<JobView>, Error> {
        self.views_for(Operation::Peek, elements).await
    }

    /// Turns list elements or entries into views, as [`views_of`](Self::views_of) does,
    /// for another operation.
    ///
    /// # Errors
    /// The errors of [`peek_list`](Self::peek_list).
    pub async fn views_for(
        &self,
        operation: Operation,
        elements: Vec<(Bytes, StateDetail)>,
    ) -> Result<Vec<JobView>, Error> {
        let view =
            |(element, detail): (Bytes, StateDetail)| match Entry::decode(&element) {
                Err(_) if !Entry::is_marked(&element) => {
                    JobView::new(None, element, detail)
                }
                decoded => view(decoded, None, &element, detail),
            };
        let mut jobs: Vec<_> = elements.into_iter().map(view).collect();
        let id = |job: &JobView| {
            job.id.as_ref().map_or_else(Bytes::new, |id| {
                Bytes::copy_from_slice(id.as_str().as_bytes())
            })
        };
        let ids: Vec<_> = jobs.iter().map(id).collect();
        let errors = self.fields_for(operation, &self.keys.errors, &ids).await?;
        for (job, error) in jobs.iter_mut().zip(errors) {
            job.last_error = error.as_ref().and_then(|error| last_error(&text(error)));
        }
        Ok(jobs)
    }

    /// Reads the outlines of leased jobs: their ids and states are known, and their errors
    /// are read.
    ///
    /// # Errors
    /// The errors of [`peek_list`](Self::peek_list).
    pub async fn outlines(
        &self,
        leased: Vec<(Bytes, StateDetail)>,
    ) -> Result<Vec<JobView>, Error> {
        let ids: Vec<_> = leased.iter().map(|(id, _)| id.clone()).collect();
        let errors = self.fields(&self.keys.errors, &ids).await?;
        let jobs = leased.into_iter().zip(errors).map(|((id, detail), error)| {
            Stored { id: &id, entry: None, error }.view(|_| detail)
        });
        Ok(jobs.collect())
    }

    /// Reads the values of several fields of a hash.
    ///
    /// # Errors
    /// The errors of [`peek_list`](Self::peek_list).
    pub async fn fields(
        &self,
        hash: &str,
        names: &[Bytes],
    ) -> Result<Vec<Option<Bytes>>, Error> {
        self.fields_for(Operation::Peek, hash, names).await
    }

    /// Reads the values of several fields of a hash, for another operation than `peek`.
    ///
    /// # Errors
    /// The errors of [`peek_list`](Self::peek_list).
    pub async fn fields_for(
        &self,
        operation: Operation,
        hash: &str,
        names: &[Bytes],
    ) -> Result<Vec<Option<Bytes>>, Error> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let mut cmd = command("HMGET");
        cmd.arg(hash);
        names.iter().for_each(|name| {
            cmd.arg(&name[..]);
        });
        let reply = self.conn.call(operation, &cmd).await?;
        reply.list()?.into_iter().map(Reply::optional_bytes).collect()
    }
}

impl StoredJob {
    /// The view of the job. `id` is shown if there is none in its entry, and `detail` turns
    /// its error into its state.
    pub fn view(
        &self,
        id: &Bytes,
        detail: impl FnOnce(Option<&str>) -> StateDetail,
    ) -> JobView {
        let (entry, error) = (self.entry.clone(), self.error.clone());
        Stored { id, entry, error }.view(detail)
    }
}

/// The fields of a job in the hashes `jobs` and `errors`.
pub(super) struct Stored<'a> {
    pub(super) id: &'a Bytes,
    /// Empty if another client has removed it. `None` if it was not read.
    pub(super) entry: Option<Bytes>,
    pub(super) error: Option<Bytes>,
}

impl Stored<'_> {
    /// The view of the job. `detail` turns its error into its state.
    pub(super) fn view(
        self,
        detail: impl FnOnce(Option<&str>) -> StateDetail,
    ) -> JobView {
        let error = self.error.as_ref().map(text);
        let (id, detail) = (job_id(self.id), detail(error.as_deref()));
        let mut job = match self.entry {
            Some(entry) => view(Entry::decode(&entry), id, &entry, detail),
            None => JobView::new(id, Bytes::new(), detail),
        };
        job.last_error = error.as_deref().and_then(last_error);
        job
    }
}

fn job_id(id: &Bytes) -> Option<JobId> {
    std::str::from_utf8(id).ok().and_then(|id| JobId::new(id).ok())
}

/// The state of a dead job with this stored error.
pub(super) fn dead(since: Timestamp, error: Option<&str>) -> StateDetail {
    StateDetail::Dead { reason: reason(error.unwrap_or_default()), since }
}

/// The view of a decoded entry. If it cannot be read, its bytes are the payload, and the id
/// is `id`.
fn view(
    decoded: Result<Entry, Malformed>,
    id: Option<JobId>,
    bytes: &Bytes,
    detail: StateDetail,
) -> JobView {
    let why = |error: Malformed| cannot_be_read(error.reason());
    let entry = match decoded {
        Ok(entry) => entry,
        Err(error) => {
            let mut job = JobView::new(id, bytes.clone(), detail);
            job.unreadable = Some(why(error));
            return job;
        }
    };
    let malformed = entry.malformed_payload();
    let detail = match (detail, entry.leader) {
        (StateDetail::Scheduled { .. }, Some(leader)) => {
            StateDetail::Following { leader, delay: entry.delay }
        }
        (detail, _) => detail,
    };
    let mut job = JobView::new(Some(entry.id), entry.payload, detail);
    job.attempt = u32::from(entry.attempt);
    job.max_attempts = entry.max_attempts;
    job.priority = entry.priority;
    job.unique = entry.unique;
    job.expires_at = entry.expires_at;
    job.enqueued_at = entry.enqueued_at;
    job.headers = entry.headers;
    job.batch = entry.batch;
    job.lease = entry.lease;
    job.keep_result = entry.keep_result;
    job.unreadable = malformed.map(why);
    job
}

/// The reason of a dead letter whose entry cannot be read.
pub fn cannot_be_read(why: &str) -> String {
    format!("it cannot be read: {why}")
}

/// Bytes as text, with a replacement character for each part that is not UTF-8.
pub(super) fn text(bytes: &Bytes) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Turns the stored error of a dead job into words. The scripts store a letter for the
/// reason before the error.
pub(super) fn reason(error: &str) -> String {
    let (why, text) = split_letter(error);
    match why {
        Some('r') => restored_death(text).0.to_owned(),
        Some('a') => format!("it failed on its last attempt: {text}"),
        Some('c') => {
            "its last attempt ended with its lease: the worker died, froze or \
                      was cut off"
                .to_owned()
        }
        Some('f') => format!("its worker asked for no retry: {text}"),
        Some('m') => cannot_be_read(text),
        Some('x') => "it expired before it was delivered".to_owned(),
        _ => "unknown".to_owned(),
    }
}

fn last_error(error: &str) -> Option<String> {
    match split_letter(error) {
        (Some('r'), text) => {
            Some(restored_death(text).1.to_owned()).filter(|it| !it.is_empty())
        }
        (Some('a' | 'c' | 'e' | 'f' | 'x'), text) if !text.is_empty() => {
            Some(text.to_owned())
        }
        _ => None,
    }
}

/// The stored error of a dead job that is restored (R34): the letter `r`, the length of the
/// reason in bytes, a space, the reason, and the last error.
pub(super) fn restored_error(reason: &str, last_error: &str) -> String {
    format!("r{} {reason}{last_error}", reason.len())
}

/// Splits the stored error of a restored job, after its letter, into the reason and the
/// last error. Returns a text in another form, which another client has written, as the
/// reason.
fn restored_death(text: &str) -> (&str, &str) {
    let split = || {
        let (length, rest) = text.split_once(' ')?;
        rest.split_at_checked(length.parse().ok()?)
    };
    split().unwrap_or((text, ""))
}

fn split_letter(error: &str) -> (Option<char>, &str) {
    let mut symbols = error.chars();
    (symbols.next(), symbols.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_restored_job_has_its_reason() {
        for (why, error) in [("it failed", "no"), ("", ""), ("3 é", "7 r"), ("\0", " ")]
        {
            let stored = restored_error(why, error);
            assert_eq!(reason(&stored), why);
            assert_eq!(last_error(&stored).unwrap_or_default(), error);
        }
    }

    #[test]
    fn what_another_client_wrote_is_all_reason() {
        for text in ["", "no", "9 no", "-1 no", "1 \u{e9}", "99999999999999999999 x"] {
            assert_eq!(reason(&format!("r{text}")), text);
            assert_eq!(last_error(&format!("r{text}")), None);
        }
    }
}
