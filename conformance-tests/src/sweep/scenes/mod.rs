//! The state of the store before each act.

mod batches;

use std::{num::NonZeroU16, time::Duration};

use relq_core::{Delivery, Disposition, JobId, NewJob, WorkerId, unique::UniqueKey};

use super::{
    actors::{DELAY, LEASE, PAST_ALL, Survivors},
    promise::{Atomicity, End, Promise, StoreContents},
    victim::Ran,
};
use crate::spec::class::Class;

pub(super) use batches::*;

/// Longer than any id or token is remembered (R4).
const PAST_MEMORY: Duration = Duration::from_secs(6 * 60);

/// The state before the act.
pub(crate) struct Scene {
    /// The deliveries that the victim holds.
    pub(crate) held: Vec<Delivery>,
    pub(crate) promise: Promise,
    /// Where the victim records the jobs that it runs.
    pub(crate) ran: Ran,
}

impl Scene {
    pub(super) fn of(undone: StoreContents, done: StoreContents) -> Self {
        let promise = Promise { undone, done, atomicity: Atomicity::AllOrNone };
        Self::promising(promise)
    }

    pub(super) fn unchanged(promise: StoreContents) -> Self {
        Self::promising(Promise::unchanged(promise))
    }

    fn promising(promise: Promise) -> Self {
        Self { held: Vec::new(), promise, ran: Ran::default() }
    }

    pub(super) fn held(mut self, held: Vec<Delivery>) -> Self {
        self.held = held;
        self
    }

    pub(super) fn in_parts(mut self) -> Self {
        self.promise.atomicity = Atomicity::EachByItself;
        self
    }
}

pub(super) async fn nothing_then_a(_: &Survivors, _: &WorkerId) -> Scene {
    Scene::of(StoreContents::default(), StoreContents::delivered(["a"]))
}

pub(super) async fn nothing_then_abc(_: &Survivors, _: &WorkerId) -> Scene {
    Scene::of(StoreContents::default(), StoreContents::delivered(["a", "b", "c"]))
}

/// A job for each option that the backend supports.
pub(super) fn options(class: &Class) -> Vec<NewJob> {
    let ranked = NewJob::new("ranked").priority(class.most_urgent());
    let jobs = [
        NewJob::new("later").delay(DELAY),
        ranked.header("name", "value"),
        NewJob::new("unique").unique(key("k")),
        NewJob::new("id").id(id("mine")),
        NewJob::new("lease").lease(LEASE / 2),
        NewJob::new("expired").expires_in(Duration::from_millis(1)),
    ];
    jobs.into_iter().filter(|job| class.takes(job)).collect()
}

pub(super) async fn nothing_then_options(actors: &Survivors, _: &WorkerId) -> Scene {
    let mut done = StoreContents::default();
    for job in options(&actors.class()) {
        let end = if job.expires_in.is_some() { End::Dead } else { End::Delivered };
        done.add(job.payload, end);
    }
    Scene::of(StoreContents::default(), done)
}

pub(super) async fn nothing_then_pushed(_: &Survivors, _: &WorkerId) -> Scene {
    Scene::unchanged(StoreContents::delivered(["a"]))
}

pub(super) async fn three_ready(actors: &Survivors, _: &WorkerId) -> Scene {
    actors.healthy.store_plain(&["a", "b", "c"]).await;
    Scene::unchanged(StoreContents::delivered(["a", "b", "c"]))
}

pub(super) async fn three_to_run(actors: &Survivors, _: &WorkerId) -> Scene {
    actors.healthy.store_plain(&["a", "b", "c"]).await;
    Scene::promising(Promise::run(["a", "b", "c"]))
}

pub(super) async fn ranked_ready(actors: &Survivors, _: &WorkerId) -> Scene {
    let ranked = |payload, priority| NewJob::new(payload).priority(priority);
    let class = actors.class();
    let jobs = [ranked("a", class.most_urgent()), ranked("b", class.least_urgent())];
    actors.healthy.store(&jobs).await;
    actors.healthy.store_plain(&["c"]).await;
    Scene::unchanged(StoreContents::delivered(["a", "b", "c"]))
}

pub(super) async fn three_due(actors: &Survivors, _: &WorkerId) -> Scene {
    let jobs = ["a", "b", "c"].map(|payload| NewJob::new(payload).delay(DELAY));
    actors.healthy.store(&jobs).await;
    actors.clock.advance(DELAY);
    Scene::unchanged(StoreContents::delivered(["a", "b", "c"]))
}

pub(super) async fn three_paused(actors: &Survivors, victim: &WorkerId) -> Scene {
    actors.healthy.pause().await.expect("the healthy actor can pause");
    three_ready(actors, victim).await
}

