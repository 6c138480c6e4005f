//! Mutants: this backend with a script that a proxy makes wrong on its way to the
//! server. A case of the suite, or a function in `traps.rs`, must catch each.

use std::{
    io,
    sync::{Arc, Mutex},
};

use relq_conformance::{
    Profile, Subject, async_trait, judge_case,
    proxy::{FaultProxy, Fitted},
};
use relq_core::{Error, Queue, QueueName, environment::Environment};
use relq_processing_list::{Mode, ProcessingListConfig, ProcessingListQueue};

use crate::{
    fixture::{Patch, PatchedServer},
    traps,
};

/// This backend with wrong scripts, as a subject that the conformance suite can test.
struct Mutated {
    mode: Mode,
    patches: &'static [Patch],
    fitted: Arc<Mutex<Vec<Fitted>>>,
}

#[async_trait]
impl Subject for Mutated {
    async fn prepare(&self, proxy: &FaultProxy) -> io::Result<()> {
        let patches = self.patches.iter();
        let fitted =
            patches.map(|(script, from, to)| proxy.patch_script(script, from, to));
        *self.fitted.lock().unwrap() = fitted.collect();
        Ok(())
    }

    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        let config = ProcessingListConfig::new(endpoint).unwrap().mode(self.mode);
        let config = config.environment(environment.clone());
        Ok(Arc::new(ProcessingListQueue::connect(config, queue.clone()).await?))
    }
}

/// Asserts that the suite's case fails on the mutant, with `words` in its message.
fn is_caught(mode: Mode, patches: &'static [Patch], case: &str, words: &str) {
    let fitted = Arc::default();
    let mutant = Mutated { mode, patches, fitted: Arc::clone(&fitted) };
    let said = judge_case(mutant, Profile::Redis, case).expect_err("the mutant lives");
    assert!(said.contains(words), "{said}");
    let is_mutant = fitted.lock().unwrap().iter().all(Fitted::get);
    assert!(is_mutant, "a patch has changed no script: {said}");
}

/// Asserts that the named function of `traps.rs` fails on the mutant, with these words
/// in its message.
macro_rules! falls {
    ($patches:expr, $trap:ident, $words:literal) => {{
        let patches: &'static [Patch] = $patches;
        let server = PatchedServer::mutated(patches);
        let fitted = server.fitted();
        let trap = tokio::spawn(async move { traps::$trap(&server).await });
        let panic = trap.await.expect_err("the mutant lives").into_panic();
        let literal = panic.downcast_ref::<&str>().map(|said| (*said).to_owned());
        let said = literal.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap();
        assert!(said.contains($words), "{said}");
        let is_mutant = fitted.iter().all(Fitted::get);
        assert!(is_mutant, "a patch has changed no script: {said}");
    }};
}

#[test]
fn stats_of_the_workers_that_were_known_before() {
    is_caught(
        Mode::PerWorker,
        &[(
            "stats",
            "if not are_sessions_known(keys.workers, keys.retired, 2) then return false end",
            "",
        )],
        "races::stats_miss_no_job",
        "of three jobs",
    );
}

#[test]
fn adopting_a_live_workers_list() {
    is_caught(
        Mode::PerWorker,
        &[("take_back", "tonumber(end_ms) <= now_ms\nend", "true\nend")],
        "recovery::recovery_spares_the_living",
        "seen: 4\nexpected: 2",
    );
}

#[test]
fn removal_by_value_without_a_stamp_of_its_own() {
    for mode in [Mode::PerWorker, Mode::Shared] {
        is_caught(
            mode,
            &[(
                "claim",
                "'/' .. now_us .. '/' .. nonce .. '-' .. number",
                "'/0/same-' .. number",
            )],
            "one_holder::a_given_back_receipt_is_stale",
            "seen: Applied\nexpected: LeaseLost",
        );
    }
}

#[test]
fn an_ack_that_does_not_look_at_what_it_removed() {
    for mode in [Mode::PerWorker, Mode::Shared] {
        is_caught(
            mode,
            &[(
                "finish",
                "if name_of(list, ARGV[i]) and redis.call('LREM', list, '-1', ARGV[i]) == 1 then",
                "redis.call('LREM', list, '-1', ARGV[i]) if name_of(list, ARGV[i]) then",
            )],
            "one_holder::late_ack_changes_nothing",
            "seen: Applied\nexpected: LeaseLost",
        );
    }
}

#[test]
fn a_shared_lease_without_an_end() {
    is_caught(
        Mode::Shared,
        &[("claim", "redis.call('ZADD', leased, unpack(ends))", "")],
        "recovery::a_dead_workers_job_comes_back",
        "seen: 0\nexpected: 1",
    );
}

