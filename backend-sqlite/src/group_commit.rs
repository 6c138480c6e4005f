//! Group commit: all waiting calls run in one transaction.
//!
//! With `synchronous=FULL` a commit waits for the disk, and most calls spend most of
//! their time in that wait. Calls that arrive while one commit is under way share the
//! next.
//!
//! ```text
//!  waiting:  push  claim  settle  push
//!               \     |      |     /
//!  BEGIN IMMEDIATE; each call, one after the other; COMMIT
//!                        |
//!  results: sent only now, because a crash could undo them before (R1)
//! ```
//!
//! Where it can fail: if a call fails, the whole transaction is rolled back, the other
//! calls are run again in a transaction without it, and then the call alone. A savepoint
//! for each call would spare them the second run, but each savepoint makes SQLite copy
//! all pages that its call changes: that was a quarter of the work of a push among others.
//! If a COMMIT certainly did not happen, each call is run again in a transaction of its
//! own. If it is unknown whether a COMMIT happened, all callers get that error, and no call
//! is repeated.

use std::cell::RefCell;

use relq_core::environment::Environment;
use rusqlite::Connection;

use crate::call::Pending;
use crate::failure::Failure;
use crate::schema;
use crate::steps::Steps;
use crate::store::Store;
use crate::wake::{Notifier, Wakes};

/// Runs groups of calls, each in one transaction, on one connection and one queue.
pub(crate) struct GroupCommit {
    pub(crate) conn: Connection,
    pub(crate) queue: i64,
    pub(crate) environment: Environment,
    pub(crate) notifier: Notifier,
    pub(crate) steps: Steps,
}

/// Why the transaction of a group was not committed.
enum Undone {
    /// BEGIN failed. No call is tried again.
    NotBegun(Failure),
    /// The call with this index failed, and the transaction was rolled back.
    ByCall(usize, Failure),
    /// COMMIT failed, and the transaction was rolled back.
    RolledBack(Failure),
    /// It is unknown whether the transaction was committed.
    Unknown(Failure),
}

impl Undone {
    fn into_failure(self) -> Failure {
        let (Self::NotBegun(failure)
        | Self::ByCall(_, failure)
        | Self::RolledBack(failure)
        | Self::Unknown(failure)) = self;
        failure
    }
}

impl GroupCommit {
    /// Runs the calls and sends their results. If the caller of a call is gone, the
    /// call may have to be undone: returns the calls that do so.
    pub(crate) fn serve(
        &self,
        mut calls: Vec<Box<dyn Pending>>,
    ) -> Vec<Box<dyn Pending>> {
        calls.retain(|call| !call.is_abandoned());
        let mut rest = Vec::new();
        if calls.iter().all(|call| call.looks_first()) {
            calls = self.answer_by_looking(calls, &mut rest);
        }
        if !calls.is_empty() {
            self.answer_by_writing(calls, &mut rest);
        }
        rest
    }

    /// Finishes those calls that need only a read. Returns the others, which must
    /// write.
    fn answer_by_looking(
        &self,
        calls: Vec<Box<dyn Pending>>,
        rest: &mut Vec<Box<dyn Pending>>,
    ) -> Vec<Box<dyn Pending>> {
        let mut others = Vec::new();
        for mut call in calls {
            match self.look(&mut *call) {
                Ok(true) => rest.extend(call.finish(Ok(()))),
                Ok(false) => others.push(call),
                Err(failure) => rest.extend(call.finish(Err(failure))),
            }
        }
        others
    }

    fn look(&self, call: &mut dyn Pending) -> Result<bool, Failure> {
        self.execute("BEGIN")?;
        let wakes = Wakes::default();
        let looked = schema::check_version(&self.conn)
            .and_then(|()| call.look(&self.store(&wakes, 1)));
        self.end_quietly("COMMIT");
        looked
    }

    fn answer_by_writing(
        &self,
        mut calls: Vec<Box<dyn Pending>>,
        rest: &mut Vec<Box<dyn Pending>>,
    ) {
        let mut alone = Vec::new();
        let outcome = loop {
            match self.transact(&mut calls) {
                Err(Undone::ByCall(failed, _)) if calls.len() > 1 => {
                    alone.push(calls.remove(failed));
                }
                Err(Undone::RolledBack(_)) if calls.len() > 1 => {
                    alone.append(&mut calls);
                    break Ok(());
                }
                done => break done.map_err(Undone::into_failure),
            }
        };
        finish_each(calls, &outcome, rest);
        for call in alone {
            self.answer_by_writing(vec![call], rest);
        }
    }

    fn transact(&self, calls: &mut [Box<dyn Pending>]) -> Result<(), Undone> {
        self.execute("BEGIN IMMEDIATE").map_err(Undone::NotBegun)?;
        schema::check_version(&self.conn).map_err(|failure| {
            self.end_quietly("ROLLBACK");
            Undone::NotBegun(failure)
        })?;
        let wakes = Wakes::default();
        let store = self.store(&wakes, calls.len());
        for (index, call) in calls.iter_mut().enumerate() {
            call.run(&store).map_err(|failure| {
                self.end_quietly("ROLLBACK");
                Undone::ByCall(index, failure)
            })?;
        }
        self.commit()?;
        self.notifier.notify(wakes);
        Ok(())
    }

    fn commit(&self) -> Result<(), Undone> {
        let Err(error) = self.step("COMMIT") else { return Ok(()) };
        self.end_quietly("ROLLBACK");
        let failure = Failure::of_commit(error);
        if failure.is_unknown() {
            return Err(Undone::Unknown(failure));
        }
        Err(Undone::RolledBack(failure))
    }

    /// Creates the context of a call in the open transaction. It reads the clock only
    /// here, after the transaction got its lock. A time from before that wait would be
    /// too early.
    fn store<'a>(&'a self, wakes: &'a Wakes, calls: usize) -> Store<'a> {
        Store {
            conn: &self.conn,
            queue: self.queue,
            now: self.environment.clock().now(),
            random: self.environment.random(),
            page: self.environment.max_jobs_per_step().get(),
            calls: u32::try_from(calls).unwrap_or(u32::MAX),
            turns: RefCell::default(),
            wakes,
            steps: &self.steps,
        }
    }

    fn execute(&self, sql: &str) -> Result<(), Failure> {
        Ok(self.step(sql)?)
    }

    fn step(&self, sql: &str) -> rusqlite::Result<()> {
        let text = self.steps.text(sql);
        let execute = || self.conn.prepare_cached(&text)?.execute([]);
        self.steps.step(sql, execute).map(drop)
    }

    /// Ends a transaction whose result is not needed. If it cannot be committed, it is
    /// rolled back: an open transaction would make every later BEGIN fail.
    fn end_quietly(&self, sql: &str) {
        for sql in [sql, "ROLLBACK"] {
            if self.conn.is_autocommit() {
                return;
            }
            if let Err(failure) = self.execute(sql) {
                tracing::warn!(?failure, "a transaction could not be ended by {sql}");
            }
        }
    }
}

fn finish_each(
    calls: Vec<Box<dyn Pending>>,
    outcome: &Result<(), Failure>,
    rest: &mut Vec<Box<dyn Pending>>,
) {
    rest.extend(calls.into_iter().filter_map(|call| call.finish(outcome.clone())));
}

#[cfg(test)]
mod tests;
