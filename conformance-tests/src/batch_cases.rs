//! The cases of batches, which are at the end of the list of all cases.

/// Passes the list on, with the cases of batches at its end.
#[doc(hidden)]
#[macro_export]
macro_rules! __with_batch_cases {
    ($($to:ident)::+ ! [$($arguments:tt)*] $($others:tt)*) => {
        $crate::$($to)::+ ! {
            [$($arguments)*]
            $($others)*
            batches {
                a_batch_is_made_once: B10 => Batches;
                senseless_batches_are_refused: R5 => Batches;
                pieces_with_options_are_refused: R5 => Batches;
                pieces_are_added_all_or_none: R5 B1 => Batches;
                a_closed_batch_takes_nothing: B1 => Batches;
                an_add_can_be_repeated: R4 B1 => Batches PushTokens;
                a_piece_of_a_known_id_is_added_once: R4 B2 => Batches ClientIds;
                sealing_twice_is_sealing_once: B1 B5 => Batches;
                a_piece_is_a_job: R2 => Batches;
                as_much_as_a_push_is_added: R5 => Batches;
                an_unknown_batch_is_an_answer: R21 => Batches;
                pages_show_every_batch: R23 => Batches;
                a_long_page_of_batches_is_whole: R23 => Batches;
                batches_of_queues_are_apart: R19 => Batches;
                pieces_show: R23 => Batches;
                every_end_is_counted: B2 B8 R23 => Batches ClientIds;
                a_second_ack_counts_nothing: B2 => Batches;
                a_redelivered_piece_counts_once: B2 => Batches;
                a_buried_piece_has_failed: B8 => Batches;
                a_piece_out_of_attempts_has_failed: B8 R11 => Batches;
                a_batchs_stats_add_up: B2 => Batches;
                anything_goes_by_the_rules: B2 B3 B4 B5 B7 => Batches;
                an_open_batch_does_not_complete: B1 => Batches;
                an_empty_batch_completes_at_once: B1 B5 => Batches;
                the_last_piece_completes: B5 => Batches;
                a_completion_job_is_whole: B5 R2 => Batches;
                a_completion_is_read_later: B5 => Batches;
                a_completion_goes_to_another_queue: B5 => Batches;
                whatever_completes_tells_another_queue: B5 B7 => Batches;
                workers_at_once_complete_once: B5 => Batches;
                a_waiter_is_told: B5 => Batches;
                a_wait_for_a_batch_ends_in_time: R21 => Batches;
                dropped_settlements_complete_once: B5 R22 => Batches;
                a_limit_holds: B3 => Batches;
                a_dead_workers_slot_comes_back: B3 => Batches;
                released_slots_come_back: B3 R24 => Batches;
                every_end_frees_its_slot: B3 => Batches;
                a_retry_holds_no_slot: B9 => Batches;
                the_most_urgent_batch_is_first: B4 => Batches;
                one_claim_spans_batches: B4 => Batches;
                a_claim_of_pieces_is_bounded_by_bytes: B4 R6 => Batches;
                a_full_batch_blocks_nobody: B3 B4 => Batches;
                a_changed_priority_counts: B4 => Batches;
                a_changed_limit_counts: B3 => Batches;
                pieces_keep_their_order: B4 R13 => Batches Order;
                a_pause_holds_pieces: R23 => Batches;
                settle_and_claim_works_on_pieces: B2 B5 => Batches;
                an_added_piece_wakes: R21 => Batches BlockingWait;
                a_free_slot_wakes: B3 => Batches BlockingWait;
                a_raised_limit_wakes: B3 => Batches BlockingWait;
                what_is_due_wakes_behind_a_full_batch: R14 B3 => Batches BlockingWait Delay;
                a_full_batch_keeps_nobody_awake: R21 => Batches;
                a_cancelled_batch_gives_nothing: B7 => Batches;
                a_cancel_drops_what_is_retried: B7 B9 => Batches;
                a_running_piece_is_told: B7 => Batches;
                what_is_done_meanwhile_counts: B7 => Batches;
                nothing_comes_back_to_a_cancelled_batch: B7 => Batches;
                thousands_are_cancelled: B7 => Batches;
                a_cancel_after_the_end_changes_nothing: B7 => Batches;
                a_cancel_spares_the_others: B7 => Batches;
                a_cancel_spares_others_of_the_same_id: R1 B7 => Batches ClientIds;
                a_last_lease_of_a_cancelled_batch_is_dropped: B7 => Batches;
                a_record_is_kept_for_its_time: B6 => Batches;
                a_name_can_be_used_again: B5 B6 => Batches;
                a_dead_letter_outlives_its_batch: B6 B8 => Batches;
                a_purge_removes_batches: R23 => Batches;
                nothing_is_left_of_a_batch: B6 => Batches @ redis;
            }
        }
    };
}
