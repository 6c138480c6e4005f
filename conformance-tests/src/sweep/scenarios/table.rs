//! The list of the scenarios.

use relq_core::capabilities::Capability;

use super::{Again, Calls, Scenario};
use crate::{
    Need,
    sweep::{
        promise::Atomicity,
        waiting::{
            claim_in_vain, claim_waiting, push_after_a_while, push_once_held,
            wait_and_claim,
        },
        work::{stop_at_work, work},
    },
};

const BATCHES: &[Need] = &[Need::Option(Capability::Batches)];
const BATCH_TOKENS: &[Need] =
    &[Need::Option(Capability::Batches), Need::Option(Capability::PushTokens)];
const BATCH_IDS: &[Need] =
    &[Need::Option(Capability::Batches), Need::Option(Capability::ClientIds)];
const SCHEDULES: &[Need] = &[Need::Option(Capability::Schedules)];
const SCHEDULED_KEYS: &[Need] =
    &[Need::Option(Capability::Schedules), Need::Option(Capability::Unique)];
const FOLLOWERS: &[Need] =
    &[Need::Option(Capability::Followers), Need::Option(Capability::ClientIds)];
const FOLLOWERS_OF_PIECES: &[Need] = &[
    Need::Option(Capability::Followers),
    Need::Option(Capability::ClientIds),
    Need::Option(Capability::Batches),
];
const INSPECTED: &[Need] = &[Need::Option(Capability::Inspect)];
const INSPECTED_DELAYS: &[Need] =
    &[Need::Option(Capability::Inspect), Need::Option(Capability::Delay)];
const INSPECTED_PIECES: &[Need] =
    &[Need::Option(Capability::Inspect), Need::Option(Capability::Batches)];
const RESTORED: &[Need] = &[Need::Option(Capability::Restore)];
const RESULTS: &[Need] = &[Need::Option(Capability::Results)];
const RESULTS_OF_PIECES: &[Need] =
    &[Need::Option(Capability::Results), Need::Option(Capability::Batches)];
const TOKENS: &[Need] = &[Need::Option(Capability::PushTokens)];
const DELAYS: &[Need] = &[Need::Option(Capability::Delay)];
const PRIORITIES: &[Need] = &[Need::Option(Capability::Priority)];
const WAITS: &[Need] = &[Need::Option(Capability::BlockingWait)];
const IDS: &[Need] = &[Need::Option(Capability::ClientIds)];
const KEYS: &[Need] = &[Need::Option(Capability::Unique)];
const DELAYED_IDS: &[Need] =
    &[Need::Option(Capability::ClientIds), Need::Option(Capability::Delay)];
const RANKED_IDS: &[Need] =
    &[Need::Option(Capability::ClientIds), Need::Option(Capability::Priority)];
const DELAYED_KEYS: &[Need] =
    &[Need::Option(Capability::Unique), Need::Option(Capability::Delay)];

