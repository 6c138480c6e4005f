//! Tests which pieces a claim takes, and how many pieces of a batch may be leased at
//! the same time (B3, B4, B9).

use relq_core::{
    ClaimRequest, Delivery, Disposition, NewJob,
    batch::{BatchId, BatchOutcome, BatchPriority, BatchStatus, Change, NewBatch},
    operator::{Cancelled, JobState},
    outcome::Settled,
};

use crate::{
    cases::batches::fixture::{batch, completed, limit, of, pieces, telling},
    cases::case,
    harness::{
        actor::Actor,
        checks::{
            assert_applied, assert_in_line, dead, drain, expect_exactly, listed,
            payloads, postpone, retry_after, settle_all,
        },
        store::Store,
        times::{BRIEF, HELD, PAST_BRIEF},
    },
    spec::line::Line,
};

fn ranked(id: &str, level: u8) -> NewBatch {
    let level = BatchPriority::new(level).expect("a valid level");
    NewBatch::new(batch(id)).priority(level)
}

/// Claims and acks jobs one by one until none is ready. Returns the batch of each job,
/// in the order of delivery. A job of no batch is `None`.
async fn served(actor: &Actor) -> Vec<Option<BatchId>> {
    let mut order = Vec::new();
    loop {
        let taken = actor.take(1).await;
        let Some(one) = taken.into_iter().next() else { return order };
        actor.finish(&one).await;
        order.push(one.batch);
    }
}

async fn alter(actor: &Actor, batch: &BatchId, change: Change) -> BatchStatus {
    let altered = actor.batches().alter(batch, &change).await.expect("answered");
    altered.expect("the batch is there")
}

case!(a_limit_holds: B3 => Batches);
/// The number of leased pieces of a batch never exceeds its limit, however many pieces
/// the claims request.
async fn a_limit_holds(store: &Store) {
    let (one, two) = (store.actor("w1").await, store.actor("w2").await);
    let made = one.submit(&telling("b").limit(limit(3)), 10).await;

    let mut held = one.take(2).await;
    held.extend(two.take(5).await);
    assert_eq!(of(&held, &made), 3);
    assert_eq!(one.status(&made).await.leased, 3);
    assert_eq!(two.take(5).await, []);

    let mut done = 0;
    while let Some(first) = held.pop() {
        assert_eq!(one.say(&first, Disposition::Done).await, Settled::Applied);
        done += 1;
        held.extend(two.take(5).await.into_iter().filter(|one| one.batch.is_some()));
        assert!(held.len() <= 3, "{} are leased", held.len());
        assert_eq!(held.len(), 3.min(10 - done));
    }
    one.assert_completed(&made, BatchOutcome::Done).await;
}

case!(a_dead_workers_slot_comes_back: B3 => Batches);
/// The slot of a dead worker becomes free when its lease expires.
async fn a_dead_workers_slot_comes_back(store: &Store) {
    let (one, two) = (store.actor("w1").await, store.actor("w2").await);
    let made = one.submit(&telling("b").limit(limit(2)), 4).await;
    for _ in 0..3 {
        assert_eq!(of(&one.take_briefly(4).await, &made), 2);
        assert_eq!(two.take(4).await, []);
        store.outlast_brief_leases().await;
        two.recover_all().await;
    }

    let mut taken = drain(&two).await;
    taken.retain(|one| one.batch.is_some());

    assert_eq!(taken.len(), 4);
    two.assert_completed(&made, BatchOutcome::Done).await;
}

case!(released_slots_come_back: B3 R24 => Batches);
/// A worker's release frees its slots at once.
async fn released_slots_come_back(store: &Store) {
    let (one, two) = (store.actor("w1").await, store.actor("w2").await);
    let made = one.submit(&NewBatch::new(batch("b")).limit(limit(2)), 3).await;
    assert_eq!(of(&one.take(9).await, &made), 2);

    one.release_worker(one.worker()).await.expect("answered");

    assert_eq!(of(&two.take(9).await, &made), 2);
}

