//! The rules for results and progress: what must be told of each job (R29).

use bytes::Bytes;
use relq_core::{
    JobId,
    results::{JobResult, Reported},
};

use super::{
    draft,
    drained::FoundAt,
    possible_state::{End, JobLocation, Ms, PossibleState},
    pushing::ms,
    reference::{CheckResult, Job, Reference},
};

/// By how much the end of a time of the store may differ from the model's, because both
/// are cut to milliseconds.
const ROUNDING: Ms = 1;

impl PossibleState {
    /// The state with another value, if the job keeps one.
    pub(crate) fn valued(self, job: &Job, value: u8) -> Self {
        let value = if job.spec.keep_result.is_some() { value } else { 0 };
        Self { value, ..self }
    }

    fn holds(&self, observed: usize) -> bool {
        self.lease().is_some_and(|lease| lease.receipt == Some(observed))
    }
}

impl Job {
    /// Whether this may be told of the job in that state.
    fn may_be_told(
        &self,
        possible: &PossibleState,
        told: Option<&JobResult>,
        now: Ms,
    ) -> bool {
        let Some(kept) = self.spec.keep_result else { return told.is_none() };
        let value = Some(possible.value).filter(|it| *it > 0).map(draft::value);
        match (possible.location, told) {
            (JobLocation::Absent | JobLocation::Refused, told) => told.is_none(),
            // A purge removes pieces in pages, and all records with the last page.
            (JobLocation::Gone { end: End::Purged, .. }, told) => {
                told.is_none() || self.batch.is_some()
            }
            (JobLocation::Gone { end, at }, Some(told)) => {
                now <= at + ms(kept) + ROUNDING && self.is_end(end, value, told)
            }
            (JobLocation::Gone { at, .. }, None) => now + ROUNDING >= at + ms(kept),
            (JobLocation::Dead, told) => matches!(told, Some(JobResult::Dead { .. })),
            (_, Some(JobResult::Unfinished { progress })) => *progress == value,
            (_, _) => false,
        }
    }
}

impl Job {
    /// Whether that is told of the job after it ended so.
    fn is_end(&self, end: End, value: Option<Bytes>, told: &JobResult) -> bool {
        match (end, told) {
            (End::Finished, JobResult::Done { result }) => {
                *result == value.unwrap_or_default()
            }
            (End::Orphaned, JobResult::Cancelled { leader }) => {
                *leader == self.spec.after
            }
            (End::Discarded, JobResult::Discarded)
            | (End::Cancelled(_), JobResult::Cancelled { leader: None })
            | (End::PurgedDead, JobResult::Purged) => true,
            _ => false,
        }
    }

    /// The record at the time `end` of the job, which was in that state before a drain
    /// found it there.
    fn told_at(
        &self,
        possible: &PossibleState,
        found: FoundAt,
        end: Ms,
    ) -> Option<String> {
        let kept = ms(self.spec.keep_result?);
        if let JobLocation::Gone { at, .. } = possible.location
            && at + kept <= end
        {
            return None;
        }
        let value = Some(possible.value).filter(|it| *it > 0).map(draft::value);
        let told = match (found, possible.location) {
            (FoundAt::Claim, _) => JobResult::Done { result: Bytes::new() },
            (FoundAt::DeadLetters, _) => JobResult::Dead { error: String::new() },
            (_, JobLocation::Gone { end: End::Finished, .. }) => {
                JobResult::Done { result: value.unwrap_or_default() }
            }
            (_, JobLocation::Gone { end: End::Discarded, .. }) => JobResult::Discarded,
            (_, JobLocation::Gone { end: End::PurgedDead, .. }) => JobResult::Purged,
            (_, JobLocation::Held) => JobResult::Unfinished { progress: None },
            (
                _,
                JobLocation::Orphaned | JobLocation::Gone { end: End::Orphaned, .. },
            ) => JobResult::Cancelled { leader: self.spec.after.clone() },
            (
                _,
                JobLocation::Gone { end: End::Cancelled(_), .. }
                | JobLocation::Leased(_),
            ) => JobResult::Cancelled { leader: None },
            _ => return None,
        };
        Some(text_of(&told))
    }
}

