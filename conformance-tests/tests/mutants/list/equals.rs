//! Mutants that go wrong only where jobs are equal: in time, in priority or in both.

use crate::mutant::{CaughtBy::Case, Mutant, NARROW, patch};

pub(super) const EQUALS: &[Mutant] = &[
    Mutant {
        name: "equal due times are in the order of their ids",
        patches: &[patch(
            "push",
            "return score < time_ms + 1 and score or last",
            "return time_ms",
        )],
        caught_by: &[Case(
            "equals::equal_due_times_keep_the_order",
            "R13: the order of the jobs",
        )],
        ..NARROW
    },
    Mutant {
        name: "the order of equal due times has room for half as many jobs",
        patches: &[patch(
            "push",
            "math.ldexp(1, exponent - 53)",
            "math.ldexp(1, exponent - 52)",
        )],
        caught_by: &[Case(
            "delay::thousands_due_together_come_in_order",
            "job 1999 is served before job 1998",
        )],
        ..NARROW
    },
    Mutant {
        name: "jobs of a priority are in the order of their ids",
        patches: &[patch(
            "push",
            "edge and edge + step or low + RANKS / 2",
            "low + RANKS / 2",
        )],
        caught_by: &[Case(
            "equals::equal_priorities_keep_the_order",
            "R13: the order of the jobs",
        )],
        ..NARROW
    },
    Mutant {
        name: "an end removes the leases that end first",
        patches: &[patch(
            "finish",
            "redis.call('ZREM', leased, unpack(ARGV, first))",
            "redis.call('ZPOPMIN', leased, count)",
        )],
        caught_by: &[Case(
            "equals::settlements_end_the_job_that_they_name",
            "too many (+) or missing (-)",
        )],
        ..NARROW
    },
    Mutant {
        name: "a redrive removes the dead letter that died first",
        patches: &[patch(
            "redrive",
            "redis.call('ZREM', keys.dead, id)",
            "redis.call('ZREM', keys.dead, redis.call('ZRANGE', keys.dead, 0, 0)[1])",
        )],
        caught_by: &[Case(
            "equals::equal_dead_letters_are_told_apart",
            "too many (+) or missing (-)",
        )],
        ..NARROW
    },
];
