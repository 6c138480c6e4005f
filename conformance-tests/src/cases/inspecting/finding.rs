//! The look-up of a job by its id, in each state (R31).

use std::time::Duration;

use relq_core::{
    JobId, NewJob,
    batch::{BatchId, NewBatch},
    operator::{JobLookup, JobState, StateDetail},
};

use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{dead, id, key, listed, numbered, retry_after},
        store::Store,
        times::HELD,
    },
};

/// Asserts that the look-up of each job in a state shows what a peek shows.
async fn assert_as_peeked(actor: &Actor, state: JobState) {
    for job in actor.list(state, 10).await {
        let id = job.id.clone().expect("these jobs have ids");
        assert_eq!(
            actor.record(&id).await.job,
            job,
            "R31: the record is that of a peek"
        );
    }
}

case!(a_scheduled_job_is_found: R31 => Inspect Delay);
/// A scheduled job is found by the id that relq made for it.
async fn a_scheduled_job_is_found(store: &Store) {
    let actor = store.actor("operator").await;
    let job = actor.store_one(NewJob::new("job").delay(HELD)).await;
    actor.store_one(NewJob::new("other").delay(HELD)).await;

    let found = actor.record(&job).await;

    assert_eq!((found.job.id, &found.job.payload[..]), (Some(job), &b"job"[..]), "R31");
    assert!(matches!(found.job.detail, StateDetail::Scheduled { .. }), "R31");
    assert_eq!(found.followers, [], "R31: nothing follows it");
}

case!(a_retried_job_is_found: R31 => Inspect);
/// A job that is scheduled because its attempt failed is found with its error.
async fn a_retried_job_is_found(store: &Store) {
    let actor = store.actor("operator").await;
    let job = actor.store_one("job").await;
    actor.say(&actor.take_one().await, retry_after(HELD)).await;

    let found = actor.record(&job).await.job;

    assert_eq!(found.detail.state(), JobState::Scheduled, "R31");
    assert_eq!(
        (found.attempt, found.last_error.as_deref()),
        (1, Some("it failed")),
        "R31"
    );
}

case!(a_held_job_names_its_leader: R31 R30 => Inspect Followers ClientIds);
/// The record of a held job names its leader, and the delay that begins when that is done.
async fn a_held_job_names_its_leader(store: &Store) {
    let actor = store.actor("operator").await;
    actor.store_one(NewJob::new("leader").id(id("leader"))).await;
    let held = NewJob::new("held").id(id("held")).after(id("leader")).delay(HELD);
    actor.store_one(held).await;

    let found = actor.record(&id("held")).await.job;

    let wanted = StateDetail::Following { leader: id("leader"), delay: HELD };
    assert_eq!(found.detail, wanted, "R31: the leader and the delay");
    assert_eq!(found.payload, "held", "R31");
}

case!(a_leader_lists_its_followers: R31 R30 => Inspect Followers ClientIds Delay);
/// The record of a leader has its held followers, in the order of their pushes. A job that
/// has none lists none.
async fn a_leader_lists_its_followers(store: &Store) {
    let actor = store.actor("operator").await;
    actor.store_one(NewJob::new("leader").id(id("leader")).delay(HELD)).await;
    let follower = |name: &'static str, leader: &str| {
        NewJob::new(name).id(id(name)).after(id(leader))
    };
    for (name, leader) in [("z", "leader"), ("a", "leader"), ("of a", "a")] {
        actor.store_one(follower(name, leader)).await;
    }

    assert_eq!(actor.record(&id("leader")).await.followers, [id("z"), id("a")], "R31");
    assert_eq!(actor.record(&id("a")).await.followers, [id("of a")], "R31");
    assert_eq!(actor.record(&id("z")).await.followers, [], "R31");
}