case!(every_end_frees_its_slot: B3 => Batches);
/// A piece frees its slot in whichever way it ends or returns to the queue.
async fn every_end_frees_its_slot(store: &Store) {
    let actor = store.actor("worker").await;
    let made = actor.submit(&NewBatch::new(batch("b")).limit(limit(1)), 5).await;
    for disposition in
        [Disposition::GiveBack, Disposition::Discard, dead("no"), postpone(HELD)]
    {
        let held = actor.take(3).await;
        assert_eq!(of(&held, &made), 1);
        assert_eq!(actor.say(&held[0], disposition).await, Settled::Applied);
    }
    let held = actor.take_one().await;
    actor.cancel(held.job()).await.expect("answered");

    assert_eq!(of(&actor.take(3).await, &made), 1);
}

/// Settles one of two pieces of a batch with a single slot so that it waits, and asserts
/// that the other piece gets the slot, and that the batch completes only after the piece
/// has come back. Returns the attempt at which it came back.
async fn attempt_after_wait(store: &Store, waits: Disposition) -> u32 {
    let actor = store.actor("worker").await;
    let made = actor.submit(&telling("b").limit(limit(1)), 2).await;
    let first = actor.take_one().await;
    assert_eq!(actor.say(&first, waits).await, Settled::Applied);
    let second = actor.take_one().await;
    assert_ne!(second.payload, first.payload);
    actor.finish(&second).await;
    actor.assert_running(&made).await;
    assert_eq!(actor.status(&made).await.waiting, 1);

    store.advance(PAST_BRIEF).await;
    actor.recover_all().await;
    let again = actor.take_one().await;

    assert_eq!((&again.payload, again.batch.as_ref()), (&first.payload, Some(&made)));
    actor.finish(&again).await;
    actor.assert_completed(&made, BatchOutcome::Done).await;
    again.attempt()
}

case!(a_retry_holds_no_slot: B9 => Batches);
/// A piece that waits for its retry occupies no slot. Its batch does not complete
/// before the piece ends.
async fn a_retry_holds_no_slot(store: &Store) {
    assert_eq!(attempt_after_wait(store, retry_after(BRIEF)).await, 2);
}

case!(a_postponed_piece_holds_no_slot: R26 B3 B9 => Batches);
/// A postponed piece occupies no slot while it waits. It stays in its batch, which does
/// not complete before the piece ends.
async fn a_postponed_piece_holds_no_slot(store: &Store) {
    assert_eq!(attempt_after_wait(store, postpone(BRIEF)).await, 1);
}

case!(the_most_urgent_batch_is_first: B4 => Batches);
/// Jobs of no batch come first, then pieces of the most urgent batch. Of equally
/// urgent batches, the older comes first.
async fn the_most_urgent_batch_is_first(store: &Store) {
    let actor = store.actor("worker").await;
    let low = actor.submit(&ranked("low", 0), 2).await;
    let older = actor.submit(&ranked("older", 50), 2).await;
    // The order of batches created in the same millisecond is not defined.
    store.advance(BRIEF).await;
    let younger = actor.submit(&ranked("a-younger", 50), 2).await;
    let high = actor.submit(&ranked("high", 99), 2).await;
    actor.store(["plain", "plain"]).await;

    let order = served(&actor).await;

    let wanted = [None, Some(high), Some(older), Some(younger), Some(low)];
    let twice = wanted.into_iter().flat_map(|one| [one.clone(), one]);
    assert_eq!(order, twice.collect::<Vec<_>>());
}

case!(pieces_are_listed_as_they_are_served: B4 R31 => Order Batches Inspect);
/// Pieces are listed in the order in which claims take them, whatever the age of their
/// batches, also after a change of a priority. The listing newest first is the reverse.
async fn pieces_are_listed_as_they_are_served(store: &Store) {
    let actor = store.actor("worker").await;
    for (name, level) in [("low", 10), ("high", 90), ("middle", 50), ("raised", 0)] {
        let made = actor.make(&ranked(name, level)).await;
        actor.fill(&made, pieces(&made, 3)).await;
        // So that the batches differ in their ages.
        store.advance(BRIEF).await;
    }
    actor.store_one("plain").await;
    let change = Change::default().priority(BatchPriority::HIGHEST);
    alter(&actor, &batch("raised"), change).await;

    let in_one_page = listed(&actor.list(JobState::Ready, 100).await);
    let over_pages = listed(&actor.list(JobState::Ready, 2).await);
    let mut newest = listed(&actor.list_newest(JobState::Ready, 2).await);
    newest.reverse();

    let served = payloads(&drain(&actor).await);
    assert_eq!(in_one_page, served, "B4: as served");
    assert_eq!(over_pages, served, "B4: as served, over pages");
    assert_eq!(newest, served, "R31: newest first, reversed");
}

