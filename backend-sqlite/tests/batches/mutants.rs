//! The mutants of batches, each with the case of the suite that catches it.

use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use relq_conformance::{
    Profile, Subject, async_trait, judge_case,
    overrides::{OverriddenQueue, Override, Right},
    spec,
};
use relq_core::{Error, Queue, QueueName, environment::Environment};
use relq_sqlite::{Durability, SqliteConfig, SqliteQueue};

use crate::altered::Alteration;
use crate::overrides::*;

/// The name that a mutant gives in place of a case, if the suite's random sequences of
/// calls must catch it.
const MODEL: &str = "model";

/// How a mutant differs from this backend.
#[derive(Clone)]
enum Flaw {
    Override(Arc<dyn Override>),
    Altered(Alteration),
}

struct Mutant {
    flaw: Flaw,
    /// Locked while the trigger in the file is changed, because several tasks may open
    /// the queue at the same time.
    opening: Mutex<()>,
}

#[async_trait]
impl Subject for Mutant {
    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        let file = Path::new(endpoint).join("jobs.db");
        let config = SqliteConfig::file(&file)
            .durability(Durability::Normal)
            .environment(environment.clone());
        let queue = Arc::new(SqliteQueue::open(config, queue.clone()).await?);
        let environment = environment.clone();
        match &self.flaw {
            Flaw::Override(overrides) => {
                let right = Right { queue, environment };
                Ok(Arc::new(OverriddenQueue::new(right, Arc::clone(overrides))))
            }
            Flaw::Altered(alteration) => {
                let _first = self.opening.lock().unwrap();
                alteration.apply(&file);
                Ok(queue)
            }
        }
    }
}

fn is_caught(flaw: Flaw, case: &str, words: &str) {
    let mutant = Mutant { flaw, opening: Mutex::default() };
    let said = match case {
        MODEL => spec::judge_random(Arc::new(mutant), Profile::Embedded).map(drop),
        case => judge_case(mutant, Profile::Embedded, case),
    };
    let said = said.unwrap_err();
    assert!(said.contains(words), "caught by another check: {said}");
}

