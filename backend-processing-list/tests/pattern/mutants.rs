//! Mutants: this backend with a script that is changed on its way to the server. Each
//! must be caught by a case of the suite, or by a function in `traps.rs`.

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

/// A subject for the suite: this backend with these changes of its scripts.
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

/// Asserts that the case fails with these words.
fn is_caught(mode: Mode, patches: &'static [Patch], case: &str, words: &str) {
    let fitted = Arc::default();
    let mutant = Mutated { mode, patches, fitted: Arc::clone(&fitted) };
    let said = judge_case(mutant, Profile::Redis, case).expect_err("the mutant lives");
    assert!(said.contains(words), "{said}");
    let is_mutant = fitted.lock().unwrap().iter().all(Fitted::get);
    assert!(is_mutant, "a patch has changed no script: {said}");
}

/// Asserts that the mutant fails in the trap.
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
        "left: 4\n right: 2",
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
            "left: Applied\n right: LeaseLost",
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
                "if name and redis.call('LREM', list, -1, ARGV[i]) == 1 then",
                "redis.call('LREM', list, -1, ARGV[i]) if name then",
            )],
            "one_holder::late_ack_changes_nothing",
            "left: Applied\n right: LeaseLost",
        );
    }
}

#[test]
fn a_shared_lease_without_an_end() {
    is_caught(
        Mode::Shared,
        &[(
            "claim",
            "if has_own_end then redis.call('ZADD', leased, unpack(ends)) end",
            "",
        )],
        "recovery::a_dead_workers_job_comes_back",
        "left: 0\n right: 1",
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
        &[("beat", "redis.call('ZADD', leased, 'NX', old_end_ms, name)", "")],
        "leases::an_extension_keeps_what_it_names",
        "left: []\n right: [b\"unnamed\"]",
    );
}

/// The heartbeat gives back each job that it does not name, even a job that a
/// concurrent claim has just leased.
#[tokio::test]
async fn a_reconciliation_that_steals_from_itself() {
    falls!(
        &[(
            "beat",
            "redis.call('ZADD', leased, 'NX', old_end_ms, name)",
            "local _, entry = read_element(list, element) \
             redis.call('RPUSH', ready, entry) redis.call('LREM', list, 1, element)",
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
            "local holds_nothing = beats_until == 0 or",
            "local holds_nothing = true or",
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
            "redis.call('ZADD', workers, 'XX', end_ms, session)",
            "for _, one in ipairs(redis.call('ZRANGE', workers, 0, -1)) do \
             redis.call('ZADD', workers, 'XX', end_ms, one) end",
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
        &[(
            "beat",
            "table.insert(not_seen, 1, element)",
            "table.insert(not_seen, element)"
        )],
        a_heartbeat_puts_back_what_a_move_brought_and_nobody_saw,
        "left: [("
    );
}

#[tokio::test]
async fn a_stamp_believed_whoever_wrote_it() {
    falls!(
        &[(
            "beat",
            "if session and name:sub(1, #session + 1) ~= session .. '/' then",
            "if false then",
        )],
        a_forged_stamp_is_buried_and_never_delivered,
        "a lease end without a lease"
    );
}
