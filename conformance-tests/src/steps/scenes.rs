//! What comes before each act: the store as its victim finds it.

use std::{num::NonZeroU16, time::Duration};

use queue_core::{Delivery, JobId, NewJob, UniqueKey, Verdict, WorkerId};

use super::{
    crew::{DELAY, LEASE, PAST_ALL, Stage},
    outcome::{End, Outcome, Parts, Promise},
    victim::Ran,
};
use crate::class::Class;

pub(super) use super::batch_scenes::*;

/// Longer than anything is remembered (R4).
const PAST_MEMORY: Duration = Duration::from_secs(6 * 60);

/// What is set before the act.
pub(crate) struct Scene {
    /// What the victim holds.
    pub(crate) held: Vec<Delivery>,
    pub(crate) promise: Promise,
    /// Where the victim says what it runs.
    pub(crate) ran: Ran,
}

impl Scene {
    pub(super) fn of(undone: Outcome, done: Outcome) -> Self {
        let promise = Promise { undone, done, parts: Parts::AllOrNone };
        Self::promising(promise)
    }

    pub(super) fn unchanged(outcome: Outcome) -> Self {
        Self::promising(Promise::unchanged(outcome))
    }

    fn promising(promise: Promise) -> Self {
        Self { held: Vec::new(), promise, ran: Ran::default() }
    }

    pub(super) fn held(mut self, held: Vec<Delivery>) -> Self {
        self.held = held;
        self
    }

    pub(super) fn in_parts(mut self) -> Self {
        self.promise.parts = Parts::EachByItself;
        self
    }
}

pub(super) async fn nothing_then_a(_: &Stage, _: &WorkerId) -> Scene {
    Scene::of(Outcome::default(), Outcome::delivered(["a"]))
}

pub(super) async fn nothing_then_abc(_: &Stage, _: &WorkerId) -> Scene {
    Scene::of(Outcome::default(), Outcome::delivered(["a", "b", "c"]))
}

/// A job with each of the options, as far as they are claimed.
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

pub(super) async fn nothing_then_options(crew: &Stage, _: &WorkerId) -> Scene {
    let mut done = Outcome::default();
    for job in options(&crew.class()) {
        let end = if job.expires_in.is_some() { End::Dead } else { End::Delivered };
        done.add(job.payload, end);
    }
    Scene::of(Outcome::default(), done)
}

pub(super) async fn nothing_then_pushed(_: &Stage, _: &WorkerId) -> Scene {
    Scene::unchanged(Outcome::delivered(["a"]))
}

pub(super) async fn three_ready(crew: &Stage, _: &WorkerId) -> Scene {
    crew.hand.store_plain(&["a", "b", "c"]).await;
    Scene::unchanged(Outcome::delivered(["a", "b", "c"]))
}

pub(super) async fn three_to_run(crew: &Stage, _: &WorkerId) -> Scene {
    crew.hand.store_plain(&["a", "b", "c"]).await;
    Scene::promising(Promise::run(["a", "b", "c"]))
}

pub(super) async fn ranked_ready(crew: &Stage, _: &WorkerId) -> Scene {
    let ranked = |payload, priority| NewJob::new(payload).priority(priority);
    let class = crew.class();
    let jobs = [ranked("a", class.most_urgent()), ranked("b", class.least_urgent())];
    crew.hand.store(&jobs).await;
    crew.hand.store_plain(&["c"]).await;
    Scene::unchanged(Outcome::delivered(["a", "b", "c"]))
}

pub(super) async fn three_due(crew: &Stage, _: &WorkerId) -> Scene {
    let jobs = ["a", "b", "c"].map(|payload| NewJob::new(payload).delay(DELAY));
    crew.hand.store(&jobs).await;
    crew.clock.advance(DELAY);
    Scene::unchanged(Outcome::delivered(["a", "b", "c"]))
}

pub(super) async fn three_paused(crew: &Stage, victim: &WorkerId) -> Scene {
    crew.hand.pause().await.expect("the hand can pause");
    three_ready(crew, victim).await
}

pub(super) async fn three_held(crew: &Stage, victim: &WorkerId) -> Scene {
    crew.hand.store_plain(&["a", "b", "c"]).await;
    let held = crew.hand.claim_for(victim, 3).await;
    Scene::of(Outcome::delivered(["a", "b", "c"]), Outcome::default()).held(held)
}

