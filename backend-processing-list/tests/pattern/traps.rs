//! Hazards of this pattern that the suite does not cover. Each is a function of its
//! own, so that the tests of mutants can run it too.

use std::sync::Arc;

use relq_core::{
    outcome::{Extended, Settled},
    *,
};
use relq_processing_list::{Mode, ProcessingListQueue};

use crate::fixture::*;

macro_rules! traps {
    ($($trap:ident)*) => {
        mod healthy {
            use crate::fixture::PatchedServer;

            $(#[tokio::test]
            async fn $trap() {
                super::$trap(&PatchedServer::healthy()).await;
            })*
        }
    };
}

traps! {
    what_moves_in_a_pause_goes_back_to_the_front
    a_heartbeat_puts_back_what_a_move_brought_and_nobody_saw
    a_heartbeat_puts_back_what_another_client_pushed
    what_a_claim_leaves_of_two_moves_goes_back
    expired_leases_are_found_in_a_long_list
    a_heartbeat_takes_nothing_from_a_claim_beside_it
    what_no_heartbeat_names_comes_back_at_its_end
    a_claim_prolongs_nothing_that_is_held
    half_named_jobs_come_back_in_their_order
    a_move_into_the_list_of_a_worker_given_up_is_found
    a_list_of_no_session_is_found
    a_name_used_again_hides_nothing_and_takes_nothing
    a_forged_stamp_is_buried_and_never_delivered
}

/// R23: pausing the queue does not stop a blocking move that waits. A job that such a
/// move brings goes back to its old position, and no worker gets it.
pub(crate) async fn what_moves_in_a_pause_goes_back_to_the_front(
    patched_server: &PatchedServer,
) {
    let queue = Arc::new(patched_server.open(Mode::PerWorker).await);
    let claim = waiter(patched_server, &queue).await;
    queue.pause().await.unwrap();

    say(patched_server, &[b"LPUSH", b"q", b"first", b"second"]);

    until("the move is over", || waiting(patched_server) == 0).await;
    let stats = queue.stats().await.unwrap();
    assert_eq!((stats.ready, stats.leased, claim.is_finished()), (2, 0, false));
    queue.resume().await.unwrap();
    assert_eq!(claim.await.unwrap().unwrap().payload, "first");
    assert_sound(&queue).await;
}

/// R10: the reply to a blocking move is lost while its worker lives, so no claim has
/// returned the job. The next heartbeat puts it back, uncounted, in its old position.
pub(crate) async fn a_heartbeat_puts_back_what_a_move_brought_and_nobody_saw(
    patched_server: &PatchedServer,
) {
    let queue = patched_server.open(Mode::PerWorker).await;
    queue
        .push(&["held".into(), "1".into(), "2".into(), "3".into()], None)
        .await
        .unwrap();
    let held = take(&queue, &ask("w")).await;
    let list = list_of_the_worker(patched_server);
    move_to(patched_server, &list);
    move_to(patched_server, &list);

    let heard =
        queue.extend(&worker("w"), std::slice::from_ref(&held.receipt), LEASE).await;

    assert!(matches!(heard.unwrap()[..], [Extended::Until(_)]));
    let again = queue.claim(&ask("other").max(many(10))).await.unwrap();
    let got: Vec<_> =
        again.iter().map(|one| (&one.payload[..], one.attempt())).collect();
    assert_eq!(got, [(&b"1"[..], 1), (b"2", 1), (b"3", 1)]);
    assert_eq!(queue.ack(&held.receipt).await.unwrap(), Settled::Applied);
    assert_sound(&queue).await;
}

