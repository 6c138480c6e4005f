//! A push that is not atomic, and a recovery that completes it and bears no death of its own.

use std::num::NonZeroU32;

use relq_conformance::{
    async_trait,
    overrides::{Override, Right},
};
use relq_core::{
    outcome::{Pushed, Recovered},
    schedule::{ScheduleName, ScheduleQueue},
    *,
};

/// Pushes several plain jobs one by one, behind a list of them in the store: a recovery pushes
/// those that are missing. It removes the list first, so if it dies they stay missing.
pub(crate) struct ForgetsBeforeItRedoes;

const SEPARATOR: u8 = b'\n';

fn name() -> ScheduleName {
    ScheduleName::new("unfinished").unwrap()
}

fn lists(right: &Right) -> &dyn ScheduleQueue {
    right.schedule_queue().unwrap()
}

async fn push_each(right: &Right, list: &[u8]) -> Result<Vec<Pushed>, Error> {
    let mut pushed = Vec::new();
    for (at, payload) in list.split(|byte| *byte == SEPARATOR).enumerate() {
        let id = JobId::new(format!("unfinished-{at}")).unwrap();
        let job = NewJob::new(payload.to_vec()).id(id);
        pushed.extend(right.push(&[job], None).await?);
    }
    Ok(pushed)
}

#[async_trait]
impl Override for ForgetsBeforeItRedoes {
    async fn push(
        &self,
        right: &Right,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        let is_plain = |job: &NewJob| *job == NewJob::new(job.payload.clone());
        if jobs.len() < 2 || token.is_some() || !jobs.iter().all(is_plain) {
            return right.push(jobs, token).await;
        }
        let list: Vec<_> = jobs.iter().map(|job| &job.payload[..]).collect();
        let list = list.join(&SEPARATOR);
        lists(right).put_schedule(&name(), &list).await?;
        let pushed = push_each(right, &list).await?;
        lists(right).remove_schedule(&name()).await?;
        Ok(pushed)
    }

    async fn recover(
        &self,
        right: &Right,
        page: NonZeroU32,
    ) -> Result<Recovered, Error> {
        let all = lists(right).schedules().await?.schedules;
        for unfinished in all.into_iter().filter(|one| one.name == name()) {
            lists(right).remove_schedule(&unfinished.name).await?;
            push_each(right, &unfinished.definition).await?;
        }
        right.recover(page).await
    }
}
