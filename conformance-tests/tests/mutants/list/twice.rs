//! Mutants that run jobs twice, give them to the wrong worker, or store them in part.

use std::sync::Arc;

use relq_conformance::sweep::Check;

use crate::{
    mutant::{
        CaughtBy::{Act, Case, Model, Orders},
        HEALTHY, Mutant, NARROW, patch,
    },
    overrides::{
        KeyFirst, LookThenEnd, PushAgain, PushOneByOne, SettleOneByOne, SettleTwice,
    },
    redo::ForgetsBeforeItRedoes,
};

pub(super) const TWICE: &[Mutant] = &[
    Mutant {
        name: "a recovery that dies leaves a push half done",
        overrides: Some(|| Arc::new(ForgetsBeforeItRedoes)),
        caught_by: &[Act("push_of_many", Check::AllOrNone)],
        ..NARROW
    },
    Mutant {
        name: "ack by id, without a fence",
        patches: &[patch(
            "finish",
            "local count, lost = #ARGV - first + 1, {}\n",
            "local count, lost = #ARGV - first + 1, {}\nfor i = first, #ARGV do\n  local id = ARGV[i]:match('/([^/]*)$')\n  for _, member in ipairs(redis.call('ZRANGE', leased, 0, -1)) do\n    if member:match('/([^/]*)$') == id then ARGV[i] = member end\n  end\nend\n",
        )],
        caught_by: &[
            Case(
                "one_holder::late_ack_changes_nothing",
                "seen: Applied\nexpected: LeaseLost",
            ),
            Act("extend", Check::Fence),
        ],
        ..HEALTHY
    },
    Mutant {
        name: "done by a mark that does not look at the token",
        patches: &[
            patch(
                "finish",
                "lost[#lost + 1] = i - first",
                "redis.call('HSET', leased .. ':done', ARGV[i]:match('/([^/]*)$'), 1) lost[#lost + 1] = i - first",
            ),
            patch(
                "recover",
                "  if job then\n    local outcome",
                "  if job and redis.call('HEXISTS', keys.leased .. ':done', job.id) == 0 then\n    local outcome",
            ),
            patch("recover", "elseif entry ~= ''", "elseif not job and entry ~= ''"),
        ],
        caught_by: &[Case(
            "recovery::a_late_ack_stops_no_recovery",
            "seen: 0\nexpected: 1",
        )],
        ..HEALTHY
    },
    Mutant {
        name: "unconditional reaper",
        patches: &[patch(
            "recover",
            "leased, now_ms, '-inf'",
            "leased, '+inf', '-inf'",
        )],
        caught_by: &[Case(
            "recovery::recovery_spares_the_living",
            "seen: 4\nexpected: 2",
        )],
        ..HEALTHY
    },
    Mutant {
        name: "reaper with a stale read",
        patches: &[
            patch(
                "recover",
                "local overdue =",
                "for _, lease in ipairs(redis.call('ZRANGE', keys.leased .. ':seen', '-inf', now_ms, 'BYSCORE')) do\n  redis.call('ZADD', keys.leased, 0, lease)\n  redis.call('HSET', keys.held, lease, redis.call('HGET', keys.held .. ':seen', lease))\nend\nlocal overdue =",
            ),
            patch(
                "recover",
                "return {\n  counts.requeued",
                "redis.call('COPY', keys.leased, keys.leased .. ':seen', 'REPLACE')\nredis.call('COPY', keys.held, keys.held .. ':seen', 'REPLACE')\nreturn {\n  counts.requeued",
            ),
        ],
        caught_by: &[Case(
            "recovery::a_reaper_forgets_what_it_saw",
            "seen: 1\nexpected: 0",
        )],
        ..HEALTHY
    },
    Mutant {
        name: "ack in two steps",
        patches: &[patch(
            "finish",
            "== count then\n    redis.call('ZREM', leased, unpack(ARGV, first))",
            "== count then",
        )],
        overrides: Some(|| Arc::new(SettleTwice)),
        caught_by: &[Act("settle_done", Check::Conserve)],
        ..HEALTHY
    },
    Mutant {
        name: "ack that ends the lease and not the job",
        patches: &[
            patch(
                "finish",
                "redis.call('HDEL', held, unpack(ARGV, first)) == count",
                "false",
            ),
            patch(
                "finish",
                "redis.call('ZREM', leased, ARGV[i])",
                "redis.call('ZADD', leased, 'XX', 'CH', 0, ARGV[i])",
            ),
        ],
        caught_by: &[Act("settle_done", Check::Final)],
        ..HEALTHY
    },
    Mutant {
        name: "a finished job is told as lost",
        patches: &[patch(
            "finish",
            "count = count - #lost\n",
            "count = count - #lost\n  if count > 0 then lost[#lost + 1] = 0 end\n",
        )],
        caught_by: &[
            Act("push", Check::KeepLive),
            Case("no_loss::jobs_outlive_their_producer", "[LeaseLost, Applied"),
        ],
        ..HEALTHY
    },
    Mutant {
        name: "batch that aborts half way on a stale receipt",
        patches: &[patch(
            "finish",
            "local count, lost = #ARGV - first + 1, {}\n",
            "local count, lost = #ARGV - first + 1, {}\nfor i = first, #ARGV do\n  if not redis.call('ZSCORE', leased, ARGV[i]) then return redis.error_reply('ERR stale') end\n  redis.call('HDEL', held, ARGV[i])\n  redis.call('ZREM', leased, ARGV[i])\n  redis.call('HINCRBY', totals, total, 1)\nend\nif true then return lost end\n",
        )],
        caught_by: &[
            Case(
                "one_holder::a_stale_receipt_spoils_no_other",
                "the settlement is answered",
            ),
            Act("extend", Check::DrainAfterHeal),
        ],
        ..HEALTHY
    },
    Mutant {
        name: "a late ack is told as done",
        patches: &[patch("finish", "lost[#lost + 1] = i - first", "")],
        caught_by: &[
            Act("extend", Check::Fence),
            Case(
                "one_holder::late_ack_of_a_ready_job_changes_nothing",
                "seen: Applied\nexpected: LeaseLost",
            ),
        ],
        ..HEALTHY
    },
    Mutant {
        name: "push repeated without an id",
        overrides: Some(|| Arc::new(PushAgain)),
        caught_by: &[Act("push", Check::DupBound)],
        ..HEALTHY
    },
    Mutant {
        name: "an ack that looks before it acts",
        overrides: Some(|| Arc::new(LookThenEnd)),
        is_racing: true,
        caught_by: &[Case(
            "races::a_cancel_races_an_ack",
            "counted as it was answered",
        )],
        ..HEALTHY
    },
    Mutant {
        name: "batch pushed one by one",
        overrides: Some(|| Arc::new(PushOneByOne)),
        caught_by: &[Act("push_of_many", Check::AllOrNone)],
        ..HEALTHY
    },
    Mutant {
        name: "many jobs settled one by one",
        overrides: Some(|| Arc::new(SettleOneByOne)),
        caught_by: &[
            Act("settle_done", Check::AllOrNone),
            Model("ALL-OR-NONE, R8: settled in part"),
            Orders(
                "p push j,j; a claim 2 l0 | a settle 0D,1D | b claim 1 l0",
                "ALL-OR-NONE, R8: settled in part",
            ),
        ],
        ..HEALTHY
    },
    Mutant {
        name: "unique key set before the push",
        patches: &[
            patch(
                "push",
                "if not holder then return nil end",
                "if not holder or holder == job.id then return nil end",
            ),
            patch(
                "push",
                "  entry = note_new_job(new, job, entry, UNFINISHED)\n",
                "  if job.unique_key ~= '' and not id_of_holder(new.holders[job.unique_key], new.now_ms) then\n    redis.call('HSET', keys.unique, job.unique_key, unique_holder(job.id, 0))\n    return\n  end\n  entry = note_new_job(new, job, entry, UNFINISHED)\n",
            ),
        ],
        overrides: Some(|| Arc::new(KeyFirst)),
        caught_by: &[Act("push_with_options", Check::Conserve)],
        ..HEALTHY
    },
];