/// R10: another client has put an element at the old end of a worker's list. The next
/// heartbeat puts it back.
pub(crate) async fn a_heartbeat_puts_back_what_another_client_pushed(
    patched_server: &PatchedServer,
) {
    let queue = patched_server.open(Mode::PerWorker).await;
    queue.push(&["held".into(), "pushed".into()], None).await.unwrap();
    let held = take(&queue, &ask("w")).await;
    let list = list_of_the_worker(patched_server);
    say(patched_server, &[b"LMOVE", b"q", list.as_bytes(), b"RIGHT", b"RIGHT"]);

    let named = std::slice::from_ref(&held.receipt);
    queue.extend(&worker("w"), named, LEASE).await.unwrap();

    let again = take(&queue, &ask("other")).await;
    assert_eq!((&again.payload[..], again.attempt()), (&b"pushed"[..], 1));
    let leased = queue.stats().await.unwrap().leased;
    assert_eq!(leased, 2, "R10: the list has the held job, and no second copy");
    assert_eq!(queue.ack(&held.receipt).await.unwrap(), Settled::Applied);
    assert_sound(&queue).await;
}

/// R9, R13: two moves of one worker bring their jobs before the first of their claims
/// runs. The claim takes the older job, and the other goes back: no heartbeat is needed
/// to find it.
pub(crate) async fn what_a_claim_leaves_of_two_moves_goes_back(
    patched_server: &PatchedServer,
) {
    let queue = patched_server.open(Mode::PerWorker).await;
    let jobs = ["held".into(), "1".into(), "2".into(), "3".into()];
    queue.push(&jobs, None).await.unwrap();
    take(&queue, &ask("w")).await;
    let list = list_of_the_worker(patched_server);
    move_to(patched_server, &list);
    move_to(patched_server, &list);

    assert_eq!(take(&queue, &ask("w")).await.payload, "1");

    let stats = queue.stats().await.unwrap();
    assert_eq!((stats.ready, stats.leased), (2, 2));
    assert_eq!(take(&queue, &ask("w")).await.payload, "2");
    assert_eq!(take(&queue, &ask("w")).await.payload, "3");
    assert_sound(&queue).await;
}

/// R9, R13: the elements of a long list are searched step by step for the leases that have
/// expired, while the worker's other leases run on. The lease of an element that a client
/// removed is forgotten.
pub(crate) async fn expired_leases_are_found_in_a_long_list(
    patched_server: &PatchedServer,
) {
    for mode in [Mode::PerWorker, Mode::Shared] {
        let queue = patched_server.open(mode).await;
        let payload = "x".repeat(3_000);
        for number in 0..6 {
            let job = |part| NewJob::new(format!("{mode:?} {number} {part} {payload}"));
            let jobs: Vec<_> = (0..200).map(job).collect();
            queue.push(&jobs, None).await.unwrap();
        }
        let brief = take(&queue, &ask_briefly("w")).await;
        take_all(&queue, 600).await;
        let middle = take(&queue, &ask_briefly("w")).await;
        let removed = take(&queue, &ask_briefly("w")).await;
        take_all(&queue, 597).await;
        let list = match mode {
            Mode::PerWorker => list_of_the_worker(patched_server),
            Mode::Shared => "{q}:processing".to_owned(),
        };
        say(patched_server, &[b"LREM", list.as_bytes(), b"1", removed.receipt.token()]);

        recover(patched_server, &queue, 2).await;

        assert_eq!(take(&queue, &ask("w")).await.payload, brief.payload);
        assert_eq!(take(&queue, &ask("w")).await.payload, middle.payload);
        assert_sound(&queue).await;
        queue.purge().await.unwrap();
    }
}

/// Leases jobs for a long time.
async fn take_all(queue: &ProcessingListQueue, wanted: usize) {
    let mut taken = 0;
    while taken < wanted {
        let most = u32::try_from(wanted - taken).unwrap().min(100);
        taken += queue.claim(&ask("w").max(many(most))).await.unwrap().len();
    }
}

