//! Tests of the worker. Most run on every backend: on a private SQLite file, and on a
//! private redis-server. Those of what no backend can change run on SQLite only.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod backoff;
mod blocked_runtime;
mod clocks;
mod enqueue;
mod faulty;
mod fixture;
mod kinds;
mod late_answers;
mod leases;
mod metrics;
mod metrics_values;
mod observer;
mod outcomes;
mod prefetch;
mod producer;
mod queues;
mod reports;
mod results;
mod settings;
mod shutdown;
mod slots;
mod state;
mod tower;
mod tower_failing;
mod until_empty;
mod versions;

/// Defines a test for each of the given functions, on one backend.
macro_rules! on_a_backend {
    ($fixture:ident: $($module:ident: $($promise:ident),+;)+) => {
        $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $promise() {
                crate::$module::$promise(crate::fixture::Fixture::$fixture().await).await;
            }
        )+)+
    };
}

/// Defines a test for each of the given functions, on each backend.
macro_rules! on_every_backend {
    ($($promises:tt)+) => {
        mod sqlite {
            on_a_backend! { sqlite: $($promises)+ }
        }
        mod zset {
            on_a_backend! { zset: $($promises)+ }
        }
        #[cfg(feature = "circular")]
        mod circular {
            on_a_backend! { circular: $($promises)+ }
        }
        #[cfg(feature = "processing-list")]
        mod processing_list {
            on_a_backend! { processing_list: $($promises)+ }
        }
        #[cfg(feature = "stream")]
        mod stream {
            on_a_backend! { stream: $($promises)+ }
        }
        #[cfg(feature = "keyspace")]
        mod keyspace {
            on_a_backend! { keyspace: $($promises)+ }
        }
    };
}

on_every_backend! {
    outcomes:
        success_acks,
        failure_is_retried,
        retry_waits_as_long_as_the_handler_says,
        panic_is_a_failure_whose_message_is_kept,
        timeout_is_a_failure_whose_message_is_kept,
        unreadable_payload_ends_dead_with_its_bytes,
        hopeless_failure_is_buried_at_once,
        discarded_job_is_gone,
        postponed_job_runs_again_uncounted,
        long_error_is_cut,
        done_work_is_acked_on_redelivery_without_running,
        done_work_is_found_at_an_attempt_with_the_number_1,
        failed_check_runs_nothing_and_acks_nothing;
    blocked_runtime:
        blocked_runtime_keeps_its_jobs;
    leases:
        lost_lease_fires_the_token_and_acks_nothing,
        cancelled_job_fires_the_token_and_acks_nothing,
        unheard_heartbeats_end_the_lease,
        own_lease_of_a_job_is_kept,
        deaf_handler_is_dropped_after_the_grace_time,
        settlement_after_a_suspend_changes_nothing,
        suspend_that_lost_the_lease_fires_the_token,
        set_clock_ends_no_lease;
    late_answers:
        late_answer_starts_nothing,
        answer_from_before_a_suspend_starts_nothing,
        late_answers_halve_the_claims,
        set_clock_makes_no_answer_late,
        job_that_always_comes_late_is_buried,
        own_short_lease_costs_a_waiting_worker_no_attempt,
        lease_lost_during_the_check_starts_nothing;
    shutdown:
        running_handlers_get_their_grace_time,
        handler_over_its_grace_time_is_given_back_uncounted,
        claim_in_flight_at_stop_is_given_back,
        request_just_before_an_answer_counts,
        idle_worker_stops_at_once,
        second_request_stops_hard,
        handler_that_blocks_keeps_its_lease,
        dropped_worker_drops_handlers_and_its_jobs_come_back;
    slots:
        concurrency_is_never_exceeded,
        handler_that_blocks_holds_up_no_other_slot,
        many_slots_run_each_job_once,
        waiting_claim_holds_back_no_settlement,
        idle_worker_is_quiet;
    prefetch:
        jobs_are_claimed_ahead,
        waiting_jobs_are_given_back,
        waiting_payloads_are_bounded;
    backoff:
        settlement_that_failed_is_made_again,
        store_that_takes_no_settlement_gets_no_claims,
        settlement_whose_answer_was_lost_runs_nothing_twice,
        refused_settlement_spoils_no_other,
        lasting_refusal_loses_no_job,
        hopeless_first_claim_ends_the_worker,
        disposition_that_is_never_taken_spoils_no_other,
        worker_whose_reaper_dies_ends_and_gives_back,
        worker_whose_heartbeat_dies_ends_and_gives_back,
        later_trouble_with_claims_passes,
        lasting_refusal_of_claims_ends_the_worker,
        lasting_refusal_of_settlements_ends_the_worker,
        lasting_refusal_of_heartbeats_ends_the_worker,
        lasting_refusal_of_recovery_ends_the_worker,
        refused_recovery_leaves_handlers_the_grace_time,
        refused_claims_leave_handlers_the_grace_time,
        store_that_takes_no_writes_is_waited_for,
        wrong_server_ends_the_worker_at_once;
    kinds:
        each_job_runs_the_handler_of_its_kind,
        unknown_kind_ends_dead_with_its_bytes,
        kind_survives_a_retry_and_a_redrive,
        paused_kind_waits_and_counts_no_attempt;
    producer:
        each_kind_is_in_its_queue_and_runs;
    until_empty:
        it_ends_when_all_jobs_are_done,
        it_leaves_what_falls_due_later,
        it_ends_when_the_queue_is_paused,
        it_stops_when_asked;
    observer:
        life_of_a_job_is_told_in_order,
        time_of_the_push_is_told;
    queues:
        queues_share_slots_within_their_limits,
        shutdown_gives_back_the_jobs_of_all_queues,
        strict_order_serves_the_first_queue_first;
}

