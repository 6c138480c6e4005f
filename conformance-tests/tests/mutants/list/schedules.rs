//! Mutants that push the job of a tick twice, too early or not at all (R28).

use std::sync::Arc;

use relq_conformance::sweep::Check;

use crate::{
    mutant::{
        CaughtBy::{Act, Case, Model, Orders},
        Mutant, NARROW, patch,
    },
    schedules::{ListsOnePage, TicksByItsClock, TicksInTwoCalls},
};

pub(super) const SCHEDULES: &[Mutant] = &[
    Mutant {
        name: "a tick is not recorded",
        patches: &[patch(
            "push_tick",
            "redis.call('HSET', schedules, name, struct.pack('>I6', tick_ms) .. definition)",
            "",
        )],
        caught_by: &[
            Case("schedules::a_tick_pushes_its_job_once", "R28: the last tick"),
            Case("schedules::schedulers_at_one_tick_push_it_once", "R28: [Pushed"),
            Act("push_a_tick", Check::Lost),
            Model("R28: "),
            Orders(
                "p put 1 d1; - advance 3 | p tick 1 d1 s5 j | o tick 1 d1 s5 j",
                "R28: ",
            ),
        ],
        ..NARROW
    },
    Mutant {
        name: "a tick at the time of the last one is pushed again",
        patches: &[patch("push_tick", "tick_ms <= struct", "tick_ms < struct")],
        caught_by: &[
            Case("schedules::a_tick_pushes_its_job_once", "R28: the answer is Pushed"),
            Case("schedules::schedulers_at_one_tick_push_it_once", "R28: [Pushed"),
            Act("push_a_tick", Check::DupBound),
            Model("R28: a tick at"),
            Orders(
                "p put 1 d1; - advance 3 | p tick 1 d1 s5 j | o tick 1 d1 s5 j",
                "R28: a tick at",
            ),
        ],
        ..NARROW
    },
    Mutant {
        name: "a tick of an old definition is pushed",
        patches: &[patch(
            "push_tick",
            "stored:sub(TICK_BYTES + 1) ~= definition",
            "false",
        )],
        caught_by: &[
            Case(
                "schedules::a_replaced_schedule_pushes_no_old_tick",
                "R28: the answer is Pushed",
            ),
            Act("push_a_tick_in_vain", Check::Unexpected),
            Model("R28: a tick at"),
            Orders(
                "p put 1 d1; - advance 3 | p tick 1 d1 s6 j | o put 1 d2 | - advance 2",
                "R28: ",
            ),
        ],
        ..NARROW
    },
    Mutant {
        name: "a tick is recorded and its job is not stored",
        patches: &[patch("push_tick", "push_jobs(keys, FIRST, now_ms)", "{}")],
        caught_by: &[
            Case("schedules::a_tick_pushes_its_job_once", "missing (-)"),
            Act("push_a_tick", Check::Lost),
            Model("CONSERVE"),
            Orders("p put 1 d1; - advance 3 | p tick 1 d1 s5 j | a claim 1 l0", "R"),
        ],
        ..NARROW
    },
    Mutant {
        name: "a tick is pushed before it is due",
        patches: &[patch("push_tick", "tick_ms > now_ms", "false")],
        caught_by: &[
            Case("schedules::a_tick_is_not_pushed_early", "R28: the answer is Pushed"),
            Act("push_a_tick_in_vain", Check::Unexpected),
            Model("R28: a tick at"),
            Orders(
                "p put 1 d1; - advance 3 | p tick 1 d1 s6 j | a claim 1 l0",
                "R28: a tick at",
            ),
        ],
        ..NARROW
    },
    Mutant {
        name: "the scheduler's clock says when a tick is due",
        overrides: Some(|| Arc::new(TicksByItsClock)),
        caught_by: &[Case("schedules::a_wrong_clock_changes_no_tick", "R18: slow")],
        ..NARROW
    },
    Mutant {
        name: "a schedule that is stored again as it was forgets its last tick",
        patches: &[patch(
            "put_schedule",
            "then return 'unchanged' end",
            "then stored = stored end",
        )],
        caught_by: &[Case(
            "schedules::the_same_definition_keeps_the_last_tick",
            "seen: Replaced",
        )],
        ..NARROW
    },
    Mutant {
        name: "a replaced schedule pushes the ticks that it missed",
        patches: &[patch(
            "put_schedule",
            "struct.pack('>I6', last_ms)",
            "(stored and stored:sub(1, TICK_BYTES) or struct.pack('>I6', last_ms))",
        )],
        caught_by: &[
            Case(
                "schedules::a_replaced_schedule_begins_anew",
                "R28: the time of the replacement",
            ),
            Act("replace_a_schedule", Check::Lost),
            Model("R28: listed as"),
            Orders("p put 1 d1; - advance 3 | p put 1 d2 | o tick 1 d2 s4 j", "R28: "),
        ],
        ..NARROW
    },
    Mutant {
        name: "the job of a tick is pushed in one call and recorded in another",
        overrides: Some(|| Arc::new(TicksInTwoCalls)),
        is_racing: true,
        caught_by: &[
            Case("schedules::schedulers_at_one_tick_push_it_once", "too many (+)"),
            Act("push_a_tick", Check::DupBound),
            Orders(
                "p put 1 d1; - advance 3 | p tick 1 d1 s5 j | o tick 1 d1 s5 j",
                "R23: ready jobs in the stats: 2",
            ),
        ],
        ..NARROW
    },
    Mutant {
        name: "only the first page of the schedules is listed",
        overrides: Some(|| Arc::new(ListsOnePage)),
        caught_by: &[Case(
            "schedules::schedules_of_several_pages_are_all_listed",
            "R28: the number of schedules",
        )],
        ..NARROW
    },
];