pub(super) async fn held_unchanged(crew: &Stage, victim: &WorkerId) -> Scene {
    crew.hand.store_plain(&["a", "b", "c"]).await;
    let held = crew.hand.claim_for(victim, 3).await;
    Scene::unchanged(Outcome::delivered(["a", "b", "c"])).held(held)
}

pub(super) async fn five_held(crew: &Stage, victim: &WorkerId) -> Scene {
    let jobs = ["done", "retry", "dead", "discard", "back"];
    crew.hand.store_plain(&jobs).await;
    let mut held = crew.hand.claim_for(victim, 5).await;
    // In the order of the verdicts, whatever that of the claim.
    held.sort_by_key(|one| jobs.iter().position(|job| one.payload == job));
    let undone = Outcome::delivered(jobs);
    let done = Outcome::delivered(["retry", "back"]).and(End::Dead, ["dead"]);
    Scene::of(undone, done).held(held).in_parts()
}

pub(super) async fn tied_held(crew: &Stage, victim: &WorkerId) -> Scene {
    let jobs = [
        NewJob::new("unique").unique(key("k")).expires_in(20 * LEASE),
        NewJob::new("id").id(id("mine")),
    ];
    crew.hand.store(&jobs.map(|job| crew.class().fit(job))).await;
    crew.hand.store_plain(&["failed"]).await;
    let failed = crew.hand.claim_for(victim, 3).await;
    crew.hand.say(&failed, &retry(Duration::ZERO)).await;
    let held = crew.hand.claim_for(victim, 3).await;
    let undone = Outcome::delivered(["unique", "id", "failed"]);
    Scene::of(undone, Outcome::default()).held(held)
}

pub(super) async fn two_ready_one_held(crew: &Stage, victim: &WorkerId) -> Scene {
    crew.hand.store_plain(&["a", "b", "c"]).await;
    let held = crew.hand.claim_for(victim, 1).await;
    let undone = Outcome::delivered(["a", "b", "c"]);
    let done = undone.clone().without(&held[0].payload);
    Scene::of(undone, done).held(held)
}

/// One of the dead worker's jobs was on its last attempt.
pub(super) async fn three_overdue(crew: &Stage, _: &WorkerId) -> Scene {
    let last = NewJob::new("c").max_attempts(NonZeroU16::MIN);
    crew.hand.store(&["a".into(), "b".into(), last]).await;
    let gone = WorkerId::new("gone").expect("the name is valid");
    crew.hand.claim_for(&gone, 3).await;
    crew.clock.advance(PAST_ALL);
    Scene::unchanged(Outcome::delivered(["a", "b"]).and(End::Dead, ["c"]))
}

pub(super) async fn bury_three(crew: &Stage, victim: &WorkerId) {
    crew.hand.store_plain(&["a", "b", "c"]).await;
    let held = crew.hand.claim_for(victim, 3).await;
    crew.hand.say(&held, &Verdict::Dead { error: "no".to_owned() }).await;
}

pub(super) async fn three_dead(crew: &Stage, victim: &WorkerId) -> Scene {
    bury_three(crew, victim).await;
    let (undone, done) = (["a", "b", "c"], ["a", "b", "c"]);
    Scene::of(Outcome::dead(undone), Outcome::delivered(done)).in_parts()
}

pub(super) async fn three_dead_then_none(crew: &Stage, victim: &WorkerId) -> Scene {
    bury_three(crew, victim).await;
    Scene::of(Outcome::dead(["a", "b", "c"]), Outcome::default()).in_parts()
}

pub(super) async fn every_place_then_none(crew: &Stage, victim: &WorkerId) -> Scene {
    crew.hand.store_plain(&["dead"]).await;
    let dead = crew.hand.claim_for(victim, 1).await;
    crew.hand.say(&dead, &Verdict::Dead { error: "no".to_owned() }).await;
    crew.hand.store_plain(&["held"]).await;
    let held = crew.hand.claim_for(victim, 1).await;
    let class = crew.class();
    let ranked = NewJob::new("ranked").priority(class.most_urgent());
    let later = NewJob::new("later").delay(DELAY).unique(key("k")).id(id("mine"));
    crew.hand.store(&[ranked, class.fit(later)]).await;
    crew.hand.store_plain(&["ready"]).await;
    let undone = Outcome::delivered(["held", "ranked", "later", "ready"]);
    Scene::of(undone.and(End::Dead, ["dead"]), Outcome::default()).held(held)
}

