//! The rules for duplicates: pushes of jobs whose id or unique key is in use (R4, R16).

use relq_core::{
    JobId, NewJob, PushToken,
    outcome::Pushed,
    unique::{OnDuplicate, Unique},
};

use super::{
    possible_state::{End, JobLocation, Ms, PossibleState},
    pushing::ms,
    reference::{CheckResult, Reference, add, is_remembered},
};

impl Reference {
    pub(super) fn check_id(
        &self,
        job: &NewJob,
        index: usize,
        token: Option<&PushToken>,
        answer: &Pushed,
    ) -> CheckResult {
        let Pushed::Stored(id) = answer else { return Ok(()) };
        let wanted = job.id.clone().or_else(|| token.map(|token| token.job_id(index)));
        let is_new = || self.jobs.iter().all(|job| job.id.as_ref() != Some(id));
        match wanted {
            Some(wanted) if wanted == *id => Ok(()),
            None if is_new() => Ok(()),
            _ => Err(format!("R4: the id {id} of a new job is wrong or not new")),
        }
    }

    pub(super) fn refused_by_id(
        &mut self,
        spec: &NewJob,
        existing: &JobId,
    ) -> CheckResult {
        if spec.id.as_ref() != Some(existing) {
            return Err(format!("R4: a duplicate of {existing}, another id"));
        }
        let now = self.now;
        let known: Vec<_> = self
            .with_id(existing)
            .into_iter()
            .filter(|at| {
                self.jobs[*at]
                    .possible_states
                    .iter()
                    .any(|possible| may_be_known(possible, now))
            })
            .collect();
        match known[..] {
            [] => Err(format!("R4: no job of the id {existing} is known any more")),
            [one] => self.keep(one, "R4", |possible| may_be_known(possible, now)),
            _ => Ok(()),
        }
    }

    pub(super) fn id_was_free(&mut self, spec: &NewJob) -> CheckResult {
        let now = self.now;
        let Some(id) = &spec.id else { return Ok(()) };
        for at in self.with_id(id) {
            self.keep(at, "ENQ-IDEMPOTENT, R4: an id is taken twice", |possible| {
                !is_known(possible, now)
            })?;
        }
        Ok(())
    }

    pub(super) fn refused_by_key(
        &mut self,
        spec: &NewJob,
        existing: &JobId,
    ) -> CheckResult {
        let now = self.now;
        let holders = spec.unique.as_ref().map(|unique| self.with_key(unique));
        let mut candidates = holders.unwrap_or_default().into_iter().filter(|at| {
            let job = &self.jobs[*at];
            job.id.as_ref().is_none_or(|id| id == existing)
                && job.possible_states.iter().any(|possible| possible.may_hold_key(now))
        });
        let (holder, other) = (candidates.next(), candidates.next());
        let Some(holder) = holder else {
            return Err(format!("UNIQUE, R16: {existing} lacks the new job's key"));
        };
        self.maybe_reschedules(spec);
        if other.is_some() {
            return Ok(());
        }
        self.jobs[holder].id = Some(existing.clone());
        self.keep(holder, "UNIQUE, R16", |possible| possible.may_hold_key(now))?;
        if moves(spec) {
            // The push moved the scheduled job that holds the key to the new due time,
            // so that job no longer has its old one.
            let due = now + ms(spec.delay);
            self.keep(holder, "UNIQUE, R16: not moved", |possible| {
                match possible.location {
                    JobLocation::Scheduled { due: known } => known == due,
                    _ => true,
                }
            })?;
        }
        Ok(())
    }

    /// Adds the states that a push with `Reschedule` may cause: each job that may hold
    /// its key may have the new due time.
    pub(super) fn maybe_reschedules(&mut self, spec: &NewJob) {
        let Some(unique) = spec.unique.as_ref().filter(|_| moves(spec)) else { return };
        let location = JobLocation::Scheduled { due: self.now + ms(spec.delay) };
        for at in self.with_key(unique) {
            let possible_states = &mut self.jobs[at].possible_states;
            for possible in possible_states.clone() {
                if matches!(possible.location, JobLocation::Scheduled { .. }) {
                    add(possible_states, possible.at(location));
                }
            }
        }
    }

    pub(super) fn with_id(&self, id: &JobId) -> Vec<usize> {
        let has_it = |at: &usize| self.jobs[*at].id.as_ref() == Some(id);
        (0..self.jobs.len()).filter(has_it).collect()
    }

    pub(super) fn with_key(&self, unique: &Unique) -> Vec<usize> {
        let has_it = |at: &usize| self.jobs[*at].key() == Some(&unique.key);
        (0..self.jobs.len()).filter(has_it).collect()
    }
}

fn moves(spec: &NewJob) -> bool {
    let on_duplicate = spec.unique.as_ref().map(|unique| unique.on_duplicate);
    on_duplicate == Some(OnDuplicate::Reschedule)
}

/// Whether a push with the id of this job must be a duplicate (R4).
fn is_known(possible: &PossibleState, now: Ms) -> bool {
    match possible.location {
        JobLocation::Absent | JobLocation::Refused => false,
        JobLocation::Gone { end, at } => is_remembered(end, at, now),
        _ => true,
    }
}

/// Whether a push with the id of this job may be a duplicate. After five minutes the
/// backend may have forgotten the id, or not yet.
fn may_be_known(possible: &PossibleState, now: Ms) -> bool {
    is_known(possible, now)
        || matches!(possible.location, JobLocation::Gone { end, .. } if end != End::Purged)
}
