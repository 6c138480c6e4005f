//! Calls that read the state of batches, including batches that do not exist (B6, R19,
//! R23).

use std::num::NonZeroU32;

use relq_core::{
    batch::{Added, BatchPriority, Change, NewBatch},
    operator::JobState,
};

use crate::{
    cases::batches::fixture::{batch, telling},
    cases::case,
    harness::{checks::drain, store::Store, times::HELD},
};

case!(an_unknown_batch_is_an_answer: R21 => Batches);
/// Each call about a batch that does not exist returns at once and without an error.
async fn an_unknown_batch_is_an_answer(store: &Store) {
    let actor = store.actor("maker").await;
    let (batches, none) = (actor.batches(), batch("none"));

    let added = batches.add(&none, &["a".into()], None).await;
    assert_eq!(added.expect("answered"), Added::Unknown);
    assert_eq!(batches.batch(&none).await.expect("answered"), None);
    assert_eq!(batches.seal(&none).await.expect("answered"), None);
    assert_eq!(batches.cancel_batch(&none).await.expect("answered"), None);
    let change = Change::default().priority(BatchPriority::LOWEST);
    assert_eq!(batches.alter(&none, &change).await.expect("answered"), None);
    let (waited, _) = store.within(HELD, batches.wait_batch(&none, HELD / 2)).await;
    assert_eq!(waited.expect("answered"), None);
    assert_eq!(actor.figures().await.unfinished(), 0);
}

case!(pages_show_every_batch: R23 => Batches);
/// The pages of `list_batches` contain every batch once, in the order of the batch ids.
async fn pages_show_every_batch(store: &Store) {
    let actor = store.actor("maker").await;
    let names = ["b", "a.1", "c", "A", "a-2", "0", "z_9"];
    for name in names {
        actor.make(&NewBatch::new(batch(name))).await;
    }

    let (mut seen, mut after) = (Vec::new(), None);
    let limit = NonZeroU32::new(3).expect("not zero");
    loop {
        let page = actor.batches().list_batches(after.as_ref(), limit).await;
        let page = page.expect("answered");
        after = page.last().map(|last| last.id.clone());
        seen.extend(page.iter().map(|one| one.id.to_string()));
        if page.len() < 3 {
            break;
        }
    }

    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    assert_eq!(seen, sorted);
}

case!(batches_of_queues_are_apart: R19 => Batches);
/// Batches with the same name in two queues are independent.
async fn batches_of_queues_are_apart(store: &Store) {
    if store.fit(&["jobs", "others"]).len() < 2 {
        return;
    }
    let (here, there) = (store.actor("w1").await, store.actor_on("w2", "others").await);
    let made = here.submit(&telling("b"), 2).await;
    there.make(&NewBatch::new(made.clone())).await;

    assert_eq!(there.take(5).await, []);
    there.call_off(&made).await;

    assert_eq!(drain(&here).await.len(), 3);
    assert_eq!(here.status(&made).await.done, 2);
    assert_eq!(there.status(&made).await.total, 0);
}

case!(pieces_show: R23 => Batches);
/// A peek lists the pieces of batches among the queue's other jobs. Each piece names
/// its batch.
async fn pieces_show(store: &Store) {
    let actor = store.actor("worker").await;
    let made = actor.submit(&NewBatch::new(batch("b")), 5).await;
    let held = actor.take(2).await;
    assert_eq!(held.len(), 2);

    let stats = actor.figures().await;
    assert_eq!((stats.ready, stats.leased), (3, 2));
    let (ready, leased) =
        (actor.list(JobState::Ready, 2).await, actor.list(JobState::Leased, 2).await);
    assert_eq!((ready.len(), leased.len()), (3, 2));
    for view in ready.iter().chain(&leased) {
        assert_eq!(view.batch.as_ref(), Some(&made), "{view:?}");
    }
    let status = actor.status(&made).await;
    assert_eq!((status.waiting, status.leased), (3, 2));
}

case!(a_long_page_of_batches_is_whole: R23 => Batches);
/// A page of `list_batches` is full unless it is the last one, even if it has more
/// than a thousand batches.
async fn a_long_page_of_batches_is_whole(store: &Store) {
    let actor = store.actor("maker").await;
    let many = 1005;
    for number in 0..many {
        actor.make(&NewBatch::new(batch(&format!("{number:04}")))).await;
    }

    for limit in [many - 1, many, many + 1] {
        let ask = NonZeroU32::new(limit).expect("not zero");
        let page = actor.batches().list_batches(None, ask).await.expect("answered");

        assert_eq!(page.len(), limit.min(many) as usize);
        assert!(page.is_sorted_by(|one, next| one.id < next.id));
    }
}
