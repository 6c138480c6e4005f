//! Mutants that lose jobs.

use std::sync::Arc;

use relq_conformance::sweep::Check;

use crate::{
    mutant::{
        CaughtBy::{Act, Case},
        HEALTHY, Mutant, Patch, patch,
    },
    overrides::{DropWhenFull, LeaseAfterwards, PeekThenMove, RemoveThenPush},
};

const TAKES_NO_LEASE: Patch =
    patch("claim", "redis.pcall('ZADD', leased, unpack(ends))", "0");

pub(super) const LOST: &[Mutant] = &[
    Mutant {
        name: "destructive pop",
        patches: &[
            TAKES_NO_LEASE,
            patch("claim", "redis.call('HSET', held, unpack(fields))", ""),
            patch("finish", "== 0 then lost", "== 2 then lost"),
            patch(
                "finish_with_side_records",
                "  if entry then\n",
                "  entry = entry or ''\n  if true then\n",
            ),
        ],
        caught_by: &[
            Act("claim", Check::Lost),
            Case("no_loss::a_leased_job_is_kept", "seen: 0\nexpected: 1"),
            Case(
                "cancel_safety::dropped_claims_lose_nothing",
                "too many (+) or missing (-)",
            ),
        ],
        ..HEALTHY
    },
    Mutant {
        name: "peek, then move",
        overrides: Some(|| Arc::new(PeekThenMove)),
        is_racing: true,
        caught_by: &[Case(
            "one_holder::racing_workers_share_the_jobs",
            "too many (+) or missing (-)",
        )],
        ..HEALTHY
    },
    Mutant {
        name: "recovery by RENAME onto a live list",
        patches: &[
            patch(
                "recover",
                "make_ready(keys, job, entry, 'front')",
                "redis.call('RPUSH', keys.ready .. ':back', entry)",
            ),
            patch(
                "recover",
                "return {\n  counts.requeued",
                "if redis.call('EXISTS', keys.ready .. ':back') == 1 then redis.call('RENAME', keys.ready .. ':back', keys.ready) end\nreturn {\n  counts.requeued",
            ),
        ],
        caught_by: &[Act("claim", Check::Lost)],
        ..HEALTHY
    },
    Mutant {
        name: "lease written in a second command",
        patches: &[
            TAKES_NO_LEASE,
            patch(
                "extend",
                "if lease_end and tonumber(lease_end) > 0 then",
                "if lease_end or redis.call('HEXISTS', leased:gsub('leased$', 'held'), lease) == 1 then",
            ),
            patch("extend", "'XX', ", ""),
        ],
        overrides: Some(|| Arc::new(LeaseAfterwards)),
        caught_by: &[Act("claim", Check::Conserve), Act("claim", Check::Lost)],
        ..HEALTHY
    },
    Mutant {
        name: "delayed promotion in two steps",
        patches: &[patch(
            "claim",
            "if not due or due == 'inf' then return -1 end",
            "do return -1 end",
        )],
        overrides: Some(|| Arc::new(RemoveThenPush)),
        caught_by: &[Act("recover_what_is_due", Check::Lost)],
        ..HEALTHY
    },
    Mutant {
        name: "remove before write in a script that can fail",
        patches: &[patch(
            "fail",
            "  local job = entry and read_entry(entry)\n",
            "  local job = entry and read_entry(entry)\n  if entry then drop_leased(keys, lease) end\n  if delay_ms > 3e12 then redis.call('ZADD', keys.later, 'nan', lease) end\n",
        )],
        caught_by: &[Case(
            "bad_input::an_endless_retry_loses_nothing",
            "expected: (0, 3)",
        )],
        ..HEALTHY
    },
    Mutant {
        name: "drop on -OOM",
        overrides: Some(|| Arc::new(DropWhenFull)),
        caught_by: &[Act("push", Check::Lost)],
        ..HEALTHY
    },
    Mutant {
        name: "a waiting move fills a list that nobody watches",
        patches: &[
            patch(
                "claim",
                "local due_ms, from_handed, ranked_ids = -1, 0, nil",
                "redis.call('SETNX', handed .. ':waiter', worker) local due_ms, from_handed, ranked_ids = -1, 0, nil",
            ),
            patch(
                "claim",
                "from_handed = take_from_tail(handed, budget, elements)",
                "from_handed = redis.call('GET', handed .. ':waiter') ~= worker and 0 or take_from_tail(handed, budget, elements)",
            ),
        ],
        caught_by: &[Act("claim_that_waits", Check::RecoveryTime)],
        ..HEALTHY
    },
];
