//! Reads jobs for an operator without changing them.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use relq_core::{
    Error, JobId,
    environment::Timestamp,
    error::Operation,
    operator::{JobView, Page, PageCursor, PeekRequest, StateDetail},
};

use super::{Bookkeeping, PageSize, REPLY_BYTES};
use crate::{Reply, command, entry::Entry};

/// The maximum number of jobs of a page, even if more are requested, because a page
/// also contains their payloads.
const MAX_PAGE: usize = 1000;

/// The range of jobs to read from a section, in the order in which they are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// How many jobs of the section come before the range.
    pub offset: usize,
    /// The maximum number of jobs in the range.
    pub count: usize,
}

/// Reads one page of the jobs in a state. The jobs are stored in `sections`, which are
/// read one after the other by `look`. The cursor is the current section and how many
/// of its jobs were shown. The page ends early with the job that fills [`REPLY_BYTES`].
///
/// # Errors
/// The errors of `look`.
pub async fn page<'a, S: Copy>(
    sections: &[S],
    ask: &PeekRequest,
    look: impl Fn(S, Look) -> BoxFuture<'a, Result<Vec<JobView>, Error>>,
) -> Result<Page, Error> {
    let limit = usize::try_from(ask.limit.get()).unwrap_or(MAX_PAGE).min(MAX_PAGE);
    let (mut section, mut offset) = read_cursor(ask.after.as_ref());
    let (mut jobs, mut size, mut bytes) = (Vec::new(), PageSize::of_payloads(), 0);
    while let Some(place) = sections.get(section) {
        let count = size.count_of(limit - jobs.len());
        let found = look(*place, Look { offset, count }).await?;
        if found.len() < count {
            (section, offset) = (section + 1, 0);
        } else {
            offset += count;
        }
        // Count 1 byte for each job, because a job without a payload takes space, too.
        let found_bytes = found.iter().map(|job| 1 + job.payload.len()).sum();
        size.adapt(found_bytes);
        bytes += found_bytes;
        jobs.extend(found);
        if jobs.len() == limit || bytes >= REPLY_BYTES {
            let next = PageCursor(format!("{section}:{offset}").into());
            return Ok(Page { jobs, next: Some(next) });
        }
    }
    Ok(Page { jobs, next: None })
}

fn read_cursor(cursor: Option<&PageCursor>) -> (usize, usize) {
    let text = cursor.and_then(|cursor| std::str::from_utf8(&cursor.0).ok());
    let parts = text.and_then(|text| text.split_once(':'));
    let number = |text: &str| text.parse().unwrap_or(0);
    parts.map_or((0, 0), |(section, offset)| (number(section), number(offset)))
}

impl Bookkeeping {
    /// Reads scheduled jobs. The job that is due next comes first, and held jobs last.
    ///
    /// # Errors
    /// The errors of [`Conn::call`](crate::Conn::call). All functions here have these
    /// errors.
    pub async fn peek_scheduled(&self, look: Look) -> Result<Vec<JobView>, Error> {
        let members = self.members(&self.keys.later, look).await?;
        self.views(members, |due, _| StateDetail::Scheduled { due }).await
    }

    /// Reads dead jobs. The job that died first comes first.
    ///
    /// # Errors
    /// The errors of [`peek_scheduled`](Self::peek_scheduled).
    pub async fn peek_dead(&self, look: Look) -> Result<Vec<JobView>, Error> {
        let members = self.members(&self.keys.dead, look).await?;
        let detail = |since, error: Option<&str>| StateDetail::Dead {
            reason: reason(error.unwrap_or_default()),
            since,
        };
        self.views(members, detail).await
    }

    /// Reads the elements of a list as ready jobs, from its right end to the left.
    ///
    /// # Errors
    /// The errors of [`peek_scheduled`](Self::peek_scheduled).
    pub async fn peek_list(
        &self,
        list: &str,
        look: Look,
    ) -> Result<Vec<JobView>, Error> {
        let signed = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let Look { offset, count } = look;
        let mut cmd = command("LRANGE");
        cmd.arg(list)
            .arg(-signed(offset.saturating_add(count)))
            .arg(-signed(offset.saturating_add(1)));
        let elements = self.conn.call(Operation::Peek, &cmd).await?.list()?;
        let ready = |element: Reply| Ok((element.bytes()?, StateDetail::Ready));
        let jobs = elements.into_iter().rev().map(ready);
        self.views_of(jobs.collect::<Result<_, Error>>()?).await
    }

