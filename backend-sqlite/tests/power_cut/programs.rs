//! The programs that run before a power cut: short sequences of calls, with the
//! expected content of the store after each call.

use std::{num::NonZeroU32, path::Path, time::Duration};

use futures_util::future::join_all;
use relq_core::{
    batch::{BatchId, BatchQueue as _, Change, NewBatch},
    followers::MAX_FOLLOWERS,
    operator::Selection,
    outcome::{Extended, Settled},
    results::{Reported, ResultQueue as _},
    *,
};
use rusqlite::Connection;

use crate::model::{Batch, Job, Model};
use crate::run::{Caller, History, Run, Site};

const LEASE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const CALLERS: u64 = 4;

/// The schemas before the newest one, the oldest first.
const SCHEMAS: [&str; 6] = [
    include_str!("../../sql/schema_1.sql"),
    include_str!("../../sql/schema_2.sql"),
    include_str!("../../sql/schema_3.sql"),
    include_str!("../../sql/schema_4.sql"),
    include_str!("../../sql/schema_5.sql"),
    include_str!("../../sql/schema_6.sql"),
];

fn id(name: &str) -> JobId {
    JobId::new(name).unwrap()
}

fn job(name: &str) -> NewJob {
    NewJob::new(name.to_owned()).id(id(name))
}

fn worker() -> WorkerId {
    WorkerId::new("worker").unwrap()
}

fn ask(max: u32) -> ClaimRequest {
    ClaimRequest::new(worker(), LEASE).max(NonZeroU32::new(max).unwrap())
}

impl Caller {
    async fn push(&mut self, queue: &dyn ReliableQueue, jobs: &[NewJob]) {
        self.call("push", queue.push(jobs, None), |model, _| {
            for job in jobs {
                let name = job.id.as_ref().unwrap().to_string();
                let state = match (&job.after, job.delay.is_zero()) {
                    (Some(_), _) => "held",
                    (None, true) => "ready",
                    (None, false) => "scheduled",
                };
                if let Some(leader) = &job.after {
                    model.followers.insert(name.clone(), (leader.to_string(), false));
                }
                let mut stored = Job::new(state, job.payload.to_vec());
                stored.unique_key =
                    job.unique.as_ref().map(|unique| unique.key.to_string());
                if job.keep_result.is_some() {
                    model.set_result(&name, "unfinished", None);
                }
                model.jobs.insert(name, stored);
            }
        })
        .await;
    }

    async fn claim(&mut self, queue: &dyn ReliableQueue, max: u32) -> Vec<Receipt> {
        let claimed = self
            .call("claim", queue.claim(&ask(max)), |model, claimed| {
                for one in claimed {
                    let job = model.job(one.job().as_str());
                    job.state = "leased".to_owned();
                    job.attempt = one.attempt();
                }
            })
            .await;
        claimed.into_iter().map(|one| one.receipt).collect()
    }

    async fn ack(&mut self, queue: &dyn ReliableQueue, receipt: &Receipt) {
        self.call("ack", queue.ack(receipt), |model, settled| {
            assert_eq!(*settled, Settled::Applied);
            model.end(receipt.job().as_str());
            model.finished += 1;
        })
        .await;
    }

    async fn bury(&mut self, queue: &dyn ReliableQueue, receipt: &Receipt) {
        self.call("bury", queue.bury(receipt, "broken"), |model, _| {
            let job = model.job(receipt.job().as_str());
            job.state = "dead".to_owned();
            job.unique_key = None;
        })
        .await;
    }
}

/// A program that makes the usual calls. It begins with the creation of the file, and
/// opens the file twice.
pub(crate) fn all_calls(run: &mut Run) -> impl Future<Output = Vec<History>> + use<> {
    let site = run.site();
    async move {
        let mut caller = site.caller(0, "", Model::default());
        let queue = site.open().await;
        let receipts = pushes(&mut caller, &queue).await;
        settlements(&mut caller, &queue, receipts).await;
        drop(queue);
        site.wait_until_closed();
        let queue = site.open().await;
        dead_letters(&mut caller, &queue).await;
        batches(&mut caller, &queue).await;
        vec![caller.history]
    }
}

