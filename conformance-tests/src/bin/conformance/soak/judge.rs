//! Judges a soak by its records.

use std::{collections::HashMap, num::NonZeroU32, path::PathBuf};

use relq_core::{
    Queue,
    operator::{JobState, JobView, PeekRequest},
};
use serde::Serialize;

use super::{
    kill_schedule::Kills,
    plan::{self, HandlerPlan},
    processes::Evidence,
    record::{self, Kind, Record},
    worker::SLOTS,
};
use crate::SuiteResult;

/// The number of problems that are listed; further ones are only counted.
const TOLD: usize = 20;

/// The results of all jobs of a soak.
#[derive(Serialize, Debug, Default)]
pub(super) struct Judgement {
    /// Jobs that the store accepted.
    pub(super) accepted: u64,
    /// Pushes that were refused because another job held their unique key.
    pub(super) refused: u64,
    /// Accepted jobs with a successful attempt.
    pub(super) finished: u64,
    /// Accepted jobs that were buried, as planned.
    pub(super) dead: u64,
    /// Accepted jobs that were neither finished nor buried.
    pub(super) lost: u64,
    /// Jobs that ran and were never accepted, or whose payload had changed.
    pub(super) invented: u64,
    /// Runs beyond those that the plan asks for.
    pub(super) repeats: u64,
    /// How many of the repeated runs the kills can explain.
    pub(super) repeats_allowed: u64,
    pub(super) kills: Kills,
    pub(super) problems: Vec<String>,
    #[serde(skip)]
    jobs: HashMap<u64, Job>,
}

/// The records of one job.
#[derive(Debug, Default, Clone, Copy)]
struct Job {
    is_meant: bool,
    is_stored: bool,
    is_refused: bool,
    is_dead: bool,
    starts: u64,
    failures: u64,
    ends: u64,
}

impl Job {
    /// Runs without a result: neither a planned failure nor the success.
    fn repeats(&self) -> u64 {
        self.starts.saturating_sub(self.failures + self.ends.min(1))
    }
}

/// The least that a soak must have done for its result to mean anything.
#[derive(Debug, Clone, Copy)]
pub(super) struct TooFew {
    server_kills: u64,
}

impl TooFew {
    pub(super) fn of(has_server: bool) -> Self {
        Self { server_kills: u64::from(has_server) }
    }
}

impl Judgement {
    /// Reads the records of all processes.
    pub(super) fn of(evidence: &Evidence, kills: Kills) -> Self {
        let allowed = kills.workers * u64::from(SLOTS.get());
        let mut judgement = Self { kills, repeats_allowed: allowed, ..Self::default() };
        judgement.read(&evidence.producers);
        judgement.read(&evidence.workers);
        judgement
    }

    /// Compares the records with the queue's own counts, and sums up.
    pub(super) async fn compare_with(&mut self, queue: &dyn Queue) -> SuiteResult<()> {
        for view in dead_jobs(queue).await? {
            self.bury(&view);
        }
        self.sum_up();
        let stats = queue.stats().await?;
        let expected = (self.accepted - self.dead.min(self.accepted), self.dead);
        if (stats.finished, stats.dead) != expected {
            let (finished, dead) = expected;
            self.problem(format!(
                "the queue counts {} finished and {} dead, the records {finished} and \
                 {dead}",
                stats.finished, stats.dead
            ));
        }
        let audit = queue.audit().await?;
        if audit.jobs != self.dead {
            let dead = self.dead;
            self.problem(format!("the audit finds {} jobs, not {dead}", audit.jobs));
        }
        self.problems.extend(audit.problems);
        Ok(())
    }

    /// Reports a problem if too little happened: such a soak proves nothing.
    pub(super) fn refuse_too_few(&mut self, least: TooFew) {
        let Kills { workers, producers, servers } = self.kills;
        for (what, count, least) in [
            ("jobs were accepted", self.accepted, 1000),
            ("workers were killed", workers, 1),
            ("producers were killed", producers, 1),
            ("servers were killed", servers, least.server_kills),
        ] {
            if count < least {
                self.problem(format!("only {count} {what}: give it more seconds"));
            }
        }
    }

    fn read(&mut self, files: &[PathBuf]) {
        for file in files {
            match record::read(file) {
                Ok(records) => records.iter().for_each(|record| self.note(record)),
                Err(problem) => self.problem(problem),
            }
        }
    }

    fn note(&mut self, record: &Record) {
        let Record { kind, job: number, count } = *record;
        match kind {
            Kind::Meant => {
                (number..number + u64::from(count))
                    .for_each(|each| self.job(each).is_meant = true);
            }
            Kind::Stored => self.job(number).is_stored = true,
            Kind::Refused => self.job(number).is_refused = true,
            Kind::Answered => {}
            Kind::Start => self.job(number).starts += 1,
            Kind::Fail => self.job(number).failures += 1,
            Kind::End => self.job(number).ends += 1,
            Kind::Changed => {
                self.invented += 1;
                self.problem("a worker got a payload that was never pushed".into());
            }
        }
    }

    fn job(&mut self, number: u64) -> &mut Job {
        self.jobs.entry(number).or_default()
    }

    /// Checks whether a dead letter is one that the plan buries.
    fn bury(&mut self, view: &JobView) {
        let Some(number) = plan::number(&view.payload) else {
            self.invented += 1;
            return self
                .problem(format!("{:?} is dead with a changed payload", view.id));
        };
        let was_dead = std::mem::replace(&mut self.job(number).is_dead, true);
        if was_dead {
            self.problem(format!("job {number} is dead twice"));
        }
        if view.attempt < u32::from(view.max_attempts.get()) {
            let attempts = view.attempt;
            self.problem(format!("job {number} is dead after {attempts} attempts"));
        }
    }

