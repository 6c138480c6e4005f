//! MUTANT-KILL: broken queues. Each must be caught at the act and by the fault that is
//! named here.

use std::sync::Arc;

use relq_conformance::{
    own::sqlite::{SQLITE, open},
    sweep::processes::{Child, Embedded, every_step},
};
use relq_core::Queue;

use crate::broken::{Broken, Flaw};

macro_rules! mutant {
    ($(#[$rule:meta])* $test:ident: $flaw:ident, $act:literal, $words:literal) => {
        $(#[$rule])*
        #[test]
        fn $test() {
            let tally = every_step(Embedded {
                child: Child::Test(concat!("mutants::", stringify!($test))),
                open: |folder, queue, environment, watch| {
                    Box::pin(async move {
                        let queue = open(folder, queue, environment, watch).await?;
                        let broken = Broken { queue, flaw: Flaw::$flaw };
                        Ok(Arc::new(broken) as Arc<dyn Queue>)
                    })
                },
                chosen: |act| act == $act,
                ..SQLITE
            });

            let is_caught = tally.failures.iter().any(|it| it.contains($words));
            assert!(is_caught, "it survives: {:#?}", tally.failures);
        }
    };
}

mutant! {
    /// R5: a push that is killed half way stores nothing.
    a_batch_stored_job_by_job_is_caught:
        PushesOneByOne, "push_of_many", "(BEGIN IMMEDIATE), before: ALL-OR-NONE: found"
}

mutant! {
    /// R8: a settlement that is killed half way settles nothing.
    a_settlement_in_parts_is_caught:
        SettlesOneByOne, "settle_done", "(BEGIN IMMEDIATE), before: ALL-OR-NONE: found"
}

mutant! {
    /// R1: a job whose push returned Ok is stored.
    a_push_dropped_on_a_full_disk_is_caught:
        DropsWhenFull, "push", "(job_add), full disk: LOST: found []"
}

mutant! {
    /// R7: a worker that froze cannot end jobs that other workers have taken over.
    a_settlement_by_id_is_caught:
        SettlesById, "settle_with_side_records", "frozen: ERROR-CLASS: found []"
}

mutant! {
    /// R3: a job that is removed before it is stored elsewhere is lost if the process
    /// dies in between.
    a_redrive_in_two_steps_is_caught:
        RedrivesInTwoSteps, "redrive", "(BEGIN IMMEDIATE), before: LOST: found []"
}

mutant! {
    /// R1: jobs that a killed worker had claimed are run by another worker.
    a_claim_for_good_is_caught:
        ClaimsForGood, "claim", "LOST: found"
}

mutant! {
    /// B5, B10: a completion that is pushed after the last piece has ended is lost if
    /// the process dies in between.
    a_completion_in_two_steps_is_caught:
        CompletesInTwoSteps, "settle_the_last_pieces", "before: LOST: found []"
}

mutant! {
    /// B10: pieces that a producer adds again after its death are not there twice.
    an_add_without_its_token_is_caught:
        AddsWithoutToken, "add_pieces", "after: DUP-BOUND: found"
}