pub(super) async fn three_held(actors: &Survivors, victim: &WorkerId) -> Scene {
    actors.healthy.store_plain(&["a", "b", "c"]).await;
    let held = actors.healthy.claim_for(victim, 3).await;
    Scene::of(StoreContents::delivered(["a", "b", "c"]), StoreContents::default())
        .held(held)
}

pub(super) async fn held_unchanged(actors: &Survivors, victim: &WorkerId) -> Scene {
    actors.healthy.store_plain(&["a", "b", "c"]).await;
    let held = actors.healthy.claim_for(victim, 3).await;
    Scene::unchanged(StoreContents::delivered(["a", "b", "c"])).held(held)
}

pub(super) async fn five_held(actors: &Survivors, victim: &WorkerId) -> Scene {
    let jobs = ["done", "retry", "dead", "discard", "back"];
    actors.healthy.store_plain(&jobs).await;
    let mut held = actors.healthy.claim_for(victim, 5).await;
    // The claim may return the jobs in any order. Sort them in the order of the
    // dispositions that the act applies.
    held.sort_by_key(|one| jobs.iter().position(|job| one.payload == job));
    let undone = StoreContents::delivered(jobs);
    let done = StoreContents::delivered(["retry", "back"]).and(End::Dead, ["dead"]);
    Scene::of(undone, done).held(held).in_parts()
}

pub(super) async fn held_with_side_records(
    actors: &Survivors,
    victim: &WorkerId,
) -> Scene {
    let jobs = [
        NewJob::new("unique").unique(key("k")).expires_in(20 * LEASE),
        NewJob::new("id").id(id("mine")),
    ];
    actors.healthy.store(&jobs.map(|job| actors.class().fit(job))).await;
    actors.healthy.store_plain(&["failed"]).await;
    let failed = actors.healthy.claim_for(victim, 3).await;
    actors.healthy.say(&failed, &retry(Duration::ZERO)).await;
    let held = actors.healthy.claim_for(victim, 3).await;
    let undone = StoreContents::delivered(["unique", "id", "failed"]);
    Scene::of(undone, StoreContents::default()).held(held)
}

pub(super) async fn two_ready_one_held(actors: &Survivors, victim: &WorkerId) -> Scene {
    actors.healthy.store_plain(&["a", "b", "c"]).await;
    let held = actors.healthy.claim_for(victim, 1).await;
    let undone = StoreContents::delivered(["a", "b", "c"]);
    let done = undone.clone().without(&held[0].payload);
    Scene::of(undone, done).held(held)
}

/// One of the dead worker's jobs was on its last attempt.
pub(super) async fn three_overdue(actors: &Survivors, _: &WorkerId) -> Scene {
    let last = NewJob::new("c").max_attempts(NonZeroU16::MIN);
    actors.healthy.store(&["a".into(), "b".into(), last]).await;
    let gone = WorkerId::new("gone").expect("the name is valid");
    actors.healthy.claim_for(&gone, 3).await;
    actors.clock.advance(PAST_ALL);
    Scene::unchanged(StoreContents::delivered(["a", "b"]).and(End::Dead, ["c"]))
}

pub(super) async fn bury_three(actors: &Survivors, victim: &WorkerId) {
    actors.healthy.store_plain(&["a", "b", "c"]).await;
    let held = actors.healthy.claim_for(victim, 3).await;
    actors.healthy.say(&held, &Disposition::Dead { error: "no".to_owned() }).await;
}

pub(super) async fn three_dead(actors: &Survivors, victim: &WorkerId) -> Scene {
    bury_three(actors, victim).await;
    let (undone, done) = (["a", "b", "c"], ["a", "b", "c"]);
    Scene::of(StoreContents::dead(undone), StoreContents::delivered(done)).in_parts()
}

pub(super) async fn three_dead_then_none(
    actors: &Survivors,
    victim: &WorkerId,
) -> Scene {
    bury_three(actors, victim).await;
    Scene::of(StoreContents::dead(["a", "b", "c"]), StoreContents::default()).in_parts()
}

pub(super) async fn every_place_then_none(
    actors: &Survivors,
    victim: &WorkerId,
) -> Scene {
    actors.healthy.store_plain(&["dead"]).await;
    let dead = actors.healthy.claim_for(victim, 1).await;
    actors.healthy.say(&dead, &Disposition::Dead { error: "no".to_owned() }).await;
    actors.healthy.store_plain(&["held"]).await;
    let held = actors.healthy.claim_for(victim, 1).await;
    let class = actors.class();
    let ranked = NewJob::new("ranked").priority(class.most_urgent());
    let later = NewJob::new("later").delay(DELAY).unique(key("k")).id(id("mine"));
    actors.healthy.store(&[ranked, class.fit(later)]).await;
    actors.healthy.store_plain(&["ready"]).await;
    let undone = StoreContents::delivered(["held", "ranked", "later", "ready"]);
    Scene::of(undone.and(End::Dead, ["dead"]), StoreContents::default()).held(held)
}

