//! The order of jobs of several priorities (R15).

use relq_core::{
    ClaimRequest, Delivery, Disposition, NewJob, Priority,
    operator::{JobState, Selection},
};

use super::serves;
use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{assert_in_line, dead, drain, listed, payloads, retry_now},
        store::Store,
    },
    spec::line::Line,
};

fn urgent(payload: &'static str, level: u8) -> NewJob {
    NewJob::new(payload).priority(Priority::new(level).expect("a valid level"))
}

/// Returns only those jobs whose priorities the backend distinguishes.
fn told_apart<const N: usize>(actor: &Actor, jobs: [NewJob; N]) -> Vec<NewJob> {
    let class = actor.class();
    jobs.into_iter().filter(|job| class.takes(job)).collect()
}

case!(the_more_urgent_is_first: R15 => Order Priority);
/// A job of higher priority is delivered first, even if it was pushed last.
async fn the_more_urgent_is_first(store: &Store) {
    let actor = store.actor("worker").await;
    let names = ["5", "0", "9", "3", "7", "1", "8", "2", "6", "4"];
    let jobs = names.map(|name| urgent(name, name.parse().expect("a digit")));
    let jobs = told_apart(&actor, jobs);
    for job in &jobs {
        actor.store_one(job.clone()).await;
    }

    serves(&actor, Line::of(jobs)).await;
}

case!(one_claim_spans_levels: R15 => Order Priority);
/// One claim of many jobs takes jobs of several priorities, and each delivery shows the
/// priority of its job.
async fn one_claim_spans_levels(store: &Store) {
    let actor = store.actor("worker").await;
    let [least, most] = [actor.class().least_urgent(), actor.class().most_urgent()];
    let [l1, l2] = ["l1", "l2"].map(|one| NewJob::new(one).priority(least));
    let [h1, h2] = ["h1", "h2"].map(|one| NewJob::new(one).priority(most));
    let jobs = [l1, h1, l2, h2];
    actor.store(jobs.clone()).await;

    let taken = actor.take(4).await;

    assert_in_line(&actor, &taken, &Line::of(jobs));
    let levels: Vec<_> = taken.iter().map(|one| one.priority).collect();
    assert_eq!(levels, [most, most, least, least]);
}

case!(silence_means_normal: R15 => Order Priority);
/// A job that was pushed without a priority has the normal priority.
async fn silence_means_normal(store: &Store) {
    let actor = store.actor("worker").await;
    let jobs = [NewJob::new("silent"), urgent("six", 6), urgent("four", 4)];
    let jobs = told_apart(&actor, jobs);
    actor.store(jobs.clone()).await;

    serves(&actor, Line::of(jobs)).await;
}

case!(equals_keep_their_order: R15 R13 => Order Priority);
/// Jobs of equal priority are delivered in push order, or as the backend
/// declares.
async fn equals_keep_their_order(store: &Store) {
    let actor = store.actor("worker").await;
    let [least, most] = [actor.class().least_urgent(), actor.class().most_urgent()];
    let names = ["h1", "l1", "h2", "l2", "h3", "l3"];
    let level = |name: &str| if name.starts_with('h') { most } else { least };
    let jobs = names.map(|name| NewJob::new(name).priority(level(name)));
    actor.store(jobs[..3].to_vec()).await;
    actor.store(jobs[3..].to_vec()).await;

    serves(&actor, Line::of(jobs)).await;
}

case!(an_urgent_job_that_is_too_large_for_a_claim_is_next: R6 R15 => Order Priority);
/// A claim has no room for another urgent job. It does not deliver a job of a lower
/// priority instead, however small that job is.
async fn an_urgent_job_that_is_too_large_for_a_claim_is_next(store: &Store) {
    let actor = store.actor("worker").await;
    let [least, most] = [actor.class().least_urgent(), actor.class().most_urgent()];
    let name = "large";
    let value = "x".repeat(actor.limits().max_headers - name.len());
    let more_than_a_claim = ClaimRequest::MAX_BYTES / value.len() + 4;
    let large = |number| {
        NewJob::new(format!("large {number}"))
            .priority(most)
            .header(name, value.clone())
    };
    let small = [NewJob::new("normal"), NewJob::new("least").priority(least)];
    let jobs: Vec<_> = (0..more_than_a_claim).map(large).chain(small).collect();
    for job in &jobs {
        actor.store_one(job.clone()).await;
    }

    serves(&actor, Line::of(jobs)).await;
}

