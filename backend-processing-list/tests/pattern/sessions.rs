//! Workers that die, freeze, return after a freeze, or share a name.

use std::time::Duration;

use relq_conformance::{
    proxy::{FaultProxy, VirtualClock},
    server::Server,
};
use relq_core::{
    outcome::{Extended, Settled},
    *,
};
use relq_processing_list::{Mode, ProcessingListQueue};
use tokio::time::timeout;

use crate::fixture::*;

/// R9: each recovery scans one page of the server's keys for lists without a session,
/// and starts again at the end, so it finds such a list among many other keys.
#[tokio::test]
async fn the_search_for_lists_comes_around() {
    let patched_server = PatchedServer::healthy();
    let queue = patched_server.open(Mode::PerWorker).await;
    for key in 0..5_000 {
        say(&patched_server, &[b"SET", format!("foreign:{key}").as_bytes(), b"1"]);
    }
    for round in 0..3 {
        queue.push_one("job".into()).await.unwrap();
        take(&queue, &ask("w")).await;
        say(&patched_server, &[b"DEL", b"{q}:workers", b"{q}:leased"]);

        recover(&patched_server, &queue, 1).await;

        let again = take(&queue, &ask("other")).await;
        assert_eq!(
            queue.ack(&again.receipt).await.unwrap(),
            Settled::Applied,
            "{round}"
        );
    }
}

/// R9, R10: a reaper freezes between two steps of the search through a list. Before the first
/// step the worker has extended a lease, which ends before the second one. The reaper has
/// passed its element and does not forget the lease, so that the job comes back.
#[tokio::test]
async fn a_lease_that_ends_while_its_reaper_is_frozen_is_not_forgotten() {
    for mode in MODES {
        let (server, clock) = (Server::start(), VirtualClock::new());
        let proxy = FaultProxy::start(server.address(), clock.clone()).unwrap();
        let [queue, reaper] = ["worker", "reaper"].map(|it| proxy.actor(it).unwrap());
        let (queue, reaper) =
            (open_as(queue.url(), mode).await, open_as(reaper.url(), mode).await);
        reaper.recover(many(10)).await.unwrap();
        // A step reads about a mebibyte, which two of these jobs exceed.
        let jobs = ["a", "b", "c"].map(|it| NewJob::new(it.repeat(700_000)));
        for job in jobs {
            queue.push_one(job).await.unwrap();
        }
        let _first = take(&queue, &ask_briefly("w")).await;
        let _second = take(&queue, &ask("w")).await;
        let third = take(&queue, &ask_briefly("w")).await;
        clock.advance(BRIEF);

        proxy.park();
        let recovering = tokio::spawn(async move {
            let recovered = reaper.recover(many(100)).await;
            (recovered, reaper)
        });
        let mut searches = 0;
        while !recovering.is_finished() {
            let Ok(parked) = timeout(BRIEF / 10, proxy.parked(1)).await else {
                continue;
            };
            for step in parked {
                if step.label().contains("take_named") {
                    searches += 1;
                    match searches {
                        1 => extend_beside(&proxy, &queue, &third).await,
                        _ => clock.advance(BRIEF),
                    }
                }
                proxy.pass(&step.actor, step.step);
            }
        }
        proxy.heal().await.unwrap();
        let (recovered, reaper) = recovering.await.unwrap();

        assert_eq!((searches, recovered.unwrap().requeued), (2, 1), "{mode:?}");
        clock.advance(BRIEF);
        assert_eq!(reaper.recover(many(100)).await.unwrap().requeued, 1, "{mode:?}");
        for expected in ["c", "a"] {
            let again = take(&queue, &ask("other")).await;
            assert!(again.payload.starts_with(expected.as_bytes()), "{mode:?}");
        }
        assert_sound(&queue).await;
    }
}

