//! The rules for followers: which jobs can be followed, and how the ends of their leaders
//! change the possible states of held jobs (R30).

use relq_core::{
    JobId, NewJob,
    followers::CannotFollow,
    operator::{JobView, StateDetail},
};

use super::{
    drained::FoundAt,
    possible_state::{End, JobLocation, Ms, PossibleState},
    pushing::{PushCall, ms},
    ready_order::{LAST, ReadyPosition},
    reference::{CheckResult, Job, Reference, add, is_remembered},
};

/// One possible state of a job, as its followers see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeaderState {
    /// The job is not stored, or was purged with the queue.
    Unknown,
    /// It is stored, in any state.
    Live,
    Done(Ms),
    /// It ended otherwise.
    NotDone,
}

impl PossibleState {
    fn as_leader(&self) -> LeaderState {
        match self.location {
            JobLocation::Absent
            | JobLocation::Refused
            | JobLocation::Gone { end: End::Purged, .. } => LeaderState::Unknown,
            JobLocation::Gone { end: End::Finished, at } => LeaderState::Done(at),
            JobLocation::Gone { .. } => LeaderState::NotDone,
            _ => LeaderState::Live,
        }
    }

    /// Whether the id of the job is certainly known at `now`.
    fn is_known_leader(&self, now: Ms) -> bool {
        match self.location {
            JobLocation::Gone { end, at } => is_remembered(end, at, now),
            _ => self.as_leader() == LeaderState::Live,
        }
    }

    /// Whether the job waits for its leader, or for the recovery that cancels it.
    fn is_held(&self) -> bool {
        matches!(self.location, JobLocation::Held | JobLocation::Orphaned)
    }
}

impl Job {
    fn may_be(&self, state: impl Fn(LeaderState) -> bool) -> bool {
        self.possible_states.iter().any(|possible| state(possible.as_leader()))
    }

    /// In each possible state in which the leader has ended and was not done, ends the
    /// follower.
    fn end_orphans(&mut self, now: Ms) {
        for mut possible in std::mem::take(&mut self.possible_states) {
            if possible.location == JobLocation::Orphaned {
                possible = possible.ended(End::Orphaned, now);
            }
            add(&mut self.possible_states, possible);
        }
    }

    /// Whether the list of jobs shows the job as that state says.
    pub(crate) fn is_listed_as(
        &self,
        possible: &PossibleState,
        view: &JobView,
    ) -> bool {
        match &view.detail {
            StateDetail::Following { leader, .. } => {
                possible.is_held() && self.spec.after.as_ref() == Some(leader)
            }
            _ => !possible.is_held(),
        }
    }
}

impl Reference {
    /// The jobs that may have that id now: the newest that is certainly stored, and newer
    /// ones that may be.
    fn candidates(&self, id: &JobId) -> Vec<usize> {
        let mut found = Vec::new();
        for at in self.with_id(id).into_iter().rev() {
            found.push(at);
            let is_sure = |it: &PossibleState| {
                !matches!(it.location, JobLocation::Absent | JobLocation::Refused)
            };
            if self.jobs[at].possible_states.iter().all(is_sure) {
                break;
            }
        }
        found
    }

    /// The jobs that a job which is pushed now may follow.
    pub(super) fn leaders(&self, spec: &NewJob) -> Vec<usize> {
        let Some(leader) = &spec.after else { return Vec::new() };
        let is_live = |state| state == LeaderState::Live;
        let found = self.candidates(leader).into_iter();
        found.filter(|at| self.jobs[*at].may_be(is_live)).collect()
    }

    /// The states in which a push stores a job that would be `free` without a leader. None
    /// if its leader cannot be followed.
    pub(super) fn held_or_free(
        &self,
        spec: &NewJob,
        free: PossibleState,
    ) -> Vec<PossibleState> {
        let Some(leader) = &spec.after else { return vec![free] };
        let found = self.candidates(leader);
        let may_be = |state: fn(LeaderState) -> bool| {
            found.iter().any(|at| self.jobs[*at].may_be(state))
        };
        let is_held = may_be(|state| state == LeaderState::Live);
        let is_free = may_be(|state| matches!(state, LeaderState::Done(_)));
        let held = is_held.then(|| free.at(JobLocation::Held));
        held.into_iter().chain(is_free.then_some(free)).collect()
    }

    /// Checks that a push could be refused because one of its jobs cannot follow `leader`.
    pub(crate) fn cannot_follow(
        &mut self,
        push: &PushCall,
        leader: &JobId,
        why: CannotFollow,
    ) -> CheckResult {
        let rule = format!("R30: refused, because {leader} {why}");
        if let Some(known) = push.token.and_then(|number| self.calls.get(&number)) {
            let (call, is_answered) = (known.call, known.answers.is_some());
            if is_answered {
                return Err(format!("R4: a repeated push: {rule}"));
            }
            let of_call = (0..self.jobs.len()).filter(|at| self.jobs[*at].call == call);
            for at in of_call.collect::<Vec<_>>() {
                self.keep(at, &rule, PossibleState::is_absent)?;
            }
        }
        let names_it = |job: &NewJob| job.after.as_ref() == Some(leader);
        let Some(at) = push.jobs.iter().position(names_it) else {
            return Err(rule);
        };
        let is_earlier =
            push.jobs[..at].iter().any(|job| job.id.as_ref() == Some(leader));
        let (now, found) = (self.now, self.candidates(leader));
        let is_right = match why {
            CannotFollow::Unknown => !is_earlier && !self.is_known(&found, now),
            CannotFollow::NotDone => {
                let is_it = |state| state == LeaderState::NotDone;
                found.iter().any(|at| self.jobs[*at].may_be(is_it))
            }
            // No sequence has as many followers.
            _ => false,
        };
        if is_right { Ok(()) } else { Err(rule) }
    }

