//! Followers: jobs that are held until their leader is done (R30).

use std::collections::BTreeMap;

use relq_core::{
    JobId, NewJob,
    environment::Timestamp,
    followers::{CannotFollow, FollowerCount},
    results::JobResult,
};

use crate::{
    job::{Job, StoredState, wait_until},
    state::State,
};

/// How a job ended, and until when its id is remembered (R4).
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndedId {
    pub(crate) until: Timestamp,
    pub(crate) was_done: bool,
}

/// The state of the job that another one is to follow.
enum Leader {
    /// It is stored, in any state.
    Live,
    Ended(EndedId),
    Unknown,
}

impl State {
    /// Checks that each job of a call that is to follow another one can. Jobs whose own id
    /// is known are duplicates, whatever became of their leaders. Changes nothing (R5).
    pub(crate) fn check_leaders(
        &self,
        jobs: &[(JobId, NewJob)],
        now: Timestamp,
    ) -> Result<(), (JobId, CannotFollow)> {
        let mut counts: BTreeMap<&JobId, FollowerCount> = BTreeMap::new();
        // The earlier jobs of the call that are stored, or are duplicates by id. A job with a
        // unique key is not among them, because another job may hold its key.
        let mut earlier: BTreeMap<&JobId, &NewJob> = BTreeMap::new();
        for (id, job) in jobs {
            if let Some(leader) = &job.after
                && !self.knows(id, now)
                && !earlier.contains_key(id)
            {
                let refused = |why| (leader.clone(), why);
                let is_earlier = earlier.get(leader).is_some_and(|job| keeps_id(job));
                match self.leader(leader, now) {
                    Leader::Ended(ended) if ended.was_done => {}
                    Leader::Ended(_) => return Err(refused(CannotFollow::NotDone)),
                    // An earlier job of the call that is a duplicate is not stored.
                    Leader::Unknown if !is_earlier || self.knows(leader, now) => {
                        return Err(refused(CannotFollow::Unknown));
                    }
                    Leader::Live | Leader::Unknown => {
                        let count = counts.entry(leader);
                        let count = count.or_insert_with(|| self.count(leader));
                        if !count.take(job.total_bytes()) {
                            return Err(refused(CannotFollow::TooMany));
                        }
                    }
                }
            }
            if job.unique.is_none() {
                earlier.entry(id).or_insert(job);
            }
        }
        Ok(())
    }

    /// Whether a job has this id, or had it and the id is remembered.
    pub(crate) fn knows(&self, id: &JobId, now: Timestamp) -> bool {
        let is_ended = self.ended_ids.get(id).is_some_and(|ended| ended.until > now);
        is_ended || self.jobs.values().any(|job| job.id == *id)
    }

    fn leader(&self, id: &JobId, now: Timestamp) -> Leader {
        if self.is_live_leader(id) {
            return Leader::Live;
        }
        let ended = self.ended_ids.get(id).filter(|ended| ended.until > now);
        ended.map_or(Leader::Unknown, |ended| Leader::Ended(*ended))
    }

    /// Whether a stored job has this id, and the id is remembered.
    pub(crate) fn is_live_leader(&self, id: &JobId) -> bool {
        self.jobs.values().any(|job| job.id == *id && keeps_id(&job.job))
    }

    fn count(&self, leader: &JobId) -> FollowerCount {
        let held = self.jobs.values().filter(|job| job.leader() == Some(leader));
        let (count, bytes) = held.fold((0, 0), |(count, bytes), job| {
            (count + 1, bytes + job.job.total_bytes())
        });
        FollowerCount::new(count, bytes)
    }

    /// Releases the followers of a job that is done. If the job ended otherwise, cancels
    /// them, and then their own followers.
    pub(crate) fn end_of_leader(
        &mut self,
        leader: JobId,
        was_done: bool,
        now: Timestamp,
    ) {
        if was_done {
            self.take_followers(&leader).into_iter().for_each(|job| {
                let state = wait_until(job.job.delay, now);
                self.enqueue(Job { state, ready_at: now, ..job });
            });
            return;
        }
        let mut ended = vec![leader];
        while let Some(leader) = ended.pop() {
            for job in self.take_followers(&leader) {
                ended.push(job.id.clone());
                self.cancelled += 1;
                let leader = Some(leader.clone());
                self.remember(job, JobResult::Cancelled { leader }, now);
            }
        }
    }

    /// Removes the held followers of a job, and returns them in the order of their pushes.
    fn take_followers(&mut self, leader: &JobId) -> Vec<Job> {
        let held = self.jobs.extract_if(.., |_, job| job.leader() == Some(leader));
        held.map(|(_, job)| job).collect()
    }

    /// A sentence for each follower whose leader is not stored.
    pub(crate) fn lost_followers(&self) -> Vec<String> {
        let lost = |job: &Job| {
            let leader = job.leader().filter(|leader| !self.is_live_leader(leader))?;
            Some(format!("job {} follows {leader}, which has ended", job.id))
        };
        self.jobs.values().filter_map(lost).collect()
    }
}

impl Job {
    /// The job that must be done before this one becomes ready. `None` for a job that is
    /// not held.
    pub(crate) fn leader(&self) -> Option<&JobId> {
        match &self.state {
            StoredState::Held { leader } => Some(leader),
            _ => None,
        }
    }

    /// Holds a new job until its leader is done.
    pub(crate) fn held_by(self, leader: JobId) -> Self {
        Self { state: StoredState::Held { leader }, ..self }
    }
}

/// Whether the id of a job is remembered after its end: the client made it, or asked for
/// the result (R4, R29).
pub(crate) fn keeps_id(job: &NewJob) -> bool {
    job.id.is_some() || job.keep_result.is_some()
}
