//! Calls of many different numbers of jobs. A backend may handle a call by parts of any
//! size: the jobs of a script, the rows of a statement, the commands of a pipeline.

use std::collections::BTreeSet;

use relq_core::{
    Delivery, Disposition, JobId, NewJob, Settlement,
    outcome::{DuplicateOf, Pushed, Settled},
};

use super::take_all;
use crate::{
    cases::case,
    harness::{
        checks::{key, settle_all},
        store::Store,
    },
};

/// The numbers of jobs in a call: each power of two with the numbers beside it, some sums
/// of powers of two, and a hundred.
fn numbers() -> BTreeSet<usize> {
    let around = |power: u32| (1_usize << power) - 1..=(1 << power) + 1;
    let beside_powers = (1..9).flat_map(around);
    beside_powers.chain([21, 84, 85, 86, 100, 149]).collect()
}

/// The job with this number: its payload has a length of its own, and every third job has
/// a header.
fn job(number: usize) -> NewJob {
    let job = NewJob::new(format!("{number}{}", " ".repeat(number % 7)));
    if number.is_multiple_of(3) {
        job.header("number", number.to_string())
    } else {
        job
    }
}

fn number_of(delivery: &Delivery) -> usize {
    let text = String::from_utf8_lossy(&delivery.payload);
    text.trim().parse().unwrap_or_else(|_| panic!("{text:?} was never pushed"))
}

case!(a_call_of_any_number_of_jobs_keeps_them_apart: R1 R2 R7);
/// Each call pushes, claims or settles another number of jobs. Each job is delivered with
/// its own id, payload and headers, and a call ends those jobs that it names. A receipt
/// that has been used has lost its lease, also within the call.
async fn a_call_of_any_number_of_jobs_keeps_them_apart(store: &Store) {
    let actor = store.actor("worker").await;
    let mut finished = 0;
    let most = actor.limits().max_jobs_per_call.get() as usize;
    for count in numbers().into_iter().filter(|count| *count <= most / 2) {
        let ids = actor.store((0..count).map(job)).await;
        let mut held = take_all(&actor, count).await;
        held.sort_by_key(number_of);
        for (number, delivery) in held.iter().enumerate() {
            let wanted = job(number);
            let what = format!("job {number} of {count}");
            assert_eq!(delivery.payload, wanted.payload, "{what}: its payload");
            assert_eq!(delivery.headers, wanted.headers, "{what}: its headers");
            assert_eq!(delivery.job(), &ids[number], "{what}: its id");
        }

        let every_other = held.iter().step_by(2);
        let done: Vec<_> = every_other
            .map(|one| Settlement::new(one.receipt.clone(), Disposition::Done))
            .collect();
        let answers = actor.settle(&done).await.expect("settled");
        assert_eq!(answers, vec![Settled::Applied; done.len()], "R7: {count} jobs");
        let twice = [&held[..], &held[..]].concat();
        let answers = settle_all(&actor, &twice, &Disposition::Done).await;

        for (at, answer) in answers.iter().enumerate() {
            let is_first = at < count && at % 2 == 1;
            let wanted = if is_first { Settled::Applied } else { Settled::LeaseLost };
            assert_eq!(*answer, wanted, "R7: settlement {at} of twice {count} jobs");
        }
        finished += count as u64;
        let stats = actor.figures().await;
        assert_eq!((stats.unfinished(), stats.finished), (0, finished), "R1: {count}");
    }
}

/// As [`job`]. Of four jobs, the first has a unique key, and the second the same one.
fn job_with_key(number: usize) -> NewJob {
    match number % 4 {
        0 | 1 => job(number).unique(key(&format!("k{}", number / 4))),
        _ => job(number),
    }
}

/// Asserts the answer for a job of a push: that it is a duplicate of the job with this id,
/// or, with `None`, that it was stored.
fn assert_told(told: &Pushed, duplicate_of: Option<&JobId>, what: &str) {
    match (told, duplicate_of) {
        (Pushed::Duplicate { existing, by: DuplicateOf::UniqueKey }, Some(first)) => {
            assert_eq!(existing, first, "R16: {what} names the holder of its key");
        }
        (Pushed::Stored(_), None) => {}
        _ => panic!("R16: {what}: {told:?}, and {duplicate_of:?} holds its key"),
    }
}

case!(a_call_of_any_number_of_jobs_answers_for_each: R1 R16 => Unique);
/// A call pushes jobs whose unique keys earlier jobs of the same call hold, and the next
/// call pushes them again. Each answer is that of its own job, and no job that was stored
/// is missing.
async fn a_call_of_any_number_of_jobs_answers_for_each(store: &Store) {
    let actor = store.actor("worker").await;
    let most = actor.limits().max_jobs_per_call.get() as usize;
    for count in numbers().into_iter().filter(|count| *count <= most / 2) {
        let jobs: Vec<_> = (0..count).map(job_with_key).collect();
        let first = actor.push(&jobs, None).await.expect("pushed");
        let second = actor.push(&jobs, None).await.expect("pushed");

        let mut stored = Vec::new();
        for (number, (first_told, again)) in first.iter().zip(&second).enumerate() {
            let what = format!("job {number} of {count}");
            let holder = first[number - number % 4].job();
            let is_second_of_key = number % 4 == 1;
            assert_told(first_told, is_second_of_key.then_some(holder), &what);
            let holds_key = number % 4 < 2;
            assert_told(again, holds_key.then_some(holder), &format!("{what}, again"));
            for told in [first_told, again] {
                if let Pushed::Stored(id) = told {
                    stored.push((id.clone(), number));
                }
            }
        }
        let held = take_all(&actor, stored.len()).await;
        let mut got: Vec<_> =
            held.iter().map(|one| (one.job().clone(), number_of(one))).collect();
        got.sort_unstable();
        stored.sort_unstable();
        assert_eq!(got, stored, "R1: the jobs of two calls of {count}");
        settle_all(&actor, &held, &Disposition::Done).await;
    }
}
