//! What is done while it is struck: every call of both traits.

use std::{num::NonZeroU16, time::Duration};

use queue_core::{
    Capability, Delivery, JobId, NewJob, Priority, PushToken, ReliableQueueExt,
    Settlement, UniqueKey, Verdict, Which, WorkerId,
};

use super::{
    BoxFuture,
    corners::{
        cancelled_held, each_state, old_memories, one_to_move, peek_at_each_state,
        push_that_moves, redrive_one, two_dead,
    },
    crew::{DELAY, LEASE, PAST_ALL, Sight, Stage, ask},
    outcome::{End, Outcome, Parts, Promise},
    victim::{Act, Victim},
};
use crate::Need;
use queue_core::Clock;

/// What others do while the victim acts.
pub(crate) type Meanwhile = for<'a> fn(&'a Stage, Sight) -> BoxFuture<'a, ()>;

/// An act, what comes before it, and what it promises.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) needs: &'static [Need],
    pub(crate) prepare: for<'a> fn(&'a Stage, &'a WorkerId) -> BoxFuture<'a, Scene>,
    pub(crate) act: Act,
    pub(crate) meanwhile: Meanwhile,
    pub(crate) again: Again,
    /// Whether two runs send the same commands in the same order.
    pub(crate) is_steady: bool,
}

/// Who may repeat an act whose end is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    /// Nobody: it might be done twice (R4).
    Never,
    /// Whoever got an error that says that it is safe.
    AsTheVictim,
    /// A stranger too, after a death.
    ByAnyone,
}

/// What is set before the act.
pub(crate) struct Scene {
    /// What the victim holds.
    pub(crate) held: Vec<Delivery>,
    pub(crate) promise: Promise,
}

impl Scene {
    pub(super) fn of(undone: Outcome, done: Outcome) -> Self {
        let promise = Promise { undone, done, parts: Parts::AllOrNone };
        Self { held: Vec::new(), promise }
    }

    pub(super) fn unchanged(outcome: Outcome) -> Self {
        Self { held: Vec::new(), promise: Promise::unchanged(outcome) }
    }

    pub(super) fn held(mut self, held: Vec<Delivery>) -> Self {
        self.held = held;
        self
    }

    fn in_parts(mut self) -> Self {
        self.promise.parts = Parts::EachByItself;
        self
    }
}

macro_rules! scenario {
    ($name:ident, $prepare:expr, $act:expr $(, $field:ident: $value:expr)*) => {
        Scenario {
            $($field: $value,)*
            ..Scenario {
                name: stringify!($name),
                needs: &[],
                prepare: |crew, victim| Box::pin($prepare(crew, victim)),
                act: |victim| Box::pin($act(victim)),
                meanwhile: |_, _| Box::pin(async {}),
                again: Again::AsTheVictim,
                is_steady: true,
            }
        }
    };
}

const EVERY_OPTION: &[Need] = &[
    Need::Option(Capability::Delay),
    Need::Option(Capability::Priority),
    Need::Option(Capability::Unique),
    Need::Option(Capability::Expiry),
    Need::Option(Capability::ClientIds),
];
const TOKENS: &[Need] = &[Need::Option(Capability::PushTokens)];
const DELAYS: &[Need] = &[Need::Option(Capability::Delay)];
const PRIORITIES: &[Need] = &[Need::Option(Capability::Priority)];
const WAITS: &[Need] = &[Need::Option(Capability::BlockingWait)];

