//! One queue: its jobs, each in one state, and the steps between the states.

use std::{cmp::Reverse, collections::BTreeMap, num::NonZeroU32, time::Duration};

use relq_core::{
    Bytes, ClaimRequest, Delivery, Disposition, JobId, NewJob, PushToken, Receipt,
    Settlement, WorkerId,
    capabilities::ClaimBytes,
    environment::Timestamp,
    followers::CannotFollow,
    limits::{DEDUPLICATION_WINDOW, kept_error},
    operator::WorkerView,
    outcome::{DuplicateOf, Extended, Pushed, Recovered, Settled},
    results::JobResult,
    schedule::{Schedule, ScheduleName},
    unique::{OnDuplicate, Unique, UniqueKey},
};

use crate::followers::{EndedId, keeps_id};
use crate::inspect::is_listed;
use crate::job::{Job, Lease, StoredState, later, wait_until};
use crate::results::KeptResult;

/// Why an expired job was buried (R17).
const EXPIRED: &str = "expired before it was delivered";

/// The jobs of a queue, its counters, and its remembered leases, ids, push calls and
/// results.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// The jobs by their position in the queue.
    pub(crate) jobs: BTreeMap<u64, Job>,
    /// Leases of cancelled jobs, until a while after they would have expired. A heartbeat
    /// that names them may be repeated, so it does not end them.
    pub(crate) cancelled_leases: BTreeMap<u64, Timestamp>,
    /// Client-made ids of ended jobs, for as long as they are remembered (R4).
    pub(crate) ended_ids: BTreeMap<JobId, EndedId>,
    /// The results of push calls with a token, and until when they are remembered (R4).
    pub(crate) push_calls: BTreeMap<PushToken, (Vec<Pushed>, Timestamp)>,
    /// The records of the jobs that keep their results (R29).
    pub(crate) results: BTreeMap<JobId, KeptResult>,
    /// The schedules by name (R28).
    pub(crate) schedules: BTreeMap<ScheduleName, Schedule>,
    /// The workers that have reported, and until when each is listed (R33).
    pub(crate) workers: BTreeMap<WorkerId, WorkerView>,
    pub(crate) is_paused: bool,
    pub(crate) finished: u64,
    pub(crate) discarded: u64,
    pub(crate) cancelled: u64,
    /// The last number used: positions and leases share one sequence.
    pub(crate) last_number: u64,
}

impl State {
    /// Stores jobs, each with the id that it gets if it has none of its own. Returns the
    /// results of the first call if the token is known (R4). Refuses the call if one of
    /// them cannot follow its leader (R30).
    pub(crate) fn push(
        &mut self,
        jobs: Vec<(JobId, NewJob)>,
        token: Option<&PushToken>,
        now: Timestamp,
    ) -> Result<Vec<Pushed>, (JobId, CannotFollow)> {
        let call = token.and_then(|token| self.push_calls.get(token));
        if let Some((results, until)) = call
            && *until > now
        {
            return Ok(results.clone());
        }
        self.check_leaders(&jobs, now)?;
        self.promote(usize::MAX, now);
        let results: Vec<_> =
            jobs.into_iter().map(|(id, job)| self.push_one(id, job, now)).collect();
        if let Some(token) = token {
            let until = now.plus(DEDUPLICATION_WINDOW);
            self.push_calls.insert(token.clone(), (results.clone(), until));
        }
        Ok(results)
    }

    /// Stores one job, whose leader has been checked.
    pub(crate) fn push_one(
        &mut self,
        id: JobId,
        job: NewJob,
        now: Timestamp,
    ) -> Pushed {
        if self.knows(&id, now) {
            return Pushed::Duplicate { existing: id, by: DuplicateOf::Id };
        }
        if let Some(unique) = &job.unique
            && let Some(position) = self.live_holder(&unique.key, now)
        {
            return self.yield_to(position, unique, later(now, job.delay));
        }
        if job.keep_result.is_some() {
            self.results.insert(id.clone(), KeptResult::NEW);
        }
        let leader = job.after.clone().filter(|leader| self.is_live_leader(leader));
        let job = Job::new(id.clone(), job, now);
        self.enqueue(match leader {
            Some(leader) => job.held_by(leader),
            None => job,
        });
        Pushed::Stored(id)
    }

