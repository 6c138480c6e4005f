//! The changes of scripts that no test case catches, and the test cases that catch no
//! change, each with the reason. A person has checked each reason.

use crate::page::Reasons;

const LATE: &str = "a waiter that does not hear of it looks again by itself, within the \
                    declared lateness (R14)";
const LONG_WAY: &str =
    "such a job then goes the long way of `lease_any`, to the same end";
const ANOTHER_TYPE: &str = "of use where a key has another type, which no case puts \
                            there: `src/sweep/server_faults/foreign.rs` does";
const NO_KEYS_OF_ITS_OWN: &str = "zset has no keys of one lease or job: the server faults of stream and \
     processing-list try it";
const UNREADABLE: &str = "of use where an entry cannot be read, which no case puts \
                          there: `src/sweep/server_faults/foreign.rs` does";
const DAMAGED: &str = "of use where another client damaged a leased entry, which no case does: \
     relq-zset's `a_leased_entry_that_was_damaged_is_not_dropped` does";
const OVERWRITTEN: &str = "of use where another client overwrote a total, which no case does: the \
     server fault `a_count_that_is_text_keeps_no_job` does";
const PASSED_ON: &str = "what stays in `handed` is claimed from there, and the notification that \
                         follows wakes who waits";

const NO_BATCHES: &str = "zset has no batches: stream's page tries it";
const BOUND: &str = "bounds what one script moves, which no case measures";

