//! Mutants with a race: a call reads the queue in one transaction and changes it in the
//! next, as if no other process could change it in between.

use std::{
    num::NonZeroU32,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use relq_conformance::{
    async_trait,
    overrides::{Override, Right},
    sweep::processes::{Side, Watch},
};
use relq_core::{
    ClaimRequest, Delivery, Disposition, Error, QueueName, Receipt, Settlement,
    limits::DEDUPLICATION_WINDOW,
    operator::{JobState, JobView, PeekRequest, StateDetail},
    outcome::{Recovered, Settled},
};
use rusqlite::Connection;
use tokio::sync::oneshot;

/// A write transaction of a mutant. It calls the test's hook before and after each of
/// its statements, as the backend does.
pub(crate) struct Transaction {
    file: PathBuf,
    queue: QueueName,
    watch: Option<Watch>,
}

impl Transaction {
    pub(crate) fn on(folder: &Path, queue: &QueueName, watch: Option<Watch>) -> Self {
        Self { file: folder.join("jobs.db"), queue: queue.clone(), watch }
    }

    /// Whether the lease of the receipt holds now, read in a transaction of its own.
    fn holds(&self, receipt: &Receipt) -> bool {
        let sql = "SELECT count(*) FROM jobs WHERE state = 'leased' AND token = ?";
        let conn = Connection::open(&self.file).unwrap();
        conn.busy_timeout(Duration::from_secs(5)).unwrap();
        conn.query_row(sql, [&receipt.token()[..]], |row| row.get(0)) == Ok(1)
    }

    /// Executes statements that change a job, in a transaction of their own. In their
    /// text, `{job}` is replaced by the condition that selects the job, and `{queue}`
    /// by the one that selects its queue.
    async fn execute(&self, job: &JobView, statements: &[&str]) {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
        let id = quoted(job.id.as_ref().unwrap().as_str());
        let queue = quoted(self.queue.as_str());
        let queue = format!("queue = (SELECT queue FROM queues WHERE name = {queue})");
        let job = format!("{queue} AND id = {id}");
        let bounded = ["BEGIN IMMEDIATE"].iter().chain(statements).chain(&["COMMIT"]);
        let bounded: Vec<String> = bounded
            .map(|sql| sql.replace("{job}", &job).replace("{queue}", &queue))
            .collect();
        let (file, watch) = (self.file.clone(), self.watch.clone());
        let (done, is_done) = oneshot::channel();
        // The hook blocks its thread, which therefore must not be a thread of the
        // runtime.
        thread::spawn(move || {
            let conn = Connection::open(file).unwrap();
            conn.busy_timeout(Duration::from_secs(5)).unwrap();
            for sql in &bounded {
                let at = |side| watch.as_ref().map_or(Ok(()), |watch| watch(side, sql));
                at(Side::Before).unwrap();
                conn.execute_batch(sql).unwrap();
                at(Side::After).unwrap();
            }
            drop(conn);
            done.send(()).unwrap();
        });
        is_done.await.unwrap();
    }
}

/// Returns all jobs that are in the given state.
async fn jobs_in(right: &Right, state: JobState) -> Result<Vec<JobView>, Error> {
    let ask = PeekRequest::new(state, NonZeroU32::new(100).unwrap());
    Ok(right.peek(&ask).await?.jobs)
}

/// A settlement that checks the lease in one transaction, and removes the job by its id
/// in the next.
pub(crate) struct SettlesInTwoTransactions(pub(crate) Transaction);

#[async_trait]
impl Override for SettlesInTwoTransactions {
    async fn settle(
        &self,
        right: &Right,
        done: &[Settlement],
    ) -> Result<Vec<Settled>, Error> {
        let [Settlement { receipt, disposition: Disposition::Done, .. }] = done else {
            return right.settle(done).await;
        };
        let is_it = |job: &JobView| {
            job.id.as_ref() == Some(receipt.job()) && job.batch.is_none()
        };
        let leased = jobs_in(right, JobState::Leased).await?;
        let held = leased.iter().find(|job| is_it(job) && self.0.holds(receipt));
        let Some(held) = held else { return right.settle(done).await };
        let until = right.environment.clock().now().plus(DEDUPLICATION_WINDOW);
        let remember = format!(
            "INSERT OR REPLACE INTO ended_ids (queue, id, until)
             SELECT queue, id, {} FROM jobs WHERE {{job}} AND keeps_id",
            until.unix_ms(),
        );
        let remove = [
            &remember,
            "DELETE FROM bodies WHERE job = (SELECT job FROM jobs WHERE {job})",
            "DELETE FROM jobs WHERE {job}",
            "UPDATE queues SET finished = finished + 1 WHERE {queue}",
        ];
        self.0.execute(held, &remove).await;
        Ok(vec![Settled::Applied])
    }
}

/// A promotion that finds a due job in one transaction, and makes it ready by its id in
/// the next.
pub(crate) struct PromotesInTwoTransactions(pub(crate) Transaction);

#[async_trait]
impl Override for PromotesInTwoTransactions {
    async fn claim(
        &self,
        right: &Right,
        ask: &ClaimRequest,
    ) -> Result<Vec<Delivery>, Error> {
        let scheduled = jobs_in(right, JobState::Scheduled).await?;
        let now = right.environment.clock().now();
        let is_due = |job: &&JobView| match job.detail {
            StateDetail::Scheduled { due } => due <= now && job.batch.is_none(),
            _ => false,
        };
        let due: Vec<_> = scheduled.iter().filter(is_due).collect();
        if let [due] = due[..] {
            let promote = [
                "UPDATE jobs SET state = 'ready', at = NULL, place = NULL, since = NULL,
                 token = NULL, worker = NULL,
                 turn = (SELECT next_turn FROM queues WHERE {queue}) WHERE {job}",
                "UPDATE queues SET next_turn = next_turn + 1 WHERE {queue}",
            ];
            self.0.execute(due, &promote).await;
        }
        right.claim(ask).await
    }
}

/// A recovery that finds an expired lease in one transaction, and takes the lease away
/// by the job's id in the next.
pub(crate) struct RecoversInTwoTransactions(pub(crate) Transaction);

#[async_trait]
impl Override for RecoversInTwoTransactions {
    async fn recover(
        &self,
        right: &Right,
        page: NonZeroU32,
    ) -> Result<Recovered, Error> {
        let leased = jobs_in(right, JobState::Leased).await?;
        let now = right.environment.clock().now();
        let is_expired = |job: &&JobView| match job.detail {
            StateDetail::Leased { until, .. } => until <= now && job.batch.is_none(),
            _ => false,
        };
        let expired: Vec<_> = leased.iter().filter(is_expired).collect();
        let mut requeued = 0;
        if let [job] = expired[..]
            && job.attempt < u32::from(job.max_attempts.get())
            && page.get() > 1
        {
            let take_away =
                ["UPDATE jobs SET state = 'ready', at = NULL, since = NULL,
                 token = NULL, worker = NULL,
                 last_error = coalesce(last_error || '; ', '') || 'attempt ' || attempt
                   || ': lease ended, no heartbeat'
                 WHERE {job} AND state = 'leased'"];
            self.0.execute(job, &take_away).await;
            requeued = 1;
        }
        let rest = right.recover(page).await?;
        Ok(Recovered { requeued: rest.requeued + requeued, ..rest })
    }
}
