//! The rules for settlements and heartbeats: how they change the possible states.

use relq_core::outcome::{Extended, Settled};

use super::{
    draft,
    last_error::LastError,
    operation::DispositionKind,
    possible_state::{End, JobLocation, Lease, Link, Ms, PossibleState},
    reference::{CheckResult, Job, Knowledge, Reference, WINDOW},
    sequence::Steps,
};

/// One job's part of a settlement call, by a receipt that an earlier claim returned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SentSettlement {
    pub(crate) observed: usize,
    pub(crate) disposition: DispositionKind,
    /// The delay before the next attempt, if the disposition is a retry or a
    /// postponement.
    pub(crate) after: Ms,
}

impl Reference {
    /// Records a settlement call that returned, and checks the result for each job.
    pub(crate) fn settled(
        &mut self,
        sent: &[SentSettlement],
        answers: &[Settled],
    ) -> CheckResult {
        if sent.len() != answers.len() {
            return Err(format!("R7: {answers:?} to {} settlements", sent.len()));
        }
        let keep_order = self.is_in_order(sent);
        for (position, (one, answer)) in sent.iter().zip(answers).enumerate() {
            let back = (self.step, if keep_order { 0 } else { position });
            self.one_settled(*one, *answer, back)?;
        }
        self.follow_leaders();
        Ok(())
    }

    /// Records a settlement call whose reply was lost. If one step handles the call,
    /// settlements of one kind happened together or not at all (R8). A settlement whose
    /// lease has expired may have been applied or not, whatever happened to the others.
    pub(crate) fn maybe_settled(&mut self, sent: &[SentSettlement]) {
        let (now, first) = (self.now, self.links);
        let is_one_by_one = self.steps == Steps::OfOneJob;
        let mut parts = Vec::new();
        for (position, one) in sent.iter().enumerate() {
            let (class, back) = (self.class.clone(), (self.step, position));
            let mut each = |job: &Job, possible: &PossibleState| {
                let held = possible.lease();
                let held = held.filter(|it| it.receipt == Some(one.observed));
                let Some(lease) = held else { return vec![*possible] };
                let done =
                    carried_out(job, possible, *one, lease.back(&class, back), now);
                if lease.until <= now || is_one_by_one {
                    return done.into_iter().chain([*possible]).collect();
                }
                let part =
                    (one.disposition.part(), job.has_side_records(possible), lease.run);
                let known = parts.iter().position(|known| *known == part);
                let index = known.unwrap_or_else(|| {
                    parts.push(part);
                    parts.len() - 1
                });
                let call = first + u32::try_from(index).unwrap_or(u32::MAX);
                let done = done.into_iter();
                done.map(|it| it.linked(Link { call, happened: true }))
                    .chain([possible.linked(Link { call, happened: false })])
                    .collect()
            };
            let kept = self.each(Knowledge::Done, "", &mut each);
            assert!(kept.is_ok(), "each possible state is kept");
        }
        self.links += u32::try_from(parts.len()).unwrap_or(u32::MAX);
        self.follow_leaders();
    }

    fn one_settled(
        &mut self,
        sent: SentSettlement,
        answer: Settled,
        back: (u32, usize),
    ) -> CheckResult {
        let (now, held) = (self.now, self.observed[sent.observed].job);
        let payload = self.jobs[held].spec.payload.clone();
        let class = self.class.clone();
        let rule = match answer {
            Settled::Applied => "FENCE-ACK, R7: a lost lease is settled",
            Settled::LeaseLost => "R6: a lease that runs is lost",
        };
        self.each(Knowledge::Done, rule, |job, possible| {
            if job.spec.payload != payload {
                return vec![*possible];
            }
            let lease = possible.lease().filter(|it| it.receipt == Some(sent.observed));
            match (lease, answer) {
                (Some(lease), Settled::Applied) => {
                    carried_out(job, possible, sent, lease.back(&class, back), now)
                }
                (Some(lease), Settled::LeaseLost) if lease.until > now => Vec::new(),
                (None, Settled::Applied) => Vec::new(),
                (_, Settled::LeaseLost) => vec![*possible],
            }
        })
    }

    /// Whether the settlements of one claim's jobs are in the order in which the claim
    /// returned the jobs. Only then is the order after their return defined (R13).
    fn is_in_order(&self, sent: &[SentSettlement]) -> bool {
        let lease = |sent: &SentSettlement| self.observed[sent.observed].lease;
        let places: Vec<_> =
            sent.iter().map(lease).map(|it| (it.claim, it.index)).collect();
        places.is_sorted()
    }

    /// Records a heartbeat that returned, and checks the result for each lease.
    pub(crate) fn extended(
        &mut self,
        run: usize,
        named: &[usize],
        until: Ms,
        answers: &[(Extended, Option<Ms>)],
    ) -> CheckResult {
        if named.len() != answers.len() {
            return Err(format!("R7: {answers:?} to {} receipts", named.len()));
        }
        for (observed, (answer, end)) in named.iter().zip(answers) {
            if end.is_some_and(|end| end != until) {
                return Err(format!("R6: extended until {end:?}, expected {until}"));
            }
            self.one_extended(*observed, until, *answer)?;
        }
        self.maybe_unnamed(run, named);
        Ok(())
    }