/// The changes that no case catches, each with the reason why none has to.
pub(crate) const SURVIVORS: Reasons = &[
    (
        "bookkeeping/cancel: without `redis.call('HDEL', keys.errors, id)`",
        "`close_side_records` has removed it already, where the entry can be read",
    ),
    ("bookkeeping/fail: without `bury_damaged(keys, lease, entry, now_ms)`", DAMAGED),
    (
        "bookkeeping/give_back: without `bury_damaged(keys, ARGV[i], entry, server_ms())`",
        DAMAGED,
    ),
    ("bookkeeping/moves: `~=` for `==` in `if entry == '' then return end`", DAMAGED),
    (
        "bookkeeping/moves: `~=` for `==` in `while redis.call('HEXISTS', keys.jobs, id) == 1 do`",
        DAMAGED,
    ),
    ("bookkeeping/moves: without `redis.call('HSET', keys.jobs, id, entry)`", DAMAGED),
    ("bookkeeping/moves: without `bury_unreadable(keys, id, now_ms)`", DAMAGED),
    ("bookkeeping/moves: without `bury_unreadable(keys, id, now_ms)` (2)", UNREADABLE),
    ("bookkeeping/moves: `>=` for `<` in `if score < earliest then`", LATE),
    ("bookkeeping/moves: without `notify(keys)`", LATE),
    (
        "bookkeeping/moves: without `error({err = 'WRONGTYPE the total \"' .. name .. '\" is no number'})`",
        OVERWRITTEN,
    ),
    ("bookkeeping/push: without `check_push(keys)`", ANOTHER_TYPE),
    ("bookkeeping/push_tick: without `check_push(keys)`", ANOTHER_TYPE),
    (
        "bookkeeping/put_schedule: `<` for `>=` in `if stored and #stored >= TICK_BYTES then`",
        "of use where the server's clock was set back, which no case can do: relq-stream's \
         `a_last_tick_in_the_future_outlives_its_definition` does",
    ),
    ("bookkeeping/pushing: without `notify(keys)`", LATE),
    ("bookkeeping/pushing: without `check_ready(keys)`", ANOTHER_TYPE),
    ("zset/claiming: without `redis.call('HDEL', held, fields[i])`", ANOTHER_TYPE),
    (
        "zset/claiming: `>=` for `<` in `if (look or 1) < MOST_LOOKS then return claim((look or 1) + 1) end`",
        "relq-zset's `ids_without_entries_block_no_job` tries it",
    ),
    (
        "zset/finish_and_claim: `~=` for `==` in `if #reply == 3 then redis.call('ZCARD', leased) end`",
        "of use where a key has another type, which no case puts there: relq-zset's \
         `a_claim_that_is_refused_keeps_no_job_from_being_settled` does",
    ),
    (
        "zset/leasing: `~=` for `==` in `return #head == 11 and head:sub(1, 8) == '\\245RQ\\1\\0\\5\\0\\0'`",
        LONG_WAY,
    ),
    (
        "zset/leasing: `==` for `~=` in `and head:sub(9, 10) ~= '\\0\\0' and head:byte(11) > 0`",
        LONG_WAY,
    ),
    (
        "zset/leasing: `<=` for `>` in `and head:sub(9, 10) ~= '\\0\\0' and head:byte(11) > 0`",
        LONG_WAY,
    ),
    (
        "zset/leasing: `==` for `~=` in `if head ~= usual_head and is_fresh(head) then`",
        LONG_WAY,
    ),
    (
        "zset/leasing: `<` for `>=` in `if head == usual_head and #element >= id_end then`",
        LONG_WAY,
    ),
    (
        "zset/pass_on: `>=` for `<` in `while moved < most and redis.call('LMOVE', handed, ready, 'LEFT', 'RIGHT') do`",
        PASSED_ON,
    ),
    (
        "zset/pass_on: 0 for `redis.call('LMOVE', handed, ready, 'LEFT', 'RIGHT')`",
        PASSED_ON,
    ),
    ("bookkeeping/side_records: without `check_side_records(keys)`", ANOTHER_TYPE),
    ("bookkeeping/cancel: without `check_keys(keys)`", ANOTHER_TYPE),
    (
        "bookkeeping/cancel: `==` for `~=` in `if lease ~= '' then` (2)",
        NO_KEYS_OF_ITS_OWN,
    ),
    ("bookkeeping/cancel: without `check_lease(keys, lease, 1)`", NO_KEYS_OF_ITS_OWN),
    (
        "bookkeeping/cancel: without `check_job(keys, read_entry(redis.call('HGET', keys.jobs, id) or ''))`",
        NO_KEYS_OF_ITS_OWN,
    ),
    ("bookkeeping/fail: without `check_keys(keys)`", ANOTHER_TYPE),
    (
        "bookkeeping/fail: without `check_lease(keys, ARGV[i], (i - 1) / FIELDS + 1)`",
        NO_KEYS_OF_ITS_OWN,
    ),
    ("bookkeeping/forget: without `check_bookkeeping(keys)`", ANOTHER_TYPE),
    ("bookkeeping/give_back: without `check_keys(keys)`", ANOTHER_TYPE),
    (
        "bookkeeping/give_back: without `check_lease(keys, lease, i)`",
        NO_KEYS_OF_ITS_OWN,
    ),
    ("bookkeeping/moves: without `check_bookkeeping(keys)`", ANOTHER_TYPE),
    ("bookkeeping/moves: without `check_ready(keys)`", ANOTHER_TYPE),
    (
        "bookkeeping/moves: without `redis.call('ZADD', keys.dead, behind_equals(keys.dead, now_ms), id)`",
        UNREADABLE,
    ),
    (
        "bookkeeping/moves: without `redis.call('HSET', keys.errors, id, 'mits entry cannot be read')`",
        UNREADABLE,
    ),
    ("bookkeeping/promote: without `check_keys(keys)`", ANOTHER_TYPE),
    ("bookkeeping/promote: without `check_job(keys, jobs[count])`", NO_KEYS_OF_ITS_OWN),
    ("bookkeeping/purge_dead: without `check_bookkeeping(keys)`", ANOTHER_TYPE),
    (
        "bookkeeping/remove_worker: without `redis.call('HDEL', runs, worker)`",
        "the record is listed by nobody: relq-zset's \
         `a_released_worker_leaves_no_record` sees it",
    ),
    ("bookkeeping/run_now: without `check_keys(keys)`", ANOTHER_TYPE),
    ("bookkeeping/run_now: without `check_job(keys, job)`", NO_KEYS_OF_ITS_OWN),
    ("bookkeeping/run_now: without `settle_dropped(keys, new_step(1))`", NO_BATCHES),
    ("bookkeeping/pushing: without `check_results(keys)`", ANOTHER_TYPE),
    ("bookkeeping/redrive: without `check_keys(keys)`", ANOTHER_TYPE),
    ("bookkeeping/redrive: without `check_job(keys, job)`", NO_KEYS_OF_ITS_OWN),
    ("bookkeeping/redrive: without `check_results(keys)`", ANOTHER_TYPE),
    ("bookkeeping/report_progress: without `check_keys(keys)`", ANOTHER_TYPE),
    ("bookkeeping/restore: without `check_keys(keys)`", ANOTHER_TYPE),
    (
        "bookkeeping/report_progress: without `check_lease(keys, lease, 1)`",
        NO_KEYS_OF_ITS_OWN,
    ),
    (
        "bookkeeping/side_records: without `redis.call('EXPIRE', ended, 3600)`",
        "one entry of a stream would stay after a purge; no case waits an hour for its end",
    ),
    (
        "bookkeeping/side_records: without `redis.pcall('HDEL', results_key(keys, 'results'), job.id)`",
        "only for a job whose id another job has taken, which no case of results makes: what \
         is told of the lost id would stay",
    ),
    ("zset/cancel_listed: without `check_side_records(side_records)`", ANOTHER_TYPE),
    ("zset/cancel_ranked: without `check_side_records(keys)`", ANOTHER_TYPE),
    ("zset/finish_with_side_records: without `check_side_records(keys)`", ANOTHER_TYPE),
    ("zset/recover: without `check_keys(keys)`", ANOTHER_TYPE),
    ("zset/recover: `==` for `~=` in `elseif entry ~= '' then`", DAMAGED),
    (
        "zset/recover: without `bury_damaged(keys, overdue[handled], entry, now_ms)`",
        DAMAGED,
    ),
    (
        "bookkeeping/followers: 0 for `redis.call('ZREM', results_key(keys, 'orphans'), job.id)`",
        "the next step that cancels orphans removes the id of the job that has ended",
    ),
    ("bookkeeping/followers: without `count_settled(step, entry)`", BOUND),
    (
        "zset/stats: without `count_job(step, entry)`",
        "bounds what one script reads, which no case measures: relq-zset's \
         `stats_read_few_large_jobs` does",
    ),
    ("bookkeeping/fail: without `settle_dropped(keys, step)`", NO_BATCHES),
    ("bookkeeping/give_back: without `settle_dropped(keys, step)`", NO_BATCHES),
    ("bookkeeping/promote: without `settle_dropped(keys, step)`", NO_BATCHES),
    ("bookkeeping/redrive: without `settle_dropped(keys, step)`", NO_BATCHES),
    ("bookkeeping/followers: without `count_settled(step, false)`", BOUND),
    ("bookkeeping/followers: without `count_job(step, entry)`", BOUND),
    (
        "bookkeeping/side_records: without `count_job(step, redis.call('HGET', results, gone[#gone]))`",
        BOUND,
    ),
    (
        "bookkeeping/purge_dead: without `free_unique(keys.unique, job)`",
        "of use where an earlier version of relq has left the key with a dead job, which no \
         case does",
    ),
    (
        "bookkeeping/remove_worker: 0 for `redis.call('ZREM', alive, worker)`",
        "the record is listed by nobody: relq-zset's \
         `a_released_worker_leaves_no_record` sees it",
    ),
    ("bookkeeping/side_records: without `check_side_records(keys)` (2)", ANOTHER_TYPE),
    ("zset/finish_with_side_records: without `check_ready(keys)`", ANOTHER_TYPE),
];

