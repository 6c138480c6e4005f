//! The mutants.

use std::sync::Arc;

use conformance_tests::steps::Check;
use queue_core::LeaseScope;

use crate::{
    declared::{Declares, KeepsAll, ring},
    mutant::{
        CaughtBy::{Act, Case},
        HEALTHY, Mutant, Patch,
    },
    twists::{
        ClaimsFirst, DropWhenFull, KeyFirst, LeaseAfterwards, LeavesNothing,
        NowAndThen, OwnClock, PausedForGood, PeekThenMove, PushAgain, PushOneByOne,
        RemoveThenPush, SettleTwice, SulksAfterRefusal, SurelyNot, WaitsForEver,
    },
};

const fn patch(script: &'static str, from: &'static str, to: &'static str) -> Patch {
    Patch { script, from, to }
}

const TAKES_NO_LEASE: Patch =
    patch("claim", "redis.pcall('ZADD', leased, unpack(ends))", "0");

const NARROW: Mutant = Mutant { is_narrow: true, ..HEALTHY };

/// Every mutant; those of one kind of trouble stand together.
pub(crate) const MUTANTS: &[Mutant] = &[
    // Lost.
    Mutant {
        name: "destructive pop",
        patches: &[
            TAKES_NO_LEASE,
            patch("claim", "redis.call('HSET', held, unpack(fields))", ""),
            patch("finish", "if ends[i] and not", "if not"),
            patch(
                "finish_tied",
                "  if entry then\n",
                "  entry = entry or ''\n  if true then\n",
            ),
        ],
        caught_by: &[
            Act("claim", Check::Lost),
            Case("no_loss::a_leased_job_is_kept", "left: 0\n right: 1"),
            Case("dropped::dropped_claims_lose_nothing", "too many (+) or missing (-)"),
        ],
        ..HEALTHY
    },
    Mutant {
        name: "peek, then move",
        twist: Some(|| Arc::new(PeekThenMove)),
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
                "if lease_end then",
                "if lease_end or redis.call('HEXISTS', leased:gsub('leased$', 'held'), lease) == 1 then",
            ),
            patch("extend", "'XX', ", ""),
        ],
        twist: Some(|| Arc::new(LeaseAfterwards)),
        caught_by: &[Act("claim", Check::Conserve), Act("claim", Check::Lost)],
        ..HEALTHY
    },
    Mutant {
        name: "delayed promotion in two steps",
        patches: &[patch(
            "claim",
            "if due then due_in_ms =",
            "if false then due_in_ms =",
        )],
        twist: Some(|| Arc::new(RemoveThenPush)),
        caught_by: &[Act("recover_what_is_due", Check::Lost)],
        ..HEALTHY
    },
    Mutant {
        name: "remove before write in a script that can fail",
        patches: &[patch(
            "fail",
            "  local job = entry and read_entry(entry)\n",
            "  local job = entry and read_entry(entry)\n  if entry then drop_leased(keys, lease) end\n  if delay_ms > 9e15 then redis.call('ZADD', keys.later, 'nan', lease) end\n",
        )],
        caught_by: &[Case(
            "bad_input::an_endless_retry_loses_nothing",
            "right: (0, 3)",
        )],
        ..HEALTHY
    },
    Mutant {
        name: "drop on -OOM",
        twist: Some(|| Arc::new(DropWhenFull)),
        caught_by: &[Act("push", Check::Lost)],
        ..HEALTHY
    },
    Mutant {
        name: "a waiting move fills a list that nobody watches",
        patches: &[patch(
            "claim",
            "local from_handed = is_plain and 0 or look_at_list(handed)",
            "redis.call('SETNX', handed .. ':waiter', worker) local from_handed = (is_plain or redis.call('GET', handed .. ':waiter') ~= worker) and 0 or look_at_list(handed)",
        )],
        caught_by: &[Act("claim_that_waits", Check::RecoveryTime)],
        ..HEALTHY
    },
    // Twice, or the wrong owner.
    Mutant {
        name: "ack by id, without a fence",
        patches: &[patch(
            "finish",
            "local lost, leases, is_seen = {}, {}, {}",
            "local lost, leases, is_seen = {}, {}, {}\nfor i = 1, #ARGV - 1 do\n  local id = ARGV[i + 1]:match('/([^/]*)$')\n  for _, member in ipairs(redis.call('ZRANGE', leased, 0, -1)) do\n    if member:match('/([^/]*)$') == id then ARGV[i + 1], ends[i] = member, '0' end\n  end\nend",
        )],
        caught_by: &[
            Case(
                "one_holder::late_ack_changes_nothing",
                "left: Applied\n right: LeaseLost",
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
                "    lost[#lost + 1] = i - 1",
                "    redis.call('HSET', leased .. ':done', lease:match('/([^/]*)$'), 1)\n    lost[#lost + 1] = i - 1",
            ),
            patch(
                "recover",
                "  if job then\n    local outcome",
                "  if job and redis.call('HEXISTS', keys.leased .. ':done', job.id) == 0 then\n    local outcome",
            ),
        ],
        caught_by: &[Case(
            "recovery::a_late_ack_stops_no_recovery",
            "left: 0\n right: 1",
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
            "left: 4\n right: 2",
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
            "left: 1\n right: 0",
        )],
        ..HEALTHY
    },
    Mutant {
        name: "ack in two steps",
        patches: &[patch(
            "finish",
            "  if ends[i] and not is_seen[lease] then",
            "  if ends[i] and redis.call('HDEL', held, lease) == 1 then\n    is_seen[lease] = true\n  elseif ends[i] and not is_seen[lease] then",
        )],
        twist: Some(|| Arc::new(SettleTwice)),
        caught_by: &[Act("settle_done", Check::Conserve)],
        ..HEALTHY
    },
    Mutant {
        name: "ack that ends the lease and not the job",
        patches: &[
            patch("finish", "redis.call('HDEL', held, unpack(leases))", ""),
            patch(
                "finish",
                "redis.call('ZREM', leased, unpack(leases))",
                "for _, lease in ipairs(leases) do redis.call('ZADD', leased, 0, lease) end",
            ),
        ],
        caught_by: &[Act("settle_done", Check::Final)],
        ..HEALTHY
    },
    Mutant {
        name: "a finished job is told as lost",
        patches: &[patch(
            "finish",
            "if #leases == 0 then return lost end",
            "if #leases == 0 then return lost end\nlost[#lost + 1] = 0",
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
            "    lost[#lost + 1] = i - 1",
            "    if #leases > 0 then\n      redis.call('HDEL', held, unpack(leases))\n      redis.call('ZREM', leased, unpack(leases))\n    end\n    return redis.error_reply('ERR stale')",
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
        patches: &[patch("finish", "    lost[#lost + 1] = i - 1", "")],
        caught_by: &[
            Act("extend", Check::Fence),
            Case(
                "one_holder::late_ack_of_a_ready_job_changes_nothing",
                "left: Applied\n right: LeaseLost",
            ),
        ],
        ..HEALTHY
    },
    Mutant {
        name: "push repeated without an id",
        twist: Some(|| Arc::new(PushAgain)),
        caught_by: &[Act("push", Check::DupBound)],
        ..HEALTHY
    },
    // Not as one.
    Mutant {
        name: "batch pushed one by one",
        twist: Some(|| Arc::new(PushOneByOne)),
        caught_by: &[Act("push_of_many", Check::AllOrNone)],
        ..HEALTHY
    },
    Mutant {
        name: "unique key set before the push",
        patches: &[
            patch(
                "push",
                "if not holder then return nil end",
                "if not holder or holder.id == job.id then return nil end",
            ),
            patch(
                "push",
                "  local expires_at = 0\n",
                "  if job.unique_key ~= '' and not holder_of(keys.unique, job.unique_key, now_ms) then\n    redis.call('HSET', keys.unique, job.unique_key, unique_holder(job.id, 0))\n    return\n  end\n  local expires_at = 0\n",
            ),
        ],
        twist: Some(|| Arc::new(KeyFirst)),
        caught_by: &[Act("push_with_options", Check::Conserve)],
        ..HEALTHY
    },
    // Attempts, bytes, clocks.
    Mutant {
        name: "attempts counted at a failure only",
        patches: &[patch(
            "recover",
            "make_ready(keys, job, entry, 'front')",
            "make_ready(keys, job, with_attempt(entry, job.attempt - 1), 'front')",
        )],
        caught_by: &[Case(
            "recovery::poison_is_buried",
            "left: [(1, false), (1, false), (1, false)]",
        )],
        ..HEALTHY
    },
    Mutant {
        name: "a lost lease buries",
        patches: &[patch(
            "recover",
            "job.attempt >= job.max_attempts",
            "job.attempt >= 1",
        )],
        caught_by: &[Act("recover", Check::WrongEnd)],
        ..HEALTHY
    },
    Mutant {
        name: "a byte more after recovery",
        patches: &[patch(
            "recover",
            "make_ready(keys, job, entry, 'front')",
            "make_ready(keys, job, entry .. '\\0', 'front')",
        )],
        caught_by: &[Act("recover", Check::Unexpected)],
        ..HEALTHY
    },
    Mutant {
        name: "a job that nobody pushed",
        patches: &[patch(
            "recover",
            "    counts[outcome] = counts[outcome] + 1",
            "    counts[outcome] = counts[outcome] + 1\n    redis.call('RPUSH', keys.ready, 'x')",
        )],
        caught_by: &[Act("recover", Check::Unexpected)],
        ..HEALTHY
    },
    Mutant {
        name: "leases by the client's clock",
        twist: Some(|| Arc::new(OwnClock::default())),
        caught_by: &[Case(
            "clocks::a_fast_clocks_lease_ends_in_time",
            "left: 0\n right: 1",
        )],
        ..HEALTHY
    },
    // Errors.
    Mutant {
        name: "EVALSHA without reload",
        server: &["ACL", "SETUSER", "default", "-eval"],
        caught_by: &[Act("claim", Check::ScriptReload)],
        ..HEALTHY
    },
    Mutant {
        name: "a lost answer is told as a refusal",
        twist: Some(|| Arc::new(SurelyNot)),
        caught_by: &[Act("push", Check::ErrorClass)],
        ..HEALTHY
    },
    Mutant {
        name: "no call after one that was refused",
        twist: Some(|| Arc::new(SulksAfterRefusal::default())),
        caught_by: &[Act("pause", Check::Repeat)],
        ..HEALTHY
    },
    Mutant {
        name: "a call that waits for ever",
        twist: Some(|| Arc::new(WaitsForEver::default())),
        caught_by: &[Act("pause", Check::Hang)],
        ..HEALTHY
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
        name: "being given back counts as an attempt",
        patches: &[patch("give_back", "math.max(0, job.attempt - 1)", "job.attempt")],
        caught_by: &[Case(
            "recovery::the_last_attempt_can_be_given_back",
            "left: (7, true)\n right: (1, true)",
        )],
        ..NARROW
    },
    Mutant {
        name: "an extension takes a lost lease again",
        patches: &[
            patch("extend", "if lease_end then", "if true then"),
            patch("extend", "'XX', ", ""),
        ],
        caught_by: &[Case(
            "leases::late_extension_changes_nothing",
            "right: LeaseLost",
        )],
        ..NARROW
    },
    Mutant {
        name: "an ack keeps the unique key",
        patches: &[patch(
            "finish_tied",
            "  free_unique(keys.unique, job)\n  if job.is_indexed",
            "  if job.is_indexed",
        )],
        caught_by: &[Case("unique::an_ack_frees_the_key", "not stored: Duplicate")],
        ..NARROW
    },
    Mutant {
        name: "a unique key is not rescheduled",
        patches: &[patch(
            "push",
            "redis.call('ZADD', keys.later, now_ms + job.delay_ms, holder.id)",
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
            "if forget_at and tonumber(forget_at) > now_ms then return 'id', job.id end",
            "",
        )],
        caught_by: &[Case(
            "idempotence::an_id_is_stored_once",
            "left: Stored(JobId(\"mine\"))",
        )],
        ..NARROW
    },
    Mutant {
        name: "a call token is not looked for",
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
        name: "a delayed job is early",
        patches: &[patch(
            "promote",
            "'-inf', now_ms, 'BYSCORE'",
            "'-inf', '+inf', 'BYSCORE'",
        )],
        caught_by: &[Case("delay::a_delayed_job_is_not_early", "payload: b\"later\"")],
        ..NARROW
    },
    Mutant {
        name: "an expiry is forgotten",
        patches: &[patch(
            "push",
            "expires_at = math.ceil(now_ms + job.expires_in_ms)",
            "expires_at = 0",
        )],
        caught_by: &[Case(
            "expiry::an_expired_job_is_buried",
            "left: [b\"stale\", b\"fresh\"]",
        )],
        ..NARROW
    },
    Mutant {
        name: "a newline becomes a space",
        patches: &[patch(
            "claim",
            "'\\245RQ\\1\\0\\5\\0\\1' .. element:sub(9)",
            "'\\245RQ\\1\\0\\5\\0\\1' .. element:sub(9, 28) .. element:sub(29):gsub('\\n', ' ')",
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
            "redis.call('HINCRBY', totals, total, #leases)",
            "",
        )],
        caught_by: &[Case(
            "figures::every_state_is_counted",
            "left: (0, 0, 3)\n right: (1, 2, 3)",
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
        name: "nobody hears of a resume",
        patches: &[patch("resume", "\nring(keys)", "")],
        caught_by: &[Case("waiting::a_resume_wakes", "it was not woken")],
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
            "left: LeaseLost\n right: Cancelled",
        )],
        ..NARROW
    },
    Mutant {
        name: "a redriven job keeps its attempts",
        patches: &[patch("redrive", "  entry = with_attempt(entry, 0)\n", "")],
        caught_by: &[Case(
            "dead_letters::a_redriven_job_begins_anew",
            "), 2)\n right: (JobId",
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
                "neighbours::a_purge_spares_the_neighbours",
                "left: (0, 0)\n right: (1, 1)",
            ),
            Case("neighbours::keys_of_others_are_left_alone", "[36, 45, 49, 13, 10]"),
        ],
        ..NARROW
    },
    Mutant {
        name: "a turn claims before it settles",
        twist: Some(|| Arc::new(ClaimsFirst)),
        caught_by: &[Case(
            "turns::a_turn_settles_before_it_claims",
            "left: 0\n right: 1",
        )],
        ..NARROW
    },
    Mutant {
        name: "nothing is given back on leaving",
        twist: Some(|| Arc::new(LeavesNothing)),
        caught_by: &[Case("leaving::leaving_gives_back_at_once", "left: 0\n right: 2")],
        ..NARROW
    },
    // Another class than is declared.
    Mutant {
        name: "what comes back to a ring goes to the front",
        twist: Some(|| Arc::new(Declares::this(ring))),
        caught_by: &[
            Case("order::a_given_back_job_is_next", "a is served before b"),
            Case("order::recovered_jobs_keep_their_order", "is served before"),
        ],
        ..NARROW
    },
    Mutant {
        name: "the upper level of a ring is first in, first out",
        twist: Some(|| Arc::new(Declares::this(ring))),
        caught_by: &[Case("order::equals_keep_their_order", "h1 is served before h2")],
        ..NARROW
    },
    Mutant {
        name: "a level that is not told apart is taken",
        twist: Some(|| Arc::new(Declares::this(ring))),
        caught_by: &[Case("bad_input::each_level_is_taken_or_refused", "0 is taken")],
        ..NARROW
    },
    Mutant {
        name: "a job has a lease of its own beside the worker's",
        twist: Some(|| {
            Arc::new(Declares::this(|can| can.lease_scope = LeaseScope::Worker))
        }),
        caught_by: &[Case("leases::a_jobs_own_lease_holds", "Ok([Stored(")],
        ..NARROW
    },
    Mutant {
        name: "a heartbeat keeps what it does not name",
        twist: Some(|| Arc::new(KeepsAll::default())),
        caught_by: &[Case(
            "leases::an_extension_keeps_what_it_names",
            "left: []\n right: [b\"",
        )],
        ..NARROW
    },
    Mutant {
        name: "a key of no queue is left behind",
        patches: &[patch(
            "claim",
            "local elements, ranked_ids = {}, {}",
            "local elements, ranked_ids = {}, {} redis.call('SET', 'stray', 1)",
        )],
        caught_by: &[Case("no_loss::a_leased_job_is_kept", "NO-FOREIGN-KEYS: stray")],
        ..NARROW
    },
    // Against the suite itself.
    Mutant {
        name: "other commands now and then",
        twist: Some(|| Arc::new(NowAndThen::default())),
        caught_by: &[Act("claim", Check::Deterministic)],
        ..HEALTHY
    },
    Mutant {
        name: "an answer without a command",
        twist: Some(|| Arc::new(PausedForGood::default())),
        caught_by: &[Act("pause", Check::FaultFired), Act("pause", Check::Coverage)],
        ..HEALTHY
    },
];
