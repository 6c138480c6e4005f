//! The scenes that are played.

use relq_core::capabilities::Capability;

use super::SceneText;

/// The scenes of which every order is tried.
pub(in super::super) const SCENES: &[SceneText] = &[
    SceneText {
        name: "settle_against_recover",
        lines: "p push j; a claim 1 l0 | \
                a settle 0D | \
                r recover 5 | \
                - advance 3 | \
                b claim 1 l0; b settle 0D",
        needs: &[],
    },
    SceneText {
        name: "retry_against_recover",
        lines: "p push j; a claim 1 l0; - advance 3 | \
                a settle 0R0 | \
                r recover 5 | \
                b claim 1 l0; b settle 0D",
        needs: &[],
    },
    SceneText {
        name: "extend_against_recover",
        lines: "p push j; a claim 1 l0 | \
                a extend 0 l0; a settle 0D | \
                r recover 5 | \
                - advance 3",
        needs: &[],
    },
    SceneText {
        name: "cancel_against_recover",
        lines: "p push j; a claim 1 l0; - advance 3 | \
                o cancel 0 | \
                r recover 5 | \
                b claim 1 l0; b settle 0D",
        needs: &[],
    },
    SceneText {
        name: "cancel_against_claim",
        lines: "p push j | \
                o cancel 0 | \
                a claim 1 l0; a settle 0G",
        needs: &[],
    },
    SceneText {
        name: "cancel_against_promotion",
        lines: "p push jd1; - advance 2 | \
                o cancel 0 | \
                a claim 1 l0; a settle 0D | \
                b claim 1 l0; b settle 0D",
        needs: &[Capability::Delay],
    },
    SceneText {
        name: "a_freed_key_against_a_push",
        lines: "p push jk1; a claim 1 l0 | \
                a settle 0D | \
                p push jk1 | \
                b claim 1 l0; b settle 0D",
        needs: &[Capability::Unique],
    },
    SceneText {
        name: "a_freed_key_against_two_pushes",
        lines: "p push jk1; a claim 1 l0 | \
                a settle 0D | \
                p push jk1; p push jk1",
        needs: &[Capability::Unique],
    },
    SceneText {
        name: "a_repeated_push",
        lines: "p push j t1 | \
                p repeat t1 | \
                o repeat t1 | \
                a claim 2 l0; a settle 0D",
        needs: &[Capability::PushTokens],
    },
    SceneText {
        name: "a_push_by_two_at_once",
        lines: "p push j | \
                p push j t1 | \
                o push j t1 | \
                a claim 3 l0",
        needs: &[Capability::PushTokens],
    },
    SceneText {
        name: "pause_against_claim",
        lines: "p push j,j | \
                o pause; o stats; o resume | \
                a claim 1 l0; a settle 0D | \
                b claim 1 l0; b settle 0G",
        needs: &[],
    },
    SceneText {
        name: "purge_against_all",
        lines: "p push j,j; a claim 1 l0 | \
                o purge | \
                a settle 0R0 | \
                p push jk1 | \
                b claim 1 l0",
        needs: &[Capability::Unique],
    },
    SceneText {
        name: "the_end_of_a_leader_against_its_cancellation",
        lines: "p push ji1,jf1; a claim 1 l0 | \
                a settle 0D | \
                o cancel 1 | \
                p push jf1 | \
                b claim 1 l0",
        needs: &[Capability::Followers, Capability::ClientIds],
    },
    SceneText {
        name: "the_cancellation_of_a_chain_against_recover",
        lines: "p push ji1,ji2f1,jf2; a claim 1 l0; - advance 3 | \
                o cancel 2 | \
                r recover 5 | \
                a settle 0D",
        needs: &[Capability::Followers, Capability::ClientIds],
    },
    SceneText {
        name: "run_now_against_its_promotion",
        lines: "p push jd2k1; - advance 10000ms | \
                o run 0 | \
                r cancel 0 | \
                p push jd1r1 | \
                a claim 1 l0; a settle 0D",
        needs: &[Capability::Inspect, Capability::Delay, Capability::Unique],
    },
    SceneText {
        name: "release_against_recover",
        lines: "p push j,j; a claim 2 l0; - advance 3 | \
                a release-worker | \
                r recover 5 | \
                b claim 2 l0; b settle 0D",
        needs: &[],
    },
    SceneText {
        name: "two_reapers",
        lines: "p push j,jm1; a claim 2 l0; - advance 3 | \
                r recover 1; r recover 1 | \
                o recover 5 | \
                b claim 2 l0; b settle 0D",
        needs: &[],
    },
    SceneText {
        name: "redrive_against_purge_of_the_dead",
        lines: "p push jk1m1; a claim 1 l0; a settle 0B | \
                o redrive | \
                r purge-dead | \
                b claim 1 l0; b settle 0D | \
                p push jk1",
        needs: &[Capability::Unique],
    },
    SceneText {
        name: "stats_against_claim",
        lines: "p push j | \
                a claim 1 l0; a settle 0R0 | \
                o stats | \
                b claim 1 l0; b settle 0D",
        needs: &[],
    },
    SceneText {
        name: "waiting_claim_against_release",
        lines: "p push j; p cancel 0 | \
                a claim 1 l0 w1; a settle 0D | \
                o release-worker a | \
                p push j",
        needs: &[],
    },
    SceneText {
        name: "waiting_claim_against_anothers_release",
        lines: "p push j; a claim 1 l0 | \
                a release-worker | \
                b claim 1 l0 w1; b settle 0D",
        needs: &[],
    },
    SceneText {
        name: "two_waiting_claims",
        lines: "p push j; p cancel 0 | \
                a claim 1 l0 w1 | \
                b claim 1 l0 w1 | \
                p push j",
        needs: &[],
    },
    SceneText {
        name: "end_of_a_wait_against_push",
        lines: "p push j; p cancel 0 | \
                a claim 1 l0 w1 | \
                p push j | \
                - advance 2",
        needs: &[],
    },
    SceneText {
        name: "a_limited_batch",
        lines: "p create 0 p0s1; p add 0 j,j | \
                a claim 1 l0; a settle 0D | \
                b claim 1 l0; b settle 0D",
        needs: &[Capability::Batches],
    },
    SceneText {
        name: "the_end_of_a_batch",
        lines: "p create 0 p0s0; p add 0 j; a claim 1 l0 | \
                a settle 0D | \
                p seal 0 | \
                o cancel-batch 0",
        needs: &[Capability::Batches],
    },
    SceneText {
        name: "the_last_two_jobs_of_a_batch",
        lines: "p create 0 p0s0; p add 0 j,j; p seal 0; a claim 1 l0; b claim 1 l0 | \
                a settle 0D | \
                b settle 0R0; b claim 1 l0; b settle 0D | \
                o batch 0",
        needs: &[Capability::Batches],
    },
    SceneText {
        name: "a_result_against_a_recovery",
        lines: "p push jv2; a claim 1 l0; - advance 3 | \
                a settle 0D1 | \
                r recover 5 | \
                b claim 1 l0; b settle 0D2 | \
                o result 0",
        needs: &[Capability::Results],
    },
    SceneText {
        name: "progress_of_two_workers",
        lines: "p push jv2; a claim 1 l0; - advance 3 | \
                a report 0 v1 | \
                r recover 5 | \
                b claim 1 l0; b report 0 v2; b settle 0D | \
                o result 0",
        needs: &[Capability::Results],
    },
    SceneText {
        name: "a_result_against_a_cancel",
        lines: "p push jv2; a claim 1 l0 | \
                a report 0 v1; a settle 0D1 | \
                o cancel 0; o result 0 | \
                r result 0",
        needs: &[Capability::Results],
    },
    SceneText {
        name: "a_redrive_against_a_purge_of_results",
        lines: "p push jv2; a claim 1 l0; a settle 0B | \
                o redrive | \
                r purge-dead | \
                a claim 1 l0; a settle 0D1 | \
                p result 0; p result 0",
        needs: &[Capability::Results],
    },
    SceneText {
        name: "two_schedulers_at_one_tick",
        lines: "p put 1 d1; - advance 3 | \
                p tick 1 d1 s5 j | \
                o tick 1 d1 s5 j; o tick 1 d1 s4 j | \
                a claim 2 l0; a settle 0D",
        needs: &[Capability::Schedules],
    },
    SceneText {
        name: "a_tick_against_a_replacement",
        lines: "p put 1 d1; - advance 3 | \
                p tick 1 d1 s5 j | \
                o put 1 d2; o tick 1 d2 s6 j | \
                - advance 2",
        needs: &[Capability::Schedules],
    },
    SceneText {
        name: "a_tick_against_a_removal",
        lines: "p put 1 d1; - advance 3 | \
                p tick 1 d1 s5 j | \
                o remove-schedule 1; o put 1 d1 | \
                r tick 1 d1 s4 jk1",
        needs: &[Capability::Schedules],
    },
    SceneText {
        name: "a_listing_of_the_scheduled_against_a_promotion",
        lines: "p push jd1; - advance 2 | \
                o peek scheduled | \
                a claim 1 l0; a settle 0R1",
        needs: &[Capability::Delay],
    },
    SceneText {
        name: "a_listing_of_the_leased_against_a_settlement",
        lines: "p push j,j; a claim 2 l0 | \
                o peek leased | \
                a settle 0D",
        needs: &[],
    },
    SceneText {
        name: "a_listing_of_the_dead_against_a_redrive",
        lines: "p push jm1; a claim 1 l0; a settle 0R0 | \
                o peek dead | \
                r redrive | \
                a claim 1 l0; a settle 0B",
        needs: &[],
    },
    SceneText {
        name: "two_workers_share_two_jobs",
        lines: "p push j,j | \
                a claim 1 l0; a settle 0D | \
                b claim 1 l0; b settle 0R0",
        needs: &[],
    },
];

/// Scenes with so many orders that only random ones are tried.
pub(in super::super) const LARGE_SCENES: &[SceneText] = &[
    SceneText {
        name: "a_busy_queue",
        lines: "p push j,j,j | \
                p push jk1 t1; p repeat t1; p push jd1; p push jk1 | \
                a claim 2 l0; a settle 0D; a claim 1 l0; a settle 0R0 | \
                b claim 1 l0; b extend 0 l0; b settle 0D; b claim 2 l0; b settle 0D | \
                o stats; o cancel 0; o pause; o resume; o redrive | \
                r recover 1; r recover 5; r recover 5 | \
                - advance 3; - advance 2",
        needs: &[Capability::Delay, Capability::Unique, Capability::PushTokens],
    },
    SceneText {
        name: "three_workers_come_and_go",
        lines: "p push j,j,jm1,j | \
                a claim 2 l0; a settle 0D; a release-worker; a claim 1 l0 | \
                b claim 1 l0; b settle 0R0; b claim 2 l0; b settle 0D | \
                o claim 1 l0; o extend 0 l0; o settle 0B; o redrive | \
                p push j; p push j,j | \
                r recover 1; r recover 5; r purge-dead | \
                - advance 3; - advance 3",
        needs: &[],
    },
];
