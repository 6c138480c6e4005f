//! What a push does, by the rules.

use std::time::Duration;

use queue_core::{DuplicateOf, JobId, NewJob, OnDuplicate, PushToken, Pushed};

use super::{
    book::{Book, Call, Job, Knowledge, Verdict, add, is_remembered},
    world::{Ms, Place, World},
};
use crate::turn::Turn;

/// Milliseconds of a duration, as the stores round it.
pub(crate) fn ms(duration: Duration) -> Ms {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Book {
    /// A push that was answered.
    pub(crate) fn pushed(
        &mut self,
        jobs: &[NewJob],
        token: Option<(u8, &PushToken)>,
        answers: &[Pushed],
    ) -> Verdict {
        if answers.len() != jobs.len() {
            return Err(format!(
                "R5: {} answers to {} jobs",
                answers.len(),
                jobs.len()
            ));
        }
        if let Some((number, _)) = token
            && self.calls.contains_key(&number)
        {
            return self.repeated(number, answers);
        }
        for (index, (job, answer)) in jobs.iter().zip(answers).enumerate() {
            self.check_id(job, index, token.map(|(_, token)| token), answer)?;
            self.answered(job, index, answer)?;
        }
        if let Some((number, _)) = token {
            self.remember_call(number, jobs, Some(answers.to_vec()));
        }
        Ok(())
    }

    /// A push whose answer was lost.
    pub(crate) fn maybe_pushed(&mut self, jobs: &[NewJob], token: Option<u8>) {
        if let Some(number) = token
            && let Some(call) = self.calls.get(&number)
        {
            let call = call.call;
            self.maybe_stored_now(call);
            return;
        }
        for (index, spec) in jobs.iter().enumerate() {
            self.maybe_reschedules(spec);
            let mut worlds = vec![self.absent(), self.stored(spec, index)];
            if spec.id.is_some() || spec.unique.is_some() {
                worlds.push(self.absent().at(Place::Refused));
            }
            self.add_job(spec, spec.id.clone(), worlds);
        }
        if let Some(number) = token {
            self.remember_call(number, jobs, None);
        }
    }

    /// A push that is still on its way.
    pub(crate) fn push_is_late(&mut self, jobs: &[NewJob], token: Option<u8>) -> u32 {
        if let Some(number) = token
            && let Some(call) = self.calls.get(&number)
        {
            return call.call;
        }
        for spec in jobs {
            let worlds = vec![self.absent()];
            self.add_job(spec, spec.id.clone(), worlds);
        }
        if let Some(number) = token {
            self.remember_call(number, jobs, None);
        }
        self.step
    }

    /// A late push may have run by now, or run and be a duplicate.
    pub(crate) fn maybe_stored_now(&mut self, call: u32) {
        let mut index = 0;
        for at in 0..self.jobs.len() {
            let spec = self.jobs[at].spec.clone();
            if self.jobs[at].call != call {
                continue;
            }
            let stored = self.stored(&spec, index);
            index += 1;
            let is_absent = |world: &World| world.place == Place::Absent;
            if !self.jobs[at].worlds.iter().any(is_absent) {
                continue;
            }
            self.maybe_reschedules(&spec);
            add(&mut self.jobs[at].worlds, stored);
            if spec.id.is_some() || spec.unique.is_some() {
                let refused = self.absent().at(Place::Refused);
                add(&mut self.jobs[at].worlds, refused);
            }
        }
    }

    /// R4: a repeated call stores nothing new and gives the first answer.
    fn repeated(&mut self, number: u8, answers: &[Pushed]) -> Verdict {
        let Some(call) = self.calls.get(&number) else { return Ok(()) };
        if let Some(first) = &call.answers {
            if first == answers {
                return Ok(());
            }
            return Err(format!("R4: first answered {first:?}, now {answers:?}"));
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
            self.keep(at, "R4: repeated by token", |world| match world.place {
                Place::Absent => false,
                Place::Refused => !is_stored,
                _ => is_stored,
            })?;
        }
        if let Some(call) = self.calls.get_mut(&number) {
            call.answers = Some(answers.to_vec());
        }
        Ok(())
    }

    fn check_id(
        &self,
        job: &NewJob,
        index: usize,
        token: Option<&PushToken>,
        answer: &Pushed,
    ) -> Verdict {
        let Pushed::Stored(id) = answer else { return Ok(()) };
        let wanted = job.id.clone().or_else(|| token.map(|token| token.job_id(index)));
        let is_new = || self.jobs.iter().all(|job| job.id.as_ref() != Some(id));
        match wanted {
            Some(wanted) if wanted == *id => Ok(()),
            None if is_new() => Ok(()),
            _ => Err(format!("R4: the id {id} of a new job is wrong or not new")),
        }
    }

    /// One job's answer: each question in its order (R16).
    fn answered(&mut self, spec: &NewJob, index: usize, answer: &Pushed) -> Verdict {
        let by_id = match answer {
            Pushed::Duplicate { existing, by: DuplicateOf::Id } => Some(existing),
            _ => None,
        };
        if let Some(existing) = by_id {
            return self.refused_by_id(spec, existing);
        }
        self.id_was_free(spec)?;
        match answer {
            Pushed::Stored(id) => self.is_stored(spec, index, id),
            Pushed::Duplicate { existing, .. } => self.refused_by_key(spec, existing),
        }
    }

    fn is_stored(&mut self, spec: &NewJob, index: usize, id: &JobId) -> Verdict {
        let now = self.now;
        if let Some(unique) = &spec.unique {
            for at in self.with_key(unique) {
                self.keep(at, "UNIQUE, R16: stored though the key is held", |world| {
                    !world.holds_key(now)
                })?;
            }
        }
        let worlds = vec![self.stored(spec, index)];
        self.add_job(spec, Some(id.clone()), worlds);
        Ok(())
    }

    fn refused_by_id(&mut self, spec: &NewJob, existing: &JobId) -> Verdict {
        if spec.id.as_ref() != Some(existing) {
            return Err(format!("R4: a duplicate by the id {existing}, not its own"));
        }
        let now = self.now;
        let known: Vec<_> = self
            .with_id(existing)
            .into_iter()
            .filter(|at| {
                self.jobs[*at].worlds.iter().any(|world| may_be_known(world, now))
            })
            .collect();
        match known[..] {
            [] => Err(format!("R4: no job of the id {existing} is known any more")),
            [one] => self.keep(one, "R4", |world| may_be_known(world, now)),
            _ => Ok(()),
        }
    }

    fn id_was_free(&mut self, spec: &NewJob) -> Verdict {
        let now = self.now;
        let Some(id) = &spec.id else { return Ok(()) };
        for at in self.with_id(id) {
            self.keep(at, "ENQ-IDEMPOTENT, R4: an id is taken twice", |world| {
                !is_known(world, now)
            })?;
        }
        Ok(())
    }

    fn refused_by_key(&mut self, spec: &NewJob, existing: &JobId) -> Verdict {
        let now = self.now;
        let holders = spec.unique.as_ref().map(|unique| self.with_key(unique));
        let mut candidates = holders.unwrap_or_default().into_iter().filter(|at| {
            let job = &self.jobs[*at];
            job.id.as_ref().is_none_or(|id| id == existing)
                && job.worlds.iter().any(|world| world.may_hold_key(now))
        });
        let (holder, other) = (candidates.next(), candidates.next());
        let Some(holder) = holder else {
            return Err(format!("UNIQUE, R16: {existing} holds no key of the new job"));
        };
        self.maybe_reschedules(spec);
        if other.is_some() {
            return Ok(());
        }
        self.jobs[holder].id = Some(existing.clone());
        self.keep(holder, "UNIQUE, R16", |world| world.may_hold_key(now))?;
        if moves(spec) {
            // A holder that is scheduled was moved: it is not due when it was.
            let due = now + ms(spec.delay);
            self.keep(holder, "UNIQUE, R16: not moved", |world| match world.place {
                Place::Scheduled { due: known } => known == due,
                _ => true,
            })?;
        }
        Ok(())
    }

    /// The worlds of who may hold the key of a push that moves its holder.
    fn maybe_reschedules(&mut self, spec: &NewJob) {
        let Some(unique) = spec.unique.as_ref().filter(|_| moves(spec)) else { return };
        let place = Place::Scheduled { due: self.now + ms(spec.delay) };
        for at in self.with_key(unique) {
            let worlds = &mut self.jobs[at].worlds;
            for world in worlds.clone() {
                if matches!(world.place, Place::Scheduled { .. }) {
                    add(worlds, world.at(place));
                }
            }
        }
    }

    fn with_id(&self, id: &JobId) -> Vec<usize> {
        let has_it = |at: &usize| self.jobs[*at].id.as_ref() == Some(id);
        (0..self.jobs.len()).filter(has_it).collect()
    }

    fn with_key(&self, unique: &queue_core::Unique) -> Vec<usize> {
        let has_it = |at: &usize| self.jobs[*at].key() == Some(&unique.key);
        (0..self.jobs.len()).filter(has_it).collect()
    }

    fn absent(&self) -> World {
        World { place: Place::Absent, attempt: 0, expires: None }
    }

    fn stored(&self, spec: &NewJob, index: usize) -> World {
        let here = (self.step, index);
        let place = if spec.delay.is_zero() {
            Place::Ready(Turn::fresh(here))
        } else {
            Place::Scheduled { due: self.now + ms(spec.delay) }
        };
        let expires = spec.expires_in.map(|after| self.now + ms(after));
        World { place, attempt: 0, expires }
    }

    fn add_job(&mut self, spec: &NewJob, id: Option<JobId>, worlds: Vec<World>) {
        let (spec, call) = (spec.clone(), self.step);
        self.jobs.push(Job {
            spec,
            id,
            call,
            worlds,
            runs: 0,
            returns: 0,
            passed_over: 0,
        });
    }

    fn remember_call(
        &mut self,
        number: u8,
        jobs: &[NewJob],
        answers: Option<Vec<Pushed>>,
    ) {
        let (jobs, first_at, call) = (jobs.to_vec(), self.now, self.step);
        self.calls.insert(number, Call { jobs, first_at, call, answers });
    }

    /// What a lost call has in the store is known by the answers of others.
    pub(crate) fn maybe(&mut self, becomes: impl Fn(&Job, &World) -> Vec<World>) {
        let kept = self.each(Knowledge::Maybe, "", becomes);
        debug_assert!(kept.is_ok(), "what may not have happened rules nothing out");
    }
}

fn moves(spec: &NewJob) -> bool {
    let on_duplicate = spec.unique.as_ref().map(|unique| unique.on_duplicate);
    on_duplicate == Some(OnDuplicate::Reschedule)
}

/// Whether a job's id counts as known (R4).
fn is_known(world: &World, now: Ms) -> bool {
    match world.place {
        Place::Absent | Place::Refused => false,
        Place::Gone { end, at } => is_remembered(end, at, now),
        _ => true,
    }
}

/// After the window it may be forgotten or not.
fn may_be_known(world: &World, now: Ms) -> bool {
    is_known(world, now)
        || matches!(world.place, Place::Gone { end, .. } if end != super::world::End::Purged)
}
