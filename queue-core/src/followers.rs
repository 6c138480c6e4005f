//! Followers: jobs that become ready when another job is done (R30).
//!
//! A job that is pushed with [`NewJob::after`] is a *follower*; the job that it names is
//! its *leader*. Until the leader is done, the follower is *held*: scheduled, without a
//! due time.
//!
//! ```
//! use relq_core::{Error, JobId, NewJob, ReliableQueue, ReliableQueueExt};
//!
//! /// Makes a thumbnail of an image once the image is uploaded.
//! async fn upload(queue: &dyn ReliableQueue, id: JobId) -> Result<(), Error> {
//!     queue.push_one(NewJob::new("upload 42").id(id.clone())).await?;
//!     queue.push_one(NewJob::new("thumbnail 42").after(id)).await?;
//!     Ok(())
//! }
//! ```
//!
//! # What a push of a follower returns
//!
//! The backend looks at the ids first: a call whose token is known returns the first
//! result, and a follower whose own id is known is a duplicate, whatever became of its
//! leader (R4). Then it looks at the leaders of all other followers of the call, before
//! the first write (R5):
//!
//! | the leader | the push |
//! |---|---|
//! | is scheduled, held, ready, leased or dead | stores the follower, held |
//! | is done, and its id is remembered (R4) | stores the follower: ready, or scheduled by its delay |
//! | ended otherwise, and its id is remembered | is refused: [`CannotFollow::NotDone`] |
//! | never was, was forgotten, or has an id that is not remembered | is refused: [`CannotFollow::Unknown`] |
//! | has [`MAX_FOLLOWERS`] held followers, or [`MAX_FOLLOWERS_BYTES`] of them | is refused: [`CannotFollow::TooMany`] |
//!
//! Last come the unique keys (R16), so a follower may be a duplicate by its key. The
//! limits count it although it is not stored.
//!
//! A leader may stand in the same call, before its follower, if it has no unique key: with
//! one it may turn out to be a duplicate, and then there is no job of its id. The leader
//! that is stored already counts before one of the same call, which is a duplicate by id.
//!
//! An id is remembered if the client made it, or if the job keeps its result (R29).

use std::{collections::BTreeMap, fmt};

use crate::{
    ClaimRequest, Error, JobId, NewJob, capabilities::Capabilities, error::Operation,
};

/// The most held followers of one leader. The step that ends the leader moves all of them.
pub const MAX_FOLLOWERS: usize = 100;

/// The largest total size of the held followers of one leader, in bytes as they are
/// stored. If a leader has a single follower, it may have any size.
pub const MAX_FOLLOWERS_BYTES: usize = ClaimRequest::MAX_BYTES;

/// Why a job cannot follow the job that it names (R30).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CannotFollow {
    /// The queue knows no job of this id: it never was, it ended so long ago that its id
    /// is forgotten, or its id is not remembered.
    Unknown,
    /// The leader was discarded, cancelled, dropped with its batch, or purged from the
    /// dead.
    NotDone,
    /// The leader has as many followers as one job may have.
    TooMany,
}

impl fmt::Display for CannotFollow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str("no job with this id is remembered"),
            Self::NotDone => f.write_str("it has ended, and was not done"),
            Self::TooMany => write!(
                f,
                "it has {MAX_FOLLOWERS} followers or {MAX_FOLLOWERS_BYTES} bytes of them, \
                 the most allowed: let one follower push the others, or push a batch"
            ),
        }
    }
}

/// Counts the held followers of one leader, against [`MAX_FOLLOWERS`] and
/// [`MAX_FOLLOWERS_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FollowerCount {
    count: usize,
    bytes: usize,
}

impl FollowerCount {
    /// A leader that has `count` followers of `bytes` bytes together.
    pub fn new(count: usize, bytes: usize) -> Self {
        Self { count, bytes }
    }

    /// Counts another follower of `bytes` bytes, and returns whether the leader may have
    /// it. A follower that is refused is not counted.
    #[must_use]
    pub fn take(&mut self, bytes: usize) -> bool {
        let all = self.bytes.saturating_add(bytes);
        let fits = self.count == 0 || all <= MAX_FOLLOWERS_BYTES;
        if !fits || self.count >= MAX_FOLLOWERS {
            return false;
        }
        *self = Self { count: self.count + 1, bytes: all };
        true
    }
}