/// Extends the lease of a job while all steps are parked.
async fn extend_beside(
    proxy: &FaultProxy,
    queue: &ProcessingListQueue,
    held: &Delivery,
) {
    let (name, named) = (worker("w"), std::slice::from_ref(&held.receipt));
    let passing = async {
        loop {
            let parked = proxy.parked(1).await;
            let own = parked.into_iter().filter(|step| step.actor == "worker");
            own.for_each(|step| assert!(proxy.pass("worker", step.step), "{step}"));
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::select! {
        extended = queue.extend(&name, named, BRIEF) => {
            assert!(matches!(extended.unwrap()[..], [Extended::Until(_)]));
        }
        () = passing => {}
    }
}

/// R23: a purge handles more sessions than a Lua function can take arguments.
#[tokio::test]
async fn a_purge_takes_thousands_of_sessions() {
    let server = Server::start();
    let queue = open(&server, Mode::PerWorker).await;
    queue.push(&["1".into(), "2".into()], None).await.unwrap();
    let register = b"for i = 1, 9000 do redis.call('ZADD', KEYS[1], i, 's/' .. i) end";
    say(&server, &[b"EVAL", register, b"1", b"{q}:retired"]);

    let purged = tokio::time::timeout(LONG, queue.purge()).await;

    assert_eq!(purged.expect("it ends").unwrap(), 2);
}

/// R23: a purge removes all jobs, and also a member of the registry that is not a
/// session.
#[tokio::test]
async fn a_purge_goes_on_beside_what_is_no_session() {
    let server = Server::start();
    let queue = open(&server, Mode::PerWorker).await;
    queue.push(&["leased".into(), "ready".into()], None).await.unwrap();
    take(&queue, &ask("w")).await;
    say(&server, &[b"ZADD", b"{q}:workers", b"1", b"nobody"]);

    let purged = tokio::time::timeout(LONG, queue.purge()).await;

    assert_eq!(purged.expect("it ends").unwrap(), 2);
    let stats = queue.stats().await.unwrap();
    assert_eq!((stats.ready, stats.leased), (0, 0));
}

/// R9: recovery ends although `leased` has an expired member that is not the name of a
/// lease. If the member stayed, each page would find it again.
#[tokio::test]
async fn recovery_ends_beside_a_member_that_is_not_a_lease() {
    let server = Server::start();
    let queue = open(&server, Mode::PerWorker).await;
    queue.push_one("ready".into()).await.unwrap();
    say(&server, &[b"ZADD", b"{q}:leased", b"1", b"garbage", b"2", b"w/a*/1/n"]);

    let first = queue.recover(many(1)).await.unwrap();
    let second = queue.recover(many(1)).await.unwrap();

    assert!(first.more && !second.more, "{first:?} {second:?}");
    assert_sound(&queue).await;
}

/// R24: releasing a worker's name releases the workers of all processes with that name.
#[tokio::test]
async fn release_gives_back_by_name() {
    for mode in MODES {
        let server = Server::start();
        let (first, second) = (open(&server, mode).await, open(&server, mode).await);
        first.push(&["1".into(), "2".into()], None).await.unwrap();
        take(&first, &ask("w")).await;
        take(&second, &ask("w")).await;

        assert_eq!(second.release_worker(&worker("w")).await.unwrap().jobs, 2);

        let again = first.claim(&ask("w").max(many(2))).await.unwrap();
        assert!(again.iter().all(|one| one.attempt() == 1), "{again:?}");
        assert_sound(&first).await;
    }
}

/// R7: a worker that froze, and whose job was recovered, is told that its lease is
/// lost. This holds even if it has claimed the same job again into the same list.
#[tokio::test]
async fn a_worker_that_wakes_up_finds_its_leases_lost() {
    for mode in MODES {
        let patched_server = PatchedServer::healthy();
        let (frozen, other) =
            (patched_server.open(mode).await, patched_server.open(mode).await);
        frozen.push_one("job".into()).await.unwrap();
        let stale = take(&frozen, &ask_briefly("w")).await;
        recover(&patched_server, &other, 1).await;

        let current = take(&frozen, &ask("w")).await;

        assert_eq!(frozen.ack(&stale.receipt).await.unwrap(), Settled::LeaseLost);
        let named = [stale.receipt, current.receipt.clone()];
        let heard = frozen.extend(&worker("w"), &named, LEASE).await.unwrap();
        assert!(
            matches!(heard[..], [Extended::LeaseLost, Extended::Until(_)]),
            "{heard:?}"
        );
        assert_eq!(frozen.ack(&current.receipt).await.unwrap(), Settled::Applied);
        assert_sound(&frozen).await;
    }
}

/// R6, R23: workers of both modes work on one queue. Each job has one holder, and
/// workers of each mode recover the jobs that workers of the other lost.
#[tokio::test]
async fn both_modes_share_a_queue() {
    let patched_server = PatchedServer::healthy();
    let [own, shared] =
        [patched_server.open(MODES[0]).await, patched_server.open(MODES[1]).await];
    own.push(&["1".into(), "2".into(), "3".into(), "4".into()], None).await.unwrap();
    take(&own, &ask_briefly("a")).await;
    take(&shared, &ask_briefly("b")).await;
    let held = [take(&own, &ask("c")).await, take(&shared, &ask("d")).await];
    assert_eq!(shared.stats().await.unwrap().leased, 4);
    assert_sound(&own).await;

    recover(&patched_server, &own, 2).await;

    let again = shared.claim(&ask("e").max(many(4))).await.unwrap();
    assert_eq!(again.len(), 2);
    for one in held.iter().chain(&again) {
        assert_eq!(shared.ack(&one.receipt).await.unwrap(), Settled::Applied);
    }
    assert_sound(&shared).await;
    assert_eq!(own.stats().await.unwrap().finished, 4);
}

/// R11: recovery counts the attempt, even if the worker died before its handler began.
#[tokio::test]
async fn a_job_that_kills_every_worker_is_buried() {
    for mode in MODES {
        let patched_server = PatchedServer::healthy();
        let queue = patched_server.open(mode).await;
        let poison = NewJob::new("poison").max_attempts(2.try_into().unwrap());
        queue.push_one(poison).await.unwrap();
        take(&queue, &ask_briefly("w1")).await;
        recover(&patched_server, &queue, 1).await;
        take(&queue, &ask_briefly("w2")).await;

        let mut recovered = queue.recover(many(10)).await.unwrap();
        while recovered.buried == 0 {
            recovered = queue.recover(many(10)).await.unwrap();
        }

        assert_eq!(queue.stats().await.unwrap().dead, 1);
        assert_sound(&queue).await;
    }
}

/// R7: one call settles jobs of several workers, each in the list of its own worker.
#[tokio::test]
async fn one_call_settles_jobs_of_several_workers() {
    let retry = Disposition::Retry { after: Duration::ZERO, error: "again".into() };
    for mode in MODES {
        let server = Server::start();
        let queue = open(&server, mode).await;
        for disposition in [Disposition::GiveBack, retry.clone()] {
            queue.push(&["1".into(), "2".into()], None).await.unwrap();
            let held = [take(&queue, &ask("a")).await, take(&queue, &ask("b")).await];
            let settlements =
                held.map(|one| Settlement::new(one.receipt, disposition.clone()));

            let settled = queue.settle(&settlements).await.unwrap();

            assert_eq!(settled, [Settled::Applied; 2]);
            assert_eq!(queue.stats().await.unwrap().leased, 0, "{disposition:?}");
            assert_sound(&queue).await;
            assert_eq!(queue.purge().await.unwrap(), 2);
        }
    }
}

/// R15: jobs of several workers that are recovered in one call keep their order.
#[tokio::test]
async fn the_job_of_the_session_that_ended_first_comes_first() {
    for mode in MODES {
        let patched_server = PatchedServer::healthy();
        let queue = patched_server.open(mode).await;
        queue.push(&["1".into(), "2".into()], None).await.unwrap();
        take(&queue, &ask_briefly("a")).await;
        take(&queue, &ask_briefly("b")).await;

        recover(&patched_server, &queue, 2).await;

        for payload in ["1", "2"] {
            assert_eq!(take(&queue, &ask("c")).await.payload, payload);
        }
    }
}

/// Recovery watches the list of an ended session for a minute, and then forgets the session.
#[tokio::test]
async fn ended_sessions_are_forgotten() {
    let server = PatchedServer::mutated(&[]);
    let queue = server.open(Mode::PerWorker).await;
    for number in 0..20 {
        queue.push_one("job".into()).await.unwrap();
        let held = take(&queue, &ask_briefly(&format!("w-{number}"))).await;
        assert_eq!(queue.ack(&held.receipt).await.unwrap(), Settled::Applied);
    }
    let known = || {
        say(&server, &[b"ZCARD", b"{q}:workers"]).concat()
            + &say(&server, &[b"ZCARD", b"{q}:retired"]).concat()
    };

    server.pass(BRIEF).await;
    queue.recover(many(100)).await.unwrap();
    assert_eq!(known(), ":0:20", "their lists are watched");

    server.pass(Duration::from_secs(55)).await;
    queue.recover(many(100)).await.unwrap();
    assert_eq!(known(), ":0:20", "their lists are still watched");

    server.pass(Duration::from_secs(61)).await;
    queue.recover(many(100)).await.unwrap();
    assert_eq!(known(), ":0:0");
}

/// R9, R23: a worker that has never held a job freezes while its move waits, and the move
/// fills its list. The job counts as leased until the worker's session ends, which is when
/// its last claim or heartbeat says. Then the job is overdue, and comes back uncounted.
#[tokio::test]
async fn a_move_into_the_list_of_a_worker_that_waited_is_found() {
    for heartbeat in [None, Some(LEASE)] {
        let server = PatchedServer::mutated(&[]);
        let (frozen, other) =
            (server.open(Mode::PerWorker).await, server.open(Mode::PerWorker).await);
        let asking = ask_briefly("w").wait(Duration::from_millis(1));
        assert_eq!(frozen.claim_one(&asking).await.unwrap(), None);
        if let Some(lease) = heartbeat {
            frozen.extend(&worker("w"), &[], lease).await.unwrap();
            server.pass(BRIEF).await;
        }
        let idle = other.recover(many(10)).await.unwrap();
        assert_eq!(idle.next_in, None, "R9: no job is leased: {heartbeat:?}");
        let overdue = async || {
            let stats = other.stats().await.unwrap();
            (stats.leased, stats.overdue)
        };

        other.push_one("late".into()).await.unwrap();
        move_to(&server, &list_of_the_worker(&server));

        assert_eq!(overdue().await, (1, 0), "R23: the moved job: {heartbeat:?}");
        let early = other.recover(many(10)).await.unwrap();
        let left = heartbeat.map_or(BRIEF, |lease| lease - BRIEF);
        assert_eq!(
            (early.requeued, early.next_in),
            (0, Some(left)),
            "R9: the worker's session goes on: {heartbeat:?}"
        );
        server.pass(left).await;
        assert_eq!(
            overdue().await,
            (1, 1),
            "R23: the session has ended: {heartbeat:?}"
        );
        let late = other.recover(many(10)).await.unwrap();
        assert_eq!(late.requeued, 1, "R9: the moved job comes back: {heartbeat:?}");
        let late = take(&other, &ask("other")).await;
        assert_eq!((&late.payload[..], late.attempt()), (&b"late"[..], 1), "R11");
        assert_sound(&other).await;
    }
}
