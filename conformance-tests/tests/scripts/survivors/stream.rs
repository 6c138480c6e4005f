//! The changes that no case catches on stream.

use crate::page::Reasons;

/// The changes that no case catches, each behind the reason why none has to.
pub(crate) const SURVIVORS: Reasons = &[
    (
        "of use where a key has another type, which no case puts there: \
         `src/sweep/server_faults/foreign.rs` does",
        &["bookkeeping/cancel: `==` for `~=` in `if lease ~= '' then` (2)"],
    ),
    (
        "`close_side_records` has removed it already, where the entry can be read",
        &["bookkeeping/cancel: without `redis.call('HDEL', keys.errors, id)`"],
    ),
    (
        "`entry_of` makes each entry of a stream readable: relq-zset's \
         `a_damaged_entry_is_not_dropped_by_its_worker` tries it",
        &[
            "bookkeeping/fail: without `bury_damaged(keys, lease, entry, now_ms)`",
            "bookkeeping/give_back: without `bury_damaged(keys, ARGV[i], entry, server_ms())`",
            "bookkeeping/moves: `~=` for `==` in `if entry == '' then return end`",
            "bookkeeping/moves: `~=` for `==` in `while redis.call('HEXISTS', keys.jobs, id) == 1 do`",
            "bookkeeping/moves: without `redis.call('HSET', keys.jobs, id, entry)`",
            "bookkeeping/moves: without `bury_unreadable(keys, id, now_ms)`",
        ],
    ),
    (
        "a dead piece has left its batch, so a redrive drops none",
        &["bookkeeping/redrive: without `settle_dropped(keys, step)`"],
    ),
    (
        "relq-stream's `a_piece_made_ready_in_a_half_cancelled_batch_ends_with_its_follower` \
         tries it",
        &[
            "bookkeeping/fail: without `settle_dropped(keys, step)`",
            "bookkeeping/promote: without `settle_dropped(keys, step)`",
            "bookkeeping/run_now: without `settle_dropped(keys, new_step(1))`",
            "stream/batch/pieces: without `cancel_piece(keys, id, job)`",
        ],
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
            "stream/batch/read_outbox: without `count_job(step, letter[2])`",
            "stream/batch/sweep: without `count_job(step, entry)` (2)",
            "stream/purge: without `count_job(step)`",
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
            "stream/claim: without `not` in `is_more = is_more or buried > 0 or not is_plain and redis.call('EXISTS', claimable) == 1`",
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
        "relq-stream's `a_damaged_schedule_can_be_stored_again` tries it",
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
        "relq-stream's `entries_of_foreign_consumers_are_taken_back` tries it",
        &[
            "stream/adopt: without `not` in `if not has_room(step) then break end`",
            "stream/adopt: without `return_entry(stream, sid, deliveries)`",
            "stream/adopt: without `take_from(stream, name)`",
            "stream/adopt: without `visit(stream, name, pending, consumer_idle_ms)`",
        ],
    ),
    (
        "relq-stream's `entries_of_foreign_consumers_are_taken_back_by_pages` tries it",
        &[
            "stream/adopt: without `count_job(step, entry)`",
            "stream/adopt: without `bury_deleted(keys, stream, sid, sid)`",
            "stream/pattern: without `redis.call('XACK', stream, GROUP, sid)`",
        ],
    ),
    (
        "relq-stream's `a_foreign_consumer_that_holds_nothing_is_removed` tries it",
        &[
            "stream/adopt: `<=` for `>` in `if pending > 0 then`",
            "stream/adopt: `<=` for `>` in `elseif consumer_idle_ms > idle_ms then`",
            "stream/adopt: without `redis.call('XGROUP', 'DELCONSUMER', stream, GROUP, name)`",
            "stream/adopt: `==` for `~=` in `if name ~= READY and name ~= LEASED then visit(stream, name, pending, consumer_idle_ms) end`",
            "stream/adopt: `==` for `~=` in `if name ~= READY and name ~= LEASED then visit(stream, name, pending, consumer_idle_ms) end` (2)",
        ],
    ),
    (
        "relq-stream's `a_batch_that_is_open_is_not_swept` tries it",
        &[
            "stream/batch/sweep: without `redis.call('SREM', batch_key(keys, 'cancelling'), id)`",
        ],
    ),
    (
        "relq-stream's `jobs_deleted_with_their_leases_are_dead` tries it",
        &["stream/adopt: without `bury_deleted(keys, stream, sid, sid)` (2)"],
    ),
    (
        "relq-stream's `entries_without_a_lease_wake_a_claim` tries it",
        &["stream/adopt: without `notify(keys)`"],
    ),
    (
        "relq-stream's `pieces_are_listed_in_the_changed_order_of_their_batches` tries it",
        &[
            "stream/batch/alter: without `redis.call('ZADD', batch_key(keys, 'running'), rank_of(priority, number), id)`",
        ],
    ),
    (
        "relq-stream's `a_half_cancelled_batch_gives_nothing` tries it",
        &[
            "stream/batch/cancel_batch: without `redis.call('ZREM', batch_key(keys, 'claimable'), id)`",
        ],
    ),
    (
        "relq-stream's `a_member_that_is_no_lease_holds_up_no_recovery` tries it",
        &["stream/batch/pieces: without `redis.call('ZREM', keys.leased, lease)` (2)"],
    ),
    (
        "relq-stream's `an_interrupted_purge_leaves_a_batch_with_its_other_pieces` tries it",
        &[
            "stream/batch/pieces: `~=` for `==` in `if batch and redis.call('SISMEMBER', batch_key(keys, 'live', batch), id) == 0 then`",
            "stream/batch/pieces: without `redis.call('ZREM', keys.leased, lease)` (3)",
            "stream/purge: without `redis.call('XACK', stream, GROUP, found[1])`",
            "stream/purge: without `redis.call('XDEL', stream, found[1])`",
            "stream/purge: without `count_job(step, entry)`",
            "stream/purge: without `redis.pcall('SREM', live, job.id)`",
            "stream/purge: without `redis.pcall('HINCRBY', batch_key(keys, 'record', id), 'dropped', 1)`",
            "stream/purge: without `end_result(keys, job, now_ms, PURGED)`",
            "stream/purge: without `redis.pcall('ZREM', keys.ids, job.id)`",
            "stream/purge: without `redis.pcall('HDEL', keys.errors, job.id)`",
            "stream/purge: without `remove_records(id)`",
            "stream/purge: without `settle_ended(keys, now_ms, step)`",
            "stream/purge: without `redis.call('UNLINK', batch_key(keys, list[1]))`",
        ],
    ),
    (
        "relq-stream's `deleted_pieces_have_failed_and_the_batch_ends` tries it",
        &[
            "stream/batch/pieces: without `bury_deleted(keys, stream, sid, id)`",
            "stream/batch/pieces: without `drop_leased(keys, lease)`",
            "stream/batch/sweep: `<=` for `>` in `if redis.call('XLEN', stream) > 0 or count_leased(stream) > 0 then return false end` (2)",
            "stream/batch/sweep: without `not` in `if not has_room(step) then return has_found end`",
            "stream/batch/sweep: without `bury_deleted(keys, stream, '0-0', job_id)`",
            "stream/pattern: without `bury(keys, read_entry(entry), entry, 'mits entry was deleted from the stream', now_ms)`",
        ],
    ),
    (
        "relq-stream's `a_batch_that_completes_is_swept_no_more` tries it",
        &[
            "stream/batch/records: without `redis.call('SREM', batch_key(keys, 'cancelling'), id)`",
        ],
    ),
    (
        "relq-stream's `a_damaged_completion_holds_up_no_other` tries it",
        &[
            "stream/batch/read_outbox: `<=` for `>` in `for i = 1, 4 do letters[#letters + 1] = letter[i] or (i > 2 and '0' or '') end`",
        ],
    ),
    (
        "relq-stream's `a_batch_of_overwritten_pieces_is_not_shown` tries it",
        &["stream/batch/records: without `error(pending)`"],
    ),
    (
        "relq-stream's `a_cancelled_batch_without_its_leases_ends` tries it",
        &[
            "stream/batch/records: `<=` for `>` in `if leases > MOST_LEASES or count_leased(stream) <= leases then return 0, {} end`",
            "stream/batch/records: without `not` in `local is_lost = not is_leased[sid] and has_room(step)`",
            "stream/batch/tend: `~=` for `==` in `if returned > 0 and state_of(keys, running) == 'cancelling' then`",
            "stream/batch/tend: without `redis.call('SADD', batch_key(keys, 'cancelling'), running)`",
        ],
    ),
    (
        "relq-stream's `a_piece_without_a_lease_is_found_behind_leased_ones` tries it",
        &[
            "stream/batch/records: `~=` for `==` in `if where == stream then is_leased[sid] = true end`",
            "stream/batch/tend: without `refresh(keys, running)`",
        ],
    ),
    (
        "relq-stream's `entries_without_a_lease_become_ready_by_pages` tries it",
        &["stream/batch/records: without `count_job(step, entry)`"],
    ),
    (
        "relq-zset's `the_id_of_a_damaged_job_that_is_gone_is_free` tries it",
        &["bookkeeping/side_records: without `redis.call('ZREM', keys.ids, id)`"],
    ),
    (
        "relq-stream's `a_late_forwarder_takes_no_completion_of_a_later_batch` tries it",
        &[
            "stream/batch/leave_outbox: `~=` for `==` in `if job and job.id == job_id then`",
            "stream/batch/leave_outbox: 0 for `redis.call('SREM', batch_key(keys, 'outbox'), id)`",
        ],
    ),
    (
        "relq-stream's `a_holder_from_before_an_interrupted_purge_ends_no_new_job` tries it",
        &[
            "stream/purge: without `not` in `if not leases then`",
            "stream/purge: `<=` for `>` in `local has_leased = count_leased(stream) > 0`",
            "stream/purge: without `redis.call('ZREM', keys.leased, lease)`",
        ],
    ),
    (
        "a call of relq-stream's own tests never ends with it",
        &[
            "stream/batch/records: without `return_entry(stream, sid, math.max(1, deliveries - 1))`",
            "stream/batch/sweep: without `end_piece(keys, id, job_id, 'failed')`",
            "stream/batch/tend: without `cancel_page(keys, id, step)`",
            "stream/purge: without `not` in `if not remove_pieces(id) then break end`",
        ],
    ),
    (
        "relq-stream's `entries_deleted_with_their_leases_free_their_slots` tries it",
        &["stream/batch/records: without `redis.call('XACK', stream, GROUP, sid)`"],
    ),
    (
        "relq-stream's `an_ended_batch_of_deleted_pieces_is_its_record` tries it",
        &[
            "stream/batch/records: without `redis.call('ZREM', batch_key(keys, 'claimable'), id)` (2)",
        ],
    ),
    (
        "relq-stream's `a_completed_batch_is_its_record` tries it",
        &[
            "stream/batch/records: without `redis.call('UNLINK', batch_key(keys, 'pieces', id))`",
            "stream/batch/records: without `redis.call('XADD', batch_key(keys, 'told'), 'MAXLEN', 1, '*', 'batch', id)`",
            "stream/batch/tend: `~=` for `==` in `if redis.call('EXISTS', batch_key(keys, 'ids')) == 0 then`",
            "stream/batch/tend: without `redis.call('UNLINK', batch_key(keys, 'told'))`",
        ],
    ),
    (
        "relq-stream's `a_purge_that_ends_behind_the_last_piece_leaves_no_running_batch` \
         tries it",
        &["stream/batch/tend: without `complete_if_over(keys, running, now_ms)`"],
    ),
    (
        "relq-stream's `a_refused_completion_outlasts_the_retention` tries it",
        &[
            "stream/batch/tend: without `redis.call('ZADD', batch_key(keys, 'ended'), now_ms + 1000, one)`",
        ],
    ),
    (
        "relq-stream's `a_claim_that_is_refused_moves_no_job` tries it",
        &[
            "stream/claim: `<=` for `>` in `if redis.call('EXISTS', keys.unique, keys.jobs, keys.dead, keys.errors) > 0 then`",
        ],
    ),
    (
        "relq-stream's `an_entry_without_a_payload_is_buried_with_its_fields` tries it",
        &[
            "stream/claim: without `bury(keys, job, entry, 'mits entry has no field \"job\"; the headers have its fields', now_ms)`",
            "stream/claim: without `redis.call('XACK', stream, GROUP, sid)`",
            "stream/claim: without `redis.call('XDEL', stream, sid)`",
            "stream/pattern: `~=` for `==` in `if fields[i] == PAYLOAD then return false end`",
        ],
    ),
    (
        "relq-stream's `a_deleted_job_that_came_back_is_buried_by_a_claim` tries it",
        &[
            "stream/claim: `~=` for `==` in `if #word == 1 then bury_deleted(keys, stream, sid, sid) end`",
            "stream/claim: without `bury_deleted(keys, stream, sid, sid)`",
        ],
    ),
    (
        "relq-stream's `a_job_with_every_option_ends_and_leaves_nothing_behind` tries it",
        &[
            "stream/claim: `<=` for `>` in `if level ~= 'n' and budget.jobs > 0 then remove_empty(stream) end`",
            "stream/claim: without `remove_empty(stream)`",
            "stream/pattern: `~=` for `==` in `if redis.call('XLEN', stream) == 0 and redis.call('XPENDING', stream, GROUP)[1] == 0 then`",
            "stream/pattern: `~=` for `==` in `if redis.call('XLEN', stream) == 0 and redis.call('XPENDING', stream, GROUP)[1] == 0 then` (2)",
            "stream/pattern: without `redis.call('UNLINK', stream)`",
        ],
    ),
    (
        "relq-stream's `a_deleted_piece_that_came_back_hides_no_other` tries it",
        &[
            "stream/claim: `~=` for `==` in `if #ends == leased_before and buried == buried_before and not budget.is_full then` (2)",
        ],
    ),
    (
        "relq-stream's `a_piece_that_is_never_delivered_holds_up_no_claim` tries it",
        &["stream/claim: without `redis.call('ZREM', claimable, id)`"],
    ),
    (
        "relq-stream's `a_heartbeat_ends_large_cancelled_pieces_in_steps` tries it",
        &["stream/extend: without `count_job(step, entry)`"],
    ),
    (
        "`XGROUP CREATE` fails on that key too: it has another type, or it has the group \
         already",
        &["stream/pattern: without `error(answer)`"],
    ),
    (
        "relq-stream's `a_single_field_may_have_any_name` tries it",
        &[
            "stream/pattern: `~=` for `==` in `if #fields == 2 then`",
            "stream/pattern: `~=` for `==` in `if #fields == 2 then return false end`",
        ],
    ),
    (
        "relq-stream's `an_entry_of_another_client_shows_its_id_and_headers` tries it",
        &[
            "stream/pattern: `~=` for `==` in `if fields[i] == PAYLOAD then`",
            "stream/pattern: `~=` for `==` in `if #headers == 0 then return header .. payload end`",
        ],
    ),
    (
        "relq-stream's `a_deleted_leader_is_dead_and_holds_its_followers` tries it",
        &[
            "stream/pattern: `~=` for `==` in `if type(redis.pcall('ZSCORE', keys.ids, id)) == 'string' then`",
            "stream/pattern: `~=` for `==` in `if redis.pcall('HEXISTS', results_key(keys, 'results'), id) == 1 then`",
        ],
    ),
    (
        "relq-stream's `a_purge_removes_any_number_of_batches` tries it",
        &["stream/purge: without `not` in `if not found then return true end`"],
    ),
    (
        "relq-stream's `a_purge_removes_what_was_not_delivered` tries it",
        &["stream/purge: without `redis.call('UNLINK', batch_key(keys, 'told'))`"],
    ),
    (
        "relq-stream's `a_deleted_entry_ends_as_a_dead_letter_and_not_as_a_loop` tries it",
        &[
            "stream/recover: `~=` for `==` in `local batch, outcome = keys.found and keys.found.batch, entry == false and 'buried'`",
        ],
    ),
];
