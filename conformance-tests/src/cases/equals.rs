//! Tests with jobs that differ only in their ids. Their payload, push time, due time,
//! end of lease and time of death are equal, because the clock stands still.
//!
//! Each case has more than ten jobs, so that a backend that compares their numbers as
//! text gets a wrong order: as text, "10" comes before "2".

use std::time::Duration;

use relq_core::{
    Delivery, Disposition, JobId, NewJob, Priority,
    capabilities::Order,
    operator::{JobState, JobView, Selection},
    outcome::Settled,
};

use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{
            dead, drain, every_disposition, expect_exactly, retry_after, settle_all,
        },
        store::Store,
        times::{BRIEF, PAST_BRIEF},
    },
};

/// The number of equal jobs in a case. It is more than ten, so that an order by number
/// differs from an order by text.
const COUNT: usize = 12;

/// The positions of the jobs that a settlement, redrive or purge names: the first two,
/// one in the middle, the first with a number of two digits, and the last.
const CHOSEN: [usize; 5] = [0, 1, 5, 10, COUNT - 1];

fn equal_jobs() -> [NewJob; COUNT] {
    std::array::from_fn(|_| NewJob::new("equal"))
}

/// Claims as many jobs as `jobs` lists, and asserts that these jobs are delivered.
async fn take_all(actor: &Actor, jobs: &[JobId]) -> Vec<Delivery> {
    let taken = actor.take(u32::try_from(jobs.len()).expect("few")).await;
    assert_served(actor, &taken, jobs);
    taken
}

/// Asserts that these jobs were delivered, in this order if the backend promises one.
fn assert_served(actor: &Actor, taken: &[Delivery], jobs: &[JobId]) {
    let ids: Vec<_> = taken.iter().map(|one| one.job().clone()).collect();
    if actor.capabilities().order == Order::Fifo {
        assert_eq!(ids, jobs, "R13: the order of the jobs");
    } else {
        expect_exactly(ids, jobs.to_vec());
    }
}

/// Splits a list into the values at the positions [`CHOSEN`] and the other values.
fn divided<T: Clone>(all: &[T]) -> (Vec<T>, Vec<T>) {
    let numbered = all.iter().cloned().enumerate();
    let (chosen, others): (Vec<_>, Vec<_>) =
        numbered.partition(|(at, _)| CHOSEN.contains(at));
    let values =
        |some: Vec<(usize, T)>| some.into_iter().map(|(_, value)| value).collect();
    (values(chosen), values(others))
}

fn ids_of(views: Vec<JobView>) -> Vec<JobId> {
    views.into_iter().filter_map(|view| view.id).collect()
}

case!(settlements_end_the_job_that_they_name: R7 R8);
/// A settlement that names some of several equal jobs ends exactly those jobs. It is
/// tested with each disposition.
async fn settlements_end_the_job_that_they_name(store: &Store) {
    let actor = store.actor("worker").await;
    store.stop_clock();
    for disposition in every_disposition(Duration::ZERO) {
        let jobs = actor.store(equal_jobs()).await;
        let mut held = take_all(&actor, &jobs).await;
        held.sort_by_key(|one| jobs.iter().position(|job| job == one.job()));
        let (chosen, others) = divided(&held);

        let settled = settle_all(&actor, &chosen, &disposition).await;

        assert_eq!(settled, [Settled::Applied; CHOSEN.len()]);
        let leased = ids_of(actor.list(JobState::Leased, 100).await);
        expect_exactly(leased, others.iter().map(|one| one.job().clone()));
        let settled = settle_all(&actor, &others, &Disposition::Done).await;
        assert_eq!(settled, [Settled::Applied; COUNT - CHOSEN.len()]);
        actor.recover_all().await;
        let named: Vec<_> = chosen.iter().map(|one| one.job().clone()).collect();
        assert_ended_by(&disposition, &actor, named).await;
        actor.purge().await.expect("purged");
    }
}

/// Checks that the queue has exactly the jobs of these ids, where such a settlement puts
/// them.
async fn assert_ended_by(disposition: &Disposition, actor: &Actor, named: Vec<JobId>) {
    match disposition {
        Disposition::Done | Disposition::DoneWith { .. } | Disposition::Discard => {
            assert_eq!(drain(actor).await, []);
        }
        Disposition::Dead { .. } => {
            expect_exactly(ids_of(actor.list(JobState::Dead, 100).await), named);
        }
        Disposition::GiveBack
        | Disposition::Retry { .. }
        | Disposition::Postpone { .. } => {
            assert_served(actor, &drain(actor).await, &named);
        }
    }
}

