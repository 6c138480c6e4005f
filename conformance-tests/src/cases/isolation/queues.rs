//! Queues on one store are independent (R19).

use relq_core::{
    Disposition, NewJob, QueueName, Receipt, Settlement,
    capabilities::Capability,
    operator::{Cancelled, JobState, Selection},
    outcome::{Pushed, Settled},
};

use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{
            dead, delivers, drain, id, key, numbered, payloads, retry_now, token,
        },
        store::Store,
    },
};

/// Queue names that a backend could confuse. Some begin with another name, some are
/// patterns, and some are names of keys of another queue.
const NAMES: [&str; 22] = [
    "a",
    "aa",
    "A",
    "a:",
    ":a",
    "a:leased",
    "a:dead",
    "a:0",
    "a*",
    "*",
    "[a]",
    "a?",
    "?",
    "a b",
    "'a'",
    "a\"",
    "a%",
    "a_",
    "é",
    "ü\u{1f600}",
    "a\\",
    "--a",
];

async fn on_each(store: &Store) -> Vec<Actor> {
    let mut actors = Vec::new();
    for name in store.fit(&NAMES) {
        actors.push(store.actor_on("worker", name).await);
    }
    actors
}

case!(queues_with_alike_names_are_apart: R19);
/// Each queue delivers only its own jobs.
async fn queues_with_alike_names_are_apart(store: &Store) {
    let actors = on_each(store).await;
    for (actor, name) in actors.iter().zip(NAMES) {
        actor.store_one(name).await;
    }

    for (actor, name) in actors.iter().zip(NAMES) {
        delivers(actor, [name]).await;
    }
}

case!(stats_of_queues_are_apart: R19 R23);
/// The stats of each queue count only its own jobs, in each state.
async fn stats_of_queues_are_apart(store: &Store) {
    let actors = on_each(store).await;
    let (busy, idle) = actors.split_first().expect("there are names");
    busy.store(numbered(5)).await;
    let held = busy.take(4).await;
    busy.finish(&held[0]).await;
    busy.say(&held[1], dead("no")).await;
    busy.say(&held[2], retry_now()).await;

    for actor in idle {
        let stats = actor.figures().await;
        assert_eq!((stats.unfinished(), stats.dead, stats.finished), (0, 0, 0));
        assert_eq!(actor.list(JobState::Dead, 10).await, []);
    }
}

case!(a_purge_spares_other_queues: R19);
/// A purge removes the jobs of one queue and of no other.
async fn a_purge_spares_other_queues(store: &Store) {
    let actors = on_each(store).await;
    for actor in &actors {
        actor.store(numbered(2)).await;
        actor.take_one().await;
    }

    assert_eq!(actors[0].purge().await.expect("answered"), 2);

    for actor in &actors[1..] {
        let stats = actor.figures().await;
        assert_eq!((stats.ready, stats.leased), (1, 1));
    }
}

case!(a_pause_spares_other_queues: R19);
/// A pause stops claims on one queue and on no other.
async fn a_pause_spares_other_queues(store: &Store) {
    let actors = on_each(store).await;
    actors[0].pause().await.expect("answered");

    for actor in &actors[1..] {
        actor.store_one("job").await;
        assert_eq!(drain(actor).await.len(), 1);
    }
}

case!(release_in_one_queue_keeps_the_others: R19 R24);
/// When a worker is released on one queue, it keeps the jobs that it holds on others.
async fn release_in_one_queue_keeps_the_others(store: &Store) {
    let here = store.actor_on("worker", "a").await;
    let there = store.actor_on("worker", "b").await;
    here.store_one("here").await;
    there.store_one("there").await;
    here.take_one().await;
    let held = there.take_one().await;

    assert_eq!(here.release_worker(here.worker()).await.expect("answered").jobs, 1);

    there.finish(&held).await;
}

case!(recovery_spares_other_queues: R19 R9);
/// Recovery makes expired leases of its own queue ready, and of no other queue.
async fn recovery_spares_other_queues(store: &Store) {
    let here = store.actor_on("worker", "a").await;
    let there = store.actor_on("worker", "b").await;
    there.store_one("there").await;
    there.take_one_briefly().await;
    store.outlast_brief_leases().await;

    assert_eq!(here.recover_all().await.requeued, 0);

    assert_eq!(there.recover_all().await.requeued, 1);
}

case!(receipts_belong_to_their_queue: R19 R7);
/// A receipt of one queue is invalid in another, also if the two jobs have the same id and
/// were claimed in the same way.
async fn receipts_belong_to_their_queue(store: &Store) {
    let here = store.actor_on("worker", "a").await;
    let there = store.actor_on("worker", "b").await;
    let has_ids = here.capabilities().supports(Capability::ClientIds);
    let job = |payload: &'static str| {
        let job = NewJob::new(payload);
        if has_ids { job.id(id("same")) } else { job }
    };
    here.store_one(job("here")).await;
    there.store_one(job("there")).await;
    let (mine, theirs) = (here.take_one().await, there.take_one().await);
    let mixed = Receipt::new(mine.job().clone(), 1, theirs.receipt.token().clone());

    assert_eq!(here.say(&theirs, Disposition::Done).await, Settled::LeaseLost);
    let said = [Settlement::new(mixed, Disposition::Done)];
    let settled = there.settle(&said).await.expect("answered");

    assert_eq!(here.figures().await.leased, 1);
    assert_eq!(settled.len(), 1);
    here.finish(&mine).await;
}