async fn pushes(caller: &mut Caller, queue: &relq_sqlite::SqliteQueue) -> Vec<Receipt> {
    caller.push(queue, &[job("first")]).await;
    let three = ["one", "two", "three"].map(job);
    caller.push(queue, &three).await;
    caller.push(queue, &[job("delayed").delay(HOUR)]).await;
    let key = || unique_key("key");
    caller.push(queue, &[job("unique").unique(key())]).await;
    let large = NewJob::new(vec![7; 30_000]).id(id("large"));
    caller.push(queue, &[large]).await;
    // The commits of a second connection must wait for the disk like those of the
    // first.
    let other = queue.open_another().await.unwrap();
    caller.push(&*other, &[job("by another")]).await;
    let receipts = caller.claim(&*other, 6).await;
    caller.push(&*other, &[job("after the claim")]).await;
    receipts
}

fn unique_key(text: &str) -> relq_core::unique::UniqueKey {
    relq_core::unique::UniqueKey::new(text).unwrap()
}

async fn settlements(
    caller: &mut Caller,
    queue: &relq_sqlite::SqliteQueue,
    receipts: Vec<Receipt>,
) {
    let [first, one, two, three, unique, large] = &receipts[..] else {
        panic!("six jobs were claimed: {receipts:?}")
    };
    caller.ack(queue, first).await;
    caller
        .call("retry", queue.retry(one, HOUR, "again"), |model, _| {
            model.job("one").state = "scheduled".to_owned();
        })
        .await;
    caller.bury(queue, two).await;
    let held = std::slice::from_ref(three);
    caller
        .call("extend", queue.extend(&worker(), held, 2 * HOUR), |model, extended| {
            assert!(matches!(extended[0], Extended::Until(_)), "{extended:?}");
            model.job("three").state = "extended".to_owned();
        })
        .await;
    caller.ack(queue, unique).await;
    caller.push(queue, &[job("unique again").unique(unique_key("key"))]).await;
    caller.ack(queue, large).await;
    caller
        .call("cancel", queue.cancel(&id("delayed")), |model, _| {
            model.end_otherwise("delayed");
            model.cancelled += 1;
        })
        .await;
}

async fn dead_letters(caller: &mut Caller, queue: &relq_sqlite::SqliteQueue) {
    caller
        .call("redrive", queue.redrive(&Selection::All), |model, _| {
            let job = model.job("two");
            job.state = "ready".to_owned();
            job.attempt = 0;
        })
        .await;
    let receipts = caller.claim(queue, 2).await;
    for receipt in &receipts {
        caller.bury(queue, receipt).await;
    }
    caller
        .call("purge_dead", queue.purge_dead(&Selection::All), |model, purged| {
            assert_eq!(*purged, 2);
            for receipt in &receipts {
                model.end_otherwise(receipt.job().as_str());
            }
        })
        .await;
}

async fn batches(caller: &mut Caller, queue: &relq_sqlite::SqliteQueue) {
    let batch = BatchId::new("batch").unwrap();
    let new = NewBatch::new(batch.clone());
    let set = |state: &str, total: u64| {
        let (state, priority) = (state.to_owned(), new.priority.level());
        move |model: &mut Model| {
            let batch = Batch { state, total, priority, limit: None };
            model.batches.insert("batch".to_owned(), batch);
        }
    };
    caller.call("create", queue.create(&new), |model, _| set("open", 0)(model)).await;
    let pieces = ["piece 1", "piece 2"].map(job);
    caller
        .call("add", queue.add(&batch, &pieces, None), |model, _| {
            set("open", 2)(model);
            for piece in ["piece 1", "piece 2"] {
                model.jobs.insert(piece.to_owned(), Job::new("ready", piece));
            }
        })
        .await;
    caller.call("seal", queue.seal(&batch), |model, _| set("sealed", 2)(model)).await;
    for receipt in caller.claim(queue, 9).await {
        caller
            .call("ack", queue.ack(&receipt), |model, _| {
                model.end(receipt.job().as_str());
                model.finished += 1;
                let is_piece = |id: &String| id.starts_with("piece");
                if model.ended.iter().filter(|id| is_piece(id)).count() == 2 {
                    set("done", 2)(model);
                }
            })
            .await;
    }
    caller.push(queue, &[job("last"), job("late").delay(HOUR)]).await;
}

/// A program that makes rarer calls: calls with tokens, calls of operators, recovery
/// and give-back.
pub(crate) fn rare_calls(run: &mut Run) -> impl Future<Output = Vec<History>> + use<> {
    let site = run.site();
    async move {
        let mut caller = site.caller(0, "", Model::default());
        let queue = site.open().await;
        results(&mut caller, &queue).await;
        tokens(&mut caller, &queue).await;
        given_back(&mut caller, &queue).await;
        recoveries(&mut caller, &queue).await;
        operators(&mut caller, &queue).await;
        cancelled_batch(&mut caller, &queue).await;
        caller
            .call("purge", queue.purge(), |model, _| {
                *model = Model { is_paused: model.is_paused, ..Model::default() };
            })
            .await;
        caller.push(&queue, &[job("after the purge")]).await;
        caller.push(&queue, &[job("last")]).await;
        vec![caller.history]
    }
}