    /// R10: records that a heartbeat did not name some jobs of its worker. On a backend
    /// whose heartbeats extend all leases of a worker, these jobs are given back or
    /// their leases expire. Such a delivery may or may not count as an attempt.
    fn maybe_unnamed(&mut self, run: usize, named: &[usize]) {
        if !self.class.shares_heartbeat() {
            return;
        }
        let (class, back) = (self.class.clone(), (self.step, 0));
        let is_unnamed = |lease: &Lease| {
            let is_named = |observed| named.contains(&observed);
            lease.run == run && !lease.receipt.is_some_and(is_named)
        };
        self.maybe(|_, possible| match possible.location {
            JobLocation::Leased(lease) if is_unnamed(&lease) => {
                let counted = possible.at(lease.back(&class, back));
                let attempt = possible.attempt.saturating_sub(1);
                let noted = counted.with_lost_lease();
                vec![counted, noted, PossibleState { attempt, ..counted }]
            }
            JobLocation::Moved(lease) if is_unnamed(&lease) => {
                vec![possible.at(lease.back(&class, back))]
            }
            _ => Vec::new(),
        });
    }

    /// Records a heartbeat whose reply was lost: the named leases may be extended.
    pub(crate) fn maybe_extended(&mut self, run: usize, named: &[usize], until: Ms) {
        let now = self.now;
        self.maybe_unnamed(run, named);
        for observed in named {
            self.maybe(|job, possible| match possible.lease() {
                Some(lease) if lease.receipt == Some(*observed) => {
                    let extended =
                        possible.at(JobLocation::Leased(Lease { until, ..*lease }));
                    let stopped = stopped(possible, (*observed, *lease), now);
                    match job.is_cancelled(possible) {
                        None => vec![extended],
                        Some(Knowledge::Done) => vec![stopped],
                        Some(Knowledge::Maybe) => vec![extended, stopped],
                    }
                }
                _ => Vec::new(),
            });
        }
    }

    fn one_extended(
        &mut self,
        observed: usize,
        until: Ms,
        answer: Extended,
    ) -> CheckResult {
        let (now, at) = (self.now, self.observed[observed].job);
        let cancelled = self.jobs[at].cancelled;
        self.keep(at, &format!("FENCE-EXTEND, R7, B7: {answer:?}"), |possible| {
            let cancelled = cancelled.filter(|_| !possible.is_detached);
            may_be_answered(possible, (observed, answer), cancelled, now)
        })?;
        for possible in &mut self.jobs[at].possible_states {
            let Some(lease) = possible.lease().copied() else { continue };
            match answer {
                Extended::Until(_) => {
                    *possible =
                        possible.at(JobLocation::Leased(Lease { until, ..lease }));
                }
                Extended::Cancelled => {
                    *possible = stopped(possible, (observed, lease), now);
                }
                Extended::LeaseLost | Extended::Unknown => {}
            }
        }
        Ok(())
    }
}

/// Whether a heartbeat may return `answer` for the receipt of that index when its job is
/// in this state. `cancelled` says whether the batch of the job was cancelled.
fn may_be_answered(
    possible: &PossibleState,
    (observed, answer): (usize, Extended),
    cancelled: Option<Knowledge>,
    now: Ms,
) -> bool {
    match (possible.location, answer) {
        (JobLocation::Leased(lease), _) if lease.receipt == Some(observed) => {
            match answer {
                Extended::Until(_) => cancelled != Some(Knowledge::Done),
                Extended::LeaseLost => lease.until <= now,
                Extended::Cancelled => cancelled.is_some(),
                Extended::Unknown => false,
            }
        }
        (JobLocation::Gone { end: End::Cancelled(Some((it, ended))), at }, _)
            if it == observed =>
        {
            let is_known = now < ended.max(at) + WINDOW;
            answer == Extended::Cancelled
                || (answer == Extended::LeaseLost && !is_known)
        }
        (JobLocation::Gone { end: End::Purged, .. }, Extended::Cancelled) => false,
        (_, answer) => answer == Extended::LeaseLost,
    }
}

/// The state of a leased piece of a cancelled batch after a heartbeat ended it (B7).
fn stopped(
    possible: &PossibleState,
    (observed, lease): (usize, Lease),
    now: Ms,
) -> PossibleState {
    possible.ended(End::Cancelled(Some((observed, lease.until))), now)
}

/// Returns the possible states of a leased job after a settlement. `back` is the
/// location of the job if the settlement makes it ready again.
fn carried_out(
    job: &Job,
    possible: &PossibleState,
    sent: SentSettlement,
    back: JobLocation,
    now: Ms,
) -> Vec<PossibleState> {
    let last_error = LastError::reported(draft::error(sent.disposition));
    let failed = |location| PossibleState { last_error, ..possible.at(location) };
    vec![match sent.disposition {
        DispositionKind::Done => possible.valued(job, 0).ended(End::Finished, now),
        DispositionKind::DoneWith(value) => {
            possible.valued(job, value).ended(End::Finished, now)
        }
        DispositionKind::Discard => possible.ended(End::Discarded, now),
        DispositionKind::Bury => failed(JobLocation::Dead),
        DispositionKind::Retry(_) if job.is_last(possible) => failed(JobLocation::Dead),
        DispositionKind::Retry(_) => {
            failed(JobLocation::Scheduled { due: now + sent.after })
        }
        DispositionKind::Postpone(_) => {
            uncounted(possible, JobLocation::Scheduled { due: now + sent.after })
        }
        DispositionKind::GiveBack => uncounted(possible, back),
    }]
}

/// The state of a leased job that moves to `location` without having been run (R24,
/// R26).
fn uncounted(possible: &PossibleState, location: JobLocation) -> PossibleState {
    let attempt = possible.attempt.saturating_sub(1);
    PossibleState { attempt, ..possible.at(location) }
}
