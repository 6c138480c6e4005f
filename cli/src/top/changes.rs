//! The changes of a queue that keys make.

use relq::{
    Error, JobId, Queue,
    operator::{Cancelled, Redriven, RunNow, Selection},
};

use super::asks::Group;
use crate::{format::counted, printable::printable};

/// A change of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    Pause,
    Resume,
    RunNow(JobId),
    Cancel(JobId),
    Retry(JobId),
    Purge(JobId),
    RetryGroup(Group),
    PurgeGroup(Group),
}

/// A job that is deleted is never done, so the jobs that follow it are cancelled (R30).
const AND_FOLLOWERS: &str = ", and cancel any followers?";

impl Change {
    /// The question that comes before a change that cannot be undone.
    pub(super) fn question(&self) -> Option<String> {
        let jobs = |group: &Group| counted(group.jobs.len() as u64, "dead job");
        Some(match self {
            Self::Pause | Self::Resume => return None,
            Self::RunNow(id) => format!("run the job {} now?", printable(id.as_str())),
            Self::Cancel(id) => {
                format!("delete the job {}{AND_FOLLOWERS}", printable(id.as_str()))
            }
            Self::Retry(id) => {
                format!("retry the dead job {}?", printable(id.as_str()))
            }
            Self::Purge(id) => {
                let id = printable(id.as_str());
                format!("delete the dead job {id} for ever{AND_FOLLOWERS}")
            }
            Self::RetryGroup(group) => format!("retry {}?", jobs(group)),
            Self::PurgeGroup(group) => {
                format!("delete {} for ever{AND_FOLLOWERS}", jobs(group))
            }
        })
    }

    /// Makes the change. Returns a sentence about its result.
    pub(super) async fn make(&self, queue: &dyn Queue) -> Result<String, Error> {
        Ok(match self {
            Self::Pause => {
                queue.pause().await?;
                "the queue is paused".to_owned()
            }
            Self::Resume => {
                queue.resume().await?;
                "the queue runs again".to_owned()
            }
            Self::RunNow(id) => run_now(queue, id).await?,
            Self::Cancel(id) => cancelled(id, queue.cancel(id).await?),
            Self::Retry(id) => retried(queue.redrive(&only(id)).await?),
            Self::Purge(id) => purged(queue.purge_dead(&only(id)).await?),
            Self::RetryGroup(group) => retried(queue.redrive(&all_of(group)).await?),
            Self::PurgeGroup(group) => purged(queue.purge_dead(&all_of(group)).await?),
        })
    }
}

fn only(id: &JobId) -> Selection {
    Selection::Only(vec![id.clone()])
}

async fn run_now(queue: &dyn Queue, id: &JobId) -> Result<String, Error> {
    let Some(inspect) = queue.inspect_queue() else {
        let subject = queue.capabilities().subject();
        return Ok(format!("{subject} cannot run a job before its time"));
    };
    Ok(match inspect.run_now(id).await? {
        RunNow::Ready => format!("the job {id} is ready"),
        RunNow::Following { leader } => {
            format!("nothing was changed: the job {id} waits until {leader} is done")
        }
        RunNow::NotScheduled => {
            format!("nothing was changed: the job {id} is not scheduled")
        }
    })
}

fn cancelled(id: &JobId, cancelled: Cancelled) -> String {
    match cancelled {
        Cancelled::Removed(state) => {
            format!("the job {id} was deleted; it was {}", state.as_str())
        }
        Cancelled::NotFound => format!("the job {id} is not waiting or running"),
    }
}

fn retried(redriven: Redriven) -> String {
    let kept = match redriven.duplicates {
        0 => String::new(),
        1 => "; 1 stays dead: another job has the same unique key".to_owned(),
        kept => {
            format!("; {kept} stay dead: another job has the same unique key")
        }
    };
    format!("{} ready again{kept}", redriven.moved)
}

fn purged(count: u64) -> String {
    format!("{count} deleted")
}

fn all_of(group: &Group) -> Selection {
    Selection::Only(group.jobs.clone())
}
