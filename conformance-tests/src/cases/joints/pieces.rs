//! Batch calls that handle more pieces or batches than the backend handles in one step.

use relq_core::{
    Disposition,
    batch::{BatchId, NewBatch},
};

use super::{COUNTS, beside_joints, take_all};
use crate::{
    cases::case,
    harness::{
        checks::{drain, numbered, settle_all},
        store::Store,
    },
};

fn batch(text: &str) -> BatchId {
    BatchId::new(text).expect("cases use valid batch ids")
}

case!(a_cancelled_batch_drops_its_pieces_at_every_joint: B7 => Batches);
/// A cancelled batch of several steps drops all waiting pieces, and completes when its
/// leased pieces have ended.
async fn a_cancelled_batch_drops_its_pieces_at_every_joint(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    let batches = actor.batch_queue().expect("the backend supports batches");
    for count in COUNTS {
        let id = batch(&format!("batch-{count}"));
        batches.create(&NewBatch::new(id.clone())).await.expect("created");
        batches.add(&id, &numbered_jobs(count), None).await.expect("added");
        let kept = beside_joints(count).len();
        let mut held = take_all(&actor, count).await;
        let returned = held.split_off(kept);
        settle_all(&actor, &returned, &Disposition::GiveBack).await;

        batches.seal(&id).await.expect("sealed");
        batches.cancel_batch(&id).await.expect("cancelled");

        actor.recover_all().await;
        assert_eq!(drain(&actor).await, [], "no piece is left to be claimed");
        let status = batches.batch(&id).await.expect("read").expect("it is there");
        assert_eq!(status.leased, kept as u64, "{status:?}");
        settle_all(&actor, &held, &Disposition::Done).await;
        actor.recover_all().await;
        let status = batches.batch(&id).await.expect("read").expect("it is there");
        assert!(status.state.is_completed(), "{status:?}");
        assert_eq!(actor.figures().await.unfinished(), 0);
    }
}

case!(a_list_of_batches_has_each_once: B6 => Batches);
/// Pages of any size list each batch once, in the order of the batch ids.
async fn a_list_of_batches_has_each_once(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    let batches = actor.batch_queue().expect("the backend supports batches");
    let mut ids = Vec::new();
    for number in 0..COUNTS[3] {
        let id = batch(&format!("batch-{number:03}"));
        batches.create(&NewBatch::new(id.clone())).await.expect("created");
        ids.push(id);
    }
    for limit in COUNTS.into_iter().chain([1, 1000]) {
        let limit = u32::try_from(limit).ok().and_then(std::num::NonZeroU32::new);
        let limit = limit.expect("not zero");
        let (mut seen, mut last): (Vec<BatchId>, Option<BatchId>) = (Vec::new(), None);
        loop {
            let page =
                batches.list_batches(last.as_ref(), limit).await.expect("listed");
            let is_last = page.len() < limit.get() as usize;
            seen.extend(page.into_iter().map(|status| status.id));
            if is_last {
                break;
            }
            last = seen.last().cloned();
        }
        assert_eq!(seen, ids, "by pages of {limit}");
    }
}

fn numbered_jobs(count: usize) -> Vec<relq_core::NewJob> {
    numbered(count).into_iter().map(Into::into).collect()
}
