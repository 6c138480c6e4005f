//! Tests in which other clients change the stream. The queue must recover from each
//! change.

use std::{cmp::Ordering, time::Instant};

use relq_conformance::{
    proxy::{FaultProxy, VirtualClock},
    server::Server,
};
use relq_core::{
    operator::{JobState, PeekRequest, Selection},
    outcome::Settled,
    results::JobResult,
    unique::UniqueKey,
    *,
};
use relq_stream::{StreamConfig, StreamQueue};

use crate::fixture::*;

const DELETED: &str = "it cannot be read: its entry was deleted from the stream";

/// R3: if an entry is deleted while a worker holds it, exactly one dead letter remains.
#[tokio::test]
async fn a_deleted_entry_ends_as_a_dead_letter_and_not_as_a_loop() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    push(&queue, "deleted").await;
    let held = abandon(&queue).await;
    say(&server, "XTRIM q MAXLEN 0");
    push(&queue, "kept").await;

    let recovered = queue.recover(many(10)).await.unwrap();

    assert_eq!((recovered.requeued, recovered.buried), (0, 1));
    assert_eq!(queue.recover(many(10)).await.unwrap().buried, 0);
    assert_eq!(dead(&queue).await, [(held.job().to_string(), DELETED.to_owned())]);
    assert_eq!(served(&queue).await, ["kept"]);
    assert_eq!(queue.ack(&held.receipt).await.unwrap(), Settled::LeaseLost);
    assert_sound(&queue).await;
}

/// R3, R31: a listing says of a leased job that its entry was deleted, so that it is not
/// taken for one with an empty payload.
#[tokio::test]
async fn a_deleted_entry_is_listed_as_such() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    push(&queue, "deleted").await;
    take_one(&queue).await;
    say(&server, "XTRIM q MAXLEN 0");

    let ask = PeekRequest::new(JobState::Leased, many(10));
    let page = queue.peek(&ask).await.unwrap();

    assert_eq!(page.jobs[0].unreadable.as_deref(), Some(DELETED));
}

/// If a leased job's entry was deleted, its worker can still ack it. No key is left
/// behind.
#[tokio::test]
async fn a_deleted_job_may_be_finished() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let unique = NewJob::new("tied").id(JobId::new("mine").unwrap());
    queue.push(&["plain".into(), unique], None).await.unwrap();
    let held = take(&queue, 2).await;
    say(&server, "XTRIM q MAXLEN 0");

    finish(&queue, held).await;

    let stats = queue.stats().await.unwrap();
    assert_eq!((stats.finished, stats.leased, stats.dead), (2, 0, 0));
    assert!(say(&server, "XPENDING q relq").starts_with("*4\r\n:0"));
}

/// R29, R30: the entry of a leased job was deleted, and its worker ends the job. The records
/// of the job do not depend on the entry: its result ends, and its followers are released or
/// cancelled.
#[tokio::test]
async fn a_deleted_leader_that_ends_settles_its_followers() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let results = queue.result_queue().unwrap();
    for (name, disposition, expected) in [
        ("discarded", Disposition::Discard, JobResult::Discarded),
        ("done", Disposition::Done, JobResult::Done { result: Bytes::new() }),
    ] {
        let leader = JobId::new(name).unwrap();
        let jobs = [
            NewJob::new("leads").id(leader.clone()).keep_result(LEASE),
            NewJob::new(name).after(leader.clone()),
        ];
        queue.push(&jobs, None).await.unwrap();
        let held = take_one(&queue).await;
        say(&server, "XTRIM q MAXLEN 0");

        let ended = Settlement::new(held.receipt, disposition);
        assert_eq!(queue.settle(&[ended]).await.unwrap(), [Settled::Applied]);

        let told = results.read_results(&[leader]).await.unwrap();
        assert_eq!(told, [Some(expected)], "R29: {name}");
    }
    while queue.recover(many(10)).await.unwrap().more {}
    assert_eq!(served(&queue).await, ["done"], "R30: the follower of a done leader");
    assert_eq!(queue.stats().await.unwrap().scheduled, 0, "R30: none is held");
    assert_sound(&queue).await;
}

