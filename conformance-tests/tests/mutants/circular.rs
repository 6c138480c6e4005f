//! Mutants of relq-circular, each with a bug that its pattern, a list used as a ring,
//! makes easy.

use std::sync::Arc;

use relq_circular::{CircularConfig, CircularQueue};
use relq_core::{QueueName, environment::Environment};

use crate::mutant::{self, CaughtBy::Case, Mutant, Opening, patch};

const HEALTHY: Mutant = Mutant { open, ..mutant::HEALTHY };

fn open(endpoint: &str, queue: &QueueName, environment: &Environment) -> Opening {
    let config = CircularConfig::new(endpoint).expect("the suite gives a URL");
    let (config, queue) = (config.environment(environment.clone()), queue.clone());
    let connect = async move { CircularQueue::connect(config, queue).await };
    Box::pin(async move { Ok(Arc::new(connect.await?) as _) })
}

pub(crate) const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "done by a mark of any kind",
        patches: &[patch(
            "finish",
            "if not mark or mark <= 0 then return nil end",
            "if not mark then return nil end",
        )],
        caught_by: &[Case(
            "one_holder::late_ack_of_a_ready_job_changes_nothing",
            "seen: Applied\nexpected: LeaseLost",
        )],
        ..HEALTHY
    },
    Mutant {
        name: "a takeover keeps the old token",
        patches: &[
            patch(
                "claim",
                "local token = name .. number .. letter",
                "local token = leased.kept or name .. number .. letter",
            ),
            patch(
                "claim",
                "  lease(element, entry_at, mark >= RECOVERED, put_in_place)\n  redis.call('ZREM', keys.marks, token)",
                "  leased.kept = token\n  lease(element, entry_at, mark >= RECOVERED, put_in_place)\n  leased.kept = nil",
            ),
        ],
        caught_by: &[
            Case(
                "one_holder::late_ack_changes_nothing",
                "seen: Applied\nexpected: LeaseLost",
            ),
            Case("leases::late_extension_changes_nothing", "expected: LeaseLost"),
        ],
        ..HEALTHY
    },
    Mutant {
        name: "an element in process blocks the turn",
        patches: &[patch(
            "claim",
            "      -- The lease still runs, or the job was buried: there is nothing to lease.\n",
            "      redis.call('LMOVE', keys.circle, keys.circle, 'LEFT', 'RIGHT')\n      claimable = 0\n",
        )],
        caught_by: &[Case(
            "one_holder::a_held_job_holds_up_nobody",
            "too many (+) or missing (-)",
        )],
        ..HEALTHY
    },
    Mutant {
        name: "what is done comes round again",
        patches: &[
            patch(
                "claim",
                "if mark ~= OVER then return element, token, mark, #element end",
                "if true then return element, token, mark, #element end",
            ),
            patch(
                "claim",
                "local claimable = length - running - over",
                "local claimable = length - running",
            ),
        ],
        caught_by: &[Case("one_holder::a_finished_job_stays_gone", "seen: [Delivery")],
        ..HEALTHY
    },
    Mutant {
        name: "a takeover is not counted",
        patches: &[patch(
            "claim",
            "lease(element, entry_at, mark >= RECOVERED, put_in_place)",
            "lease(element, entry_at, false, put_in_place)",
        )],
        caught_by: &[Case("recovery::attempts_are_counted", "seen: [1, 1, 2, 2, 2]")],
        ..HEALTHY
    },
    Mutant {
        name: "recovery lets go of the last attempt",
        patches: &[patch("recover", "if token:sub(-1) == 'p' then", "if true then")],
        caught_by: &[Case(
            "recovery::recovery_counts_burials",
            "seen: (2, 0)\nexpected: (1, 1)",
        )],
        ..HEALTHY
    },
    Mutant {
        name: "recovery turns the ring by halves",
        patches: &[
            patch("recover", "  if over == 0 then return false end\n", ""),
            patch(
                "recover",
                "  if length > most and not (is_littered and is_idle) then return false end\n",
                "",
            ),
            patch(
                "recover",
                "rotate_many(keys, math.min(length, most))",
                "rotate_many(keys, math.min(length, 1))",
            ),
            patch("recover", "  if not is_idle then\n", "  if false then\n"),
        ],
        caught_by: &[Case(
            "order::a_retried_job_goes_to_the_back",
            "c is served before b",
        )],
        ..HEALTHY
    },
    Mutant {
        name: "recovery goes on behind an element that it has dropped",
        patches: &[patch(
            "recover",
            "is_for_all and not has_more and drop_litter(keys, most)",
            "is_for_all and drop_litter(keys, most)",
        )],
        caught_by: &[Case(
            "joints::a_recovery_of_several_steps_buries_all",
            "seen: (0,",
        )],
        ..HEALTHY
    },
    Mutant {
        name: "a release takes the marks along",
        patches: &[patch(
            "release_worker",
            "redis.call('ZADD', marks, is_unseen and LEFT_UNSEEN or LEFT, token)",
            "redis.call('ZREM', marks, token)",
        )],
        caught_by: &[Case(
            "worker_release::release_gives_back_at_once",
            "too many (+) or missing (-)",
        )],
        ..HEALTHY
    },
    Mutant {
        name: "a push beside jobs in process notifies nobody",
        patches: &[patch(
            "push_plain",
            "redis.call('LPUSH', keys.circle, unpack(entries))\n  notify(keys)",
            "redis.call('LPUSH', keys.circle, unpack(entries))",
        )],
        caught_by: &[Case(
            "waiting::a_push_beside_a_held_job_wakes",
            "it was not woken",
        )],
        ..HEALTHY
    },
    Mutant {
        name: "a release keeps the key that its job held past its expiry",
        patches: &[patch("release_worker", "token:sub(-1) == 'k'", "false")],
        caught_by: &[Case(
            "unique_expiry::an_expired_release_frees_its_key",
            "Duplicate",
        )],
        ..HEALTHY
    },
];
