//! The changes that no case catches on zset, and the cases that catch no change of it.

use crate::page::Reasons;

/// The changes that no case catches, each behind the reason why none has to.
pub(crate) const SURVIVORS: Reasons = &[
    (
        "of use where a key has another type, which no case puts there: \
         `src/sweep/server_faults/foreign.rs` does",
        &[
            "bookkeeping/cancel: without `check_keys(keys)`",
            "bookkeeping/fail: without `check_keys(keys)`",
            "bookkeeping/forget: without `check_bookkeeping(keys)`",
            "bookkeeping/give_back: without `check_keys(keys)`",
            "bookkeeping/moves: without `check_bookkeeping(keys)`",
            "bookkeeping/moves: without `check_ready(keys)`",
            "bookkeeping/promote: without `check_keys(keys)`",
            "bookkeeping/purge_dead: without `check_bookkeeping(keys)`",
            "bookkeeping/push: without `check_push(keys)`",
            "bookkeeping/push_tick: without `check_push(keys)`",
            "bookkeeping/pushing: without `check_ready(keys)`",
            "bookkeeping/pushing: without `check_results(keys)`",
            "bookkeeping/redrive: without `check_keys(keys)`",
            "bookkeeping/redrive: without `check_results(keys)`",
            "bookkeeping/restore: without `check_keys(keys)`",
            "bookkeeping/run_now: without `check_keys(keys)`",
            "bookkeeping/side_records: without `check_side_records(keys)`",
            "zset/cancel_listed: without `check_side_records(side_records)`",
            "zset/cancel_ranked: without `check_side_records(keys)`",
            "zset/claiming: without `redis.call('HDEL', held, fields[i])`",
            "zset/finish_with_side_records: without `check_side_records(keys)`",
            "zset/finish_with_side_records: without `check_ready(keys)`",
            "zset/recover: without `check_keys(keys)`",
        ],
    ),
    (
        "of use where an entry of a stream was deleted, which no server fault does; \
         otherwise this call writes once",
        &[
            "bookkeeping/report_progress: without `check_keys(keys)`",
            "bookkeeping/report_progress: without `check_lease(keys, lease, 1)`",
        ],
    ),
    (
        "of use in stream's purge of more than a page of batches: all other scripts have \
         checked these keys before",
        &["bookkeeping/side_records: without `check_side_records(keys)` (2)"],
    ),
    (
        "zset has no keys of one lease or job: the server faults of stream and \
         processing-list try it",
        &[
            "bookkeeping/cancel: `==` for `~=` in `if lease ~= '' then` (2)",
            "bookkeeping/cancel: without `check_lease(keys, lease, 1)`",
            "bookkeeping/cancel: without `check_job(keys, read_entry(redis.call('HGET', keys.jobs, id) or ''))`",
            "bookkeeping/fail: without `check_lease(keys, ARGV[i], (i - 1) / FIELDS + 1)`",
            "bookkeeping/give_back: without `check_lease(keys, lease, i)`",
            "bookkeeping/promote: without `check_job(keys, jobs[count])`",
            "bookkeeping/redrive: without `check_job(keys, job)`",
            "bookkeeping/run_now: without `check_job(keys, job)`",
        ],
    ),
    (
        "`close_side_records` has removed it already, where the entry can be read",
        &["bookkeeping/cancel: without `redis.call('HDEL', keys.errors, id)`"],
    ),
    (
        "of use where another client damaged a leased entry, which no case does: \
         relq-zset's `a_damaged_entry_is_not_dropped_by_its_worker` does",
        &[
            "bookkeeping/fail: without `bury_damaged(keys, lease, entry, now_ms)`",
            "bookkeeping/give_back: without `bury_damaged(keys, ARGV[i], entry, server_ms())`",
            "bookkeeping/moves: `~=` for `==` in `if entry == '' then return end`",
            "bookkeeping/moves: `~=` for `==` in `while redis.call('HEXISTS', keys.jobs, id) == 1 do`",
            "bookkeeping/moves: without `redis.call('HSET', keys.jobs, id, entry)`",
            "bookkeeping/moves: without `bury_unreadable(keys, id, now_ms)`",
            "zset/recover: `==` for `~=` in `elseif entry ~= '' then`",
            "zset/recover: without `bury_damaged(keys, overdue[handled], entry, now_ms)`",
        ],
    ),
    (
        "a dead piece has left its batch, so a redrive drops none",
        &["bookkeeping/redrive: without `settle_dropped(keys, step)`"],
    ),
    (
        "zset has no batches: relq-stream's \
         `a_piece_made_ready_in_a_half_cancelled_batch_ends_with_its_follower` tries it",
        &[
            "bookkeeping/fail: without `settle_dropped(keys, step)`",
            "bookkeeping/promote: without `settle_dropped(keys, step)`",
            "bookkeeping/run_now: without `settle_dropped(keys, new_step(1))`",
        ],
    ),
    (
        "zset has no batches: a case of stream catches it",
        &["bookkeeping/give_back: without `settle_dropped(keys, step)`"],
    ),
    (
        "the next step that cancels orphans removes the id of the job that has ended",
        &[
            "bookkeeping/followers: 0 for `redis.call('ZREM', results_key(keys, 'orphans'), job.id)`",
        ],
    ),
    (
        "bounds what one script moves, which no case measures",
        &[
            "bookkeeping/followers: without `count_settled(step, entry)`",
            "bookkeeping/followers: without `count_settled(step, false)`",
            "bookkeeping/followers: without `count_job(step, entry)`",
            "bookkeeping/side_records: without `count_job(step, redis.call('HGET', results, gone[#gone]))`",
        ],
    ),
    (
        "relq-zset's `a_scheduled_entry_that_was_damaged_is_not_dropped` tries it",
        &[
            "bookkeeping/moves: without `redis.call('ZADD', keys.dead, behind_equals(keys.dead, now_ms), id)`",
            "bookkeeping/moves: without `redis.call('HSET', keys.errors, id, 'mits entry cannot be read')`",
            "bookkeeping/moves: without `bury_unreadable(keys, id, now_ms)` (2)",
        ],
    ),
    (
        "a waiter that does not hear of it looks again by itself, within the declared \
         lateness (R14)",
        &[
            "bookkeeping/moves: `>=` for `<` in `if score < earliest then`",
            "bookkeeping/moves: without `notify(keys)`",
            "bookkeeping/pushing: without `notify(keys)`",
        ],
    ),
    (
        "of use where another client overwrote a total, which no case does: the server \
         fault `a_count_that_is_text_keeps_no_job` does",
        &[
            "bookkeeping/moves: without `error({err = 'WRONGTYPE the total \"' .. name .. '\" is no number'})`",
        ],
    ),
    (
        "of use where an earlier version of relq has left the key with a dead job, which no \
         case does",
        &["bookkeeping/purge_dead: without `free_unique(keys.unique, job)`"],
    ),
    (
        "of use where the server's clock was set back, which no case can do: relq-stream's \
         `a_last_tick_in_the_future_outlives_its_definition` does",
        &[
            "bookkeeping/put_schedule: `<` for `>=` in `if stored and #stored >= TICK_BYTES then`",
        ],
    ),
    (
        "the record is listed by nobody: relq-zset's `a_released_worker_leaves_no_record` \
         sees it",
        &[
            "bookkeeping/remove_worker: without `redis.call('HDEL', runs, worker)`",
            "bookkeeping/remove_worker: 0 for `redis.call('ZREM', alive, worker)`",
        ],
    ),
    (
        "a stream would stay after a purge: relq's \
         `the_marker_of_a_queue_that_kept_results_is_removed` tries it",
        &[
            "bookkeeping/side_records: without `redis.call('UNLINK', ended)`",
            "bookkeeping/side_records: without `redis.call('EXPIRE', ended, 3600)`",
        ],
    ),
    (
        "only for a job whose id another job has taken, which no case of results makes: \
         what is told of the lost id would stay",
        &[
            "bookkeeping/side_records: without `redis.pcall('HDEL', results_key(keys, 'results'), job.id)`",
        ],
    ),
    (
        "relq-zset's `the_id_of_a_damaged_job_that_is_gone_is_free` tries it",
        &["bookkeeping/side_records: without `redis.call('ZREM', keys.ids, id)`"],
    ),
    (
        "relq-zset's `ids_without_entries_block_no_job` tries it",
        &[
            "zset/claiming: `>=` for `<` in `if (look or 1) < MOST_LOOKS then return claim((look or 1) + 1) end`",
        ],
    ),
    (
        "of use where a key has another type, which no case puts there: \
         `src/sweep/server_faults/foreign.rs` does",
        &[
            "zset/finish_and_claim: `~=` for `==` in `if #reply == 3 then redis.call('ZCARD', leased) end`",
        ],
    ),
    (
        "such a job then goes the long way of `lease_any`, to the same end",
        &[
            "zset/leasing: `~=` for `==` in `return #head == 11 and head:sub(1, 8) == '\\245RQ\\1\\0\\5\\0\\0'`",
            "zset/leasing: `==` for `~=` in `and head:sub(9, 10) ~= '\\0\\0' and head:byte(11) > 0`",
            "zset/leasing: `<=` for `>` in `and head:sub(9, 10) ~= '\\0\\0' and head:byte(11) > 0`",
            "zset/leasing: `==` for `~=` in `if head ~= usual_head and is_fresh(head) then`",
            "zset/leasing: `<` for `>=` in `if head == usual_head and #element >= id_end then`",
        ],
    ),
    (
        "what stays in `handed` is claimed from there, and the notification that follows \
         wakes who waits",
        &[
            "zset/pass_on: `>=` for `<` in `while moved < most and redis.call('LMOVE', handed, ready, 'LEFT', 'RIGHT') do`",
            "zset/pass_on: 0 for `redis.call('LMOVE', handed, ready, 'LEFT', 'RIGHT')`",
        ],
    ),
    (
        "bounds what one script reads, which no case measures: relq-zset's \
         `stats_read_few_large_jobs` does",
        &["zset/stats: without `count_job(step, entry)`"],
    ),
];