/// The record of a job as text, without the words of an error.
pub(crate) fn text_of(told: &JobResult) -> String {
    match told {
        JobResult::Done { result } => {
            format!("told: done, `{}`", result.escape_ascii())
        }
        JobResult::Dead { .. } => "told: dead".to_owned(),
        other => format!("told: {other:?}"),
    }
}

/// The record of a job as text, with the id of the job if it is known.
pub(crate) fn named(id: Option<&JobId>, told: &str) -> String {
    id.map_or_else(|| told.to_owned(), |id| format!("{id} {told}"))
}

impl Reference {
    /// Records a report of progress that returned, and checks its answer.
    pub(crate) fn reported(
        &mut self,
        observed: usize,
        value: u8,
        answer: Reported,
    ) -> CheckResult {
        let (now, at) = (self.now, self.observed[observed].job);
        let keeps = self.jobs[at].spec.keep_result.is_some();
        self.keep(at, &format!("R29, R7: a report is {answer:?}"), |possible| {
            match answer {
                Reported::Stored => keeps && possible.holds(observed),
                Reported::NotKept => !keeps && possible.holds(observed),
                Reported::LeaseLost => {
                    let is_held = possible.holds(observed);
                    !is_held || possible.overdue(now).is_some()
                }
            }
        })?;
        if answer == Reported::Stored {
            for possible in &mut self.jobs[at].possible_states {
                possible.value = value;
            }
        }
        Ok(())
    }

    /// Records a report of progress whose reply was lost: it may be stored.
    pub(crate) fn maybe_reported(&mut self, observed: usize, value: u8) {
        self.maybe(|job, possible| match possible.holds(observed) {
            true => vec![possible.valued(job, value)],
            false => Vec::new(),
        });
    }

    /// Returns, for each job, what may be told of it once the queue was drained by
    /// settlements without a result, as text, with the job's id if it is known. `None`
    /// stands for nothing.
    pub(crate) fn told_when_drained(&self, horizon: Ms) -> Vec<Vec<Option<String>>> {
        let end = self.now + horizon;
        let of_job = |(at, job): (usize, &Job)| {
            let each = job.possible_states.iter();
            let mut told: Vec<_> = each
                .flat_map(|possible| {
                    let found = self.found_at((at, job), possible, end);
                    found.into_iter().map(|found| job.told_at(possible, found, end))
                })
                .collect();
            told.sort();
            told.dedup();
            let named = |text: String| named(job.id.as_ref(), &text);
            told.into_iter().map(|text| text.map(named)).collect()
        };
        self.jobs.iter().enumerate().map(of_job).collect()
    }

    /// The ids of all jobs that are known, each once.
    pub(crate) fn known_ids(&self) -> Vec<JobId> {
        let mut ids: Vec<_> = self.jobs.iter().filter_map(|it| it.id.clone()).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Checks what is told of the job with that id.
    pub(crate) fn told(&mut self, id: &JobId, told: Option<&JobResult>) -> CheckResult {
        let now = self.now;
        let has_id = |at: &usize| self.jobs[*at].id.as_ref() == Some(id);
        let named: Vec<_> = (0..self.jobs.len()).filter(has_id).collect();
        let rule = format!("R29: told {told:?} of {id}");
        if let [only] = named[..] {
            let job = self.jobs[only].clone();
            return self.keep(only, &rule, |it| job.may_be_told(it, told, now));
        }
        // Several pushes had this id. The record is that of one of their jobs.
        let may_be = |at: &usize| {
            let job = &self.jobs[*at];
            job.possible_states.iter().any(|it| job.may_be_told(it, told, now))
        };
        match named.is_empty() || named.iter().any(may_be) {
            true => Ok(()),
            false => Err(rule),
        }
    }
}
