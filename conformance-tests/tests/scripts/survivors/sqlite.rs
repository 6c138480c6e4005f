//! The changes that no case catches on SQLite.

use crate::page::Reasons;

/// The changes that no case catches, each behind the reason why none has to.
pub(crate) const SURVIVORS: Reasons = &[
    (
        "relq-sqlite's `damaged_headers_are_found_in_their_queue` tries it",
        &["audit_headers: without `queue = ?1`"],
    ),
    (
        "relq-sqlite's `a_job_with_damaged_headers_is_buried` tries it",
        &["audit_headers: `<>` for `=` in `WHERE queue = ?1 AND headers IS NOT NULL`"],
    ),
    (
        "relq-sqlite's `a_half_cancelled_batch_gives_nothing` tries it",
        &["batch_claimable: without `state IN ('open', 'sealed')`"],
    ),
    (
        "relq-sqlite's `work_of_another_queue_needs_no_lock` tries it",
        &[
            "batch_maintenance: without `queue = ?1`",
            "batch_maintenance: without `queue = ?1` (2)",
            "batch_maintenance: without `queue = ?1` (3)",
            "claim_look: without `queue = ?1`",
            "claim_look: without `queue = ?1` (2)",
            "claim_look: without `queue = ?1` (3)",
            "worker_holds: without `queue = ?1`",
            "worker_holds: without `queue = ?1` (2)",
        ],
    ),
    (
        "without it a call takes the lock in vain: relq-sqlite's \
         `a_call_with_nothing_to_do_takes_no_lock_beside_other_jobs` sees it",
        &[
            "batch_maintenance: without `state IN ('cancelling', 'cancelled')`",
            "batch_maintenance: without `ready + scheduled > 0`",
            "batch_maintenance: without `state IN ('sealed', 'cancelling')`",
            "batch_maintenance: without `ready + scheduled + leased = 0`",
            "batch_maintenance: without `remove_at <= ?2`",
            "batch_maintenance: without `ready + scheduled + leased = 0` (2)",
            "claim_look: without `state = 'ready'`",
            "claim_look: without `batch IS NULL`",
            "claim_look: without `ready > 0`",
            "claim_look: without `state IN ('open', 'sealed')`",
            "claim_look: without `(slots IS NULL OR leased < slots)`",
            "claim_look: without `state = 'scheduled'`",
        ],
    ),
    (
        "relq-sqlite's `a_closed_batch_stays_until_its_last_piece_has_ended` tries it",
        &["batch_remove: without `ready + scheduled + leased = 0`"],
    ),
    (
        "relq-sqlite's `work_of_another_queue_is_left_to_it` tries it",
        &[
            "batch_to_complete: without `queue = ?1`",
            "batch_to_empty: without `queue = ?1`",
        ],
    ),
    (
        "relq-sqlite's `a_damaged_count_stops_no_cancel` tries it",
        &["batch_to_empty: without `batch > ?2`"],
    ),
    (
        "bounds what a call visits, which no case measures: of a batch without waiting \
         pieces `piece_drop` drops none",
        &["batch_to_empty: without `ready + scheduled > 0`"],
    ),
    (
        "whether there is such a batch does not depend on the order, by which SQLite \
         chooses the index",
        &[
            "claim_look: `-priority DESC` for `-priority` in an order",
            "claim_look: `batch DESC` for `batch` in an order",
        ],
    ),
    (
        "relq-sqlite's `a_job_that_dies_during_a_purge_of_the_dead_is_not_purged` tries it",
        &[
            "dead_last: without `queue = ?1`",
            "dead_page: without `(since, job) <= (?4, ?5)`",
        ],
    ),
    (
        "`since` is read of leased and dead jobs only, and each claim and each burial sets it",
        &[
            "dead_redrive: without `since = NULL`",
            "job_give_back: without `since = NULL`",
            "job_retry: without `since = NULL`",
        ],
    ),
    (
        "`reason` is read of dead jobs only, and each burial sets it",
        &["dead_redrive: without `reason = NULL`"],
    ),
    (
        "the number only reserves turns, some of which may stay unused, and bounds \
         due_promote, which looks at its own queue alone",
        &["due_count: without `queue = ?1`"],
    ),
    (
        "`place` is read of scheduled jobs only, and each statement that schedules a job \
         sets it",
        &[
            "due_promote: without `place = NULL`",
            "job_bury: without `place = NULL`",
            "job_run_now: without `place = NULL`",
        ],
    ),
    (
        "the worker is read of leased jobs only, and each claim sets it",
        &[
            "expired_recover: without `worker = NULL`",
            "job_bury: without `worker = NULL`",
            "job_give_back: without `worker = NULL`",
            "job_retry: without `worker = NULL`",
        ],
    ),
    (
        "relq-sqlite's `a_recovery_begins_with_the_leases_that_ended_first` tries it",
        &["expired_recover: `held.at DESC` for `held.at` in an order"],
    ),
    (
        "the number only reserves turns, some of which may stay unused, and may end a step \
         sooner; follower_release looks at its own queue alone",
        &["follower_count: without `queue = ?1`"],
    ),
    (
        "relq-sqlite's `many_leaders_are_settled_in_steps` tries it",
        &["follower_count: without `leader = ?2`"],
    ),
    (
        "a larger count only reserves turns that stay unused, and may end the step of the \
         call earlier",
        &["follower_count: without `orphaned = 0`"],
    ),
    (
        "relq-sqlite's `a_held_job_that_has_expired_frees_its_key` tries it",
        &[
            "unique_key_free: without `unique_key = NULL`",
            "unique_key_free: without the write",
            "unique_key_free: without `job = ?1`",
            "unique_key_free: `<>` for `=` in `UPDATE jobs SET unique_key = NULL WHERE job = ?1`",
        ],
    ),
    (
        "relq-sqlite's `an_orphan_is_no_follower_of_a_later_job_with_that_id` tries it",
        &[
            "follower_forget: without `orphaned = 0`",
            "follower_leader: without `orphaned = 0`",
            "follower_list: without `orphaned = 0`",
            "follower_release: without `orphaned = 0`",
        ],
    ),
    (
        "of use where another client has changed the state or the due time of a held job, \
         which no test does",
        &["follower_release: without `at = 9223372036854775807`"],
    ),
    (
        "relq-sqlite's `each_settlement_that_ends_a_job_wakes_the_calls` tries it",
        &[
            "job_bury: `IS NOT NULL` for `IS NULL` in `RETURNING iif(keep_ms IS NULL, NULL, id)`",
        ],
    ),
    (
        "relq-sqlite's `a_due_job_that_is_run_now_keeps_its_place` tries it",
        &["job_run_now: without `state = 'scheduled'`"],
    ),
    (
        "the token of a lease holds the key of its job, so no other job has it",
        &[
            "lease_extend: without `job = ?1`",
            "lease_find: without `job = lease.column1`",
        ],
    ),
    (
        "else only leased jobs have a time: a recovery takes the earlier of the two times, \
         and a claim only looks once more",
        &["next_end: without `state = 'scheduled'`"],
    ),
    (
        "relq-sqlite's `an_orphan_waits_for_a_recovery_and_can_be_cancelled` tries it",
        &["orphan_page: `followers.job DESC` for `followers.job` in an order"],
    ),
    (
        "a batch without ready pieces adds none; the condition lets SQLite use the index \
         batches_ready",
        &[
            "peek_ready: without `ready > 0`",
            "peek_ready_newest: without `ready > 0`",
            "stats: without `ready > 0`",
        ],
    ),
    (
        "the rank of a batch contains its key, so no two are equal; the term spares a sort \
         of the pieces",
        &["peek_ready: `batches.batch DESC` for `batches.batch` in an order"],
    ),
    (
        "relq-sqlite's `recoveries_forget_the_batches_of_a_purge_that_failed_later` tries it",
        &[
            "purge_close_batches: without `state = 'cancelled'`",
            "purge_close_batches: without `completed_at = ?2`",
            "purge_close_batches: without `remove_at = ?2`",
            "purge_close_batches: without the write",
            "purge_close_batches: without `completed_at IS NULL`",
        ],
    ),
    (
        "relq-sqlite's `a_purge_that_fails_later_has_ended_the_batches` tries it",
        &[
            "purge_close_batches: `IS NOT NULL` for `IS NULL` in `WHERE queue = ?1 AND completed_at IS NULL`",
        ],
    ),
    (
        "of use where the file is damaged: a page removes each held job together with its row",
        &["purge_followers: without the write"],
    ),
    (
        "no job but a held follower has this time",
        &["purge_page: without `state = 'scheduled'`"],
    ),
    (
        "relq-sqlite's `a_purge_removes_followers_before_their_leaders` tries it",
        &[
            "purge_page: `<>` for `=` in `state = 'scheduled' AND at = 9223372036854775807` (2)",
        ],
    ),
    (
        "relq-sqlite's `an_end_in_another_process_is_noticed_beside_jobs_that_go_on` tries it",
        &[
            "result_pending: without `queue = ?1`",
            "result_pending: `<>` for `=` in `SELECT 1 FROM jobs WHERE queue = ?1 AND id = ?2 AND state <> 'dead'`",
            "result_pending: without `state <> 'dead'`",
            "result_pending: `=` for `<>` in `SELECT 1 FROM jobs WHERE queue = ?1 AND id = ?2 AND state <> 'dead'`",
        ],
    ),
    (
        "relq-sqlite's `each_step_of_waits_is_looked_after` tries it",
        &[
            "result_pending: without `id = ?2`",
            "result_pending: `<>` for `=` in `SELECT 1 FROM jobs WHERE queue = ?1 AND id = ?2 AND state <> 'dead'` (2)",
        ],
    ),
    (
        "relq-sqlite's `a_purge_that_fails_later_leaves_jobs_with_their_records` tries it",
        &[
            "result_remove: without the write",
            "result_remove: without `id = ?2`",
            "result_remove: `<>` for `=` in `DELETE FROM results WHERE queue = ?1 AND id = ?2` (2)",
        ],
    ),
    (
        "the times of ready jobs ascend with their turns, so a look at other levels finds \
         no older job; the condition lets SQLite use the index jobs_ready",
        &[
            "stats: without `-priority = -level`",
            "stats: `<>` for `=` in `AND -priority = -level`",
        ],
    ),
    (
        "relq-sqlite's `large_results_are_removed_in_several_steps` tries it",
        &["sweep_results: without `bytes_before < ?3`"],
    ),
    (
        "the turns of a queue need only ascend, so it does no harm that other queues leave \
         some out",
        &["turns_take: without `queue = ?1`"],
    ),
    (
        "no job but a leased one has a worker",
        &[
            "worker_holds: without `state = 'leased'`",
            "worker_release: without `state = 'leased'`",
        ],
    ),
    (
        "relq-sqlite's `a_call_with_nothing_to_do_takes_no_lock` tries it",
        &[
            "worker_holds: without `worker = ?2`",
            "worker_holds: without `worker = ?2` (2)",
        ],
    ),
    (
        "is shown of leased jobs alone, and each lease sets it",
        &[
            "worker_release: without `worker = NULL`",
            "worker_release: without `since = NULL`",
        ],
    ),
];
