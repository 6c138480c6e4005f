//! Mutants that list workers that do not run, or do not list those that do (R33).

use crate::mutant::{CaughtBy::Case, Mutant, NARROW, patch};

pub(super) const WORKERS: &[Mutant] = &[
    Mutant {
        name: "each report is the first of its worker",
        patches: &[patch(
            "report_worker",
            "if listed_until > now_ms and #stored >= 6 then",
            "if false then",
        )],
        caught_by: &[Case("workers::the_first_report_stays", "R33")],
        ..NARROW
    },
    Mutant {
        name: "a worker that returns was never away",
        patches: &[patch("report_worker", "listed_until > now_ms and ", "")],
        caught_by: &[Case("workers::a_worker_that_returns_begins_anew", "R33")],
        ..NARROW
    },
    Mutant {
        name: "a worker keeps the slots of its first report",
        patches: &[patch(
            "report_worker",
            "if run ~= stored then",
            "if stored == '' then",
        )],
        caught_by: &[Case("workers::the_first_report_stays", "R33")],
        ..NARROW
    },
    Mutant {
        name: "workers that died are listed",
        patches: &[patch(
            "list_workers",
            "if not after_ms or tonumber(after_ms) <= now_ms then \
             after_ms, name = now_ms, '\\255' end",
            "",
        )],
        caught_by: &[Case("workers::a_dead_worker_is_forgotten", "R33")],
        ..NARROW
    },
    Mutant {
        name: "workers that died before the clock was set back are listed",
        patches: &[patch(
            "list_workers",
            "if tonumber(found[i + 1]) > now_ms + listed_ms then break end",
            "",
        )],
        caught_by: &[Case(
            "workers::a_clock_that_is_set_back_keeps_no_worker_listed",
            "R33: one worker is listed",
        )],
        ..NARROW
    },
    Mutant {
        name: "a worker has first reported in the future",
        patches: &[patch(
            "report_worker",
            "if listed_until > now_ms + listed_ms then listed_until = 0 end",
            "",
        )],
        caught_by: &[Case(
            "workers::a_clock_that_is_set_back_keeps_no_worker_listed",
            "R33: the first report is in the future",
        )],
        ..NARROW
    },
    Mutant {
        name: "a page of workers begins behind all of one time",
        patches: &[patch(
            "list_workers",
            "members_after(alive, count, after_ms, name)",
            "members_after(alive, count, after_ms, '\\255')",
        )],
        caught_by: &[Case("workers::pages_list_each_worker", "R33")],
        ..NARROW
    },
    Mutant {
        name: "a released worker stays listed",
        patches: &[
            patch("remove_worker", "redis.call('HDEL', runs, worker)", ""),
            patch("remove_worker", "redis.call('ZREM', alive, worker)", "1"),
        ],
        caught_by: &[Case("workers::a_released_worker_is_gone", "R33")],
        ..NARROW
    },
    Mutant {
        name: "a recovery leaves the rows of workers that died",
        patches: &[patch(
            "forget",
            "redis.pcall('HDEL', results_key(keys, 'runs'), unpack(old))",
            "",
        )],
        caught_by: &[Case(
            "workers::a_recovery_removes_dead_workers",
            "R33: nothing of the dead worker is left",
        )],
        ..NARROW
    },
    Mutant {
        name: "a recovery leaves the reports of the future",
        patches: &[patch(
            "forget",
            "old = redis.pcall('ZRANGE', alive, last, '+inf', 'BYSCORE', 'LIMIT', 0, most)",
            "",
        )],
        caught_by: &[Case(
            "workers::a_recovery_removes_reports_of_the_future",
            "R33: nothing of the dead worker is left",
        )],
        ..NARROW
    },
    Mutant {
        name: "a purge leaves the list of workers",
        patches: &[patch(
            "purge",
            "redis.call('UNLINK', results_key(keys, 'alive'), results_key(keys, 'runs'))",
            "",
        )],
        caught_by: &[Case("workers::a_purge_empties_the_list", "R33")],
        ..NARROW
    },
];