/// A job whose entry was deleted cannot be retried: when it fails, it becomes a dead
/// letter.
#[tokio::test]
async fn a_deleted_job_that_fails_is_buried() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    for disposition in [
        Disposition::Retry { after: LEASE, error: "no".to_owned() },
        Disposition::Dead { error: "no".to_owned() },
        Disposition::GiveBack,
    ] {
        push(&queue, "deleted").await;
        let held = take_one(&queue).await;
        say(&server, "XTRIM q MAXLEN 0");

        let said = Settlement::new(held.receipt.clone(), disposition);
        queue.settle(&[said]).await.unwrap();

        assert_eq!(dead(&queue).await, [(held.job().to_string(), DELETED.to_owned())]);
        assert_eq!(queue.purge_dead(&Selection::All).await.unwrap(), 1);
        assert_sound(&queue).await;
    }
}

/// A claim buries a returned job whose entry was deleted, and leases the next job.
#[tokio::test]
async fn a_deleted_job_that_came_back_is_buried_by_a_claim() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    push(&queue, "deleted").await;
    let held = take_one(&queue).await;
    queue.give_back(&held.receipt).await.unwrap();
    say(&server, "XTRIM q MAXLEN 0");
    push(&queue, "kept").await;

    assert_eq!(served(&queue).await, ["kept"]);

    assert_eq!(dead(&queue).await[0].1, DELETED);
    assert_sound(&queue).await;
}

/// R7, R8: an XACK by another client does not end a worker's lease.
#[tokio::test]
async fn an_acknowledgement_by_others_changes_nothing() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    push_many(&queue, 2).await;
    let held = take(&queue, 2).await;
    for id in entries(&server) {
        say(&server, &format!("XACK q relq {id}"));
    }

    queue.give_back(&held[1].receipt).await.unwrap();
    finish(&queue, held[..1].to_vec()).await;

    assert_eq!(served(&queue).await, ["1"]);
    assert_sound(&queue).await;
}

/// A foreign consumer of the group holds entries and is idle for a long time. Then its
/// entries become ready again, and the consumer is deleted.
#[tokio::test]
async fn entries_of_foreign_consumers_are_taken_back() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    push(&queue, "x").await;
    queue.give_back(&take_one(&queue).await.receipt).await.unwrap();
    let id = only_entry(&server);
    say(&server, &format!("XCLAIM q relq stranger 0 {id} IDLE 200000 RETRYCOUNT 3"));
    assert_eq!(queue.recover(many(10)).await.unwrap().requeued, 0, "it is not long");
    assert_eq!(served(&queue).await, [""; 0]);

    say(&server, &format!("XCLAIM q relq stranger 0 {id} IDLE 400000 RETRYCOUNT 3"));
    assert_eq!(queue.recover(many(10)).await.unwrap().requeued, 1);

    let held = take_one(&queue).await;
    assert_eq!(held.attempt(), 4, "the stranger's deliveries count");
    finish(&queue, vec![held]).await;
    assert_sound(&queue).await;
}

/// The entries of a foreign consumer are taken back page by page. One that was deleted
/// meanwhile becomes a dead letter.
#[tokio::test]
async fn entries_of_foreign_consumers_are_taken_back_by_pages() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    push_many(&queue, 5).await;
    for held in take(&queue, 5).await {
        queue.give_back(&held.receipt).await.unwrap();
    }
    let ids = entries(&server);
    let held = format!("XCLAIM q relq stranger 0 {} IDLE 400000", ids.join(" "));
    say(&server, &held);
    say(&server, &format!("XDEL q {}", ids[0]));

    let mut pages = Vec::new();
    loop {
        let recovered = queue.recover(many(2)).await.unwrap();
        pages.push((recovered.requeued, recovered.buried));
        if !recovered.more {
            break;
        }
        assert!(pages.len() < 10, "{pages:?}");
    }

    assert_eq!(pages[..3], [(1, 1), (2, 0), (1, 0)], "{pages:?}");
    assert_eq!(dead(&queue).await, [(ids[0].clone(), DELETED.to_owned())]);
    let mut served = served(&queue).await;
    served.sort();
    assert_eq!(served, ["1", "2", "3", "4"]);
    assert_sound(&queue).await;
}

