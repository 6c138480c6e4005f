//! A restore of more jobs than the backend handles in one step.

use bytes::Bytes;
use relq_core::{
    ClaimRequest,
    operator::{JobState, JobView, StateDetail},
    outcome::{DuplicateOf, Pushed},
};

use super::{COUNTS, PAGE, assert_in_order, beside_joints, take_all, without};
use crate::{
    cases::{case, times::now},
    harness::{
        checks::{duplicate, id, listed, numbered, payloads},
        restorer::{but, id_of},
        store::Store,
    },
};

/// Ready jobs to restore, which are numbered.
fn numbered_views(count: usize) -> Vec<JobView> {
    let view = |payload: Bytes| {
        let name = std::str::from_utf8(&payload).expect("text");
        JobView::new(Some(id(name)), payload.clone(), StateDetail::Ready)
    };
    numbered(count).into_iter().map(view).collect()
}

case!(a_restore_of_several_steps_stores_all: R34 R13 => Restore);
/// A restore of several steps stores all jobs, in the order of the call.
async fn a_restore_of_several_steps_stores_all(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    for count in COUNTS {
        actor.restore_all(&numbered_views(count)).await;

        let taken = take_all(&actor, count).await;
        assert_in_order(&actor, payloads(&taken), &numbered(count));
        actor.purge().await.expect("purged");
    }
}

case!(dead_jobs_of_several_steps_are_restored: R34 R13 => Restore);
/// Dead jobs of the same time of death are listed in the order of the call, over all of
/// its steps.
async fn dead_jobs_of_several_steps_are_restored(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    let detail =
        || StateDetail::Dead { reason: "it failed".to_owned(), since: now(store) };
    for count in COUNTS {
        let detail = detail();
        let view = |view| {
            but(view, |it| {
                it.detail = detail.clone();
                it.attempt = 1;
            })
        };
        let jobs: Vec<_> = numbered_views(count).into_iter().map(view).collect();

        actor.restore_all(&jobs).await;

        let dead = actor.list(JobState::Dead, 1000).await;
        assert_in_order(&actor, listed(&dead), &numbered(count));
        actor.purge().await.expect("purged");
    }
}

case!(known_jobs_at_every_joint_are_answered: R34 R4 => Restore);
/// The answers name the jobs that are known, whatever their places in the steps.
async fn known_jobs_at_every_joint_are_answered(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    for count in COUNTS {
        let (jobs, known) = (numbered_views(count), beside_joints(count));
        let before: Vec<_> = known.iter().map(|at| jobs[*at].clone()).collect();
        actor.restore_all(&before).await;

        let answers = actor.restore(&jobs).await;

        let wanted = |at: usize| match known.contains(&at) {
            true => duplicate(&id_of(&jobs[at]), DuplicateOf::Id),
            false => Pushed::Stored(id_of(&jobs[at])),
        };
        assert_eq!(answers, (0..count).map(wanted).collect::<Vec<_>>(), "R34");
        let taken = take_all(&actor, count).await;
        let new = payloads(&taken[known.len()..]);
        assert_in_order(&actor, new, &without(&numbered(count), &known));
        actor.purge().await.expect("purged");
    }
}

case!(large_jobs_are_restored_in_several_steps: R34 R21 => Restore);
/// Jobs so large that only a few fit into one step are all restored, in their order.
async fn large_jobs_are_restored_in_several_steps(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    let large = |number: usize| {
        let mut payload = vec![b'x'; ClaimRequest::MAX_BYTES * 2 / 5];
        payload[0] = u8::try_from(number).expect("few");
        let name = id(&format!("job {number}"));
        JobView::new(Some(name), payload, StateDetail::Ready)
    };
    let jobs: Vec<_> = (0..PAGE).map(large).collect();

    actor.restore_all(&jobs).await;

    let seen = actor.list(JobState::Ready, 1000).await;
    let numbers = |jobs: &[JobView]| -> Vec<Bytes> {
        jobs.iter().map(|job| job.payload.slice(..1)).collect()
    };
    assert_in_order(&actor, numbers(&seen), &numbers(&jobs));
}
