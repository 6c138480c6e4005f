//! A job that is run now keeps all but its due time (R32).

use relq_core::{
    JobId, NewJob,
    operator::{JobState, RunNow},
    outcome::DuplicateOf,
    results::JobResult,
};

use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{duplicate, id, key, payloads},
        store::Store,
        times::{HELD, LIFE, PAST_LIFE},
    },
};

/// Stores a delayed job and runs it now.
async fn run(actor: &Actor, job: NewJob) -> JobId {
    let job = actor.store_one(job.delay(HELD)).await;
    assert_eq!(actor.run_now(&job).await, RunNow::Ready, "R32");
    job
}

case!(it_keeps_its_priority: R32 R15 => Inspect Delay Priority);
/// The job stands behind the ready jobs of its priority, and before those of a lower one.
async fn it_keeps_its_priority(store: &Store) {
    let actor = store.actor("worker").await;
    let levels = [actor.class().least_urgent(), actor.class().most_urgent()];
    for level in levels {
        actor.store_one(NewJob::new(format!("first {level}")).priority(level)).await;
    }
    for level in levels {
        run(&actor, NewJob::new(format!("run {level}")).priority(level)).await;
    }

    let served = payloads(&actor.take(10).await);

    let [low, high] = levels;
    let wanted =
        [high, low].map(|level| [format!("first {level}"), format!("run {level}")]);
    assert_eq!(served, wanted.concat(), "R32: by priority");
}

case!(it_keeps_its_key: R32 R16 => Inspect Delay Unique);
/// The job holds its unique key until it is done.
async fn it_keeps_its_key(store: &Store) {
    let actor = store.actor("worker").await;
    let job = run(&actor, NewJob::new("job").unique(key("k"))).await;

    let held = || duplicate(&job, DuplicateOf::UniqueKey);
    assert_eq!(actor.offer(NewJob::new("other").unique(key("k"))).await, held(), "R32");
    let taken = actor.take_one().await;
    assert_eq!(actor.offer(NewJob::new("other").unique(key("k"))).await, held(), "R32");

    actor.finish(&taken).await;

    actor.store_one(NewJob::new("next").unique(key("k"))).await;
}

case!(it_keeps_its_expiry: R32 R17 => Inspect Delay Expiry);
/// The job expires when it would have expired, and one that has expired is buried.
async fn it_keeps_its_expiry(store: &Store) {
    let actor = store.actor("worker").await;
    run(&actor, NewJob::new("in time").expires_in(LIFE)).await;
    assert_eq!(payloads(&actor.take(1).await), ["in time"], "R32");
    let later = NewJob::new("late").expires_in(LIFE).delay(HELD);
    let later = actor.store_one(later).await;
    store.advance(PAST_LIFE).await;

    actor.run_now(&later).await;

    assert_eq!(actor.take(1).await, [], "R17: it has expired");
    actor.recover_all().await;
    assert_eq!(actor.the_dead_one().await.payload, "late", "R17");
}

case!(it_keeps_its_id: R32 R4 => Inspect Delay ClientIds);
/// The id of the job is remembered before and after its end.
async fn it_keeps_its_id(store: &Store) {
    let actor = store.actor("worker").await;
    let job = run(&actor, NewJob::new("job").id(id("job"))).await;
    let known = || duplicate(&job, DuplicateOf::Id);

    assert_eq!(actor.offer(NewJob::new("again").id(id("job"))).await, known(), "R4");
    actor.finish(&actor.take_one().await).await;

    assert_eq!(actor.offer(NewJob::new("again").id(id("job"))).await, known(), "R4");
}

case!(it_keeps_its_result: R32 R29 => Inspect Delay Results);
/// The result of the job is unfinished until it is done.
async fn it_keeps_its_result(store: &Store) {
    let actor = store.actor("worker").await;
    let job = run(&actor, NewJob::new("job").keep_result(HELD)).await;
    let result = || async {
        let results = actor.result_queue().expect("it keeps results");
        let found = results.read_results(std::slice::from_ref(&job)).await;
        found.expect("answered").remove(0)
    };
    assert_eq!(result().await, Some(JobResult::Unfinished { progress: None }), "R32");

    actor.finish(&actor.take_one().await).await;

    assert_eq!(result().await, Some(JobResult::Done { result: "".into() }), "R29");
}

case!(it_keeps_its_followers: R32 R30 => Inspect Delay Followers ClientIds);
/// The followers of the job are held until it is done.
async fn it_keeps_its_followers(store: &Store) {
    let actor = store.actor("worker").await;
    let leader =
        actor.store_one(NewJob::new("leader").id(id("leader")).delay(HELD)).await;
    actor.store_one(NewJob::new("follower").after(leader.clone())).await;

    actor.run_now(&leader).await;

    assert_eq!(actor.figures().await.scheduled, 1, "R32: the follower is held");
    let held = actor.take(10).await;
    assert_eq!(payloads(&held), ["leader"], "R30");
    actor.finish(&held[0]).await;
    assert_eq!(payloads(&actor.take(10).await), ["follower"], "R30");
    assert_eq!(actor.list(JobState::Scheduled, 10).await, [], "R30");
}
