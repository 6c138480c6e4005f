//! Two calls about one job run at the same time: one of them takes effect, and no job
//! is lost (R6, R8, R12).

use relq_core::{
    Delivery, Disposition, NewJob,
    operator::{Cancelled, Selection},
    outcome::Settled,
};

use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{dead, delivers, numbered, settle_all},
        store::Store,
        times::{BRIEF, PAST_BRIEF},
    },
};

/// Opens two actors, of which the first claims `jobs` jobs. Returns both actors and the
/// deliveries.
async fn rivals(store: &Store, jobs: usize) -> (Actor, Actor, Vec<Delivery>) {
    let (holder, rival) = (store.actor("w1").await, store.actor("w2").await);
    holder.store(numbered(jobs)).await;
    let held = holder.take(u32::try_from(jobs).expect("a small number")).await;
    (holder, rival, held)
}

case!(a_cancel_races_an_ack: R23);
/// A cancel and an ack of one job run at the same time. One of them takes effect and is
/// counted. Each job is a race of its own, so that no slow first call decides them all.
async fn a_cancel_races_an_ack(store: &Store) {
    let (holder, rival, held) = rivals(store, 50).await;
    let (mut applied, mut cancelled) = (0, 0);
    for one in &held {
        let cancelling = {
            let (rival, job) = (rival.clone(), one.job().clone());
            tokio::spawn(async move { rival.cancel(&job).await.expect("answered") })
        };
        let settled = holder.say(one, Disposition::Done).await;
        let answer = cancelling.await.expect("the cancel ends");
        applied += u64::from(settled == Settled::Applied);
        cancelled += u64::from(answer != Cancelled::NotFound);
    }

    let stats = holder.figures().await;
    let counted = (stats.finished, stats.cancelled);
    assert_eq!(counted, (applied, cancelled), "counted as it was answered");
    assert_eq!((applied + cancelled, stats.unfinished()), (50, 0));
}

case!(a_release_races_acks: R7 R24);
/// An ack of a job and a release of its worker run at the same time. One of them takes
/// effect.
async fn a_release_races_acks(store: &Store) {
    let (holder, rival, held) = rivals(store, 200).await;
    let leaver = holder.worker().clone();
    let leaving = tokio::spawn(async move {
        rival.release_worker(&leaver).await.expect("answered").jobs
    });

    let settled = settle_all(&holder, &held, &Disposition::Done).await;

    let back = leaving.await.expect("the release ends");
    let applied = settled.iter().filter(|one| **one == Settled::Applied).count() as u64;
    let stats = holder.figures().await;
    assert_eq!((stats.finished, stats.ready, stats.leased), (applied, back, 0));
    assert_eq!(applied + back, 200);
}

case!(a_redrive_races_a_purge: R23);
/// A redrive and a purge of a dead letter run at the same time. One of them takes
/// effect.
async fn a_redrive_races_a_purge(store: &Store) {
    let (holder, rival, held) = rivals(store, 300).await;
    settle_all(&holder, &held, &dead("no")).await;
    let purging = tokio::spawn(async move {
        rival.purge_dead(&Selection::All).await.expect("answered")
    });

    let moved = holder.redrive(&Selection::All).await.expect("answered").moved;

    let purged = purging.await.expect("the purge ends");
    let stats = holder.figures().await;
    assert_eq!((stats.ready, stats.dead), (moved, 0));
    assert_eq!(moved + purged, 300);
}

case!(reapers_at_once_promote_once: R12 R14 => Delay);
/// Reapers that run in parallel promote each due job once.
async fn reapers_at_once_promote_once(store: &Store) {
    let actor = store.actor("worker").await;
    let jobs = numbered(200).into_iter().map(|one| NewJob::new(one).delay(BRIEF));
    actor.store(jobs).await;
    store.advance(PAST_BRIEF).await;
    let mut reapers = Vec::new();
    for index in 0..8 {
        let reaper = store.actor(&format!("r{index}")).await;
        reapers.push(tokio::spawn(async move { reaper.recover_all().await }));
    }

    let mut promoted = 0;
    for reaper in reapers {
        promoted += reaper.await.expect("the reaper ends").promoted;
    }

    assert_eq!(promoted, 200);
    delivers(&actor, numbered(200)).await;
}

case!(stats_miss_no_job: R23);
/// A client reads the stats while jobs are claimed and given back. The stats count each
/// job in exactly one state.
async fn stats_miss_no_job(store: &Store) {
    let (worker, reader) = (store.actor("worker").await, store.actor("reader").await);
    worker.store(numbered(3)).await;
    let working = tokio::spawn(async move {
        for number in 0..60 {
            // Each round uses a new worker id, because a backend may store keys for
            // each worker.
            let worker = worker.acting_as(&format!("w{number}"));
            let held = worker.take(2).await;
            settle_all(&worker, &held, &Disposition::GiveBack).await;
        }
    });

    while !working.is_finished() {
        let stats = reader.figures().await;
        assert_eq!(stats.ready + stats.leased, 3, "of three jobs: {stats:?}");
    }

    working.await.expect("the workers end");
}

case!(a_purge_races_pushes: R1 R19);
/// A purge that races with pushes removes a job completely or not at all.
async fn a_purge_races_pushes(store: &Store) {
    let (producer, operator) = (store.actor("p").await, store.actor("o").await);
    let pushing = tokio::spawn(async move {
        for batch in numbered(300).chunks(3) {
            producer.store(batch.to_vec()).await;
        }
    });

    let mut purged = 0;
    for _ in 0..20 {
        purged += operator.purge().await.expect("answered");
    }

    pushing.await.expect("the pushes end");
    assert_eq!(operator.figures().await.ready + purged, 300);
}
