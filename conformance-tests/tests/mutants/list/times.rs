//! Mutants with small bugs in the times of a job, which few cases catch (R27).

use crate::mutant::{
    CaughtBy::{Case, Model, Orders},
    Mutant, NARROW, patch,
};

pub(super) const TIMES: &[Mutant] = &[
    Mutant {
        name: "a job that becomes ready again forgets when it was pushed",
        patches: &[patch(
            "promote",
            "+ 16 * which)",
            "+ 16 * (job.times > 0 and which or 1))",
        )],
        caught_by: &[
            Case(
                "times::the_time_of_the_push_never_changes",
                "R27: of a delivery before",
            ),
            Model("R27: it was pushed"),
            Orders(
                "p push j; a claim 1 l0 | a settle 0P1 | - advance 3 | b claim 1 l0",
                "R27: it was pushed",
            ),
        ],
        ..NARROW
    },
    Mutant {
        name: "the time when a delayed job becomes ready replaces that of its push",
        patches: &[patch("promote", "job.times >= which", "job.times > 0")],
        caught_by: &[
            Case("times::a_scheduled_job_has_the_time_of_its_push", "seen: "),
            Model("R27: it was pushed"),
            Orders(
                "p push j,jd1 | - advance 2 | r recover 5 | b claim 2 l0",
                "R27: it was pushed",
            ),
        ],
        ..NARROW
    },
    Mutant {
        name: "a promoted job counts from its push",
        patches: &[patch(
            "promote",
            "true, with_time(entry, job, READY_TIME, now_ms)",
            "true, entry",
        )],
        caught_by: &[
            Case("times::a_delayed_job_counts_from_its_promotion", "R27: the oldest"),
            Case("times::a_job_counts_from_when_it_became_ready", "R27: the oldest"),
        ],
        ..NARROW
    },
    Mutant {
        name: "a redriven job counts from its push",
        patches: &[patch(
            "redrive",
            "true, with_time(entry, job, READY_TIME, now_ms)",
            "true, entry",
        )],
        caught_by: &[Case(
            "times::a_job_counts_from_when_it_became_ready",
            "R27: the oldest",
        )],
        ..NARROW
    },
    Mutant {
        name: "the age is that of the last priority that was looked at",
        patches: &[patch(
            "stats",
            "oldest_ms = math.max(oldest_ms, ready_age(entry, now_ms))",
            "if entry then oldest_ms = ready_age(entry, now_ms) end",
        )],
        caught_by: &[Case(
            "times::an_old_job_behind_urgent_ones_counts",
            "R27: the oldest",
        )],
        ..NARROW
    },
    Mutant {
        name: "a job that is due has no age until it is made ready",
        patches: &[patch(
            "stats",
            "oldest_ms, step = due_age(keys, now_ms),",
            "oldest_ms, step = -1,",
        )],
        caught_by: &[Case(
            "times::a_due_job_counts_although_nobody_makes_it_ready",
            "R27: no age of the oldest",
        )],
        ..NARROW
    },
    Mutant {
        name: "the age of the newest ready job",
        patches: &[patch(
            "stats",
            "redis.call('LRANGE', list, -1, -1)",
            "redis.call('LRANGE', list, 0, 0)",
        )],
        caught_by: &[
            Case("times::the_oldest_ready_job_is_told", "R27: the oldest"),
            Case("times::an_old_job_behind_urgent_ones_counts", "R27: the oldest"),
        ],
        ..NARROW
    },
    Mutant {
        name: "the clock of the server is a minute slow",
        patches: &[patch(
            "see_marker",
            "redis.call('TIME')",
            "{redis.call('TIME')[1] - 60, 0}",
        )],
        caught_by: &[
            Case("times::a_delivery_has_the_time_of_the_push", "R27: a delivered job"),
            Case("times::a_wrong_clock_records_the_right_time", "R27: the job of a"),
        ],
        ..NARROW
    },
    Mutant {
        name: "the time of a push with options is left to the client",
        patches: &[patch("push", "entry = with_push_time(entry, new.now_ms)", "")],
        caught_by: &[
            Case(
                "times::jobs_with_every_option_have_a_time",
                "R27: a job with options",
            ),
            Case(
                "times::the_store_says_when_a_job_with_options_was_pushed",
                "R27: the job",
            ),
        ],
        ..NARROW
    },
    Mutant {
        name: "the time of a tick's push is left to the scheduler",
        patches: &[patch("push_tick", "entry = with_push_time(entry, new.now_ms)", "")],
        caught_by: &[Case(
            "schedules::the_store_says_when_a_tick_was_pushed",
            "R27: the job of a tick",
        )],
        ..NARROW
    },
    Mutant {
        name: "a dead letter does not say when it was buried",
        patches: &[patch(
            "fail",
            "behind_equals(keys.dead, now_ms), job.id)",
            "behind_equals(keys.dead, 0), job.id)",
        )],
        caught_by: &[Case(
            "dead_letters::a_dead_letter_says_when_it_was_buried",
            "R23: it was buried between",
        )],
        ..NARROW
    },
];
