//! The SQL statements for followers, as functions.

use relq_core::followers::FollowerCount;
use rusqlite::{Row, params};

use super::results::{Remembered, read_remembered};
use super::sql;
use crate::failure::Failure;
use crate::store::Store;

/// The job that another one is to follow, as the file has it.
pub(crate) struct LeaderRow {
    /// Whether the id of the stored job is remembered after its end. `None` if no stored
    /// job has the id.
    pub(crate) keeps_id: Option<bool>,
    /// Whether the ended job was done. `None` if no ended job with the id is remembered.
    pub(crate) was_done: Option<bool>,
    /// Its held followers.
    pub(crate) followers: FollowerCount,
}

/// A follower whose leader has ended otherwise than done, and which is to be cancelled.
pub(crate) struct Orphan {
    pub(crate) job: i64,
    pub(crate) bytes: usize,
    pub(crate) leader: String,
    /// `None` if the file is damaged: no held job has this key.
    pub(crate) remembered: Option<Remembered>,
}

impl Store<'_> {
    pub(crate) fn find_leader(&self, id: &str) -> Result<LeaderRow, Failure> {
        let params = params![self.queue, id, self.now_ms()];
        self.read(sql!("follower_leader"), params, |row| {
            Ok(LeaderRow {
                keeps_id: row.get(0)?,
                was_done: row.get(1)?,
                followers: FollowerCount::new(row.get(2)?, row.get(3)?),
            })
        })
    }

    /// Records that a new job, which is never due, waits for its leader.
    pub(crate) fn add_follower(
        &self,
        leader: &str,
        job: i64,
        delay_ms: i64,
        bytes: usize,
    ) -> Result<(), Failure> {
        let params = params![self.queue, leader, job, delay_ms, bytes];
        self.change(sql!("follower_add"), params)?;
        Ok(())
    }

    pub(crate) fn count_followers(&self, leader: &str) -> Result<u32, Failure> {
        self.read(sql!("follower_count"), params![self.queue, leader], |row| row.get(0))
    }

    /// Makes the followers of a job ready, or schedules them by their delays. `turn` is
    /// the first of as many positions as it has followers.
    pub(crate) fn release_followers(
        &self,
        leader: &str,
        turn: i64,
    ) -> Result<(), Failure> {
        let params = params![self.queue, leader, turn, self.now_ms()];
        self.change(sql!("follower_release"), params)?;
        self.change(sql!("follower_forget"), params![self.queue, leader])?;
        Ok(())
    }

    /// Marks the followers of a job as to be cancelled. Returns how many it has.
    pub(crate) fn orphan_followers(&self, leader: &str) -> Result<usize, Failure> {
        self.change(sql!("follower_orphan"), params![self.queue, leader])
    }

    /// Forgets that a job follows another one.
    pub(crate) fn remove_follower(&self, job: i64) -> Result<(), Failure> {
        self.change(sql!("follower_remove"), [job])?;
        Ok(())
    }

    pub(crate) fn has_orphans(&self) -> Result<bool, Failure> {
        self.read(sql!("orphan_any"), [self.queue], |row| row.get(0))
    }

    /// Reads up to `most` followers to cancel. Stops before the first that is not
    /// wanted.
    pub(crate) fn orphans(
        &self,
        most: u32,
        is_wanted: impl FnMut(&Orphan) -> bool,
    ) -> Result<Vec<Orphan>, Failure> {
        let params = params![self.queue, most];
        self.list_while(sql!("orphan_page"), params, read_orphan, is_wanted)
    }
}

fn read_orphan(row: &Row<'_>) -> rusqlite::Result<Orphan> {
    let is_held = row.get::<_, Option<String>>(3)?.is_some();
    Ok(Orphan {
        job: row.get(0)?,
        bytes: row.get(1)?,
        leader: row.get(2)?,
        remembered: is_held.then(|| read_remembered(row, 3)).transpose()?,
    })
}