    /// Turns list elements or entries, each with the state of its job, into views of
    /// the jobs.
    ///
    /// # Errors
    /// The errors of [`peek_scheduled`](Self::peek_scheduled).
    pub async fn views_of(
        &self,
        elements: Vec<(Bytes, StateDetail)>,
    ) -> Result<Vec<JobView>, Error> {
        let view =
            |(element, detail): (Bytes, StateDetail)| match Entry::decode(&element) {
                Ok(entry) => view(entry, detail),
                Err(_) => JobView::new(None, element, detail),
            };
        let mut jobs: Vec<_> = elements.into_iter().map(view).collect();
        let id = |job: &JobView| {
            job.id.as_ref().map_or_else(Bytes::new, |id| {
                Bytes::copy_from_slice(id.as_str().as_bytes())
            })
        };
        let ids: Vec<_> = jobs.iter().map(id).collect();
        let errors = self.fields(&self.keys.errors, &ids).await?;
        for (job, error) in jobs.iter_mut().zip(errors) {
            job.last_error = error.as_ref().and_then(|error| last_error(&text(error)));
        }
        Ok(jobs)
    }

    /// Reads the jobs with the given ids, whose entries are in the hash `jobs`.
    ///
    /// # Errors
    /// The errors of [`peek_scheduled`](Self::peek_scheduled).
    pub async fn views(
        &self,
        members: Vec<(Bytes, Timestamp)>,
        detail: impl Fn(Timestamp, Option<&str>) -> StateDetail + Send,
    ) -> Result<Vec<JobView>, Error> {
        let ids: Vec<_> = members.iter().map(|(id, _)| id.clone()).collect();
        let entries = self.fields(&self.keys.jobs, &ids).await?;
        let errors = self.fields(&self.keys.errors, &ids).await?;
        let mut jobs = Vec::with_capacity(members.len());
        for (((id, time), entry), error) in members.iter().zip(entries).zip(errors) {
            let error = error.as_ref().map(text);
            let detail = detail(*time, error.as_deref());
            let mut job = view_of(id, entry.unwrap_or_default(), detail);
            job.last_error = error.as_deref().and_then(last_error);
            jobs.push(job);
        }
        Ok(jobs)
    }

    /// Reads members of a sorted set of times. The earliest comes first.
    ///
    /// The range is one of ranks. A range of scores with an offset would make the server
    /// pass all members before the offset.
    ///
    /// # Errors
    /// The errors of [`peek_scheduled`](Self::peek_scheduled).
    pub async fn members(
        &self,
        set: &str,
        Look { offset, count }: Look,
    ) -> Result<Vec<(Bytes, Timestamp)>, Error> {
        let Some(last) = offset.saturating_add(count).checked_sub(1) else {
            return Ok(Vec::new());
        };
        let mut cmd = command("ZRANGE");
        cmd.arg(set).arg(offset).arg(last).arg("WITHSCORES");
        let mut members = Vec::new();
        for pair in self.conn.call(Operation::Peek, &cmd).await?.list()? {
            let mut pair = pair.list()?.into_iter();
            if let (Some(member), Some(score)) = (pair.next(), pair.next()) {
                // The score of a held job is infinite.
                let ms = score.time_ms()?.unwrap_or(i64::MAX);
                members.push((member.bytes()?, Timestamp::from_unix_ms(ms)));
            }
        }
        Ok(members)
    }

    /// How many members of a sorted set have a score below `score`.
    ///
    /// # Errors
    /// The errors of [`peek_scheduled`](Self::peek_scheduled).
    pub async fn count_below(&self, set: &str, score: u64) -> Result<usize, Error> {
        let mut cmd = command("ZCOUNT");
        cmd.arg(set).arg("-inf").arg(format!("({score}"));
        let count = self.conn.call(Operation::Peek, &cmd).await?.count()?;
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }

    /// Reads the values of several fields of a hash.
    ///
    /// # Errors
    /// The errors of [`peek_scheduled`](Self::peek_scheduled).
    pub async fn fields(
        &self,
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
        let reply = self.conn.call(Operation::Peek, &cmd).await?;
        reply.list()?.into_iter().map(Reply::optional_bytes).collect()
    }
}

fn view_of(id: &Bytes, entry: Bytes, detail: StateDetail) -> JobView {
    match Entry::decode(&entry) {
        Ok(entry) => view(entry, detail),
        Err(_) => {
            let id = std::str::from_utf8(id).ok().and_then(|id| JobId::new(id).ok());
            JobView::new(id, entry, detail)
        }
    }
}

fn view(entry: Entry, detail: StateDetail) -> JobView {
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
    job
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
        Some('a') => format!("it failed on its last attempt: {text}"),
        Some('c') => {
            "its last attempt ended with its lease: the worker died, froze or \
                      was cut off"
                .to_owned()
        }
        Some('f') => format!("its worker asked for no retry: {text}"),
        Some('m') => format!("it cannot be read: {text}"),
        Some('x') => "it expired before it was delivered".to_owned(),
        _ => "unknown".to_owned(),
    }
}

fn last_error(error: &str) -> Option<String> {
    match split_letter(error) {
        (Some('a' | 'c' | 'e' | 'f' | 'x'), text) if !text.is_empty() => {
            Some(text.to_owned())
        }
        _ => None,
    }
}

fn split_letter(error: &str) -> (Option<char>, &str) {
    let mut symbols = error.chars();
    (symbols.next(), symbols.as_str())
}