pub(crate) const SCENARIOS: &[Scenario] = &[
    scenario!(push, nothing_then_a, push_one, again: Again::Never),
    scenario!(push_of_many, nothing_then_abc, push_many, again: Again::Never),
    scenario!(push_with_options, nothing_then_options, push_options,
        needs: EVERY_OPTION, again: Again::Never),
    scenario!(push_with_a_token, nothing_then_abc, push_token,
        needs: TOKENS, again: Again::ByAnyone),
    scenario!(claim, three_ready, claim_two),
    scenario!(claim_of_other_priorities, ranked_ready, claim_two, needs: PRIORITIES),
    scenario!(claim_of_what_is_due, three_due, claim_two, needs: DELAYS),
    scenario!(claim_that_waits, nothing_then_pushed, claim_waiting,
        needs: WAITS, meanwhile: push_once_held, is_steady: false),
    scenario!(claim_that_waits_in_vain, nothing_then_pushed, claim_in_vain,
        needs: WAITS, meanwhile: push_after_a_while, is_steady: false),
    scenario!(settle_done, three_held, settle_done),
    scenario!(settle_each_verdict, five_held, settle_mixed),
    scenario!(settle_what_is_tied, tied_held, settle_done, needs: EVERY_OPTION),
    scenario!(turn, two_ready_one_held, turn),
    scenario!(extend, held_unchanged, extend),
    scenario!(leave, held_unchanged, leave),
    scenario!(recover, three_overdue, recover),
    scenario!(recover_what_is_due, three_due, recover, needs: DELAYS),
    scenario!(redrive, three_dead, redrive),
    scenario!(purge_the_dead, three_dead_then_none, purge_dead),
    scenario!(purge, every_place_then_none, purge, needs: EVERY_OPTION),
    scenario!(pause, three_ready, pause),
    scenario!(resume, three_paused, resume),
    scenario!(cancel_a_ready_job, ready_victim, cancel, needs: EVERY_OPTION),
    scenario!(cancel_a_scheduled_job, scheduled_victim, cancel, needs: EVERY_OPTION),
    scenario!(cancel_a_leased_job, leased_victim, cancel, needs: EVERY_OPTION),
    scenario!(cancel_a_ranked_job, ranked_victim, cancel, needs: EVERY_OPTION),
    scenario!(look, held_unchanged, look),
    scenario!(redrive_by_id, two_dead, redrive_one, needs: EVERY_OPTION),
    scenario!(push_that_moves_another, one_to_move, push_that_moves,
        needs: EVERY_OPTION),
    scenario!(extend_what_was_cancelled, cancelled_held, extend, needs: EVERY_OPTION),
    scenario!(recover_with_old_memories, old_memories, recover, needs: EVERY_OPTION),
    scenario!(peek_at_each_state, each_state, peek_at_each_state, needs: DELAYS),
];

// What comes before.

async fn nothing_then_a(_: &Stage, _: &WorkerId) -> Scene {
    Scene::of(Outcome::default(), Outcome::delivered(["a"]))
}

async fn nothing_then_abc(_: &Stage, _: &WorkerId) -> Scene {
    Scene::of(Outcome::default(), Outcome::delivered(["a", "b", "c"]))
}

async fn nothing_then_options(_: &Stage, _: &WorkerId) -> Scene {
    let done = Outcome::delivered(["later", "ranked", "unique", "id"]);
    Scene::of(Outcome::default(), done.and(End::Dead, ["expired"]))
}

async fn nothing_then_pushed(_: &Stage, _: &WorkerId) -> Scene {
    Scene::unchanged(Outcome::delivered(["a"]))
}

async fn three_ready(crew: &Stage, _: &WorkerId) -> Scene {
    crew.hand.store_plain(&["a", "b", "c"]).await;
    Scene::unchanged(Outcome::delivered(["a", "b", "c"]))
}

async fn ranked_ready(crew: &Stage, _: &WorkerId) -> Scene {
    let ranked = |payload, priority| NewJob::new(payload).priority(priority);
    let jobs = [ranked("a", Priority::HIGHEST), ranked("b", Priority::LOWEST)];
    crew.hand.store(&jobs).await;
    crew.hand.store_plain(&["c"]).await;
    Scene::unchanged(Outcome::delivered(["a", "b", "c"]))
}

async fn three_due(crew: &Stage, _: &WorkerId) -> Scene {
    let jobs = ["a", "b", "c"].map(|payload| NewJob::new(payload).delay(DELAY));
    crew.hand.store(&jobs).await;
    crew.clock.advance(DELAY);
    Scene::unchanged(Outcome::delivered(["a", "b", "c"]))
}

async fn three_paused(crew: &Stage, victim: &WorkerId) -> Scene {
    crew.hand.pause().await.expect("the hand can pause");
    three_ready(crew, victim).await
}

async fn three_held(crew: &Stage, victim: &WorkerId) -> Scene {
    crew.hand.store_plain(&["a", "b", "c"]).await;
    let held = crew.hand.claim_for(victim, 3).await;
    Scene::of(Outcome::delivered(["a", "b", "c"]), Outcome::default()).held(held)
}

async fn held_unchanged(crew: &Stage, victim: &WorkerId) -> Scene {
    crew.hand.store_plain(&["a", "b", "c"]).await;
    let held = crew.hand.claim_for(victim, 3).await;
    Scene::unchanged(Outcome::delivered(["a", "b", "c"])).held(held)
}

async fn five_held(crew: &Stage, victim: &WorkerId) -> Scene {
    crew.hand.store_plain(&["done", "retry", "dead", "discard", "back"]).await;
    let held = crew.hand.claim_for(victim, 5).await;
    let undone = Outcome::delivered(["done", "retry", "dead", "discard", "back"]);
    let done = Outcome::delivered(["retry", "back"]).and(End::Dead, ["dead"]);
    Scene::of(undone, done).held(held).in_parts()
}

