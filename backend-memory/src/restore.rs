//! The call that stores jobs as they were in a queue (R34).

use async_trait::async_trait;
use relq_core::{
    Error, NewJob,
    environment::Timestamp,
    operator::{JobView, RestoreQueue, StateDetail},
    outcome::{DuplicateOf, Pushed},
};

use crate::{
    job::{Job, StoredState},
    queue::{CAPABILITIES, MemoryQueue},
    results::KeptResult,
    state::State,
};

#[async_trait]
impl RestoreQueue for MemoryQueue {
    async fn restore(&self, jobs: &[JobView]) -> Result<Vec<Pushed>, Error> {
        let pushed = CAPABILITIES.check_restore(jobs)?;
        Ok(self.step(|state, now| {
            state.promote(usize::MAX, now);
            let jobs = jobs.iter().zip(pushed);
            jobs.map(|(view, job)| state.restore(view, job, now)).collect()
        }))
    }
}

impl State {
    fn restore(&mut self, view: &JobView, job: NewJob, now: Timestamp) -> Pushed {
        let id = view.id.clone().expect("a job without an id was refused");
        if self.knows(&id, now) {
            return Pushed::Duplicate { existing: id, by: DuplicateOf::Id };
        }
        let state = match &view.detail {
            StateDetail::Scheduled { due } => StoredState::Scheduled { due: *due },
            StateDetail::Dead { reason, since } => {
                StoredState::Dead { reason: reason.clone(), since: *since }
            }
            _ => StoredState::Ready,
        };
        let is_dead = matches!(state, StoredState::Dead { .. });
        let key = view.unique.as_ref().filter(|_| !is_dead);
        if let Some(holder) = key.and_then(|key| self.live_holder(key, now)) {
            let existing = self.jobs[&holder].id.clone();
            return Pushed::Duplicate { existing, by: DuplicateOf::UniqueKey };
        }
        if job.keep_result.is_some() {
            self.results.insert(id.clone(), KeptResult::NEW);
        }
        self.enqueue(Job {
            expires_at: view.expires_at,
            enqueued_at: view.enqueued_at,
            attempt: view.attempt,
            last_error: view.last_error.clone(),
            state,
            ..Job::new(id.clone(), job, now)
        });
        Pushed::Stored(id)
    }
}