impl Capabilities {
    /// Refuses the followers of a call that cannot be stored whatever the store holds.
    pub(crate) fn check_leaders(
        &self,
        operation: Operation,
        jobs: &[NewJob],
    ) -> Result<(), Error> {
        if jobs.iter().all(|job| job.after.is_none()) {
            return Ok(());
        }
        let mut unique: BTreeMap<&JobId, usize> = BTreeMap::new();
        for (place, job) in (1..).zip(jobs) {
            let leader = job.after.as_ref();
            if let Some(leader) = leader.filter(|_| job.id == job.after) {
                let reason = format!("the job \"{leader}\" follows itself");
                return Err(self.invalid(operation, reason));
            }
            if let Some(earlier) = leader.and_then(|leader| unique.get(leader)) {
                let reason = format!(
                    "job {place} follows job {earlier} of the same call, which has a \
                     unique key: push that one first"
                );
                return Err(self.invalid(operation, reason));
            }
            if let (Some(id), true) = (&job.id, job.unique.is_some()) {
                unique.entry(id).or_insert(place);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        capabilities::{Capability, LeaseScope, Limits, Order, RecoveryBound},
        unique::UniqueKey,
    };

    fn capabilities(supported: &'static [Capability]) -> Capabilities {
        Capabilities {
            backend: "some",
            supported: supported.into(),
            priorities: crate::Priority::NORMAL..=crate::Priority::NORMAL,
            lateness: Duration::ZERO,
            order: Order::Fifo,
            lease_scope: LeaseScope::Job,
            recovery: RecoveryBound::LeaseAndReaper,
            limits: Limits::DEFAULT,
        }
    }

    const ALL: &[Capability] =
        &[Capability::ClientIds, Capability::Unique, Capability::Followers];

    fn id(text: &str) -> JobId {
        JobId::new(text).unwrap()
    }

    fn unique(job: NewJob) -> NewJob {
        job.unique(UniqueKey::new("key").unwrap())
    }

    fn refusal(jobs: &[NewJob]) -> Option<String> {
        capabilities(ALL).check_push(jobs, false).err().map(|error| error.to_string())
    }

    #[test]
    fn a_backend_without_followers_refuses_them_by_name() {
        let without = capabilities(&[Capability::ClientIds]);
        let jobs = ["plain".into(), NewJob::new("job").after(id("a"))];

        let refused = without.check_push(&jobs, false).unwrap_err().to_string();

        let wanted = "some push: a job to follow is not an option of this backend";
        assert_eq!(refused, wanted);
    }

    /// The backend of the parts may have these options, so the refusal names the parts.
    #[test]
    fn a_queue_of_several_parts_is_refused_as_such() {
        let mut parts = capabilities(&[Capability::ClientIds]);
        parts.order = Order::ByPart;
        let refusal = |job| parts.check_push(&[job], false).unwrap_err().to_string();

        let follows = refusal(NewJob::new("job").after(id("a")));
        let kept = refusal(NewJob::new("job").keep_result(Duration::from_secs(1)));

        let ending =
            "in a queue of several partitions is not an option of this backend";
        assert_eq!(follows, format!("some push: a job to follow {ending}"));
        assert_eq!(kept, format!("some push: a kept result {ending}"));
        assert_eq!(parts.subject(), "a queue of several partitions");
        assert_eq!(capabilities(&[]).subject(), "the backend some");
    }

    #[test]
    fn no_job_follows_itself() {
        let itself = NewJob::new("job").id(id("a")).after(id("a"));

        let wanted = "some push: the job \"a\" follows itself".to_owned();
        assert_eq!(refusal(&[itself]), Some(wanted));
        let other = NewJob::new("job").id(id("b")).after(id("a"));
        assert_eq!(refusal(&[other]), None);
    }

    #[test]
    fn a_leader_of_the_same_call_has_no_unique_key() {
        let leader = NewJob::new("leader").id(id("a"));
        let follower = || NewJob::new("follower").after(id("a"));
        let wanted = "some push: job 3 follows job 1 of the same call, which has a unique \
                      key: push that one first";

        let refused =
            refusal(&[unique(leader.clone()), follower().after(id("b")), follower()]);
        assert_eq!(refused.as_deref(), Some(wanted));
        assert_eq!(refusal(&[leader.clone(), unique(follower())]), None);
        assert_eq!(refusal(&[follower(), unique(leader)]), None, "it is not earlier");
    }

    #[test]
    fn a_leader_has_a_hundred_followers_or_a_mebibyte_of_them() {
        let fitting = |sizes: &[usize]| {
            let mut count = FollowerCount::default();
            sizes.iter().filter(|size| count.take(**size)).count()
        };
        assert_eq!(fitting(&[0; 101]), MAX_FOLLOWERS);
        assert_eq!(fitting(&[MAX_FOLLOWERS_BYTES + 1, 1]), 1);
        assert_eq!(fitting(&[MAX_FOLLOWERS_BYTES, 0, 1]), 2);
        assert_eq!(
            fitting(&[1, MAX_FOLLOWERS_BYTES, 1]),
            2,
            "the second is not counted"
        );
        assert!(!FollowerCount::new(MAX_FOLLOWERS, 0).take(0));
    }

    #[test]
    fn pieces_completion_jobs_and_ticks_follow_no_job() {
        use crate::batch::{BatchId, NewBatch, OnComplete};

        let some = capabilities(ALL);
        let follower = || NewJob::new("job").after(id("a"));
        let batch = NewBatch::new(BatchId::new("b").unwrap())
            .on_complete(OnComplete::new(follower()));

        let refusals = [
            some.check_pieces(&[follower()], false),
            some.check_new_batch(&batch),
            some.check_tick(&follower()),
        ];
        let refusals = refusals.map(|refused| refused.unwrap_err().to_string());

        let wanted = [
            "some add pieces: a piece has no job to follow of its own",
            "some create batch: a completion job has no job to follow of its own",
            "some push tick: the job of a tick has no job to follow",
        ];
        assert_eq!(refusals, wanted);
    }
}
