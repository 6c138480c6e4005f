//! The changes that no case catches on keyspace.

use crate::page::Reasons;

/// The changes that no case catches, each behind the reason why none has to.
pub(crate) const SURVIVORS: Reasons = &[
    (
        "relq-keyspace's `a_time_to_live_of_a_stray_ends_with_its_adoption` tries it",
        &["keyspace/adopt: without `redis.call('PERSIST', name)`"],
    ),
    (
        "relq-keyspace's `a_stray_processing_key_is_given_a_lease` tries it",
        &["keyspace/adopt: 0 for `redis.call('ZADD', leased, 'NX', unpack(words))`"],
    ),
    (
        "the push script then stores the jobs, to the same end",
        &["keyspace/append: 0 for `redis.call('MSETNX', unpack(words))`"],
    ),
    (
        "relq-keyspace's `a_time_to_live_of_an_entry_ends_with_the_lease` tries it",
        &["keyspace/claim: without `redis.call('PERSIST', processing)`"],
    ),
    (
        "no two leases share a name, so only another client can have taken the key, which \
         no case does",
        &["keyspace/claim: without `redis.call('ZREM', keys.leased, processing)`"],
    ),
    (
        "relq-keyspace's `a_deleted_item_frees_its_key_and_its_id` tries it",
        &[
            "keyspace/free_deleted: `~=` for `==` in `if redis.call('EXISTS', keys.unique, keys.ids, keys.errors) == 0`",
            "keyspace/free_deleted: `<=` for `>` in `or redis.call('ZCARD', keys.leased) > most_leases then`",
            "keyspace/free_deleted: `~=` for `==` in `if deleted[id] == nil then`",
            "keyspace/free_deleted: without `look(page[2][i], page[2][i + 1])`",
            "keyspace/free_deleted: without `for_page(1, 'HSCAN', keys.unique, function(key, holder) local id = holder:match('^%d+ (.*)$') if id and is_deleted(id) then redis.call('HDEL', keys.unique, key) end end)`",
            "keyspace/free_deleted: without `redis.call('HDEL', keys.unique, key)`",
            "keyspace/free_deleted: without `for_page(2, 'ZSCAN', keys.ids, function(id, known_until) if known_until == 'inf' and is_deleted(id) then redis.call('ZADD', keys.ids, forget_at, id) end end)`",
            "keyspace/free_deleted: without `redis.call('ZADD', keys.ids, forget_at, id)`",
            "keyspace/free_deleted: without `for_page(3, 'HSCAN', keys.errors, function(id) if is_deleted(id) then redis.call('HDEL', keys.errors, id) end end)`",
            "keyspace/free_deleted: without `redis.call('HDEL', keys.errors, id)`",
        ],
    ),
    (
        "relq-keyspace's `an_id_that_a_plain_set_took_is_a_duplicate` tries it",
        &[
            "keyspace/pattern: `~=` for `==` in `if #items == 0 or redis.call('EXISTS', unpack(items)) == 0 then return is_ready end` (2)",
        ],
    ),
    (
        "relq-keyspace's `a_renamed_job_takes_its_unique_key_with_it` tries it",
        &[
            "keyspace/pattern: without `redis.call('ZREM', keys.ids, job.id)`",
            "keyspace/pattern: without `redis.call('HDEL', keys.errors, job.id)`",
            "keyspace/recover: `~=` for `==` in `if job.attempt < job.max_attempts and redis.call('EXISTS', item) == 0 then`",
        ],
    ),
    (
        "relq-keyspace's `a_renamed_job_takes_its_last_error_with_it` tries it",
        &[
            "keyspace/pattern: `<=` for `>` in `local note = job.attempt > 0 and redis.call('HGET', keys.errors, job.id)`",
            "keyspace/pattern: without `redis.call('HSET', keys.errors, id, note)`",
        ],
    ),
    (
        "`append` then makes the jobs ready one by one, to the same end",
        &[
            "keyspace/pattern: without `not` in `are_different, is_seen[id] = are_different and not is_seen[id], true`",
            "keyspace/pattern: 0 for `redis.call('MSETNX', unpack(items))`",
        ],
    ),
    (
        "relq-keyspace's `a_claim_is_two_commands_where_ready_jobs_are_many` tries it",
        &[
            "keyspace/pick: `~=` for `==` in `if is_paused == 1 then return answer end`",
            "keyspace/pick: `<` for `>=` in `if #answer >= enough then break end`",
            "keyspace/pick: without `not` in `if name and not is_seen[name] and is_item(name) then answer[#answer + 1] = name end`",
        ],
    ),
    (
        "relq-keyspace's `large_jobs_are_purged_in_steps` tries it",
        &[
            "keyspace/purge: `==` for `~=` in `if redis.call('TYPE', key).ok ~= kind then redis.call('UNLINK', key) end`",
            "keyspace/purge: without `redis.call('HDEL', keys.errors, job.id)`",
            "keyspace/purge: without `forget_job(entry and read_entry(entry) or {id = id})`",
            "keyspace/purge: without `redis.call('HDEL', keys.jobs, id)`",
            "keyspace/purge: without `count_job(step, entry)`",
            "keyspace/purge: without `not` in `if next_cursor == '0' and not is_rest_left then`",
            "keyspace/purge: `~=` for `==` in `return {removed, next_cursor == '0' and is_rest_left and 'rest' or next_cursor, began_ms}`",
        ],
    ),
    (
        "relq-keyspace's `a_purge_removes_what_took_the_place_of_records` tries it",
        &[
            "keyspace/purge: without `redis.call('UNLINK', key)`",
            "keyspace/purge: without `redis.call('UNLINK', keys.calls, keys.answers)`",
        ],
    ),
    (
        "relq-keyspace's `an_interrupted_purge_leaves_the_token_of_a_push_whose_jobs_stay` \
         tries it",
        &[
            "keyspace/purge: `~=` for `==` in `if next_cursor == '0' and not is_rest_left then` (2)",
        ],
    ),
    (
        "relq-keyspace's `a_purge_leaves_the_token_of_a_push_that_came_meanwhile` tries it",
        &[
            "keyspace/purge: without `not` in `if next_cursor == '0' and not is_rest_left then` (2)",
        ],
    ),
    (
        "relq-keyspace's `an_interrupted_purge_leaves_the_records_of_the_jobs_that_stay` \
         tries it",
        &[
            "keyspace/purge: without `free_unique(keys.unique, job)`",
            "keyspace/purge: without `redis.call('ZREM', keys.ids, job.id)`",
            "keyspace/purge: `<=` for `>` in `local has_records = redis.call('EXISTS', keys.unique, keys.ids, keys.errors) > 0`",
            "keyspace/purge: without `forget_job(job)`",
            "keyspace/purge: `~=` for `==` in `if next_cursor == '0' and not is_rest_left then`",
        ],
    ),
    (
        "relq-keyspace's `a_purge_removes_the_records_of_a_deleted_item` tries it",
        &[
            "keyspace/purge: without `redis.call('UNLINK', keys.unique, keys.ids, keys.errors, keys.jobs)`",
        ],
    ),
    (
        "relq-keyspace's `a_job_that_comes_back_has_no_time_to_live` tries it",
        &["keyspace/recover: without `redis.call('PERSIST', processing)`"],
    ),
    (
        "a waiter that does not hear of it looks again by itself, within the declared \
         lateness (R14)",
        &["keyspace/recover: without `notify(keys)`"],
    ),
    (
        "relq-keyspace's `a_key_that_is_no_job_causes_no_busy_loop` tries it",
        &[
            "keyspace/sweep: `>=` for `<` in `if #named < to_name then named[#named + 1] = name end`",
        ],
    ),
];
