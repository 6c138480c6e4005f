//! Results of any size up to the largest, many of them, and too large ones (R29, R21).

use bytes::Bytes;
use relq_core::{
    Error, JobId, Settlement,
    error::{Effect, Operation},
    outcome::Settled,
    results::MAX_RESULT,
};

use super::fixture::{UNFINISHED, done, done_with, kept};
use crate::{
    cases::case,
    harness::{
        checks::{assert_applied, id, numbered},
        store::Store,
    },
};

case!(a_result_may_be_any_bytes: R29 R2 => Results);
/// A result is told byte for byte, also when it is empty or as large as allowed.
async fn a_result_may_be_any_bytes(store: &Store) {
    let actor = store.actor("worker").await;
    let every_byte: Vec<u8> = (0..=255).collect();
    let largest = vec![0xff; MAX_RESULT];
    let all: [&[u8]; 9] = [
        b"a",
        b"",
        b"\0",
        b"u",
        b"xfno",
        b"a\r\nb",
        b"\xf5RQ\x01\xff",
        &every_byte,
        &largest,
    ];
    for result in all {
        let result = Bytes::copy_from_slice(result);
        let job = actor.store_one(kept("job")).await;

        actor.ends(&actor.take_one().await, done_with(result.clone())).await;

        let told = actor.result_of(&job).await;
        let bytes = result.len();
        assert!(told == Some(done(result)), "R2: another result than of {bytes} bytes");
    }
}

case!(a_result_that_is_too_large_is_refused: R29 R5 R21 => Results);
/// A call with a result that is too large is refused before any of its settlements is
/// carried out.
async fn a_result_that_is_too_large_is_refused(store: &Store) {
    let actor = store.actor("worker").await;
    let jobs = actor.store([kept("first"), kept("second")]).await;
    let held = actor.take(2).await;
    let settlements = [
        Settlement::new(held[0].receipt.clone(), done_with("right")),
        Settlement::new(held[1].receipt.clone(), done_with(vec![7; MAX_RESULT + 1])),
    ];

    let alone = actor.settle(&settlements).await;
    let both = actor.settle_and_claim(&settlements, &actor.ask(1)).await;

    for refused in [alone, both.settled] {
        let error = refused.expect_err("it is refused");
        assert!(matches!(error, Error::Invalid { .. }), "{error:?}");
        assert_eq!(error.effect(), Effect::No, "R21: the effect of {error:?}");
        assert_eq!(error.at().operation, Operation::Settle, "{error:?}");
    }
    let unfinished = [Some(UNFINISHED), Some(UNFINISHED)];
    assert_eq!(actor.told_of(&jobs).await, unfinished, "R5: nothing is stored");
    assert_eq!(actor.figures().await.leased, 2, "R5: nothing is done");
    for held in &held {
        actor.finish(held).await;
    }
}

case!(many_large_results_are_stored_and_read: R29 R21 => Results);
/// One call stores several results of the largest size, and one call reads them.
async fn many_large_results_are_stored_and_read(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(5).into_iter().map(kept)).await;
    let held = actor.take(5).await;
    let ids: Vec<_> = held.iter().map(|one| one.job().clone()).collect();
    let result = |at: u8| Bytes::from(vec![at; MAX_RESULT]);
    let settlements = held
        .iter()
        .zip(0..)
        .map(|(one, at)| Settlement::new(one.receipt.clone(), done_with(result(at))));

    let settled = actor.settle(&settlements.collect::<Vec<_>>()).await;

    assert_applied(&settled.expect("answered"));
    for (at, told) in (0..).zip(actor.told_of(&ids).await) {
        assert!(told == Some(done(result(at))), "R29: result {at}");
    }
}

case!(many_results_are_read_in_the_order_of_the_ids: R29 => Results);
/// One call reads more results than a step has, in any order of the ids, with unknown ids
/// and repeated ones among them.
async fn many_results_are_read_in_the_order_of_the_ids(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    let jobs = actor.store(numbered(20).into_iter().map(kept)).await;
    for held in actor.take(20).await {
        let result = held.job().to_string();
        actor.ends(&held, done_with(result)).await;
    }
    let unknown = id("unknown");
    let asked = jobs.iter().rev().flat_map(|job| [&unknown, job]).chain(&jobs);
    let asked: Vec<JobId> = asked.cloned().collect();

    let told = actor.told_of(&asked).await;

    for (job, told) in asked.iter().zip(told) {
        let wanted = (*job != unknown).then(|| done(job.to_string()));
        assert_eq!(told, wanted, "R29: job {job}");
    }
    assert_eq!(actor.told_of(&[]).await, []);
}

case!(too_many_ids_are_refused: R29 R21 => Results);
/// A call for as many results as allowed is answered, and one for more is refused.
async fn too_many_ids_are_refused(store: &Store) {
    let actor = store.actor("reader").await;
    let most = actor.limits().max_jobs_per_call.get() as usize;
    let ids: Vec<_> = (0..=most).map(|number| id(&format!("job {number}"))).collect();

    assert_eq!(actor.told_of(&ids[1..]).await, vec![None; most]);
    let refused = actor.results().read_results(&ids).await;

    let error = refused.expect_err("it is refused");
    assert!(matches!(error, Error::Invalid { .. }), "{error:?}");
    assert_eq!(error.at().operation, Operation::ReadResults, "{error:?}");
}

case!(a_repeated_settlement_keeps_the_first_result: R29 R7 => Results);
/// Two settlements of one job in a call: one is applied, and its result is told.
async fn a_repeated_settlement_keeps_the_first_result(store: &Store) {
    let actor = store.actor("worker").await;
    let job = actor.store_one(kept("job")).await;
    let held = actor.take_one().await;
    let with = |result| Settlement::new(held.receipt.clone(), done_with(result));

    let settled = actor.settle(&[with("first"), with("second")]).await;

    let settled = settled.expect("answered");
    let applied = settled.iter().filter(|one| **one == Settled::Applied).count();
    assert_eq!(applied, 1, "R7: {settled:?}");
    let is_first = settled[0] == Settled::Applied;
    let wanted = if is_first { "first" } else { "second" };
    actor.assert_told(&job, done(wanted)).await;
}