case!(a_level_survives_every_way_back: R15 => Order Priority);
/// A job keeps its priority whichever way it returns to the queue.
async fn a_level_survives_every_way_back(store: &Store) {
    let actor = store.actor("worker").await;
    let urgent = NewJob::new("urgent").priority(actor.class().most_urgent());
    actor.store([NewJob::new("normal"), urgent.clone()]).await;

    let held = take_the_urgent(&actor, Line::of([urgent.clone()])).await;
    actor.say(&held, Disposition::GiveBack).await;
    let back = Line::default().and_back(&actor.class(), [urgent.clone()]);
    let held = take_the_urgent(&actor, back).await;
    actor.say(&held, retry_now()).await;
    actor.recover_all().await;
    let again = Line::default().and_then([urgent.clone()]);
    let held = take_the_urgent(&actor, again.clone()).await;
    actor.say(&held, dead("no")).await;
    actor.redrive(&Selection::All).await.expect("answered");
    take_the_urgent(&actor, again).await;
    actor.release_worker(actor.worker()).await.expect("answered");

    let left = Line::default().and_back(&actor.class(), [urgent]).and_then(["normal"]);
    serves(&actor, left).await;
}

/// Claims the urgent job and the normal job, and asserts that they come in the declared
/// order. Gives the normal job back, and returns the delivery of the urgent one.
async fn take_the_urgent(actor: &Actor, urgent: Line) -> Delivery {
    let both = actor.take(2).await;
    // The normal job was given back or never claimed before. So its priority, and not
    // its age, decides when it is delivered.
    assert_in_line(actor, &both, &urgent.and_then(["normal"]));
    let [urgent, normal] = ["urgent", "normal"]
        .map(|name| both.iter().find(|one| one.payload == name).expect("claimed"));
    assert_eq!(urgent.priority, actor.class().most_urgent());
    actor.say(normal, Disposition::GiveBack).await;
    urgent.clone()
}

case!(a_recovered_job_jumps_no_level: R15 R9 => Order Priority);
/// A recovered job comes first among the jobs of its own priority, but not before more
/// urgent jobs.
async fn a_recovered_job_jumps_no_level(store: &Store) {
    let actor = store.actor("worker").await;
    let low = actor.class().least_urgent();
    let [low_1, low_2] = ["low 1", "low 2"].map(|one| NewJob::new(one).priority(low));
    let high = NewJob::new("high").priority(actor.class().most_urgent());
    actor.store([low_1.clone(), low_2.clone()]).await;
    actor.take_briefly(1).await;
    actor.store_one(high.clone()).await;
    store.outlast_brief_leases().await;

    actor.recover_all().await;

    let line = Line::of([low_2, high]).and_back(&actor.class(), [low_1]);
    serves(&actor, line).await;
}

case!(a_peek_goes_through_the_levels: R15 => Order Priority);
/// A peek lists jobs of higher priority first, also where a page ends between two
/// priorities.
async fn a_peek_goes_through_the_levels(store: &Store) {
    let actor = store.actor("worker").await;
    let levels: Vec<_> = actor.class().levels().collect();
    for level in &levels {
        let job = NewJob::new(level.to_string()).priority(*level);
        actor.store([job.clone(), job.clone(), job]).await;
    }

    let seen = listed(&actor.list(JobState::Ready, 2).await);

    assert_eq!(seen.len(), 3 * levels.len());
    assert_eq!(seen, payloads(&drain(&actor).await));
}
