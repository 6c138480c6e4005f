//! Tests of the calls that create a batch, add pieces to it and seal it (B1, R4, R5).

use std::time::Duration;

use relq_core::{
    Error, NewJob, Priority,
    batch::{
        Added, BatchOutcome, BatchPriority, BatchState, Created, NewBatch, OnComplete,
    },
    outcome::{DuplicateOf, Pushed},
};

use crate::{
    cases::{
        batches::fixture::{batch, limit, of, pieces, telling},
        case,
        times::now,
    },
    harness::{
        checks::{dead, drain, id, key, token},
        store::Store,
        times::{BRIEF, HELD, PAST_WINDOW, WITHIN_WINDOW},
    },
};

case!(a_batch_is_made_once: B10 => Batches);
/// If the reply to a create was lost, the client can repeat the create. The batch then
/// exists once, as it was first created.
async fn a_batch_is_made_once(store: &Store) {
    let actor = store.actor("maker").await;
    let new = NewBatch::new(batch("b"))
        .priority(BatchPriority::HIGHEST)
        .limit(limit(3))
        .metadata(vec![0, 255]);
    let made = actor.make(&new).await;

    let other = NewBatch::new(made.clone()).metadata("another's");
    let again = actor.batches().create(&other).await.expect("answered");

    assert_eq!(again, Created::Exists);
    let status = actor.status(&made).await;
    assert_eq!((status.priority, status.limit), (new.priority, new.limit));
    assert_eq!((status.metadata, status.state), (new.metadata, BatchState::Open));
    assert_eq!((status.total, status.sealed_at), (0, None));
}

case!(a_batch_has_the_times_of_its_calls: B1 B5 => Batches);
/// The status of a batch says when it was created, sealed and completed.
async fn a_batch_has_the_times_of_its_calls(store: &Store) {
    let actor = store.actor("maker").await;
    store.stop_clock();
    let created = now(store);
    let made = actor.make(&NewBatch::new(batch("b"))).await;
    actor.fill(&made, ["piece"]).await;
    store.advance(BRIEF).await;
    let sealed = now(store);
    actor.close(&made).await;
    let piece = actor.take_one().await;
    store.advance(BRIEF).await;
    let completed = now(store);
    actor.finish(&piece).await;

    let status = actor.status(&made).await;

    assert_eq!(status.created_at, created, "B1: the creation");
    assert_eq!(status.sealed_at, Some(sealed), "B1: the seal");
    assert_eq!(status.completed_at, Some(completed), "B5: the completion");
}

case!(senseless_batches_are_refused: R5 => Batches);
/// A batch that cannot be stored as requested is refused before anything is
/// written.
async fn senseless_batches_are_refused(store: &Store) {
    let actor = store.actor("maker").await;
    let new = || NewBatch::new(batch("b"));
    let tell = |job| new().on_complete(OnComplete::new(job));
    let senseless = [
        new().metadata(vec![0; NewBatch::MAX_METADATA + 1]),
        new().retention(Duration::ZERO),
        new().retention(Duration::MAX),
        tell(NewJob::new("c").id(id("mine"))),
        tell(NewJob::new("c").unique(key("k"))),
        tell(NewJob::new(vec![0; actor.limits().max_payload + 1])),
    ];

    for one in senseless {
        let refused = actor.batches().create(&one).await;
        assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    }

    let known = actor.batches().batch(&batch("b")).await.expect("answered");
    assert_eq!(known, None);
}

case!(pieces_with_options_are_refused: R5 => Batches);
/// A piece cannot have options that belong to its batch.
async fn pieces_with_options_are_refused(store: &Store) {
    let actor = store.actor("maker").await;
    let made = actor.make(&NewBatch::new(batch("b"))).await;
    let piece = || NewJob::new("piece");
    let refused = [
        piece().delay(HELD),
        piece().expires_in(HELD),
        piece().unique(key("k")),
        piece().priority(Priority::HIGHEST),
    ];

    for one in refused {
        let answer = actor.batches().add(&made, &[piece(), one], None).await;
        assert!(matches!(answer, Err(Error::Invalid { .. })), "{answer:?}");
    }

    assert_eq!(actor.status(&made).await.total, 0);
}

case!(pieces_are_added_all_or_none: R5 B1 => Batches);
/// If one piece of a call is invalid, none of the call's pieces is stored.
async fn pieces_are_added_all_or_none(store: &Store) {
    let actor = store.actor("maker").await;
    let made = actor.make(&NewBatch::new(batch("b"))).await;
    let huge = vec![0; actor.limits().max_payload + 1];

    let refused = actor.batches().add(&made, &["a".into(), huge.into()], None).await;

    assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    let status = actor.status(&made).await;
    assert_eq!((status.total, actor.figures().await.unfinished()), (0, 0));
}

