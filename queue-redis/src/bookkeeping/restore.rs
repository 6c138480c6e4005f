//! Stores jobs as they were in a queue (R34).

use relq_core::{
    Error, JobId, NewJob,
    error::Operation,
    operator::{JobView, StateDetail},
    outcome::Pushed,
};

use super::{Bookkeeping, Step, peek::restored_error};
use crate::{Call, all_steps, entry};

/// A job to restore.
#[derive(Debug)]
pub(crate) struct Restored<'a> {
    id: &'a JobId,
    view: &'a JobView,
    /// The job as one to push, from
    /// [`check_restore`](relq_core::capabilities::Capabilities::check_restore).
    job: NewJob,
}

impl<'a> Restored<'a> {
    /// A job that was checked. `None` if it has no id, which the check refuses.
    pub(crate) fn new(view: &'a JobView, job: NewJob) -> Option<Self> {
        Some(Self { id: view.id.as_ref()?, view, job })
    }

    fn bytes(&self) -> usize {
        self.job.total_bytes() + self.error().len()
    }

    /// The value for the hash `errors`, or an empty one.
    fn error(&self) -> String {
        let last_error = self.view.last_error.as_deref().unwrap_or_default();
        match &self.view.detail {
            StateDetail::Dead { reason, .. } => restored_error(reason, last_error),
            _ if last_error.is_empty() => String::new(),
            _ => format!("e{last_error}"),
        }
    }

    /// Adds the fields that the script `restore` reads.
    fn add_to(&self, call: &mut Call<'_>) {
        let JobView { detail, attempt, .. } = self.view;
        let at = match detail {
            StateDetail::Scheduled { due } => Some(due),
            StateDetail::Dead { since, .. } => Some(since),
            _ => None,
        };
        // A dead job holds no unique key (R16).
        let key = self.job.unique.as_ref().filter(|_| !self.is_dead());
        let attempt = u16::try_from(*attempt).unwrap_or(u16::MAX);
        let pushed_at = self.view.enqueued_at;
        // 0 means no expiry in the script.
        let expires_at = self.view.expires_at.map_or(0, |at| at.unix_ms().max(1));
        call.push_arg(self.id.as_str());
        call.push_arg(entry::encode_restored(&self.job, self.id, attempt, pushed_at));
        call.push_arg(at.map_or_else(String::new, |at| at.unix_ms().to_string()));
        call.push_arg(expires_at);
        call.push_arg(self.job.priority.level());
        call.push_arg(key.map_or("", |unique| unique.key.as_str()));
        call.push_arg(self.error());
        call.push_arg(u8::from(entry::is_indexed(&self.job)));
    }

    fn is_dead(&self) -> bool {
        matches!(self.view.detail, StateDetail::Dead { .. })
    }
}

impl Bookkeeping {
    /// Stores jobs as they were, in as many steps as they need.
    ///
    /// # Errors
    /// The errors of [`Conn::call`](crate::Conn::call).
    pub(crate) async fn restore(
        &self,
        jobs: &[Restored<'_>],
    ) -> Result<Vec<Pushed>, Error> {
        all_steps(Operation::Restore, self.restore_all(jobs)).await
    }

    async fn restore_all(&self, jobs: &[Restored<'_>]) -> Result<Vec<Pushed>, Error> {
        let (mut answers, mut steps) = (Vec::new(), self.steps().slow());
        while let Some(page) = steps.next_page(jobs, Restored::bytes) {
            let stored = self.restore_page(page).await;
            let stored = stored.map(|stored| answers.extend(stored));
            let handled = page.len();
            steps.add(handled, stored.map(|()| Step { handled, lost: Vec::new() }))?;
        }
        Ok(answers)
    }

    async fn restore_page(&self, page: &[Restored<'_>]) -> Result<Vec<Pushed>, Error> {
        let mut call = self.call(&self.scripts.restore);
        page.iter().for_each(|job| job.add_to(&mut call));
        let duplicates = call.run(&self.conn, Operation::Restore).await?.list()?;
        let ids = page.iter().map(|job| job.id.clone()).collect();
        self.pushed(Operation::Restore, ids, duplicates)
    }
}
