//! Finds out from the records of a soak whether a job was lost, invented or repeated.

use std::{collections::HashMap, num::NonZeroU32, path::PathBuf, sync::Arc};

use relq_core::{
    Queue,
    operator::{JobState, JobView, PeekRequest},
};
use serde::Serialize;

use super::{
    deployment::FaultCounts,
    kill_schedule::Kills,
    orders::Played,
    plan::{self, HandlerPlan},
    processes::Evidence,
    record::{self, Kind, Record},
    worker::SLOTS,
};
use crate::SuiteResult;

/// How many jobs a worker may hold at once: those that run, and as many that have ended
/// and are not settled yet.
const HELD: u64 = 2 * SLOTS.get() as u64;

/// How many problems are listed. Further problems are only counted.
const TOLD: usize = 20;

/// A soak is judged by at least so many jobs.
pub(super) const LEAST_JOBS: u64 = 1000;

/// The counts of a soak's jobs, and the problems that were found.
#[derive(Serialize, Debug, Default)]
pub(super) struct Judgement {
    /// The number of jobs that the store accepted.
    pub(super) accepted: u64,
    /// The number of pushes that were refused because another job held their unique
    /// key.
    pub(super) refused: u64,
    /// The number of accepted jobs with a successful attempt.
    pub(super) finished: u64,
    /// The number of accepted jobs that were buried, as their plan says.
    pub(super) dead: u64,
    /// The number of accepted jobs that were neither finished nor buried.
    pub(super) lost: u64,
    /// The number of jobs that ran and were never accepted, or whose payload had
    /// changed.
    pub(super) invented: u64,
    /// The number of runs beyond those that the plans of the jobs ask for.
    pub(super) repeats: u64,
    /// How many of these repeated runs the kills and the faults of the servers can
    /// explain. `None` if a fail-over may undo any number of settlements.
    pub(super) repeats_allowed: Option<u64>,
    /// How many refused jobs ran before a fail-over undid their push. The push had not
    /// returned then, and its repetition was refused.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) undone: u64,
    /// How many random orders of commands were played beside the jobs. `None` on several
    /// servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) random_orders: Option<u64>,
    pub(super) kills: Kills,
    #[serde(flatten)]
    pub(super) exposure: Option<Exposure>,
    pub(super) problems: Vec<String>,
    #[serde(skip)]
    jobs: HashMap<u64, Job>,
}

/// How many records of each kind one job has.
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
    /// The number of runs that ended neither with a planned failure nor with success.
    fn repeats(&self) -> u64 {
        self.starts.saturating_sub(self.failures + self.ends.min(1))
    }
}

/// The faults of a soak on several servers, and the numbers that bound their effects.
#[derive(Serialize, Debug, Clone, Copy)]
pub(super) struct Exposure {
    pub(super) faults: FaultCounts,
    /// How many replicas confirmed each push and settlement.
    pub(super) replicas: u32,
    /// The number of worker processes that ran at the same time.
    #[serde(skip)]
    pub(super) workers: u64,
}

impl Exposure {
    /// Whether a fail-over may lose jobs and settlements.
    fn may_lose(&self) -> bool {
        self.replicas == 0
    }

    /// How many repeated runs the faults can explain. A fail-over may undo the claim of
    /// each leased job, and an outage may last longer than its lease.
    fn repeats(&self) -> u64 {
        self.faults.outages() * self.workers * HELD
    }