/// A foreign consumer is removed from the group when it holds nothing and is idle for long,
/// so that the consumers of dead processes do not add up. The consumers of relq stay.
#[tokio::test]
async fn a_foreign_consumer_that_holds_nothing_is_removed() {
    let server = Server::start();
    let proxy = FaultProxy::start(server.address(), VirtualClock::new()).unwrap();
    // Five minutes of idling are too long for a test.
    let long = "tonumber(ARGV[1]), tonumber(ARGV[2])";
    let patched = proxy.patch_scripts(long, "tonumber(ARGV[1]), 0");
    let url = proxy.actor("reaper").unwrap().url().to_owned();
    let config = StreamConfig::new(&url).unwrap();
    let name = QueueName::new("q").unwrap();
    let reaper = StreamQueue::connect(config, name).await.unwrap();
    push_many(&reaper, 2).await;
    reaper.give_back(&take_one(&reaper).await.receipt).await.unwrap();
    say(&server, "XGROUP CREATECONSUMER q relq stranger");
    let consumers = || say(&server, "XINFO CONSUMERS q relq");
    assert!(consumers().contains("stranger"), "{}", consumers());

    let start = Instant::now();
    while consumers().contains("stranger") {
        reaper.recover(many(10)).await.unwrap();
        assert!(start.elapsed() < LONG, "{}", consumers());
    }

    assert!(patched.get(), "the script was sent");
    assert_eq!(served(&reaper).await, ["0", "1"]);
    assert_sound(&reaper).await;
}

/// A stream that another client deleted accepts and serves new jobs. The jobs that
/// workers held become dead letters.
#[tokio::test]
async fn a_deleted_stream_begins_anew() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    push_many(&queue, 3).await;
    abandon(&queue).await;
    say(&server, "DEL q");
    assert_eq!(queue.recover(many(10)).await.unwrap().buried, 1);
    assert_eq!(queue.claim_one(&ask("w")).await.unwrap(), None);

    push(&queue, "new").await;

    assert_eq!(served(&queue).await, ["new"]);
    assert_sound(&queue).await;
}

/// A group that another client destroyed is created again, and no job is lost.
#[tokio::test]
async fn a_destroyed_group_is_made_again() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    push_many(&queue, 3).await;
    let held = take(&queue, 2).await;
    say(&server, "XGROUP DESTROY q relq");

    queue.give_back(&held[0].receipt).await.unwrap();
    finish(&queue, held[1..].to_vec()).await;

    assert_eq!(served(&queue).await, ["0", "2"]);
    assert_sound(&queue).await;
}

/// R1: if a held entry has no lease, it becomes ready again.
#[tokio::test]
async fn an_entry_held_without_a_lease_becomes_ready() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    push_many(&queue, 5).await;
    take(&queue, 4).await;
    say(&server, "DEL {q}:leased");
    let held = take_one(&queue).await;

    assert_eq!(queue.recover(many(10)).await.unwrap().requeued, 4);

    let again = take(&queue, 4).await;
    assert!(again.iter().all(|one| one.attempt() == 2), "{again:?}");
    assert_sound(&queue).await;
    finish(&queue, again).await;
    finish(&queue, vec![held]).await;
    assert_sound(&queue).await;
}