async fn tied_held(crew: &Stage, victim: &WorkerId) -> Scene {
    let jobs = [
        NewJob::new("unique").unique(key("k")).expires_in(20 * LEASE),
        NewJob::new("id").id(id("mine")),
    ];
    crew.hand.store(&jobs).await;
    crew.hand.store_plain(&["failed"]).await;
    let failed = crew.hand.claim_for(victim, 3).await;
    crew.hand.say(&failed, &retry(Duration::ZERO)).await;
    let held = crew.hand.claim_for(victim, 3).await;
    let undone = Outcome::delivered(["unique", "id", "failed"]);
    Scene::of(undone, Outcome::default()).held(held)
}

async fn two_ready_one_held(crew: &Stage, victim: &WorkerId) -> Scene {
    crew.hand.store_plain(&["a", "b", "c"]).await;
    let held = crew.hand.claim_for(victim, 1).await;
    let (undone, done) = (["a", "b", "c"], ["b", "c"]);
    Scene::of(Outcome::delivered(undone), Outcome::delivered(done)).held(held)
}

/// One of the dead worker's jobs was on its last attempt.
async fn three_overdue(crew: &Stage, _: &WorkerId) -> Scene {
    let last = NewJob::new("c").max_attempts(NonZeroU16::MIN);
    crew.hand.store(&["a".into(), "b".into(), last]).await;
    let gone = WorkerId::new("gone").expect("the name is valid");
    crew.hand.claim_for(&gone, 3).await;
    crew.clock.advance(PAST_ALL);
    Scene::unchanged(Outcome::delivered(["a", "b"]).and(End::Dead, ["c"]))
}

async fn bury_three(crew: &Stage, victim: &WorkerId) {
    crew.hand.store_plain(&["a", "b", "c"]).await;
    let held = crew.hand.claim_for(victim, 3).await;
    crew.hand.say(&held, &Verdict::Dead { error: "no".to_owned() }).await;
}

async fn three_dead(crew: &Stage, victim: &WorkerId) -> Scene {
    bury_three(crew, victim).await;
    let (undone, done) = (["a", "b", "c"], ["a", "b", "c"]);
    Scene::of(Outcome::dead(undone), Outcome::delivered(done)).in_parts()
}

async fn three_dead_then_none(crew: &Stage, victim: &WorkerId) -> Scene {
    bury_three(crew, victim).await;
    Scene::of(Outcome::dead(["a", "b", "c"]), Outcome::default()).in_parts()
}

async fn every_place_then_none(crew: &Stage, victim: &WorkerId) -> Scene {
    crew.hand.store_plain(&["dead", "held"]).await;
    let mut held = crew.hand.claim_for(victim, 2).await;
    let dead = held.remove(0);
    crew.hand.say(&[dead], &Verdict::Dead { error: "no".to_owned() }).await;
    let ranked = NewJob::new("ranked").priority(Priority::HIGHEST);
    let later = NewJob::new("later").delay(DELAY).unique(key("k")).id(id("mine"));
    crew.hand.store(&[ranked, later]).await;
    crew.hand.store_plain(&["ready"]).await;
    let undone = Outcome::delivered(["held", "ranked", "later", "ready"]);
    Scene::of(undone.and(End::Dead, ["dead"]), Outcome::default()).held(held)
}

fn one_to_go() -> Scene {
    Scene::of(Outcome::delivered(["go", "stay"]), Outcome::delivered(["stay"]))
}

fn to_cancel() -> NewJob {
    NewJob::new("go").id(id("mine")).unique(key("k"))
}

async fn ready_victim(crew: &Stage, _: &WorkerId) -> Scene {
    crew.hand.store(&["stay".into(), to_cancel()]).await;
    one_to_go()
}

async fn ranked_victim(crew: &Stage, _: &WorkerId) -> Scene {
    let go = to_cancel().priority(Priority::HIGHEST);
    crew.hand.store(&["stay".into(), go]).await;
    one_to_go()
}

async fn scheduled_victim(crew: &Stage, _: &WorkerId) -> Scene {
    crew.hand.store(&["stay".into(), to_cancel().delay(DELAY)]).await;
    one_to_go()
}

async fn leased_victim(crew: &Stage, victim: &WorkerId) -> Scene {
    crew.hand.store(&[to_cancel()]).await;
    let held = crew.hand.claim_for(victim, 1).await;
    crew.hand.store_plain(&["stay"]).await;
    one_to_go().held(held)
}

// What is done.

pub(super) type Done = Result<(), queue_core::Error>;

async fn push_one(victim: Victim) -> Done {
    victim.queue.push_one(NewJob::new("a")).await.map(drop)
}

async fn push_many(victim: Victim) -> Done {
    let jobs = ["a", "b", "c"].map(NewJob::new);
    victim.queue.push(&jobs, None).await.map(drop)
}

async fn push_options(victim: Victim) -> Done {
    let jobs = [
        NewJob::new("later").delay(DELAY),
        NewJob::new("ranked").priority(Priority::HIGHEST).header("name", "value"),
        NewJob::new("unique").unique(key("k")),
        NewJob::new("id").id(id("mine")).lease(LEASE / 2),
        NewJob::new("expired").expires_in(Duration::from_millis(1)),
    ];
    victim.queue.push(&jobs, None).await.map(drop)
}

