//! Wrong clocks of clients change neither leases nor delays nor expiries (R18).

use std::time::Duration;

use relq_core::NewJob;

use crate::{
    cases::case,
    harness::{
        checks::{delivers, drain, expect_exactly, payloads},
        clock::Skew,
        store::Store,
        times::{BRIEF, HELD, PAST_BRIEF},
    },
};

const HOURS: Duration = Duration::from_secs(7 * 3600);

case!(a_fast_clock_steals_nothing: R18 => Delay @ redis, real_time);
/// A worker whose clock is hours ahead cannot take jobs whose leases have not expired.
async fn a_fast_clock_steals_nothing(store: &Store) {
    let honest = store.actor("w1").await;
    let fast = store.actor_with_clock("w2", Skew::Ahead(HOURS)).await;
    honest.store([NewJob::new("held"), NewJob::new("later").delay(HELD)]).await;
    let held = honest.take_one().await;

    let recovered = fast.recover_all().await;

    assert_eq!((recovered.requeued, recovered.promoted), (0, 0));
    assert_eq!(fast.take(10).await, []);
    honest.finish(&held).await;
}

case!(a_slow_clock_keeps_nothing: R18 @ redis, real_time);
/// The clock of a worker is behind. Its lease still expires in time.
async fn a_slow_clock_keeps_nothing(store: &Store) {
    let honest = store.actor("w1").await;
    let slow = store.actor_with_clock("w2", Skew::Behind(HOURS)).await;
    honest.store_one("job").await;
    slow.take_one_briefly().await;
    store.outlast_brief_leases().await;

    assert_eq!(honest.recover_all().await.requeued, 1);
}

case!(a_fast_clocks_lease_ends_in_time: R18 @ redis);
/// The clock of a worker is hours ahead. Its lease still expires in time, not hours
/// later.
async fn a_fast_clocks_lease_ends_in_time(store: &Store) {
    let honest = store.actor("w1").await;
    let fast = store.actor_with_clock("w2", Skew::Ahead(HOURS)).await;
    honest.store_one("job").await;
    let held = fast.take_one_briefly().await;
    fast.keep(&held, BRIEF).await.expect("answered");
    store.outlast_brief_leases().await;

    assert_eq!(honest.recover_all().await.requeued, 1);
}

case!(a_wrong_producer_is_on_time: R18 R14 R17 => Delay Expiry @ redis);
/// Delays and expiries follow the store's clock, even if the producer's clock is wrong.
async fn a_wrong_producer_is_on_time(store: &Store) {
    let honest = store.actor("worker").await;
    for skew in [Skew::Ahead(HOURS), Skew::Behind(HOURS)] {
        let wrong = store.actor_with_clock("p", skew).await;
        wrong.store_one(NewJob::new("due").delay(BRIEF)).await;
        wrong.store_one(NewJob::new("later").delay(HELD)).await;
        wrong.store_one(NewJob::new("fresh").expires_in(HELD)).await;
        wrong.store_one(NewJob::new("stale").expires_in(BRIEF)).await;
    }
    store.advance(PAST_BRIEF).await;

    honest.recover_all().await;

    let served = payloads(&drain(&honest).await);
    expect_exactly(served, ["due", "due", "fresh", "fresh"].map(Into::into));
    assert_eq!(honest.figures().await.scheduled, 2);
}

case!(the_given_clock_is_the_stores: R18 => Delay @ embedded);
/// A store without a clock of its own uses the clock that its client passed when it
/// opened the store. So the cases of wrong clocks do not apply to such a store.
async fn the_given_clock_is_the_stores(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(NewJob::new("later").delay(HOURS)).await;

    store.advance(HOURS).await;

    assert_eq!(actor.recover_all().await.promoted, 1);
    delivers(&actor, ["later"]).await;
}