case!(ids_and_keys_belong_to_their_queue: R19 R4 R16 => ClientIds PushTokens Unique);
/// Job ids, unique keys and push tokens of one queue are unknown in another.
async fn ids_and_keys_belong_to_their_queue(store: &Store) {
    for name in ["a", "b", "a:"] {
        let actor = store.actor_on("producer", name).await;
        let jobs =
            [NewJob::new("1").id(id("mine")), NewJob::new("2").unique(key("mine"))];

        let pushed = actor.push(&jobs, Some(&token("mine"))).await.expect("taken");

        let stored = pushed.iter().all(|one| matches!(one, Pushed::Stored(_)));
        assert!(stored, "{pushed:?}");
    }
}

case!(operators_reach_their_queue_only: R19);
/// An operator cannot find a job of another queue by its id.
async fn operators_reach_their_queue_only(store: &Store) {
    let here = store.actor_on("o", "a").await;
    let there = store.actor_on("o", "b").await;
    here.store_one("dead").await;
    let buried = here.take_one().await;
    here.say(&buried, dead("no")).await;
    here.store_one("held").await;
    let held = here.take_one().await;
    let one = Selection::Only(vec![buried.job().clone()]);

    assert_eq!(there.cancel(held.job()).await.expect("answered"), Cancelled::NotFound);
    assert_eq!(there.redrive(&one).await.expect("answered").moved, 0);
    assert_eq!(there.purge_dead(&Selection::All).await.expect("answered"), 0);

    here.finish(&held).await;
    assert_eq!(here.the_dead_one().await.payload, "dead");
}

case!(keys_of_others_are_left_alone: R19 @ redis);
/// Jobs pass through all their states, and the queue is purged. Meanwhile the keys of
/// other programs on the same server stay unchanged.
async fn keys_of_others_are_left_alone(store: &Store) {
    let actor = store.actor("worker").await;
    let keys: Vec<_> = FOREIGN_KEYS.iter().filter(|key| !store.owns(key)).collect();
    for key in &keys {
        store.tell(&[b"RPUSH", key, b"123", b"\xf5\x52\x51\x01"]).await;
    }
    let before = dumps(store, &keys).await;

    actor.store(numbered(6)).await;
    assert_eq!(actor.figures().await.ready, 6);
    let held = actor.take(4).await;
    actor.finish(&held[0]).await;
    actor.say(&held[1], dead("no")).await;
    actor.say(&held[2], retry_now()).await;
    actor.redrive(&Selection::All).await.expect("answered");
    actor.recover_all().await;
    actor.release_worker(actor.worker()).await.expect("answered");
    assert_eq!(drain(&actor).await.len(), 5);
    actor.store_one("purged").await;
    assert_eq!(actor.purge().await.expect("answered"), 1);

    assert!(!keys.is_empty(), "some key is a stranger's");
    assert_eq!(dumps(store, &keys).await, before);
    for key in &keys {
        store.tell(&[b"DEL", key]).await;
    }
}

/// Keys of another program, with names that a backend could take for keys of its queue.
const FOREIGN_KEYS: [&[u8]; 8] = [
    b"stranger",
    b"job",
    b"jobs:",
    b"jobs:leased",
    b"{jobs}",
    b"{jobs:}",
    b"item",
    b"Processing",
];

async fn dumps(store: &Store, keys: &[&&[u8]]) -> Vec<Vec<u8>> {
    let mut dumps = Vec::new();
    for key in keys {
        dumps.push(store.tell(&[b"DUMP", key]).await);
    }
    dumps
}

case!(names_that_reach_out_are_refused: R19);
/// A queue name is refused if it is empty or too long, or if one of its characters
/// could lead to another hash slot or another file.
async fn names_that_reach_out_are_refused(_store: &Store) {
    let longest = "a".repeat(QueueName::MAX_BYTES);
    assert!(QueueName::new(&longest).is_ok());

    for name in ["", "{a}", "a}", "{", "a\0", "a\nb", &format!("{longest}a")] {
        assert!(QueueName::new(name).is_err(), "{name:?}");
    }
}

case!(the_longest_name_works: R19);
/// A queue with the longest allowed name works.
async fn the_longest_name_works(store: &Store) {
    let names =
        ["n".repeat(QueueName::MAX_BYTES), "n".repeat(QueueName::MAX_BYTES - 1)];
    for name in &names {
        store.actor_on("worker", name).await.store_one(name.clone()).await;
    }

    for name in &names {
        let served = drain(&store.actor_on("worker", name).await).await;
        assert_eq!(payloads(&served), [name.as_bytes()]);
    }
}