/// R6, R10: a heartbeat that was sent before a claim returned does not name the claim's
/// job. The job keeps its lease end until the next heartbeat, which names it, so the
/// worker's heartbeat does not give its own job back.
pub(crate) async fn a_heartbeat_takes_nothing_from_a_claim_beside_it(
    patched_server: &PatchedServer,
) {
    let queue = patched_server.open(Mode::PerWorker).await;
    queue.push_one("job".into()).await.unwrap();
    let held = take(&queue, &ask_briefly("w")).await;

    queue.extend(&worker("w"), &[], LEASE).await.unwrap();
    let named = std::slice::from_ref(&held.receipt);
    let heard = queue.extend(&worker("w"), named, LEASE).await.unwrap();

    assert!(matches!(heard[..], [Extended::Until(_)]));
    patched_server.pass(BRIEF).await;
    assert_eq!(queue.recover(many(10)).await.unwrap().requeued, 0);
    assert_eq!(queue.ack(&held.receipt).await.unwrap(), Settled::Applied);
    assert_sound(&queue).await;
}

/// R10: a job that no heartbeat names is recovered at its lease end, although its
/// worker lives on.
pub(crate) async fn what_no_heartbeat_names_comes_back_at_its_end(
    patched_server: &PatchedServer,
) {
    let queue = patched_server.open(Mode::PerWorker).await;
    queue.push(&["lost".into(), "held".into()], None).await.unwrap();
    take(&queue, &ask_briefly("w")).await;
    let held = take(&queue, &ask_briefly("w")).await;

    let named = std::slice::from_ref(&held.receipt);
    queue.extend(&worker("w"), named, LEASE).await.unwrap();

    recover(patched_server, &queue, 1).await;
    let again = take(&queue, &ask("other")).await;
    assert_eq!((&again.payload[..], again.attempt()), (&b"lost"[..], 2));
    assert_eq!(queue.ack(&held.receipt).await.unwrap(), Settled::Applied);
    assert_sound(&queue).await;
}

/// R10: a worker whose heartbeats do not arrive continues to claim. These claims do not
/// extend jobs that it gave up by its own clock, and the new jobs get their full lease.
pub(crate) async fn a_claim_prolongs_nothing_that_is_held(
    patched_server: &PatchedServer,
) {
    let queue = patched_server.open(Mode::PerWorker).await;
    queue.push(&["given up".into(), "held".into()], None).await.unwrap();
    take(&queue, &ask_briefly("w")).await;
    let held = take(&queue, &ask("w")).await;

    recover(patched_server, &queue, 1).await;

    assert_eq!(take(&queue, &ask("other")).await.payload, "given up");
    assert_eq!(queue.ack(&held.receipt).await.unwrap(), Settled::Applied);
    assert_sound(&queue).await;
}

/// R13: one claim leases two jobs, and a heartbeat names only the second. When both
/// leases have expired, the jobs are recovered in the order in which they were pushed.
pub(crate) async fn half_named_jobs_come_back_in_their_order(
    patched_server: &PatchedServer,
) {
    let queue = patched_server.open(Mode::PerWorker).await;
    queue.push(&["1".into(), "2".into()], None).await.unwrap();
    let held = queue.claim(&ask_briefly("w").max(many(2))).await.unwrap();
    let named = std::slice::from_ref(&held[1].receipt);
    queue.extend(&worker("w"), named, BRIEF).await.unwrap();

    recover(patched_server, &queue, 2).await;

    assert_eq!(take(&queue, &ask("other")).await.payload, "1");
    assert_eq!(take(&queue, &ask("other")).await.payload, "2");
    assert_sound(&queue).await;
}

/// R9: a worker freezes while its move waits, and recovery retires it. Then the move
/// fills its list. Recovery watches that list, so the job goes back at once, and
/// uncounted, because no handler saw it.
pub(crate) async fn a_move_into_the_list_of_a_worker_given_up_is_found(
    patched_server: &PatchedServer,
) {
    let (frozen, other) = (
        patched_server.open(Mode::PerWorker).await,
        patched_server.open(Mode::PerWorker).await,
    );
    frozen.push_one("lost to it".into()).await.unwrap();
    take(&frozen, &ask_briefly("w")).await;
    let list = list_of_the_worker(patched_server);
    recover(patched_server, &other, 1).await;
    assert_eq!(say(patched_server, &[b"ZCARD", b"{q}:workers"]), [":0"]);

    let again = take(&other, &ask("other")).await;
    other.ack(&again.receipt).await.unwrap();
    other.push_one("late".into()).await.unwrap();
    move_to(patched_server, &list);

    assert_eq!(other.stats().await.unwrap().leased, 1);
    assert_sound(&other).await;
    assert_eq!(other.recover(many(10)).await.unwrap().requeued, 1);
    let late = take(&other, &ask("other")).await;
    assert_eq!((&late.payload[..], late.attempt()), (&b"late"[..], 1));
    assert_sound(&other).await;
}

