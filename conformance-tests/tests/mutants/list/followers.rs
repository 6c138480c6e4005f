//! Mutants that run a follower too early, never, or although its leader failed (R30).

use std::sync::Arc;

use crate::{
    followers::CancelsTheFollowersOfTheDead,
    mutant::{
        CaughtBy::{Case, Orders},
        Mutant, NARROW, patch,
    },
};

/// The line that tells the ends of leaders apart.
const IS_DONE: &str = "if leader.is_done then";

/// The line that releases the followers of a job.
const RELEASED: &str = "for _, id in ipairs(followers) do \
     release_follower(keys, leader.id, id, now_ms, step) end";

/// The line with which a follower's delay begins.
const DELAYED: &str =
    "redis.call('ZADD', keys.later, due_score(keys, now_ms + delay_ms), id)";

/// The line that removes a cancelled follower from the list of its leader.
const LEFT: &str = "if job then leave_leader(keys, job, entry) end";

/// The line that removes the lists of followers with the queue.
const PURGED: &str = "redis.call('UNLINK', results_key(keys, 'followers'), \
     results_key(keys, 'orphans'))";

pub(super) const FOLLOWERS: &[Mutant] = &[
    Mutant {
        name: "a discarded leader releases its follower",
        patches: &[patch("finish_with_side_records", IS_DONE, "if true then")],
        caught_by: &[
            Case("followers::each_end_but_done_cancels_the_followers", "R30"),
            Case("followers::the_end_of_a_chain_names_the_jobs_before", "R29: job"),
            Orders(
                "p push ji1,jf1; a claim 1 l0 | a settle 0X | b claim 1 l0",
                "R17: must not be delivered",
            ),
        ],
        ..NARROW
    },
    Mutant {
        name: "a done leader leaves its follower held",
        patches: &[patch("finish_with_side_records", RELEASED, "")],
        caught_by: &[
            Case("followers::a_follower_of_a_done_job_is_ready", "R1"),
            Orders(
                "p push ji1,jf1; a claim 1 l0 | a settle 0D | b claim 1 l0",
                "LOST, R1",
            ),
        ],
        ..NARROW
    },
    Mutant {
        name: "a job that gets another id leaves the followers of the old one behind",
        patches: &[patch(
            "fail",
            "if job.is_indexed then pass_index_on(keys, job.id) end",
            "if job.is_indexed then redis.call('ZREM', keys.ids, job.id) end",
        )],
        caught_by: &[Case(
            "followers::a_leader_that_shares_its_id_releases_its_followers",
            "R30: the ready jobs",
        )],
        ..NARROW
    },
    Mutant {
        name: "a done leader releases its first follower only",
        patches: &[patch(
            "finish_with_side_records",
            RELEASED,
            "release_follower(keys, leader.id, followers[1], now_ms, step)",
        )],
        caught_by: &[Case(
            "followers::followers_are_ready_in_the_order_of_their_pushes",
            "R30: the ready jobs",
        )],
        ..NARROW
    },
    Mutant {
        name: "a burial cancels the followers",
        overrides: Some(|| Arc::new(CancelsTheFollowersOfTheDead)),
        caught_by: &[Case("followers::a_dead_leader_holds_its_follower", "R30: ")],
        ..NARROW
    },
    Mutant {
        name: "a recovery cancels no follower",
        patches: &[patch(
            "forget",
            "has_more = cancel_orphans(keys, now_ms, window_ms, new_step(page))",
            "has_more = false",
        )],
        caught_by: &[Case("followers::a_long_chain_is_cancelled", "R30 R23")],
        ..NARROW
    },
    Mutant {
        name: "a cancelled held job leaves its own followers held",
        patches: &[patch(
            "cancel",
            "settle_leaders(keys, now_ms, window_ms, new_step(1))",
            "",
        )],
        caught_by: &[
            Case("followers::a_leader_is_cancelled_in_any_state", "R30 R23"),
            Orders(
                "p push ji1,ji2f1,jf2 | o cancel 1 | a claim 1 l0",
                "R23: the audit",
            ),
        ],
        ..NARROW
    },
    Mutant {
        name: "a repeated push of a follower looks at its leader first",
        patches: &[patch(
            "push",
            "local is_new = earlier[id] == nil and not is_known",
            "local is_new = earlier[id] == nil",
        )],
        caught_by: &[
            Case(
                "followers::a_repeated_push_of_a_follower_is_answered_as_before",
                "CannotFollow",
            ),
            Case(
                "followers::a_repeated_follower_is_a_duplicate_in_each_state",
                "CannotFollow",
            ),
        ],
        ..NARROW
    },
    Mutant {
        name: "a push after a done job waits for ever",
        patches: &[patch(
            "push",
            "if held and is_live(new, held.leader) then",
            "if held then",
        )],
        caught_by: &[
            Case("followers::a_job_that_is_done_holds_nobody", "R30: the ready jobs"),
            Case("followers::an_ended_leader_lets_the_delay_run", "R30: the held jobs"),
        ],
        ..NARROW
    },
    Mutant {
        name: "the delay of a follower is over at its release",
        patches: &[patch(
            "finish_with_side_records",
            DELAYED,
            "redis.call('ZADD', keys.later, now_ms, id)",
        )],
        caught_by: &[Case(
            "followers::a_delay_begins_at_the_end_of_the_leader",
            "its delay has just begun",
        )],
        ..NARROW
    },
    Mutant {
        name: "a discarded job can be followed",
        patches: &[patch(
            "finish_with_side_records",
            "is_done and forget_at or forget_at + 0.5",
            "forget_at",
        )],
        caught_by: &[
            Case("followers::a_job_that_was_not_done_cannot_be_followed", "R30"),
            Orders(
                "p push ji1; a claim 1 l0 | a settle 0X | p push jf1",
                "R30: stored",
            ),
        ],
        ..NARROW
    },
    Mutant {
        name: "a cancelled follower keeps its place",
        patches: &[patch("cancel", LEFT, "")],
        caught_by: &[Case(
            "followers::a_leader_has_a_hundred_followers_at_most",
            "CannotFollow",
        )],
        ..NARROW
    },
    Mutant {
        name: "a purge leaves the lists of followers",
        patches: &[patch("purge", PURGED, "")],
        caught_by: &[Case("followers::a_purge_removes_held_jobs", "CannotFollow")],
        ..NARROW
    },
];