/// Defines a test for each of the given functions, on each backend that keeps results.
macro_rules! on_backends_with_results {
    ($($promises:tt)+) => {
        mod results_on_sqlite {
            on_a_backend! { sqlite: $($promises)+ }
        }
        mod results_on_zset {
            on_a_backend! { zset: $($promises)+ }
        }
        #[cfg(feature = "stream")]
        mod results_on_stream {
            on_a_backend! { stream: $($promises)+ }
        }
    };
}

on_backends_with_results! {
    results:
        result_of_the_handler_reaches_the_producer,
        result_of_a_failed_attempt_is_dropped,
        job_that_keeps_no_result_has_none,
        progress_is_shown_until_the_end,
        progress_without_a_lease_is_refused,
        result_of_a_kind_is_a_value;
}

/// Defines a test for each of the given functions, on each backend that has followers.
macro_rules! on_backends_with_followers {
    ($($promises:tt)+) => {
        mod followers_on_sqlite {
            on_a_backend! { sqlite: $($promises)+ }
        }
        mod followers_on_zset {
            on_a_backend! { zset: $($promises)+ }
        }
        #[cfg(feature = "stream")]
        mod followers_on_stream {
            on_a_backend! { stream: $($promises)+ }
        }
    };
}

on_backends_with_followers! {
    until_empty:
        it_leaves_no_follower_of_a_cancelled_job;
}

#[cfg(feature = "circular")]
mod without_results {
    on_a_backend! { circular: results: backend_without_results_refuses_them; }
}

mod on_sqlite_alone {
    on_a_backend! {
        sqlite: prefetch: jobs_are_claimed_ahead_again, several_queues_are_refused;
        leases: own_token_ends_no_handler;
        late_answers: late_answer_counts_although_the_clock_was_set;
        backoff:
            recovery_that_works_in_part_ends_no_worker,
            set_clock_ends_no_worker;
        shutdown:
            request_to_stop_cancels_no_token,
            hard_stop_reads_the_reply_to_a_settlement,
            waiting_claim_takes_no_job_that_is_given_back,
            nothing_of_a_worker_is_left_when_it_has_ended;
        state:
            ready_while_the_store_answers,
            starting_until_all_queues_are_reached,
            each_kind_of_call_tells_the_state,
            not_ready_while_it_stops,
            ended_however_it_ended;
    }
}