pub(crate) const SCENARIOS: &[Scenario] = &[
    scenario!(push, "" => "p push j", again: Again::Never),
    scenario!(first_push, "" => "p push j", again: Again::Never, is_new: true),
    scenario!(first_push_with_options, "" => "p push jd2,jp2h1,jk1,ji1,jo1,je1",
        again: Again::Never, is_new: true),
    scenario!(push_of_many, "" => "p push j,j,j", again: Again::Never),
    scenario!(push_with_options, "" => "p push jd2,jp2h1,jk1,ji1,jo1,je1",
        again: Again::Never),
    scenario!(push_with_a_token, "" => "p push j,j,j t1",
        needs: TOKENS, again: Again::ByAnyone),
    scenario!(claim, "p push j,j,j" => "a claim 2 l1"),
    scenario!(claim_of_other_priorities, "p push jp2,jp1; p push j" => "a claim 2 l1",
        needs: PRIORITIES),
    scenario!(claim_of_what_is_due,
        "p push jd2,jd2,jd2; - advance 10000ms" => "a claim 2 l1", needs: DELAYS),
    scenario!(claim_that_waits, "" => Calls::WaitingClaims {
        claim: |victim| Box::pin(claim_waiting(victim)),
        push: push_once_held,
    }, needs: WAITS),
    scenario!(claim_that_waits_in_vain, "" => Calls::WaitingClaims {
        claim: |victim| Box::pin(claim_in_vain(victim)),
        push: push_after_a_while,
    }, needs: WAITS),
    scenario!(wait_and_claim, "" => Calls::WaitingClaims {
        claim: |victim| Box::pin(wait_and_claim(victim)),
        push: push_once_held,
    }, needs: WAITS),
    scenario!(settle_done, "p push j,j,j; a claim 3 l1" => "a settle 2D,1D,0D"),
    scenario!(settle_each_disposition,
        "p push j,j,j,j,j,j; a claim 6 l1" => "a settle 5D,4R2,3P2,2B,1X,0G",
        atomicity: Atomicity::EachByItself),
    scenario!(settle_with_side_records,
        "p push jk1e3,ji1; p push j; a claim 3 l1; a settle 2R0,1R0,0R0; \
         a claim 3 l1" => "a settle 2D,1D,0D", needs: KEYS),
    scenario!(settle_and_claim,
        "p push j,j,j; a claim 1 l1" => "a settle-and-claim 0D 1 l1"),
    scenario!(extend, "p push j,j,j; a claim 3 l1" => "a extend 2,1,0 l1"),
    scenario!(release_worker, "p push j,j,j; a claim 3 l1" => "a release-worker"),
    scenario!(recover, "p push j,j,jm1; b claim 3 l1; - advance 4" => "r recover 100"),
    scenario!(recover_what_is_due,
        "p push jd2,jd2,jd2; - advance 10000ms" => "r recover 100", needs: DELAYS),
    scenario!(redrive, "p push j,j,j; a claim 3 l1; a settle 2B,1B,0B" => "o redrive",
        atomicity: Atomicity::EachByItself),
    scenario!(purge_the_dead,
        "p push j,j,j; a claim 3 l1; a settle 2B,1B,0B" => "o purge-dead",
        atomicity: Atomicity::EachByItself),
    scenario!(purge,
        "p push j; a claim 1 l1; a settle 0B; p push j; a claim 1 l1; \
         p push jp2,jd2k1i1; p push j" => "o purge"),
    scenario!(pause, "p push j,j,j" => "o pause"),
    scenario!(resume, "o pause; p push j,j,j" => "o resume"),
    scenario!(cancel_a_ready_job, "p push j,ji1k1" => "o cancel 0", needs: IDS),
    scenario!(cancel_a_scheduled_job, "p push j,jd2i1k1" => "o cancel 0",
        needs: DELAYED_IDS),
    scenario!(cancel_a_leased_job,
        "p push ji1k1; a claim 1 l1; p push j" => "o cancel 1", needs: IDS),
    scenario!(cancel_a_ranked_job, "p push j,jp2i1k1" => "o cancel 0",
        needs: RANKED_IDS),
    scenario!(look, "p push j,j,j; a claim 3 l1" => "o stats; o audit"),
    scenario!(redrive_by_id,
        "p push ji1,j; a claim 2 l1; a settle 1B,0B" => "o redrive-one 1", needs: IDS),
    scenario!(push_that_moves_another, "p push jd2k1" => "p push jd1r1",
        needs: DELAYED_KEYS),
    scenario!(extend_what_was_cancelled,
        "p push ji1; a claim 1 l1; o cancel 0; p push j" => "a extend 0 l1",
        needs: IDS),
    scenario!(recover_with_old_memories,
        "p push ji1; a claim 1 l1; a settle 0D; - advance 360000ms; p push j"
        => "r recover 100", needs: IDS),
    scenario!(peek_at_each_state,
        "p push j; a claim 1 l1; a settle 0B; p push j,jd2"
        => "o peek ready; o peek scheduled; o peek leased; o peek dead",
        needs: DELAYS),
    scenario!(run_a_job_now, "p push jd2k1i1,j" => "o run 1", needs: INSPECTED_DELAYS),
    scenario!(run_a_piece_now,
        "p create 1 p0s0; p add 1 j,j; p seal 1; a claim 1 l1; a settle 0R2" => "o run 1",
        needs: INSPECTED_PIECES),
    scenario!(show_a_leased_job, "p push j,j,j; a claim 3 l1" => "o show 1",
        needs: INSPECTED),
    scenario!(report_a_worker, "p push j" => "a report", needs: INSPECTED),
    scenario!(first_report, "" => "a report", needs: INSPECTED, is_new: true),
    scenario!(report_again, "a report; - advance 20000ms" => "a report",
        needs: INSPECTED),
    scenario!(list_workers, "a report; b report" => "o workers", needs: INSPECTED),
    scenario!(release_a_reported_worker,
        "p push j,j; a claim 2 l1; a report" => "a release-worker", needs: INSPECTED),
    scenario!(recover_with_a_dead_worker,
        "b report; - advance 61000ms; p push j" => "r recover 100", needs: INSPECTED),
    scenario!(page_newest_first,
        "p push j; a claim 1 l1; a settle 0B; p push j,jd2"
        => "o newest ready; o newest scheduled; o newest leased; o newest dead",
        needs: INSPECTED_DELAYS),
    scenario!(restore_jobs, "p push j"
        => "o restore ready1:jk1,ready0:jp2h1,scheduled2:jd2v1,dead3:jk1v1,dead1:jm1o1",
        needs: RESTORED, again: Again::ByAnyone),
    scenario!(first_restore, "" => "o restore dead1:j", needs: RESTORED,
        again: Again::ByAnyone, is_new: true),
    scenario!(submit_a_batch, "" => "p create 1 p0s0; p add 1 j,j,j t1; p seal 1",
        needs: BATCH_TOKENS, again: Again::ByAnyone),
    scenario!(add_pieces, "p create 1 p0s0" => "p add 1 j,j,j t1",
        needs: BATCH_TOKENS, again: Again::ByAnyone),
    scenario!(seal_a_batch, "p create 1 p0s0; p add 1 j,j" => "p seal 1",
        needs: BATCHES),
    scenario!(seal_an_ended_batch,
        "p create 1 p0s0; p add 1 j; a claim 1 l1; a settle 0D" => "p seal 1",
        needs: BATCHES),
    scenario!(claim_pieces,
        "p create 1 p0s2; p add 1 j,j,j; p seal 1" => "a claim 2 l1", needs: BATCHES),
    scenario!(settle_the_last_pieces,
        "p create 1 p0s0; p add 1 j,j; p seal 1; a claim 2 l1" => "a settle 1D,0D",
        needs: BATCHES),
    scenario!(settle_pieces_each_disposition,
        "p create 1 p0s0; p add 1 j,j,j,j,j,j; p seal 1; a claim 6 l1"
        => "a settle 5D,4R2,3P2,2B,1X,0G",
        needs: BATCHES, atomicity: Atomicity::EachByItself),
    scenario!(complete_elsewhere,
        "p create 1 p0s0e; p add 1 j; p seal 1; a claim 1 l1" => "a settle 0D",
        needs: BATCHES),
    scenario!(settle_and_claim_on_pieces,
        "p create 1 p0s1; p add 1 j,j; p seal 1; a claim 1 l1"
        => "a settle-and-claim 0D 1 l1", needs: BATCHES),
    scenario!(extend_pieces,
        "p create 1 p0s0; p add 1 j,j,j; p seal 1; a claim 2 l1" => "a extend 1,0 l1",
        needs: BATCHES),
    scenario!(extend_cancelled_pieces,
        "p create 1 p0s0; p add 1 j,j; p seal 1; a claim 2 l1; p cancel-batch 1"
        => "a extend 1,0 l1", needs: BATCHES),
    scenario!(release_with_pieces,
        "p create 1 p0s0; p add 1 j,j,j; p seal 1; a claim 2 l1" => "a release-worker",
        needs: BATCHES),
    scenario!(recover_pieces,
        "p create 1 p0s0; p add 1 j,jm1; p seal 1; b claim 2 l1; - advance 4"
        => "r recover 100", needs: BATCHES),
    scenario!(recover_cancelled_pieces,
        "p create 1 p0s0; p add 1 j,j; p seal 1; b claim 2 l1; p cancel-batch 1; \
         - advance 4" => "r recover 100", needs: BATCHES),
    scenario!(recover_with_an_old_batch,
        "p create 1 p0s0; p add 1 j,j; p seal 1; a claim 2 l1; a settle 1D,0D; \
         - advance 86401000ms" => "r recover 100", needs: BATCHES),
    scenario!(cancel_a_batch,
        "p create 1 p0s0; p add 1 j,j,j; p seal 1; a claim 1 l1" => "p cancel-batch 1",
        needs: BATCHES),
    scenario!(cancel_a_piece,
        "p create 1 p0s0; p add 1 ji1,j; p seal 1" => "o cancel 1", needs: BATCH_IDS),
    scenario!(alter_a_batch,
        "p create 1 p0s2; p add 1 j,j,j; p seal 1" => "p alter 1 p1s0",
        needs: BATCHES),
    scenario!(look_at_batches,
        "p create 1 p0s0; p add 1 j,j,j; p seal 1; a claim 2 l1"
        => "p batch 1; p batches; p wait-batch 1", needs: BATCHES),
    scenario!(redrive_a_piece,
        "p create 1 p0s0; p add 1 j; p seal 1; a claim 1 l1; a settle 0B"
        => "o redrive", needs: BATCHES),
    scenario!(purge_a_batch,
        "p create 1 p0s0; p add 1 j,j,j; p seal 1; a claim 1 l1" => "o purge",
        needs: BATCHES, atomicity: Atomicity::EachByItself),
    scenario!(push_with_kept_results, "" => "p push jv2,jv2i1,jv2k1e3,jv2d1,jv2p2",
        needs: RESULTS, again: Again::Never),
    scenario!(first_push_with_a_kept_result, "" => "p push jv2",
        needs: RESULTS, again: Again::Never, is_new: true),
    scenario!(settle_with_results,
        "p push jv2,jv2k1,jv2; a claim 3 l1" => "a settle 2D3,1D2,0D1", needs: RESULTS),
    scenario!(settle_kept_jobs_without_results,
        "p push jv2,jv2,j; a claim 3 l1" => "a settle 2D,1D,0D", needs: RESULTS,
        atomicity: Atomicity::EachByItself),
    scenario!(settle_with_a_result_and_claim,
        "p push jv2,jv2; a claim 1 l1" => "a settle-and-claim 0D1 1 l1",
        needs: RESULTS),
    scenario!(settle_after_progress,
        "p push jv2; a claim 1 l1; a report 0 v2; a settle 0R0; a claim 1 l1"
        => "a settle 0D1", needs: RESULTS),
    scenario!(discard_a_kept_job, "p push jv2,jv2; a claim 2 l1" => "a settle 1X,0X",
        needs: RESULTS),
    scenario!(bury_a_kept_job, "p push jv2,jv2; a claim 2 l1" => "a settle 1B,0B",
        needs: RESULTS),
    scenario!(cancel_a_kept_job, "p push jv2; a claim 1 l1" => "o cancel 0",
        needs: RESULTS),
    scenario!(bury_kept_jobs_by_a_recovery,
        "p push jv2m1,jv2; b claim 2 l1; - advance 4" => "r recover 100",
        needs: RESULTS),
    scenario!(redrive_a_kept_job, "p push jv2; a claim 1 l1; a settle 0B" => "o redrive",
        needs: RESULTS),
    scenario!(purge_a_dead_kept_job,
        "p push jv2; a claim 1 l1; a settle 0B" => "o purge-dead", needs: RESULTS),
    scenario!(purge_results,
        "p push jv2,jv2,jv2; a claim 3 l1; a settle 2D1,1B; p push jv2" => "o purge",
        needs: RESULTS),
    scenario!(report_progress, "p push jv2,j; a claim 2 l1" => "a report 1 v1; a report 0 v1",
        needs: RESULTS, again: Again::ByAnyone),
    scenario!(read_results,
        "p push jv2,jv2,j; a claim 2 l1; a settle 0D1"
        => "p result 0; p result 1; p result 2", needs: RESULTS, again: Again::ByAnyone),
    scenario!(recover_with_old_results,
        "p push jv1,jv1; a claim 2 l1; a settle 1D1,0D; - advance 30000ms; p push j"
        => "r recover 100", needs: RESULTS),
    scenario!(settle_pieces_with_results,
        "p create 1 p0s0; p add 1 jv2,jv2; p seal 1; a claim 2 l1" => "a settle 1D1,0D2",
        needs: RESULTS_OF_PIECES),
    scenario!(add_pieces_with_kept_results,
        "p create 1 p0s0" => "p add 1 jv2,j,jv2", needs: RESULTS_OF_PIECES,
        again: Again::Never),
    scenario!(cancel_a_batch_of_kept_jobs,
        "p create 1 p0s0; p add 1 jv2,jv2; p seal 1; a claim 2 l1; p cancel-batch 1"
        => "a extend 1,0 l1", needs: RESULTS_OF_PIECES),
    scenario!(push_followers,
        "p push ji1,ji2; a claim 1 l1; a settle 0D"
        => "p push jf1,ji3f2,jf3,jf2k1", needs: FOLLOWERS, again: Again::Never),
    scenario!(first_push_of_followers, "" => "p push ji1,ji2f1,jf2",
        needs: FOLLOWERS, again: Again::Never, is_new: true),
    scenario!(settle_a_leader, "p push ji1,jf1,jf1k1,jf1p2; a claim 1 l1" => "a settle 0D",
        needs: FOLLOWERS),
    scenario!(settle_leaders_and_claim,
        "p push ji1v2,ji2v2,jf1,jf2; a claim 2 l1" => "a settle-and-claim 1D1,0D2 2 l1",
        needs: FOLLOWERS),
    scenario!(discard_a_leader, "p push ji1,ji2f1,jf2; a claim 1 l1" => "a settle 0X",
        needs: FOLLOWERS),
    scenario!(bury_a_leader, "p push ji1,jf1; a claim 1 l1" => "a settle 0B",
        needs: FOLLOWERS),
    scenario!(recover_a_leader, "p push ji1m1,jf1; b claim 1 l1; - advance 4"
        => "r recover 100", needs: FOLLOWERS),
    scenario!(cancel_a_leader, "p push ji1,ji2f1k1,jf2,j" => "o cancel 3",
        needs: FOLLOWERS),
    scenario!(cancel_a_leased_leader, "p push ji1,ji2f1,jf2,j; a claim 1 l1"
        => "o cancel 3", needs: FOLLOWERS),
    scenario!(cancel_a_follower, "p push ji1,ji2f1,jf2,jf1" => "o cancel 2",
        needs: FOLLOWERS),
    scenario!(redrive_a_leader, "p push ji1,jf1; a claim 1 l1; a settle 0B" => "o redrive",
        needs: FOLLOWERS),
    scenario!(purge_a_dead_leader,
        "p push ji1,ji2f1,jf2; a claim 1 l1; a settle 0B" => "o purge-dead",
        needs: FOLLOWERS),
    scenario!(purge_held_jobs, "p push ji1,ji2f1,jf2; a claim 1 l1" => "o purge",
        needs: FOLLOWERS),
    scenario!(list_held_jobs, "p push ji1,ji2f1,jf2,jd2" => "o peek scheduled",
        needs: FOLLOWERS, again: Again::ByAnyone),
    scenario!(settle_a_piece_that_leads,
        "p create 1 p0s0; p add 1 ji1,ji2; p seal 1; p push jf1,jf2; a claim 2 l1"
        => "a settle 1D,0D", needs: FOLLOWERS_OF_PIECES),
    scenario!(cancel_a_batch_of_leaders,
        "p create 1 p0s0; p add 1 ji1,ji2; p seal 1; p push jf1,jf2; a claim 1 l1"
        => "p cancel-batch 1", needs: FOLLOWERS_OF_PIECES),
    scenario!(recover_a_dropped_leader,
        "p create 1 p0s0; p add 1 ji1; p seal 1; p push jf1; b claim 1 l1; \
         p cancel-batch 1; - advance 4" => "r recover 100", needs: FOLLOWERS_OF_PIECES),
    scenario!(put_a_schedule, "- advance 3" => "p put 1 d1",
        needs: SCHEDULES, again: Again::ByAnyone),
    scenario!(first_put_of_a_schedule, "- advance 3" => "p put 1 d1",
        needs: SCHEDULES, again: Again::ByAnyone, is_new: true),
    scenario!(replace_a_schedule,
        "p put 1 d1; p put 2 d1; - advance 3; p tick 1 d1 s2 j" => "p put 1 d2",
        needs: SCHEDULES, again: Again::ByAnyone),
    scenario!(keep_a_schedule,
        "p put 1 d1; - advance 3; p tick 1 d1 s2 j; - advance 3" => "p put 1 d1",
        needs: SCHEDULES, again: Again::ByAnyone),
    scenario!(remove_a_schedule,
        "p put 1 d1; p put 2 d1; - advance 3; p tick 1 d1 s2 j"
        => "p remove-schedule 1", needs: SCHEDULES, again: Again::ByAnyone),
    scenario!(push_a_tick, "p put 1 d1; p put 2 d1; - advance 3" => "p tick 1 d1 s5 j",
        needs: SCHEDULES, again: Again::ByAnyone),
    scenario!(push_a_tick_after_another,
        "p put 1 d1; - advance 3; p tick 1 d1 s2 j" => "p tick 1 d1 s4 j",
        needs: SCHEDULES),
    scenario!(push_a_tick_with_options, "p put 1 d1; - advance 3"
        => "p tick 1 d1 s5 jd2p2h1k1i1o1", needs: SCHEDULES, again: Again::ByAnyone),
    scenario!(push_a_tick_that_expires, "p put 1 d1; - advance 3"
        => "p tick 1 d1 s5 jp1e1h1k1", needs: SCHEDULES, again: Again::ByAnyone),
    scenario!(push_a_tick_that_is_a_duplicate, "p push jk1; p put 1 d1; - advance 3"
        => "p tick 1 d1 s5 jk1", needs: SCHEDULED_KEYS),
    scenario!(push_a_tick_in_vain,
        "p put 1 d1; - advance 3; p tick 1 d1 s4 j"
        => "p tick 1 d1 s3 j; p tick 1 d1 s200 j; p tick 1 d2 s5 j", needs: SCHEDULES),
    scenario!(look_at_schedules, "p put 1 d1; p put 2 d2" => "p schedules",
        needs: SCHEDULES),
    scenario!(work, "p push j,j,j" => Calls::Worker(|victim| Box::pin(work(victim))),
        atomicity: Atomicity::AtLeastOnce { at_most: 1 }),
    scenario!(stop_at_work,
        "p push j,j,j" => Calls::Worker(|victim| Box::pin(stop_at_work(victim)))),
];
