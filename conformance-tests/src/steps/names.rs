//! The list of the acts' names, from which the tests of each backend are made.

/// Passes the list of all acts of depth 1 to another macro.
#[doc(hidden)]
#[macro_export]
macro_rules! __with_scenarios {
    ($($to:ident)::+ !) => {
        $crate::$($to)::+ ! {
            push
            first_push
            first_push_with_options
            push_of_many
            push_with_options
            push_with_a_token
            claim
            claim_of_other_priorities
            claim_of_what_is_due
            claim_that_waits
            claim_that_waits_in_vain
            settle_done
            settle_each_disposition
            settle_with_side_records
            settle_and_claim
            extend
            release_worker
            recover
            recover_what_is_due
            redrive
            purge_the_dead
            purge
            pause
            resume
            cancel_a_ready_job
            cancel_a_scheduled_job
            cancel_a_leased_job
            cancel_a_ranked_job
            look
            redrive_by_id
            push_that_moves_another
            extend_what_was_cancelled
            recover_with_old_memories
            peek_at_each_state
            submit_a_batch
            add_pieces
            seal_a_batch
            seal_an_ended_batch
            claim_pieces
            settle_the_last_pieces
            settle_pieces_each_disposition
            complete_elsewhere
            settle_and_claim_on_pieces
            extend_pieces
            extend_cancelled_pieces
            release_with_pieces
            recover_pieces
            recover_cancelled_pieces
            recover_with_an_old_batch
            cancel_a_batch
            cancel_a_piece
            alter_a_batch
            look_at_batches
            redrive_a_piece
            purge_a_batch
            work
            stop_at_work
        }
    };
}

#[cfg(test)]
mod tests {
    use crate::steps::scenarios::SCENARIOS;

    macro_rules! names {
        ($($name:ident)*) => {
            const NAMES: &[&str] = &[$(stringify!($name)),*];
        };
    }
    pub(crate) use names as __names;

    crate::__with_scenarios!(steps::names::tests::__names!);

    #[test]
    fn the_list_and_the_acts_agree() {
        let acts: Vec<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();

        assert_eq!(acts, NAMES);
    }
}
