//! The expected or actual content of a store. A test computes the expected content from
//! its calls, and reads the actual content from a file.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::Connection;

/// A job that the store has, with the fields that a power cut must keep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) state: String,
    pub(crate) payload: Vec<u8>,
    pub(crate) attempt: u32,
    pub(crate) unique_key: Option<String>,
}

impl Job {
    pub(crate) fn new(state: &str, payload: impl Into<Vec<u8>>) -> Self {
        let state = state.to_owned();
        Self { state, payload: payload.into(), attempt: 0, unique_key: None }
    }
}

/// A batch in the store, with the number of pieces that were added to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) state: String,
    pub(crate) total: u64,
    pub(crate) priority: u8,
    pub(crate) limit: Option<u32>,
}

/// The content of a store: everything that a caller can rely on, except times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) jobs: BTreeMap<String, Job>,
    /// The client-made ids of ended jobs that the store remembers.
    pub(crate) ended: BTreeSet<String>,
    /// Those of them whose jobs were not done (R30).
    pub(crate) not_done: BTreeSet<String>,
    /// The leader of each job that follows one, and whether the job is to be cancelled.
    pub(crate) followers: BTreeMap<String, (String, bool)>,
    pub(crate) finished: u64,
    pub(crate) discarded: u64,
    pub(crate) cancelled: u64,
    pub(crate) is_paused: bool,
    /// The push tokens that the store remembers.
    pub(crate) tokens: BTreeSet<String>,
    /// How many cancelled leases the store remembers.
    pub(crate) cancelled_leases: u64,
    pub(crate) batches: BTreeMap<String, Batch>,
    /// The records of the jobs that keep their results: how they ended, and the result or
    /// the progress.
    pub(crate) results: BTreeMap<String, (String, Option<Vec<u8>>)>,
}

impl Model {
    /// Returns a job of the expected content, so that a program can change it.
    pub(crate) fn job(&mut self, id: &str) -> &mut Job {
        self.jobs.get_mut(id).expect("the program pushed this job")
    }

    /// Removes a job that is done from the expected content, and adds its id to the ended
    /// ids.
    pub(crate) fn end(&mut self, id: &str) {
        self.jobs.remove(id);
        self.ended.insert(id.to_owned());
    }

    /// As [`end`](Self::end), for a job that was not done.
    pub(crate) fn end_otherwise(&mut self, id: &str) {
        self.end(id);
        self.not_done.insert(id.to_owned());
        self.followers.remove(id);
    }

    /// Sets what became of a job that keeps its result.
    pub(crate) fn set_result(&mut self, id: &str, how: &str, value: Option<&[u8]>) {
        let result = (how.to_owned(), value.map(<[u8]>::to_vec));
        self.results.insert(id.to_owned(), result);
    }

    /// Returns the content that belongs to one caller: the jobs and ended ids that
    /// begin with its name. The counters, which all callers share, are set to zero.
    pub(crate) fn part(&self, caller: &str) -> Self {
        let mut part = self.clone();
        if !caller.is_empty() {
            part.jobs.retain(|id, _| id.starts_with(caller));
            part.ended.retain(|id| id.starts_with(caller));
            part.not_done.retain(|id| id.starts_with(caller));
            part.followers.retain(|id, _| id.starts_with(caller));
            part.results.retain(|id, _| id.starts_with(caller));
            (part.finished, part.discarded, part.cancelled) = (0, 0, 0);
        }
        part
    }

    pub(crate) fn read(conn: &Connection) -> rusqlite::Result<Self> {
        let mut model = Self { jobs: jobs(conn)?, ..Self::default() };
        let mut ended = conn.prepare("SELECT id FROM ended_ids")?;
        model.ended =
            ended.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        let mut not_done = conn.prepare("SELECT id FROM ended_ids WHERE done = 0")?;
        model.not_done =
            not_done.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        let mut followers = conn.prepare(
            "SELECT id, leader, orphaned FROM followers JOIN jobs USING (job)",
        )?;
        let row =
            |row: &rusqlite::Row<'_>| Ok((row.get(0)?, (row.get(1)?, row.get(2)?)));
        model.followers = followers.query_map([], row)?.collect::<Result<_, _>>()?;
        let of_queue = "SELECT finished, discarded, cancelled, paused FROM queues WHERE name = 'jobs'";
        conn.query_row(of_queue, [], |row| {
            (model.finished, model.discarded) = (row.get(0)?, row.get(1)?);
            (model.cancelled, model.is_paused) = (row.get(2)?, row.get(3)?);
            Ok(())
        })?;
        let mut tokens = conn.prepare("SELECT token FROM push_calls")?;
        model.tokens =
            tokens.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
        model.cancelled_leases =
            conn.query_row("SELECT count(*) FROM cancelled_leases", [], |row| {
                row.get(0)
            })?;
        let mut batches =
            conn.prepare("SELECT id, state, total, priority, slots FROM batches")?;
        let row = |row: &rusqlite::Row<'_>| {
            let (state, total) = (row.get(1)?, row.get(2)?);
            let (priority, limit) = (row.get(3)?, row.get(4)?);
            Ok((row.get(0)?, Batch { state, total, priority, limit }))
        };
        model.batches = batches.query_map([], row)?.collect::<Result<_, _>>()?;
        let mut results = conn.prepare(
            "SELECT id, coalesce(ended_as || coalesce(' with ' || leader, ''), 'unfinished'),
                    value
             FROM results",
        )?;
        let row =
            |row: &rusqlite::Row<'_>| Ok((row.get(0)?, (row.get(1)?, row.get(2)?)));
        model.results = results.query_map([], row)?.collect::<Result<_, _>>()?;
        Ok(model)
    }

    /// Describes the first difference between this expected content and the actual one.
    pub(crate) fn difference(&self, seen: &Self) -> String {
        let ids: BTreeSet<_> = self.jobs.keys().chain(seen.jobs.keys()).collect();
        for id in ids {
            let (expected, seen) = (self.jobs.get(id), seen.jobs.get(id));
            if expected != seen {
                let (expected, seen) = (words(expected), words(seen));
                return format!("job {id}: expected {expected}, seen {seen}");
            }
        }
        let rest =
            |it: &Self| format!("{:?}", Self { jobs: BTreeMap::new(), ..it.clone() });
        format!("expected {}, seen {}", rest(self), rest(seen))
    }
}

fn words(job: Option<&Job>) -> String {
    job.map_or_else(
        || "no such job".to_owned(),
        |job| {
            let Job { state, payload, attempt, unique_key } = job;
            let length = payload.len();
            format!("{state}, {length} bytes, attempt {attempt}, key {unique_key:?}")
        },
    )
}

fn jobs(conn: &Connection) -> rusqlite::Result<BTreeMap<String, Job>> {
    let mut jobs = conn.prepare(
        "SELECT id, CASE WHEN state = 'leased' AND at - since > 1800000
                         THEN 'extended'
                         WHEN state = 'scheduled' AND at = 9223372036854775807
                         THEN 'held' ELSE state END,
                payload, attempt,
                CASE WHEN state <> 'dead' THEN unique_key END
         FROM jobs JOIN bodies USING (job)",
    )?;
    let row = |row: &rusqlite::Row<'_>| {
        let (state, payload) = (row.get(1)?, row.get(2)?);
        let (attempt, unique_key) = (row.get(3)?, row.get(4)?);
        Ok((row.get(0)?, Job { state, payload, attempt, unique_key }))
    };
    jobs.query_map([], row)?.collect()
}
