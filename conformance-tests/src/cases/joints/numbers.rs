//! Calls of many different numbers of jobs. A backend may handle a call by parts of any
//! size: the jobs of a script, the rows of a statement, the commands of a pipeline.

use std::collections::BTreeSet;

use relq_core::{Delivery, Disposition, NewJob, Settlement, outcome::Settled};

use super::take_all;
use crate::{
    cases::case,
    harness::{checks::settle_all, store::Store},
};

/// The numbers of jobs: each power of two, and one more and less. Sums of powers of two
/// are between them.
fn numbers() -> BTreeSet<usize> {
    let around = |power: u32| (1_usize << power) - 1..=(1 << power) + 1;
    let beside_powers = (1..9).flat_map(around);
    beside_powers.chain([21, 84, 85, 86, 100, 149]).collect()
}

/// The job with this number: its payload has a length of its own, and every third job has
/// a header.
fn job(number: usize) -> NewJob {
    let job = NewJob::new(format!("{number}{}", " ".repeat(number % 7)));
    if number % 3 == 0 { job.header("number", number.to_string()) } else { job }
}

fn number_of(delivery: &Delivery) -> usize {
    let text = String::from_utf8_lossy(&delivery.payload);
    text.trim().parse().unwrap_or_else(|_| panic!("{text:?} was never pushed"))
}

case!(a_call_of_any_number_of_jobs_keeps_them_apart: R1 R2 R7);
/// Jobs are pushed, claimed and finished in calls of different sizes. Each job is delivered
/// with its own id, payload and headers, and a call ends those jobs that it names.
async fn a_call_of_any_number_of_jobs_keeps_them_apart(store: &Store) {
    let actor = store.actor("worker").await;
    let mut finished = 0;
    let most = actor.limits().max_jobs_per_call.get() as usize;
    for count in numbers().into_iter().filter(|count| *count <= most) {
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
        let answers = settle_all(&actor, &held, &Disposition::Done).await;

        for (number, answer) in answers.iter().enumerate() {
            let wanted =
                if number % 2 == 0 { Settled::LeaseLost } else { Settled::Applied };
            assert_eq!(*answer, wanted, "R7: job {number} of {count}, settled again");
        }
        finished += count as u64;
        let stats = actor.figures().await;
        assert_eq!((stats.unfinished(), stats.finished), (0, finished), "R1: {count}");
    }
}