async fn results(caller: &mut Caller, queue: &relq_sqlite::SqliteQueue) {
    let large = vec![7; 30_000];
    caller.push(queue, &["kept", "dropped"].map(|it| job(it).keep_result(HOUR))).await;
    let held = caller.claim(queue, 1).await;
    caller
        .call("report", queue.report_progress(&held[0], b"half"), |model, reported| {
            assert_eq!(*reported, Reported::Stored);
            model.set_result("kept", "unfinished", Some(b"half"));
        })
        .await;
    let done = Disposition::DoneWith { result: large.clone().into() };
    caller
        .call("end with a result", queue.settle_one(&held[0], done), |model, _| {
            model.end("kept");
            model.finished += 1;
            model.set_result("kept", "done", Some(&large));
        })
        .await;
    caller
        .call("cancel a kept job", queue.cancel(&id("dropped")), |model, _| {
            model.end_otherwise("dropped");
            model.cancelled += 1;
            model.set_result("dropped", "cancelled", None);
        })
        .await;
}

async fn tokens(caller: &mut Caller, queue: &relq_sqlite::SqliteQueue) {
    let token = PushToken::new("token").unwrap();
    let pair = ["a", "b"].map(job);
    for _ in 0..2 {
        caller
            .call("push with a token", queue.push(&pair, Some(&token)), |model, _| {
                model.tokens.insert("token".to_owned());
                for name in ["a", "b"] {
                    model.jobs.insert(name.to_owned(), Job::new("ready", name));
                }
            })
            .await;
    }
    caller.push(queue, &["c", "d", "e", "f"].map(job)).await;
}

async fn given_back(caller: &mut Caller, queue: &relq_sqlite::SqliteQueue) {
    let back = |model: &mut Model, name: &str| {
        let job = model.job(name);
        (job.state, job.attempt) = ("ready".to_owned(), 0);
    };
    let held = caller.claim(queue, 2).await;
    caller
        .call("give back", queue.give_back(&held[1]), |model, _| {
            back(model, held[1].job().as_str());
        })
        .await;
    caller
        .call("discard", queue.discard(&held[0]), |model, _| {
            model.end_otherwise(held[0].job().as_str());
            model.discarded += 1;
        })
        .await;
    let held = caller.claim(queue, 3).await;
    caller
        .call("release", queue.release_worker(&worker()), |model, released| {
            assert_eq!(released.jobs, 3);
            for receipt in &held {
                back(model, receipt.job().as_str());
            }
        })
        .await;
}

/// Recovers jobs whose leases have expired, and promotes a job that is due.
async fn recoveries(caller: &mut Caller, queue: &relq_sqlite::SqliteQueue) {
    const SHORT: Duration = Duration::from_millis(1);
    let one = NonZeroU32::MIN;
    let short = ClaimRequest::new(worker(), SHORT).max(one);
    caller
        .call("short claim", queue.claim(&short), |model, claimed| {
            let job = model.job(claimed[0].job().as_str());
            (job.state, job.attempt) = ("leased".to_owned(), 1);
        })
        .await;
    loop {
        let recover = queue.recover(one);
        let recovered = caller
            .call("recover", recover, |model, recovered| {
                let leased = model.jobs.values_mut().find(|job| job.state == "leased");
                if let (1, Some(job)) = (recovered.requeued, leased) {
                    job.state = "ready".to_owned();
                }
            })
            .await;
        if recovered.requeued == 1 {
            break;
        }
    }
    caller.push(queue, &[job("due").delay(SHORT)]).await;
    loop {
        let recovered = caller
            .call("promote", queue.recover(one), |model, recovered| {
                if recovered.promoted == 1 {
                    model.job("due").state = "ready".to_owned();
                }
            })
            .await;
        if recovered.promoted == 1 {
            break;
        }
    }
}

