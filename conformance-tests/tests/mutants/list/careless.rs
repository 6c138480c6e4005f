//! Mutants that accept invalid arguments, or do not find jobs that exist.

use std::{num::NonZeroU32, sync::Arc};

use relq_core::capabilities::Capabilities;

use crate::{
    careless::{
        CountsFromOne, CutsTimes, HidesUnique, ListsLeasedAsReady, LosesSight,
        RefusesNothing,
    },
    declared::Declares,
    mutant::{CaughtBy::Case, Mutant, NARROW},
};

const IS_STORED: &str = "Ok([Stored(";
const IS_TAKEN: &str = "the request is refused";
const IS_MISSED: &str = "too many (+) or missing (-)";

fn little(can: &mut Capabilities) {
    (can.limits.max_payload, can.limits.max_headers) = (100, 100);
    can.limits.max_jobs_per_call = NonZeroU32::new(10).expect("not zero");
    can.limits.max_bytes_per_push = 500;
}

pub(super) const CARELESS: &[Mutant] = &[
    Mutant {
        name: "more is taken than the limits say",
        overrides: Some(|| Arc::new(Declares::this(little))),
        caught_by: &[
            Case("no_loss::a_payload_above_the_limit_is_refused", IS_STORED),
            Case("no_loss::headers_above_the_limit_are_refused", IS_STORED),
            Case("no_loss::a_call_above_the_limit_is_refused", IS_STORED),
            Case("no_loss::a_call_of_too_many_bytes_is_refused", IS_STORED),
        ],
        ..NARROW
    },
    Mutant {
        name: "times that make no sense are cut",
        overrides: Some(|| Arc::new(CutsTimes)),
        caught_by: &[
            Case("no_loss::one_invalid_job_refuses_all", IS_STORED),
            Case("bad_input::an_endless_delay_is_refused", IS_TAKEN),
            Case("bad_input::an_endless_expiry_is_refused", IS_TAKEN),
            Case("bad_input::a_senseless_lease_of_a_job_is_refused", IS_TAKEN),
            Case("bad_input::a_senseless_lease_is_refused", IS_TAKEN),
            Case("bad_input::an_endless_wait_is_refused", IS_TAKEN),
        ],
        ..NARROW
    },
    Mutant {
        name: "a call about nothing is refused",
        overrides: Some(|| Arc::new(RefusesNothing)),
        caught_by: &[
            Case("idempotence::a_token_of_no_jobs_is_taken", "there is nothing to do"),
            Case("bad_input::empty_calls_are_fine", "there is nothing to do"),
        ],
        ..NARROW
    },
    Mutant {
        name: "the last job of a page is not seen",
        overrides: Some(|| Arc::new(LosesSight)),
        caught_by: &[
            Case("isolation::plain_pushes_show", "index out of bounds"),
            Case("operator::pages_show_every_ready_job", IS_MISSED),
            Case("operator::pages_show_thousands", IS_MISSED),
            Case("operator::a_peek_at_nothing_is_empty", "Some(PageCursor("),
        ],
        ..NARROW
    },
    Mutant {
        name: "leased jobs behind the first hundreds are listed as ready",
        overrides: Some(|| Arc::new(ListsLeasedAsReady)),
        caught_by: &[Case(
            "operator::a_peek_tells_many_leased_jobs_from_ready_ones",
            IS_MISSED,
        )],
        ..NARROW
    },
    Mutant {
        name: "a ready job that has a unique key is not listed",
        overrides: Some(|| Arc::new(HidesUnique)),
        caught_by: &[Case(
            "worker_release::an_interrupted_release_hides_no_job",
            "R23: the ready jobs that are listed",
        )],
        ..NARROW
    },
    Mutant {
        name: "a count begins at one",
        overrides: Some(|| Arc::new(CountsFromOne)),
        caught_by: &[Case("stats::a_new_queue_is_empty", "finished: 1")],
        ..NARROW
    },
];