const REFUSED: &str = "judges what is refused before a script runs: `MUTANTS.md`";
const READ: &str = "judges what is read, with no write and no comparison: `MUTANTS.md`";
const SEVERAL: &str = "judges what several calls leave behind: `MUTANTS.md`";
const EMPTY: &str = "judges calls about nothing, which send nothing: `MUTANTS.md`";

/// The test cases that catch no change, each with a description of what it tests
/// instead.
pub(crate) const OTHERS: Reasons = &[
    (
        "owner::the_second_of_two_first_writers_is_refused",
        "the script compares markers in two places; the mutant `a marker that recovery and first writers do not compare` fails it",
    ),
    ("no_loss::a_payload_above_the_limit_is_refused", REFUSED),
    ("no_loss::headers_above_the_limit_are_refused", REFUSED),
    ("no_loss::a_call_above_the_limit_is_refused", REFUSED),
    ("no_loss::a_call_of_too_many_bytes_is_refused", REFUSED),
    ("no_loss::one_invalid_job_refuses_all", REFUSED),
    ("bad_input::an_endless_delay_is_refused", REFUSED),
    ("bad_input::an_endless_expiry_is_refused", REFUSED),
    ("bad_input::a_senseless_lease_of_a_job_is_refused", REFUSED),
    ("bad_input::a_senseless_lease_is_refused", REFUSED),
    ("bad_input::an_endless_wait_is_refused", REFUSED),
    (
        "bad_input::a_result_for_nobody_that_is_too_large_is_refused",
        "judges what is refused before a script runs",
    ),
    ("idempotence::a_token_of_no_jobs_is_taken", EMPTY),
    ("bad_input::empty_calls_are_fine", EMPTY),
    ("isolation::plain_pushes_show", READ),
    ("operator::pages_show_every_ready_job", READ),
    ("operator::pages_show_thousands", READ),
    ("operator::a_peek_at_nothing_is_empty", READ),
    ("stats::a_new_queue_is_empty", READ),
    ("joints::pages_of_large_payloads_end_early", READ),
    ("joints::pages_of_large_headers_end_early", READ),
    ("joints::pages_of_long_errors_end_early", READ),
    ("dead_letters::a_redriven_job_has_no_last_error", SEVERAL),
    ("joints::a_claim_of_several_steps_is_bounded_by_bytes", SEVERAL),
    (
        "joints::a_claim_of_several_steps_counts_headers",
        "judges what the client adds up over several calls",
    ),
    (
        "restoring::a_restored_job_takes_the_key_of_an_expired_one",
        "has caught no change so far, and no mutant is of it yet",
    ),
    (
        "unique_expiry::a_redrive_takes_the_key_of_an_expired_delayed_job",
        "has caught no change so far, and no mutant is of it yet",
    ),
    (
        "last_error::the_newest_lost_leases_are_told",
        "judges a limit, and no change is of a number; the mutant `a last error that grows with each lost lease` fails it",
    ),
    ("last_error::a_last_error_stays_until_the_next", SEVERAL),
    ("recovery::recovery_says_what_comes_first", SEVERAL),
    ("last_error::a_long_error_is_cut", "judges what is cut before a script runs"),
    ("operator::the_time_of_the_claim_stays", READ),
    ("waiting_without_claim::a_wait_counts_from_the_claim_before", READ),
    (
        "isolation::names_that_reach_out_are_refused",
        "judges the type of names, which is the same for all backends",
    ),
    (
        "schedules::another_connection_has_the_schedules",
        "judges what a second connection reads",
    ),
    (
        "schedules::a_schedule_begins_when_it_is_stored",
        "judges the client's clock, by which the first tick is due",
    ),
    ("idempotence::a_token_makes_the_ids", "judges ids that the client makes"),
    (
        "restoring::due_times_and_expiries_out_of_range_are_refused",
        "judges what is refused before a script runs",
    ),
    ("running_now::it_goes_to_the_back", SEVERAL),
    (
        "joints::large_jobs_are_buried_by_a_recovery",
        "judges what several calls leave behind: large jobs that take several steps",
    ),
    (
        "joints::a_job_of_any_step_frees_its_expired_key",
        "judges what several calls leave behind: a key that only one of several steps frees",
    ),
    (
        "one_holder::one_call_answers_for_jobs_of_several_workers",
        "judges how the answers of a call are put together, which is done by the client",
    ),
];