case!(a_leased_leader_lists_its_followers: R31 R30 => Inspect Followers ClientIds);
/// Also a leader that a worker holds, or that is dead, lists its followers.
async fn a_leased_leader_lists_its_followers(store: &Store) {
    let actor = store.actor("operator").await;
    actor.store_one(NewJob::new("leader").id(id("leader"))).await;
    actor.store_one(NewJob::new("f").id(id("f")).after(id("leader"))).await;
    let held = actor.take_one().await;
    assert_eq!(actor.record(&id("leader")).await.followers, [id("f")], "R31: leased");

    actor.say(&held, dead("no")).await;

    assert_eq!(actor.record(&id("leader")).await.followers, [id("f")], "R31: dead");
}

case!(a_dead_job_is_found: R31 R11 => Inspect);
/// A dead job is found with its reason and its error.
async fn a_dead_job_is_found(store: &Store) {
    let actor = store.actor("operator").await;
    let jobs = actor.store(numbered(3)).await;
    for held in actor.take(3).await {
        actor.say(&held, dead("it broke")).await;
    }

    let found = actor.record(&jobs[1]).await.job;

    assert_eq!(found.payload, "job 1", "R31");
    assert_eq!(found.last_error.as_deref(), Some("it broke"), "R31");
    assert_as_peeked(&actor, JobState::Dead).await;
}

case!(a_leased_job_is_found_among_1000: R31 => Inspect);
/// A leased job is found among a thousand others, with its holder.
async fn a_leased_job_is_found_among_1000(store: &Store) {
    let actor = store.actor("worker").await;
    let jobs = actor.store(numbered(1000)).await;
    assert_eq!(actor.take(1000).await.len(), 1000);

    for at in [0, 500, 999] {
        let found = actor.record(&jobs[at]).await.job;

        assert_eq!(found.payload, format!("job {at}"), "R31");
        let StateDetail::Leased { worker, .. } = found.detail else {
            panic!("R31: job {at} is leased, not {:?}", found.detail)
        };
        assert_eq!(&worker, actor.worker(), "R31: its holder");
    }
}

case!(a_ready_job_is_found_or_may_be_ready: R31 => Inspect);
/// A ready job is found, or the look-up says that a ready job may have the id.
async fn a_ready_job_is_found_or_may_be_ready(store: &Store) {
    let actor = store.actor("operator").await;
    let job = actor.store_one("job").await;

    match actor.look_up(&job).await {
        JobLookup::Stored(found) => {
            assert_eq!(found.job.detail, StateDetail::Ready, "R31");
            assert_eq!(found.job.payload, "job", "R31");
        }
        other => {
            let followers = vec![];
            assert_eq!(other, JobLookup::MaybeReady { followers }, "R31: a ready job");
        }
    }
}

case!(an_unknown_id_is_not_found: R31 => Inspect);
/// No job is found by an id that no job ever had. An empty queue may say that too.
async fn an_unknown_id_is_not_found(store: &Store) {
    let actor = store.actor("operator").await;
    for name in ["unknown", "0", "*", "job:*"] {
        let found = actor.look_up(&id(name)).await;
        let is_none =
            matches!(found, JobLookup::MaybeReady { .. } | JobLookup::Unknown);
        assert!(is_none, "R31: {name} is {found:?}");
    }
}

case!(a_bare_payload_is_found_once_leased: R31 R20 => Inspect @ redis);
/// The bare payload of another client has an id once it is leased, and is found by it.
async fn a_bare_payload_is_found_once_leased(store: &Store) {
    let actor = store.actor("worker").await;
    store.push_raw(b"bare").await;
    let held = actor.take_one().await;

    let found = actor.record(held.job()).await.job;

    assert_eq!(found.payload, "bare", "R31");
    assert_eq!(found.detail.state(), JobState::Leased, "R31");
}

case!(the_record_is_that_of_a_peek: R31
    => Inspect ClientIds Unique Delay Expiry Results Followers JobLease);
