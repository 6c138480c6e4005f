//! The one list of cases. The registry and the tests of each backend are generated from
//! it.

/// Hands the list of all cases to another macro, after the arguments given.
///
/// An entry is `name: rules => needs @ scope;`. The needs are the options that a
/// backend must support or declare ([`Need`](crate::Need)). If a backend does not meet
/// them, a probe runs in place of the case. The scope is `redis` or `embedded` for
/// cases of one [`Profile`](crate::Profile).
#[doc(hidden)]
#[macro_export]
macro_rules! __with_cases {
    ($($to:ident)::+ ! [$($arguments:tt)*]) => {
        $crate::__with_batch_cases! {
            $($to)::+ ! [$($arguments)*]
            no_loss {
                an_empty_payload_arrives_empty: R2;
                every_byte_arrives: R2;
                syntax_of_others_arrives: R2;
                protocol_like_payloads_arrive: R2;
                invalid_utf8_arrives: R2;
                payloads_with_relqs_mark_arrive: R2;
                marked_payloads_survive_every_state: R2;
                bytes_and_headers_survive_every_state: R2;
                the_largest_payload_arrives: R2;
                a_payload_above_the_limit_is_refused: R2 R5;
                headers_arrive_in_order: R2;
                the_largest_headers_arrive: R2;
                headers_above_the_limit_are_refused: R2 R5;
                the_largest_call_is_stored: R5;
                a_call_above_the_limit_is_refused: R5;
                one_invalid_job_refuses_all: R5;
                equal_payloads_are_two_jobs: R3 R7;
                an_empty_queue_delivers_nothing: R3;
                jobs_outlive_their_producer: R1;
                a_leased_job_is_kept: R1;
                a_push_answers_in_order: R23;
                one_call_mixes_every_option: R5;
            }
            idempotence {
                an_id_is_stored_once: R4 => ClientIds;
                an_id_is_the_jobs_own: R4 => ClientIds;
                ids_that_begin_alike_are_two: R4 => ClientIds;
                the_first_of_an_id_in_a_call_wins: R4 => ClientIds;
                an_id_is_known_while_scheduled: R4 => ClientIds Delay;
                an_id_is_known_while_leased: R4 => ClientIds;
                an_id_is_known_while_dead: R4 => ClientIds;
                an_id_is_known_after_done: R4 => ClientIds;
                an_id_is_known_after_discard: R4 => ClientIds;
                an_id_is_known_after_cancel: R4 => ClientIds;
                an_id_is_known_after_its_letter_is_purged: R4 => ClientIds;
                a_purge_forgets_ids: R4 => ClientIds;
                a_refused_push_uses_no_id_up: R4 R5 => ClientIds;
                racing_pushes_of_an_id_store_one: R4 R12 => ClientIds;
                an_id_is_forgotten_after_the_window: R4 => ClientIds;
                an_id_is_known_as_long_as_its_job: R4 => ClientIds;
                a_token_is_stored_once: R4 => PushTokens;
                a_token_makes_the_ids: R4 => PushTokens;
                a_token_repeats_duplicates_too: R4 => ClientIds PushTokens Unique;
                a_token_is_known_after_its_jobs_ended: R4 => PushTokens Delay;
                two_tokens_are_two_calls: R4 => PushTokens;
                a_refused_push_uses_no_token_up: R4 R5 => PushTokens;
                racing_calls_of_a_token_store_once: R4 R12 => PushTokens;
                the_largest_call_can_be_repeated: R4 => PushTokens;
                a_token_of_no_jobs_is_taken: R4 => PushTokens;
                a_token_leaves_client_ids_alone: R4 => ClientIds PushTokens;
                a_token_is_forgotten_after_the_window: R4 => PushTokens;
                a_token_that_meets_an_id_loses_nothing: R4 R1 => ClientIds PushTokens;
                two_jobs_of_an_id_are_apart: R4 R16 => ClientIds PushTokens Unique;
                an_id_of_relqs_own_loses_nothing: R4 R1 => ClientIds;
                odd_ids_live_a_whole_life: R4 R2 => ClientIds;
            }
            unique {
                a_held_key_answers_its_holder: R16 => Unique;
                keys_that_begin_alike_are_two: R16 => Unique;
                the_first_of_a_key_in_a_call_wins: R16 => Unique;
                a_scheduled_job_holds_its_key: R16 => Unique Delay;
                a_leased_job_holds_its_key: R16 => Unique;
                a_retry_keeps_the_key: R16 => Unique;
                a_retried_job_frees_its_key_in_the_end: R16 => Unique;
                a_lost_lease_keeps_the_key: R16 => Unique;
                a_give_back_keeps_the_key: R16 => Unique;
                a_release_keeps_the_key: R16 => Unique;
                an_ack_frees_the_key: R16 => Unique;
                a_discard_frees_the_key: R16 => Unique;
                a_burial_frees_the_key: R16 => Unique;
                the_last_retry_frees_the_key: R16 R11 => Unique;
                the_last_lost_lease_frees_the_key: R16 R11 => Unique;
                cancelling_a_scheduled_job_frees_its_key: R16 => Unique Delay;
                cancelling_a_ready_job_frees_its_key: R16 => Unique;
                cancelling_a_leased_job_frees_its_key: R16 => Unique;
                a_purge_frees_the_key: R16 => Unique;
                a_stale_ack_frees_no_key: R16 R7 => Unique;
                a_known_id_comes_before_the_key: R16 R4 => ClientIds Unique;
                a_duplicate_by_id_takes_no_key: R16 R4 => ClientIds Unique;
                a_duplicate_by_key_uses_no_id_up: R16 R4 => ClientIds Unique;
                racing_pushes_of_a_key_store_one: R16 R12 => Unique;
                a_delayed_unique_job_runs_once: R16 R14 => Unique Delay;
                a_view_shows_the_key: R16 => Unique;
            }
            unique_moves {
                reschedule_moves_a_scheduled_holder: R16 => Unique Delay;
                reschedule_can_put_a_holder_off: R16 R14 => Unique Delay;
                reschedule_to_now_makes_ready: R16 => Unique Delay;
                reschedule_leaves_a_ready_holder: R16 => Unique Delay;
                reschedule_leaves_a_leased_holder: R16 => Unique Delay;
                keep_leaves_a_scheduled_holder: R16 => Unique Delay;
                a_redriven_job_holds_its_key: R16 => Unique;
                a_redrive_answers_duplicates: R16 => Unique;
                a_redrive_of_two_moves_one: R16 => Unique;
                purging_a_dead_job_leaves_its_successor: R16 => Unique;
            }
            unique_expiry {
                an_expired_holder_frees_its_key: R16 R17 => Unique Expiry;
                an_expired_scheduled_holder_frees_its_key: R16 R17 => Unique Delay Expiry;
                burying_an_expired_job_leaves_its_successor: R16 R17 => Unique Expiry;
                a_leased_holder_does_not_expire: R16 R17 => Unique Expiry;
                promoting_an_expired_job_leaves_its_successor: R16 R17 => Unique Delay Expiry;
                cancelling_an_expired_job_leaves_its_successor: R16 R17 => Unique Expiry;
                an_expired_retry_frees_its_key: R16 R17 => Unique Expiry;
                an_expired_give_back_frees_its_key: R16 R17 => Unique Expiry;
                an_expired_release_frees_its_key: R16 R17 R24 => Unique Expiry;
                an_expired_lost_lease_frees_its_key: R16 R17 => Unique Expiry;
            }
            one_holder {
                late_ack_changes_nothing: R7;
                late_retry_changes_nothing: R7;
                late_burial_changes_nothing: R7;
                late_discard_changes_nothing: R7;
                late_give_back_changes_nothing: R7;
                late_ack_of_a_ready_job_changes_nothing: R7;
                a_given_back_receipt_is_stale: R7;
                a_receipt_is_stale_after_release: R7;
                a_retried_receipt_is_stale: R7;
                a_buried_receipt_is_stale: R7;
                a_second_ack_is_lost: R7;
                a_receipt_counts_once_in_a_call: R7;
                a_stale_receipt_spoils_no_other: R7;
                one_call_carries_every_disposition: R7;
                forged_receipts_are_lost: R7;
                a_held_job_is_not_given_again: R6;
                a_held_job_holds_up_nobody: R6 R9;
                racing_workers_share_the_jobs: R6;
                tasks_may_share_a_connection: R6;
                racing_acks_of_a_receipt_count_once: R6;
                an_overdue_ack_is_applied_or_lost: R7;
                acks_racing_recovery_split_cleanly: R7;
                a_finished_job_stays_gone: R8;
                another_handle_shares_the_queue: R7;
            }
            leases {
                late_extension_changes_nothing: R7;
                an_extended_lease_holds: R6;
                an_extension_is_no_longer_than_asked: R6;
                an_extension_answers_for_each: R7;
                an_extension_keeps_what_it_names: R10;
                a_jobs_own_lease_holds: R6 => JobLease;
                a_jobs_own_lease_ends: R6 R9 => JobLease;
                an_overdue_extension_keeps_or_loses: R6 R7;
                the_longest_worker_ids_hold: R6;
                a_claim_is_bounded_by_bytes: R6;
                a_claim_of_returned_jobs_is_bounded_by_bytes: R6 R24;
                a_claim_of_urgent_jobs_is_bounded_by_bytes: R6 R15 => Priority;
                a_job_beyond_the_bytes_is_not_counted: R6 R11;
            }
            settle_and_claim {
                one_call_does_both: R7 R8;
                a_stale_receipt_stops_no_claim: R7;
                the_settlement_comes_first: R7;
                the_claim_never_waits: R21;
            }
            recovery {
                a_dead_workers_job_comes_back: R9;
                recovery_spares_the_living: R6 R9;
                recovery_pages_and_says_more: R9;
                recovery_of_thousands_loses_none: R9;
                recovery_says_when_the_next_lease_ends: R9;
                recovery_says_when_the_next_job_is_due: R9 R14 => Delay;
                reapers_at_once_requeue_once: R12;
                an_idle_reaper_changes_nothing: R12;
                attempts_are_counted: R11;
                poison_is_buried: R11;
                recovery_counts_burials: R11;
                the_last_retry_buries: R11;
                a_crash_keeps_the_last_error: R11;
                each_lost_lease_is_told: R11;
                the_last_attempt_can_be_given_back: R11 R24;
                attempts_belong_to_the_job: R11;
                the_shortest_lease_ends: R9;
                a_reaper_forgets_what_it_saw: R8 R12;
                a_late_ack_stops_no_recovery: R7 R9;
            }
            worker_release {
                release_gives_back_at_once: R24;
                release_gives_back_the_unseen: R24 R22;
                release_touches_no_namesake: R24;
                release_touches_no_longer_name: R24;
                a_second_release_is_fine: R24;
                release_takes_nothing_from_a_successor: R24 R7;
                release_gives_back_nothing_settled: R24;
                release_gives_back_thousands: R24;
                a_worker_may_claim_after_release: R9 R24;
            }
            races {
                a_cancel_races_an_ack: R23;
                a_release_races_acks: R7 R24;
                a_redrive_races_a_purge: R23;
                reapers_at_once_promote_once: R12 R14 => Delay;
                a_purge_races_pushes: R1 R19;
            }
            cancel_safety {
                a_dropped_waiter_takes_nothing: R22;
                dropped_claims_lose_nothing: R22;
                dropped_pushes_are_whole_or_not: R22 R5;
                a_dropped_push_takes_no_other_with_it: R22 R1;
                dropped_settlements_are_carried_out_or_not: R22 R8;
                dropped_recoveries_lose_nothing: R22 R12;
                dropped_settle_and_claims_lose_nothing: R22;
            }
            stalled {
                a_stalled_call_holds_up_no_other: R21 R22;
                a_stalled_waiter_holds_up_no_other: R21 R22;
                a_stalled_reconnect_holds_up_no_other: R21 R22 @ redis;
                a_stalled_runtime_holds_up_no_other: R21;
            }
            order {
                a_batch_keeps_its_order: R13 => Order;
                batches_keep_their_order: R13 => Order;
                a_given_back_job_is_next: R13 => Order;
                given_back_jobs_keep_their_order: R13 => Order;
                released_jobs_keep_their_order: R13 R24 => Order;
                recovered_jobs_keep_their_order: R13 R9 => Order;
                pages_of_recovery_keep_the_order: R13 R9 => Order;
                a_retried_job_goes_to_the_back: R13 => Order;
                a_redriven_job_goes_to_the_back: R13 => Order;
                redriven_jobs_keep_their_order: R13 R23 => Order;
                many_recovered_jobs_keep_their_order: R13 R9 => Order;
                many_given_back_jobs_keep_their_order: R13 => Order;
                a_peek_shows_the_order: R13 => Order;
                the_more_urgent_is_first: R15 => Order Priority;
                one_claim_spans_levels: R15 => Order Priority;
                silence_means_normal: R15 => Order Priority;
                equals_keep_their_order: R15 R13 => Order Priority;
                a_level_survives_every_way_back: R15 => Order Priority;
                a_recovered_job_jumps_no_level: R15 R9 => Order Priority;
                a_peek_goes_through_the_levels: R15 => Order Priority;
            }
            delay {
                a_delayed_job_is_not_early: R14 => Delay;
                a_delayed_job_is_on_time: R14 => Delay;
                recovery_promotes_due_jobs: R14 => Delay;
                thousands_fall_due_at_once: R14 => Delay;
                a_delayed_job_blocks_nobody: R14 => Delay;
                due_jobs_come_in_order_of_time: R14 => Delay Fifo;
                jobs_due_together_come_in_order: R13 R14 => Delay Order;
                calls_due_together_come_in_order: R13 R14 => Delay Order;
                a_rescheduled_job_comes_after_its_equals: R13 R14 R16 => Delay Unique Order;
                jobs_retried_together_come_in_order: R13 R14 => Order;
                a_retry_waits_its_time: R14;
                a_retry_comes_in_time: R14;
                a_retry_at_once_is_ready: R14;
                a_delayed_job_keeps_its_level: R14 R15 => Delay Priority;
                the_longest_delay_is_far_off: R14 => Delay;
                stats_say_what_is_due_next: R14 R23 => Delay;
            }
            expiry {
                an_expired_job_is_buried: R17 => Expiry;
                expired_jobs_block_nobody: R17 => Expiry;
                a_job_in_time_is_delivered: R17 => Expiry;
                a_running_job_does_not_expire: R17 => Expiry;
                a_retried_job_expires: R17 => Expiry;
                a_recovered_job_expires: R17 => Expiry;
                a_given_back_job_expires: R17 => Expiry;
                a_scheduled_job_expires: R17 R14 => Delay Expiry;
                an_expiry_of_zero_is_never_delivered: R17 => Expiry;
                an_expired_job_survives_redrive: R17 => Expiry;
                a_view_shows_the_expiry: R17 R23 => Expiry;
                a_job_is_buried_once: R11 R17 => Expiry;
            }
            clocks {
                a_fast_clock_steals_nothing: R18 => Delay @ redis;
                a_slow_clock_keeps_nothing: R18 @ redis;
                a_fast_clocks_lease_ends_in_time: R18 @ redis;
                a_wrong_producer_is_on_time: R18 R14 R17 => Delay Expiry @ redis;
                the_given_clock_is_the_stores: R18 => Delay @ embedded;
            }
            waiting {
                a_push_wakes: R21 => BlockingWait;
                a_push_beside_a_held_job_wakes: R21 => BlockingWait;
                a_push_of_any_level_wakes: R15 R21 => Priority BlockingWait;
                a_due_job_wakes: R14 => Delay BlockingWait;
                a_sooner_due_job_wakes: R14 => Delay BlockingWait;
                a_due_retry_wakes: R14 => BlockingWait;
                a_give_back_wakes: R24 => BlockingWait;
                a_release_wakes: R24 => BlockingWait;
                a_recovery_wakes: R9 => BlockingWait;
                a_redrive_wakes: R21 => BlockingWait;
                a_resume_wakes: R21 => BlockingWait;
                a_plain_push_wakes: R21 => BlockingWait @ redis;
                one_push_wakes_as_many_as_it_feeds: R21 => BlockingWait;
                the_dropped_take_no_wake_up: R21 R22 => BlockingWait;
                waiters_may_share_a_connection: R21 => BlockingWait;
                a_waiting_claim_blocks_no_other_call: R21 => BlockingWait;
                a_wait_ends_empty_in_time: R21;
                a_wait_of_zero_answers_at_once: R21;
                the_shortest_wait_ends: R21;
                a_claim_that_finds_jobs_does_not_wait: R21;
                no_wake_up_is_missed: R21 => BlockingWait;
                another_queues_push_is_not_heard: R19;
            }
            isolation {
                queues_with_alike_names_are_apart: R19;
                stats_of_queues_are_apart: R19 R23;
                a_purge_spares_other_queues: R19;
                a_pause_spares_other_queues: R19;
                release_in_one_queue_keeps_the_others: R19 R24;
                recovery_spares_other_queues: R19 R9;
                receipts_belong_to_their_queue: R19 R7;
                ids_and_keys_belong_to_their_queue: R19 R4 R16 => ClientIds PushTokens Unique;
                operators_reach_their_queue_only: R19;
                keys_of_others_are_left_alone: R19 @ redis;
                names_that_reach_out_are_refused: R19;
                the_longest_name_works: R19;
                plain_pushes_are_jobs: R20 @ redis;
                plain_pushes_may_be_any_bytes: R20 R2 @ redis;
                plain_pushes_take_their_turn: R20 R13 => Order @ redis;
                equal_plain_pushes_are_two_jobs: R20 R7 @ redis;
                plain_pushes_come_back: R20 R9 @ redis;
                plain_pushes_are_given_back: R20 R24 @ redis;
                plain_pushes_show: R20 R23 @ redis;
                malformed_entries_are_buried: R3 R20 @ redis;
                copies_of_an_entry_are_two_jobs: R3 R20 @ redis;
                plain_pushes_share_no_id: R20 => ClientIds @ redis;
                plain_pushes_are_operated: R20 R3 @ redis;
                plain_pushes_are_purged: R20 R23 @ redis;
            }
            operator {
                a_paused_queue_gives_nothing: R23;
                settle_and_claim_respects_the_pause: R23;
                a_resumed_queue_goes_on: R23;
                pausing_twice_is_pausing_once: R23;
                a_paused_queue_works_otherwise: R23;
                jobs_fall_due_in_a_pause: R23 R14 => Delay;
                a_scheduled_job_is_cancelled: R23 => Delay;
                a_ready_job_is_cancelled: R23;
                a_cancel_takes_no_twin: R23;
                a_leased_job_is_cancelled: R23;
                a_cancelled_job_cannot_be_settled: R23 R7;
                a_cancelled_job_does_not_come_back: R23 R9;
                a_cancel_of_nothing_finds_nothing: R23;
                a_second_cancel_finds_nothing: R23;
                a_cancel_finds_retried_jobs: R23 => Unique;
                a_peek_shows_each_state: R23 => Delay;
                a_peek_shows_the_holder: R23;
                a_peek_shows_the_whole_job: R23 => ClientIds Unique Delay Expiry Priority;
                a_peek_shows_the_soonest_first: R23 => Delay;
                pages_show_every_ready_job: R23;
                pages_show_every_other_job: R23 => Delay;
                pages_split_no_moment: R23 => Delay;
                pages_show_thousands: R23;
                a_peek_at_nothing_is_empty: R23;
                looking_changes_nothing: R23;
            }
            dead_letters {
                a_dead_letter_says_why: R23;
                a_long_error_does_no_harm: R23;
                an_empty_error_does_no_harm: R23;
                a_dead_letter_stays: R3;
                a_redriven_job_begins_anew: R23;
                a_redrive_takes_those_named: R23;
                a_redrive_passes_unknown_ids_over: R23;
                naming_none_means_none: R23;
                thousands_are_redriven: R23;
                thousands_are_listed: R23;
                a_purge_of_the_dead_spares_the_living: R23;
                a_purge_takes_those_named: R23;
                a_second_purge_finds_nothing: R23;
                operators_at_once_redrive_once: R12 R23;
                a_dead_letter_keeps_the_job: R23 => ClientIds;
            }
            owner {
                the_first_write_marks_the_queue: R25 @ redis;
                each_kind_of_write_marks_the_queue: R25 @ redis;
                a_queue_of_another_backend_is_refused: R25 @ redis;
                the_second_of_two_first_writers_is_refused: R25 @ redis;
                a_reconnect_looks_again: R25 @ redis;
                a_waiting_claim_looks_again: R25 @ redis;
                recovery_looks_before_it_touches: R25 @ redis;
                another_handle_looks_too: R25 @ redis;
                a_flush_stops_no_running_client: R25 => ClientIds @ redis;
                keys_without_a_marker_are_refused: R25 @ redis;
                what_a_newer_relq_wrote_is_refused: R25 @ redis;
                a_purge_keeps_the_marker: R25 @ redis;
                plain_pushes_need_no_marker: R25 R20 @ redis;
            }
            stats {
                a_new_queue_is_empty: R23;
                every_state_is_counted: R23;
                overdue_leases_are_counted: R23;
                all_levels_are_counted: R23 => Priority;
                a_purge_removes_everything: R23 => Delay;
                a_purged_queue_works: R23 R24;
                nothing_is_kept_for_ever: R23 => ClientIds PushTokens Unique @ redis;
                a_purge_removes_thousands: R23;
                stats_add_up_after_anything: R23 => Delay;
            }
            bad_input {
                an_endless_delay_is_refused: R5 => Delay;
                an_endless_expiry_is_refused: R5 => Expiry;
                a_senseless_lease_of_a_job_is_refused: R5 => JobLease;
                each_level_is_taken_or_refused: R5 R15;
                a_senseless_lease_is_refused: R21;
                an_endless_wait_is_refused: R21;
                the_longest_lease_holds: R21;
                a_senseless_extension_is_refused: R21;
                an_endless_retry_loses_nothing: R21;
                too_many_settlements_are_refused: R5;
                too_many_extensions_are_refused: R5;
                a_greedy_claim_loses_nothing: R21;
                the_largest_batches_work: R6;
                empty_calls_are_fine: R21;
                the_longest_names_are_taken: R2 R4 R16 => ClientIds Unique;
                the_most_attempts_are_taken: R11;
                a_refusal_harms_no_later_call: R21;
            }
        }
    };
}
