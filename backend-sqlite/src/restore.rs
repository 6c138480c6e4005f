//! The call that stores jobs as they were in a queue (R34).

use async_trait::async_trait;
use relq_core::{
    Error, NewJob, ReliableQueue as _,
    error::Operation,
    operator::{JobState, JobView, RestoreQueue},
    outcome::{DuplicateOf, Pushed},
};

use crate::call::Call;
use crate::failure::Failure;
use crate::pages::{Pages, step_of};
use crate::push::{SWEPT_AT_ONCE, find_live_holder, holder_id};
use crate::queue::SqliteQueue;
use crate::store::Store;

/// A job to restore, and the same as a job to push.
type Restored = (JobView, NewJob);

/// Stores the jobs of one step: all of them, or none.
struct Restore {
    jobs: Vec<Restored>,
}

impl Call for Restore {
    type Answer = Vec<Pushed>;

    fn weight(&self) -> usize {
        self.jobs.len()
    }

    fn bytes(&self) -> usize {
        self.jobs.iter().map(|(_, job)| job.total_bytes()).sum()
    }

    fn run(&self, store: &Store<'_>) -> Result<Vec<Pushed>, Failure> {
        store.sweep(SWEPT_AT_ONCE)?;
        // Make due jobs ready first, so that they come before the restored ones (R13).
        store.promote_due(store.page)?;
        let count = u32::try_from(self.jobs.len()).expect("below the limit of a call");
        let turns = store.take_turns(count)?..;
        store.wake_claims();
        let jobs = self.jobs.iter().zip(turns);
        jobs.map(|(job, turn)| restore_one(store, job, turn)).collect()
    }
}

fn restore_one(
    store: &Store<'_>,
    (view, job): &Restored,
    turn: i64,
) -> Result<Pushed, Failure> {
    let id = view.id.clone().expect("a job without an id was refused");
    if store.is_id_taken(id.as_str())? {
        return Ok(Pushed::Duplicate { existing: id, by: DuplicateOf::Id });
    }
    // A dead job holds no unique key (R16).
    let is_dead = view.detail.state() == JobState::Dead;
    if let Some(unique) = job.unique.as_ref().filter(|_| !is_dead)
        && let Some(holder) = find_live_holder(store, unique.key.as_str())?
    {
        let existing = holder_id(&holder)?;
        return Ok(Pushed::Duplicate { existing, by: DuplicateOf::UniqueKey });
    }
    let key = store.add_restored(id.as_str(), view, job, turn)?;
    store.add_bodies(&[(key, job)])?;
    if job.keep_result.is_some() {
        store.add_result(id.as_str())?;
    }
    Ok(Pushed::Stored(id))
}

impl SqliteQueue {
    async fn restore_steps(
        &self,
        mut jobs: Vec<Restored>,
    ) -> Result<Vec<Pushed>, Failure> {
        let most = self.max_jobs_per_step();
        let (mut answers, mut pages) = (Vec::new(), Pages::default());
        while !jobs.is_empty() {
            let stored = step_of(&jobs, most, |(_, job)| job.total_bytes());
            let rest = jobs.split_off(stored);
            let step = Restore { jobs: std::mem::replace(&mut jobs, rest) };
            answers.extend(pages.then(self.db_thread().call(step).await)?);
        }
        Ok(answers)
    }
}

#[async_trait]
impl RestoreQueue for SqliteQueue {
    async fn restore(&self, jobs: &[JobView]) -> Result<Vec<Pushed>, Error> {
        let pushed = self.capabilities().check_restore(jobs)?;
        let jobs = jobs.iter().cloned().zip(pushed).collect();
        let restored = self.restore_steps(jobs).await;
        restored.map_err(|it| it.at(Operation::Restore))
    }
}
