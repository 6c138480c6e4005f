//! Mutants that lose what became of a job, or tell something else (R29).

use std::sync::Arc;

use relq_conformance::sweep::Check;

use crate::{
    mutant::{
        CaughtBy::{Act, Case, Model, Orders},
        Mutant, NARROW, patch,
    },
    results::{GivesResultsToOthers, PollsForResults, ReadsBackwards, StoresAnyReport},
};

/// The line that stores how a job has ended.
const STORED: &str = "redis.pcall('HSET', results_key(keys, 'results'), job.id, letter .. (value or ''))";

/// The line that stores when a result is to be removed.
const DATED: &str = "if letter ~= DEAD then redis.pcall('ZADD', kept, now_ms + job.keep_ms, \
     job.id) end";

/// The line that notes an end for the clients that wait.
const NOTED: &str = "redis.pcall('XADD', results_key(keys, 'ended'), 'MAXLEN', '~', \
     ENDS_KEPT, '*', 'id', job.id)";

pub(super) const RESULTS: &[Mutant] = &[
    Mutant {
        name: "the result of a job is not stored",
        patches: &[patch("finish_with_side_records", STORED, "")],
        caught_by: &[
            Case("results::a_done_job_has_its_result", "R29: job"),
            Case("results::a_result_wakes_its_waiter", "HANG"),
            Act("settle_with_results", Check::Unexpected),
            Model("R29: told"),
            Orders(
                "p push jv2; a claim 1 l0 | a settle 0D1; a result 0 | o result 0",
                "R29: told",
            ),
        ],
        ..NARROW
    },
    Mutant {
        name: "a result by a lost lease is stored",
        patches: &[patch(
            "finish_with_side_records",
            "lost[#lost + 1] = handled",
            "lost[#lost + 1] = handled; redis.call('HSET', results_key(keys, 'results'), \
             lease:match('([^/]*)$'), 'd' .. (value or ''))",
        )],
        caught_by: &[
            Case("results::a_result_by_a_lost_lease_is_not_stored", "R29: job"),
            Model("R29: told"),
            Orders(
                "p push jv2; a claim 1 l0; - advance 3; r recover 5 | a settle 0D1 | \
                 o result 0",
                "R29: told",
            ),
        ],
        ..NARROW
    },
    Mutant {
        name: "a report by a lost lease is stored",
        patches: &[patch(
            "report_progress",
            "if not entry then return 'lost' end",
            "if not entry then redis.call('HSET', results_key(keys, 'results'), \
             lease:match('([^/]*)$'), REPORTED .. progress) return 'lost' end",
        )],
        caught_by: &[
            Case("results::a_report_by_a_lost_lease_changes_nothing", "R29: job"),
            Model("R29: told"),
            Orders(
                "p push jv2; a claim 1 l0; a settle 0D1 | a report 0 v1 | o result 0",
                "R29: told",
            ),
        ],
        ..NARROW
    },
    Mutant {
        name: "a report by a lost lease counts as stored",
        overrides: Some(|| Arc::new(StoresAnyReport)),
        caught_by: &[
            Case("results::a_report_by_a_lost_lease_changes_nothing", "seen: Stored"),
            Model("R29, R7: a report is Stored"),
            Orders(
                "p push jv2; a claim 1 l0; a settle 0D1 | a report 0 v1 | o result 0",
                "R29, R7: a report is Stored",
            ),
        ],
        ..NARROW
    },
    Mutant {
        name: "a job that its worker buries is told as unfinished",
        patches: &[patch("fail", "end_result(keys, job, now_ms, DEAD, why)", "")],
        caught_by: &[
            Case("results::a_job_that_its_worker_buries_says_why", "R29: job"),
            Act("bury_a_kept_job", Check::Unexpected),
            Model("R29: told"),
            Orders(
                "p push jv2; a claim 1 l0 | a settle 0B; a result 0 | o result 0",
                "R29: told",
            ),
        ],
        ..NARROW
    },
    Mutant {
        name: "a redriven job is told as dead",
        patches: &[patch(
            "redrive",
            "if job.keep_ms then begin_results(keys, {id, UNFINISHED}) end",
            "",
        )],
        caught_by: &[
            Case("results::a_redriven_job_is_unfinished_again", "R29: job"),
            Orders(
                "p push jv2; a claim 1 l0; a settle 0B | o redrive; o result 0 | a result 0",
                "R29: told",
            ),
        ],
        ..NARROW
    },
    Mutant {
        name: "a result is kept for ever",
        patches: &[patch("finish_with_side_records", DATED, "")],
        caught_by: &[Case("results::a_result_is_kept_for_its_time", "R29: job")],
        ..NARROW
    },
    Mutant {
        name: "a result is not kept",
        patches: &[patch("finish_with_side_records", "now_ms + job.keep_ms", "now_ms")],
        caught_by: &[
            Case("results::a_done_job_has_its_result", "R29: job"),
            Act("settle_with_results", Check::Lost),
            Model("R29: told"),
            Orders(
                "p push jv2; a claim 1 l0; a settle 0D1 | o result 0 | r recover 5",
                "R29: told",
            ),
        ],
        ..NARROW
    },
    Mutant {
        name: "old results are not removed",
        patches: &[patch("forget", "forget_results(keys, now_ms, page),", "0,")],
        caught_by: &[Case("results::old_results_leave_nothing", "NO-ORPHAN-KEYS")],
        ..NARROW
    },
    Mutant {
        name: "an id is forgotten with a result that is kept for a short time",
        patches: &[patch(
            "finish_with_side_records",
            "math.max(window_ms, job.keep_ms or 0)",
            "(job.keep_ms or window_ms)",
        )],
        caught_by: &[Case(
            "results::an_id_is_remembered_longer_than_a_short_result",
            "R4: five minutes after its end",
        )],
        ..NARROW
    },
    Mutant {
        name: "recovery is over although old results are left",
        patches: &[patch(
            "forget",
            "return #gone < #old and most or #gone",
            "return #gone",
        )],
        caught_by: &[Case("results::old_results_leave_nothing", "NO-ORPHAN-KEYS")],
        ..NARROW
    },
    Mutant {
        name: "a result that is pushed again is removed with the old one",
        patches: &[patch("push", "redis.call('ZREM', kept, unpack(ids))", "")],
        caught_by: &[Case(
            "results::an_id_is_remembered_as_long_as_its_result",
            "R29: job",
        )],
        ..NARROW
    },
    Mutant {
        name: "a duplicate begins the record of its job again",
        patches: &[patch(
            "push",
            "if not note_duplicate(keys, new, job, (at - first) / PUSH_FIELDS) then",
            "if note_duplicate(keys, new, job, (at - first) / PUSH_FIELDS) then \
             if keeps_result(ARGV[at + 1]) then \
             add_pair(new.results, new.duplicates[#new.duplicates], UNFINISHED) end else",
        )],
        caught_by: &[
            Case("results::a_duplicate_by_id_records_nothing", "R29: job"),
            Case("results::a_duplicate_by_key_records_nothing", "R29: job"),
        ],
        ..NARROW
    },
    Mutant {
        name: "a cancel wakes no client that waits for the job",
        patches: &[patch("cancel", NOTED, "")],
        caught_by: &[Case("results::a_cancel_wakes", "HANG")],
        ..NARROW
    },
    Mutant {
        name: "a purge leaves what was recorded",
        patches: &[patch("purge", "purge_results({errors = KEYS[7]})", "")],
        caught_by: &[
            Case("results::a_purge_removes_all_that_is_recorded", "seen: [Some"),
            Act("purge_results", Check::Unexpected),
            Orders(
                "p push jv2; a claim 1 l0; a settle 0B | r purge; r result 0 | o result 0",
                "R29: told",
            ),
        ],
        ..NARROW
    },
    Mutant {
        name: "a wait for a result polls",
        overrides: Some(|| Arc::new(PollsForResults)),
        caught_by: &[Case("results::a_result_wakes_its_waiter", "HANG")],
        ..NARROW
    },
    Mutant {
        name: "results of a call are given to each other's jobs",
        overrides: Some(|| Arc::new(GivesResultsToOthers)),
        caught_by: &[
            Case("results::results_of_one_call_are_of_their_jobs", "R29"),
            Act("settle_with_results", Check::Unexpected),
            Orders(
                "p push jv2,jv2; a claim 2 l0 | a settle 1D1,0D2; a result 0 | o result 1",
                "R29: told",
            ),
        ],
        ..NARROW
    },
    Mutant {
        name: "results are read in the reverse order",
        overrides: Some(|| Arc::new(ReadsBackwards)),
        caught_by: &[Case(
            "results::many_results_are_read_in_the_order_of_the_ids",
            "R29: job",
        )],
        ..NARROW
    },
];
