//! A push can be repeated safely: by the job's id, or by the call's token (R4).

mod ids;
mod tokens;

use relq_core::NewJob;

use crate::harness::{
    checks::{drain, id},
    store::Store,
    times::WITHIN_WINDOW,
};

/// Lets most of the window pass, and makes the calls that remove what need not be
/// remembered any more.
async fn stay_within_window(store: &Store) {
    store.advance(WITHIN_WINDOW).await;
    let other = store.actor("other").await;
    for number in 0..20 {
        let job = NewJob::new("other").id(id(&format!("other-{number}")));
        other.store_one(job).await;
    }
    drain(&other).await;
    other.recover_all().await;
}

fn mine() -> NewJob {
    NewJob::new("first").id(id("mine"))
}
