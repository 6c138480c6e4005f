//! Storing new jobs.

use std::borrow::Cow;

use async_trait::async_trait;
use relq_core::{
    Error, JobId, NewJob, Priority, PushToken, ReliableQueue,
    environment::Timestamp,
    error::Operation,
    followers::CannotFollow,
    limits::DEDUPLICATION_WINDOW,
    outcome::{DuplicateOf, Pushed},
    unique::OnDuplicate,
};

use super::Bookkeeping;
use crate::{
    Call, Reply, code_of, detail_of,
    entry::{self, millis},
    error::unreadable,
    timed_id,
};

/// A pattern that can store new jobs.
#[async_trait]
pub trait Stores: ReliableQueue {
    /// Returns the bookkeeping of the queue, with the keys that the push script needs
    /// to store new jobs with these ids.
    fn bookkeeping_for(&self, ids: &[JobId]) -> Cow<'_, Bookkeeping>;

    /// Stores jobs without options by the pattern's own producer command: all of them or
    /// none (R5). Returns whether they are stored. If not, the caller stores them by the
    /// bookkeeping's script.
    ///
    /// # Errors
    /// The errors of the command.
    async fn append(&self, ids: &[JobId], entries: Vec<Vec<u8>>)
    -> Result<bool, Error>;
}

/// Stores jobs. Jobs without options are stored by the pattern's own producer command,
/// all others by the bookkeeping's script.
///
/// # Errors
/// [`Error::Invalid`], [`Error::Unsupported`], or the errors of the commands.
pub async fn push(
    on: &impl Stores,
    jobs: &[NewJob],
    token: Option<&PushToken>,
) -> Result<Vec<Pushed>, Error> {
    on.capabilities().check_push(jobs, token.is_some())?;
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let bookkeeping = on.bookkeeping_for(&[]);
    let are_plain = token.is_none() && jobs.iter().all(is_plain);
    let plain_at = are_plain.then(|| bookkeeping.conn.server_time()).flatten();
    let ids = bookkeeping.ids_for(jobs, token, plain_at);
    if are_plain {
        // No entry needs a field for the time of the push, because the ids contain that time.
        let encode = |(job, id)| entry::encode(job, id, None);
        let entries = jobs.iter().zip(&ids).map(encode).collect();
        if on.append(&ids, entries).await? {
            return Ok(ids.into_iter().map(Pushed::Stored).collect());
        }
    }
    on.bookkeeping_for(&ids).push(jobs, ids, token).await
}

/// Whether the pattern's own producer command can store the job: the job uses no
/// option.
fn is_plain(job: &NewJob) -> bool {
    job.id.is_none()
        && job.unique.is_none()
        && job.expires_in.is_none()
        && job.delay.is_zero()
        && job.keep_result.is_none()
        && job.after.is_none()
        && job.priority == Priority::NORMAL
}

impl Bookkeeping {
    /// Returns an id for each job of a push: the id that the client chose, or a new one.
    /// If all jobs are plain, `plain_at` is the time of the push. The new ids contain it,
    /// and have fewer random digits.
    pub fn ids_for(
        &self,
        jobs: &[NewJob],
        token: Option<&PushToken>,
        plain_at: Option<Timestamp>,
    ) -> Vec<JobId> {
        let random = self.conn.environment().random();
        let token = token.cloned().unwrap_or_else(|| match plain_at {
            Some(now) => timed_id::token(now, random),
            None => PushToken::random(random),
        });
        let id = |(at, job): (usize, &NewJob)| {
            job.id.clone().unwrap_or_else(|| token.job_id(at))
        };
        jobs.iter().enumerate().map(id).collect()
    }

    /// Stores jobs that use options, or the jobs of a call with a token, by the script.
    ///
    /// # Errors
    /// The errors of [`Conn::call`](crate::Conn::call); [`Error::Invalid`] when the
    /// token belongs to an earlier call with other jobs; [`Error::CannotFollow`].
    pub async fn push(
        &self,
        jobs: &[NewJob],
        ids: Vec<JobId>,
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        let mut call = self
            .call(&self.scripts.push)
            .arg(token.map_or("", PushToken::as_str))
            .arg(millis(DEDUPLICATION_WINDOW));
        add_jobs(&mut call, jobs, &ids);
        let answer = call.run(&self.conn, Operation::Push).await;
        let refused = |error| cannot_follow(token_of_another_call(error), jobs);
        let duplicates = answer.map_err(refused)?.list()?;
        self.pushed(Operation::Push, ids, duplicates)
    }