fn one_to_go() -> Scene {
    Scene::of(
        StoreContents::delivered(["go", "stay"]),
        StoreContents::delivered(["stay"]),
    )
}

fn to_cancel(actors: &Survivors) -> NewJob {
    actors.class().fit(NewJob::new("go").id(id("mine")).unique(key("k")))
}

pub(super) async fn ready_victim(actors: &Survivors, _: &WorkerId) -> Scene {
    actors.healthy.store(&["stay".into(), to_cancel(actors)]).await;
    one_to_go()
}

pub(super) async fn ranked_victim(actors: &Survivors, _: &WorkerId) -> Scene {
    let go = to_cancel(actors).priority(actors.class().most_urgent());
    actors.healthy.store(&["stay".into(), go]).await;
    one_to_go()
}

pub(super) async fn scheduled_victim(actors: &Survivors, _: &WorkerId) -> Scene {
    actors.healthy.store(&["stay".into(), to_cancel(actors).delay(DELAY)]).await;
    one_to_go()
}

pub(super) async fn leased_victim(actors: &Survivors, victim: &WorkerId) -> Scene {
    actors.healthy.store(&[to_cancel(actors)]).await;
    let held = actors.healthy.claim_for(victim, 1).await;
    actors.healthy.store_plain(&["stay"]).await;
    one_to_go().held(held)
}

/// Two dead jobs, one of which has an id that is remembered.
pub(super) async fn two_dead(actors: &Survivors, victim: &WorkerId) -> Scene {
    actors.healthy.store(&[NewJob::new("a").id(id("mine")), "b".into()]).await;
    let held = actors.healthy.claim_for(victim, 2).await;
    actors.healthy.say(&held, &Disposition::Dead { error: "no".to_owned() }).await;
    let done = StoreContents::delivered(["a"]).and(End::Dead, ["b"]);
    Scene::of(StoreContents::dead(["a", "b"]), done)
}

/// A scheduled job that holds a unique key.
pub(super) async fn one_to_move(actors: &Survivors, _: &WorkerId) -> Scene {
    actors.healthy.store(&[NewJob::new("a").unique(key("k")).delay(DELAY)]).await;
    Scene::unchanged(StoreContents::delivered(["a"]))
}

/// A worker holds a job that was cancelled.
pub(super) async fn cancelled_held(actors: &Survivors, victim: &WorkerId) -> Scene {
    actors.healthy.store(&[NewJob::new("go").id(id("mine"))]).await;
    let held = actors.healthy.claim_for(victim, 1).await;
    actors.healthy.cancel(&id("mine")).await.expect("the healthy actor can cancel");
    actors.healthy.store_plain(&["stay"]).await;
    Scene::unchanged(StoreContents::delivered(["stay"])).held(held)
}

/// Ids that are stored longer than they must be remembered.
pub(super) async fn old_memories(actors: &Survivors, victim: &WorkerId) -> Scene {
    actors.healthy.store(&[NewJob::new("gone").id(id("mine"))]).await;
    let held = actors.healthy.claim_for(victim, 1).await;
    actors.healthy.say(&held, &Disposition::Done).await;
    actors.clock.advance(PAST_MEMORY);
    actors.healthy.store_plain(&["a"]).await;
    Scene::unchanged(StoreContents::delivered(["a"]))
}

/// A job in each state except leased.
pub(super) async fn each_state(actors: &Survivors, victim: &WorkerId) -> Scene {
    actors.healthy.store_plain(&["dead"]).await;
    let held = actors.healthy.claim_for(victim, 1).await;
    actors.healthy.say(&held, &Disposition::Dead { error: "no".to_owned() }).await;
    actors.healthy.store(&["ready".into(), NewJob::new("later").delay(DELAY)]).await;
    Scene::unchanged(
        StoreContents::delivered(["ready", "later"]).and(End::Dead, ["dead"]),
    )
}

pub(super) fn retry(after: Duration) -> Disposition {
    Disposition::Retry { after, error: "it failed".to_owned() }
}

pub(super) fn id(text: &str) -> JobId {
    JobId::new(text).expect("the id is valid")
}

pub(super) fn key(text: &str) -> UniqueKey {
    UniqueKey::new(text).expect("the key is valid")
}
