//! The rules for what a list (`peek`, R23) or a look-up (R31) tells of a job.

use relq_core::{
    environment::Timestamp,
    operator::{JobState, JobView, StateDetail},
};

use super::{
    possible_state::{Counted, JobLocation, Ms},
    pushing::ms,
    reference::{CheckResult, Reference},
};

/// By how many milliseconds a time of the store may differ from the model's, because
/// both are rounded.
const ROUNDING: i64 = 1;

/// The store's time at the start of the run: the earliest and the latest possible one
/// (ms since 1970). `None` while no time of the store is known.
#[derive(Debug, Clone, Copy)]
struct Start(Option<(i64, i64)>);

impl Start {
    /// Whether the store's time `found` may be that many milliseconds after the start.
    fn may_be_at(self, since_start: Ms, found: Timestamp) -> bool {
        let Some((earliest, latest)) = self.0 else { return true };
        let start = found.unix_ms() - i64::try_from(since_start).unwrap_or(i64::MAX);
        (earliest - ROUNDING..=latest + ROUNDING).contains(&start)
    }
}

impl Reference {
    /// Checks a list of the jobs in a state: each job that is certainly in it is listed.
    pub(crate) fn peeked(&mut self, state: JobState, views: &[JobView]) -> CheckResult {
        let location = Counted::In(state);
        let mut listed = Vec::new();
        for view in views {
            let Some(at) = self.job_of(&view.payload) else {
                return Err(format!("UNEXPECTED, R3: never pushed: {view:?}"));
            };
            self.viewed(at, view)?;
            self.jobs[at].id = view.id.clone();
            listed.push(at);
        }
        for at in (0..self.jobs.len()).filter(|at| !listed.contains(at)) {
            self.keep(
                at,
                &format!("LOST, R1: not listed as {}", state.as_str()),
                |possible| possible.counted() != location,
            )?;
        }
        Ok(())
    }

    /// Checks every field of the view of a job, and rules out the possible states that
    /// contradict it.
    pub(crate) fn viewed(&mut self, at: usize, view: &JobView) -> CheckResult {
        self.is_as_pushed(at, view)?;
        self.check_time(at, view.enqueued_at)?;
        let (job, start) = (self.jobs[at].clone(), Start(self.started));
        let state = view.detail.state();
        self.keep(at, &format!("R23: shown as {}", state.as_str()), |possible| {
            possible.counted() == Counted::In(state)
        })?;
        let rule = format!("R11: shown with {} attempts", view.attempt);
        self.keep(at, &rule, |possible| possible.attempt == view.attempt)?;
        self.keep(at, "R30: not shown with the job that it follows", |possible| {
            job.is_listed_as(possible, view)
        })?;
        let shown = view.last_error.as_deref().unwrap_or_default();
        self.keep(at, &format!("R11: shown with the last error {shown:?}"), |it| {
            it.last_error.to_string() == shown
        })?;
        let rule = format!("R17: shown with the expiry {:?}", view.expires_at);
        self.keep(at, &rule, |possible| match (possible.expires, view.expires_at) {
            (Some(expires), Some(shown)) => start.may_be_at(expires, shown),
            (expires, shown) => expires.is_none() && shown.is_none(),
        })?;
        self.shows_batch(at, view)?;
        self.shows_times(at, &view.detail)
    }

    fn shows_batch(&mut self, at: usize, view: &JobView) -> CheckResult {
        let own = self.jobs[at].batch.map(Self::batch_id);
        let rule = format!("B1, B8: shown with the batch {:?}", view.batch);
        self.keep(at, &rule, |possible| {
            let batch = own.as_ref().filter(|_| !possible.is_detached);
            view.batch.as_ref() == batch
                // The record of the batch may be gone.
                || possible.location == JobLocation::Dead && view.batch.is_none()
        })
    }

    /// Checks when the job is due, and when its lease ends.
    fn shows_times(&mut self, at: usize, detail: &StateDetail) -> CheckResult {
        let start = Start(self.started);
        let shares_heartbeat = self.class.shares_heartbeat();
        let rule = format!("R6, R14: shown with the times {detail:?}");
        self.keep(at, &rule, |possible| match (possible.location, detail) {
            (JobLocation::Scheduled { due }, StateDetail::Scheduled { due: shown }) => {
                start.may_be_at(due, *shown)
            }
            (JobLocation::Leased(lease), StateDetail::Leased { until, .. }) => {
                shares_heartbeat || start.may_be_at(lease.until, *until)
            }
            _ => true,
        })
    }

    /// R27: checks the time at which the store says that a job was pushed. The model does
    /// not know the store's time at the start, so it compares the jobs with each other.
    pub(crate) fn check_time(
        &mut self,
        at: usize,
        enqueued_at: Option<Timestamp>,
    ) -> CheckResult {
        let Some(found) = enqueued_at else {
            // The test cases find a backend that returns no time for any job.
            if self.started.is_none() {
                return Ok(());
            }
            return Err(format!("R27: no time of push: {}", self.jobs[at].tell()));
        };
        let Some((first, last)) = self.jobs[at].pushed else { return Ok(()) };
        let start =
            |pushed: Ms| found.unix_ms() - i64::try_from(pushed).unwrap_or(i64::MAX);
        let (mut earliest, mut latest) = (start(last) - 1, start(first) + 1);
        if let Some(known) = self.started {
            earliest = earliest.max(known.0);
            latest = latest.min(known.1);
        }
        if earliest > latest {
            return Err(format!(
                "R27: it was pushed after {first} to {last} ms, and says {found:?}, which \
                 does not fit to other jobs: {}",
                self.jobs[at].tell()
            ));
        }
        self.started = Some((earliest, latest));
        Ok(())
    }

    /// Checks the fields of a view that a job keeps from its push.
    fn is_as_pushed(&self, at: usize, view: &JobView) -> CheckResult {
        let (job, spec) = (&self.jobs[at], &self.jobs[at].spec);
        // A dead job holds no key, and may be shown with the one that it held.
        let is_dead = view.detail.state() == JobState::Dead;
        let has_wrong_key = view.unique.as_ref() != job.key();
        let wrong = [
            (
                view.id.is_none() || job.id.is_some() && job.id != view.id,
                "R3: another id",
            ),
            (spec.headers != view.headers, "R2: other headers"),
            (spec.priority != view.priority, "R15: another priority"),
            (spec.max_attempts != view.max_attempts, "R11: other attempts"),
            (spec.lease != view.lease, "R6: another length of its leases"),
            (
                spec.keep_result.map(ms) != view.keep_result.map(ms),
                "R29: another time for which its result is kept",
            ),
            (
                has_wrong_key && !(is_dead && view.unique.is_none()),
                "R16: not its unique key",
            ),
        ];
        match wrong.into_iter().find(|(is_wrong, _)| *is_wrong) {
            Some((_, rule)) => Err(format!("{rule}: {view:?}")),
            None => Ok(()),
        }
    }
}
