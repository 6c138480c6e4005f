//! The changes that no case catches on circular.

use crate::page::Reasons;

/// The changes that no case catches, each behind the reason why none has to.
pub(crate) const SURVIVORS: Reasons = &[
    (
        "relq-circular's `a_claim_buries_a_job_on_its_last_attempt` tries it",
        &[
            "circular/claim: without `redis.call('LPOP', keys.circle)`",
            "circular/claim: without `redis.call('ZREM', keys.marks, token)`",
        ],
    ),
    (
        "relq-circular's `a_few_that_wait_cost_no_turn` tries it",
        &[
            "circular/claim: `>=` for `<` in `while #head < claimable do`",
            "circular/claim: `<=` for `>` in `if bytes > STEP_BYTES or page_bytes == 0 then return {} end`",
            "circular/claim: `~=` for `==` in `if bytes > STEP_BYTES or page_bytes == 0 then return {} end`",
            "circular/claim: `<=` for `>` in `if claimable > few or claimable >= length then return end`",
            "circular/claim: `<` for `>=` in `if claimable > few or claimable >= length then return end`",
            "circular/claim: `<=` for `>` in `if claimable > 0 then look_at_head() end`",
            "circular/claim: without `look_at_head()`",
        ],
    ),
    (
        "relq-circular's `a_job_that_is_too_large_for_a_claim_stays_next` tries it",
        &[
            "circular/claim: without `redis.call('LMOVE', keys.circle, keys.circle, 'LEFT', 'RIGHT')`",
        ],
    ),
    (
        "relq-circular's `a_deleted_ring_begins_anew` tries it",
        &[
            "circular/claim: `>=` for `<` in `if rotated == length and #leased < wanted then`",
            "circular/claim: without `forget_strays(keys, '-inf', is_empty and '+inf' or now_ms)`",
            "circular/pattern: without `redis.call('ZREMRANGEBYSCORE', keys.marks, from, to)`",
        ],
    ),
    (
        "relq-circular's `one_claim_makes_no_more_than_one_turn` tries it",
        &[
            "circular/claim: `>=` for `<` in `if claimable > 0 and rotated < length then return 'more' end`",
        ],
    ),
    (
        "relq-circular's `a_malformed_entry_without_options_is_buried_whole` tries it",
        &[
            "circular/leasing: `~=` for `==` in `if entry:sub(1, 8) ~= '\\245RQ\\1\\0\\5\\0\\0' or entry:sub(9, 10) == '\\0\\0'`",
            "circular/leasing: `~=` for `==` in `or id_bytes == 0 or #entry < 11 + id_bytes then return nil end`",
            "circular/leasing: `>=` for `<` in `or id_bytes == 0 or #entry < 11 + id_bytes then return nil end`",
        ],
    ),
    (
        "relq-circular's `recovery_drops_ended_elements_from_a_long_ring` tries it",
        &[
            "circular/pattern: `>` for `<=` in `local is_idle = length <= over + redis.call('ZCOUNT', keys.marks, '(0', '+inf')`",
            "circular/pattern: without `not` in `if length > most and not (is_littered and is_idle) then return false end`",
            "circular/pattern: `~=` for `==` in `if looked == length then`",
            "circular/pattern: `>=` for `<` in `return is_littered and is_idle and kept < looked`",
        ],
    ),
    (
        "relq-circular's `large_elements_are_dropped_in_bounded_steps` tries it",
        &[
            "circular/pattern: without `not` in `if not is_idle then`",
            "circular/pattern: without `redis.call('LMOVE', keys.circle, keys.circle, 'LEFT', 'RIGHT')`",
        ],
    ),
    (
        "relq-circular's `recovery_drops_ended_elements` tries it",
        &[
            "circular/pattern: `<=` for `>` in `if length > most and not (is_littered and is_idle) then return false end`",
        ],
    ),
    (
        "relq-circular's `marks_of_stolen_elements_are_forgotten_by_a_recovery` tries it",
        &[
            "circular/pattern: without `forget_strays(keys, OVER, OVER)`",
            "circular/recover: without `forget_strays(keys, '(0', now_ms)`",
            "circular/recover: without `forget_strays(keys, LEFT_UNSEEN, LEFT_UNSEEN)`",
        ],
    ),
    (
        "relq-circular's `a_release_frees_its_jobs_unique_key` tries it",
        &["circular/recover: without `redis.call('ZREM', keys.marks, token)`"],
    ),
    (
        "relq-circular's `the_last_attempt_is_buried_at_the_head_of_a_long_ring` tries it",
        &[
            "circular/recover: `>=` for `<` in `if count < page then break end`",
            "circular/recover: `<=` for `>` in `local has_more = unseen() > 0 and (offset > 0 or is_full())` (2)",
        ],
    ),
    (
        "relq-circular's `a_lease_that_expires_behind_the_reaper_is_found` tries it",
        &["circular/recover: `~=` for `==` in `if offset == 0 then`"],
    ),
    (
        "`take_back` then recovers these leases too, by reading the ring: it bounds cost only",
        &["circular/recover: without `let_go()`"],
    ),
    (
        "a waiter that does not hear of it looks again by itself, within the declared \
         lateness (R14)",
        &[
            "circular/recover: `<=` for `>` in `if counts.requeued > 0 then notify(keys) end`",
            "circular/recover: without `notify(keys)`",
        ],
    ),
];
