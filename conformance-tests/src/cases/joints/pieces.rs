//! Batch calls that handle more pieces or batches than the backend handles in one step.

use std::time::Duration;

use relq_core::{
    Disposition, NewJob, Settlement,
    batch::{BatchId, NewBatch, OnComplete},
};

use super::{COUNTS, assert_in_order, beside_joints, take_all};
use crate::{
    cases::case,
    harness::{
        checks::{assert_applied, drain, numbered, payloads, settle_all},
        store::Store,
        times::{BRIEF, PAST_BRIEF},
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

case!(a_completion_leaves_due_jobs_in_their_order: B5 R13 R14 => Batches Delay);
/// Due jobs of several steps become ready in the order of their pushes, also where the call
/// that claims the first of them also retries a job and completes a batch.
async fn a_completion_leaves_due_jobs_in_their_order(store: &Store) {
    const LATER: Duration = Duration::from_secs(3600);
    let actor = store.actor_in_steps("worker").await;
    let batches = actor.batch_queue().expect("the backend supports batches");
    for count in COUNTS {
        let id = batch(&format!("batch-{count}"));
        let told = OnComplete::new(NewJob::new("complete"));
        batches
            .create(&NewBatch::new(id.clone()).on_complete(told))
            .await
            .expect("created");
        batches.add(&id, &["piece".into()], None).await.expect("added");
        batches.seal(&id).await.expect("sealed");
        actor.store_one("retried").await;
        let mut held = take_all(&actor, 2).await;
        held.sort_by_key(|one| one.batch.is_some());
        store.stop_clock();
        let delayed =
            numbered(count).into_iter().map(|one| NewJob::new(one).delay(BRIEF));
        actor.store(delayed).await;
        store.advance(PAST_BRIEF).await;

        let retry = Disposition::Retry { after: LATER, error: "again".to_owned() };
        let ends = held.into_iter().zip([retry, Disposition::Done]);
        let ends = ends.map(|(one, end)| Settlement::new(one.receipt, end));
        let ends: Vec<_> = ends.collect();
        let both = actor.settle_and_claim(&ends, &actor.ask(1)).await;

        assert_applied(&both.settled.expect("settled"));
        let mut got = both.claimed.expect("claimed");
        assert_applied(&settle_all(&actor, &got, &Disposition::Done).await);
        got.extend(drain(&actor).await);
        let (told, due): (Vec<_>, Vec<_>) =
            payloads(&got).into_iter().partition(|payload| payload == "complete");
        assert_eq!(told.len(), 1, "B5: the completion job");
        assert_in_order(&actor, due, &numbered(count));
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
