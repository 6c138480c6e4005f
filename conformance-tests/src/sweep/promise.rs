//! The promise of a scenario: what the store must contain after the victim's calls. The
//! reference model derives it, and a run compares it with what the survivors found.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use bytes::Bytes;
use relq_core::{JobId, environment::Timestamp, schedule::Schedule};

use super::Check;
use crate::spec::{drained::FoundAt, pushing::ms, resulting::named, scheduling::tell};

/// Where a job was found at the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum End {
    /// A survivor claimed the job and finished it.
    Delivered,
    /// The job was found among the dead letters.
    Dead,
    /// The victim ran the job, whether or not it could settle it.
    Ran,
}

/// The jobs that were found: for each payload and each place, how many.
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) struct StoreContents(BTreeMap<(Bytes, End), usize>);

impl StoreContents {
    /// Adds a job that was found there.
    pub(crate) fn add_found(&mut self, payload: Bytes, found: FoundAt) {
        match found {
            FoundAt::Claim => self.add(payload, End::Delivered),
            FoundAt::DeadLetters => self.add(payload, End::Dead),
            FoundAt::Nowhere => {}
        }
    }

    /// Adds what is told of a job, as text. It counts like a delivered job, as a schedule
    /// does.
    pub(crate) fn add_told(&mut self, text: Option<&String>) {
        self.add_schedule(text);
    }

    /// Adds a stored schedule, as text. It counts like a delivered job, so the checks that
    /// find a lost or repeated job also find a lost schedule or a wrong last tick.
    pub(crate) fn add_schedule(&mut self, text: Option<&String>) {
        if let Some(text) = text {
            self.add(Bytes::from(text.clone()), End::Delivered);
        }
    }

    pub(crate) fn add(&mut self, payload: Bytes, end: End) {
        *self.0.entry((payload, end)).or_default() += 1;
    }

    fn count(&self, payload: &Bytes, end: End) -> usize {
        self.0.get(&(payload.clone(), end)).copied().unwrap_or(0)
    }

    fn payloads(&self) -> impl Iterator<Item = &Bytes> {
        self.0.keys().map(|(payload, _)| payload)
    }

    fn total(&self, payload: &Bytes) -> usize {
        self.count(payload, End::Delivered) + self.count(payload, End::Dead)
    }

    fn agrees(&self, other: &Self, payload: &Bytes) -> bool {
        let ends = [End::Delivered, End::Dead];
        ends.iter().all(|end| self.count(payload, *end) == other.count(payload, *end))
    }
}

impl fmt::Debug for StoreContents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.0.iter().map(|((payload, end), count)| {
            format!("{}x {end:?} {}", count, payload.escape_ascii())
        });
        f.debug_list().entries(lines).finish()
    }
}

/// The jobs and the problems that the survivors found after a run.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) promise: StoreContents,
    /// The jobs that the survivors saw or that the victim held.
    pub(crate) seen: BTreeSet<JobId>,
    /// The record of each of these jobs that keeps its result, as text.
    pub(crate) told: Vec<(JobId, String)>,
    /// The schedules of the queue.
    pub(crate) schedules: Vec<Schedule>,
    /// The number of jobs that exist but could not be claimed.
    pub(crate) left_behind: u64,
    /// The failed checks so far, each with the check's name.
    pub(crate) wrong: Vec<String>,
}

impl Found {
    /// Adds the schedules to what must be as promised. Their times count from the
    /// beginning of the setup.
    pub(crate) fn count_schedules(&mut self, scene_began: Timestamp) {
        for Schedule { name, definition, last_tick, .. } in self.schedules.drain(..) {
            let last = ms(last_tick.since(scene_began));
            let text = tell(name.as_str(), &definition, Some(last));
            self.promise.add_schedule(Some(&text));
        }
    }

    /// Adds what is told of jobs to what must be as promised. The promise does not know
    /// the ids of the jobs that the victim pushed, so what is told of them counts for any
    /// of them.
    pub(crate) fn count_told(&mut self, promise: &Promise) {
        for (id, text) in self.told.drain(..) {
            let known = Some(&id).filter(|id| promise.known.contains(id));
            self.promise.add_told(Some(&named(known, &text)));
        }
    }

    pub(crate) fn is_wrong(&mut self, check: Check, how: &str) {
        self.wrong.push(format!("{check}: {how}"));
    }
}

/// The contents that the store must have after the victim's calls: `done` if they took
/// effect, and `undone` if they did not.
#[derive(Debug, Clone)]
pub(crate) struct Promise {
    pub(crate) undone: StoreContents,
    pub(crate) done: StoreContents,
    /// The ids of the jobs that the reference model knows.
    pub(crate) known: BTreeSet<JobId>,
    /// Whether the calls may take effect in part.
    pub(crate) atomicity: Atomicity,
}

/// Whether all changes of the victim's calls must take effect together (R5, R8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Atomicity {
    AllOrNone,
    EachByItself,
    /// Each job is run by the victim or delivered to the survivors, at least once and
    /// at most `at_most` times in total.
    AtLeastOnce {
        at_most: usize,
    },
}

/// Whether the victim's calls took effect, as far as that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Knowledge {
    Done,
    Undone,
    Unknown,
}

impl Promise {
    /// The same promise for a run with or without a fault. A fault allows one more
    /// delivery of each job, and no loss (DUP-BOUND).
    pub(crate) fn bearing(&self, has_fault: bool) -> Self {
        let mut promise = self.clone();
        if let Atomicity::AtLeastOnce { at_most } = &mut promise.atomicity {
            *at_most += usize::from(has_fault);
        }
        promise
    }

