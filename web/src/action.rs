//! The changes of a queue that a visitor can make.

use std::borrow::Cow;

use relq_core::{
    JobId, Queue,
    batch::BatchId,
    capabilities::{Capabilities, Capability},
    operator::{Cancelled, DeadGroups, Redriven, RunNow, Selection},
};

use crate::{
    fields::Fields,
    group_name::GroupName,
    page_error::PageError,
    pages::dead::GROUPED,
    text::{counted, number},
};

/// A change of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    Pause,
    Resume,
    RunNow(JobId),
    Cancel(JobId),
    /// Redrives one dead letter.
    Retry(JobId),
    /// Removes one dead letter.
    Purge(JobId),
    /// Makes the dead letters of the group with this error ready again.
    RetryGroup(GroupName),
    PurgeGroup(GroupName),
    RetryAll,
    PurgeAll,
    CancelBatch(BatchId),
}

/// The sentence that tells the visitor how the action ended.
pub(crate) struct Done {
    pub(crate) message: String,
}

impl Action {
    /// Reads an action from its word and the fields of a form.
    pub(crate) fn read(word: &str, form: &Fields) -> Result<Self, PageError> {
        let job = || form.need::<JobId>("id");
        let group = || form.need::<GroupName>("error");
        Ok(match word {
            "pause" => Self::Pause,
            "resume" => Self::Resume,
            "run-now" => Self::RunNow(job()?),
            "cancel" => Self::Cancel(job()?),
            "retry" => Self::Retry(job()?),
            "purge" => Self::Purge(job()?),
            "retry-group" => Self::RetryGroup(group()?),
            "purge-group" => Self::PurgeGroup(group()?),
            "retry-all" => Self::RetryAll,
            "purge-all" => Self::PurgeAll,
            "cancel-batch" => Self::CancelBatch(form.need("batch")?),
            _ => {
                return Err(PageError::not_found(format!(
                    "there is no action {word:?}"
                )));
            }
        })
    }

    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::RunNow(_) => "run-now",
            Self::Cancel(_) => "cancel",
            Self::Retry(_) => "retry",
            Self::Purge(_) => "purge",
            Self::RetryGroup(_) => "retry-group",
            Self::PurgeGroup(_) => "purge-group",
            Self::RetryAll => "retry-all",
            Self::PurgeAll => "purge-all",
            Self::CancelBatch(_) => "cancel-batch",
        }
    }

    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::Pause => "Pause",
            Self::Resume => "Resume",
            Self::RunNow(_) => "Run now",
            Self::Cancel(_) => "Cancel",
            Self::Retry(_) => "Retry",
            Self::Purge(_) => "Purge",
            Self::RetryGroup(_) => "Retry group",
            Self::PurgeGroup(_) => "Purge group",
            Self::RetryAll => "Retry all",
            Self::PurgeAll => "Purge all",
            Self::CancelBatch(_) => "Cancel batch",
        }
    }

    /// The field of a form that says on what the action works.
    pub(crate) fn field(&self) -> Option<(&'static str, Cow<'_, str>)> {
        match self {
            Self::RunNow(id) | Self::Cancel(id) | Self::Retry(id) | Self::Purge(id) => {
                Some(("id", id.as_str().into()))
            }
            Self::RetryGroup(name) | Self::PurgeGroup(name) => {
                Some(("error", name.to_field().into()))
            }
            Self::CancelBatch(id) => Some(("batch", id.as_str().into())),
            Self::Pause | Self::Resume | Self::RetryAll | Self::PurgeAll => None,
        }
    }

    pub(crate) fn can_be_undone(&self) -> bool {
        matches!(self, Self::Pause | Self::Resume)
    }

    /// Whether jobs are removed.
    pub(crate) fn is_destructive(&self) -> bool {
        matches!(
            self,
            Self::Cancel(_)
                | Self::Purge(_)
                | Self::PurgeGroup(_)
                | Self::PurgeAll
                | Self::CancelBatch(_)
        )
    }

    /// The question of the page that asks before the action, on a queue that can do this.
    pub(crate) fn question(&self, can: &Capabilities) -> String {
        let read = || dead_that_are_read(can);
        let mut question = match self {
            Self::Pause => {
                "Workers will claim no jobs until the queue is resumed.".into()
            }
            Self::Resume => "Workers will claim jobs again.".into(),
            Self::RunNow(id) => {
                format!("The job {id} becomes ready now, before its time.")
            }
            Self::Cancel(id) => format!(
                "The job {id} is removed. If a worker runs it, that worker is told to stop."
            ),
            Self::Retry(id) => format!("The dead job {id} becomes ready again."),
            Self::Purge(id) => format!("The dead job {id} is removed for ever."),
            Self::RetryGroup(name) => {
                let (read, name) = (read(), name.shown());
                format!("Those {read} that have this error become ready again: {name}")
            }
            Self::PurgeGroup(name) => {
                let (read, name) = (read(), name.shown());
                format!(
                    "Those {read} that have this error are removed for ever: {name}"
                )
            }
            Self::RetryAll => "All dead jobs of the queue become ready again.".into(),
            Self::PurgeAll => "All dead jobs of the queue are removed for ever.".into(),
            Self::CancelBatch(id) => format!(
                "The pieces of the batch {id} that wait are dropped, and the workers that \
                 run the others are told to stop."
            ),
        };
        if self.is_destructive() && can.supports(Capability::Followers) {
            question.push_str(" Jobs that follow a removed job are cancelled.");
        }
        question
    }

    /// The page of the queue that shows the result: its path, and the job that it names.
    pub(crate) fn page(&self) -> (String, Option<&str>) {
        match self {
            Self::Pause | Self::Resume => (String::new(), None),
            Self::RunNow(id) | Self::Cancel(id) | Self::Retry(id) | Self::Purge(id) => {
                ("/job".to_owned(), Some(id.as_str()))
            }
            Self::RetryGroup(_)
            | Self::PurgeGroup(_)
            | Self::RetryAll
            | Self::PurgeAll => ("/dead".to_owned(), None),
            Self::CancelBatch(id) => (format!("/batch/{id}"), None),
        }
    }

    /// Does it.
    pub(crate) async fn run(&self, queue: &dyn Queue) -> Result<Done, PageError> {
        let message = match self {
            Self::Pause => {
                queue.pause().await?;
                "The queue is paused.".to_owned()
            }
            Self::Resume => {
                queue.resume().await?;
                "The queue runs again.".to_owned()
            }
            Self::RunNow(id) => run_now(queue, id).await?,
            Self::Cancel(id) => match queue.cancel(id).await? {
                Cancelled::Removed(state) => {
                    format!("The job {id} was removed. It was {}.", state.as_str())
                }
                Cancelled::NotFound => {
                    format!("No scheduled, ready or leased job is called {id}.")
                }
            },
            Self::Retry(id) => retried(queue.redrive(&only(id)).await?),
            Self::Purge(id) => purged(queue.purge_dead(&only(id)).await?),
            Self::RetryGroup(name) => {
                retried(queue.redrive(&group(queue, name).await?).await?)
            }
            Self::PurgeGroup(name) => {
                purged(queue.purge_dead(&group(queue, name).await?).await?)
            }
            Self::RetryAll => retried(queue.redrive(&Selection::All).await?),
            Self::PurgeAll => purged(queue.purge_dead(&Selection::All).await?),
            Self::CancelBatch(id) => cancel_batch(queue, id).await?,
        };
        Ok(Done { message })
    }
}

