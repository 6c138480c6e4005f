//! The rules for pushes: how they change the possible states of jobs.

use std::time::Duration;

use relq_core::{
    JobId, NewJob, PushToken,
    batch::Added,
    outcome::{DuplicateOf, Pushed},
};

use super::{
    batching::Phase,
    last_error::LastError,
    possible_state::{JobLocation, Ms, PossibleState},
    reference::{Call, CheckResult, Job, Knowledge, Reference, add},
    restoring::Past,
};
use crate::spec::ready_order::ReadyPosition;

/// A duration in whole milliseconds, rounded down as the stores do.
pub(crate) fn ms(duration: Duration) -> Ms {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// One call of `push`, of `add` with the pieces of a batch, or of `restore`.
#[derive(Debug, Clone)]
pub(crate) struct PushCall {
    pub(crate) jobs: Vec<NewJob>,
    /// The number of the push token. `None` if the call has no token.
    pub(crate) token: Option<u8>,
    pub(crate) batch: Option<u8>,
    /// The earlier life of each job, if they are restored (R34). Otherwise empty.
    pub(crate) past: Vec<Past>,
}

impl PushCall {
    /// A call that pushes jobs without a token.
    pub(crate) fn of(jobs: Vec<NewJob>) -> Self {
        Self { jobs, token: None, batch: None, past: Vec::new() }
    }
}

impl Reference {
    /// Records a push that returned, and checks the result for each job.
    pub(crate) fn added(
        &mut self,
        call: &PushCall,
        token: Option<&PushToken>,
        answer: &Added,
    ) -> CheckResult {
        let state = match answer {
            Added::Stored(answers) => return self.pushed(call, token, answers),
            Added::Closed(state) => Some(*state),
            Added::Unknown => None,
        };
        if let Some(number) = call.batch {
            self.is_closed(number, state)?;
        }
        let known = call.token.and_then(|number| self.calls.get(&number));
        let Some(Call { call, answers, .. }) = known else { return Ok(()) };
        if answers.is_some() {
            return Err(format!("R4: first result {answers:?}, now {answer:?}"));
        }
        let call = *call;
        (0..self.jobs.len())
            .filter(|at| self.jobs[*at].call == call)
            .collect::<Vec<_>>()
            .into_iter()
            .try_for_each(|at| self.keep(at, "B1", PossibleState::is_absent))
    }

    pub(crate) fn pushed(
        &mut self,
        call: &PushCall,
        token: Option<&PushToken>,
        answers: &[Pushed],
    ) -> CheckResult {
        let jobs = &call.jobs;
        if answers.len() != jobs.len() {
            return Err(format!(
                "R5: {} answers to {} jobs",
                answers.len(),
                jobs.len()
            ));
        }
        if let Some(number) = call.token
            && self.calls.contains_key(&number)
        {
            return self.repeated(number, answers);
        }
        if let Some(number) = call.batch {
            self.is_open(number)?;
        }
        for (index, (job, answer)) in jobs.iter().zip(answers).enumerate() {
            self.check_id(job, index, token, answer)?;
            let past = call.past.get(index).copied();
            self.answered(call.batch, (job, index, past), answer)?;
        }
        self.remember_call(call, Some(answers.to_vec()));
        Ok(())
    }

    /// Records a push whose reply was lost: its jobs may be stored.
    pub(crate) fn maybe_pushed(&mut self, push: &PushCall) {
        if let Some(call) = self.known_call(push) {
            self.maybe_stored_now(call);
            return;
        }
        for (index, spec) in push.jobs.iter().enumerate() {
            let mut possible_states = vec![self.absent()];
            if self.may_take(push.batch) {
                self.maybe_reschedules(spec);
                let past = push.past.get(index).copied();
                possible_states.extend(self.stored(spec, index, past));
            }
            if spec.id.is_some() || spec.unique.is_some() {
                possible_states.push(self.absent().at(JobLocation::Refused));
            }
            self.add_job(spec, spec.id.clone(), push.batch, possible_states);
            self.has_past(push.past.get(index));
        }
        self.remember_call(push, None);
    }

    /// Records a push whose command was delayed and may run later. Returns the number
    /// of the call, for [`Self::maybe_stored_now`].
    pub(crate) fn push_is_late(&mut self, push: &PushCall) -> u32 {
        if let Some(call) = self.known_call(push) {
            return call;
        }
        for (index, spec) in push.jobs.iter().enumerate() {
            let possible_states = vec![self.absent()];
            self.add_job(spec, spec.id.clone(), push.batch, possible_states);
            self.has_past(push.past.get(index));
        }
        self.remember_call(push, None);
        self.step
    }

    /// If an earlier push had the token of this push, returns the number of the first
    /// such call.
    fn known_call(&self, push: &PushCall) -> Option<u32> {
        Some(self.calls.get(&push.token?)?.call)
    }

    /// Whether a push may store its jobs. A push of pieces may do so only if their
    /// batch may be open (B1).
    fn may_take(&self, batch: Option<u8>) -> bool {
        let Some(number) = batch else { return true };
        self.batches.get(&number).is_some_and(|batch| batch.may_be(Phase::Open))
    }

    /// Records that a delayed push may have run by now, and that its jobs may have been
    /// duplicates.
    pub(crate) fn maybe_stored_now(&mut self, call: u32) {
        let mut index = 0;
        for at in 0..self.jobs.len() {
            let spec = self.jobs[at].spec.clone();
            let Job { call: of, batch, past, .. } = self.jobs[at];
            if of != call {
                continue;
            }
            let stored = self.stored(&spec, index, past);
            index += 1;
            let is_absent = PossibleState::is_absent;
            let may_be_absent = self.jobs[at].possible_states.iter().any(is_absent);
            if !may_be_absent || !self.may_take(batch) {
                continue;
            }
            self.maybe_reschedules(&spec);
            if past.is_none() {
                let first = self.jobs[at].pushed.map(|(first, _)| first);
                self.jobs[at].pushed = first.map(|first| (first, self.now));
            }
            let leaders = self.leaders(&spec);
            self.jobs[at].leaders.extend(leaders);
            stored
                .into_iter()
                .for_each(|it| add(&mut self.jobs[at].possible_states, it));
            if spec.id.is_some() || spec.unique.is_some() {
                let refused = self.absent().at(JobLocation::Refused);
                add(&mut self.jobs[at].possible_states, refused);
            }
        }
    }

    /// R4: checks that a repeated push stored nothing and returned the first result.
    fn repeated(&mut self, number: u8, answers: &[Pushed]) -> CheckResult {
        let Some(call) = self.calls.get(&number) else { return Ok(()) };
        if let Some(first) = &call.answers {
            if first == answers {
                return Ok(());
            }
            return Err(format!("R4: first result {first:?}, now {answers:?}"));
        }
        let id = call.call;
        self.maybe_stored_now(id);
        let members: Vec<_> =
            (0..self.jobs.len()).filter(|at| self.jobs[*at].call == id).collect();
        for (at, answer) in members.into_iter().zip(answers) {
            let is_stored = matches!(answer, Pushed::Stored(_));
            if let Pushed::Stored(id) = answer {
                self.jobs[at].id = Some(id.clone());
            }
            self.keep(at, "R4: repeated by token", |possible| {
                match possible.location {
                    JobLocation::Absent => false,
                    JobLocation::Refused => !is_stored,
                    _ => is_stored,
                }
            })?;
        }
        if let Some(call) = self.calls.get_mut(&number) {
            call.answers = Some(answers.to_vec());
        }
        Ok(())
    }

    /// Checks the result that a push returned for one job. If both the id and the
    /// unique key of the job are in use, the result must name the id (R16).
    fn answered(
        &mut self,
        batch: Option<u8>,
        (spec, index, past): (&NewJob, usize, Option<Past>),
        answer: &Pushed,
    ) -> CheckResult {
        let by_id = match answer {
            Pushed::Duplicate { existing, by: DuplicateOf::Id } => Some(existing),
            _ => None,
        };
        if let Some(existing) = by_id {
            return self.refused_by_id(spec, existing);
        }
        self.id_was_free(spec)?;
        match answer {
            Pushed::Stored(id) => self.is_stored(batch, (spec, index, past), id),
            Pushed::Duplicate { .. } if past.is_some_and(Past::is_dead) => {
                Err(format!("R34: a dead job needs no key: {answer:?}"))
            }
            Pushed::Duplicate { existing, .. } => self.refused_by_key(spec, existing),
        }
    }

    fn is_stored(
        &mut self,
        batch: Option<u8>,
        (spec, index, past): (&NewJob, usize, Option<Past>),
        id: &JobId,
    ) -> CheckResult {
        let now = self.now;
        let is_dead = past.is_some_and(Past::is_dead);
        if let Some(unique) = spec.unique.as_ref().filter(|_| !is_dead) {
            for at in self.with_key(unique) {
                self.keep(
                    at,
                    "UNIQUE, R16: stored though the key is held",
                    |possible| !possible.holds_key(now),
                )?;
            }
        }
        let possible_states = self.stored(spec, index, past);
        if possible_states.is_empty() {
            let leader = spec.after.as_ref().map_or("", JobId::as_str);
            return Err(format!("R30: stored, and {leader} cannot be followed"));
        }
        self.add_job(spec, Some(id.clone()), batch, possible_states);
        self.has_past(past.as_ref());
        Ok(())
    }

    /// Records what the last job was before, if it is restored. Then it says that it was
    /// pushed when the run began.
    fn has_past(&mut self, past: Option<&Past>) {
        if let (Some(past), Some(job)) = (past, self.jobs.last_mut()) {
            (job.past, job.pushed) = (Some(*past), Some((0, 0)));
        }
    }

    pub(crate) fn absent(&self) -> PossibleState {
        PossibleState {
            location: JobLocation::Absent,
            attempt: 0,
            expires: None,
            last_error: LastError::default(),
            is_detached: false,
            value: 0,
            linked: None,
        }
    }

    /// The states in which a push may store a job. None if the job cannot follow its
    /// leader.
    fn stored(
        &self,
        spec: &NewJob,
        index: usize,
        past: Option<Past>,
    ) -> Vec<PossibleState> {
        let here = (self.step, index);
        if let Some(past) = past {
            return vec![past.stored(self.absent(), ReadyPosition::fresh(here))];
        }
        let location = if spec.delay.is_zero() {
            JobLocation::Ready(ReadyPosition::fresh(here))
        } else {
            JobLocation::Scheduled { due: self.now + ms(spec.delay) }
        };
        let expires = spec.expires_in.map(|after| self.now + ms(after));
        let free = PossibleState { expires, ..self.absent().at(location) };
        self.held_or_free(spec, free)
    }

    pub(crate) fn add_job(
        &mut self,
        spec: &NewJob,
        id: Option<JobId>,
        batch: Option<u8>,
        possible_states: Vec<PossibleState>,
    ) {
        let (call, now, leaders) = (self.step, self.now, self.leaders(spec));
        let spec = spec.clone();
        let began = self.call_began.unwrap_or(now);
        self.jobs.push(Job {
            spec,
            id,
            batch,
            cancelled: None,
            leaders,
            pushed: Some((began, now)),
            past: None,
            call,
            possible_states,
            runs: 0,
            returns: 0,
            passed_over: 0,
        });
    }

    fn remember_call(&mut self, push: &PushCall, answers: Option<Vec<Pushed>>) {
        let Some(number) = push.token else { return };
        let (push, first_at, call) = (push.clone(), self.now, self.step);
        self.calls.insert(number, Call { push, first_at, call, answers });
    }

    /// Adds the states that a call without a reply may have caused. The states before
    /// the call stay possible; later results show which are true.
    pub(crate) fn maybe(
        &mut self,
        becomes: impl Fn(&Job, &PossibleState) -> Vec<PossibleState>,
    ) {
        let kept = self.each(Knowledge::Maybe, "", becomes);
        assert!(kept.is_ok(), "a call that may not have happened rules out no state");
    }
}
