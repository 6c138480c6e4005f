//! The shorter lists that tests are made of: cases in real time, and acts.

/// Passes on the list of the cases that also run in real time on a server without a
/// proxy. There is one for each way in which time and the server's own wake-ups matter.
#[doc(hidden)]
#[macro_export]
macro_rules! __with_bare_cases {
    ($($to:ident)::+ !) => {
        $crate::$($to)::+ ! {
            no_loss { every_byte_arrives }
            one_holder { late_ack_changes_nothing racing_workers_share_the_jobs }
            leases { an_extended_lease_holds }
            recovery { a_dead_workers_job_comes_back reapers_at_once_requeue_once }
            delay { a_delayed_job_is_on_time }
            clocks { a_fast_clock_steals_nothing a_slow_clock_keeps_nothing }
            waiting {
                a_push_wakes
                a_plain_push_wakes
                a_sooner_due_job_wakes
                a_wait_ends_empty_in_time
                no_wake_up_is_missed
            }
        }
    };
}
