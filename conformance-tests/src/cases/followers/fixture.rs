//! Helpers and assertions for the cases of followers.

use bytes::Bytes;
use relq_core::{
    Delivery, Disposition, Error, JobId, NewJob,
    error::{Effect, RetryAdvice},
    followers::CannotFollow,
    operator::{JobState, StateDetail},
};

use crate::harness::{
    actor::Actor,
    checks::{assert_applied, id, payloads, settle_all},
};

/// A job that others can follow: its id and its payload are `name`.
pub(super) fn named(name: &'static str) -> NewJob {
    NewJob::new(name).id(id(name))
}

/// A job that follows the job with the id `leader`.
pub(super) fn following(leader: &str, payload: impl Into<Bytes>) -> NewJob {
    NewJob::new(payload).after(id(leader))
}

impl Actor {
    /// Asserts that these jobs are held, each as (leader, payload), and no others, in any
    /// order.
    pub(super) async fn assert_held<P: Into<Bytes>>(
        &self,
        wanted: impl IntoIterator<Item = (&str, P)>,
    ) {
        let scheduled = self.list(JobState::Scheduled, 10).await;
        let held = scheduled.into_iter().filter_map(|job| match job.detail {
            StateDetail::Following { leader, .. } => Some((leader, job.payload)),
            _ => None,
        });
        let mut held: Vec<(JobId, Bytes)> = held.collect();
        held.sort();
        let wanted = wanted.into_iter();
        let mut wanted: Vec<_> =
            wanted.map(|(leader, payload)| (id(leader), payload.into())).collect();
        wanted.sort();
        assert_eq!(held, wanted, "R30: the held jobs");
    }

    /// Asserts that a claim finds these jobs, in this order, and no others.
    pub(super) async fn assert_served<P: Into<Bytes>>(
        &self,
        wanted: impl IntoIterator<Item = P>,
    ) {
        let wanted: Vec<Bytes> = wanted.into_iter().map(Into::into).collect();
        let most = u32::try_from(wanted.len() + 1).expect("few jobs");
        assert_eq!(payloads(&self.take(most).await), wanted, "R30: the ready jobs");
    }

    /// Asserts that no job is ready, also after a recovery.
    pub(super) async fn assert_none_ready(&self, why: &str) {
        self.recover_all().await;
        assert_eq!(payloads(&self.take(1).await), [""; 0], "R30: {why}");
    }

    /// Asserts that a push is refused because one of the jobs cannot follow `leader`, and
    /// that nothing is stored.
    pub(super) async fn assert_cannot_follow(
        &self,
        jobs: &[NewJob],
        leader: &JobId,
        reason: CannotFollow,
    ) {
        let before = self.figures().await;
        let refused = self.push(jobs, None).await.expect_err("R30: it cannot follow");
        let wanted = (leader, reason);
        let is_it = matches!(
            &refused,
            Error::CannotFollow { leader, why, .. } if (leader, *why) == wanted
        );
        assert!(is_it, "R30: {wanted:?}, not {refused}");
        assert_eq!(refused.effect(), Effect::No, "R21");
        assert_eq!(refused.retry_advice(), RetryAdvice::Never, "R21");
        let after = self.figures().await;
        assert_eq!(after.unfinished(), before.unfinished(), "R5: nothing is stored");
    }
    /// Asserts that no job with this id is known that a push could follow.
    pub(super) async fn assert_cannot_follow_unknown(&self, leader: &str) {
        let jobs = [following(leader, "follower")];
        self.assert_cannot_follow(&jobs, &id(leader), CannotFollow::Unknown).await;
    }

    /// Acks jobs by one call, and asserts that each ack is applied.
    pub(super) async fn finish_all(&self, held: &[Delivery]) {
        assert_applied(&settle_all(self, held, &Disposition::Done).await);
    }
}