    /// The position of the job that holds a unique key. A holder that has expired is
    /// buried, which frees the key (R16). A held one gives its key away and stays held (R30).
    pub(crate) fn live_holder(
        &mut self,
        key: &UniqueKey,
        now: Timestamp,
    ) -> Option<u64> {
        let is_it = |job: &Job| {
            !job.is_dead() && job.job.unique.as_ref().is_some_and(|one| one.key == *key)
        };
        let (position, job) = self.jobs.iter_mut().find(|(_, job)| is_it(job))?;
        if !job.has_expired(now) {
            return Some(*position);
        }
        if job.leader().is_some() {
            job.job.unique = None;
        } else {
            job.bury(EXPIRED, now);
        }
        None
    }

    fn yield_to(&mut self, holder: u64, unique: &Unique, due: Timestamp) -> Pushed {
        let mut job = self.jobs.remove(&holder).expect("it was found there");
        let existing = job.id.clone();
        let moves = unique.on_duplicate == OnDuplicate::Reschedule;
        if moves && job.due().is_some() {
            job.state = StoredState::Scheduled { due };
            self.enqueue(job);
        } else {
            self.jobs.insert(holder, job);
        }
        Pushed::Duplicate { existing, by: DuplicateOf::UniqueKey }
    }

    /// Puts a job at the back of the queue.
    pub(crate) fn enqueue(&mut self, job: Job) {
        let position = self.next_number();
        self.jobs.insert(position, job);
    }

    fn finish(&mut self, job: Job, result: Bytes, now: Timestamp) {
        self.finished += 1;
        self.end(job, JobResult::Done { result }, now);
    }

    /// Ends a job that was removed: remembers it, and releases or cancels its followers.
    pub(crate) fn end(&mut self, job: Job, result: JobResult, now: Timestamp) {
        let was_done = matches!(result, JobResult::Done { .. });
        let id = job.id.clone();
        self.remember(job, result, now);
        self.end_of_leader(id, was_done, now);
    }

    /// Remembers a job that has ended: how, if its producer asked for it (R29), and its
    /// id, if the producer asked for that or made the id (R4).
    pub(crate) fn remember(&mut self, job: Job, result: JobResult, now: Timestamp) {
        let was_done = matches!(result, JobResult::Done { .. });
        if let Some(keep_result) = job.job.keep_result {
            let kept = KeptResult::Ended { result, until: later(now, keep_result) };
            self.results.insert(job.id.clone(), kept);
        }
        if keeps_id(&job.job) {
            // Remember the id for as long as the result, so that no other job takes it.
            let kept = job.job.keep_result.unwrap_or_default();
            let until = later(now, DEDUPLICATION_WINDOW.max(kept));
            self.ended_ids.insert(job.id, EndedId { until, was_done });
        }
    }

    /// Leases ready jobs, the most urgent first (R15), including those that have just
    /// become due (R14). Buries those that have expired (R17).
    pub(crate) fn claim(
        &mut self,
        ask: &ClaimRequest,
        most: usize,
        now: Timestamp,
    ) -> Vec<Delivery> {
        if self.is_paused {
            return Vec::new();
        }
        self.promote(usize::MAX, now);
        let ready = self.jobs.values_mut().filter(|job| job.is_ready());
        ready.filter(|job| job.has_expired(now)).for_each(|job| job.bury(EXPIRED, now));
        let mut ready: Vec<_> =
            self.jobs.iter().filter(|(_, job)| job.is_ready()).collect();
        ready.sort_by_key(|(_, job)| Reverse(job.job.priority));
        let mut bytes = ClaimBytes::default();
        let fit =
            ready.into_iter().take_while(|(_, job)| bytes.take(job.job.total_bytes()));
        let positions: Vec<_> = fit.map(|(position, _)| *position).take(most).collect();
        positions.into_iter().map(|position| self.lease(position, ask, now)).collect()
    }

