//! Followers in a file (R30).

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use relq_core::{
    Disposition, Error, JobId, NewJob, Operator as _, Receipt, ReliableQueue as _,
    ReliableQueueExt as _, Settlement,
    environment::Environment,
    error::{Effect, Operation},
    followers::{CannotFollow, MAX_FOLLOWERS},
    operator::{
        Cancelled, InspectQueue as _, JobLookup, JobState, PeekRequest, Selection,
        StateDetail,
    },
    outcome::{DuplicateOf, Pushed, Settled},
    results::{JobResult, ResultQueue as _},
    unique::UniqueKey,
};
use relq_sqlite::{
    SqliteQueue,
    testing::{AtStep, Side, at_each_step},
};

use crate::fixture::{Folder, LONG, ask, eventually, many, open, raw};

pub(crate) fn id(text: &str) -> JobId {
    JobId::new(text).unwrap()
}

/// A job that others can follow, with its id as its payload.
pub(crate) fn named(name: &str) -> NewJob {
    NewJob::new(name.to_owned()).id(id(name))
}

/// Opens the queue with this limit on the jobs of one step.
pub(crate) async fn with_page(folder: &Folder, page: u32) -> SqliteQueue {
    let environment = Environment::default().with_max_jobs_per_step(many(page));
    open(folder.config().environment(environment)).await.unwrap()
}

pub(crate) async fn push(queue: &SqliteQueue, jobs: &[NewJob]) {
    for pushed in queue.push(jobs, None).await.unwrap() {
        assert!(matches!(pushed, Pushed::Stored(_)), "{pushed:?}");
    }
}

pub(crate) async fn claim(queue: &SqliteQueue, most: u32) -> Vec<Receipt> {
    let claimed = queue.claim(&ask("w").max(many(most))).await.unwrap();
    claimed.into_iter().map(|one| one.receipt).collect()
}

pub(crate) async fn problems(queue: &SqliteQueue) -> Vec<String> {
    queue.audit().await.unwrap().problems
}

/// The leaders of the held jobs.
pub(crate) async fn leaders(queue: &SqliteQueue) -> Vec<String> {
    let ask = PeekRequest::new(JobState::Scheduled, many(1000));
    let jobs = queue.peek(&ask).await.unwrap().jobs.into_iter();
    let leader = |detail| match detail {
        StateDetail::Following { leader, .. } => Some(leader.to_string()),
        _ => None,
    };
    jobs.filter_map(|job| leader(job.detail)).collect()
}