/// R1: held entries without a lease become ready again page by page. Until all are ready, a
/// recovery reports that there are more.
#[tokio::test]
async fn entries_without_a_lease_become_ready_by_pages() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    push_many(&queue, 5).await;
    take(&queue, 5).await;
    say(&server, "DEL {q}:leased");

    let mut pages = Vec::new();
    loop {
        let recovered = queue.recover(many(2)).await.unwrap();
        pages.push(recovered.requeued);
        if !recovered.more {
            break;
        }
        assert!(pages.len() < 10, "R1: the recovery does not end: {pages:?}");
    }

    assert_eq!(pages, [2, 2, 1], "R1: jobs that each page makes ready");
    assert_eq!(served(&queue).await, ["0", "1", "2", "3", "4"]);
    assert_sound(&queue).await;
}

/// R21: another client has put a key of another type in place of the unique keys. A claim
/// fails before it moves a job, so that the job is ready when that key is removed.
#[tokio::test]
async fn a_claim_that_is_refused_moves_no_job() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let unique = NewJob::new("x").unique(UniqueKey::new("k").unwrap());
    queue.push_one(unique.expires_in(LEASE)).await.unwrap();
    say(&server, "SET {q}:unique theirs");

    let refused = queue.claim_one(&ask("w")).await;

    assert!(matches!(refused, Err(Error::Unusable { .. })), "R21: {refused:?}");
    say(&server, "DEL {q}:unique");
    assert_eq!(take_one(&queue).await.attempt(), 1, "R21: the job is claimed once");
}

/// R9: another client added a member to the leases that is not a lease. A recovery removes
/// it, and recovers the jobs behind it.
#[tokio::test]
async fn a_member_that_is_no_lease_holds_up_no_recovery() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    push(&queue, "x").await;
    abandon(&queue).await;
    say(&server, "ZADD {q}:leased 1 foreign");

    let mut pages = 1;
    while queue.recover(many(1)).await.unwrap().more {
        pages += 1;
        assert!(pages < 10, "R9: the recovery does not get past the foreign member");
    }

    let stats = queue.stats().await.unwrap();
    assert_eq!((stats.ready, stats.leased), (1, 0), "R9: ready and leased jobs");
    assert_eq!(served(&queue).await, ["x"]);
    assert_sound(&queue).await;
}

/// R1: in the stream of each priority, a held entry without a lease becomes ready again, and
/// so does an entry that a consumer of another program holds for too long.
#[tokio::test]
async fn entries_without_a_lease_become_ready_in_each_stream() {
    for priority in [patient(), Priority::NORMAL, urgent()] {
        let server = Server::start();
        let queue = lose_leases(&server, priority).await;

        let recovered = queue.recover(many(10)).await.unwrap();

        assert_eq!(recovered.requeued, 2, "R1: the jobs of {priority:?}");
        let served = served(&queue).await;
        assert_eq!(served, ["unleased", "strange"], "R13: the jobs of {priority:?}");
        assert_sound(&queue).await;
    }
}

/// A job that is ready again because it had no lease leaves a notification, which wakes a
/// waiting claim.
#[tokio::test]
async fn entries_without_a_lease_wake_a_claim() {
    let server = Server::start();
    let queue = lose_leases(&server, Priority::NORMAL).await;
    say(&server, "DEL {q}:wake");

    queue.recover(many(10)).await.unwrap();

    assert_eq!(
        say(&server, "LLEN {q}:wake"),
        ":1\r\n",
        "notifications after a recovery"
    );
}

/// Stores two jobs of this priority. A worker holds the first without a lease, and a consumer
/// of another program holds the second.
async fn lose_leases(server: &Server, priority: Priority) -> StreamQueue {
    let queue = open(server, "q").await;
    let jobs = ["unleased", "strange"].map(|it| NewJob::new(it).priority(priority));
    queue.push(&jobs, None).await.unwrap();
    let held = take(&queue, 2).await;
    queue.give_back(&held[1].receipt).await.unwrap();
    let stream = match priority.cmp(&Priority::NORMAL) {
        Ordering::Less => "{q}:patient",
        Ordering::Equal => "q",
        Ordering::Greater => "{q}:urgent",
    };
    let last = say(server, &format!("XREVRANGE {stream} + - COUNT 1"));
    let last = last.lines().find(|line| line.contains('-')).unwrap();
    say(server, &format!("XCLAIM {stream} relq stranger 0 {last} IDLE 400000"));
    say(server, "DEL {q}:leased");
    queue
}

