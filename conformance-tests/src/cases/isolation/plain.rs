//! Plain pushes: jobs that clients push with a bare Redis command, without relq (R20).

use std::collections::BTreeSet;

use relq_core::{
    Disposition, JobId, NewJob,
    operator::{Cancelled, JobState, JobView, Selection, StateDetail},
    outcome::{DuplicateOf, Pushed},
};

use crate::{
    cases::case,
    harness::{
        checks::{
            assert_in_line, dead, delivers, drain, expect_exactly, id, payloads,
            retry_after, retry_now, settle_all,
        },
        store::Store,
        times::HELD,
    },
    spec::line::Line,
};

case!(plain_pushes_are_jobs: R20 @ redis);
/// A payload that a client pushes without relq is delivered, with an id and attempt 1.
async fn plain_pushes_are_jobs(store: &Store) {
    let actor = store.actor("worker").await;
    store.push_raw(b"123").await;

    let held = actor.take_one().await;

    assert_eq!((&held.payload[..], held.attempt()), (&b"123"[..], 1));
    actor.finish(&held).await;
    assert_eq!(actor.figures().await.finished, 1);
}

case!(plain_pushes_may_be_any_bytes: R20 R2 @ redis);
/// A plain push may be any bytes that do not begin with the four reserved bytes of a
/// relq entry.
async fn plain_pushes_may_be_any_bytes(store: &Store) {
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

case!(plain_pushes_take_their_turn: R20 R13 => Order @ redis);
/// Plain pushes and relq's pushes are delivered in the order in which they were pushed.
async fn plain_pushes_take_their_turn(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("relq 1").await;
    store.push_raw(b"plain 1").await;
    actor.store_one("relq 2").await;
    store.push_raw(b"plain 2").await;

    let served = drain(&actor).await;

    let line = Line::of(["relq 1", "plain 1", "relq 2", "plain 2"]);
    assert_in_line(&actor, &served, &line);
}

case!(equal_plain_pushes_are_two_jobs: R20 R7 @ redis);
/// Two equal plain pushes are two jobs.
async fn equal_plain_pushes_are_two_jobs(store: &Store) {
    let actor = store.actor("worker").await;
    store.push_raw(b"same").await;
    store.push_raw(b"same").await;

    let held = actor.take(10).await;

    assert_eq!(held.len(), 2);
    assert_ne!(held[0].job(), held[1].job());
    actor.finish(&held[0]).await;
    actor.finish(&held[1]).await;
}

case!(plain_pushes_come_back: R20 R9 @ redis);
/// A plain push is recovered, retried and counted like any job, and keeps
/// the id of its first delivery.
async fn plain_pushes_come_back(store: &Store) {
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

case!(plain_pushes_are_given_back: R20 R24 @ redis);
/// A plain push that is given back is delivered again, and the first delivery
/// does not count as an attempt.
async fn plain_pushes_are_given_back(store: &Store) {
    let actor = store.actor("worker").await;
    store.push_raw(b"1").await;
    store.push_raw(b"2").await;
    let held = actor.take_one().await;

    actor.say(&held, Disposition::GiveBack).await;

    let again = actor.take(2).await;
    let other = if held.payload == "1" { "2" } else { "1" };
    let line = Line::of([other]).and_back(&actor.class(), [held.payload.clone()]);
    assert_in_line(&actor, &again, &line);
    assert!(again.iter().all(|one| one.attempt() == 1), "not counted");
}

case!(plain_pushes_show: R20 R23 @ redis);
/// A plain push appears in the stats and in a peek. If the backend gives it an id
/// before its first delivery, the peek shows that id.
async fn plain_pushes_show(store: &Store) {
    let actor = store.actor("operator").await;
    store.push_raw(b"bare").await;

    let ready = actor.list(JobState::Ready, 10).await;

    assert_eq!(actor.figures().await.ready, 1);
    assert_eq!(ready[0].payload, "bare");
    let held = actor.take_one().await;
    assert!(ready[0].id.as_ref().is_none_or(|id| id == held.job()), "{ready:?}");
}

case!(malformed_entries_are_buried: R3 R20 @ redis);
/// An entry that begins with relq's reserved bytes and cannot be parsed is buried with
/// its bytes and a reason. A listing tells the reason before, so that no reader takes the
/// entry for a job. The entries behind it are delivered.
async fn malformed_entries_are_buried(store: &Store) {
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
    let ready = actor.list(JobState::Ready, 10).await;

    let taken = actor.take_within(10, std::time::Duration::from_secs(5)).await;

    assert_eq!(payloads(&taken), ["behind"]);
    let buried = actor.list(JobState::Dead, 10).await;
    let bytes = buried.iter().map(|one| one.payload.to_vec());
    expect_exactly(bytes, nasty.map(<[u8]>::to_vec));
    let told = |one: JobView| Some((one.payload, one.unreadable?));
    let reason = |one: &JobView| match &one.detail {
        StateDetail::Dead { reason, .. } => Some((one.payload.clone(), reason.clone())),
        _ => None,
    };
    let reasons = buried.iter().filter_map(reason);
    expect_exactly(ready.into_iter().filter_map(told), reasons);
    assert!(buried.iter().all(|one| one.unreadable.is_some()), "R3: {buried:?}");
}

/// Returns the bytes of an entry with the given id, in the format in which relq stores
/// jobs. A client could push a copy of such an entry.
fn entry_of(id: &str, payload: &str) -> Vec<u8> {
    let id_bytes = u8::try_from(id.len()).expect("a valid id");
    let head = b"\xf5RQ\x01\x00\x05\x00\x00\x00\x19";
    [&head[..], &[id_bytes], id.as_bytes(), payload.as_bytes()].concat()
}

case!(copies_of_an_entry_are_two_jobs: R3 R20 @ redis);
/// A client pushes two copies of an entry of relq. Neither is lost: each is a job, or a
/// dead letter if the backend finds its id already used. If a copy gets a new id, that
/// id is valid, even if the old id is cut inside a character of several bytes.
async fn copies_of_an_entry_are_two_jobs(store: &Store) {
    // The last of these ids is as long as an id may be.
    for before in (116..=121).chain([JobId::MAX_BYTES - 4]) {
        let long = format!("{}{}", "x".repeat(before), "\u{1f600}");
        let actor = store.actor("operator").await;
        store.push_raw(&entry_of(&long, "copied")).await;
        store.push_raw(&entry_of(&long, "copied")).await;
        settle_all(&actor, &actor.take(10).await, &dead("no")).await;
        let moved = actor.redrive(&Selection::All).await.expect("answered").moved;
        assert_eq!(moved, 2, "cut after {before} bytes");

        settle_all(&actor, &actor.take(10).await, &retry_after(HELD)).await;

        let mut kept = actor.list(JobState::Scheduled, 10).await;
        kept.extend(actor.list(JobState::Dead, 10).await);
        let ids: BTreeSet<_> = kept.into_iter().filter_map(|one| one.id).collect();
        assert_eq!(ids.len(), 2, "cut after {before} bytes");
        actor.purge().await.expect("answered");
    }
}

case!(plain_pushes_share_no_id: R20 => ClientIds @ redis);
/// A plain push is not a duplicate of a job whose client-made id has the same bytes:
/// both are delivered.
async fn plain_pushes_share_no_id(store: &Store) {
    let actor = store.actor("worker").await;
    let own = actor.store_one(NewJob::new("own").id(id("own"))).await;
    store.push_raw(b"own").await;

    let again = actor.offer(NewJob::new("again").id(id("own"))).await;

    assert_eq!(again, Pushed::Duplicate { existing: own, by: DuplicateOf::Id });
    assert_eq!(drain(&actor).await.len(), 2);
}

case!(plain_pushes_are_operated: R20 R3 @ redis);
/// A job of a plain push is buried, redriven and cancelled like any job.
async fn plain_pushes_are_operated(store: &Store) {
    let actor = store.actor("operator").await;
    store.push_raw(b"bare").await;
    let held = actor.take_one().await;
    actor.say(&held, dead("no")).await;
    assert_eq!(actor.the_dead_one().await.payload, "bare");
    assert_eq!(actor.redrive(&Selection::All).await.expect("answered").moved, 1);

    let again = actor.take_one().await;
    let cancelled = actor.cancel(again.job()).await.expect("answered");

    assert_eq!((again.job(), &again.payload[..]), (held.job(), &b"bare"[..]));
    assert_eq!(cancelled, Cancelled::Removed(JobState::Leased));
}

case!(plain_pushes_are_purged: R20 R23 @ redis);
/// A purge also removes the entries of plain pushes.
async fn plain_pushes_are_purged(store: &Store) {
    let actor = store.actor("operator").await;
    store.push_raw(b"1").await;
    store.push_raw(b"2").await;
    actor.take_one().await;

    assert_eq!(actor.purge().await.expect("answered"), 2);

    assert_eq!(actor.figures().await.unfinished(), 0);
}