async fn operators(caller: &mut Caller, queue: &relq_sqlite::SqliteQueue) {
    caller.call("pause", queue.pause(), |model, ()| model.is_paused = true).await;
    caller.call("resume", queue.resume(), |model, ()| model.is_paused = false).await;
    let held = caller.claim(queue, 3).await;
    caller
        .call("cancel a leased job", queue.cancel(held[0].job()), |model, _| {
            model.end_otherwise(held[0].job().as_str());
            model.cancelled += 1;
            model.cancelled_leases += 1;
        })
        .await;
    caller.bury(queue, &held[1]).await;
    let only = Selection::Only(vec![held[1].job().clone()]);
    caller
        .call("redrive one", queue.redrive(&only), |model, _| {
            let job = model.job(held[1].job().as_str());
            (job.state, job.attempt) = ("ready".to_owned(), 0);
        })
        .await;
    caller.bury(queue, &held[2]).await;
}

async fn cancelled_batch(caller: &mut Caller, queue: &relq_sqlite::SqliteQueue) {
    let id = BatchId::new("cancelled").unwrap();
    let new = NewBatch::new(id.clone());
    let priority = new.priority.level();
    caller
        .call("create", queue.create(&new), |model, _| {
            let state = "open".to_owned();
            let batch = Batch { state, priority, ..Batch::default() };
            model.batches.insert(id.to_string(), batch);
        })
        .await;
    let pieces = ["piece 1", "piece 2", "piece 3"].map(job);
    caller
        .call("add", queue.add(&id, &pieces, None), |model, _| {
            model.batches.get_mut(id.as_str()).unwrap().total = 3;
            for piece in ["piece 1", "piece 2", "piece 3"] {
                model.jobs.insert(piece.to_owned(), Job::new("ready", piece));
            }
        })
        .await;
    let change = Change::default().limit(NonZeroU32::new(2));
    caller
        .call("alter", queue.alter(&id, &change), |model, _| {
            model.batches.get_mut(id.as_str()).unwrap().limit = Some(2);
        })
        .await;
    caller
        .call("cancel the batch", queue.cancel_batch(&id), |model, _| {
            model.batches.get_mut(id.as_str()).unwrap().state = "cancelled".to_owned();
            for piece in ["piece 1", "piece 2", "piece 3"] {
                model.end_otherwise(piece);
                model.cancelled += 1;
            }
        })
        .await;
}

/// A program that moves followers: it releases some, cancels some, and cancels a chain
/// that is longer than one step may cancel.
pub(crate) fn followers(run: &mut Run) -> impl Future<Output = Vec<History>> + use<> {
    let site = run.site();
    async move {
        let mut caller = site.caller(0, "", Model::default());
        let queue = site.open().await;
        released(&mut caller, &queue).await;
        cancelled_with_their_leader(&mut caller, &queue).await;
        a_long_chain(&mut caller, &queue).await;
        caller.push(&queue, &[job("after the chain")]).await;
        vec![caller.history]
    }
}

async fn released(caller: &mut Caller, queue: &relq_sqlite::SqliteQueue) {
    let follower = |name: &str, leader: &str| job(name).after(id(leader));
    let delayed = follower("delayed", "lead").delay(HOUR);
    caller.push(queue, &[job("lead"), follower("next", "lead"), delayed]).await;
    caller.push(queue, &[follower("last", "next").keep_result(HOUR)]).await;
    let held = caller.claim(queue, 1).await;
    caller
        .call("end of the leader", queue.ack(&held[0]), |model, settled| {
            assert_eq!(*settled, Settled::Applied);
            model.end("lead");
            model.finished += 1;
            for (follower, state) in [("next", "ready"), ("delayed", "scheduled")] {
                model.followers.remove(follower);
                model.job(follower).state = state.to_owned();
            }
        })
        .await;
}

async fn cancelled_with_their_leader(
    caller: &mut Caller,
    queue: &relq_sqlite::SqliteQueue,
) {
    let held = caller.claim(queue, 1).await;
    caller.bury(queue, &held[0]).await;
    caller
        .call(
            "purge of the leader",
            queue.purge_dead(&Selection::All),
            |model, purged| {
                assert_eq!(*purged, 1);
                model.end_otherwise("next");
                model.end_otherwise("last");
                model.cancelled += 1;
                model.set_result("last", "cancelled with next", None);
            },
        )
        .await;
}