/// The record of a job with all options is what a peek shows, in each state.
async fn the_record_is_that_of_a_peek(store: &Store) {
    let actor = store.actor("operator").await;
    let with_all = |name: &'static str| {
        NewJob::new(name)
            .id(id(name))
            .unique(key(name))
            .expires_in(HELD * 2)
            .priority(actor.class().most_urgent())
            .lease(HELD)
            .keep_result(Duration::from_secs(90))
            .header("trace", name)
    };
    actor.store([with_all("dead"), with_all("leased")]).await;
    for (held, is_dead) in actor.take(2).await.iter().zip([true, false]) {
        if is_dead {
            actor.say(held, dead("no")).await;
        }
    }
    actor.store_one(with_all("scheduled").delay(HELD)).await;
    actor.store_one(with_all("held").after(id("leased")).delay(HELD)).await;

    for name in ["dead", "leased", "scheduled", "held"] {
        let job = actor.record(&id(name)).await.job;
        assert_eq!(job.lease, Some(HELD), "R31: the lease of {name}");
        assert_eq!(job.keep_result, Some(Duration::from_secs(90)), "R31: {name}");
        assert_eq!(job.headers.get("trace"), Some(name), "R31");
    }
    for state in [JobState::Scheduled, JobState::Leased, JobState::Dead] {
        assert_as_peeked(&actor, state).await;
    }
}

case!(an_id_of_glob_characters_is_found: R31 => Inspect ClientIds);
/// An id with the characters of a pattern is found as it is written, and matches no other.
async fn an_id_of_glob_characters_is_found(store: &Store) {
    let actor = store.actor("worker").await;
    let names = ["a*c", "abc", "a[b]c", "a?c", "a\\c", "a\\*c", "*", "[a-z]bc"];
    actor.store(names.map(|name| NewJob::new(name).id(id(name)))).await;
    let held = actor.take(8).await;

    for one in &held {
        let found = actor.record(one.job()).await.job;
        assert_eq!(
            (found.id.as_ref(), &found.payload),
            (Some(one.job()), &one.payload),
            "R31"
        );
    }
    for other in ["a*", "?bc", "a[*]c"] {
        let found = actor.look_up(&id(other)).await;
        assert!(!matches!(found, JobLookup::Stored(_)), "R31: {other} is {found:?}");
    }
}

case!(a_piece_is_found: R31 => Inspect Batches);
/// The record of a leased piece names its batch.
async fn a_piece_is_found(store: &Store) {
    let actor = store.actor("worker").await;
    let batch = BatchId::new("batch").expect("a valid id");
    actor.make(&NewBatch::new(batch.clone())).await;
    actor.fill(&batch, ["piece"]).await;
    let held = actor.take_one().await;

    let found = actor.record(held.job()).await.job;

    assert_eq!((found.batch, &found.payload[..]), (Some(batch), &b"piece"[..]), "R31");
}

case!(a_large_job_is_found: R31 R21 => Inspect Delay);
/// The record of a job with the largest payload is complete.
async fn a_large_job_is_found(store: &Store) {
    let actor = store.actor("operator").await;
    let payload = vec![b'x'; actor.limits().max_payload];
    let job = actor.store_one(NewJob::new(payload.clone()).delay(HELD)).await;

    let found = actor.record(&job).await.job;

    assert!(found.payload == payload, "R31: {} bytes", found.payload.len());
}

case!(looking_up_changes_nothing: R31 R23 => Inspect Delay);
/// A look-up changes no job, and no count.
async fn looking_up_changes_nothing(store: &Store) {
    let actor = store.actor("worker").await;
    let mut jobs: Vec<JobId> = actor.store(numbered(4)).await;
    let held = actor.take(2).await;
    actor.say(&held[0], dead("no")).await;
    jobs.push(actor.store_one(NewJob::new("later").delay(HELD)).await);
    let views = || async {
        let mut all = Vec::new();
        for state in crate::spec::operation::STATES {
            all.extend(actor.list(state, 10).await);
        }
        all
    };
    let before = views().await;

    for job in &jobs {
        actor.look_up(job).await;
    }

    assert_eq!(views().await, before, "R31: the jobs are as they were");
    actor.finish(&held[1]).await;
    assert_eq!(listed(&actor.list(JobState::Ready, 10).await).len(), 2, "R31");
}