macro_rules! overridden {
    ($(#[$rule:meta])* $test:ident: $overrides:expr, $case:literal, $words:literal) => {
        $(#[$rule])*
        #[test]
        fn $test() {
            is_caught(Flaw::Override(Arc::new($overrides)), $case, $words);
        }
    };
}

macro_rules! altered {
    ($(#[$rule:meta])* $test:ident: $trigger:literal, $from:literal => $to:literal,
        $case:literal, $words:literal) => {
        $(#[$rule])*
        #[test]
        fn $test() {
            let altered = Alteration { trigger: $trigger, from: $from, to: $to };
            is_caught(Flaw::Altered(altered), $case, $words);
        }
    };
}

overridden! {
    /// B2: the mutant refuses an ack, but still counts its piece as done
    /// (sidekiq/sidekiq#5524, #6852; sime1/redis-queue).
    acks_that_are_counted_are_caught: CountsAcks::default(),
        "batches::a_second_ack_counts_nothing", "B2"
}

overridden! {
    /// B2: the mutant counts a piece twice: for the ack of its first delivery, and for
    /// that of its redelivery.
    acks_of_redeliveries_that_are_counted_are_caught: CountsAcks::default(),
        "batches::a_redelivered_piece_counts_once", "B2"
}

overridden! {
    /// B1: the mutant completes a batch while more pieces may be added
    /// (breamware/sidekiq-batch#69).
    a_completion_while_open_is_caught: CompletesWhileOpen::default(),
        "batches::an_open_batch_does_not_complete", "seen: 1\nexpected: 0"
}

overridden! {
    /// B5: the mutant reports a completion only to clients that wait for it at that
    /// moment. A client that asks later does not learn of it.
    a_completion_reported_to_listeners_alone_is_caught: TellsListeners,
        "batches::a_completion_is_read_later", "it was told at once"
}

overridden! {
    /// B3: when a worker dies, the mutant does not free the slot of its piece
    /// (sime1/redis-queue).
    a_slot_that_dies_with_its_worker_is_caught: LosesSlots::default(),
        "batches::a_dead_workers_slot_comes_back", "seen: 0\nexpected: 2"
}

overridden! {
    /// B3, R24: when a worker is released, the mutant does not free the slot of its
    /// piece.
    a_slot_that_leaves_with_its_worker_is_caught: LosesSlots::default(),
        "batches::released_slots_come_back", "seen: 0\nexpected: 2"
}

overridden! {
    /// R5: the mutant refuses one piece of a call, but still stores the pieces before
    /// it.
    pieces_added_one_by_one_are_caught: AddsOneByOne,
        "batches::pieces_are_added_all_or_none", "seen: (1, 1)\nexpected: (0, 0)"
}

overridden! {
    /// B7: the mutant reports a batch as cancelled, but still delivers its pieces.
    a_cancel_in_words_is_caught: CancelsInWords,
        "batches::a_cancelled_batch_gives_nothing", "Some(Cancelled)"
}

overridden! {
    /// B4: the mutant lists pieces by their age, whatever the priority of their batches.
    a_listing_by_age_is_caught: ListsByAge,
        "batches::pieces_are_listed_as_they_are_served", "B4: as served"
}

altered! {
    /// B2: the mutant counts a redelivered piece as ended.
    a_redelivery_counted_as_done_is_caught: "piece_moved",
        "ready = ready +"
            => "done = done + (old.state = 'leased' AND new.state = 'ready'), ready = ready +",
        "batches::a_redelivered_piece_counts_once", "miscounted"
}

altered! {
    /// B3: when a lease ends, the mutant does not free the slot of its piece.
    a_slot_that_is_not_given_back_is_caught: "piece_moved",
        "- (old.state = 'leased')"
            => "- (old.state = 'leased' AND new.state <> 'ready')",
        "batches::a_dead_workers_slot_comes_back", "seen: 0\nexpected: 2"
}

altered! {
    /// B3: the mutant does not count the slots in use, so a batch exceeds its limit.
    a_limit_that_does_not_hold_is_caught: "piece_moved",
        "leased = leased + (new.state = 'leased') - (old.state = 'leased'),"
            => "leased = 0,",
        "batches::a_limit_holds", "expected: 3"
}

altered! {
    /// B8: the mutant does not count a piece that becomes a dead letter.
    a_death_that_is_not_counted_is_caught: "piece_moved",
        "failed = failed + (new.state = 'dead')" => "failed = 0",
        "batches::a_buried_piece_has_failed", "Some(Done)"
}

altered! {
    /// B9: the mutant completes a batch although one of its pieces still waits for a
    /// retry.
    a_completion_before_a_retry_is_caught: "piece_moved",
        "scheduled = scheduled + (new.state = 'scheduled') - (old.state = 'scheduled')"
            => "scheduled = 0",
        "batches::a_retry_holds_no_slot", "seen: Some(Done)\nexpected: None"
}

altered! {
    /// B3: random sequences of calls catch a mutant that does not free a slot.
    a_slot_that_leaks_now_and_then_is_caught: "piece_moved",
        "- (old.state = 'leased')"
            => "- (old.state = 'leased' AND new.state <> 'ready')",
        "model", "miscounted"
}

overridden! {
    /// B2: random sequences of calls catch a mutant that counts a refused ack.
    a_count_of_acks_is_caught_in_a_sequence: CountsAcks::default(),
        "model", "B2"
}

overridden! {
    /// B1: random sequences of calls catch a mutant that completes an open batch.
    a_completion_while_open_is_caught_in_a_sequence: CompletesWhileOpen::default(),
        "model", "B1"
}

overridden! {
    /// B7: random sequences of calls catch a mutant that still delivers the pieces of a
    /// cancelled batch.
    a_cancel_in_words_is_caught_in_a_sequence: CancelsInWords,
        "model", "B2: Waiting pieces: 1, expected 0"
}

altered! {
    /// B3: random sequences of calls catch a mutant that does not count slots in use.
    a_limit_that_does_not_hold_is_caught_in_a_sequence: "piece_moved",
        "leased = leased + (new.state = 'leased') - (old.state = 'leased'),"
            => "leased = 0,",
        "model", "B2"
}

altered! {
    /// B8: random sequences of calls catch a mutant that does not count a piece that
    /// becomes a dead letter.
    a_death_that_is_not_counted_is_caught_in_a_sequence: "piece_moved",
        "failed = failed + (new.state = 'dead')" => "failed = 0",
        "model", "B2"
}
