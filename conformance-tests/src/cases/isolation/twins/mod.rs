//! Two queues of one file have the same contents. No call on one of them changes the other,
//! or shows it (R19).
//!
//! ```text
//!  queue a                         queue b
//!  is filled                       is filled in the same way
//!  every call, then a purge        stays as it is
//!  is empty                        every call: the answers are those of a
//! ```
//!
//! A call that reaches the other queue finds something when it is made on a, beside a full
//! queue, and nothing when it is made on b, beside an empty one. So the case need not know
//! what each call answers.
//!
//! On Redis every key begins with the name of its queue, which the suite checks after each
//! case.

mod calls;
mod contents;

use std::{fmt::Debug, num::NonZeroU32, time::Duration};

use relq_core::Receipt;

use crate::{
    cases::case,
    harness::{actor::Actor, checks::id, store::Store},
    spec::operation::STATES,
};
use contents::{BATCHES, IDS, batch};

/// Longer than all brief times of the contents.
const PAST_BRIEF_TIMES: Duration = Duration::from_secs(2);

/// One of the queues.
struct Twin {
    /// Its steps are small, so that some calls take several of them.
    actor: Actor,
    /// The receipts of leased jobs, the first of which was cancelled.
    held: Vec<Receipt>,
    /// The answer of each call, and the contents of the queue that were read meanwhile.
    answers: Vec<String>,
}

case!(no_call_changes_or_shows_another_queue: R19
    => ClientIds PushTokens Delay Priority Unique Results Followers Schedules Inspect
    @ embedded);
/// Every call on a queue answers as it does beside an empty queue, and leaves a queue with
/// the same contents as it is.
async fn no_call_changes_or_shows_another_queue(store: &Store) {
    // All times of the two queues are the same.
    store.stop_clock();
    let mut one = Twin::filled(store, "a").await;
    let mut other = Twin::filled(store, "b").await;
    store.advance(PAST_BRIEF_TIMES).await;
    let before = other.seen().await;

    one.call_all(&other).await;

    assert_same("a call on queue a changed b", &other.seen().await, &before);
    other.call_all(&one).await;
    let rule =
        "a call answered on a, beside the full queue b, and on b, beside an empty one";
    assert_same(rule, &one.answers, &other.answers);
}

/// Asserts that both lists are the same. The message has the first difference alone.
#[track_caller]
fn assert_same(what: &str, got: &[String], wanted: &[String]) {
    let difference = got.iter().zip(wanted).find(|(got, wanted)| got != wanted);
    assert_eq!(difference, None, "R19: {what}");
    assert_eq!(got.len(), wanted.len(), "R19: {what}");
}

impl Twin {
    async fn filled(store: &Store, queue: &str) -> Self {
        let actor = store.actor_in_steps_on("worker", queue).await;
        let mut twin = Self { actor, held: Vec::new(), answers: Vec::new() };
        twin.fill().await;
        twin
    }

    /// Notes what a call answered.
    fn note(&mut self, call: &str, answer: &impl Debug) {
        self.answers.push(format!("{call}: {answer:?}"));
    }

    /// Notes all that can be read of the queue.
    async fn look(&mut self, moment: &str) {
        let seen = self.seen().await.into_iter();
        self.answers.extend(seen.map(|line| format!("after {moment}: {line}")));
    }

    /// All that can be read of the queue.
    async fn seen(&self) -> Vec<String> {
        let actor = &self.actor;
        let mut seen = vec![format!("{:?}", actor.figures().await)];
        for state in STATES {
            let lists = [actor.list(state, 3).await, actor.list_newest(state, 3).await];
            seen.extend(lists.iter().flatten().map(|job| format!("{job:?}")));
        }
        for name in IDS {
            let found = actor.look_up(&id(name)).await;
            seen.push(format!("{name}: {found:?}"));
        }
        let results = actor.result_queue().expect("the backend keeps results");
        let told = results.read_results(&IDS.map(id)).await.expect("answered");
        seen.extend(IDS.iter().zip(told).map(|of| format!("the result of {of:?}")));
        seen.push(format!("{:?}", actor.workers_by(3).await));
        let schedules = actor.schedule_queue().expect("the backend has schedules");
        seen.push(format!("{:?}", schedules.schedules().await.expect("answered")));
        if let Some(batches) = actor.batch_queue() {
            let page = NonZeroU32::new(100).expect("not zero");
            let listed = batches.list_batches(None, page).await.expect("answered");
            seen.extend(listed.iter().map(|batch| format!("{batch:?}")));
            for name in BATCHES {
                let status = batches.batch(&batch(name)).await.expect("answered");
                seen.push(format!("batch {name}: {status:?}"));
            }
        }
        seen
    }
}
