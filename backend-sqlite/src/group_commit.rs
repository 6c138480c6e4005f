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
//! Where it can fail: if a call fails, the transaction is rolled back, and the calls run a
//! second time, each in a savepoint. Then a call that fails is rolled back to its savepoint
//! and does not affect the others. The first run has no savepoints, because each one makes
//! SQLite copy all pages that its call changes: that was a quarter of the work of a push
//! among others. If a failure makes SQLite roll back the whole transaction (a full disk), or
//! if a COMMIT certainly did not happen, each call is run again in a transaction of its own.
//! So a call runs three times at most, however many others fail. If it is unknown whether a
//! COMMIT happened, all callers get that error, and no call is repeated.

use std::cell::{Cell, RefCell};

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

/// One call of a group. It stores the call's failure if that call failed alone.
struct Member {
    call: Box<dyn Pending>,
    failed: Option<Failure>,
}

impl Member {
    fn new(call: Box<dyn Pending>) -> Self {
        Self { call, failed: None }
    }
}

/// Why the transaction of a group was not committed.
enum Undone {
    /// BEGIN failed. No call is tried again.
    NotBegun(Failure),
    /// A call failed, and the transaction was rolled back.
    ByCall(Failure),
    /// COMMIT failed, and the transaction was rolled back.
    RolledBack(Failure),
    /// It is unknown whether the transaction was committed.
    Unknown(Failure),
}

impl Undone {
    fn into_failure(self) -> Failure {
        let (Self::NotBegun(failure)
        | Self::ByCall(failure)
        | Self::RolledBack(failure)
        | Self::Unknown(failure)) = self;
        failure
    }
}

/// Runs the calls of a group in its open transaction.
type RunAll = fn(&GroupCommit, &mut [Member], &Store<'_>) -> Result<(), Failure>;

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
        calls: Vec<Box<dyn Pending>>,
        rest: &mut Vec<Box<dyn Pending>>,
    ) {
        let mut members: Vec<Member> = calls.into_iter().map(Member::new).collect();
        let mut outcome = self.transact(&mut members, Self::run_together);
        if matches!(outcome, Err(Undone::ByCall(_))) && members.len() > 1 {
            outcome = self.transact(&mut members, Self::run_apart);
        }
        match outcome {
            Err(Undone::ByCall(_) | Undone::RolledBack(_)) if members.len() > 1 => {
                for member in members {
                    self.answer_by_writing(vec![member.call], rest);
                }
            }
            outcome => {
                let failure = outcome.err().map(Undone::into_failure);
                finish_each(members, failure.as_ref(), rest);
            }
        }
    }

    fn transact(&self, members: &mut [Member], run: RunAll) -> Result<(), Undone> {
        self.execute("BEGIN IMMEDIATE").map_err(Undone::NotBegun)?;
        schema::check_version(&self.conn).map_err(|failure| {
            self.end_quietly("ROLLBACK");
            Undone::NotBegun(failure)
        })?;
        let wakes = Wakes::default();
        let store = self.store(&wakes, members.len());
        run(self, members, &store).map_err(|failure| {
            self.end_quietly("ROLLBACK");
            Undone::ByCall(failure)
        })?;
        let committed = self.commit();
        // Wake the claims after a commit with an unknown outcome too, because it may have
        // stored jobs. They would not notice by themselves: a commit of the handle's own
        // connection does not change `data_version`.
        if !matches!(committed, Err(Undone::RolledBack(_))) {
            self.notifier.notify(wakes);
        }
        committed
    }

    /// Runs the calls until one fails.
    fn run_together(
        &self,
        members: &mut [Member],
        store: &Store<'_>,
    ) -> Result<(), Failure> {
        members.iter_mut().try_for_each(|member| member.call.run(store))
    }

    /// Runs each call in a savepoint. Returns an error only if SQLite rolled back the whole
    /// transaction, or if a savepoint failed.
    fn run_apart(
        &self,
        members: &mut [Member],
        store: &Store<'_>,
    ) -> Result<(), Failure> {
        for member in members {
            let turns = store.turns.borrow().clone();
            self.execute("SAVEPOINT call")?;
            member.failed = member.call.run(store).err();
            if let Some(failure) = &member.failed {
                if self.conn.is_autocommit() {
                    return Err(failure.clone());
                }
                self.execute("ROLLBACK TO call")?;
                // The rollback has undone the call's own reservation.
                store.turns.replace(turns);
            }
            self.execute("RELEASE call")?;
        }
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
            dropped: Cell::default(),
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

/// Sends each call its result: its own failure, or that of the whole group, or success.
fn finish_each(
    members: Vec<Member>,
    failure: Option<&Failure>,
    rest: &mut Vec<Box<dyn Pending>>,
) {
    for Member { call, failed } in members {
        let failed = failed.or_else(|| failure.cloned());
        rest.extend(call.finish(failed.map_or(Ok(()), Err)));
    }
}

#[cfg(test)]
mod tests;