/// A call that never ends, with this change, in relq-stream's own tests.
const NEVER_ENDS: &str = "a call of relq-stream's own tests never ends with it";

/// The changes of what stream runs that no case catches.
pub(crate) const ON_STREAM: Reasons = &[
    (
        "bookkeeping/cancel: `==` for `~=` in `if lease ~= '' then` (2)",
        NO_KEYS_OF_ITS_OWN,
    ),
    (
        "bookkeeping/cancel: without `redis.call('HDEL', keys.errors, id)`",
        "`close_side_records` has removed it already, where the entry can be read",
    ),
    ("bookkeeping/fail: without `settle_dropped(keys, step)`", NO_BATCHES),
    (
        "bookkeeping/followers: 0 for `redis.call('ZREM', results_key(keys, 'orphans'), job.id)`",
        "the next step that cancels orphans removes the id of the job that has ended",
    ),
    ("bookkeeping/followers: without `count_settled(step, entry)`", BOUND),
    ("bookkeeping/followers: without `count_settled(step, false)`", BOUND),
    ("bookkeeping/followers: without `count_job(step, entry)`", BOUND),
    (
        "bookkeeping/moves: without `redis.call('ZADD', keys.dead, behind_equals(keys.dead, now_ms), id)`",
        UNREADABLE,
    ),
    (
        "bookkeeping/moves: without `redis.call('HSET', keys.errors, id, 'mits entry cannot be read')`",
        UNREADABLE,
    ),
    ("bookkeeping/moves: `>=` for `<` in `if score < earliest then`", LATE),
    ("bookkeeping/moves: without `notify(keys)`", LATE),
    (
        "bookkeeping/moves: without `error({err = 'WRONGTYPE the total \"' .. name .. '\" is no number'})`",
        OVERWRITTEN,
    ),
    ("bookkeeping/promote: without `settle_dropped(keys, step)`", NO_BATCHES),
    (
        "bookkeeping/purge_dead: without `free_unique(keys.unique, job)`",
        "of use where an earlier version of relq has left the key with a dead job, which no \
         case does",
    ),
    ("bookkeeping/pushing: without `notify(keys)`", LATE),
    (
        "bookkeeping/put_schedule: `<` for `>=` in `if stored and #stored >= TICK_BYTES then`",
        "relq-stream's `a_damaged_schedule_can_be_stored_again` tries it",
    ),
    ("bookkeeping/redrive: without `settle_dropped(keys, step)`", NO_BATCHES),
    (
        "bookkeeping/remove_worker: without `redis.call('HDEL', runs, worker)`",
        "the record is listed by nobody: relq-zset's \
         `a_released_worker_leaves_no_record` sees it",
    ),
    (
        "bookkeeping/remove_worker: 0 for `redis.call('ZREM', alive, worker)`",
        "the record is listed by nobody: relq-zset's \
         `a_released_worker_leaves_no_record` sees it",
    ),
    ("bookkeeping/run_now: without `settle_dropped(keys, new_step(1))`", NO_BATCHES),
    (
        "bookkeeping/side_records: without `redis.call('EXPIRE', ended, 3600)`",
        "one entry of a stream would stay after a purge; no case waits an hour for its end",
    ),
    (
        "bookkeeping/side_records: without `count_job(step, redis.call('HGET', results, gone[#gone]))`",
        BOUND,
    ),
    (
        "bookkeeping/side_records: without `redis.pcall('HDEL', results_key(keys, 'results'), job.id)`",
        "only for a job whose id another job has taken, which no case of results makes: what \
         is told of the lost id would stay",
    ),
    (
        "stream/adopt: without `not` in `if not has_room(step) then break end`",
        "relq-stream's `entries_of_foreign_consumers_are_taken_back` tries it",
    ),
    (
        "stream/adopt: without `return_entry(stream, sid, deliveries)`",
        "relq-stream's `entries_of_foreign_consumers_are_taken_back` tries it",
    ),
    (
        "stream/adopt: without `bury_deleted(keys, stream, sid, sid)`",
        "relq-stream's `entries_of_foreign_consumers_are_taken_back_by_pages` tries it",
    ),
    (
        "stream/adopt: `<=` for `>` in `if pending > 0 then`",
        "relq-stream's `a_foreign_consumer_that_holds_nothing_is_removed` tries it",
    ),
    (
        "stream/adopt: without `take_from(stream, name)`",
        "relq-stream's `entries_of_foreign_consumers_are_taken_back` tries it",
    ),
    (
        "stream/adopt: `<=` for `>` in `elseif consumer_idle_ms > idle_ms then`",
        "relq-stream's `a_foreign_consumer_that_holds_nothing_is_removed` tries it",
    ),
    (
        "stream/adopt: without `redis.call('XGROUP', 'DELCONSUMER', stream, GROUP, name)`",
        "relq-stream's `a_foreign_consumer_that_holds_nothing_is_removed` tries it",
    ),
    (
        "stream/adopt: `==` for `~=` in `if name ~= READY and name ~= LEASED then visit(stream, name, pending, consumer_idle_ms) end`",
        "relq-stream's `a_foreign_consumer_that_holds_nothing_is_removed` tries it",
    ),
    (
        "stream/adopt: `==` for `~=` in `if name ~= READY and name ~= LEASED then visit(stream, name, pending, consumer_idle_ms) end` (2)",
        "relq-stream's `a_foreign_consumer_that_holds_nothing_is_removed` tries it",
    ),
    (
        "stream/adopt: without `visit(stream, name, pending, consumer_idle_ms)`",
        "relq-stream's `a_batch_that_is_open_is_not_swept` tries it",
    ),
    (
        "stream/adopt: without `bury_deleted(keys, stream, sid, sid)` (2)",
        "relq-stream's `jobs_deleted_with_their_leases_are_dead` tries it",
    ),
    (
        "stream/batch/alter: without `redis.call('ZADD', batch_key(keys, 'running'), rank_of(priority, number), id)`",
        "relq-stream's `pieces_are_listed_in_the_changed_order_of_their_batches` tries it",
    ),
    (
        "stream/batch/cancel_batch: without `redis.call('ZREM', batch_key(keys, 'claimable'), id)`",
        "relq-stream's `a_half_cancelled_batch_gives_nothing` tries it",
    ),
    (
        "stream/batch/pieces: `~=` for `==` in `if batch and redis.call('SISMEMBER', batch_key(keys, 'live', batch), id) == 0 then`",
        "relq-stream's `an_interrupted_purge_leaves_a_batch_with_its_other_pieces` tries it",
    ),
    (
        "stream/batch/pieces: without `redis.call('ZREM', keys.leased, lease)` (3)",
        "relq-stream's `an_interrupted_purge_leaves_a_batch_with_its_other_pieces` tries it",
    ),
    (
        "stream/batch/pieces: without `bury_deleted(keys, stream, sid, id)`",
        "relq-stream's `deleted_pieces_have_failed_and_the_batch_ends` tries it",
    ),
    (
        "stream/batch/pieces: without `drop_leased(keys, lease)`",
        "relq-stream's `a_batch_that_completes_is_swept_no_more` tries it",
    ),
    (
        "stream/batch/pieces: without `cancel_piece(keys, id, job)`",
        "relq-stream's `a_half_cancelled_batch_gives_nothing` tries it",
    ),
    (
        "stream/batch/read_outbox: `<=` for `>` in `for i = 1, 4 do letters[#letters + 1] = letter[i] or (i > 2 and '0' or '') end`",
        "relq-stream's `a_damaged_completion_holds_up_no_other` tries it",
    ),
    (
        "stream/batch/records: `<=` for `>` in `if leases > MOST_LEASES or count_leased(stream) <= leases then return 0, {} end`",
        "relq-stream's `a_cancelled_batch_without_its_leases_ends` tries it",
    ),
    (
        "stream/batch/records: `~=` for `==` in `if where == stream then is_leased[sid] = true end`",
        "relq-stream's `a_piece_without_a_lease_is_found_behind_leased_ones` tries it",
    ),
    (
        "stream/batch/records: without `not` in `local is_lost = not is_leased[sid] and has_room(step)`",
        "relq-stream's `a_cancelled_batch_without_its_leases_ends` tries it",
    ),
    (
        "stream/batch/records: without `return_entry(stream, sid, math.max(1, deliveries - 1))`",
        NEVER_ENDS,
    ),
    (
        "stream/batch/records: without `redis.call('XACK', stream, GROUP, sid)`",
        "relq-stream's `entries_deleted_with_their_leases_free_their_slots` tries it",
    ),
    (
        "stream/batch/records: without `redis.call('SREM', batch_key(keys, 'cancelling'), id)`",
        "relq-stream's `a_batch_that_completes_is_swept_no_more` tries it",
    ),
    (
        "stream/batch/records: without `redis.call('UNLINK', batch_key(keys, 'pieces', id))`",
        "relq-stream's `a_completed_batch_is_its_record` tries it",
    ),
    (
        "stream/batch/records: without `redis.call('XADD', batch_key(keys, 'told'), 'MAXLEN', 1, '*', 'batch', id)`",
        "relq-stream's `a_completed_batch_is_its_record` tries it",
    ),
    (
        "stream/batch/sweep: `<=` for `>` in `if redis.call('XLEN', stream) > 0 or count_leased(stream) > 0 then return false end` (2)",
        "relq-stream's `deleted_pieces_have_failed_and_the_batch_ends` tries it",
    ),
    (
        "stream/batch/sweep: without `not` in `if not has_room(step) then return has_found end`",
        "relq-stream's `deleted_pieces_have_failed_and_the_batch_ends` tries it",
    ),
    (
        "stream/batch/sweep: without `bury_deleted(keys, stream, '0-0', job_id)`",
        "relq-stream's `deleted_pieces_have_failed_and_the_batch_ends` tries it",
    ),
    ("stream/batch/sweep: without `end_piece(keys, id, job_id, 'failed')`", NEVER_ENDS),
    (
        "stream/batch/sweep: without `redis.call('SREM', batch_key(keys, 'cancelling'), id)`",
        "relq-stream's `a_batch_that_is_open_is_not_swept` tries it",
    ),
    ("stream/batch/tend: without `cancel_page(keys, id, step)`", NEVER_ENDS),
    (
        "stream/batch/tend: `<=` for `>` in `if returned + #gone > 0 then refresh(keys, running) end`",
        "relq-stream's `a_piece_without_a_lease_is_found_behind_leased_ones` tries it",
    ),
    (
        "stream/batch/tend: without `refresh(keys, running)`",
        "relq-stream's `a_piece_without_a_lease_is_found_behind_leased_ones` tries it",
    ),
    (
        "stream/batch/tend: `~=` for `==` in `if returned > 0 and state_of(keys, running) == 'cancelling' then`",
        "relq-stream's `a_cancelled_batch_without_its_leases_ends` tries it",
    ),
    (
        "stream/batch/tend: without `redis.call('SADD', batch_key(keys, 'cancelling'), running)`",
        "relq-stream's `a_cancelled_batch_without_its_leases_ends` tries it",
    ),
    (
        "stream/batch/tend: without `redis.call('UNLINK', batch_key(keys, 'told'))`",
        "relq-stream's `a_completed_batch_is_its_record` tries it",
    ),
    (
        "stream/claim: without `bury(keys, job, entry, 'mits entry has no field \"job\"; the headers have its fields', now_ms)`",
        "relq-stream's `an_entry_without_a_payload_is_buried_with_its_fields` tries it",
    ),
    (
        "stream/claim: without `redis.call('XDEL', stream, sid)`",
        "relq-stream's `an_entry_without_a_payload_is_buried_with_its_fields` tries it",
    ),
    (
        "stream/claim: `~=` for `==` in `if #word == 1 then bury_deleted(keys, stream, sid, sid) end`",
        "relq-stream's `a_deleted_job_that_came_back_is_buried_by_a_claim` tries it",
    ),
    (
        "stream/claim: without `bury_deleted(keys, stream, sid, sid)`",
        "relq-stream's `a_deleted_job_that_came_back_is_buried_by_a_claim` tries it",
    ),
    (
        "stream/claim: `<=` for `>` in `if level ~= 'n' and budget.jobs > 0 then remove_empty(stream) end`",
        "relq-stream's `a_job_with_every_option_ends_and_leaves_nothing_behind` tries it",
    ),
    (
        "stream/claim: without `remove_empty(stream)`",
        "relq-stream's `a_job_with_every_option_ends_and_leaves_nothing_behind` tries it",
    ),
    (
        "stream/claim: `~=` for `==` in `if #ends == leased_before and buried == buried_before and not budget.is_full then` (2)",
        "relq-stream's `a_deleted_piece_that_came_back_hides_no_other` tries it",
    ),
    (
        "stream/pattern: `~=` for `==` in `if #fields == 2 then`",
        "relq-stream's `a_single_field_may_have_any_name` tries it",
    ),
    (
        "stream/pattern: `~=` for `==` in `if fields[i] == PAYLOAD then`",
        "relq-stream's `an_entry_of_another_client_shows_its_id_and_headers` tries it",
    ),
    (
        "stream/pattern: `~=` for `==` in `if #headers == 0 then return header .. payload end`",
        "relq-stream's `an_entry_of_another_client_shows_its_id_and_headers` tries it",
    ),
    (
        "stream/pattern: `~=` for `==` in `if #fields == 2 then return false end`",
        "relq-stream's `a_single_field_may_have_any_name` tries it",
    ),
    (
        "stream/pattern: `~=` for `==` in `if fields[i] == PAYLOAD then return false end`",
        "relq-stream's `an_entry_without_a_payload_is_buried_with_its_fields` tries it",
    ),
    (
        "stream/pattern: without `bury(keys, read_entry(entry), entry, 'mits entry was deleted from the stream', now_ms)`",
        "relq-stream's `deleted_pieces_have_failed_and_the_batch_ends` tries it",
    ),
    (
        "stream/pattern: without `redis.call('XACK', stream, GROUP, sid)`",
        "relq-stream's `entries_of_foreign_consumers_are_taken_back_by_pages` tries it",
    ),
    (
        "stream/pattern: `~=` for `==` in `if redis.call('XLEN', stream) == 0 and redis.call('XPENDING', stream, GROUP)[1] == 0 then`",
        "relq-stream's `a_job_with_every_option_ends_and_leaves_nothing_behind` tries it",
    ),
    (
        "stream/pattern: `~=` for `==` in `if redis.call('XLEN', stream) == 0 and redis.call('XPENDING', stream, GROUP)[1] == 0 then` (2)",
        "relq-stream's `a_job_with_every_option_ends_and_leaves_nothing_behind` tries it",
    ),
    (
        "stream/pattern: without `redis.call('UNLINK', stream)`",
        "relq-stream's `a_job_with_every_option_ends_and_leaves_nothing_behind` tries it",
    ),
    (
        "stream/purge: without `not` in `if not found then return true end`",
        "relq-stream's `a_purge_removes_any_number_of_batches` tries it",
    ),
    (
        "stream/purge: without `count_job(step, entry)`",
        "relq-stream's `an_interrupted_purge_leaves_a_batch_with_its_other_pieces` tries it",
    ),
    (
        "stream/purge: without `redis.pcall('HINCRBY', batch_key(keys, 'record', id), 'dropped', 1)`",
        "relq-stream's `an_interrupted_purge_leaves_a_batch_with_its_other_pieces` tries it",
    ),
    (
        "stream/purge: without `redis.pcall('ZREM', keys.ids, job.id)`",
        "relq-stream's `an_interrupted_purge_leaves_a_batch_with_its_other_pieces` tries it",
    ),
    (
        "stream/purge: without `not` in `if not remove_pieces(id) then break end`",
        NEVER_ENDS,
    ),
    (
        "stream/purge: without `redis.call('UNLINK', batch_key(keys, 'told'))`",
        "relq-stream's `a_purge_removes_what_was_not_delivered` tries it",
    ),
    (
        "stream/adopt: without `notify(keys)`",
        "relq-stream's `entries_without_a_lease_wake_a_claim` tries it",
    ),
    (
        "stream/extend: without `count_job(step, entry)`",
        "relq-stream's `a_heartbeat_ends_large_cancelled_pieces_in_steps` tries it",
    ),
    (
        "stream/pattern: `~=` for `==` in `if type(redis.pcall('ZSCORE', keys.ids, id)) == 'string' then`",
        "relq-stream's `a_deleted_leader_is_dead_and_holds_its_followers` tries it",
    ),
    (
        "stream/pattern: `~=` for `==` in `if redis.pcall('HEXISTS', results_key(keys, 'results'), id) == 1 then`",
        "relq-stream's `a_deleted_leader_is_dead_and_holds_its_followers` tries it",
    ),
    (
        "stream/purge: without `end_result(keys, job, now_ms, PURGED)`",
        "relq-stream's `an_interrupted_purge_leaves_a_batch_with_its_other_pieces` tries it",
    ),
    (
        "stream/purge: without `redis.pcall('HDEL', keys.errors, job.id)`",
        "relq-stream's `an_interrupted_purge_leaves_a_batch_with_its_other_pieces` tries it",
    ),
    (
        "stream/purge: without `settle_ended(keys, now_ms, step)`",
        "relq-stream's `an_interrupted_purge_leaves_a_batch_with_its_other_pieces` tries it",
    ),
];

/// The changes of SQLite's statements that no case catches.
pub(crate) const ON_SQLITE: Reasons = &[];

/// The changes of keyspace's scripts that no case catches, each with the reason.
pub(crate) const ON_KEYSPACE: Reasons = &[];

/// The changes of circular's scripts that no case catches, each with the reason.
pub(crate) const ON_CIRCULAR: Reasons = &[];

/// The changes of processing-list's scripts that no case catches, each with the reason.
pub(crate) const ON_PROCESSING_LIST: Reasons = &[];
