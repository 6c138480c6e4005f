//! MUTANT-KILL: each test runs a broken queue. The broken queue must fail in the
//! sequence of calls, and by the fault, that the test names.

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
    /// R5: a mutant that is killed during a push has stored a part of its jobs.
    a_batch_stored_job_by_job_is_caught:
        PushesOneByOne, "push_of_many", "(BEGIN IMMEDIATE), before: ALL-OR-NONE: found"
}

mutant! {
    /// R8: a mutant that is killed during a settlement has settled a part of its jobs.
    a_settlement_in_parts_is_caught:
        SettlesOneByOne, "settle_done", "(BEGIN IMMEDIATE), before: ALL-OR-NONE: found"
}

mutant! {
    /// R1: a mutant returns Ok for a push, but has not stored the job.
    a_push_dropped_on_a_full_disk_is_caught:
        DropsWhenFull, "push", "(job_add), full disk: LOST: found []"
}

mutant! {
    /// R7: a mutant lets a worker that was frozen end jobs whose leases other workers
    /// have taken since.
    a_settlement_by_id_is_caught:
        SettlesById, "settle_with_side_records", "frozen: ERROR-CLASS: found []"
}

mutant! {
    /// R3: a mutant removes a dead job before it pushes it again, so the job is lost if
    /// the process dies in between.
    a_redrive_in_two_steps_is_caught:
        RedrivesInTwoSteps, "redrive", "(BEGIN IMMEDIATE), before: LOST: found []"
}

mutant! {
    /// R1: a mutant loses the jobs that a killed worker had claimed.
    a_claim_for_good_is_caught:
        ClaimsForGood, "claim", "LOST: found"
}

mutant! {
    /// B5, B10: a mutant pushes the completion job only after the transaction that ends
    /// the last piece, so the job is lost if the process dies in between.
    a_completion_in_two_steps_is_caught:
        CompletesInTwoSteps, "settle_the_last_pieces", "before: LOST: found []"
}

mutant! {
    /// B10: a mutant adds pieces without a push token, so a producer that repeats the
    /// call after its death stores them twice.
    an_add_without_its_token_is_caught:
        AddsWithoutToken, "add_pieces", "after: DUP-BOUND: found"
}
