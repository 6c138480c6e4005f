//! Pages without payloads (R31).

use std::num::NonZeroU32;

use relq_core::{
    NewJob,
    operator::{JobState, PeekRequest},
};

use crate::{
    cases::case,
    harness::{
        checks::{dead, numbered, retry_after, settle_all},
        store::Store,
        times::HELD,
    },
    spec::operation::STATES,
};

case!(outlines_have_id_state_and_error: R31);
/// An outline has the id, the state with its details, and the last error of its job.
async fn outlines_have_id_state_and_error(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(9)).await;
    let held = actor.take(6).await;
    settle_all(&actor, &held[..2], &dead("it broke")).await;
    settle_all(&actor, &held[2..4], &retry_after(HELD)).await;

    for state in STATES {
        let whole = actor.list(state, 10).await;
        let ten = NonZeroU32::new(10).expect("not zero");
        let page = actor.peek(&PeekRequest::new(state, ten).outline()).await;
        let outlines = page.expect("answered").jobs;

        assert_eq!(outlines.len(), whole.len(), "R31: {}", state.as_str());
        for (seen, whole) in outlines.iter().zip(&whole) {
            assert_eq!(seen.id, whole.id, "R31");
            assert_eq!(seen.detail, whole.detail, "R31");
            assert_eq!(seen.last_error, whole.last_error, "R31");
        }
    }
}

case!(large_payloads_are_left_out: R31 R21 => Inspect);
/// The outlines of large jobs that are leased or dead fit on one page.
async fn large_payloads_are_left_out(store: &Store) {
    let actor = store.actor("worker").await;
    let large = || NewJob::new(vec![b'x'; 400 * 1024]);
    for state in [JobState::Dead, JobState::Leased] {
        actor.store([large(), large(), large(), large()]).await;
        let mut held = Vec::new();
        while held.len() < 4 {
            held.extend(actor.take(4).await);
        }
        if state == JobState::Dead {
            settle_all(&actor, &held, &dead("no")).await;
        }

        let ten = NonZeroU32::new(10).expect("not zero");
        let ask = PeekRequest::new(state, ten).newest_first().outline();
        let page = actor.peek(&ask).await.expect("answered");

        let found = (page.jobs.len(), page.next);
        assert_eq!(found, (4, None), "R31: the {} jobs on one page", state.as_str());
    }
}