/// The cases that catch no change of zset's scripts, each behind the reason.
pub(crate) const IDLE_CASES: Reasons = &[
    (
        "judges what is refused before a script runs: `MUTANTS.md`",
        &[
            "bad_input::an_endless_delay_is_refused",
            "bad_input::an_endless_expiry_is_refused",
            "bad_input::a_senseless_lease_of_a_job_is_refused",
            "bad_input::a_senseless_lease_is_refused",
            "bad_input::an_endless_wait_is_refused",
            "no_loss::a_payload_above_the_limit_is_refused",
            "no_loss::headers_above_the_limit_are_refused",
            "no_loss::a_call_of_too_many_bytes_is_refused",
        ],
    ),
    (
        "judges what is refused before a script runs",
        &[
            "bad_input::a_result_for_nobody_that_is_too_large_is_refused",
            "restoring::due_times_and_expiries_out_of_range_are_refused",
        ],
    ),
    (
        "judges calls about nothing, which send nothing: `MUTANTS.md`",
        &[
            "bad_input::empty_calls_are_fine",
            "idempotence::a_token_of_no_jobs_is_taken",
        ],
    ),
    (
        "judges what several calls leave behind: `MUTANTS.md`",
        &[
            "delay::thousands_due_together_come_in_order",
            "order::an_urgent_job_that_is_too_large_for_a_claim_is_next",
            "order::jobs_moved_for_claims_in_a_pause_keep_their_order",
            "worker_release::an_interrupted_release_hides_no_job",
            "dead_letters::a_redriven_job_has_no_last_error",
            "joints::a_claim_of_several_steps_is_bounded_by_bytes",
            "last_error::a_last_error_stays_until_the_next",
            "recovery::recovery_says_what_comes_first",
            "running_now::it_goes_to_the_back",
        ],
    ),
    ("judges ids that the client makes", &["idempotence::a_token_makes_the_ids"]),
    (
        "judges what is read, with no write and no comparison: `MUTANTS.md`",
        &[
            "operator::a_peek_tells_many_leased_jobs_from_ready_ones",
            "isolation::plain_pushes_show",
            "joints::pages_of_large_payloads_end_early",
            "joints::pages_of_large_headers_end_early",
            "joints::pages_of_long_errors_end_early",
            "operator::the_time_of_the_claim_stays",
            "operator::pages_show_every_ready_job",
            "operator::pages_show_thousands",
            "operator::a_peek_at_nothing_is_empty",
            "stats::a_new_queue_is_empty",
            "waiting_without_claim::a_wait_counts_from_the_claim_before",
        ],
    ),
    (
        "judges the type of names, which is the same for all backends",
        &["isolation::names_that_reach_out_are_refused"],
    ),
    (
        "judges what several calls leave behind: large jobs that take several steps",
        &["joints::large_jobs_are_buried_by_a_recovery"],
    ),
    (
        "judges what the client adds up over several calls",
        &["joints::a_claim_of_several_steps_counts_headers"],
    ),
    (
        "judges what several calls leave behind: a key that only one of several steps frees",
        &["joints::a_job_of_any_step_frees_its_expired_key"],
    ),
    (
        "judges a limit, and no change is of a number; the mutant `a last error that grows \
         with each lost lease` fails it",
        &["last_error::the_newest_lost_leases_are_told"],
    ),
    ("judges what is cut before a script runs", &["last_error::a_long_error_is_cut"]),
    (
        "judges how the answers of a call are put together, which is done by the client",
        &["one_holder::one_call_answers_for_jobs_of_several_workers"],
    ),
    (
        "the script compares markers in two places; the mutant `a marker that recovery and \
         first writers do not compare` fails it",
        &["owner::the_second_of_two_first_writers_is_refused"],
    ),
    (
        "has caught no change so far, and no mutant is of it yet",
        &[
            "restoring::a_restored_job_takes_the_key_of_an_expired_one",
            "unique_expiry::a_redrive_takes_the_key_of_an_expired_delayed_job",
        ],
    ),
    (
        "judges what a second connection reads",
        &["schedules::another_connection_has_the_schedules"],
    ),
    (
        "judges the client's clock, by which the first tick is due",
        &["schedules::a_schedule_begins_when_it_is_stored"],
    ),
    (
        "is newer than the last run of all changes",
        &[
            "followers::a_held_job_that_lost_its_key_stays_held",
            "results::a_reused_id_is_told_behind_many_old_results",
            "results::a_wait_beside_a_stalled_runtime_is_woken",
        ],
    ),
];
