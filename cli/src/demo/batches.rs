//! The demo's jobs as pieces of two batches: a large one that is not urgent, and a
//! small urgent one that is submitted later.

use std::{
    num::NonZeroU32,
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use relq::{
    NewJob, PushToken, Queue, QueueName,
    batch::{
        Added, BatchId, BatchOutcome, BatchPriority, BatchStatus, NewBatch, OnComplete,
    },
    environment::Environment,
    operator::{JobState, PeekRequest},
};

use super::{
    own_queue::{LOOK_EVERY, remove},
    report::Batch,
    worker::CONCURRENCY,
};
use crate::{
    batch::batches_of,
    failure::{CommandResult, Failure, explain},
    push::{Sender, Unsent},
};

/// The small batch gets one fifth of the jobs: their number is divided by this.
const SMALL: u64 = 5;

/// How long the demo waits for the completion jobs in the other queue. If the worker
/// that completed a batch dies before it pushes the job, a reaper pushes it later.
const PATIENCE: Duration = Duration::from_secs(20);

/// The two batches, and the queue that receives their completion jobs.
pub(super) struct Batches {
    queue: Arc<dyn Queue>,
    completions: Arc<dyn Queue>,
    completions_name: QueueName,
    requests: [Request; 2],
}

struct Request {
    id: BatchId,
    priority: BatchPriority,
    limit: Option<NonZeroU32>,
    pieces: Range<u64>,
}

impl Batches {
    /// Divides the jobs numbered from 0 up to, but without, `jobs` into two batches.
    /// The large batch may occupy at most three quarters of all workers' slots, so that
    /// the small one finds free slots.
    pub(super) async fn new(
        queue: Arc<dyn Queue>,
        url: &str,
        name: &QueueName,
        (jobs, workers): (u64, u16),
    ) -> CommandResult<Self> {
        batches_of(&*queue)?;
        let completions_name = QueueName::new(format!("{name}-told"));
        let completions_name =
            completions_name.map_err(|error| Failure::Failed(error.to_string()))?;
        let completions = relq::connect(url, &completions_name).await?;
        let border = jobs - jobs / SMALL;
        let slots = u32::from(workers) * CONCURRENCY.get();
        let most = NonZeroU32::new(slots / 4 * 3);
        let requests = [
            Request::new("large", BatchPriority::LOWEST, most, 0..border),
            Request::new("small", BatchPriority::HIGHEST, None, border..jobs),
        ];
        Ok(Self { queue, completions, completions_name, requests })
    }

    /// Creates both batches, adds their pieces, and seals them.
    pub(super) async fn submit(&self, sender: &Sender) -> CommandResult {
        let batches = batches_of(&*self.queue)?;
        for request in &self.requests {
            let Request { id, pieces, .. } = request;
            let batch = request.batch(&self.completions_name);
            let made = sender.repeat(async || batches.create(&batch).await).await;
            made.map_err(|unsent| failed(&unsent))?;
            for page in self.pages(pieces) {
                let jobs: Vec<_> = page.map(|n| NewJob::new(n.to_string())).collect();
                let token = PushToken::random(Environment::default().random());
                let add = async || batches.add(id, &jobs, Some(&token)).await;
                let added = sender.repeat(add).await;
                let added = added.map_err(|unsent| failed(&unsent))?;
                if !matches!(added, Added::Stored(_)) {
                    return Err(Failure::Failed(format!("the batch {id}: {added:?}")));
                }
            }
            let sealed = sender.repeat(async || batches.seal(id).await).await;
            sealed.map_err(|unsent| failed(&unsent))?;
        }
        Ok(())
    }

    fn pages(&self, pieces: &Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let page = u64::from(self.queue.capabilities().limits.max_jobs_per_call.get());
        let end = pieces.end;
        let step = usize::try_from(page).unwrap_or(usize::MAX);
        pieces.clone().step_by(step).map(move |from| from..end.min(from + page))
    }

    /// Reads the results of both batches, and adds problems to the judgement.
    pub(super) async fn judge(
        &self,
        problems: &mut Vec<String>,
    ) -> CommandResult<Vec<Batch>> {
        let mut all = Vec::new();
        for request in &self.requests {
            let batches = batches_of(&*self.queue)?;
            match batches.wait_batch(&request.id, PATIENCE).await? {
                Some(status) => {
                    problems.extend(request.problem(&status));
                    all.push(Batch::of(&status));
                }
                None => problems.push(format!("the batch {} is gone", request.id)),
            }
        }
        problems.extend(self.completion_problem().await?);
        Ok(all)
    }

    /// Waits until each of the two batches has pushed its completion job. Returns the
    /// problem if one is missing or there are more than two (B5).
    async fn completion_problem(&self) -> CommandResult<Option<String>> {
        let began = Instant::now();
        let ask = PeekRequest::new(JobState::Ready, NonZeroU32::MIN.saturating_add(9));
        loop {
            let found = self.completions.peek(&ask).await?.jobs;
            let mut payloads: Vec<_> =
                found.iter().map(|job| &job.payload[..]).collect();
            payloads.sort_unstable();
            if payloads == [&b"large"[..], b"small"] {
                return Ok(None);
            }
            if began.elapsed() > PATIENCE || payloads.len() > self.requests.len() {
                let count = payloads.len();
                return Ok(Some(format!("{count} completion jobs for 2 batches")));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Removes the queue that received the completion jobs.
    pub(super) async fn clean_up(&self, url: &str) -> CommandResult {
        remove(url, &*self.completions, &self.completions_name).await
    }
}

impl Request {
    fn new(
        id: &str,
        priority: BatchPriority,
        limit: Option<NonZeroU32>,
        pieces: Range<u64>,
    ) -> Self {
        let id = BatchId::new(id).expect("the name is valid");
        Self { id, priority, limit, pieces }
    }

    fn batch(&self, completions: &QueueName) -> NewBatch {
        let done = OnComplete::new(NewJob::new(self.id.as_str().to_owned()));
        NewBatch::new(self.id.clone())
            .priority(self.priority)
            .limit(self.limit)
            .on_complete(done.queue(completions.clone()))
    }

    fn problem(&self, status: &BatchStatus) -> Option<String> {
        let BatchStatus { id, state, total, done, .. } = status;
        let pieces = self.pieces.end - self.pieces.start;
        let is_well = status.outcome() == Some(BatchOutcome::Done)
            && (*total, *done) == (pieces, pieces);
        (!is_well).then(|| {
            format!(
                "the batch {id} of {pieces} is {state}, with {done} of {total} done"
            )
        })
    }
}

impl Batch {
    fn of(status: &BatchStatus) -> Self {
        let took = status.completed_at.unwrap_or(status.created_at);
        let took = took.unix_ms() - status.created_at.unix_ms();
        let took = Duration::from_millis(u64::try_from(took).unwrap_or(0));
        Self {
            id: status.id.to_string(),
            priority: status.priority.level(),
            pieces: status.total,
            done: status.done,
            seconds: took.as_secs_f64(),
        }
    }
}

fn failed(unsent: &Unsent) -> Failure {
    Failure::Failed(explain(&unsent.error))
}