async fn refusal(queue: &SqliteQueue, job: NewJob) -> CannotFollow {
    match queue.push_one(job).await {
        Err(Error::CannotFollow { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

/// Records the statements that a queue executes.
pub(crate) fn recorder() -> (AtStep, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&seen);
    let watch: AtStep = Arc::new(move |side, sql| {
        if side == Side::Before {
            record.lock().unwrap().push(sql.to_owned());
        }
        Ok(())
    });
    (watch, seen)
}

/// A job whose id is not remembered has no follower, so its calls look for none.
#[tokio::test]
async fn plain_jobs_execute_no_statement_of_followers() {
    let (folder, (watch, seen)) = (Folder::new(), recorder());
    let queue = open(at_each_step(folder.config(), watch)).await.unwrap();
    seen.lock().unwrap().clear();

    push(&queue, &["a".into(), "b".into(), "c".into()]).await;
    let held = claim(&queue, 2).await;
    queue.ack(&held[0]).await.unwrap();
    queue.discard(&held[1]).await.unwrap();
    let ready = queue.peek(&PeekRequest::new(JobState::Ready, many(1))).await.unwrap();
    queue.cancel(ready.jobs[0].id.as_ref().unwrap()).await.unwrap();

    let seen = seen.lock().unwrap();
    let of_followers: Vec<_> =
        seen.iter().filter(|sql| sql.contains("followers")).collect();
    assert!(seen.len() > 20, "the statements were recorded");
    assert_eq!(of_followers, [""; 0]);
}

/// A settlement of many leaders is several transactions, each of which moves a limited
/// number of followers, and has one result.
#[tokio::test]
async fn many_leaders_are_settled_in_steps() {
    for disposition in [Disposition::Done, Disposition::Discard] {
        let (folder, (watch, seen)) = (Folder::new(), recorder());
        let environment = Environment::default().with_max_jobs_per_step(many(10));
        let config = folder.config().environment(environment);
        let queue = open(at_each_step(config, watch)).await.unwrap();
        let names: Vec<_> = (0..12).map(|number| format!("leader {number}")).collect();
        let leaders: Vec<_> = names.iter().map(|name| named(name)).collect();
        push(&queue, &leaders).await;
        for name in &names {
            push(&queue, &vec![NewJob::new("follower").after(id(name)); 5]).await;
        }
        let held = claim(&queue, 12).await;
        seen.lock().unwrap().clear();

        let done = |it: &Receipt| Settlement::new(it.clone(), disposition.clone());
        let done: Vec<_> = held.iter().map(done).collect();
        let first = queue.settle_and_claim(&done[..6], &ask("w")).await;
        let claimed = first.claimed.unwrap().len();
        let rest = queue.settle(&done[6..]).await.unwrap();

        assert_eq!(first.settled.unwrap(), [Settled::Applied; 6]);
        assert_eq!(rest, [Settled::Applied; 6]);
        let transactions = |sql: &String| sql == "BEGIN IMMEDIATE";
        assert_eq!(
            seen.lock().unwrap().iter().filter(|it| transactions(it)).count(),
            6
        );
        while queue.recover(many(10)).await.unwrap().more {}
        let stats = queue.stats().await.unwrap();
        let is_done = disposition == Disposition::Done;
        assert_eq!(claimed, usize::from(is_done));
        assert_eq!(
            (stats.scheduled, stats.cancelled),
            (0, if is_done { 0 } else { 60 })
        );
        assert_eq!(stats.ready + stats.leased, if is_done { 60 } else { 0 });
        assert_eq!(problems(&queue).await, [""; 0]);
    }
}

/// A purge of dead leaders handles fewer of them in one step if they have followers.
#[tokio::test]
async fn dead_leaders_are_purged_in_steps() {
    for all in [true, false] {
        let folder = Folder::new();
        let queue = with_page(&folder, 4).await;
        let names = ["a", "b", "c", "d", "e", "f"];
        push(&queue, &names.map(named)).await;
        for name in names {
            push(&queue, &vec![NewJob::new("follower").after(id(name)); 3]).await;
        }
        for held in claim(&queue, 6).await {
            queue.bury(&held, "broken").await.unwrap();
        }

        let which = match all {
            true => Selection::All,
            false => Selection::Only(names.map(id).to_vec()),
        };
        assert_eq!(queue.purge_dead(&which).await.unwrap(), 6);

        while queue.recover(many(4)).await.unwrap().more {}
        let stats = queue.stats().await.unwrap();
        assert_eq!((stats.dead, stats.scheduled, stats.cancelled), (0, 0, 18));
        assert_eq!(problems(&queue).await, [""; 0]);
    }
}

/// A queue whose leader "a" was cancelled, and of whose followers "b", "c" and "d" the
/// first was cancelled with it. The others wait for a recovery.
async fn with_orphans(
    folder: &Folder,
    option: impl Fn(NewJob) -> NewJob,
) -> SqliteQueue {
    let queue = with_page(folder, 1).await;
    push(&queue, &[named("a")]).await;
    for name in ["b", "c", "d"] {
        push(&queue, &[option(named(name).after(id("a")))]).await;
    }
    let cancelled = queue.cancel(&id("a")).await.unwrap();
    assert_eq!(cancelled, Cancelled::Removed(JobState::Ready));
    let stats = queue.stats().await.unwrap();
    assert_eq!((stats.scheduled, stats.cancelled), (2, 2), "{stats:?}");
    assert_eq!(problems(&queue).await, [""; 0]);
    queue
}

#[tokio::test]
async fn an_orphan_waits_for_a_recovery_and_can_be_cancelled() {
    let folder = Folder::new();
    let queue = with_orphans(&folder, |job| job.keep_result(LONG)).await;
    assert_eq!(leaders(&queue).await, ["a", "a"]);

    // A job that follows an orphan is cancelled with it.
    push(&queue, &[named("e").after(id("d"))]).await;
    let again = queue.push_one(named("c")).await.unwrap();
    assert!(matches!(again, Pushed::Duplicate { by: DuplicateOf::Id, .. }));
    let scheduled = Cancelled::Removed(JobState::Scheduled);
    assert_eq!(queue.cancel(&id("c")).await.unwrap(), scheduled);
    while queue.recover(many(1)).await.unwrap().more {}

    let stats = queue.stats().await.unwrap();
    assert_eq!((stats.scheduled, stats.cancelled), (0, 5), "{stats:?}");
    let found = queue.read_results(&["b", "c", "d"].map(id)).await.unwrap();
    let with_a = JobResult::Cancelled { leader: Some(id("a")) };
    let alone = JobResult::Cancelled { leader: None };
    assert_eq!(found, [with_a.clone(), alone, with_a].map(Some));
    assert_eq!(
        refusal(&queue, NewJob::new("f").after(id("e"))).await,
        CannotFollow::NotDone
    );
    assert_eq!(problems(&queue).await, [""; 0]);
}

/// A later job with the id of a leader has nothing to do with the orphans of that leader.
#[tokio::test]
async fn an_orphan_is_no_follower_of_a_later_job_with_that_id() {
    let folder = Folder::new();
    let queue = with_orphans(&folder, |job| job).await;
    raw(&folder.file()).execute("DELETE FROM ended_ids WHERE id = 'a'", []).unwrap();
    push(&queue, &[named("a")]).await;
    // As many as a job may have.
    let followers = vec![NewJob::new("follower").after(id("a")); MAX_FOLLOWERS];
    push(&queue, &followers).await;
    let JobLookup::Stored(leader) = queue.job(&id("a")).await.unwrap() else {
        panic!("R31: job a is stored")
    };
    assert_eq!(leader.followers.len(), MAX_FOLLOWERS, "R31: the followers of job a");

    let held = claim(&queue, 1).await;
    queue.ack(&held[0]).await.unwrap();

    let served = queue.claim(&ask("w").max(many(200))).await.unwrap();
    let served: Vec<_> = served.iter().map(|one| &one.payload[..]).collect();
    assert_eq!(served, [b"follower"; MAX_FOLLOWERS], "R30: the released followers");
    while queue.recover(many(1)).await.unwrap().more {}
    assert_eq!(queue.stats().await.unwrap().cancelled, 4);
}

/// R16, R17, R30: a held job that has expired frees its unique key. It stays held, or is
/// cancelled if its leader has ended otherwise than done.
#[tokio::test]
async fn a_held_job_that_has_expired_frees_its_key() {
    const BRIEF: Duration = Duration::from_millis(1);
    let key = || UniqueKey::new("key").unwrap();
    let keyed = |job: NewJob| match &job.payload[..] {
        b"d" => job.unique(key()).expires_in(BRIEF),
        _ => job,
    };
    let folder = Folder::new();
    let queue = with_orphans(&folder, keyed).await;
    // The row of this follower stands before those of the orphans.
    push(&queue, &[named("0"), named("waits").after(id("0"))]).await;
    let another = || UniqueKey::new("another").unwrap();
    push(&queue, &[named("keyed").unique(another())]).await;
    let is_free = async || {
        let job = named("new").unique(key());
        matches!(queue.push_one(job).await.unwrap(), Pushed::Stored(_))
    };
    eventually("the orphan has expired", is_free).await;
    push(&queue, &[NewJob::new("f").after(id("d"))]).await;
    while queue.recover(many(1)).await.unwrap().more {}
    let stats = queue.stats().await.unwrap();
    assert_eq!((stats.dead, stats.scheduled, stats.cancelled), (0, 1, 5), "{stats:?}");

    queue.cancel(&id("new")).await.unwrap();
    let held = named("held").after(id("0")).unique(key()).expires_in(BRIEF);
    push(&queue, &[held]).await;
    raw(&folder.file()).execute("DELETE FROM ended_ids WHERE id = 'new'", []).unwrap();
    eventually("the held job has expired", is_free).await;

    assert_eq!(queue.stats().await.unwrap().dead, 0);
    assert_eq!(leaders(&queue).await, ["0", "0"]);
    let pushed = queue.push_one(named("again").unique(another())).await.unwrap();
    let holds = matches!(pushed, Pushed::Duplicate { .. });
    assert!(holds, "R16: no other job loses its key: {pushed:?}");
    assert_eq!(problems(&queue).await, [""; 0]);
}

/// A claim would notice the release after an hour, and a call that waits for a result the
/// cancellation after some seconds, so a notification wakes both.
#[tokio::test]
async fn a_release_and_a_cancel_wake_waiting_calls() {
    const HOUR: Duration = Duration::from_secs(3600);
    let folder = Folder::new();
    let queue = open(folder.config().poll_interval(HOUR)).await.unwrap();
    push(&queue, &["a", "b"].map(named)).await;
    push(&queue, &[named("first").after(id("a"))]).await;
    push(&queue, &[named("second").after(id("b")).keep_result(HOUR)]).await;
    let held = claim(&queue, 2).await;

    let waiting = ask("other").wait(HOUR);
    let (claimed, _) = tokio::join!(queue.claim(&waiting), async {
        queue.ack(&held[0]).await.unwrap()
    });
    let second = id("second");
    let (result, _) = tokio::join!(queue.wait_result(&second, HOUR), async {
        queue.discard(&held[1]).await.unwrap()
    });

    assert_eq!(claimed.unwrap()[0].payload, "first");
    assert_eq!(result.unwrap(), Some(JobResult::Cancelled { leader: Some(id("b")) }));
}

/// R23: the audit names each follower that no end of a job would release.
#[tokio::test]
async fn the_audit_finds_followers_that_wait_in_vain() {
    let found = async |damage: &str| {
        let folder = Folder::new();
        let queue = folder.queue().await;
        push(&queue, &[named("lead"), named("f").after(id("lead"))]).await;
        assert_eq!(problems(&queue).await, [""; 0]);
        raw(&folder.file()).execute_batch(damage).unwrap();
        problems(&queue).await
    };

    let lost = "DELETE FROM bodies WHERE job = 1; DELETE FROM jobs WHERE id = 'lead'";
    assert_eq!(found(lost).await, ["job f follows lead, which has ended"]);
    let alone = "DELETE FROM followers";
    assert_eq!(found(alone).await, ["job f is held, and follows no job"]);
    let gone = "DELETE FROM bodies WHERE job = 2; DELETE FROM jobs WHERE id = 'f'";
    let wanted = ["a follower of lead is kept for no held job, under key 2"];
    assert_eq!(found(gone).await, wanted);
}

/// An orphan whose job is missing does not keep a recovery busy for ever.
#[tokio::test]
async fn an_orphan_without_its_job_is_forgotten() {
    let folder = Folder::new();
    let queue = with_orphans(&folder, |job| job).await;
    let damage = "DELETE FROM bodies WHERE job > 2; DELETE FROM jobs";
    raw(&folder.file()).execute_batch(damage).unwrap();

    for _ in 0..2 {
        assert!(queue.recover(many(1)).await.is_ok());
    }

    assert!(!queue.recover(many(1)).await.unwrap().more);
    assert_eq!(queue.stats().await.unwrap().cancelled, 2, "no job was cancelled");
}

/// R5: a follower that is refused stores nothing, and the application may continue its
/// transaction.
#[cfg(feature = "push-in")]
#[tokio::test]
async fn a_follower_is_pushed_in_a_transaction() {
    use rusqlite::TransactionBehavior::Immediate;

    let folder = Folder::new();
    let queue = folder.queue().await;
    push(&queue, &[named("lead")]).await;
    let mut conn = raw(&folder.file());
    let transaction = conn.transaction_with_behavior(Immediate).unwrap();

    let jobs = [named("stored"), NewJob::new("refused").after(id("nobody"))];
    let refused = queue.push_in(&transaction, &jobs, None).unwrap_err();
    let follower = [named("f").after(id("lead"))];
    queue.push_in(&transaction, &follower, None).unwrap();
    transaction.commit().unwrap();

    assert_eq!(
        (refused.at().operation, refused.effect()),
        (Operation::Push, Effect::No)
    );
    assert!(matches!(refused, Error::CannotFollow { .. }), "{refused:?}");
    assert_eq!(leaders(&queue).await, ["lead"]);
    assert_eq!(problems(&queue).await, [""; 0]);
}

/// The id of a job without one of its own is not remembered, so nobody tells its end to a
/// follower. A job with that id in the same call is a duplicate, and changes nothing.
#[tokio::test]
async fn a_job_without_a_remembered_id_has_no_followers() {
    let folder = Folder::new();
    let queue = with_page(&folder, 100).await;
    let pushed = queue.push_one(NewJob::new("no id")).await.unwrap();
    let Pushed::Stored(made) = pushed else { panic!("{pushed:?}") };
    let both = [NewJob::new("again").id(made.clone()), NewJob::new("f").after(made)];

    let refused = queue.push(&both, None).await.unwrap_err();

    assert_eq!(refused.effect(), Effect::No, "{refused:?}");
    let stats = queue.stats().await.unwrap();
    assert_eq!((stats.ready, stats.scheduled), (1, 0));
}
