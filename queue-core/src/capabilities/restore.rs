//! The check of jobs that are to be restored (R34), which all backends make.

use std::time::Duration;

use super::{Capabilities, Capability};
use crate::{
    Error, JobId, NewJob,
    environment::Timestamp,
    error::Operation,
    limits::{MAX_RESTORED_ERROR_BYTES, MAX_TIMESTAMP},
    operator::{JobView, StateDetail},
};

impl Capabilities {
    /// Refuses jobs that the backend cannot restore, before anything is written (R34).
    /// Returns each job as one to push: with its id, its payload, its headers and its
    /// options, but without a delay. If the job expires, `expires_in` is zero.
    ///
    /// Every backend calls this first in
    /// [`restore`](crate::operator::RestoreQueue::restore).
    ///
    /// # Errors
    /// See [`restore`](crate::operator::RestoreQueue::restore).
    pub fn check_restore(&self, jobs: &[JobView]) -> Result<Vec<NewJob>, Error> {
        let operation = Operation::Restore;
        self.require(operation, Capability::Restore, "restoring jobs")?;
        self.check_batch(operation, jobs.len())?;
        jobs.iter().map(|job| self.check_restored(job)).collect()
    }

    fn check_restored(&self, job: &JobView) -> Result<NewJob, Error> {
        let operation = Operation::Restore;
        let Some(id) = &job.id else {
            return Err(self.invalid(operation, "a job without an id: give it one"));
        };
        let of_job = |why: String| self.invalid(operation, format!("job {id}: {why}"));
        if let StateDetail::Scheduled { .. } = job.detail {
            self.require(operation, Capability::Delay, "a delay")?;
        }
        check_state(job).map_err(|why| of_job(why.to_owned()))?;
        check_times(job).map_err(&of_job)?;
        check_texts(job).map_err(&of_job)?;
        let pushed = as_pushed(job, id);
        self.check_job(operation, &pushed)?;
        Ok(pushed)
    }
}

/// Refuses a job in a state that cannot be restored.
fn check_state(job: &JobView) -> Result<(), &'static str> {
    match job.detail {
        StateDetail::Leased { .. } => {
            return Err(
                "a lease cannot be restored: restore it as a ready job, without \
                        the attempt that runs",
            );
        }
        StateDetail::Following { .. } => {
            return Err("a follower cannot be restored: push it after its leader");
        }
        _ => {}
    }
    if job.batch.is_some() {
        return Err(
            "a piece cannot be restored: add it to a batch, or restore it as a \
                    job without a batch",
        );
    }
    let most = u32::from(job.max_attempts.get());
    if job.attempt > most {
        return Err("it has had more attempts than it is allowed");
    }
    let is_dead = matches!(job.detail, StateDetail::Dead { .. });
    if !is_dead && job.unreadable.is_some() {
        return Err("it cannot be read, so it can only be restored as a dead one");
    }
    if !is_dead && job.attempt == most {
        return Err("it has no attempt left, so it can only be restored as a dead one");
    }
    Ok(())
}

fn check_times(job: &JobView) -> Result<(), String> {
    let (named, at) = match job.detail {
        StateDetail::Scheduled { due } => ("due time", Some(due)),
        StateDetail::Dead { since, .. } => ("time of death", Some(since)),
        _ => ("time", None),
    };
    let times = [
        (named, at),
        ("time of expiry", job.expires_at),
        ("time of the push", job.enqueued_at),
    ];
    let allowed = Timestamp::from_unix_ms(0)..=MAX_TIMESTAMP;
    match times.iter().find(|(_, at)| at.is_some_and(|at| !allowed.contains(&at))) {
        None => Ok(()),
        Some((named, _)) => {
            Err(format!("its {named} is not between the years 1970 and 9999"))
        }
    }
}

fn check_texts(job: &JobView) -> Result<(), String> {
    let error = job.last_error.as_deref().unwrap_or_default();
    let reason = match &job.detail {
        StateDetail::Dead { reason, .. } => reason,
        _ => "",
    };
    for (named, text) in [("last error", error), ("reason", reason)] {
        let (bytes, most) = (text.len(), MAX_RESTORED_ERROR_BYTES);
        if bytes > most {
            return Err(format!(
                "a {named} of {bytes} bytes is over the limit of {most}"
            ));
        }
    }
    Ok(())
}

fn as_pushed(job: &JobView, id: &JobId) -> NewJob {
    let mut pushed = NewJob::new(job.payload.clone()).id(id.clone());
    pushed.expires_in = job.expires_at.map(|_| Duration::ZERO);
    pushed.priority = job.priority;
    pushed.max_attempts = job.max_attempts;
    pushed.lease = job.lease;
    pushed.keep_result = job.keep_result;
    pushed.headers = job.headers.clone();
    match &job.unique {
        Some(key) => pushed.unique(key.clone()),
        None => pushed,
    }
}