    /// The lines of a report.
    pub(super) fn rows(&self, undone: u64) -> [(&'static str, u64); 8] {
        let FaultCounts { moves, kills, freezes, cut_offs, restarts, .. } = self.faults;
        [
            ("refused after an undone run", undone),
            ("replicas that confirm", self.replicas.into()),
            ("slots moved to and fro", moves),
            ("masters killed", kills),
            ("masters frozen", freezes),
            ("masters cut off", cut_offs),
            ("servers restarted", restarts),
            ("faults in all", self.faults.all()),
        ]
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The counts below which a soak has tested too little, and fails.
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
    /// Reads the records of all processes, and counts what happened to each job. A kill of
    /// a worker can repeat `held` jobs.
    pub(super) fn of(
        evidence: &Evidence,
        kills: Kills,
        held: u64,
        exposure: Option<Exposure>,
    ) -> Self {
        let by_kills = kills.workers * held;
        let repeats_allowed = match exposure {
            Some(exposure) if exposure.may_lose() => None,
            Some(exposure) => Some(by_kills + exposure.repeats()),
            None => Some(by_kills),
        };
        let mut judgement =
            Self { kills, repeats_allowed, exposure, ..Self::default() };
        judgement.read(&evidence.producers);
        judgement.read(&evidence.workers);
        judgement
    }

    /// Whether jobs were lost that must not be lost.
    pub(super) fn has_broken_loss(&self) -> bool {
        self.lost > 0 && !self.may_lose()
    }

    fn may_lose(&self) -> bool {
        self.exposure.is_some_and(|exposure| exposure.may_lose())
    }

    /// Compares the records with the counts and the dead letters of the queue, and adds
    /// up the results of all jobs.
    pub(super) async fn compare_with(
        &mut self,
        queues: &[Arc<dyn Queue>],
    ) -> SuiteResult<()> {
        let (mut finished, mut dead, mut jobs) = (0, 0, 0);
        for queue in queues {
            for view in dead_jobs(&**queue).await? {
                self.bury(&view);
            }
            let (stats, audit) = (queue.stats().await?, queue.audit().await?);
            finished += stats.finished;
            dead += stats.dead;
            jobs += audit.jobs;
            self.problems.extend(audit.problems);
        }
        self.sum_up();
        let expected = (self.accepted - self.dead.min(self.accepted), self.dead);
        if (finished, dead) != expected && !self.may_lose() {
            let (of_records, dead_of_records) = expected;
            self.problem(format!(
                "the queue counts {finished} finished and {dead} dead, the records \
                 {of_records} and {dead_of_records}"
            ));
        }
        if jobs != self.dead {
            let dead = self.dead;
            self.problem(format!("the audit finds {jobs} jobs, not {dead}"));
        }
        Ok(())
    }

    /// Adds the random orders of commands that were played, with their failures.
    pub(super) fn add(&mut self, played: Option<Played>) {
        let Some(Played { runs, failures }) = played else { return };
        self.random_orders = Some(runs);
        failures.into_iter().for_each(|failure| self.problem(failure));
    }

    /// Adds a problem if fewer jobs ran or fewer processes were killed than `least`.
    pub(super) fn refuse_too_few(&mut self, least: TooFew) {
        let Kills { workers, producers, servers } = self.kills;
        if self.exposure.is_some_and(|exposure| exposure.faults.all() == 0) {
            self.problem("no fault happened to the servers".into());
        }
        if self.random_orders == Some(0) {
            self.problem("no random order was played".into());
        }
        for (what, count, least) in [
            ("jobs were accepted", self.accepted, LEAST_JOBS),
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

    /// Records that the job of a dead letter is dead. Adds a problem if its payload was
    /// changed, if it is dead twice, or if it has attempts left.
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
        if let Some(allowed) = self.repeats_allowed
            && self.repeats > allowed
        {
            let repeats = self.repeats;
            self.problem(format!("{repeats} repeated runs are more than {allowed}"));
        }
    }

    fn accept(&mut self, number: u64, job: &Job) {
        self.accepted += 1;
        match (job.ends > 0, job.is_dead) {
            (true, false) => self.finished += 1,
            (false, true) => {
                self.dead += 1;
                // The job used up its attempts, as was checked before. If its plan lets
                // it succeed, kills must have ended all of its attempts, and no soak
                // runs long enough for that.
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
                if self.may_lose() {
                    return;
                }
                self.problem(format!("job {number} is lost: {job:?}"));
            }
        }
    }

    fn refuse(&mut self, number: u64, job: &Job) {
        self.refused += 1;
        if job.starts > 0 && !job.is_dead && self.exposure.is_some() {
            self.undone += 1;
        } else if job.starts > 0 || job.is_dead {
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

    /// The judgement of a soak with these records. Each is a kind, a job and a count.
    fn judge(records: &[(Kind, u64, u32)]) -> Judgement {
        judge_after(None, records)
    }

    fn judge_after(
        exposure: Option<Exposure>,
        records: &[(Kind, u64, u32)],
    ) -> Judgement {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("records");
        let recorder = Recorder::open(&file).unwrap();
        for (kind, job, count) in records {
            recorder.write(*kind, *job, *count).unwrap();
        }
        let evidence = Evidence { producers: vec![file], workers: vec![] };
        let mut judgement =
            Judgement::of(&evidence, Kills::default(), SLOTS.get().into(), exposure);
        judgement.sum_up();
        judgement
    }

    fn problem(records: &[(Kind, u64, u32)]) -> String {
        judge(records).problems.join("\n")
    }

    /// The number of a job whose first attempt succeeds.
    const JOB: u64 = 4;
    const MEANT: (Kind, u64, u32) = (Kind::Meant, JOB, 1);
    const STORED: (Kind, u64, u32) = (Kind::Stored, JOB, 0);
    const REFUSED: (Kind, u64, u32) = (Kind::Refused, JOB, 0);
    const START: (Kind, u64, u32) = (Kind::Start, JOB, 1);
    const END: (Kind, u64, u32) = (Kind::End, JOB, 1);

    #[test]
    fn a_job_that_was_stored_and_ended_is_no_problem() {
        let judgement = judge(&[MEANT, STORED, START, END]);

        assert_eq!(judgement.problems, [""; 0]);
        assert_eq!((judgement.accepted, judgement.finished), (1, 1));
    }

    #[test]
    fn a_job_that_never_ended_is_lost() {
        assert_eq!(judge(&[MEANT, STORED, START]).lost, 1);
    }

    #[test]
    fn a_job_that_no_producer_pushed_is_invented() {
        assert_eq!(judge(&[START, END]).invented, 1);
        assert_eq!(judge(&[MEANT, REFUSED, START, END]).invented, 1);
        assert_eq!(judge(&[(Kind::Changed, 0, 1)]).invented, 1);
    }

    #[test]
    fn runs_that_no_kill_explains_are_reported() {
        let told = problem(&[MEANT, STORED, START, END, START, END]);
        assert!(told.contains("1 repeated runs are more than 0"), "{told}");
    }

    /// One worker, one fail-over, and writes that this many replicas confirm.
    fn a_fail_over(replicas: u32) -> Option<Exposure> {
        let faults = FaultCounts { kills: 1, ..FaultCounts::default() };
        Some(Exposure { faults, replicas, workers: 1 })
    }

    #[test]
    fn only_a_fail_over_without_replicas_may_lose_a_job() {
        let kept = judge_after(a_fail_over(1), &[MEANT, STORED]);
        assert!(kept.has_broken_loss() && kept.problems.len() == 1);

        let may_lose = judge_after(a_fail_over(0), &[MEANT, STORED]);
        assert_eq!((may_lose.lost, may_lose.problems.len()), (1, 0));
        assert!(!may_lose.has_broken_loss());
    }

    #[test]
    fn a_fail_over_lets_leased_jobs_run_again_and_no_more() {
        let runs = usize::try_from(HELD).unwrap() + 1;
        let mut records = vec![MEANT, STORED, END];
        records.extend(vec![START; runs]);
        assert_eq!(judge_after(a_fail_over(1), &records).problems, [""; 0]);

        records.push(START);
        let told = judge_after(a_fail_over(1), &records).problems.join("\n");
        assert!(told.contains("33 repeated runs are more than 32"), "{told}");
    }

    #[test]
    fn a_fail_over_may_undo_a_push_that_did_not_return() {
        let judgement = judge_after(a_fail_over(1), &[MEANT, REFUSED, START]);
        assert_eq!((judgement.undone, judgement.invented), (1, 0));
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