case!(a_closed_batch_takes_nothing: B1 => Batches);
/// A sealed, cancelled or completed batch accepts no more pieces.
async fn a_closed_batch_takes_nothing(store: &Store) {
    let actor = store.actor("maker").await;
    let sealed = actor.submit(&NewBatch::new(batch("sealed")), 1).await;
    let empty = actor.submit(&NewBatch::new(batch("empty")), 0).await;
    let cancelled = actor.make(&NewBatch::new(batch("cancelled"))).await;
    actor.call_off(&cancelled).await;
    let closed = [
        (sealed, BatchState::Sealed, 1),
        (empty, BatchState::Completed(BatchOutcome::Done), 0),
        (cancelled, BatchState::Completed(BatchOutcome::Cancelled), 0),
    ];

    for (made, state, total) in closed {
        let added = actor.batches().add(&made, &["late".into()], None).await;
        assert_eq!(added.expect("answered"), Added::Closed(state));
        assert_eq!(actor.status(&made).await.total, total);
    }
    assert_eq!(actor.figures().await.unfinished(), 1);
}

case!(an_add_can_be_repeated: R4 B1 => Batches PushTokens);
/// If the reply to an add was lost, the client can repeat the add for some minutes, even
/// if the batch was sealed in the meantime.
async fn an_add_can_be_repeated(store: &Store) {
    let actor = store.actor("maker").await;
    let made = actor.make(&NewBatch::new(batch("b"))).await;
    let (mine, jobs) = (token("call"), ["a", "b"].map(NewJob::new));
    let first = actor.batches().add(&made, &jobs, Some(&mine)).await.expect("answered");
    assert!(matches!(&first, Added::Stored(pushed) if pushed.len() == 2), "{first:?}");

    let again = actor.batches().add(&made, &jobs, Some(&mine)).await;
    assert_eq!(again.expect("answered"), first);
    actor.close(&made).await;
    store.advance(WITHIN_WINDOW).await;
    actor.recover_all().await;
    let sealed = actor.batches().add(&made, &jobs, Some(&mine)).await;

    assert_eq!(sealed.expect("answered"), first);
    assert_eq!(actor.status(&made).await.total, 2);
    assert_eq!(drain(&actor).await.len(), 2);
}

case!(a_token_of_one_batch_answers_for_no_other: R4 B1 => Batches PushTokens);
/// A token that was used to add pieces to one batch is used for another batch. The second
/// call is refused, or it stores its pieces: the pieces that it reports as stored are there.
async fn a_token_of_one_batch_answers_for_no_other(store: &Store) {
    let actor = store.actor("maker").await;
    let one = actor.make(&NewBatch::new(batch("one"))).await;
    let other = actor.make(&NewBatch::new(batch("other"))).await;
    let (same, jobs) = (token("call"), ["a", "b"].map(NewJob::new));
    actor.batches().add(&one, &jobs, Some(&same)).await.expect("answered");

    let added = actor.batches().add(&other, &jobs, Some(&same)).await;

    let is_stored = |one: &&Pushed| matches!(one, Pushed::Stored(_));
    let stored = match &added {
        Ok(Added::Stored(pushed)) => pushed.iter().filter(is_stored).count() as u64,
        Err(Error::Invalid { .. }) => 0,
        answer => {
            panic!("R4: the token of batch one, used for batch other: {answer:?}")
        }
    };
    let total = actor.status(&other).await.total;
    assert_eq!(total, stored, "R4: the pieces of batch other after {added:?}");
    assert_eq!(actor.status(&one).await.total, 2, "R4: the pieces of batch one");
}

case!(additions_forget_what_need_not_be_known: R4 => Batches ClientIds PushTokens @ counted);
/// Each call that adds pieces removes records of tokens and ids that have been kept for five
/// minutes, as a push does, so that the store does not grow even if no reaper runs.
async fn additions_forget_what_need_not_be_known(store: &Store) {
    let actor = store.actor("worker").await;
    let made = actor.make(&NewBatch::new(batch("b"))).await;
    let mut sizes = Vec::new();
    for round in 0..4 {
        for number in 0..20 {
            let name = format!("{round}-{number}");
            let piece = [NewJob::new("piece").id(id(&name))];
            let added = actor.batches().add(&made, &piece, Some(&token(&name))).await;
            assert!(matches!(added, Ok(Added::Stored(_))), "B1: {added:?}");
            let held = actor.take_one().await;
            actor.finish(&held).await;
        }
        sizes.push(store.size().await);
        store.advance(PAST_WINDOW).await;
    }

    assert!(
        sizes[3] < sizes[1] + 20,
        "R4: the records of tokens and ids of pieces grow: {sizes:?}"
    );
}