async fn push_token(victim: Victim) -> Done {
    let token = PushToken::new("call").expect("the token is valid");
    let jobs = ["a", "b", "c"].map(NewJob::new);
    victim.queue.push(&jobs, Some(&token)).await.map(drop)
}

async fn claim_two(victim: Victim) -> Done {
    victim.queue.claim(&ask(&victim.worker, 2)).await.map(drop)
}

async fn claim_waiting(victim: Victim) -> Done {
    let ask = ask(&victim.worker, 2).wait(LEASE);
    victim.queue.claim(&ask).await.map(drop)
}

/// How long a claim waits that waits in vain.
const BRIEFLY: Duration = Duration::from_millis(100);

/// What is pushed when nobody listens any more is not held back by who listened.
async fn claim_in_vain(victim: Victim) -> Done {
    let briefly = ask(&victim.worker, 1).wait(BRIEFLY);
    victim.queue.claim(&briefly).await?;
    victim.clock.sleep(2 * BRIEFLY).await;
    let patiently = ask(&victim.worker, 1).wait(LEASE);
    victim.queue.claim(&patiently).await.map(drop)
}

/// Pushes once the victim's claim has given up.
fn push_after_a_while(crew: &Stage, victim: Sight) -> BoxFuture<'_, ()> {
    Box::pin(async move {
        tokio::select! {
            () = victim.gone => {}
            () = crew.clock.sleep(BRIEFLY + Duration::from_millis(1)) => {}
        }
        crew.hand.store_plain(&["a"]).await;
    })
}

/// Pushes once the victim's claim waits at the server, or cannot any more.
fn push_once_held(crew: &Stage, victim: Sight) -> BoxFuture<'_, ()> {
    Box::pin(async move {
        tokio::select! {
            () = victim.held => {}
            () = victim.gone => {}
            () = crew.clock.asleep(1) => {}
        }
        crew.hand.store_plain(&["a"]).await;
    })
}

async fn settle_done(victim: Victim) -> Done {
    let done: Vec<_> = victim
        .held
        .iter()
        .map(|one| Settlement::new(one.receipt.clone(), Verdict::Done))
        .collect();
    victim.queue.settle(&done).await.map(drop)
}

async fn settle_mixed(victim: Victim) -> Done {
    let verdicts = [
        Verdict::Done,
        retry(DELAY),
        Verdict::Dead { error: "no".to_owned() },
        Verdict::Discard,
        Verdict::GiveBack,
    ];
    let receipts = victim.held.iter().map(|one| one.receipt.clone());
    let mixed: Vec<_> =
        receipts.zip(verdicts).map(|(r, v)| Settlement::new(r, v)).collect();
    victim.queue.settle(&mixed).await.map(drop)
}

async fn turn(victim: Victim) -> Done {
    let done = [Settlement::new(victim.held[0].receipt.clone(), Verdict::Done)];
    let turn = victim.queue.turn(&done, &ask(&victim.worker, 1)).await;
    turn.settled.map(drop)
}

async fn extend(victim: Victim) -> Done {
    let held: Vec<_> = victim.held.iter().map(|one| one.receipt.clone()).collect();
    victim.queue.extend(&victim.worker, &held, LEASE).await.map(drop)
}

async fn leave(victim: Victim) -> Done {
    victim.queue.leave(&victim.worker).await.map(drop)
}

async fn recover(victim: Victim) -> Done {
    let page = std::num::NonZeroU32::new(100).expect("not zero");
    victim.queue.recover(page).await.map(drop)
}

async fn redrive(victim: Victim) -> Done {
    victim.queue.redrive(&Which::All).await.map(drop)
}

async fn purge_dead(victim: Victim) -> Done {
    victim.queue.purge_dead(&Which::All).await.map(drop)
}

async fn purge(victim: Victim) -> Done {
    victim.queue.purge().await.map(drop)
}

async fn pause(victim: Victim) -> Done {
    victim.queue.pause().await
}

async fn resume(victim: Victim) -> Done {
    victim.queue.resume().await
}

async fn cancel(victim: Victim) -> Done {
    victim.queue.cancel(&id("mine")).await.map(drop)
}

async fn look(victim: Victim) -> Done {
    victim.queue.stats().await?;
    victim.queue.audit().await.map(drop)
}

fn retry(after: Duration) -> Verdict {
    Verdict::Retry { after, error: "it failed".to_owned() }
}

pub(super) fn id(text: &str) -> JobId {
    JobId::new(text).expect("the id is valid")
}

pub(super) fn key(text: &str) -> UniqueKey {
    UniqueKey::new(text).expect("the key is valid")
}
