//! Followers: jobs that are held until their leader is done (R30).
//!
//! ```text
//!  push               jobs: scheduled, never due    followers: a row
//!  the leader is      jobs: ready, or scheduled     followers: its rows are removed
//!    done                   by the delay
//!  the leader ends    jobs: unchanged               followers: its rows are orphaned
//!    otherwise
//!  after that step,   jobs: the row is removed,     followers: the row is removed, and
//!    and recover            as by a cancel                     its own are orphaned
//! ```
//!
//! The first three rows are each one transaction. The last may take several: the orphaned
//! rows are a work list. A call that orphans followers cancels as many as one step may,
//! and `recover` cancels the others, so nothing is lost if the process is killed between.
//! An orphan is never released, because only a push gives a leader followers.

use std::collections::{BTreeMap, btree_map::Entry};

use relq_core::{
    JobId, NewJob,
    capabilities::ClaimBytes,
    followers::{CannotFollow, FollowerCount, MAX_FOLLOWERS},
};

use crate::failure::Failure;
use crate::push::is_remembered;
use crate::statements::{End, Ended};
use crate::store::Store;

/// The due time of a held follower: never.
pub(crate) const NEVER: i64 = i64::MAX;

/// How many followers a step released or orphaned. A step that ends several leaders stops
/// when they are many. It must cancel the orphaned ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use = "the orphaned followers must be cancelled"]
pub(crate) struct Moved {
    released: usize,
    orphaned: usize,
}

impl Moved {
    pub(crate) fn add(&mut self, other: Self) {
        self.released += other.released;
        self.orphaned += other.orphaned;
    }

    /// Whether so many followers were moved that the step should end.
    pub(crate) fn is_page(self, store: &Store<'_>) -> bool {
        self.released + self.orphaned >= store.page as usize
    }

    /// Cancels some of the orphaned followers, if there are any, and followers of these.
    pub(crate) fn cancel_orphans(self, store: &Store<'_>) -> Result<(), Failure> {
        if self.orphaned == 0 {
            return Ok(());
        }
        let most = u32::try_from(MAX_FOLLOWERS).unwrap_or(u32::MAX);
        cancel_orphans(store, most.min(store.page))
    }
}

/// Moves the followers of a job that has ended, in the transaction that ends it.
pub(crate) fn end_of_leader(
    store: &Store<'_>,
    leader: &str,
    is_done: bool,
) -> Result<Moved, Failure> {
    if !is_done {
        let orphaned = store.orphan_followers(leader)?;
        return Ok(Moved { orphaned, ..Moved::default() });
    }
    let count = store.count_followers(leader)?;
    if count > 0 {
        // Jobs that are due come before the followers, which become ready now (R13).
        store.promote_due(store.page)?;
        store.release_followers(leader, store.take_turns(count)?)?;
        store.wake_claims();
    }
    Ok(Moved { released: count as usize, ..Moved::default() })
}

/// Cancels up to `most` orphaned followers, and followers of these. Their bodies together
/// are no larger than those of one claim.
pub(crate) fn cancel_orphans(store: &Store<'_>, most: u32) -> Result<(), Failure> {
    let (mut room, mut bytes, mut cancelled) = (most, ClaimBytes::default(), 0);
    // The followers that this orphans are cancelled by this loop or by `recover`.
    let mut moved = Moved::default();
    while room > 0 {
        let page = store.orphans(room, |one| bytes.take(one.bytes))?;
        if page.is_empty() {
            break;
        }
        for orphan in page {
            room -= 1;
            store.remove_follower(orphan.job)?;
            if let Some(remembered) = &orphan.remembered {
                cancelled += 1;
                let end = End::Cancelled { leader: Some(&orphan.leader) };
                moved.add(store.remove_job(orphan.job, remembered, end)?);
            }
            if moved.is_page(store) {
                room = 0;
                break;
            }
        }
    }
    store.count_ended(Ended { cancelled, ..Ended::default() })
}

/// A job of a push, with its id.
pub(crate) struct Candidate<'a> {
    pub(crate) id: JobId,
    pub(crate) job: &'a NewJob,
    /// Whether an earlier job may have the id. Generated ids are always new.
    pub(crate) may_be_known: bool,
    /// Whether the job is held until its leader is done.
    pub(crate) is_held: bool,
}

/// Finds out which jobs of a call are held by their leaders. Refuses the call if one of
/// them cannot follow its leader. Changes nothing in the file (R5).
///
/// A job whose own id is known is a duplicate, whatever became of its leader.
pub(crate) fn check_leaders(
    store: &Store<'_>,
    jobs: &mut [Candidate<'_>],
) -> Result<(), Failure> {
    if jobs.iter().all(|candidate| candidate.job.after.is_none()) {
        return Ok(());
    }
    let mut leaders = Leaders { store, known: BTreeMap::new() };
    // Whether the ids of the earlier jobs of the call are remembered. A job with a unique
    // key is not among them, because another job may hold its key.
    let mut earlier: BTreeMap<JobId, bool> = BTreeMap::new();
    for candidate in jobs {
        let Candidate { id, job, .. } = candidate;
        if let Some(leader) = &job.after
            && !earlier.contains_key(id)
            && !(candidate.may_be_known && store.is_id_taken(id.as_str())?)
        {
            let is_earlier = earlier.get(leader).copied().unwrap_or_default();
            candidate.is_held = leaders.take(leader, is_earlier, job.total_bytes())?;
        }
        if job.unique.is_none() {
            earlier.entry(id.clone()).or_insert_with(|| is_remembered(job));
        }
    }
    Ok(())
}

/// The leaders of the jobs of a push, as far as it has looked at them.
struct Leaders<'a> {
    store: &'a Store<'a>,
    known: BTreeMap<&'a JobId, Leader>,
}

/// The state of one leader.
#[derive(Clone, Copy)]
enum Leader {
    /// It is stored, in any state.
    Live(FollowerCount),
    Ended {
        was_done: bool,
    },
    /// It is stored without a remembered id, so its end would release no follower.
    Nameless,
    Unknown,
}

impl<'a> Leaders<'a> {
    /// Counts another follower of a job. Returns whether the follower is held. Fails if it
    /// cannot follow that job.
    fn take(
        &mut self,
        leader: &'a JobId,
        is_earlier: bool,
        bytes: usize,
    ) -> Result<bool, Failure> {
        let refused = |why| Err(Failure::cannot_follow(leader, why));
        let known = match self.known.entry(leader) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(find(self.store, leader)?),
        };
        if let (Leader::Unknown, true) = (*known, is_earlier) {
            *known = Leader::Live(FollowerCount::default());
        }
        match known {
            Leader::Live(count) => match count.take(bytes) {
                true => Ok(true),
                false => refused(CannotFollow::TooMany),
            },
            Leader::Ended { was_done: true } => Ok(false),
            Leader::Ended { was_done: false } => refused(CannotFollow::NotDone),
            Leader::Nameless | Leader::Unknown => refused(CannotFollow::Unknown),
        }
    }
}

fn find(store: &Store<'_>, leader: &JobId) -> Result<Leader, Failure> {
    let row = store.find_leader(leader.as_str())?;
    Ok(match (row.keeps_id, row.was_done) {
        (Some(true), _) => Leader::Live(row.followers),
        (_, Some(was_done)) => Leader::Ended { was_done },
        (Some(false), None) => Leader::Nameless,
        (None, None) => Leader::Unknown,
    })
}
