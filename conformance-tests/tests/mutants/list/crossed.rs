//! Mutants whose bug shows only in a combination of two or three options, states and
//! calls.

use std::sync::Arc;

use crate::{
    company::Forgetful,
    mutant::{CaughtBy::Pairs, Mutant, NARROW, patch},
};

pub(super) const CROSSED: &[Mutant] = &[
    Mutant {
        name: "a job with a client's id does not expire",
        patches: &[patch(
            "push",
            "expires_at = expires_in_ms > 0 and",
            "expires_at = expires_in_ms > 0 and ARGV[at + 7] ~= '1' and",
        )],
        caught_by: &[Pairs("R17")],
        ..NARROW
    },
    Mutant {
        name: "the end of a second attempt frees no key",
        patches: &[patch(
            "finish_with_side_records",
            "if job then close_side_records",
            "if job and job.attempt == 1 then close_side_records",
        )],
        caught_by: &[Pairs("CONSERVE, R23")],
        ..NARROW
    },
    Mutant {
        name: "a job with headers has no lease of its own",
        overrides: Some(|| {
            Arc::new(Forgetful(|mut job| {
                if !job.headers.is_empty() {
                    job.lease = None;
                }
                job
            }))
        }),
        caught_by: &[Pairs("R6: another length of its leases")],
        ..NARROW
    },
    Mutant {
        name: "a job with a client's id is not delayed",
        overrides: Some(|| {
            Arc::new(Forgetful(|mut job| {
                if job.id.is_some() {
                    job.delay = std::time::Duration::ZERO;
                }
                job
            }))
        }),
        caught_by: &[Pairs("R23")],
        ..NARROW
    },
    Mutant {
        name: "a delayed job with a key has any number of attempts",
        overrides: Some(|| {
            Arc::new(Forgetful(|mut job| {
                if job.unique.is_some() && !job.delay.is_zero() {
                    job.max_attempts = std::num::NonZeroU16::MAX;
                }
                job
            }))
        }),
        caught_by: &[Pairs("R11")],
        ..NARROW
    },
];