#[test]
fn adopting_a_list_the_wrong_way_round() {
    is_caught(
        Mode::PerWorker,
        &[(
            "take_back",
            "found[#found + 1] = element",
            "table.insert(found, 1, element)",
        )],
        "order::pages_of_recovery_keep_the_order",
        "job 2 is served before job 1",
    );
}

#[test]
fn a_heartbeat_that_keeps_what_it_does_not_name() {
    is_caught(
        Mode::PerWorker,
        &[(
            "beat",
            "if #held > 0 then",
            "for _, one in ipairs(redis.call('ZRANGE', leased, 0, -1)) do \
             redis.call('ZADD', leased, end_ms, one) end \
             if #held > 0 then",
        )],
        "leases::an_extension_keeps_what_it_names",
        "seen: []\nexpected: [b\"unnamed\"]",
    );
}

/// A mutant whose heartbeat gives back each job that it does not name, even a job that
/// a concurrent claim has just leased.
#[tokio::test]
async fn a_reconciliation_that_steals_from_itself() {
    falls!(
        &[(
            "beat",
            "if #held > 0 then",
            "for _, one in ipairs(redis.call('LRANGE', list, 0, -1)) do \
               local name = name_of(list, one) \
               if name and not table.concat(ARGV, ' '):find(name, 1, true) then \
                 redis.call('RPUSH', ready, one:sub(7 + #name)) \
                 redis.call('LREM', list, 1, one) \
                 redis.call('ZREM', leased, name) \
               end \
             end \
             if #held > 0 then",
        )],
        a_heartbeat_takes_nothing_from_a_claim_beside_it,
        "matches!(heard"
    );
}

#[tokio::test]
async fn a_claim_for_a_heartbeat() {
    falls!(
        &[(
            "claim",
            "register(last_end_ms)",
            "register(last_end_ms) \
             for _, one in ipairs(redis.call('ZRANGE', leased, 0, -1)) do \
             redis.call('ZADD', leased, last_end_ms, one) end",
        )],
        a_claim_prolongs_nothing_that_is_held,
        "the number of recovered jobs"
    );
}

#[tokio::test]
async fn a_list_whose_entry_is_removed_while_a_move_waits() {
    falls!(
        &[(
            "take_back",
            "redis.call('ZADD', keys.retired, now_ms + watch_ms, session)",
            "",
        )],
        a_move_into_the_list_of_a_worker_given_up_is_found,
        "left: 0\n right: 1"
    );
}

#[tokio::test]
async fn a_heartbeat_for_all_of_a_name() {
    falls!(
        &[(
            "beat",
            "if #held > 0 then",
            "for _, one in ipairs(redis.call('ZRANGE', leased, 0, -1)) do \
             if one:match('^[^/]*') == session:match('^[^/]*') then \
             redis.call('ZADD', leased, end_ms, one) end end \
             if #held > 0 then",
        )],
        a_name_used_again_hides_nothing_and_takes_nothing,
        "the number of recovered jobs"
    );
}

#[tokio::test]
async fn a_move_that_takes_no_notice_of_a_pause() {
    falls!(
        &[(
            "claim",
            "if redis.call('EXISTS', paused) == 1 then",
            "if asked ~= 'moved' and redis.call('EXISTS', paused) == 1 then",
        )],
        what_moves_in_a_pause_goes_back_to_the_front,
        "right: (2, 0, false)"
    );
}

#[tokio::test]
async fn moved_jobs_put_back_the_wrong_way_round() {
    falls!(
        &[("beat", "table.insert(found, 1, element)", "table.insert(found, element)")],
        a_heartbeat_puts_back_what_a_move_brought_and_nobody_saw,
        "left: [("
    );
}

#[tokio::test]
async fn a_search_that_ends_after_a_step() {
    falls!(
        &[("take_named", "if wanted == 0 then unread = 0 end", "unread = 0")],
        expired_leases_are_found_in_a_long_list,
        "the number of recovered jobs"
    );
}

#[tokio::test]
async fn a_claim_that_covers_what_it_leaves() {
    falls!(
        &[("claim", "put_back({ready = ready}, list, left)", "")],
        what_a_claim_leaves_of_two_moves_goes_back,
        "left: (1, 3)"
    );
}

#[tokio::test]
async fn a_stamp_believed_whoever_wrote_it() {
    const CHECK: &str =
        "if session and name:sub(1, #session + 1) ~= session .. '/' then";
    const NO_CHECK: &str = "if false then";
    falls!(
        &[("beat", CHECK, NO_CHECK), ("claim", CHECK, NO_CHECK)],
        a_forged_stamp_is_buried_and_never_delivered,
        "left: (1, 5, 0)"
    );
}