/// One step cancels as many followers as one leader may have. The next recovery cancels
/// the rest.
async fn a_long_chain(caller: &mut Caller, queue: &relq_sqlite::SqliteQueue) {
    let name = |number: usize| format!("chain {number}");
    let follower = |number| match number {
        0 => job(&name(0)),
        _ => job(&name(number)).after(id(&name(number - 1))),
    };
    let chain: Vec<_> = (0..=MAX_FOLLOWERS + 1).map(follower).collect();
    caller.push(queue, &chain).await;
    caller
        .call("cancel of the chain", queue.cancel(&id(&name(0))), |model, _| {
            for number in 0..=MAX_FOLLOWERS {
                model.end_otherwise(&name(number));
                model.cancelled += 1;
            }
            let last = (name(MAX_FOLLOWERS), true);
            model.followers.insert(name(MAX_FOLLOWERS + 1), last);
        })
        .await;
    let recover = queue.recover(NonZeroU32::MIN);
    caller
        .call("cancel of the rest", recover, |model, _| {
            model.end_otherwise(&name(MAX_FOLLOWERS + 1));
            model.cancelled += 1;
        })
        .await;
}

/// A program that creates the file and makes one push.
pub(crate) fn first_push(run: &mut Run) -> impl Future<Output = Vec<History>> + use<> {
    let site = run.site();
    async move {
        let mut caller = site.caller(0, "", Model::default());
        let queue = site.open().await;
        caller.push(&queue, &[job("first")]).await;
        vec![caller.history]
    }
}

/// A program with several callers of one handle, whose calls share commits.
pub(crate) fn callers_together(
    run: &mut Run,
) -> impl Future<Output = Vec<History>> + use<> {
    let site = run.site();
    async move {
        let queue = site.open().await;
        let names: Vec<String> =
            (0..CALLERS).map(|number| format!("caller {number}: ")).collect();
        let callers = (0..).zip(&names);
        let callers =
            callers.map(|(number, name)| work_of_one(&site, &queue, number, name));
        join_all(callers).await
    }
}

async fn work_of_one(
    site: &Site,
    queue: &dyn ReliableQueue,
    number: u64,
    name: &str,
) -> History {
    let mut caller = site.caller(number, name, Model::default());
    for call in 0..8 {
        let pushed = job(&format!("{name}{call}"));
        let pair = NewJob::new(vec![b'x'; 500]).id(id(&format!("{name}{call} pair")));
        caller.push(queue, &[pushed, pair]).await;
    }
    caller.history
}

/// A program that opens one file as two separate stores, as two processes would.
pub(crate) fn two_stores(run: &mut Run) -> impl Future<Output = Vec<History>> + use<> {
    let site = run.site();
    async move {
        let stores = [site.open().await, site.open().await];
        let names: Vec<String> =
            (0..CALLERS).map(|number| format!("caller {number}: ")).collect();
        let callers = (0..).zip(&names).zip(stores.iter().cycle());
        let callers = callers
            .map(|((number, name), queue)| work_of_one(&site, queue, number, name));
        join_all(callers).await
    }
}

/// A program that opens a file with an older schema and pushes a job into it.
pub(crate) fn migrate_from(
    run: &mut Run,
    version: u32,
) -> impl Future<Output = Vec<History>> + use<> {
    let first = make_old_file(&run.file(), version);
    run.begin_here();
    let site = run.site();
    async move {
        let mut caller = site.caller(0, "", first);
        let queue = site.open().await;
        caller.push(&queue, &[job("new")]).await;
        vec![caller.history]
    }
}

/// Writes a file with an older schema and some jobs. Returns its expected content.
fn make_old_file(file: &Path, version: u32) -> Model {
    let conn = Connection::open(file).unwrap();
    for schema in &SCHEMAS[..version as usize] {
        conn.execute_batch(schema).unwrap();
    }
    conn.execute(
        "INSERT INTO queues (queue, name, next_turn) VALUES (1, 'jobs', 50)",
        [],
    )
    .unwrap();
    let mut model = Model::default();
    for number in 1..=40 {
        let (name, payload) = (format!("old {number}"), vec![b'o'; 700]);
        conn.execute(
            "INSERT INTO jobs (job, queue, id, keeps_id, state, priority, turn, max_attempts)
             VALUES (?1, 1, ?2, 0, 'ready', 5, ?1, 25)",
            (number, &name),
        )
        .unwrap();
        let body = "INSERT INTO bodies (job, payload) VALUES (?1, ?2)";
        conn.execute(body, (number, &payload)).unwrap();
        model.jobs.insert(name, Job::new("ready", payload));
    }
    conn.pragma_update(None, "user_version", version).unwrap();
    conn.pragma_update(None, "application_id", u32::from_be_bytes(*b"relq")).unwrap();
    let mode: String =
        conn.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
    model
}