/// R9: a list without an entry in the registry, whose jobs have no lease end either, is
/// found all the same, and its jobs count as delivered.
pub(crate) async fn a_list_of_no_session_is_found(patched_server: &PatchedServer) {
    let queue = patched_server.open(Mode::PerWorker).await;
    queue.push(&["1".into(), "2".into()], None).await.unwrap();
    queue.claim(&ask("w").max(many(2))).await.unwrap();
    say(patched_server, &[b"DEL", b"{q}:workers", b"{q}:leased"]);

    recover(patched_server, &queue, 2).await;

    let again = queue.claim(&ask("other").max(many(2))).await.unwrap();
    let got: Vec<_> =
        again.iter().map(|one| (&one.payload[..], one.attempt())).collect();
    assert_eq!(got, [(&b"1"[..], 2), (b"2", 2)]);
    assert_sound(&queue).await;
}

/// R6, R9: two processes use one worker name. Neither takes the other's list for its
/// own, and the heartbeat of one does not extend jobs that the other left behind.
pub(crate) async fn a_name_used_again_hides_nothing_and_takes_nothing(
    patched_server: &PatchedServer,
) {
    let (dead, reborn) = (
        patched_server.open(Mode::PerWorker).await,
        patched_server.open(Mode::PerWorker).await,
    );
    dead.push(&["old".into(), "new".into()], None).await.unwrap();
    let old = take(&dead, &ask_briefly("w")).await;
    let new = take(&reborn, &ask("w")).await;
    assert_eq!(own_lists(patched_server).len(), 2);

    let named = std::slice::from_ref(&new.receipt);
    reborn.extend(&worker("w"), named, LEASE).await.unwrap();

    recover(patched_server, &reborn, 1).await;
    assert_eq!(dead.ack(&old.receipt).await.unwrap(), Settled::LeaseLost);
    assert_eq!(reborn.ack(&new.receipt).await.unwrap(), Settled::Applied);
    assert_sound(&reborn).await;
}

/// R3: a pushed payload that looks like a stamp is buried as malformed, whether a claim
/// finds it in the queue or a move brings it into a list.
pub(crate) async fn a_forged_stamp_is_buried_and_never_delivered(
    patched_server: &PatchedServer,
) {
    let queue = patched_server.open(Mode::PerWorker).await;
    queue.push_one("job".into()).await.unwrap();
    let held = take(&queue, &ask("w")).await;
    let forged = |name: &[u8]| {
        let length = [u8::try_from(name.len()).unwrap()];
        [&b"\xf5RQ\x01\xff"[..], &length, name, b"forged"].concat()
    };
    let list = list_of_the_worker(patched_server);
    let names: [&[u8]; 4] = [b"", b"w", b"w/", b"other/abc/17/n-10001p"];
    for name in names {
        say(patched_server, &[b"LPUSH", b"q", &forged(name)]);
        move_to(patched_server, &list);
    }
    say(patched_server, &[b"LPUSH", b"q", &forged(b"w/")]);
    assert_sound(&queue).await;

    let named = std::slice::from_ref(&held.receipt);
    queue.extend(&worker("w"), named, LEASE).await.unwrap();

    assert_eq!(queue.claim(&ask("w").max(many(10))).await.unwrap(), []);
    let stats = queue.stats().await.unwrap();
    assert_eq!((stats.dead, stats.leased, stats.ready), (5, 1, 0));
    assert_eq!(queue.ack(&held.receipt).await.unwrap(), Settled::Applied);
    assert_sound(&queue).await;
}