    /// Reads the result for each job from the reply of the push script. The reply has
    /// three values for each duplicate: its position, the kind, and the id of the
    /// existing job.
    pub(super) fn pushed(
        &self,
        operation: Operation,
        ids: Vec<JobId>,
        duplicates: Vec<Reply>,
    ) -> Result<Vec<Pushed>, Error> {
        let mut pushed: Vec<_> = ids.into_iter().map(Pushed::Stored).collect();
        let mut parts = duplicates.into_iter();
        while let (Some(at), Some(by), Some(existing)) =
            (parts.next(), parts.next(), parts.next())
        {
            let at = usize::try_from(at.count()?).unwrap_or(usize::MAX);
            if let Some(answer) = pushed.get_mut(at) {
                *answer = self.duplicate(operation, by, existing)?;
            }
        }
        Ok(pushed)
    }

    fn duplicate(
        &self,
        operation: Operation,
        by: Reply,
        existing: Reply,
    ) -> Result<Pushed, Error> {
        let by =
            if by.text()? == "id" { DuplicateOf::Id } else { DuplicateOf::UniqueKey };
        let existing = JobId::new(existing.text()?)
            .map_err(|error| unreadable(self.conn.at(operation), error))?;
        Ok(Pushed::Duplicate { existing, by })
    }
}

/// Adds the fields of each job to a call of a script that pushes: see `pushing.lua`.
pub(super) fn add_jobs(call: &mut Call<'_>, jobs: &[NewJob], ids: &[JobId]) {
    for (job, id) in jobs.iter().zip(ids) {
        let key = job.unique.as_ref().map_or("", |unique| unique.key.as_str());
        let reschedules = job
            .unique
            .as_ref()
            .is_some_and(|unique| unique.on_duplicate == OnDuplicate::Reschedule);
        // An expiry of zero is sent as 1 ms, because 0 means no expiry in the script.
        let expires_in = job.expires_in.map_or(0, |expiry| millis(expiry).max(1));
        call.push_arg(id.as_str());
        call.push_arg(entry::encode(job, id, Some(entry::SET_BY_SCRIPT)));
        call.push_arg(millis(job.delay));
        call.push_arg(expires_in);
        call.push_arg(job.priority.level());
        call.push_arg(key);
        call.push_arg(if reschedules { "reschedule" } else { "keep" });
        call.push_arg(u8::from(entry::is_indexed(job)));
    }
}

/// Replaces the script's error about a token that another call has used by
/// [`Error::Invalid`]. Other errors stay as they are.
pub fn token_of_another_call(error: Error) -> Error {
    if code_of(&error) == Some("RELQTOKEN") {
        let reason = "the push token is that of a call with other jobs".to_owned();
        return Error::Invalid { at: error.at(), reason };
    }
    error
}

/// Replaces the script's error about one of `jobs` that cannot follow its leader by
/// [`Error::CannotFollow`]. Other errors stay as they are.
fn cannot_follow(error: Error, jobs: &[NewJob]) -> Error {
    if code_of(&error) != Some("RELQLEADER") {
        return error;
    }
    let (at, why) =
        detail_of(&error).and_then(|it| it.split_once(' ')).unwrap_or_default();
    let leader = at.parse().ok().and_then(|at: usize| jobs.get(at)?.after.clone());
    let why = match why {
        "unknown" => Some(CannotFollow::Unknown),
        "not done" => Some(CannotFollow::NotDone),
        "too many" => Some(CannotFollow::TooMany),
        _ => None,
    };
    match (leader, why) {
        (Some(leader), Some(why)) => {
            Error::CannotFollow { at: error.at(), leader, why }
        }
        _ => error,
    }
}