    fn lease(&mut self, position: u64, ask: &ClaimRequest, now: Timestamp) -> Delivery {
        let number = self.next_number();
        let job = self.jobs.get_mut(&position).expect("it is in the line");
        let length = job.job.lease.unwrap_or(ask.lease);
        job.attempt += 1;
        job.state = StoredState::Leased(Lease {
            worker: ask.worker.clone(),
            number,
            since: now,
            until: later(now, length),
        });
        job.delivery(number, length)
    }

    /// The position of the job that this receipt holds; `None` if its lease is lost
    /// (R7).
    pub(crate) fn held(&self, receipt: &Receipt) -> Option<u64> {
        let is_it = |job: &Job| {
            let number = job.lease().map(|lease| lease.number.to_be_bytes());
            number.is_some_and(|number| number[..] == receipt.token()[..])
                && job.id == *receipt.job()
                && job.attempt == receipt.attempt()
        };
        self.jobs.iter().find(|(_, job)| is_it(job)).map(|(position, _)| *position)
    }

    pub(crate) fn settle(&mut self, done: &Settlement, now: Timestamp) -> Settled {
        let Some(position) = self.held(&done.receipt) else {
            return Settled::LeaseLost;
        };
        let mut job = self.jobs.remove(&position).expect("it was found there");
        match &done.disposition {
            Disposition::Done => self.finish(job, Bytes::new(), now),
            Disposition::DoneWith { result } => self.finish(job, result.clone(), now),
            Disposition::Discard => {
                self.discarded += 1;
                self.end(job, JobResult::Discarded, now);
            }
            Disposition::GiveBack => self.give_back(position, job),
            Disposition::Dead { error } => {
                let error = kept_error(error);
                job.last_error = Some(error.to_owned());
                job.bury(&format!("its worker buried it: {error}"), now);
                self.jobs.insert(position, job);
            }
            Disposition::Postpone { after } => {
                job.attempt -= 1;
                self.run_again(job, *after, now);
            }
            Disposition::Retry { after, error } => {
                let error = kept_error(error);
                job.last_error = Some(error.to_owned());
                if job.is_out_of_attempts() {
                    job.bury(&format!("out of attempts: {error}"), now);
                    self.enqueue(job);
                } else {
                    self.run_again(job, *after, now);
                }
            }
        }
        Settled::Applied
    }

    /// Lets a job run again after a delay. Without one it is ready now, behind the jobs that
    /// are ready or due, because these became ready before it (R13).
    fn run_again(&mut self, mut job: Job, after: Duration, now: Timestamp) {
        if after.is_zero() {
            self.promote(usize::MAX, now);
        }
        job.state = wait_until(after, now);
        job.ready_at = now;
        self.enqueue(job);
    }

    /// Puts a job back at its old position, which is before all waiting jobs (R24).
    fn give_back(&mut self, position: u64, mut job: Job) {
        job.attempt -= 1;
        job.state = StoredState::Ready;
        self.jobs.insert(position, job);
    }

    pub(crate) fn extend(
        &mut self,
        receipt: &Receipt,
        lease: Duration,
        now: Timestamp,
    ) -> Extended {
        let until = later(now, lease);
        if let Some(position) = self.held(receipt)
            && let Some(Job { state: StoredState::Leased(lease), .. }) =
                self.jobs.get_mut(&position)
        {
            lease.until = until;
            return Extended::Until(until);
        }
        let number = receipt.token()[..].try_into().map(u64::from_be_bytes);
        match number.ok().and_then(|number| self.cancelled_leases.get(&number)) {
            Some(_) => Extended::Cancelled,
            None => Extended::LeaseLost,
        }
    }

