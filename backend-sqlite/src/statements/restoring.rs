//! The SQL statement that stores a job as it was in a queue, as a function.

use relq_core::{
    NewJob,
    environment::Timestamp,
    operator::{JobView, StateDetail},
};
use rusqlite::params;

use super::sql;
use crate::failure::Failure;
use crate::store::{Store, ms};

impl Store<'_> {
    /// Stores the job `id` of this view and returns its key. `job` is the view as a job to
    /// push. `turn` is its position among the ready jobs, or among the jobs that are due
    /// at the same time.
    pub(crate) fn add_restored(
        &self,
        id: &str,
        view: &JobView,
        job: &NewJob,
        turn: i64,
    ) -> Result<i64, Failure> {
        let (due, dead) = match &view.detail {
            StateDetail::Scheduled { due } => (Some(due.unix_ms()), None),
            StateDetail::Dead { reason, since } => {
                (None, Some((since.unix_ms(), reason)))
            }
            _ => (None, None),
        };
        let params = params![
            self.queue,
            id,
            job.priority.level(),
            view.detail.state().as_str(),
            turn,
            due,
            dead.map(|(since, _)| since),
            dead.map(|(_, reason)| reason),
            view.attempt,
            job.max_attempts.get(),
            view.last_error,
            job.lease.map(ms),
            view.expires_at.map(Timestamp::unix_ms),
            job.unique.as_ref().map(|unique| unique.key.as_str()),
            view.enqueued_at.map(Timestamp::unix_ms),
            self.now_ms(),
            job.keep_result.map(ms),
        ];
        self.change(sql!("job_restore"), params)?;
        Ok(self.conn.last_insert_rowid())
    }
}