/// R3, R29, R30: a leased job whose entry was deleted is dead, and that is its result. Its
/// followers are held until the dead job is purged, and are cancelled then.
#[tokio::test]
async fn a_deleted_leader_is_dead_and_holds_its_followers() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let [leader, follower] = ["leader", "follower"].map(|it| JobId::new(it).unwrap());
    let jobs = [
        NewJob::new("leads").id(leader.clone()).keep_result(LEASE),
        NewJob::new("follows")
            .after(leader.clone())
            .id(follower.clone())
            .keep_result(LEASE),
    ];
    queue.push(&jobs, None).await.unwrap();
    abandon(&queue).await;
    say(&server, "XTRIM q MAXLEN 0");
    let results = async || {
        let ids = [leader.clone(), follower.clone()];
        queue.result_queue().unwrap().read_results(&ids).await.unwrap()
    };

    assert_eq!(queue.recover(many(10)).await.unwrap().buried, 1);
    let told = results().await;
    let error = DELETED.to_owned();
    assert_eq!(told[0], Some(JobResult::Dead { error }), "R29: the deleted leader");
    let unfinished = JobResult::Unfinished { progress: None };
    assert_eq!(told[1], Some(unfinished), "R30: the follower of a dead leader");
    assert_sound(&queue).await;

    assert_eq!(queue.purge_dead(&Selection::All).await.unwrap(), 1);
    while queue.recover(many(10)).await.unwrap().more {}
    let told = results().await;
    assert_eq!(told[0], Some(JobResult::Purged), "R29: the purged leader");
    let cancelled = JobResult::Cancelled { leader: Some(leader.clone()) };
    assert_eq!(told[1], Some(cancelled), "R30: the follower of the purged leader");
    assert_sound(&queue).await;
}

/// R11: each claim that follows a missing lease counts one attempt more, whether the job was
/// claimed for the first time or after it had come back.
#[tokio::test]
async fn a_missing_lease_counts_one_attempt() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    push(&queue, "x").await;
    queue.give_back(&take_one(&queue).await.receipt).await.unwrap();
    for attempt in 1..4 {
        assert_eq!(take_one(&queue).await.attempt(), attempt);
        say(&server, "DEL {q}:leased");
        assert_eq!(queue.recover(many(10)).await.unwrap().requeued, 1);
    }
}

/// R3: if jobs are deleted together with their leases, they become dead letters.
#[tokio::test]
async fn jobs_deleted_with_their_leases_are_dead() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    push_many(&queue, 2).await;
    take(&queue, 2).await;
    say(&server, "DEL {q}:leased");
    say(&server, "XTRIM q MAXLEN 0");

    assert_eq!(queue.recover(many(10)).await.unwrap().buried, 2);

    assert_eq!(dead(&queue).await.len(), 2);
    assert_eq!(queue.stats().await.unwrap().leased, 0);
    assert_sound(&queue).await;
}

/// R23: an audit reports an entry that would never be claimed.
#[tokio::test]
async fn an_audit_finds_what_is_lost_in_the_stream() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    push(&queue, "x").await;
    queue.give_back(&take_one(&queue).await.receipt).await.unwrap();
    let id = only_entry(&server);
    say(&server, &format!("XACK q relq {id}"));

    let problems = problems(&queue).await;

    assert_eq!(problems, [format!("entry {id} was read and is not pending")]);
}

/// R23: an audit reports a lease whose entry was deleted.
#[tokio::test]
async fn an_audit_finds_a_lease_without_its_entry() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    push(&queue, "x").await;
    take_one(&queue).await;
    say(&server, "XTRIM q MAXLEN 0");

    let problems = problems(&queue).await;

    let is_found = problems.iter().any(|it| it.ends_with("without the other"));
    assert!(is_found, "{problems:?}");
}