fn one_to_go() -> Scene {
    Scene::of(Outcome::delivered(["go", "stay"]), Outcome::delivered(["stay"]))
}

fn to_cancel(crew: &Stage) -> NewJob {
    crew.class().fit(NewJob::new("go").id(id("mine")).unique(key("k")))
}

pub(super) async fn ready_victim(crew: &Stage, _: &WorkerId) -> Scene {
    crew.hand.store(&["stay".into(), to_cancel(crew)]).await;
    one_to_go()
}

pub(super) async fn ranked_victim(crew: &Stage, _: &WorkerId) -> Scene {
    let go = to_cancel(crew).priority(crew.class().most_urgent());
    crew.hand.store(&["stay".into(), go]).await;
    one_to_go()
}

pub(super) async fn scheduled_victim(crew: &Stage, _: &WorkerId) -> Scene {
    crew.hand.store(&["stay".into(), to_cancel(crew).delay(DELAY)]).await;
    one_to_go()
}

pub(super) async fn leased_victim(crew: &Stage, victim: &WorkerId) -> Scene {
    crew.hand.store(&[to_cancel(crew)]).await;
    let held = crew.hand.claim_for(victim, 1).await;
    crew.hand.store_plain(&["stay"]).await;
    one_to_go().held(held)
}

/// Two dead jobs, of which one has an id that is known.
pub(super) async fn two_dead(crew: &Stage, victim: &WorkerId) -> Scene {
    crew.hand.store(&[NewJob::new("a").id(id("mine")), "b".into()]).await;
    let held = crew.hand.claim_for(victim, 2).await;
    crew.hand.say(&held, &Verdict::Dead { error: "no".to_owned() }).await;
    let done = Outcome::delivered(["a"]).and(End::Dead, ["b"]);
    Scene::of(Outcome::dead(["a", "b"]), done)
}

/// A scheduled job that holds a unique key.
pub(super) async fn one_to_move(crew: &Stage, _: &WorkerId) -> Scene {
    crew.hand.store(&[NewJob::new("a").unique(key("k")).delay(DELAY)]).await;
    Scene::unchanged(Outcome::delivered(["a"]))
}

/// A worker that holds a job that somebody cancelled.
pub(super) async fn cancelled_held(crew: &Stage, victim: &WorkerId) -> Scene {
    crew.hand.store(&[NewJob::new("go").id(id("mine"))]).await;
    let held = crew.hand.claim_for(victim, 1).await;
    crew.hand.cancel(&id("mine")).await.expect("the hand can cancel");
    crew.hand.store_plain(&["stay"]).await;
    Scene::unchanged(Outcome::delivered(["stay"])).held(held)
}

/// Ids that need not be remembered any longer.
pub(super) async fn old_memories(crew: &Stage, victim: &WorkerId) -> Scene {
    crew.hand.store(&[NewJob::new("gone").id(id("mine"))]).await;
    let held = crew.hand.claim_for(victim, 1).await;
    crew.hand.say(&held, &Verdict::Done).await;
    crew.clock.advance(PAST_MEMORY);
    crew.hand.store_plain(&["a"]).await;
    Scene::unchanged(Outcome::delivered(["a"]))
}

/// A job in each state but leased.
pub(super) async fn each_state(crew: &Stage, victim: &WorkerId) -> Scene {
    crew.hand.store_plain(&["dead"]).await;
    let held = crew.hand.claim_for(victim, 1).await;
    crew.hand.say(&held, &Verdict::Dead { error: "no".to_owned() }).await;
    crew.hand.store(&["ready".into(), NewJob::new("later").delay(DELAY)]).await;
    Scene::unchanged(Outcome::delivered(["ready", "later"]).and(End::Dead, ["dead"]))
}

pub(super) fn retry(after: Duration) -> Verdict {
    Verdict::Retry { after, error: "it failed".to_owned() }
}

pub(super) fn id(text: &str) -> JobId {
    JobId::new(text).expect("the id is valid")
}

pub(super) fn key(text: &str) -> UniqueKey {
    UniqueKey::new(text).expect("the key is valid")
}
