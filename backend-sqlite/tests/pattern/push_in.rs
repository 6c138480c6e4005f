//! Pushes in transactions of the application.

use std::{
    collections::BTreeSet,
    fs,
    slice::from_ref,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    thread,
    time::{Duration, Instant},
};

use relq_core::{
    Error, JobId, NewJob, Operator as _, Priority, PushToken, QueueName,
    ReliableQueue as _, ReliableQueueExt as _, WorkerId,
    error::Effect,
    operator::{InspectQueue as _, JobState, PeekRequest, WorkerReport},
    outcome::{DuplicateOf, Pushed},
    unique::UniqueKey,
};
use relq_sqlite::{
    SqliteConfig, SqliteQueue,
    rusqlite::{Connection, Transaction, TransactionBehavior::Immediate},
};

use crate::fixture::{
    Folder, LONG, Notes, ask, eventually, file_of_child, many, open, raw, spawn,
};
use crate::older_file::make_old_file;

/// How often processes are killed at random moments.
const KILLS: u64 = 12;
/// How many transactions a process commits before it is killed.
const ORDERS_BEFORE_KILL: usize = 15;
/// The longest time from a push to its commit in a process that will be killed.
const LONGEST_PAUSE_US: u64 = 2000;
/// How long a test waits, on a busy machine, until a claim has noticed a commit.
const SOON: Duration = Duration::from_secs(20);

/// A queue, and a connection of the application to its file, with the table `orders`.
async fn shop(folder: &Folder) -> (SqliteQueue, Connection) {
    let queue = folder.queue().await;
    let conn = raw(&folder.file());
    conn.execute_batch("CREATE TABLE IF NOT EXISTS orders (number INTEGER)").unwrap();
    (queue, conn)
}

fn begin(conn: &mut Connection) -> Transaction<'_> {
    conn.transaction_with_behavior(Immediate).unwrap()
}

fn order(transaction: &Connection, number: u64) -> NewJob {
    transaction.execute("INSERT INTO orders VALUES (?1)", [number]).unwrap();
    NewJob::new(number.to_string())
}