case!(one_claim_spans_batches: B4 => Batches);
/// If one batch has fewer pieces than a claim requests, the claim also takes pieces of
/// other batches.
async fn one_claim_spans_batches(store: &Store) {
    let actor = store.actor("worker").await;
    let low = actor.submit(&ranked("low", 1), 5).await;
    let high = actor.submit(&ranked("high", 2).limit(limit(2)), 5).await;
    actor.store_one("plain").await;

    let taken = actor.take(6).await;

    assert_eq!((taken.len(), of(&taken, &high), of(&taken, &low)), (6, 2, 3));
}

case!(a_claim_of_pieces_is_bounded_by_bytes: B4 R6 => Batches);
/// A claim takes pieces of at most 1 MiB together, or a single larger piece. The pieces
/// that it does not take stay ready.
async fn a_claim_of_pieces_is_bounded_by_bytes(store: &Store) {
    let actor = store.actor("worker").await;
    let most = ClaimRequest::MAX_BYTES;
    let large = (most + 1).min(actor.limits().max_payload);
    let sizes =
        [100, most / 3, most / 3, most / 3, 100, large, 100, most / 2, most / 2];
    for (name, sizes) in [("a", &sizes[..5]), ("b", &sizes[5..])] {
        let batch = actor.make(&ranked(name, 1)).await;
        let piece = |size: &usize| NewJob::new(vec![b'.'; *size]);
        actor.fill(&batch, sizes.iter().map(piece)).await;
        actor.close(&batch).await;
    }

    let mut taken = Vec::new();
    while taken.len() < sizes.len() {
        let claimed = actor.claim(&actor.ask(100)).await.expect("answered");
        let bytes: usize = claimed.iter().map(|one| one.payload.len()).sum();
        assert!(
            claimed.len() == 1 || !claimed.is_empty() && bytes <= most,
            "{bytes} bytes"
        );
        taken.extend(claimed);
    }

    expect_exactly(taken.iter().map(|one| one.payload.len()), sizes);
    assert!(taken.iter().all(|one| one.attempt() == 1));
    assert_applied(&settle_all(&actor, &taken, &Disposition::Done).await);
}

case!(a_full_batch_blocks_nobody: B3 B4 => Batches);
/// A batch without a free slot does not delay other batches.
async fn a_full_batch_blocks_nobody(store: &Store) {
    let actor = store.actor("worker").await;
    let big = actor.submit(&ranked("big", 99).limit(limit(1)), 20).await;
    let small = actor.submit(&ranked("small", 1), 3).await;
    let held = actor.take_one().await;
    assert_eq!(held.batch.as_ref(), Some(&big));

    assert_eq!(of(&actor.take(9).await, &small), 3);
    assert_eq!(actor.take(9).await, []);
    actor.finish(&held).await;
    assert_eq!(of(&actor.take(9).await, &big), 1);
}

case!(a_cancelled_piece_hides_no_other_batch: B4 => Batches);
/// The only ready piece of the most urgent batch is cancelled. A claim of one job takes the
/// piece of the other batch.
async fn a_cancelled_piece_hides_no_other_batch(store: &Store) {
    let actor = store.actor("worker").await;
    let [urgent, other] = [ranked("urgent", 90), ranked("other", 10)];
    for new in [&urgent, &other] {
        let made = actor.make(new).await;
        actor.fill(&made, pieces(&made, 1)).await;
    }
    let first = actor.take_one().await;
    assert_eq!(first.batch, Some(urgent.id), "B4: the batch of the first piece");
    actor.say(&first, Disposition::GiveBack).await;
    let cancelled = actor.cancel(first.job()).await.expect("answered");
    assert_eq!(cancelled, Cancelled::Removed(JobState::Ready));

    let next = actor.take_one().await;

    assert_eq!(next.batch, Some(other.id), "B4: the batch of the next piece");
}

