//! Queues on one store are apart, and plain producers count (R19, R20).

use queue_core::{
    Cancelled, DuplicateOf, JobState, NewJob, Pushed, QueueName, Receipt, Settled,
    Settlement, Verdict, Which,
};

use crate::{
    checks::{
        assert_in_line, dead, delivers, drain, expect_exactly, id, key, numbered,
        payloads, retry_now, token,
    },
    line::Line,
    store::{Actor, Store},
};

/// Names that a careless store takes for one another: prefixes, patterns, and what a
/// key of another queue might be called.
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

/// R19: each queue delivers its own jobs and no other's.
pub(crate) async fn queues_with_alike_names_are_apart(store: &Store) {
    let actors = on_each(store).await;
    for (actor, name) in actors.iter().zip(NAMES) {
        actor.store_one(name).await;
    }

    for (actor, name) in actors.iter().zip(NAMES) {
        delivers(actor, [name]).await;
    }
}

/// R19, R23: each queue counts its own jobs, in each state.
pub(crate) async fn figures_of_queues_are_apart(store: &Store) {
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

/// R19: a purge empties one queue.
pub(crate) async fn a_purge_spares_the_neighbours(store: &Store) {
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

/// R19: a pause stops one queue.
pub(crate) async fn a_pause_spares_the_neighbours(store: &Store) {
    let actors = on_each(store).await;
    actors[0].pause().await.expect("answered");

    for actor in &actors[1..] {
        actor.store_one("job").await;
        assert_eq!(drain(actor).await.len(), 1);
    }
}

/// R19, R24: a worker that leaves one queue stays on the others.
pub(crate) async fn leaving_one_queue_keeps_the_others(store: &Store) {
    let here = store.actor_on("worker", "a").await;
    let there = store.actor_on("worker", "b").await;
    here.store_one("here").await;
    there.store_one("there").await;
    here.take_one().await;
    let held = there.take_one().await;

    assert_eq!(here.leave(here.worker()).await.expect("answered").jobs, 1);

    there.finish(&held).await;
}

/// R19, R9: recovery works on one queue.
pub(crate) async fn recovery_spares_the_neighbours(store: &Store) {
    let here = store.actor_on("worker", "a").await;
    let there = store.actor_on("worker", "b").await;
    there.store_one("there").await;
    there.take_one_briefly().await;
    store.outlast_brief_leases().await;

    assert_eq!(here.recover_all().await.requeued, 0);

    assert_eq!(there.recover_all().await.requeued, 1);
}

/// R19, R7: a receipt of one queue proves nothing in another.
pub(crate) async fn receipts_belong_to_their_queue(store: &Store) {
    let here = store.actor_on("worker", "a").await;
    let there = store.actor_on("worker", "b").await;
    here.store_one(NewJob::new("here")).await;
    there.store_one(NewJob::new("there")).await;
    let (mine, theirs) = (here.take_one().await, there.take_one().await);
    let mixed = Receipt::new(mine.job().clone(), 1, theirs.receipt.token().clone());

    assert_eq!(here.say(&theirs, Verdict::Done).await, Settled::LeaseLost);
    let said = [Settlement::new(mixed, Verdict::Done)];
    let settled = there.settle(&said).await.expect("answered");

    assert_eq!(here.figures().await.leased, 1);
    assert_eq!(settled.len(), 1);
    here.finish(&mine).await;
}

/// R19, R4, R16: ids, keys and tokens are known in their queue only.
pub(crate) async fn ids_and_keys_belong_to_their_queue(store: &Store) {
    for name in ["a", "b", "a:"] {
        let actor = store.actor_on("producer", name).await;
        let jobs =
            [NewJob::new("1").id(id("mine")), NewJob::new("2").unique(key("mine"))];

        let pushed = actor.push(&jobs, Some(&token("mine"))).await.expect("taken");

        let stored = pushed.iter().all(|one| matches!(one, Pushed::Stored(_)));
        assert!(stored, "{pushed:?}");
    }
}

/// R19: an operator finds no job of another queue, by its id.
pub(crate) async fn operators_reach_their_queue_only(store: &Store) {
    let here = store.actor_on("o", "a").await;
    let there = store.actor_on("o", "b").await;
    here.store_one("dead").await;
    let buried = here.take_one().await;
    here.say(&buried, dead("no")).await;
    here.store_one("held").await;
    let held = here.take_one().await;
    let one = Which::Only(vec![buried.job().clone()]);

    assert_eq!(there.cancel(held.job()).await.expect("answered"), Cancelled::NotFound);
    assert_eq!(there.redrive(&one).await.expect("answered").moved, 0);
    assert_eq!(there.purge_dead(&Which::All).await.expect("answered"), 0);

    here.finish(&held).await;
    assert_eq!(here.the_dead_one().await.payload, "dead");
}

/// R19: what others keep on the same server is left as it is, by a whole life of
/// jobs and by a purge.
pub(crate) async fn keys_of_others_are_left_alone(store: &Store) {
    let actor = store.actor("worker").await;
    let keys: Vec<_> = STRANGERS.iter().filter(|key| !store.owns(key)).collect();
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
    actor.redrive(&Which::All).await.expect("answered");
    actor.recover_all().await;
    actor.leave(actor.worker()).await.expect("answered");
    assert_eq!(drain(&actor).await.len(), 5);
    actor.store_one("purged").await;
    assert_eq!(actor.purge().await.expect("answered"), 1);

    assert!(!keys.is_empty(), "some key is a stranger's");
    assert_eq!(dumps(store, &keys).await, before);
    for key in &keys {
        store.tell(&[b"DEL", key]).await;
    }
}

/// What a careless store might take for keys of its queue.
const STRANGERS: [&[u8]; 8] = [
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

/// R19: a name that would reach into another slot or file is refused.
pub(crate) async fn names_that_reach_out_are_refused(_store: &Store) {
    let longest = "a".repeat(QueueName::MAX_BYTES);
    assert!(QueueName::new(&longest).is_ok());

    for name in ["", "{a}", "a}", "{", "a\0", "a\nb", &format!("{longest}a")] {
        assert!(QueueName::new(name).is_err(), "{name:?}");
    }
}

/// R19: the longest name works.
pub(crate) async fn the_longest_name_works(store: &Store) {
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

/// R20: what any client pushed is delivered, with an id and attempt 1.
pub(crate) async fn plain_pushes_are_jobs(store: &Store) {
    let actor = store.actor("worker").await;
    store.push_raw(b"123").await;

    let held = actor.take_one().await;

    assert_eq!((&held.payload[..], held.attempt()), (&b"123"[..], 1));
    actor.finish(&held).await;
    assert_eq!(actor.figures().await.finished, 1);
}

/// R20, R2: whatever bytes they are, so long as they are not relq's mark.
pub(crate) async fn plain_pushes_may_be_any_bytes(store: &Store) {
    let actor = store.actor("worker").await;
    let nasty: [&[u8]; 8] = [
        b"",
        b"\0",
        b"\n",
        b"{}",
        b"\xff\xfe",
        b"\xf5",
        b"\xf5\x52\x51",
        b"R\xf5\x52\x51",
    ];
    for payload in nasty {
        store.push_raw(payload).await;
    }

    delivers(&actor, nasty).await;
}

/// R20, R13: plain pushes and relq's own are served in one order.
pub(crate) async fn plain_pushes_take_their_turn(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("relq 1").await;
    store.push_raw(b"plain 1").await;
    actor.store_one("relq 2").await;
    store.push_raw(b"plain 2").await;

    let served = drain(&actor).await;

    let line = Line::of(["relq 1", "plain 1", "relq 2", "plain 2"]);
    assert_in_line(&actor, &served, &line);
}

/// R20, R7: equal plain pushes are two jobs.
pub(crate) async fn equal_plain_pushes_are_two_jobs(store: &Store) {
    let actor = store.actor("worker").await;
    store.push_raw(b"same").await;
    store.push_raw(b"same").await;

    let held = actor.take(10).await;

    assert_eq!(held.len(), 2);
    assert_ne!(held[0].job(), held[1].job());
    actor.finish(&held[0]).await;
    actor.finish(&held[1]).await;
}

/// R20, R9: a plain push is recovered, retried and counted like any job, and keeps
/// the id of its first delivery.
pub(crate) async fn plain_pushes_come_back(store: &Store) {
    let actor = store.actor("worker").await;
    store.push_raw(b"bare").await;
    let first = actor.take_one_briefly().await;
    store.outlast_brief_leases().await;
    actor.recover_all().await;
    let second = actor.take_one().await;
    actor.say(&second, retry_now()).await;
    actor.recover_all().await;

    let third = actor.take_one().await;

    assert_eq!((second.attempt(), third.attempt()), (2, 3));
    assert_eq!((second.job(), third.job()), (first.job(), first.job()));
    assert_eq!(&third.payload[..], b"bare");
    actor.finish(&third).await;
}

/// R20, R24: a plain push that is given back has its turn, and is not counted.
pub(crate) async fn plain_pushes_are_given_back(store: &Store) {
    let actor = store.actor("worker").await;
    store.push_raw(b"1").await;
    store.push_raw(b"2").await;
    let held = actor.take_one().await;

    actor.say(&held, Verdict::GiveBack).await;

    let again = actor.take(2).await;
    let other = if held.payload == "1" { "2" } else { "1" };
    let line = Line::of([other]).and_back(&actor.class(), [held.payload.clone()]);
    assert_in_line(&actor, &again, &line);
    assert!(again.iter().all(|one| one.attempt() == 1), "not counted");
}

/// R20, R23: a plain push shows in the figures and in a peek, without an id.
pub(crate) async fn plain_pushes_show(store: &Store) {
    let actor = store.actor("operator").await;
    store.push_raw(b"bare").await;

    let ready = actor.list(JobState::Ready, 10).await;

    assert_eq!(actor.figures().await.ready, 1);
    assert_eq!((&ready[0].payload[..], &ready[0].id), (&b"bare"[..], &None));
}

/// R3, R20: an entry with relq's mark that cannot be read is buried with its bytes
/// and a reason, and those behind it are served.
pub(crate) async fn malformed_entries_are_buried(store: &Store) {
    let actor = store.actor("worker").await;
    let nasty: [&[u8]; 4] = [
        b"\xf5\x52\x51\x01",
        b"\xf5\x52\x51\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\xf5\x52\x51\x01garbage",
        b"\xf5\x52\x51\x01\x00",
    ];
    for entry in nasty {
        store.push_raw(entry).await;
    }
    store.push_raw(b"behind").await;

    let taken = actor.take_within(10, std::time::Duration::from_secs(5)).await;

    assert_eq!(payloads(&taken), ["behind"]);
    let buried = actor.list(JobState::Dead, 10).await;
    let bytes = buried.iter().map(|one| one.payload.to_vec());
    expect_exactly(bytes, nasty.map(<[u8]>::to_vec));
}

/// R20: a duplicate by id is not a matter of plain pushes: both are jobs.
pub(crate) async fn plain_pushes_share_no_id(store: &Store) {
    let actor = store.actor("worker").await;
    let own = actor.store_one(NewJob::new("own").id(id("own"))).await;
    store.push_raw(b"own").await;

    let again = actor.offer(NewJob::new("again").id(id("own"))).await;

    assert_eq!(again, Pushed::Duplicate { existing: own, by: DuplicateOf::Id });
    assert_eq!(drain(&actor).await.len(), 2);
}

/// R20, R3: a plain push is buried, redriven and cancelled like any job.
pub(crate) async fn plain_pushes_are_operated(store: &Store) {
    let actor = store.actor("operator").await;
    store.push_raw(b"bare").await;
    let held = actor.take_one().await;
    actor.say(&held, dead("no")).await;
    assert_eq!(actor.the_dead_one().await.payload, "bare");
    assert_eq!(actor.redrive(&Which::All).await.expect("answered").moved, 1);

    let again = actor.take_one().await;
    let cancelled = actor.cancel(again.job()).await.expect("answered");

    assert_eq!((again.job(), &again.payload[..]), (held.job(), &b"bare"[..]));
    assert_eq!(cancelled, Cancelled::Removed(JobState::Leased));
}

/// R20, R23: what any client pushed is purged too.
pub(crate) async fn plain_pushes_are_purged(store: &Store) {
    let actor = store.actor("operator").await;
    store.push_raw(b"1").await;
    store.push_raw(b"2").await;
    actor.take_one().await;

    assert_eq!(actor.purge().await.expect("answered"), 2);

    assert_eq!(actor.figures().await.unfinished(), 0);
}
