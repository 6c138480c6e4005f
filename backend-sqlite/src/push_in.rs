//! Push in a transaction of the application, on the application's own connection.
//!
//! ```text
//!  application's connection          queue's connection
//!  BEGIN IMMEDIATE
//!  INSERT INTO orders ...
//!  push_in: SAVEPOINT, jobs, RELEASE
//!  COMMIT  ------------------------> data_version changes: waiting claims look again
//! ```
//!
//! The job is a row of the transaction like any other, so it is stored if and only if the
//! application's rows are. This module sends no notification, because it does not learn
//! of the commit. A waiting claim of any process notices the commit as it notices a push
//! of another process: it reads `data_version` at every poll interval.
//!
//! Where it can fail: a refused push is rolled back to its savepoint, and the application
//! may continue its transaction. If a failure makes SQLite roll back the whole
//! transaction (a full disk), the transaction is over, and a further push is refused: it
//! would be committed at once, without the application's rows.

use std::{
    cell::{Cell, RefCell},
    ops::Deref,
    path::Path,
};

use relq_core::{
    Error, NewJob, PushToken, ReliableQueue as _, error::Operation, outcome::Pushed,
};
use rusqlite::{Connection, Savepoint, Transaction};

use crate::call::Call as _;
use crate::db_thread::Site;
use crate::failure::Failure;
use crate::push::Push;
use crate::queue::SqliteQueue;
use crate::schema;
use crate::statements::{self, queue_key};
use crate::store::Store;
use crate::store_files::{FileIdentity, beside};
use crate::wake::Wakes;

/// A transaction of the application: a [`Transaction`] of rusqlite, or a [`Savepoint`].
///
/// Only these two types implement this trait, so a push cannot be given a connection
/// without a transaction.
pub trait OpenTransaction: Deref<Target = Connection> + sealed::Sealed {}

impl OpenTransaction for Transaction<'_> {}
impl OpenTransaction for Savepoint<'_> {}

mod sealed {
    pub trait Sealed {}

    impl Sealed for rusqlite::Transaction<'_> {}
    impl Sealed for rusqlite::Savepoint<'_> {}
}

impl SqliteQueue {
    /// Pushes jobs in a transaction of the application, which is open on a connection of
    /// the application to the queue's file. Returns a result for each job, in order, as
    /// [`ReliableQueue::push`](relq_core::ReliableQueue::push) does.
    ///
    /// The jobs exist when the transaction is committed, and never when it is rolled
    /// back. All rules of a push hold: the call stores all of its jobs or none (R5),
    /// also when the application continues after an error. Delays and expiries count
    /// from this call. The durability is that of the application's connection.
    ///
    /// A waiting claim of this process or of another one notices the commit within
    /// [`poll_interval`](crate::SqliteConfig::poll_interval).
    ///
    /// The call blocks while another connection holds the lock of the file, up to the
    /// busy timeout of the application's connection. Begin the transaction with
    /// [`Immediate`](rusqlite::TransactionBehavior::Immediate): a deferred transaction
    /// that has read the file cannot write it after another connection has. Until the
    /// transaction ends, every other call that writes the file waits. So do not await
    /// calls of the queue inside of the transaction, and keep it short.
    ///
    /// The call changes the results of `last_insert_rowid` and `changes` on the
    /// connection. Read them before.
    ///
    /// ```
    /// use relq_core::{NewJob, QueueName};
    /// use relq_sqlite::rusqlite::{Connection, TransactionBehavior::Immediate};
    /// use relq_sqlite::{SqliteConfig, SqliteQueue};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let file = folder.path().join("shop.db");
    /// // relq creates the file. Then the application adds its tables.
    /// let emails = QueueName::new("emails")?;
    /// let queue = SqliteQueue::open(SqliteConfig::file(&file), emails).await?;
    /// let mut connection = Connection::open(&file)?;
    /// connection.execute("CREATE TABLE orders (address TEXT)", [])?;
    ///
    /// let transaction = connection.transaction_with_behavior(Immediate)?;
    /// transaction.execute("INSERT INTO orders VALUES ('anna@example.org')", [])?;
    /// queue.push_in(&transaction, &[NewJob::new("anna@example.org")], None)?;
    /// transaction.commit()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Invalid`] for a transaction on another file or one that has ended, for a
    /// queue in memory, and for what a push refuses as invalid.
    /// [`Error::Unavailable`] if the file is locked for too long, or if a deferred
    /// transaction cannot write any more. Nothing of a failed call is stored.
    pub fn push_in(
        &self,
        transaction: &impl OpenTransaction,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        self.capabilities().check_push(jobs, token.is_some())?;
        let push = Push { jobs: jobs.to_vec(), token: token.cloned() };
        let pushed = check_place(self.site(), transaction).and_then(|()| {
            in_savepoint(transaction, || run(self.site(), transaction, &push))
        });
        pushed.map_err(|failure| failure.at(Operation::Push))
    }
}

