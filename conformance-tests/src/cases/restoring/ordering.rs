//! The order of restored jobs (R34).

use relq_core::{
    Priority,
    operator::{JobState, Selection},
};

use super::fixture::{was_dead, was_ready, was_scheduled, yesterday};
use crate::{
    cases::{case, times::now},
    harness::{
        checks::{dead, listed, payloads},
        restorer::but,
        store::Store,
        times::LIFE,
    },
};

const NAMES: [&str; 5] = ["e", "a", "d", "b", "c"];

case!(ready_jobs_keep_the_order_of_the_call: R34 R13 => Restore Fifo);
/// Ready jobs come behind those that are ready, in the order of the call.
async fn ready_jobs_keep_the_order_of_the_call(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("first").await;

    actor.restore_all(&NAMES.map(was_ready)).await;
    actor.store_one("last").await;

    let served = payloads(&actor.take(10).await);
    assert_eq!(served, ["first", "e", "a", "d", "b", "c", "last"], "R34");
}

case!(restored_jobs_have_their_priorities: R34 R15 => Restore Priority Fifo);
/// More urgent jobs come first, and those of one priority in the order of the call.
async fn restored_jobs_have_their_priorities(store: &Store) {
    let actor = store.actor("worker").await;
    let class = actor.class();
    let at = |priority: Priority| {
        move |name: &str| but(was_ready(name), |it| it.priority = priority)
    };
    let (low, high) = (at(class.least_urgent()), at(class.most_urgent()));

    actor.restore_all(&[low("c"), high("b"), low("d"), high("a")]).await;

    assert_eq!(payloads(&actor.take(10).await), ["b", "a", "c", "d"], "R34");
}

case!(due_jobs_come_before_restored_ones: R34 R13 => Restore Delay Fifo);
/// A job that was due before the call comes before the jobs that it restores, unless it
/// has not been made ready yet: then it comes when that is done.
async fn due_jobs_come_before_restored_ones(store: &Store) {
    let actor = store.actor("worker").await;
    actor.restore_all(&[was_scheduled("due", yesterday(store))]).await;
    actor.recover_all().await;

    actor.restore_all(&[was_ready("restored")]).await;

    assert_eq!(payloads(&actor.take(10).await), ["due", "restored"], "R13");
}

case!(equal_due_times_keep_the_order_of_the_call: R34 R13 => Restore Delay Fifo);
/// Jobs that are due in the same millisecond are listed and delivered in the order of the
/// call, and jobs that are due earlier come before them.
async fn equal_due_times_keep_the_order_of_the_call(store: &Store) {
    let actor = store.actor("worker").await;
    let due = now(store).plus(LIFE);
    let mut jobs: Vec<_> = NAMES.map(|name| was_scheduled(name, due)).into();
    jobs.push(was_scheduled("early", now(store).plus(LIFE / 2)));

    actor.restore_all(&jobs).await;

    let wanted = ["early", "e", "a", "d", "b", "c"];
    assert_eq!(listed(&actor.list(JobState::Scheduled, 2).await), wanted, "R34");
    store.advance(2 * LIFE).await;
    actor.recover_all().await;
    assert_eq!(payloads(&actor.take(10).await), wanted, "R34");
}

case!(dead_jobs_keep_the_order_of_their_deaths: R34 R13 => Restore Fifo);
/// Dead jobs are listed and redriven in the order of their deaths, and those of one
/// millisecond in the order of the call. A job that dies now comes behind them.
async fn dead_jobs_keep_the_order_of_their_deaths(store: &Store) {
    let actor = store.actor("worker").await;
    let since = yesterday(store);
    let mut jobs: Vec<_> = NAMES.map(|name| was_dead(name, since.plus(LIFE))).into();
    jobs.push(was_dead("early", since));
    actor.store_one("now").await;
    actor.say(&actor.take_one().await, dead("never")).await;

    actor.restore_all(&jobs).await;

    let wanted = ["early", "e", "a", "d", "b", "c", "now"];
    assert_eq!(listed(&actor.list(JobState::Dead, 2).await), wanted, "R34");
    actor.redrive(&Selection::All).await.expect("answered");
    assert_eq!(payloads(&actor.take(10).await), wanted, "R34");
}