case!(equal_ends_of_leases_keep_the_order: R9 R13);
/// Jobs whose leases end at the same time are recovered in the order in which they were
/// claimed.
async fn equal_ends_of_leases_keep_the_order(store: &Store) {
    let actor = store.actor("worker").await;
    store.stop_clock();
    let jobs = actor.store(equal_jobs()).await;
    let taken = actor.take_briefly(u32::try_from(COUNT).expect("few")).await;
    assert_eq!(taken.len(), COUNT);
    let claimed: Vec<_> = taken.iter().map(|one| one.job().clone()).collect();
    expect_exactly(claimed.clone(), jobs);
    store.advance(PAST_BRIEF).await;

    actor.recover_all().await;

    assert_served(&actor, &drain(&actor).await, &claimed);
}

case!(equal_due_times_keep_the_order: R13 R14 => Delay);
/// Jobs that are due at the same time become ready in the order in which they were
/// scheduled: by one push each, by one push of all, or by a retry.
async fn equal_due_times_keep_the_order(store: &Store) {
    let actor = store.actor("worker").await;
    store.stop_clock();
    let mut jobs = Vec::new();
    for job in equal_jobs() {
        jobs.push(actor.store_one(job.delay(BRIEF)).await);
    }
    jobs.extend(actor.store(equal_jobs().map(|job| job.delay(BRIEF))).await);
    store.advance(PAST_BRIEF).await;
    actor.recover_all().await;
    let held = take_all(&actor, &jobs).await;

    let claimed: Vec<_> = held.iter().map(|one| one.job().clone()).collect();
    settle_all(&actor, &held, &retry_after(BRIEF)).await;
    store.advance(PAST_BRIEF).await;
    actor.recover_all().await;

    assert_served(&actor, &drain(&actor).await, &claimed);
}

case!(equal_priorities_keep_the_order: R13 R15 => Order Priority Fifo);
/// Jobs of the lowest priority, and jobs of the highest, are served in the order of
/// their pushes.
async fn equal_priorities_keep_the_order(store: &Store) {
    let actor = store.actor("worker").await;
    store.stop_clock();
    let levels: [Priority; 2] =
        [actor.class().least_urgent(), actor.class().most_urgent()];
    for level in levels {
        let mut jobs = Vec::new();
        for job in equal_jobs() {
            jobs.push(actor.store_one(job.priority(level)).await);
        }
        jobs.extend(actor.store(equal_jobs().map(|job| job.priority(level))).await);

        let held = take_all(&actor, &jobs).await;
        settle_all(&actor, &held, &Disposition::GiveBack).await;
        take_all(&actor, &jobs).await;
        actor.release_worker(actor.worker()).await.expect("released");
        let held = take_all(&actor, &jobs).await;
        settle_all(&actor, &held, &Disposition::Done).await;
    }
}

case!(equal_dead_letters_are_told_apart: R23);
/// Several jobs died at the same time. A redrive, a purge and a cancel affect only the
/// jobs that they name.
async fn equal_dead_letters_are_told_apart(store: &Store) {
    let actor = store.actor("worker").await;
    store.stop_clock();
    let jobs = actor.store(equal_jobs()).await;
    let held = take_all(&actor, &jobs).await;
    settle_all(&actor, &held, &dead("never")).await;
    let (chosen, others) = divided(&jobs);

    let redriven = actor.redrive(&Selection::Only(chosen.clone())).await;

    assert_eq!(redriven.expect("answered").moved, CHOSEN.len() as u64);
    expect_exactly(ids_of(actor.list(JobState::Dead, 3).await), others.clone());
    expect_exactly(ids_of(actor.list(JobState::Ready, 3).await), chosen.clone());
    actor.cancel(&chosen[1]).await.expect("answered");
    let purged = actor.purge_dead(&Selection::Only(vec![others[2].clone()])).await;
    assert_eq!(purged.expect("answered"), 1);
    let without = |all: &[JobId], gone: &JobId| {
        all.iter().filter(|job| *job != gone).cloned().collect::<Vec<_>>()
    };
    let left = drain(&actor).await.into_iter().map(|one| one.job().clone());
    expect_exactly(left, without(&chosen, &chosen[1]));
    let dead = ids_of(actor.list(JobState::Dead, 3).await);
    expect_exactly(dead, without(&others, &others[2]));
}
