//! The changes that no case catches on processing-list.

use crate::page::Reasons;

/// The changes that no case catches, each behind the reason why none has to.
pub(crate) const SURVIVORS: Reasons = &[
    (
        "relq-processing-list's `a_move_into_the_list_of_a_worker_that_waited_is_found` \
         tries it",
        &[
            "processing-list/beat: without `redis.call('ZADD', workers, 'XX', 'GT', end_ms, session)`",
            "processing-list/claim: `~=` for `==` in `if asked == 'waiting' then register(now_ms + lease_ms) end`",
            "processing-list/claim: without `register(now_ms + lease_ms)`",
            "processing-list/stats: `==` for `~=` in `local end_ms = session ~= '' and (redis.call('ZSCORE', keys.workers, session) or 0)`",
            "processing-list/stats: `>` for `<=` in `if end_ms and tonumber(end_ms) <= now_ms then of_ended = of_ended + count end`",
            "processing-list/take_back: `~=` for `==` in `elseif redis.call('EXISTS', list) == 1 then`",
            "processing-list/take_back: `>=` for `<` in `next_ms = next_ms < 0 and left_ms or math.min(next_ms, left_ms)`",
        ],
    ),
    (
        "relq-processing-list's `a_heartbeat_puts_back_what_a_move_brought_and_nobody_saw` \
         tries it",
        &[
            "processing-list/beat: `<=` for `>` in `if count > #held / 2 then`",
            "processing-list/beat: without `put_back({ready = ready}, list, unseen(list))`",
        ],
    ),
    (
        "relq-processing-list's `a_heartbeat_puts_back_what_another_client_pushed` tries it",
        &[
            "processing-list/beat: without `put_back_oldest({ready = ready}, list)`",
            "processing-list/pattern: without `not` in `if not element or name_of(list, element) then return end`",
            "processing-list/pattern: without `redis.call('RPUSH', keys.ready, element)`",
            "processing-list/pattern: without `redis.call('LREM', list, -1, element)`",
        ],
    ),
    (
        "relq-processing-list's `what_moves_in_a_pause_goes_back_to_the_front` tries it",
        &[
            "processing-list/claim: without `put_back({ready = ready}, list, unstamped)`",
        ],
    ),
    (
        "relq-processing-list's `a_job_that_a_claim_moved_is_the_next_in_each_mode` tries it",
        &[
            "processing-list/claim: `~=` for `==` in `local from_handed = (is_plain or (asked == 'moved' and scope == 'worker')) and 0`",
        ],
    ),
    (
        "relq-processing-list's `a_bare_push_reaches_a_waiting_worker_in_one_hop` tries it",
        &[
            "processing-list/claim: `~=` for `==` in `local from_handed = (is_plain or (asked == 'moved' and scope == 'worker')) and 0` (2)",
        ],
    ),
    (
        "relq-processing-list's `what_a_claim_leaves_of_two_moves_goes_back` tries it",
        &[
            "processing-list/claim: without `put_back({ready = ready}, list, left)`",
            "processing-list/pattern: without `redis.call('RPUSH', keys.ready, elements[i])`",
            "processing-list/pattern: without `redis.call('LREM', list, 1, elements[i])`",
        ],
    ),
    (
        "`src/sweep/server_faults/foreign.rs` tries it",
        &[
            "processing-list/finish: `<=` for `>` in `if window_ms > 0 then check_side_records(side_records) end`",
        ],
    ),
    (
        "relq-processing-list's `a_move_into_the_list_of_a_worker_given_up_is_found` tries it",
        &[
            "processing-list/pattern: without `redis.call('RPUSH', keys.ready, element:sub(entry_at))`",
            "processing-list/take_back: without `not` in `if end_ms and is_over(how, end_ms, now_ms) or not end_ms and session_is_over then`",
        ],
    ),
    (
        "relq-processing-list's `ended_sessions_are_forgotten` tries it",
        &[
            "processing-list/take_back: without `redis.call('ZADD', keys.retired, now_ms + watch_ms, session)`",
            "processing-list/take_back: `>` for `<=` in `elseif tonumber(redis.call('ZSCORE', keys.retired, session) or 0) <= now_ms then`",
            "processing-list/take_back: without `redis.call('ZREM', keys.retired, session)`",
            "processing-list/take_back: `~=` for `==` in `if redis.call('EXISTS', list) == 0 then retire(session, end_ms) end`",
            "processing-list/take_back: without `retire(session, end_ms)`",
        ],
    ),
    (
        "relq-processing-list's `expired_leases_are_found_in_a_long_list` tries it",
        &[
            "processing-list/take_named: without `redis.call('ZREM', keys.leased, name)` (2)",
        ],
    ),
];