case!(a_changed_priority_counts: B4 => Batches);
/// A changed priority of a batch applies to the next claim.
async fn a_changed_priority_counts(store: &Store) {
    let actor = store.actor("worker").await;
    let first = actor.submit(&ranked("first", 60), 3).await;
    let second = actor.submit(&ranked("second", 40), 3).await;
    let held = actor.take_one().await;
    assert_eq!(held.batch.as_ref(), Some(&first));

    let change = Change::default().priority(BatchPriority::HIGHEST);
    let status = alter(&actor, &second, change).await;

    assert_eq!((status.priority, status.limit), (BatchPriority::HIGHEST, None));
    let order = served(&actor).await;
    assert_eq!(order[..3], vec![Some(second); 3]);
    assert_eq!(order[3..], vec![Some(first); 2]);
}

case!(a_changed_limit_counts: B3 => Batches);
/// A changed limit of a batch applies to the next claim. A lower limit ends no lease
/// that is running.
async fn a_changed_limit_counts(store: &Store) {
    let actor = store.actor("worker").await;
    let made = actor.submit(&NewBatch::new(batch("b")).limit(limit(3)), 9).await;
    let mut held: Vec<Delivery> = actor.take(9).await;
    assert_eq!(held.len(), 3);

    let status = alter(&actor, &made, Change::default().limit(limit(1))).await;
    assert_eq!((status.limit, status.leased), (limit(1), 3));
    for _ in 0..2 {
        actor.finish(&held.remove(0)).await;
        assert_eq!(actor.take(9).await, []);
    }
    actor.finish(&held.remove(0)).await;
    assert_eq!(actor.take(9).await.len(), 1);

    alter(&actor, &made, Change::default().limit(None)).await;
    assert_eq!(actor.take(9).await.len(), 5);
}

case!(pieces_keep_their_order: B4 R13 => Batches Order);
/// The pieces of one batch come in the order that the backend declares.
async fn pieces_keep_their_order(store: &Store) {
    let actor = store.actor("worker").await;
    let made = actor.make(&NewBatch::new(batch("b"))).await;
    let all = pieces(&made, 60);
    for some in all.chunks(7) {
        actor.fill(&made, some.to_vec()).await;
    }

    assert_in_line(&actor, &drain(&actor).await, &Line::of(all));
}

case!(a_pause_holds_pieces: R23 => Batches);
/// While a queue is paused, a claim gets no pieces of batches either.
async fn a_pause_holds_pieces(store: &Store) {
    let actor = store.actor("worker").await;
    let made = actor.submit(&telling("b"), 2).await;
    actor.pause().await.expect("answered");
    assert_eq!(actor.take(5).await, []);

    actor.resume().await.expect("answered");

    assert_eq!(of(&actor.take(5).await, &made), 2);
}

case!(settle_and_claim_works_on_pieces: B2 B5 => Batches);
/// `settle_and_claim` can settle the last piece of a batch. Its claim then either
/// returns the completion job or leaves that job ready.
async fn settle_and_claim_works_on_pieces(store: &Store) {
    let actor = store.actor("worker").await;
    let made = actor.submit(&telling("b").limit(limit(1)), 2).await;
    let first = actor.take_one().await;
    let done = |of: &Delivery| {
        [relq_core::Settlement::new(of.receipt.clone(), Disposition::Done)]
    };

    let both = actor.settle_and_claim(&done(&first), &actor.ask(5)).await;
    assert_applied(&both.settled.expect("answered"));
    let mut held = both.claimed.expect("answered");
    held.extend(actor.take(5).await);
    assert_eq!((held.len(), of(&held, &made)), (1, 1));
    let both = actor.settle_and_claim(&done(&held[0]), &actor.ask(5)).await;

    assert_applied(&both.settled.expect("answered"));
    let mut after = both.claimed.expect("answered");
    assert_applied(&settle_all(&actor, &after, &Disposition::Done).await);
    after.extend(drain(&actor).await);
    assert_eq!((after.len(), completed(&after)), (1, 1));
}
