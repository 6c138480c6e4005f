//! Mutants with small bugs in times, statistics, pauses and calls, which few cases
//! catch.

use std::sync::Arc;

use crate::{
    careless::BeginsAnew,
    mutant::{CaughtBy::Case, Mutant, NARROW, patch},
    overrides::{
        AcksDiscardsBesideAClaim, ClaimsFirst, HidesWhatComesNext, LeavesNothing,
    },
};

pub(super) const TOLD: &[Mutant] = &[
    Mutant {
        name: "a heartbeat moves the beginning of a lease",
        overrides: Some(|| Arc::new(BeginsAnew)),
        caught_by: &[Case(
            "operator::the_time_of_the_claim_stays",
            "R23: the time of the claim",
        )],
        ..NARROW
    },
    Mutant {
        name: "a recovery does not say what comes next while a job is scheduled",
        overrides: Some(|| Arc::new(HidesWhatComesNext)),
        caught_by: &[Case("recovery::recovery_says_what_comes_first", "a lease runs")],
        ..NARROW
    },
    Mutant {
        name: "push tokens are kept for ever",
        patches: &[patch("forget", "  forget_calls(keys, now_ms, page),\n", "")],
        caught_by: &[Case(
            "stats::each_record_is_forgotten_without_the_others",
            "records stay: PushToken",
        )],
        ..NARROW
    },
    Mutant {
        name: "a purge leaves the push tokens",
        patches: &[patch(
            "purge",
            "redis.call('UNLINK', unpack(KEYS))",
            "for _, key in ipairs(KEYS) do\n\
             if not key:find(':calls', 1, true) then redis.call('UNLINK', key) end\nend",
        )],
        caught_by: &[Case(
            "stats::a_purge_forgets_each_record",
            "a purge leaves records: PushToken",
        )],
        ..NARROW
    },
    Mutant {
        name: "a delayed job is early",
        patches: &[patch(
            "promote",
            "'-inf', '(' .. now_ms + 1, 'BYSCORE'",
            "'-inf', '+inf', 'BYSCORE'",
        )],
        caught_by: &[Case("delay::a_delayed_job_is_not_early", "payload: b\"later\"")],
        ..NARROW
    },
    Mutant {
        name: "an expiry is forgotten",
        patches: &[patch("push", "math.ceil(now_ms + expires_in_ms)", "0")],
        caught_by: &[Case(
            "expiry::an_expired_job_is_buried",
            "seen: [b\"stale\", b\"fresh\"]",
        )],
        ..NARROW
    },
    Mutant {
        name: "a newline becomes a space",
        patches: &[patch(
            "claim",
            "local element, at = elements[i], 2 * i\n",
            "elements[i] = elements[i]:sub(1, 28) .. elements[i]:sub(29):gsub('\\n', ' ')\nlocal element, at = elements[i], 2 * i\n",
        )],
        caught_by: &[Case(
            "no_loss::every_byte_arrives",
            "too many (+) or missing (-)",
        )],
        ..NARROW
    },
    Mutant {
        name: "a finished job is not counted",
        patches: &[patch(
            "finish",
            "redis.pcall('HINCRBY', totals, total, count == 1 and '1' or count)",
            "",
        )],
        caught_by: &[Case(
            "stats::every_state_is_counted",
            "seen: (0, 0, 3)\nexpected: (1, 2, 3)",
        )],
        ..NARROW
    },
    Mutant {
        name: "a claim does not heed the pause",
        patches: &[patch(
            "claim",
            "if redis.call('EXISTS', paused) == 1 then return {now_us, 1, -1} end",
            "",
        )],
        caught_by: &[Case(
            "operator::a_paused_queue_gives_nothing",
            "payload: b\"job\"",
        )],
        ..NARROW
    },
    Mutant {
        name: "a claim takes as many bytes as there are",
        patches: &[
            patch(
                "claim",
                "if budget.jobs == 0 or budget.has_taken and #entry > budget.bytes then",
                "if budget.jobs == 0 then",
            ),
            patch(
                "claim",
                "if budget.has_taken and bytes > budget.bytes then",
                "if false then",
            ),
        ],
        caught_by: &[
            Case("leases::a_claim_is_bounded_by_bytes", "one claim takes"),
            Case("leases::a_claim_of_returned_jobs_is_bounded_by_bytes", "one claim"),
            Case("leases::a_claim_of_urgent_jobs_is_bounded_by_bytes", "one claim"),
        ],
        ..NARROW
    },
    Mutant {
        name: "a last error that grows with each lost lease",
        patches: &[patch("recover", "if #text <= MOST_ERROR_BYTES", "if true")],
        caught_by: &[Case(
            "last_error::the_newest_lost_leases_are_told",
            "R11: the last error of a recovered job",
        )],
        ..NARROW
    },
    Mutant {
        name: "a lost lease leaves no trace",
        patches: &[
            patch("recover", "  note_lost_lease(keys, job)\n", ""),
            patch("recover", "'c' .. with_lost_lease(keys, job)", "'c'"),
        ],
        caught_by: &[
            Case("last_error::each_lost_lease_is_told", "seen: None"),
            Case(
                "last_error::a_crash_keeps_the_last_error",
                "expected: Some(\"it failed",
            ),
        ],
        ..NARROW
    },
    Mutant {
        name: "nobody hears of a resume",
        patches: &[patch("resume", "\nnotify(keys)", "")],
        caught_by: &[
            Case("waiting::a_resume_wakes", "it was not woken"),
            Case(
                "company::waiters_share_the_jobs_of_a_resumed_queue",
                "one was not woken",
            ),
        ],
        ..NARROW
    },
    Mutant {
        name: "a cancelled lease is forgotten",
        patches: &[patch(
            "cancel",
            "redis.call('ZADD', keys.cancelled, forget_at, lease)",
            "",
        )],
        caught_by: &[Case(
            "operator::a_leased_job_is_cancelled",
            "seen: LeaseLost\nexpected: Cancelled",
        )],
        ..NARROW
    },
    Mutant {
        name: "a cancelled lease is forgotten before its end",
        patches: &[patch(
            "cancel",
            "math.max(now_ms, tonumber(end_ms or 0)) + remember_ms",
            "now_ms + remember_ms",
        )],
        caught_by: &[Case(
            "operator::a_cancel_is_told_until_the_lease_ends",
            "seen: LeaseLost\nexpected: Cancelled",
        )],
        ..NARROW
    },
    Mutant {
        name: "a redriven job keeps its attempts",
        patches: &[patch("redrive", "with_attempt(entry, 0)", "entry")],
        caught_by: &[Case(
            "dead_letters::a_redriven_job_begins_anew",
            "), 2)\nexpected: (JobId",
        )],
        ..NARROW
    },
    Mutant {
        name: "a purge takes all there is",
        patches: &[patch(
            "purge",
            "redis.call('UNLINK', unpack(KEYS))",
            "redis.call('FLUSHDB')",
        )],
        caught_by: &[
            Case(
                "isolation::a_purge_spares_other_queues",
                "seen: (0, 0)\nexpected: (1, 1)",
            ),
            Case("isolation::keys_of_others_are_left_alone", "[36, 45, 49, 13, 10]"),
        ],
        ..NARROW
    },
    Mutant {
        name: "one call claims before it settles",
        overrides: Some(|| Arc::new(ClaimsFirst)),
        caught_by: &[
            Case(
                "settle_and_claim::the_settlement_comes_first",
                "seen: 0\nexpected: 1",
            ),
            Case(
                "postponing::a_claim_beside_a_postponement_finds_the_job",
                "expected: [\"job\"]",
            ),
        ],
        ..NARROW
    },
    Mutant {
        name: "a call that also claims acks what is discarded",
        overrides: Some(|| Arc::new(AcksDiscardsBesideAClaim)),
        caught_by: &[Case(
            "settle_and_claim::each_disposition_is_counted_as_what_it_is",
            "the counters after settle_and_claim of Discard",
        )],
        ..NARROW
    },
    Mutant {
        name: "nothing is given back on release",
        overrides: Some(|| Arc::new(LeavesNothing)),
        caught_by: &[Case(
            "worker_release::release_gives_back_at_once",
            "seen: 0\nexpected: 2",
        )],
        ..NARROW
    },
];