    pub(crate) fn release_worker(&mut self, worker: &WorkerId) -> u64 {
        self.workers.remove(worker);
        let is_theirs =
            |job: &Job| job.lease().is_some_and(|lease| lease.worker == *worker);
        let held = self.jobs.extract_if(.., |_, job| is_theirs(job));
        let held: Vec<_> = held.collect();
        let count = held.len() as u64;
        held.into_iter().for_each(|(position, job)| self.give_back(position, job));
        count
    }

    /// Recovers one page of jobs that are overdue or due (R9, R14).
    pub(crate) fn recover(&mut self, page: NonZeroU32, now: Timestamp) -> Recovered {
        self.cancelled_leases.retain(|_, until| *until > now);
        self.ended_ids.retain(|_, ended| ended.until > now);
        self.push_calls.retain(|_, (_, until)| *until > now);
        self.workers.retain(|_, worker| is_listed(worker, now));
        self.results.retain(|_, kept| !kept.is_outdated(now));
        let mut done = Recovered::default();
        let overdue = self.jobs.values_mut();
        let overdue =
            overdue.filter(|job| job.lease().is_some_and(|one| one.until <= now));
        for job in overdue.take(page.get() as usize) {
            job.note_lost_lease();
            if job.is_out_of_attempts() {
                job.bury("out of attempts: its last lease was lost", now);
                done.buried += 1;
            } else {
                job.state = StoredState::Ready;
                done.requeued += 1;
            }
        }
        let left = page.get() - done.buried - done.requeued;
        done.promoted = self.promote(left as usize, now);
        let next = self.next_end();
        done.more = next.is_some_and(|next| next <= now);
        done.next_in = next.map(|next| next.since(now));
        done
    }

    /// Makes up to `most` due jobs ready, the earliest first.
    pub(crate) fn promote(&mut self, most: usize, now: Timestamp) -> u32 {
        let mut due: Vec<_> = self
            .jobs
            .iter()
            .filter_map(|(position, job)| Some((job.due()?, *position)))
            .filter(|(due, _)| *due <= now)
            .collect();
        due.sort_unstable();
        due.truncate(most);
        for (_, position) in &due {
            let mut job = self.jobs.remove(position).expect("it was found there");
            job.state = StoredState::Ready;
            job.ready_at = now;
            self.enqueue(job);
        }
        u32::try_from(due.len()).unwrap_or(u32::MAX)
    }

    /// When the next lease expires or the next delay ends; `None` if there is neither.
    fn next_end(&self) -> Option<Timestamp> {
        let end = |job: &Job| job.due().or_else(|| Some(job.lease()?.until));
        self.jobs.values().filter_map(end).min()
    }

    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records that are kept for a time only do not stay for ever: one record of each
    /// kind is outdated. A new field of the state must be named here.
    #[test]
    fn a_recovery_removes_all_that_is_outdated() {
        let now = Timestamp::from_unix_ms(1_000_000);
        let (id, worker) = (JobId::new("job").unwrap(), WorkerId::new("w").unwrap());
        let mut state = State::default();
        let ended = KeptResult::Ended { result: JobResult::Discarded, until: now };
        state.results.insert(id.clone(), ended);
        state.ended_ids.insert(id, EndedId { until: now, was_done: true });
        state.push_calls.insert(PushToken::new("call").unwrap(), (Vec::new(), now));
        state.cancelled_leases.insert(7, now);
        let view = WorkerView::new(worker.clone(), NonZeroU32::MIN, now).until(now);
        state.workers.insert(worker, view);

        state.recover(NonZeroU32::MIN, now);

        let State {
            jobs: _,
            cancelled_leases,
            ended_ids,
            push_calls,
            results,
            schedules: _,
            workers,
            is_paused: _,
            finished: _,
            discarded: _,
            cancelled: _,
            last_number: _,
        } = state;
        for (what, left) in [
            ("cancelled lease", cancelled_leases.len()),
            ("id of an ended job", ended_ids.len()),
            ("push call", push_calls.len()),
            ("result", results.len()),
            ("worker", workers.len()),
        ] {
            assert_eq!(left, 0, "R4, R29, R33: an outdated {what} is kept");
        }
    }
}
