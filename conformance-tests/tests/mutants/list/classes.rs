//! Mutants that declare capabilities they do not have, or write keys that belong to no
//! queue.

use std::{num::NonZeroU32, sync::Arc};

use relq_core::capabilities::LeaseScope;

use crate::{
    declared::{Declares, KeepsAll, ring},
    mutant::{CaughtBy::Case, Mutant, NARROW, patch},
};

pub(super) const CLASSES: &[Mutant] = &[
    Mutant {
        name: "what comes back to a ring goes to the front",
        overrides: Some(|| Arc::new(Declares::this(ring))),
        caught_by: &[
            Case("order::a_given_back_job_is_next", "a is served before b"),
            Case("order::recovered_jobs_keep_their_order", "is served before"),
        ],
        ..NARROW
    },
    Mutant {
        name: "the upper level of a ring is first in, first out",
        overrides: Some(|| Arc::new(Declares::this(ring))),
        caught_by: &[Case("order::equals_keep_their_order", "h1 is served before h2")],
        ..NARROW
    },
    Mutant {
        name: "a level that is not told apart is taken",
        overrides: Some(|| Arc::new(Declares::this(ring))),
        caught_by: &[Case("bad_input::each_level_is_taken_or_refused", "0 is taken")],
        ..NARROW
    },
    Mutant {
        name: "a job has a lease of its own beside the worker's",
        overrides: Some(|| {
            Arc::new(Declares::this(|can| can.lease_scope = LeaseScope::Worker))
        }),
        caught_by: &[Case("leases::a_jobs_own_lease_holds", "Ok([Stored(")],
        ..NARROW
    },
    Mutant {
        name: "a call is for one job at most",
        overrides: Some(|| {
            Arc::new(Declares::this(|can| {
                can.limits.max_jobs_per_call = NonZeroU32::MIN;
            }))
        }),
        caught_by: &[Case("bad_input::the_limits_allow_the_cases", "the cases need")],
        ..NARROW
    },
    Mutant {
        name: "a heartbeat keeps what it does not name",
        overrides: Some(|| Arc::new(KeepsAll::default())),
        caught_by: &[Case(
            "leases::an_extension_keeps_what_it_names",
            "seen: []\nexpected: [b\"",
        )],
        ..NARROW
    },
    Mutant {
        name: "a key of no queue is left behind",
        patches: &[patch(
            "claim",
            "local due_ms, from_handed, ranked_ids = -1, 0, nil",
            "local due_ms, from_handed, ranked_ids = -1, 0, nil \
             redis.call('SET', 'stray', 1)",
        )],
        caught_by: &[Case("no_loss::a_leased_job_is_kept", "NO-FOREIGN-KEYS: stray")],
        ..NARROW
    },
];
