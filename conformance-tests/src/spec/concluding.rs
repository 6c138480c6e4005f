//! The end of an operation: adds the states that time may have caused, and rules out the
//! states that the states of other jobs exclude.

use std::collections::BTreeMap;

use super::{
    possible_state::{JobLocation, PossibleState},
    ready_order::{LAST, ReadyPosition},
    reference::{CheckResult, Job, Reference, add},
    sequence::Steps,
};

impl Reference {
    /// Ends an operation. Adds the states that the passing of time may have caused, and
    /// rules out the states of a job that contradict what is known about other jobs.
    pub(crate) fn conclude(&mut self) -> CheckResult {
        self.add_due_and_expired();
        self.tend_batches();
        self.follow_leaders();
        self.all_or_none()?;
        self.settled_together()?;
        self.one_holder()?;
        self.ticks_are_whole()?;
        self.step += 1;
        Ok(())
    }

    /// Adds the states that any call may cause: due jobs may be ready, and expired jobs
    /// may be buried.
    fn add_due_and_expired(&mut self) {
        let (now, step) = (self.now, self.step);
        for job in &mut self.jobs {
            for possible in job.possible_states.clone() {
                if let JobLocation::Scheduled { due } = possible.location
                    && due <= now
                    && !job.possible_states.iter().any(|other| other.fell_due_at(due))
                {
                    let from = (step, 0);
                    let position =
                        ReadyPosition::Back { from, to: LAST, due: Some(due) };
                    add(
                        &mut job.possible_states,
                        possible.at(JobLocation::Ready(position)),
                    );
                }
                let waits = matches!(
                    possible.location,
                    JobLocation::Scheduled { .. } | JobLocation::Ready(_)
                );
                if waits && possible.may_be_expired(now) {
                    add(&mut job.possible_states, possible.at(JobLocation::Dead));
                }
            }
        }
    }

    /// R5: if one job of a push is certainly stored, all are. If one is certainly not,
    /// none is. The same holds for the jobs of one step of a restore (R34).
    fn all_or_none(&mut self) -> CheckResult {
        let is_absent = PossibleState::is_absent;
        for at in 0..self.jobs.len() {
            let call = self.jobs[at].call;
            let possible_states = &self.jobs[at].possible_states;
            let stored = !possible_states.iter().any(is_absent);
            let absent = possible_states.iter().all(is_absent);
            let is_own_step =
                self.jobs[at].past.is_some() && self.steps == Steps::OfOneJob;
            if is_own_step || !stored && !absent {
                continue;
            }
            for other in 0..self.jobs.len() {
                if self.jobs[other].call == call {
                    self.keep(other, "R5, all or nothing", |possible| {
                        is_absent(possible) == absent
                    })?;
                }
            }
        }
        Ok(())
    }

    /// R8: a settlement call whose reply was lost has settled all of its jobs or none. As
    /// soon as one job shows which, the possible states of the others that contradict it
    /// are dropped.
    fn settled_together(&mut self) -> CheckResult {
        let decided: BTreeMap<_, _> = self.jobs.iter().filter_map(Job::link).collect();
        let is_decided = |possible: &PossibleState| {
            possible.linked.is_some_and(|it| decided.contains_key(&it.call))
        };
        for at in 0..self.jobs.len() {
            if !self.jobs[at].possible_states.iter().any(is_decided) {
                continue;
            }
            self.keep(at, "ALL-OR-NONE, R8: settled in part", |possible| {
                possible.linked.is_none_or(|it| {
                    decided
                        .get(&it.call)
                        .is_none_or(|happened| *happened == it.happened)
                })
            })?;
            let kept = std::mem::take(&mut self.jobs[at].possible_states);
            for mut possible in kept {
                if is_decided(&possible) {
                    possible.linked = None;
                }
                add(&mut self.jobs[at].possible_states, possible);
            }
        }
        Ok(())
    }

    /// R16: if one job certainly holds a key, no other job holds it.
    fn one_holder(&mut self) -> CheckResult {
        let now = self.now;
        for at in 0..self.jobs.len() {
            let Some(key) = self.jobs[at].key().cloned() else { continue };
            if !self.jobs[at]
                .possible_states
                .iter()
                .all(|possible| possible.holds_key(now))
            {
                continue;
            }
            for other in (0..self.jobs.len()).filter(|other| *other != at) {
                if self.jobs[other].key() == Some(&key) {
                    self.keep(other, "UNIQUE, R16: a second holder", |possible| {
                        !possible.holds_key(now)
                    })?;
                }
            }
        }
        Ok(())
    }
}

impl Job {
    /// The last settlement call whose reply was lost, and whether it happened. `None`
    /// if the possible states of the job disagree on that.
    fn link(&self) -> Option<(u32, bool)> {
        let first = self.possible_states.first()?.linked?;
        let agree = self.possible_states.iter().all(|it| it.linked == Some(first));
        agree.then_some((first.call, first.happened))
    }
}