// How a worker shares its slots does not depend on the backend.
mod several_queues {
    on_a_backend! {
        sqlite: queues:
            weights_are_kept_over_many_jobs,
            store_that_hangs_holds_up_no_other_queue,
            store_that_settles_nothing_holds_up_no_other_queue,
            server_that_is_down_holds_up_no_other_queue,
            it_ends_when_all_queues_are_empty,
            it_ends_when_any_queue_is_paused,
            hopeless_queue_ends_the_worker,
            hopeless_queue_stops_the_others_at_once,
            observer_of_a_queue_hears_of_that_queue,
            observer_of_the_worker_hears_of_all_queues;
        until_empty:
            it_sees_jobs_that_move_between_the_reads,
            it_sees_jobs_that_move_between_the_parts,
            it_runs_what_a_recovery_pushes,
            it_ends_although_no_recovery_works;
        blocked_runtime:
            blocked_runtime_keeps_the_jobs_of_all_queues;
    }
}

// When a worker reports that it runs does not depend on the backend.
mod reports_of_a_worker {
    on_a_backend! {
        sqlite: reports:
            idle_worker_reports_again_and_again,
            blocked_runtime_reports,
            failed_reports_harm_nothing,
            late_report_delays_no_heartbeat,
            stopped_worker_reports_no_more,
            worker_reports_after_a_suspend,
            backend_without_a_list_gets_no_report;
    }
}

mod connections_of_several_queues {
    on_a_backend! {
        zset: queues: queues_open_no_further_connections;
    }
}

// The reports of observers and metrics in these tests do not depend on the backend, so
// the tests run on SQLite only.
mod events {
    on_a_backend! {
        sqlite: observer:
            end_is_told_with_time_and_error,
            lost_lease_is_told_once,
            unheard_heartbeats_are_told,
            cancelled_job_is_told_as_cancelled,
            failed_calls_are_told_by_operation,
            start_is_told_before_the_check_of_the_work,
            each_part_of_a_job_has_its_own_time,
            job_whose_handler_cannot_be_stopped_is_told,
            failed_reading_of_the_statistics_is_told,
            recovery_is_told_with_its_dead_letters,
            recovery_of_due_jobs_is_told,
            job_given_back_at_shutdown_is_told,
            late_job_is_told_without_a_start,
            settlement_without_a_reply_is_told_as_uncertain,
            panicking_observer_loses_no_job;
        metrics:
            metrics_are_those_that_are_documented,
            jobs_of_a_dropped_worker_leave_the_gauge,
            kinds_can_be_left_out;
        metrics_values:
            durations_are_in_their_histograms,
            each_end_is_counted_as_what_it_was,
            unstarted_job_counts_as_none_that_ran,
            uncertain_job_has_ended;
    }
}

// The effects of layers do not depend on the backend.
mod layers {
    on_a_backend! {
        sqlite: tower:
            timeout_of_a_layer_is_a_failure_that_is_retried,
            concurrency_limit_bounds_the_claims,
            queues_of_a_worker_share_the_limit,
            claim_that_hangs_keeps_no_service_ready,
            rate_limit_leaves_jobs_to_others,
            shed_job_is_postponed,
            job_that_a_limit_admits_is_not_shed,
            caught_panic_is_a_failure_of_the_layer,
            options_of_a_layered_router_hold,
            service_of_a_router_is_ready_before_the_claim,
            job_that_is_not_passed_on_keeps_the_service_ready;
        tower_failing:
            service_that_fails_ends_the_worker,
            service_that_fails_after_the_claim_counts_no_attempt;
    }
}