/// The jobs among which [`group`] looks for those of a group. Without an index, those that
/// died first are read, as in [`DeadGroups`].
fn dead_that_are_read(can: &Capabilities) -> String {
    let which = if can.supports(Capability::Inspect) { "newest" } else { "oldest" };
    format!("of the {which} {} dead jobs", number(GROUPED.get().into()))
}

fn only(id: &JobId) -> Selection {
    Selection::Only(vec![id.clone()])
}

async fn run_now(queue: &dyn Queue, id: &JobId) -> Result<String, PageError> {
    let missing =
        || PageError::bad_request("this backend cannot run a job before its time");
    let index = queue.inspect_queue().ok_or_else(missing)?;
    Ok(match index.run_now(id).await? {
        RunNow::Ready => format!("The job {id} is ready."),
        RunNow::Following { leader } => {
            format!("Nothing was changed: the job {id} waits until {leader} is done.")
        }
        RunNow::NotScheduled => {
            format!("Nothing was changed: the job {id} is not scheduled.")
        }
    })
}

async fn cancel_batch(queue: &dyn Queue, id: &BatchId) -> Result<String, PageError> {
    let missing = || PageError::bad_request("the backend of this queue has no batches");
    let batches = queue.batch_queue().ok_or_else(missing)?;
    Ok(match batches.cancel_batch(id).await? {
        Some(batch) => format!("The batch {id} is {}.", batch.state),
        None => format!("There is no batch {id}."),
    })
}

fn retried(redriven: Redriven) -> String {
    let moved = counted(redriven.moved, "dead job is", "dead jobs are");
    let mut message = format!("{moved} ready again.");
    if redriven.duplicates > 0 {
        let kept = counted(redriven.duplicates, "job stays", "jobs stay");
        message.push_str(&format!(
            " {kept} dead, because another job has the same unique key."
        ));
    }
    message
}

fn purged(count: u64) -> String {
    format!("{} removed.", counted(count, "dead job was", "dead jobs were"))
}

/// The group of this name among the dead letters that are read. It is empty if none has the
/// name.
async fn group(queue: &dyn Queue, name: &GroupName) -> Result<Selection, PageError> {
    let mut dead = DeadGroups::new(GROUPED);
    while dead.read_page(queue).await? {}
    let group = dead.groups().into_iter().find(|group| group.error == name.0);
    Ok(Selection::Only(group.map(|group| group.jobs).unwrap_or_default()))
}