fn orders(conn: &Connection) -> BTreeSet<u64> {
    let mut select = conn.prepare("SELECT number FROM orders").unwrap();
    let rows = select.query_map([], |row| row.get(0)).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

async fn ready(queue: &SqliteQueue) -> u64 {
    queue.stats().await.unwrap().ready
}

/// Asserts that a call was refused as invalid, and returns its message.
fn refusal(pushed: Result<Vec<Pushed>, Error>) -> String {
    let error = pushed.unwrap_err();
    assert!(matches!(error, Error::Invalid { .. }), "{error:?}");
    assert_eq!(error.effect(), Effect::No);
    error.full_message()
}

/// R1, R2: a job and its options are stored with the commit, and not before.
#[tokio::test]
async fn a_job_exists_from_the_commit_on() {
    let folder = Folder::new();
    let (queue, mut conn) = shop(&folder).await;
    let transaction = begin(&mut conn);
    let job = order(&transaction, 7)
        .header("kind", "order")
        .priority(Priority::HIGHEST)
        .delay(Duration::from_millis(1));

    let pushed = queue.push_in(&transaction, &[job], None).unwrap();
    assert_eq!(queue.stats().await.unwrap().unfinished(), 0, "not before the commit");
    transaction.commit().unwrap();

    let delivered = queue.claim_one(&ask("w").wait(LONG)).await.unwrap().unwrap();
    assert_eq!(pushed, [Pushed::Stored(delivered.receipt.job().clone())]);
    assert_eq!(&delivered.payload[..], b"7");
    assert_eq!(delivered.priority, Priority::HIGHEST);
    assert_eq!(delivered.headers.get("kind"), Some("order"));
    assert_eq!(orders(&conn), [7].into());
}

#[tokio::test]
async fn a_rollback_takes_the_job_back() {
    let folder = Folder::new();
    let (queue, mut conn) = shop(&folder).await;
    let transaction = begin(&mut conn);
    let job = order(&transaction, 7);
    queue.push_in(&transaction, &[job], None).unwrap();

    transaction.rollback().unwrap();

    let claimed = queue.claim_one(&ask("w").wait(Duration::from_millis(100))).await;
    assert_eq!(claimed.unwrap(), None);
    assert_eq!(orders(&conn), [].into());
    assert_eq!(queue.audit().await.unwrap().problems, [""; 0]);
}

/// R4, R5: a refused push stores nothing, and the application can continue.
#[tokio::test]
async fn a_refused_push_leaves_the_rest_of_the_transaction() {
    let folder = Folder::new();
    let (queue, mut conn) = shop(&folder).await;
    let token = PushToken::new("call").unwrap();
    let transaction = begin(&mut conn);
    let job = order(&transaction, 7);
    let first = queue.push_in(&transaction, from_ref(&job), Some(&token)).unwrap();

    let more = [job.clone(), NewJob::new("8")];
    let message = refusal(queue.push_in(&transaction, &more, Some(&token)));
    let again = queue.push_in(&transaction, &[job], Some(&token)).unwrap();
    transaction.commit().unwrap();

    assert!(message.contains("the push token was used"), "{message}");
    assert_eq!(first, again);
    assert_eq!((ready(&queue).await, orders(&conn)), (1, [7].into()));
}

/// R5: if one job cannot be stored, for whatever reason, the jobs before it in the call are
/// not stored either, although the application continues and commits.
#[tokio::test]
async fn a_push_that_fails_halfway_stores_nothing() {
    for (reason, failing) in [
        ("a constraint fails", "RAISE(ABORT, 'bad')"),
        ("a value is too large", "zeroblob(2000000000)"),
        ("an expression fails", "abs(-9223372036854775808)"),
    ] {
        let folder = Folder::new();
        let (queue, mut conn) = shop(&folder).await;
        conn.execute_batch(&format!(
            "CREATE TEMP TRIGGER refuse BEFORE INSERT ON main.bodies
             WHEN new.payload = CAST('bad' AS BLOB) BEGIN SELECT {failing}; END",
        ))
        .unwrap();
        let transaction = begin(&mut conn);
        let job = order(&transaction, 7);
        queue.push_in(&transaction, &[job], None).unwrap();

        let halfway = [NewJob::new("8"), NewJob::new("bad")];
        let error = queue.push_in(&transaction, &halfway, None).unwrap_err();
        transaction.commit().unwrap();

        assert_eq!(error.effect(), Effect::No, "{reason}");
        let jobs =
            queue.peek(&PeekRequest::new(JobState::Ready, many(9))).await.unwrap();
        let ready: Vec<_> = jobs.jobs.iter().map(|job| &job.payload[..]).collect();
        assert_eq!(ready, [b"7"], "R5: {reason}: {}", error.full_message());
        assert_eq!(orders(&conn), [7].into(), "{reason}");
        assert_eq!(queue.audit().await.unwrap().problems, [""; 0], "{reason}");
    }
}

/// R16: a key is bound by the push, and freed by the rollback.
#[tokio::test]
async fn a_unique_key_is_held_as_long_as_its_job_exists() {
    let folder = Folder::new();
    let (queue, mut conn) = shop(&folder).await;
    let job = || NewJob::new("7").unique(UniqueKey::new("order 7").unwrap());
    let transaction = begin(&mut conn);
    queue.push_in(&transaction, &[job()], None).unwrap();
    transaction.rollback().unwrap();

    let transaction = begin(&mut conn);
    let pushed = queue.push_in(&transaction, &[job(), job()], None).unwrap();
    transaction.commit().unwrap();

    let Pushed::Stored(first) = &pushed[0] else { panic!("{pushed:?}") };
    let duplicate =
        Pushed::Duplicate { existing: first.clone(), by: DuplicateOf::UniqueKey };
    assert_eq!(pushed[1], duplicate);
    assert_eq!(queue.push_one(job()).await.unwrap(), duplicate);
    assert_eq!(ready(&queue).await, 1);
}

#[tokio::test]
async fn a_transaction_pushes_to_several_queues() {
    let folder = Folder::new();
    let (queue, mut conn) = shop(&folder).await;
    let bills = QueueName::new("bills").unwrap();
    let bills = SqliteQueue::open(folder.config(), bills).await.unwrap();

    let transaction = begin(&mut conn);
    queue.push_in(&transaction, &[NewJob::new("1"), NewJob::new("2")], None).unwrap();
    bills.push_in(&transaction, &[NewJob::new("3")], None).unwrap();
    transaction.commit().unwrap();

    assert_eq!((ready(&queue).await, ready(&bills).await), (2, 1));
}

#[tokio::test]
async fn a_savepoint_takes_back_only_its_own_jobs() {
    let folder = Folder::new();
    let (queue, mut conn) = shop(&folder).await;
    let mut transaction = begin(&mut conn);
    let job = order(&transaction, 7);
    queue.push_in(&transaction, &[job], None).unwrap();

    let undone = transaction.savepoint().unwrap();
    let job = order(&undone, 8);
    queue.push_in(&undone, &[job], None).unwrap();
    drop(undone);
    let kept = transaction.savepoint().unwrap();
    let job = order(&kept, 9);
    queue.push_in(&kept, &[job], None).unwrap();
    kept.commit().unwrap();
    transaction.commit().unwrap();

    assert_eq!((numbers(&queue).await, orders(&conn)), ([7, 9].into(), [7, 9].into()));
}

#[tokio::test]
async fn a_transaction_on_another_file_is_refused() {
    let (folder, other) = (Folder::new(), Folder::new());
    let (queue, _) = shop(&folder).await;
    let (_, mut elsewhere) = shop(&other).await;
    let jobs = [NewJob::new("7")];

    let message = refusal(queue.push_in(&begin(&mut elsewhere), &jobs, None));

    let path = |folder: &Folder| folder.file().canonicalize().unwrap();
    let (path, other) = (path(&folder), path(&other));
    assert!(message.contains(other.to_str().unwrap()), "{message}");
    assert!(message.contains(path.to_str().unwrap()), "{message}");
    assert_eq!(ready(&queue).await, 0);
}

/// With a write-ahead log, a commit to two files is not atomic. So the file of the queue
/// must be the main database.
#[tokio::test]
async fn an_attached_file_is_refused() {
    let folder = Folder::new();
    let (queue, _) = shop(&folder).await;
    let mut conn = Connection::open_in_memory().unwrap();
    conn.execute("ATTACH ?1 AS queue", [folder.file().to_str().unwrap()]).unwrap();

    let pushed = queue.push_in(&begin(&mut conn), &[NewJob::new("7")], None);

    let message = refusal(pushed);
    assert!(message.contains("of the transaction is no file"), "{message}");
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_to_the_file_is_the_file() {
    let folder = Folder::new();
    let (queue, _) = shop(&folder).await;
    let link = folder.path().join("link.db");
    std::os::unix::fs::symlink(folder.file(), &link).unwrap();
    let mut conn = raw(&link);

    let transaction = begin(&mut conn);
    queue.push_in(&transaction, &[NewJob::new("7")], None).unwrap();
    transaction.commit().unwrap();

    assert_eq!(ready(&queue).await, 1);
}

/// R1: a connection by another hard link of the file writes a log of its own, which the
/// queue never reads.
#[cfg(unix)]
#[tokio::test]
async fn another_hard_link_of_the_file_is_refused() {
    let folder = Folder::new();
    let (queue, _) = shop(&folder).await;
    let link = folder.path().join("link.db");
    fs::hard_link(folder.file(), &link).unwrap();
    let mut conn = raw(&link);

    // An immediate transaction would read the other log, and may fail by itself.
    let transaction = conn.transaction().unwrap();
    let message = refusal(queue.push_in(&transaction, &[NewJob::new("7")], None));

    assert!(message.contains(link.to_str().unwrap()), "{message}");
}

#[tokio::test]
async fn a_queue_in_memory_is_refused() {
    let folder = Folder::new();
    let (_, mut conn) = shop(&folder).await;
    let queue = open(SqliteConfig::memory()).await.unwrap();

    let pushed = queue.push_in(&begin(&mut conn), &[NewJob::new("7")], None);

    let message = refusal(pushed);
    assert!(message.contains("open the queue in a file"), "{message}");
}

/// R1: jobs in a temporary table would be lost.
#[tokio::test]
async fn a_temporary_table_with_the_name_of_a_table_is_refused() {
    let folder = Folder::new();
    let (queue, mut conn) = shop(&folder).await;
    conn.execute_batch("CREATE TEMP TABLE Jobs AS SELECT * FROM main.jobs").unwrap();

    let pushed = queue.push_in(&begin(&mut conn), &[NewJob::new("7")], None);

    let message = refusal(pushed);
    assert!(message.contains("the temporary table Jobs hides"), "{message}");
}

/// R1: no temporary table takes what a push writes, whatever options its jobs have.
#[tokio::test]
async fn no_temporary_table_hides_a_table_of_a_push() {
    const HOUR: Duration = Duration::from_secs(3600);
    let folder = Folder::new();
    let (queue, mut conn) = shop(&folder).await;
    let leader = JobId::new("leader").unwrap();
    queue.push_one(NewJob::new("leads").id(leader.clone())).await.unwrap();
    let tables: Vec<String> = {
        let sql = "SELECT name FROM main.sqlite_schema WHERE type = 'table'
                   AND name NOT LIKE 'sqlite%'";
        let mut all = conn.prepare(sql).unwrap();
        let names = all.query_map((), |row| row.get(0)).unwrap();
        names.collect::<Result<_, _>>().unwrap()
    };
    for (number, table) in tables.iter().enumerate() {
        let sql =
            format!("CREATE TEMP TABLE \"{table}\" AS SELECT * FROM main.\"{table}\"");
        conn.execute_batch(&sql).unwrap();
        let count = format!("SELECT count(*) FROM temp.\"{table}\"");
        let rows = |conn: &Connection| -> i64 {
            conn.query_row(&count, (), |row| row.get(0)).unwrap()
        };
        let before = rows(&conn);
        let name = format!("push-{number}");
        let jobs = [
            NewJob::new("kept").id(JobId::new(&*name).unwrap()).keep_result(HOUR),
            NewJob::new("late").delay(HOUR).unique(UniqueKey::new(&*name).unwrap()),
            NewJob::new("follows").after(leader.clone()),
        ];

        let transaction = begin(&mut conn);
        let token = PushToken::new(&*name).unwrap();
        match queue.push_in(&transaction, &jobs, Some(&token)) {
            Ok(_) => transaction.commit().unwrap(),
            Err(error) => {
                let message = error.full_message();
                assert!(message.contains(" hides"), "{table}: {message}");
                drop(transaction);
            }
        }

        assert_eq!(rows(&conn), before, "{table}");
        conn.execute_batch(&format!("DROP TABLE temp.\"{table}\"")).unwrap();
    }
}

/// SQLite itself can end a transaction. A push would then be committed without the
/// application's rows.
#[tokio::test]
async fn a_transaction_that_has_ended_is_refused() {
    let folder = Folder::new();
    let (queue, mut conn) = shop(&folder).await;
    let transaction = begin(&mut conn);
    let job = order(&transaction, 7);
    transaction
        .execute_batch("INSERT OR ROLLBACK INTO queues (name) VALUES ('jobs')")
        .unwrap_err();

    let message = refusal(queue.push_in(&transaction, &[job], None));

    assert!(message.contains("the transaction has ended"), "{message}");
    assert_eq!(ready(&queue).await, 0);
}

/// R1: no job is pushed in a transaction whose commit would go to a deleted log.
#[tokio::test]
async fn a_file_without_its_log_takes_no_job() {
    let folder = Folder::new();
    let (queue, mut conn) = shop(&folder).await;
    fs::remove_file(folder.file().with_extension("db-wal")).unwrap();

    let pushed = queue.push_in(&begin(&mut conn), &["7".into()], None);

    let error = pushed.unwrap_err();
    assert!(matches!(error, Error::Unusable { .. }), "{error:?}");
    assert!(error.full_message().contains("was deleted or moved"), "{error:?}");
}

/// A newer relq has migrated the file since the queue was opened. The push is refused, and
/// the application can continue.
#[tokio::test]
async fn a_file_that_was_migrated_while_open_takes_no_job() {
    let folder = Folder::new();
    let (queue, mut conn) = shop(&folder).await;
    conn.pragma_update(None, "user_version", 99).unwrap();
    let transaction = begin(&mut conn);
    let job = order(&transaction, 7);

    let error = queue.push_in(&transaction, &[job], None).unwrap_err();
    transaction.commit().unwrap();

    assert!(matches!(error, Error::Unusable { .. }), "{error:?}");
    let message = error.full_message();
    assert!(message.contains("schema version 99"), "{message}");
    let jobs = "SELECT count(*) FROM jobs";
    assert_eq!(conn.query_row(jobs, [], |row| row.get::<_, i64>(0)), Ok(0));
    assert_eq!(orders(&conn), [7].into());
}

/// A deferred transaction that has read an old state cannot write. The error says that
/// nothing was stored.
#[tokio::test]
async fn a_deferred_transaction_on_an_old_state_is_unavailable() {
    let folder = Folder::new();
    let (queue, mut conn) = shop(&folder).await;
    let transaction = conn.transaction().unwrap();
    orders(&transaction);
    queue.push_one("6".into()).await.unwrap();

    let error = queue.push_in(&transaction, &[NewJob::new("7")], None).unwrap_err();

    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    assert_eq!(error.effect(), Effect::No);
    drop(transaction);
    assert_eq!(numbers(&queue).await, [6].into());
}

/// Whether a connection has met the lock of another one.
static HAS_MET_LOCK: AtomicBool = AtomicBool::new(false);

fn note_lock(_tries: i32) -> bool {
    HAS_MET_LOCK.store(true, SeqCst);
    thread::yield_now();
    true
}

/// A deferred transaction that has read nothing waits for the lock of another process.
#[tokio::test]
async fn a_deferred_transaction_waits_for_the_lock() {
    let folder = Folder::new();
    let (queue, mut conn) = shop(&folder).await;
    let another = folder.queue().await;
    let mut other = raw(&folder.file());
    conn.busy_handler(Some(note_lock as fn(i32) -> bool)).unwrap();

    let holding = begin(&mut other);
    let job = order(&holding, 6);
    queue.push_in(&holding, &[job], None).unwrap();
    let has_met_lock = || async { HAS_MET_LOCK.load(SeqCst) };
    let waiting = tokio::task::spawn_blocking(move || {
        let transaction = conn.transaction().unwrap();
        another.push_in(&transaction, &[NewJob::new("7")], None).unwrap();
        transaction.commit().unwrap();
    });
    eventually("the other transaction waits", has_met_lock).await;
    holding.commit().unwrap();
    waiting.await.unwrap();

    assert_eq!(numbers(&queue).await, [6, 7].into());
}

#[tokio::test]
async fn a_commit_wakes_a_waiting_claim_of_this_process() {
    let folder = Folder::new();
    let (queue, mut conn) = shop(&folder).await;
    let began = Instant::now();
    let asked = ask("w").wait(LONG);

    // The claim is sent first, and waits while the transaction is open.
    let (claimed, ()) = tokio::join!(queue.claim_one(&asked), async {
        let transaction = begin(&mut conn);
        queue.push_in(&transaction, &[NewJob::new("7")], None).unwrap();
        transaction.commit().unwrap();
    });

    assert_eq!(&claimed.unwrap().unwrap().payload[..], b"7");
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[tokio::test]
#[ignore = "started by another test, in a process of its own"]
async fn child_claims_one() {
    let file = file_of_child();
    let queue = open(SqliteConfig::file(&file).busy_timeout(LONG)).await.unwrap();
    assert_eq!(queue.claim_one(&ask("child")).await.unwrap(), None);
    Notes::of(&file, "waits").add(&[1]);
    let claimed = queue.claim_one(&ask("child").wait(LONG)).await.unwrap().unwrap();
    let number = String::from_utf8_lossy(&claimed.payload).parse().unwrap();
    Notes::of(&file, "claimed").add(&[number]);
}

#[tokio::test]
async fn a_commit_wakes_a_waiting_claim_of_another_process() {
    let folder = Folder::new();
    let (queue, mut conn) = shop(&folder).await;
    let _child = spawn("push_in::child_claims_one", &folder.file());
    let notes = |name| Notes::of(&folder.file(), name);
    eventually("the child waits", || async { !notes("waits").read().is_empty() }).await;

    let transaction = begin(&mut conn);
    queue.push_in(&transaction, &[NewJob::new("7")], None).unwrap();
    transaction.commit().unwrap();

    eventually("the child claims", || async { notes("claimed").read() == [7] }).await;
}

/// Pushes the job of an order, and reports this. It never commits.
#[tokio::test]
#[ignore = "started by another test, in a process of its own"]
async fn child_stops_before_the_commit() {
    let file = file_of_child();
    let queue = open(SqliteConfig::file(&file).busy_timeout(LONG)).await.unwrap();
    let mut conn = raw(&file);
    let transaction = begin(&mut conn);
    let job = order(&transaction, 7);
    queue.push_in(&transaction, &[job], None).unwrap();
    Notes::of(&file, "pushed").add(&[7]);
    thread::sleep(LONG);
}

#[tokio::test]
async fn a_process_killed_before_the_commit_leaves_neither_order_nor_job() {
    let folder = Folder::new();
    let (queue, conn) = shop(&folder).await;
    let mut child = spawn("push_in::child_stops_before_the_commit", &folder.file());
    let pushed = Notes::of(&folder.file(), "pushed");
    eventually("the child pushes", || async { !pushed.read().is_empty() }).await;

    child.kill();

    assert_eq!((numbers(&queue).await, orders(&conn)), ([].into(), [].into()));
    queue.push_one("8".into()).await.unwrap();
}

/// Commits orders with their jobs, and records each that was committed. The time from a
/// push to its commit varies.
#[tokio::test]
#[ignore = "started by another test, in a process of its own"]
async fn child_orders_until_killed() {
    let file = file_of_child();
    let queue = open(SqliteConfig::file(&file).busy_timeout(LONG)).await.unwrap();
    let mut conn = raw(&file);
    let first = u64::from(std::process::id()) * 1_000_000;
    for number in first.. {
        let transaction = begin(&mut conn);
        let job = order(&transaction, number);
        queue.push_in(&transaction, &[job], None).unwrap();
        let pause = number.wrapping_mul(2_654_435_761) % LONGEST_PAUSE_US;
        thread::sleep(Duration::from_micros(pause));
        transaction.commit().unwrap();
        Notes::of(&file, "committed").add(&[number]);
    }
}

/// R1, R5: at whatever moment a process is killed, each order has its job, and each job
/// its order.
#[tokio::test]
async fn killed_processes_leave_orders_and_jobs_together() {
    let folder = Folder::new();
    let (queue, conn) = shop(&folder).await;
    let committed = Notes::of(&folder.file(), "committed");
    for round in 1..=KILLS {
        let enough = committed.read().len() + ORDERS_BEFORE_KILL;
        let mut child = spawn("push_in::child_orders_until_killed", &folder.file());
        eventually("the child commits orders", || async {
            committed.read().len() >= enough
        })
        .await;
        thread::sleep(Duration::from_micros(round * 370));
        child.kill();
        assert_eq!(numbers(&queue).await, orders(&conn), "round {round}");
    }

    let orders = orders(&conn);
    assert!(committed.read().iter().all(|number| orders.contains(number)));
    assert_eq!(queue.audit().await.unwrap().problems, [""; 0]);
}

/// The numbers of the ready jobs.
async fn numbers(queue: &SqliteQueue) -> BTreeSet<u64> {
    let jobs =
        queue.peek(&PeekRequest::new(JobState::Ready, many(1000))).await.unwrap();
    assert!(jobs.next.is_none(), "one page has all jobs");
    let number =
        |payload: &[u8]| std::str::from_utf8(payload).unwrap().parse().unwrap();
    jobs.jobs.iter().map(|job| number(&job.payload)).collect()
}

/// R33: the application may have a table `workers` in the queue's file. The migration and
/// the reports of relq's workers leave it alone, and a push in a transaction goes on.
#[tokio::test]
async fn a_table_of_workers_of_the_application_is_left_alone() {
    let folder = Folder::new();
    make_old_file(&folder);
    let mut conn = raw(&folder.file());
    conn.execute_batch(
        "CREATE TABLE workers (name TEXT); INSERT INTO workers VALUES ('Anna')",
    )
    .unwrap();
    let queue = folder.queue().await;

    let report = WorkerReport::new(WorkerId::new("w").unwrap(), many(1));
    queue.report_worker(&report).await.unwrap();
    let transaction = begin(&mut conn);
    transaction.execute("INSERT INTO workers VALUES ('Bert')", []).unwrap();
    queue.push_in(&transaction, &[NewJob::new("job")], None).unwrap();
    transaction.commit().unwrap();

    let names = "SELECT group_concat(name) FROM workers";
    let names: String = conn.query_row(names, [], |row| row.get(0)).unwrap();
    assert_eq!(names, "Anna,Bert");
    let listed = queue.workers(None, many(1)).await.unwrap().workers;
    assert_eq!(listed.len(), 1, "relq lists its own worker");
    assert_eq!(ready(&queue).await, 2, "the job of the older file, and the new one");
}
