//! Listings of a queue at work: no page misses a job that stays where it is (R31).

use std::{num::NonZeroU32, time::Duration};

use bytes::Bytes;
use relq_core::{
    Delivery, NewJob,
    operator::{JobState, JobView, PeekRequest, Selection},
};

use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{dead, numbered, retry_now, settle_all},
        store::Store,
        times::HELD,
    },
};

/// Lists a state by pages of three jobs, and runs `between` after each page. Returns the
/// payloads that were seen.
async fn list_while<F: Future<Output = ()>>(
    actor: &Actor,
    ask: PeekRequest,
    mut between: impl FnMut(usize) -> F,
) -> Vec<Bytes> {
    let mut ask = ask;
    ask.limit = NonZeroU32::new(3).expect("not zero");
    let mut seen = Vec::new();
    for page in 0.. {
        let found = actor.peek(&ask).await.expect("the peek is answered");
        seen.extend(found.jobs.into_iter().map(|job| job.payload));
        let Some(next) = found.next else { return seen };
        ask = ask.after(next);
        between(page).await;
        assert!(page < 1000, "R31: the listing does not end");
    }
    seen
}

fn newest(state: JobState) -> PeekRequest {
    PeekRequest::new(state, NonZeroU32::MIN).newest_first()
}

fn assert_seen(seen: &[Bytes], wanted: impl IntoIterator<Item = Bytes>) {
    let missing: Vec<_> =
        wanted.into_iter().filter(|one| !seen.contains(one)).collect();
    assert_eq!(missing, [""; 0], "R31: jobs that stayed are on no page");
}

case!(newest_first_misses_no_ready_job: R31 => Inspect);
/// While jobs are claimed at the front and pushed at the back, a listing newest first
/// shows each ready job that stays.
async fn newest_first_misses_no_ready_job(store: &Store) {
    let actor = store.actor("operator").await;
    actor.store(numbered(40)).await;

    let seen = list_while(&actor, newest(JobState::Ready), |page| {
        let actor = actor.clone();
        async move {
            actor.take(1).await;
            actor.store([format!("new {page}"), format!("newer {page}")]).await;
        }
    })
    .await;

    let taken = actor.list(JobState::Leased, 100).await.len();
    assert!(taken > 5 && taken < 30, "{taken} jobs were claimed meanwhile");
    assert_seen(&seen, numbered(40).split_off(taken));
}

case!(newest_first_misses_no_scheduled_job: R31 => Inspect Delay);
/// While jobs are pushed, cancelled and become due, a listing newest first shows each
/// scheduled job that stays.
async fn newest_first_misses_no_scheduled_job(store: &Store) {
    let actor = store.actor("operator").await;
    let after = |minutes: u64| Duration::from_secs(minutes * 60);
    let jobs = numbered(40).into_iter().zip(1..);
    let jobs = jobs.map(|(name, minutes)| NewJob::new(name).delay(after(minutes)));
    let ids = actor.store(jobs).await;

    let seen = list_while(&actor, newest(JobState::Scheduled), |page| {
        let (actor, shown) = (actor.clone(), ids[39 - page].clone());
        async move {
            actor.cancel(&shown).await.expect("answered");
            for minutes in [2, 90] {
                let delay = after(minutes) + Duration::from_secs(30);
                actor
                    .store_one(NewJob::new(format!("{page}, {minutes}")).delay(delay))
                    .await;
            }
            store.advance(after(1)).await;
            actor.recover_all().await;
        }
    })
    .await;

    let left = actor.list(JobState::Scheduled, 100).await;
    let stayed = left.into_iter().map(|job| job.payload);
    assert_seen(&seen, stayed.filter(|name| name.starts_with(b"job")));
}

case!(newest_first_misses_no_dead_job: R31 => Inspect);
/// While jobs are buried, redriven and purged, a listing newest first shows each dead job
/// that stays.
async fn newest_first_misses_no_dead_job(store: &Store) {
    let actor = store.actor("operator").await;
    let ids = actor.store(numbered(40)).await;
    settle_all(&actor, &actor.take(40).await, &dead("no")).await;

    let seen = list_while(&actor, newest(JobState::Dead), |page| {
        let (actor, ids) = (actor.clone(), ids.clone());
        async move {
            let one = |at: usize| Selection::Only(vec![ids[at].clone()]);
            actor.redrive(&one(page)).await.expect("answered");
            actor.purge_dead(&one(39 - page)).await.expect("answered");
            actor.say(&actor.take_one().await, dead("again")).await;
        }
    })
    .await;

    let left = actor.list(JobState::Dead, 100).await.into_iter();
    let stayed = left.filter(|job| job.last_error.as_deref() == Some("no"));
    assert_seen(&seen, stayed.map(|job| job.payload));
}

case!(newest_first_misses_no_leased_job: R31 => Inspect);
/// While jobs are claimed and settled, a listing newest first shows each leased job that
/// stays.
async fn newest_first_misses_no_leased_job(store: &Store) {
    let actor = store.actor("operator").await;
    let held = leased(&actor).await;

    let seen = list_while(&actor, newest(JobState::Leased), |page| {
        let (actor, held) = (actor.clone(), held.clone());
        async move {
            // A job that is claimed again may be listed a second time, so the listing has
            // more pages.
            if page < 10 {
                actor.finish(&held[page]).await;
                actor.say(&held[39 - page], retry_now()).await;
                actor.take(1).await;
            }
        }
    })
    .await;

    assert_stayed(&actor, &seen, |job| job.attempt == 1).await;
}

case!(leased_pages_miss_none_that_stay: R31 => Inspect);
/// While leases are extended and jobs settled, a listing of the leased jobs as served
/// shows each job whose lease stays as it is.
async fn leased_pages_miss_none_that_stay(store: &Store) {
    let actor = store.actor("operator").await;
    let held = leased(&actor).await;
    let before = actor.list(JobState::Leased, 100).await;

    let ask = PeekRequest::new(JobState::Leased, NonZeroU32::MIN);
    let seen = list_while(&actor, ask, |page| {
        let (actor, held) = (actor.clone(), held.clone());
        async move {
            // Each extended job is listed a second time, so the listing has more pages.
            if page < 10 {
                actor.finish(&held[page]).await;
                actor.keep(&held[page + 20], HELD * 3).await.expect("answered");
            }
        }
    })
    .await;

    assert_stayed(&actor, &seen, |job| before.contains(job)).await;
}

/// Claims 40 jobs in four calls at different times.
async fn leased(actor: &Actor) -> Vec<Delivery> {
    actor.store(numbered(40)).await;
    let mut held = Vec::new();
    for seconds in 0..4 {
        let ask = actor.ask_by(10, HELD + Duration::from_secs(seconds));
        held.extend(actor.claim(&ask).await.expect("answered"));
    }
    held
}

/// Asserts that each leased job that has stayed was seen.
async fn assert_stayed(
    actor: &Actor,
    seen: &[Bytes],
    has_stayed: impl Fn(&JobView) -> bool,
) {
    let left = actor.list(JobState::Leased, 100).await;
    let stayed: Vec<_> =
        left.into_iter().filter(has_stayed).map(|job| job.payload).collect();
    assert!(stayed.len() > 10, "only {} jobs stayed", stayed.len());
    assert_seen(seen, stayed);
}
