//! Mutants with small bugs in returned jobs, keys and ids, which few cases catch.

use crate::mutant::{
    CaughtBy::{Case, Model, Orders},
    Mutant, NARROW, patch,
};

pub(super) const RETURNED: &[Mutant] = &[
    Mutant {
        name: "a redrive drops a running expiry",
        patches: &[patch(
            "redrive",
            "expires_at > 0 and expires_at <= now_ms then\n    entry",
            "expires_at > 0 then\n    entry",
        )],
        caught_by: &[Case(
            "expiry::a_redriven_job_keeps_a_running_expiry",
            "R17: the expiry of a redriven job",
        )],
        ..NARROW
    },
    Mutant {
        name: "a job given back loses its last error",
        patches: &[patch(
            "give_back",
            "    settle_dropped(keys, step)\n  else",
            "    settle_dropped(keys, step)\n    if job then redis.call('HDEL', keys.errors, job.id) end\n  else",
        )],
        caught_by: &[Case(
            "last_error::a_last_error_stays_until_the_next",
            "R11: the last error of a given back job",
        )],
        ..NARROW
    },
    Mutant {
        name: "a job that is due loses its last error",
        patches: &[patch(
            "promote",
            "redis.call('ZREM', keys.later, id)\nend",
            "redis.call('ZREM', keys.later, id)\n  redis.call('HDEL', keys.errors, id)\nend",
        )],
        caught_by: &[Case(
            "last_error::a_last_error_stays_until_the_next",
            "R11: the last error of a due job",
        )],
        ..NARROW
    },
    Mutant {
        name: "a redriven job keeps its last error",
        patches: &[patch(
            "redrive",
            "  redis.call('HDEL', keys.errors, id)\n  redis.call('ZREM', keys.dead, id)",
            "  redis.call('ZREM', keys.dead, id)",
        )],
        caught_by: &[Case(
            "dead_letters::a_redriven_job_has_no_last_error",
            "R11: the last error of a redriven job",
        )],
        ..NARROW
    },
    Mutant {
        name: "the key of a job that is delivered again expires",
        patches: &[patch(
            "claim",
            "local expires = (job.expires_at or 0) > now_ms",
            "local expires = job.attempt == 0 and (job.expires_at or 0) > now_ms",
        )],
        caught_by: &[Case(
            "unique_expiry::a_holder_leased_again_does_not_expire",
            "R16: ",
        )],
        ..NARROW
    },
    Mutant {
        name: "a claim binds the key of an expired job",
        patches: &[patch(
            "claim",
            "local expires = (job.expires_at or 0) > now_ms",
            "local expires = (job.expires_at or 0) > 0",
        )],
        caught_by: &[Case(
            "unique_expiry::an_interrupted_claim_leaves_the_key_of_an_expired_job_free",
            "not stored: Duplicate",
        )],
        ..NARROW
    },
    Mutant {
        name: "a redriven job holds its key beyond its expiry",
        patches: &[patch(
            "redrive",
            "job.unique_key, unique_holder(id, expires_at))",
            "job.unique_key, unique_holder(id, 0))",
        )],
        caught_by: &[Case(
            "unique_expiry::an_expired_redriven_job_frees_its_key",
            "not stored: Duplicate",
        )],
        ..NARROW
    },
    Mutant {
        name: "a token is forgotten too early",
        patches: &[patch(
            "push",
            "keys.calls, now_ms + window_ms, token",
            "keys.calls, now_ms + window_ms * 0.9, token",
        )],
        caught_by: &[Case(
            "idempotence::a_token_is_forgotten_after_the_window",
            "known within the window",
        )],
        ..NARROW
    },
    Mutant {
        name: "the id of a finished job is forgotten too early",
        patches: &[patch(
            "finish_with_side_records",
            "local window_ms = tonumber(ARGV[2])",
            "local window_ms = tonumber(ARGV[2]) * 0.9",
        )],
        caught_by: &[Case(
            "idempotence::an_id_is_forgotten_after_the_window",
            "Stored",
        )],
        ..NARROW
    },
    Mutant {
        name: "a recovered job goes to the back",
        patches: &[patch(
            "recover",
            "make_ready(keys, job, entry, 'front')",
            "make_ready(keys, job, entry, 'back')",
        )],
        caught_by: &[Case(
            "order::recovered_jobs_keep_their_order",
            "job 5 is served before job 4",
        )],
        ..NARROW
    },
    Mutant {
        name: "a job given back goes to the back",
        patches: &[patch(
            "give_back",
            "job.attempt - 1)), 'front')",
            "job.attempt - 1)), 'back')",
        )],
        caught_by: &[Case("order::a_given_back_job_is_next", "b is served before a")],
        ..NARROW
    },
    Mutant {
        name: "a job that a waiting claim moved stays before a job given back",
        patches: &[patch(
            "give_back",
            "if direction == 'front' then put_back_handed(keys) end",
            "",
        )],
        caught_by: &[Case(
            "order::a_job_given_back_in_a_pause_is_next",
            "pushed is served before back",
        )],
        ..NARROW
    },
    Mutant {
        name: "jobs that waiting claims moved go back in the reverse order",
        patches: &[patch(
            "give_back",
            "redis.call('LMOVE', handed, keys.ready, 'LEFT', 'RIGHT')",
            "redis.call('LMOVE', handed, keys.ready, 'RIGHT', 'RIGHT')",
        )],
        caught_by: &[Case(
            "order::jobs_moved_for_claims_in_a_pause_keep_their_order",
            "is served before job",
        )],
        ..NARROW
    },
    Mutant {
        name: "a job is claimed in place of an urgent one that does not fit",
        patches: &[patch(
            "claim",
            "if entry and not may_take(budget, entry) then return end",
            "if entry and budget.has_taken and #entry > budget.bytes then return end\n      \
             if entry then count_page(budget, 1, #entry) end",
        )],
        caught_by: &[Case(
            "order::an_urgent_job_that_is_too_large_for_a_claim_is_next",
            "normal is served before large",
        )],
        ..NARROW
    },
    Mutant {
        name: "being given back counts as an attempt",
        patches: &[patch("give_back", "math.max(0, job.attempt - 1)", "job.attempt")],
        caught_by: &[Case(
            "recovery::the_last_attempt_can_be_given_back",
            "seen: (7, true)\nexpected: (1, true)",
        )],
        ..NARROW
    },
    Mutant {
        name: "an extension takes a lost lease again",
        patches: &[
            patch(
                "extend",
                "if lease_end and tonumber(lease_end) > 0 then",
                "if true then",
            ),
            patch("extend", "'XX', ", ""),
        ],
        caught_by: &[Case(
            "leases::late_extension_changes_nothing",
            "expected: LeaseLost",
        )],
        ..NARROW
    },
    Mutant {
        name: "an ack keeps the unique key",
        patches: &[patch(
            "finish_with_side_records",
            "  free_unique(keys.unique, job)\n  end_result(keys, job, now_ms, END",
            "  end_result(keys, job, now_ms, END",
        )],
        caught_by: &[Case("unique::an_ack_frees_the_key", "not stored: Duplicate")],
        ..NARROW
    },
    Mutant {
        name: "a unique key is not rescheduled",
        patches: &[patch(
            "push",
            "redis.call('ZADD', keys.later, behind_equals(keys.later, now_ms + delay_ms), id)",
            "",
        )],
        caught_by: &[Case(
            "unique_moves::reschedule_moves_a_scheduled_holder",
            "missing (-): {b\"first\": -1}",
        )],
        ..NARROW
    },
    Mutant {
        name: "an expired holder keeps its key",
        patches: &[patch(
            "push",
            "if expires_at > 0 and expires_at <= now_ms then return nil end",
            "",
        )],
        caught_by: &[Case(
            "unique_expiry::an_expired_holder_frees_its_key",
            "not stored: Duplicate",
        )],
        ..NARROW
    },
    Mutant {
        name: "an id is not looked for",
        patches: &[patch(
            "push",
            "if forget_at and tonumber(forget_at) > new.now_ms then return true end",
            "",
        )],
        caught_by: &[Case(
            "idempotence::an_id_is_stored_once",
            "seen: Stored(JobId(\"mine\"))",
        )],
        ..NARROW
    },
    Mutant {
        name: "a push token is not looked for",
        patches: &[patch(
            "push",
            "if forget_at and tonumber(forget_at) > now_ms then\n",
            "if false then\n",
        )],
        caught_by: &[Case(
            "idempotence::a_token_is_stored_once",
            "too many (+) or missing (-)",
        )],
        ..NARROW
    },
    Mutant {
        name: "a ranked job given back goes to the back",
        patches: &[patch(
            "give_back",
            "job.attempt - 1)), 'front')",
            "job.attempt - 1)), job.priority == NORMAL and 'front' or 'back')",
        )],
        caught_by: &[
            Case("equals::equal_priorities_keep_the_order", "seen: ["),
            Model("FIFO, R13, R15: before job"),
            Orders(
                "p push jp1,jp1; a claim 1 l0 | a settle 0G | b claim 1 l0",
                "FIFO, R13, R15: before job",
            ),
        ],
        ..NARROW
    },
    Mutant {
        name: "recovered jobs are in the order in which their leases ended",
        patches: &[patch("recover", "last_claimed_first(overdue)\n", "")],
        caught_by: &[Case(
            "order::extended_jobs_keep_their_order",
            "is served before job",
        )],
        ..NARROW
    },
];