    fn sum_up(&mut self) {
        let mut jobs: Vec<_> = std::mem::take(&mut self.jobs).into_iter().collect();
        jobs.sort_unstable_by_key(|(number, _)| *number);
        for (number, job) in &jobs {
            self.repeats += job.repeats();
            match (job.is_stored, job.is_refused) {
                (true, false) => self.accept(*number, job),
                (false, true) => self.refuse(*number, job),
                (true, true) => {
                    self.problem(format!(
                        "the push of job {number} was both accepted and refused"
                    ));
                }
                (false, false) => self.never_answered(*number, job),
            }
        }
        if self.repeats > self.repeats_allowed {
            let (repeats, allowed) = (self.repeats, self.repeats_allowed);
            self.problem(format!("{repeats} repeated runs are more than {allowed}"));
        }
    }

    fn accept(&mut self, number: u64, job: &Job) {
        self.accepted += 1;
        match (job.ends > 0, job.is_dead) {
            (true, false) => self.finished += 1,
            (false, true) => {
                self.dead += 1;
                // This job used up its attempts, as was checked. For a job that can
                // succeed this means that kills ended all of them, and no soak runs
                // long enough for that.
                if plan::plan(number) != HandlerPlan::NeverSucceeds {
                    self.problem(format!("job {number} is dead and could succeed"));
                }
            }
            (true, true) => {
                self.dead += 1;
                self.problem(format!("job {number} is both finished and dead"));
            }
            (false, false) => {
                self.lost += 1;
                self.problem(format!("job {number} is lost: {job:?}"));
            }
        }
    }

    fn refuse(&mut self, number: u64, job: &Job) {
        self.refused += 1;
        if job.starts > 0 || job.is_dead {
            self.invented += 1;
            self.problem(format!(
                "job {number} was refused, but the store has it: {job:?}"
            ));
        }
    }

    fn never_answered(&mut self, number: u64, job: &Job) {
        if job.is_meant {
            self.problem(format!("the push of job {number} was never answered"));
        } else {
            self.invented += 1;
            self.problem(format!("job {number} was never pushed: {job:?}"));
        }
    }

    fn problem(&mut self, problem: String) {
        if self.problems.len() < TOLD {
            self.problems.push(problem);
        } else if self.problems.len() == TOLD {
            self.problems.push("and more problems".to_owned());
        }
    }
}

async fn dead_jobs(queue: &dyn Queue) -> SuiteResult<Vec<JobView>> {
    let page = NonZeroU32::new(500).expect("not zero");
    let mut ask = PeekRequest::new(JobState::Dead, page);
    let mut dead = Vec::new();
    loop {
        let page = queue.peek(&ask).await?;
        dead.extend(page.jobs);
        match page.next {
            Some(cursor) => ask = ask.after(cursor),
            None => return Ok(dead),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::record::Recorder, *};

    /// Judges a soak with these records, each as kind, job and count.
    fn judge(records: &[(Kind, u64, u32)]) -> Judgement {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("records");
        let recorder = Recorder::open(&file).unwrap();
        for (kind, job, count) in records {
            recorder.write(*kind, *job, *count).unwrap();
        }
        let evidence = Evidence { producers: vec![file], workers: vec![] };
        let mut judgement = Judgement::of(&evidence, Kills::default());
        judgement.sum_up();
        judgement
    }

    fn problem(records: &[(Kind, u64, u32)]) -> String {
        judge(records).problems.join("\n")
    }

    /// The records of a job that succeeds at once.
    const JOB: u64 = 4;
    const MEANT: (Kind, u64, u32) = (Kind::Meant, JOB, 1);
    const STORED: (Kind, u64, u32) = (Kind::Stored, JOB, 0);
    const REFUSED: (Kind, u64, u32) = (Kind::Refused, JOB, 0);
    const START: (Kind, u64, u32) = (Kind::Start, JOB, 1);
    const END: (Kind, u64, u32) = (Kind::End, JOB, 1);

    #[test]
    fn a_job_that_was_stored_and_ended_is_well() {
        let judgement = judge(&[MEANT, STORED, START, END]);

        assert_eq!(judgement.problems, [""; 0]);
        assert_eq!((judgement.accepted, judgement.finished), (1, 1));
    }

    #[test]
    fn a_job_that_never_ended_is_lost() {
        assert_eq!(judge(&[MEANT, STORED, START]).lost, 1);
    }

    #[test]
    fn a_job_of_nobody_is_invented() {
        assert_eq!(judge(&[START, END]).invented, 1);
        assert_eq!(judge(&[MEANT, REFUSED, START, END]).invented, 1);
        assert_eq!(judge(&[(Kind::Changed, 0, 1)]).invented, 1);
    }

    #[test]
    fn runs_that_no_kill_accounts_for_are_told() {
        let told = problem(&[MEANT, STORED, START, END, START, END]);
        assert!(told.contains("1 repeated runs are more than 0"), "{told}");
    }

    #[test]
    fn a_failure_of_the_plan_is_no_repeat() {
        let fail = (Kind::Fail, JOB, 1);
        assert_eq!(problem(&[MEANT, STORED, START, fail, START, END]), "");
    }

    #[test]
    fn a_push_has_one_answer() {
        let told = problem(&[MEANT, STORED, REFUSED, START, END]);
        assert!(told.contains("both accepted and refused"), "{told}");
        let told = problem(&[MEANT]);
        assert!(told.contains("never answered"), "{told}");
    }

    #[test]
    fn a_soak_in_which_nothing_happened_fails() {
        let mut judgement = judge(&[]);
        judgement.refuse_too_few(TooFew::of(true));
        assert_eq!(judgement.problems.len(), 4, "{:?}", judgement.problems);
    }
}
