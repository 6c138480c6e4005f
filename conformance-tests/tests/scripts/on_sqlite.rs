//! Runs cases on SQLite with a changed statement.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{Arc, LazyLock, Mutex},
    time::Duration,
};

use async_trait::async_trait;
use relq::sqlite::{
    Durability, SqliteConfig, SqliteQueue, testing::with_statements_replaced,
};
use relq_conformance::{Profile, Subject, judge_case_within};
use relq_core::{Error, Queue, QueueName, environment::Environment};

use crate::{change::Change, code::Judged, sql};

/// The name of each statement, by its text.
static NAMES: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    sql::files().into_iter().map(|(name, text)| (text, name)).collect()
});

/// A case that takes longer hangs, also without a change.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn run_unchanged(case: &str) -> BTreeSet<String> {
    let ran = Arc::default();
    let subject = Changed { change: None, ran: Arc::clone(&ran) };
    let result = judge_case_within(LIMIT, subject, Profile::Embedded, case);
    result.unwrap_or_else(|why| panic!("{case} fails without a change: {why}"));
    let ran = ran.lock().unwrap();
    ran.clone()
}

pub(crate) fn judge(case: &str, change: &Change, limit: Duration) -> Judged {
    let ran = Arc::default();
    let subject = Changed { change: Some(change.clone()), ran: Arc::clone(&ran) };
    let result = judge_case_within(limit, subject, Profile::Embedded, case);
    let is_fitted = !ran.lock().unwrap().is_disjoint(&change.scripts);
    Judged { is_fitted, result }
}

/// SQLite, with one change of a statement if there is one.
struct Changed {
    change: Option<Change>,
    /// The names of the statements that ran.
    ran: Arc<Mutex<BTreeSet<String>>>,
}

#[async_trait]
impl Subject for Changed {
    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        let (change, ran) = (self.change.clone(), Arc::clone(&self.ran));
        let replace = move |sql: &str| {
            if let Some(name) = NAMES.get(sql) {
                ran.lock().unwrap().insert(name.clone());
            }
            let change = change.as_ref().filter(|change| change.from == sql)?;
            Some(change.to.clone())
        };
        // Power cuts are not tested here, so no write has to wait for the disk.
        let config = SqliteConfig::file(Path::new(endpoint).join("jobs.db"))
            .durability(Durability::Normal)
            .environment(environment.clone());
        let config = with_statements_replaced(config, Arc::new(replace));
        Ok(Arc::new(SqliteQueue::open(config, queue.clone()).await?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The case looks only at its own queue, in which a leader is done. The suite sees that
    /// the followers of the leader with the same id in the neighbour queue were released.
    #[test]
    fn a_statement_that_reaches_another_queue_is_caught() {
        let name = "follower_release: without `queue = ?1`";
        let changes = sql::all();
        let change = changes.iter().find(|change| change.name == name).unwrap();

        let case = "followers::a_follower_of_a_done_job_is_ready";
        let judged = judge(case, change, LIMIT);

        let why = judged.result.unwrap_err();
        assert!(judged.is_fitted && why.contains("R19"), "{why}");
    }
}