/// Fails if the transaction cannot store a job of the queue.
fn check_place(site: &Site, conn: &Connection) -> Result<(), Failure> {
    if conn.is_autocommit() {
        return Err(Failure::invalid(
            "the transaction has ended, because SQLite rolled it back after an error; \
             begin another one",
        ));
    }
    let Some(file) = &site.file else {
        return Err(Failure::invalid(
            "a queue in memory has no file that a connection of the application can \
             open; open the queue in a file",
        ));
    };
    site.check_files()?;
    if is_open_at(file, conn) {
        return refuse_shadows(conn);
    }
    let other = conn.path().filter(|path| !path.is_empty()).unwrap_or("no file");
    let file = file.display();
    Err(Failure::invalid(format!(
        "the main database of the transaction is {other}, and the queue is in {file}; \
         begin the transaction on a connection to that file",
    )))
}

/// Whether the connection's main database is the file of the queue, with the same log.
/// Opened by another hard link, the file has another log, which the queue never reads.
fn is_open_at(file: &Path, conn: &Connection) -> bool {
    let Some(path) = conn.path().map(Path::new) else { return false };
    let log = |file| FileIdentity::of(&beside(file, "-wal"));
    match (log(path), log(file)) {
        (Ok(Some(found)), Ok(Some(opened))) => found == opened,
        (Ok(None), _) => std::fs::canonicalize(path).is_ok_and(|path| path == file),
        _ => false,
    }
}

/// Fails if a temporary table or view has the name of a table of relq. Statements would
/// then use it instead, and the jobs would be lost with the connection (R1).
fn refuse_shadows(conn: &Connection) -> Result<(), Failure> {
    match statements::temporary_namesake(conn)? {
        None => Ok(()),
        Some(name) => Err(Failure::invalid(format!(
            "the temporary table {name} hides the table of relq with this name; rename \
             the temporary table",
        ))),
    }
}

fn run(site: &Site, conn: &Connection, push: &Push) -> Result<Vec<Pushed>, Failure> {
    let (environment, steps) = (&site.config.environment, &site.config.steps);
    // Lock first, so that a deferred transaction waits for the lock. A transaction that
    // has read the file cannot wait: it would write on top of an old state.
    statements::take_lock(conn, steps)?;
    schema::check_version(conn)?;
    if push.jobs.is_empty() {
        return Ok(Vec::new());
    }
    push.run(&Store {
        conn,
        queue: queue_key(conn, steps, &site.queue)?,
        now: environment.clock().now(),
        random: environment.random(),
        page: environment.max_jobs_per_step().get(),
        calls: 1,
        turns: RefCell::default(),
        dropped: Cell::default(),
        // The waiting claims notice the commit by `data_version`: see the module.
        wakes: &Wakes::default(),
        steps,
    })
}

/// Runs a part of a transaction. If the part fails, only the part is rolled back.
fn in_savepoint<T>(
    conn: &Connection,
    run: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    conn.execute_batch("SAVEPOINT relq_push")?;
    let outcome = run();
    if conn.is_autocommit() {
        return outcome;
    }
    if outcome.is_err() {
        conn.execute_batch("ROLLBACK TO relq_push")?;
    }
    conn.execute_batch("RELEASE relq_push")?;
    outcome
}