case!(a_piece_of_a_known_id_is_added_once: R4 B2 => Batches ClientIds);
/// If the batch already has a piece with the same client-made id, the new piece is a
/// duplicate and is not added.
async fn a_piece_of_a_known_id_is_added_once(store: &Store) {
    let actor = store.actor("maker").await;
    let made = actor.make(&NewBatch::new(batch("b"))).await;
    let piece = || NewJob::new("a").id(id("b-1"));
    actor.fill(&made, [piece()]).await;

    let again = actor.batches().add(&made, &[piece(), "b".into()], None).await;

    let Added::Stored(pushed) = again.expect("answered") else { panic!("not added") };
    let known = Pushed::Duplicate { existing: id("b-1"), by: DuplicateOf::Id };
    assert_eq!(pushed[0], known);
    assert_eq!(actor.status(&made).await.total, 2);
}

case!(a_piece_of_an_id_of_relqs_own_loses_nothing: R4 R11 => Batches ClientIds);
/// If a client adds a piece with the id that relq generated for a job that is dead, neither
/// is lost, and the dead job keeps its error.
async fn a_piece_of_an_id_of_relqs_own_loses_nothing(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;
    actor.say(&held, dead("it broke")).await;
    let before = actor.the_dead_one().await;
    let made = actor.make(&NewBatch::new(batch("b"))).await;
    let piece = NewJob::new("piece").id(held.job().clone());
    let added = actor.batches().add(&made, &[piece], None).await.expect("answered");
    let Added::Stored(pushed) = added else { panic!("B1: the batch is open") };

    let served = drain(&actor).await;

    let stored = pushed.iter().filter(|one| matches!(one, Pushed::Stored(_))).count();
    assert_eq!(of(&served, &made), stored, "R4: the piece, if it was stored");
    assert_eq!(actor.the_dead_one().await, before, "R4: the job that is dead");
}

case!(sealing_twice_is_sealing_once: B1 B5 => Batches);
/// Sealing a sealed or completed batch changes nothing.
async fn sealing_twice_is_sealing_once(store: &Store) {
    let actor = store.actor("maker").await;
    let made = actor.submit(&telling("b"), 1).await;
    let first = actor.status(&made).await;
    store.advance(Duration::from_millis(5)).await;

    assert_eq!(actor.close(&made).await, first);
    let held = actor.take_one().await;
    actor.finish(&held).await;
    let ended = actor.status(&made).await;
    store.advance(Duration::from_millis(5)).await;

    assert_eq!(actor.close(&made).await, ended);
    assert_eq!(drain(&actor).await.len(), 1, "one completion job");
}

case!(a_piece_is_a_job: R2 => Batches);
/// A piece is claimed and settled like any job, and its delivery names its batch.
async fn a_piece_is_a_job(store: &Store) {
    let actor = store.actor("worker").await;
    let made = actor.make(&NewBatch::new(batch("b"))).await;
    let job = NewJob::new(vec![0, b'\n', 255]).header("name", "value");
    actor.fill(&made, [job.max_attempts(std::num::NonZeroU16::MIN)]).await;
    actor.store_one("plain").await;

    let taken = actor.take(2).await;

    let piece = taken.iter().find(|one| one.batch.is_some()).expect("the piece came");
    assert_eq!(piece.batch.as_ref(), Some(&made));
    assert_eq!(&piece.payload[..], [0, b'\n', 255]);
    assert_eq!(piece.headers.get("name"), Some("value"));
    assert_eq!((piece.max_attempts.get(), piece.attempt()), (1, 1));
    let plain = taken.iter().find(|one| one.payload == "plain").expect("it came");
    assert_eq!(plain.batch, None);
}

case!(as_much_as_a_push_is_added: R5 => Batches);
/// One add accepts as many pieces as one push accepts jobs.
async fn as_much_as_a_push_is_added(store: &Store) {
    let actor = store.actor("maker").await;
    let made = actor.make(&NewBatch::new(batch("b"))).await;
    let most = actor.limits().max_jobs_per_call.get() as usize;

    actor.fill(&made, pieces(&made, most)).await;
    let all: Vec<NewJob> =
        pieces(&made, most + 1).into_iter().map(NewJob::new).collect();
    let refused = actor.batches().add(&made, &all, None).await;

    assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
    assert_eq!(actor.status(&made).await.total, most as u64);
}