    /// Whether one of these jobs certainly is one whose id is known.
    fn is_known(&self, jobs: &[usize], now: Ms) -> bool {
        jobs.iter().any(|at| {
            let mut each = self.jobs[*at].possible_states.iter();
            each.all(|possible| possible.is_known_leader(now))
        })
    }

    /// Gives each held job the states that the states of its leaders leave to it, and so on
    /// for those that follow it.
    pub(crate) fn follow_leaders(&mut self) {
        for _ in 0..=self.jobs.len() {
            let mut is_changed = false;
            for at in 0..self.jobs.len() {
                let next = self.after_leaders(at);
                is_changed |= self.jobs[at].possible_states != next;
                self.jobs[at].possible_states = next;
            }
            if !is_changed {
                return;
            }
        }
    }

    /// The possible states of a job after what its leaders may have done.
    fn after_leaders(&self, at: usize) -> Vec<PossibleState> {
        let job = &self.jobs[at];
        let is_certain = job.leaders.len() == 1
            && job.possible_states.iter().all(|it| it.location == JobLocation::Held);
        let mut next = Vec::new();
        for possible in &job.possible_states {
            match possible.location {
                JobLocation::Held => {
                    let becomes = self.after_ends((at, job), possible, is_certain);
                    becomes.into_iter().for_each(|it| add(&mut next, it));
                }
                JobLocation::Orphaned => {
                    add(&mut next, *possible);
                    add(&mut next, possible.ended(End::Orphaned, self.now));
                }
                _ => add(&mut next, *possible),
            }
        }
        next
    }

    /// The states of a held job after the possible ends of its leaders.
    fn after_ends(
        &self,
        (at, job): (usize, &Job),
        held: &PossibleState,
        is_certain: bool,
    ) -> Vec<PossibleState> {
        let mut becomes = Vec::new();
        for leader in &job.leaders {
            let states = &self.jobs[*leader].possible_states;
            let is_certain = is_certain && states.len() == 1;
            for state in states {
                match state.as_leader() {
                    LeaderState::Unknown => {}
                    LeaderState::Live => add(&mut becomes, *held),
                    LeaderState::NotDone => {
                        add(&mut becomes, held.at(JobLocation::Orphaned));
                        add(&mut becomes, held.ended(End::Orphaned, self.now));
                    }
                    LeaderState::Done(ended) => {
                        let place = is_certain.then_some((*leader, at));
                        let released = self.released(job, ended, place);
                        released.iter().for_each(|it| add(&mut becomes, held.at(*it)));
                    }
                }
            }
        }
        becomes
    }

    /// Where a job is that its leader released. `place` has the leader and the job if
    /// both are certain. None if an earlier operation may have released it already.
    fn released(
        &self,
        job: &Job,
        ended: Ms,
        place: Option<(usize, usize)>,
    ) -> Option<JobLocation> {
        if !job.spec.delay.is_zero() {
            return Some(JobLocation::Scheduled { due: ended + ms(job.spec.delay) });
        }
        let step = self.step;
        let is_ready =
            |it: &PossibleState| matches!(it.location, JobLocation::Ready(_));
        let position = match place {
            Some((leader, place)) => ReadyPosition::Released { step, leader, place },
            None if job.possible_states.iter().any(is_ready) => return None,
            None => ReadyPosition::Back { from: (step, 0), to: LAST, due: None },
        };
        Some(JobLocation::Ready(position))
    }

    /// Records that a recovery has cancelled all jobs whose leaders ended and were not
    /// done, with all that follow them.
    ///
    /// A job whose leader may be live stays held, and may be an orphan again each time that
    /// it is looked at. So the states of all jobs are compared, and not whether there are
    /// orphans. Each turn settles one more link of the chains.
    pub(crate) fn orphans_are_gone(&mut self) {
        for _ in 0..=self.jobs.len() {
            let before: Vec<_> =
                self.jobs.iter().map(|job| job.possible_states.clone()).collect();
            self.follow_leaders();
            self.jobs.iter_mut().for_each(|job| job.end_orphans(self.now));
            let after = self.jobs.iter().map(|job| &job.possible_states);
            if after.eq(&before) {
                return;
            }
        }
    }

    /// Whether the end of its leader has released the job in the current operation. A claim
    /// beside the settlement may miss it.
    pub(super) fn is_just_released(&self, job: &Job, possible: &PossibleState) -> bool {
        match possible.location {
            JobLocation::Ready(ReadyPosition::Released { step, .. }) => {
                step == self.step
            }
            JobLocation::Ready(ReadyPosition::Back { from, .. }) => {
                !job.leaders.is_empty() && from.0 == self.step
            }
            _ => false,
        }
    }

    /// Where a held job is found in the end. `claimed` is where it is found if it is
    /// released.
    pub(super) fn found_held(
        &self,
        job: &Job,
        claimed: FoundAt,
        end: Ms,
    ) -> Vec<FoundAt> {
        let mut found = Vec::new();
        for at in &job.leaders {
            let leader = &self.jobs[*at];
            for possible in &leader.possible_states {
                let of_leader = match possible.as_leader() {
                    LeaderState::Live => self.found_at((*at, leader), possible, end),
                    LeaderState::Done(_) => vec![FoundAt::Claim],
                    _ => vec![FoundAt::Nowhere],
                };
                found.extend(of_leader.into_iter().map(|it| match it {
                    FoundAt::Claim => claimed,
                    _ => FoundAt::Nowhere,
                }));
            }
        }
        found
    }
}
