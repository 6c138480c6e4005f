//! Restored dead letters are dead letters like all others (R34).

use std::num::NonZeroU32;

use relq_core::{
    JobId,
    operator::{DeadGroups, JobLookup, JobState, Redriven, Selection},
    outcome::DuplicateOf,
};

use super::fixture::{was_dead, was_ready, yesterday};
use crate::{
    cases::{case, times::now},
    harness::{
        checks::{dead, delivers, duplicate, id, listed, payloads},
        restorer::but,
        store::Store,
        times::HELD,
    },
};

fn only(name: &str) -> Selection {
    Selection::Only(vec![id(name)])
}

case!(a_restored_dead_letter_is_redriven: R34 R11 => Restore);
/// A redrive makes a restored dead job ready, with no attempt counted.
async fn a_restored_dead_letter_is_redriven(store: &Store) {
    let actor = store.actor("worker").await;
    actor.restore_all(&["a", "b"].map(|it| was_dead(it, yesterday(store)))).await;

    let redriven = actor.redrive(&only("b")).await.expect("answered");

    assert_eq!(redriven, Redriven { moved: 1, duplicates: 0 }, "R34");
    assert_eq!(actor.list(JobState::Ready, 10).await[0].attempt, 0, "R34");
    let held = actor.take_one().await;
    assert_eq!((held.job(), held.attempt()), (&id("b"), 1), "R34");
    actor.finish(&held).await;
    assert_eq!(listed(&actor.list(JobState::Dead, 10).await), ["a"], "R34");
}

case!(a_redriven_job_forgets_that_it_expired: R34 R17 => Restore Expiry);
/// A dead job whose time of expiry has passed runs after a redrive.
async fn a_redriven_job_forgets_that_it_expired(store: &Store) {
    let actor = store.actor("worker").await;
    let since = yesterday(store);
    let job = but(was_dead("job", since), |it| it.expires_at = Some(since));
    actor.restore_all(std::slice::from_ref(&job)).await;
    actor.lists(JobState::Dead, &[job]).await;

    actor.redrive(&Selection::All).await.expect("answered");

    delivers(&actor, ["job"]).await;
}

case!(a_restored_dead_letter_is_purged: R34 R23 => Restore);
/// A purge of dead jobs removes restored ones, and the id stays known for a while.
async fn a_restored_dead_letter_is_purged(store: &Store) {
    let actor = store.actor("worker").await;
    actor.restore_all(&["a", "b"].map(|it| was_dead(it, yesterday(store)))).await;

    assert_eq!(actor.purge_dead(&only("a")).await.expect("answered"), 1, "R34");

    assert_eq!(listed(&actor.list(JobState::Dead, 10).await), ["b"], "R34");
    let again = actor.restore(&[was_dead("a", yesterday(store))]).await;
    assert_eq!(again, [duplicate(&id("a"), DuplicateOf::Id)], "R4");
    assert_eq!(actor.purge_dead(&Selection::All).await.expect("answered"), 1, "R34");
}

case!(a_letter_from_ahead_of_the_clock_is_selected: R34 R23 => Restore);
/// The other store's clock may be ahead of this one's. A job that died there just now is
/// among all dead jobs.
async fn a_letter_from_ahead_of_the_clock_is_selected(store: &Store) {
    let actor = store.actor("worker").await;
    let (ahead, far_ahead) = (now(store).plus(HELD), now(store).plus(2 * HELD));
    let letters =
        [("a", yesterday(store)), ("b", ahead), ("c", ahead), ("d", far_ahead)];
    actor.restore_all(&letters.map(|(name, since)| was_dead(name, since))).await;

    let redriven = actor.redrive(&Selection::All).await.expect("answered");

    assert_eq!(redriven, Redriven { moved: 4, duplicates: 0 }, "R34");
    actor.restore_all(&[was_dead("e", ahead), was_dead("f", far_ahead)]).await;
    assert_eq!(actor.purge_dead(&Selection::All).await.expect("answered"), 2, "R34");
    delivers(&actor, ["a", "b", "c", "d"]).await;
}

case!(a_purge_removes_what_is_restored: R34 R23 => Restore);
/// A purge of the queue removes restored jobs and their ids, so that they can be restored
/// again.
async fn a_purge_removes_what_is_restored(store: &Store) {
    let actor = store.actor("worker").await;
    let jobs = [was_ready("ready"), was_dead("dead", yesterday(store))];
    actor.restore_all(&jobs).await;

    assert_eq!(actor.purge().await.expect("answered"), 2, "R34");

    actor.restore_all(&jobs).await;
    delivers(&actor, ["ready"]).await;
}

case!(a_restored_dead_letter_is_found: R34 R31 => Restore Inspect);
/// A look-up finds a restored dead job, and a listing newest first begins with the one
/// that died last.
async fn a_restored_dead_letter_is_found(store: &Store) {
    let actor = store.actor("worker").await;
    let since = yesterday(store);
    let jobs = ["a", "b"].map(|it| was_dead(it, since));
    actor.restore_all(&jobs).await;

    let found = actor.look_up(&id("a")).await;

    let JobLookup::Stored(record) = found else { panic!("R31: {found:?}") };
    assert_eq!(record.job, jobs[0], "R34");
    assert_eq!(listed(&actor.list_newest(JobState::Dead, 1).await), ["b", "a"], "R31");
}

case!(restored_dead_letters_are_grouped: R34 => Restore);
/// Dead jobs are grouped by their errors, whether they died here or were restored.
async fn restored_dead_letters_are_grouped(store: &Store) {
    let actor = store.actor("worker").await;
    let since = yesterday(store);
    let mut jobs = ["a", "b", "c"].map(|it| was_dead(it, since));
    let error = jobs[0].last_error.clone();
    jobs[2].last_error = error;
    actor.restore_all(&jobs).await;

    let mut groups = DeadGroups::new(NonZeroU32::MAX);
    while groups.read_page(&*actor.queue()).await.expect("answered") {}

    let groups = groups.groups();
    let mut counts: Vec<_> = groups.iter().map(|group| group.jobs.len()).collect();
    counts.sort_unstable();
    assert_eq!(counts, [1, 2], "R34: {groups:?}");
}

case!(a_job_that_died_again_says_why: R34 R11 => Restore);
/// A restored job that is redriven and dies again has the new reason and error.
async fn a_job_that_died_again_says_why(store: &Store) {
    let actor = store.actor("worker").await;
    actor.restore_all(&[was_dead("job", yesterday(store))]).await;
    actor.redrive(&Selection::All).await.expect("answered");

    let taken = actor.take(1).await;
    assert_eq!(payloads(&taken), ["job"], "R34");
    actor.say(&taken[0], dead("another")).await;

    let found = actor.the_dead_one().await;
    assert_eq!(found.last_error.as_deref(), Some("another"), "R11");
    assert_eq!((found.attempt, found.id), (1, Some(JobId::new("job").expect("valid"))));
}