    /// Compares what was found with the promise. The error lists the checks that
    /// failed, each with its name.
    pub(crate) fn judge(&self, found: &Found, known: Knowledge) -> Result<(), String> {
        let mut wrong = found.wrong.clone();
        wrong.extend(self.differs(found, known));
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
    }

    fn differs(&self, found: &Found, known: Knowledge) -> Option<String> {
        let Self { undone, done, .. } = self;
        let Found { promise: found, left_behind, .. } = found;
        let mut broken = self.broken(found, known);
        if *left_behind > 0 {
            // Jobs that exist but could not be claimed are not lost, only late. The
            // check of the recovery time reports them.
            broken.remove(&Check::Lost);
        } else if broken.is_empty() && self.is_torn(found) {
            broken.insert(Check::AllOrNone);
        }
        let names: Vec<_> = broken.into_iter().map(Check::name).collect();
        (!names.is_empty()).then(|| {
            format!(
                "{}: found {found:?}; the act is {known:?}; done is {done:?}, undone \
                 {undone:?}",
                names.join(": ")
            )
        })
    }

    /// Returns the checks that fail for at least one payload.
    fn broken(&self, found: &StoreContents, known: Knowledge) -> BTreeSet<Check> {
        let Self { undone, done, atomicity, .. } = self;
        let all = found.payloads().chain(done.payloads()).chain(undone.payloads());
        if let Atomicity::AtLeastOnce { at_most } = *atomicity {
            return all.filter_map(|one| not_run(one, found, done, at_most)).collect();
        }
        all.filter_map(|payload| match known {
            Knowledge::Done if self.is_ended(payload) => {
                (!found.agrees(done, payload)).then_some(Check::Final)
            }
            Knowledge::Done => wrong(payload, found, [done, done]),
            Knowledge::Undone if found.agrees(undone, payload) => None,
            Knowledge::Undone if found.agrees(done, payload) => Some(Check::ErrorClass),
            Knowledge::Undone => wrong(payload, found, [undone, undone]),
            Knowledge::Unknown => wrong(payload, found, [done, undone]),
        })
        .collect()
    }

    /// Whether the victim's calls end the jobs with that payload when they take effect.
    fn is_ended(&self, payload: &Bytes) -> bool {
        self.done.total(payload) == 0 && self.undone.total(payload) > 0
    }

    /// Whether calls that must be all or nothing took effect in part.
    fn is_torn(&self, found: &StoreContents) -> bool {
        self.atomicity == Atomicity::AllOrNone
            && *found != self.done
            && *found != self.undone
    }
}

/// Returns the check that fails for a payload whose job the victim or a survivor must
/// run at least once. `None` if no check fails.
fn not_run(
    payload: &Bytes,
    found: &StoreContents,
    jobs: &StoreContents,
    at_most: usize,
) -> Option<Check> {
    if jobs.total(payload) == 0 {
        return Some(Check::Unexpected);
    }
    if found.count(payload, End::Dead) > 0 {
        return Some(Check::WrongEnd);
    }
    match found.count(payload, End::Ran) + found.count(payload, End::Delivered) {
        0 => Some(Check::Lost),
        times => (times > at_most).then_some(Check::DupBound),
    }
}

/// Returns the check that fails if the jobs of a payload match neither of the two
/// allowed contents in `either`. `None` if no check fails.
fn wrong(
    payload: &Bytes,
    found: &StoreContents,
    either: [&StoreContents; 2],
) -> Option<Check> {
    if either.iter().any(|right| found.agrees(right, payload)) {
        return None;
    }
    let totals = either.map(|right| right.total(payload));
    let (least, most) = (totals[0].min(totals[1]), totals[0].max(totals[1]));
    Some(match found.total(payload) {
        _ if most == 0 => Check::Unexpected,
        total if total < least => Check::Lost,
        total if total > most => Check::DupBound,
        _ => Check::WrongEnd,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOBS: [&str; 2] = ["a", "b"];

    fn found(ran: &[&'static str], delivered: &[&'static str]) -> StoreContents {
        let mut found = StoreContents::default();
        ran.iter().for_each(|one| found.add((*one).into(), End::Ran));
        delivered.iter().for_each(|one| found.add((*one).into(), End::Delivered));
        found
    }

    /// The promise of a scenario with a whole worker as the victim. Each job runs, on the
    /// victim or on a survivor. Without a fault it runs exactly once.
    fn promise() -> Promise {
        let (undone, done) = (found(&[], &JOBS), found(&[], &JOBS));
        let atomicity = Atomicity::AtLeastOnce { at_most: 1 };
        Promise { undone, done, known: BTreeSet::new(), atomicity }
    }

    fn is_kept(has_fault: bool, found: &StoreContents) -> bool {
        let promise = promise().bearing(has_fault);
        let found = Found { promise: found.clone(), ..Found::default() };
        promise.judge(&found, Knowledge::Unknown).is_ok()
    }

    #[test]
    fn a_job_is_run_or_delivered() {
        assert!(is_kept(false, &found(&["a"], &["b"])));
        assert!(!is_kept(true, &found(&["a"], &[])), "b is lost");
        assert!(!is_kept(true, &found(&["a", "b"], &["c"])), "c is invented");
    }

    #[test]
    fn one_fault_justifies_one_more_run() {
        let twice = found(&["a", "b"], &["b"]);

        assert!(is_kept(true, &twice));
        assert!(!is_kept(false, &twice));
        assert!(!is_kept(true, &found(&["a", "b", "b"], &["b"])));
    }

    #[test]
    fn a_dead_job_was_not_run() {
        let mut dead = found(&["a", "b"], &[]);
        dead.add("b".into(), End::Dead);

        assert!(!is_kept(true, &dead));
    }
}
