//! `relq demo --schedules`: shows that each tick is pushed once while the processes that
//! run the schedulers and the workers are killed.
//!
//! Ten schedules tick once a second, a tenth of a second apart. So each tenth of a second
//! is one tick, and its number is the time in tenths of a second.

use std::{collections::HashSet, fmt, path::Path, sync::Arc, time::Duration};

use relq::{
    NewJob, Queue,
    environment::{Environment, Timestamp},
    schedule::{Every, Missed, ScheduleName, ScheduleSpec, Schedules},
};
use serde::Serialize;

use super::{
    judge::{Evidence, kills_of},
    own_queue::LOOK_EVERY,
    queues::DemoQueues,
    record::{self, Kind},
    report::round,
    until_next_kill,
    worker_processes::WorkerProcesses,
};
use crate::{
    cron::schedules_of,
    failure::{CommandResult, Failure},
};

/// The time between two ticks, of different schedules.
const TICK_EVERY_MS: u64 = 100;

/// How many schedules there are, and so how many ticks each second has.
const SCHEDULES: u64 = 10;

/// A tick that was due for so many ticks, which is five seconds, when the schedules were
/// removed must have been pushed: a scheduler pushes what is due as soon as it has started.
const LATENESS_TICKS: u64 = 50;

/// How long the demo waits for the last jobs after the schedules were removed.
const PATIENCE: Duration = Duration::from_secs(20);

/// The number of a tick.
pub(super) fn number_of(tick: Timestamp) -> u64 {
    u64::try_from(tick.unix_ms()).unwrap_or(0) / TICK_EVERY_MS
}

/// The schedules of a running demo, on a queue of their own.
pub(super) struct ScheduleDemo<'a> {
    pub(super) url: &'a str,
    pub(super) queues: &'a DemoQueues,
    pub(super) workers: usize,
    pub(super) lasts: Duration,
    pub(super) environment: &'a Environment,
}

impl ScheduleDemo<'_> {
    pub(super) async fn play(&self, folder: &Path) -> CommandResult<ScheduleReport> {
        let clock = self.environment.clock();
        let began = clock.elapsed();
        self.put().await?;
        let start = self.schedules().await?.now;
        let mut processes = WorkerProcesses::start(
            (self.workers, true),
            self.url,
            self.queues.names(),
            folder,
        )?;
        self.kill_until(began + self.lasts, &mut processes).await?;
        let end = self.schedules().await?.now;
        self.remove().await?;
        self.wait_until_empty(&mut processes).await?;
        let seconds = (clock.elapsed() - began).as_secs_f64();
        let evidence = processes.dismiss().await?;
        let finished = self.queues.stats().await?.finished;
        Ok(ScheduleReport::of(&evidence, (start, end), finished, seconds))
    }

    fn queue(&self) -> &Arc<dyn Queue> {
        self.queues.first().1
    }

    async fn schedules(&self) -> CommandResult<Schedules> {
        Ok(schedules_of(&**self.queue())?.schedules().await?)
    }

    async fn put(&self) -> CommandResult {
        for number in 0..SCHEDULES {
            let anchor = Duration::from_millis(number * TICK_EVERY_MS);
            let anchor = Timestamp::from_unix_ms(0).plus(anchor);
            let interval = Duration::from_millis(SCHEDULES * TICK_EVERY_MS);
            let every = Every::new(interval).map_err(|error| failed(&error))?;
            let job = NewJob::new("tick");
            let spec = ScheduleSpec::new(every.anchor(anchor), job);
            let spec = spec.map_err(|error| failed(&error))?.missed(Missed::All);
            spec.put(&**self.queue(), &name_of(number)).await?;
        }
        Ok(())
    }

    pub(super) async fn remove(&self) -> CommandResult {
        for number in 0..SCHEDULES {
            schedules_of(&**self.queue())?.remove_schedule(&name_of(number)).await?;
        }
        Ok(())
    }

    async fn kill_until(
        &self,
        end: Duration,
        processes: &mut WorkerProcesses,
    ) -> CommandResult {
        let clock = self.environment.clock();
        while clock.elapsed() < end {
            clock.sleep(until_next_kill(self.environment)).await;
            processes.check()?;
            processes.kill_one(self.environment).await?;
        }
        Ok(())
    }

    async fn wait_until_empty(&self, processes: &mut WorkerProcesses) -> CommandResult {
        let clock = self.environment.clock();
        let limit = clock.elapsed() + PATIENCE;
        while self.queues.stats().await?.unfinished() > 0 {
            processes.check()?;
            if clock.elapsed() > limit {
                let seconds = PATIENCE.as_secs();
                let message = format!("jobs are left {seconds} s after the last tick");
                return Err(Failure::Failed(message));
            }
            clock.sleep(LOOK_EVERY).await;
        }
        Ok(())
    }
}

fn name_of(number: u64) -> ScheduleName {
    ScheduleName::new(format!("demo-{number}")).expect("a valid name")
}

fn failed(error: &dyn fmt::Display) -> Failure {
    Failure::Failed(error.to_string())
}

/// The result of a demo with schedules, by the records of the workers.
#[derive(Serialize, Debug)]
pub(super) struct ScheduleReport {
    ticks: u64,
    missing: u64,
    doubled: u64,
    kills: u64,
    seconds: f64,
    problems: Vec<String>,
}

impl ScheduleReport {
    /// Counts the ticks whose job ended. All ticks from `start` on, but for the last
    /// few before `end`, must be among them. The queue has finished as many jobs unless a
    /// tick was pushed twice.
    fn of(
        evidence: &[Evidence],
        (start, end): (Timestamp, Timestamp),
        finished: u64,
        seconds: f64,
    ) -> Self {
        let (mut run, mut problems) = (HashSet::new(), Vec::new());
        for worker in evidence {
            match record::read(&worker.records) {
                Ok(records) => run.extend(
                    records.iter().filter(|it| it.kind == Kind::End).map(|it| it.job),
                ),
                Err(problem) => problems.push(problem),
            }
        }
        let first = number_of(start) + 1;
        let certain = number_of(end).saturating_sub(LATENESS_TICKS);
        let missing = (first..=certain).filter(|tick| !run.contains(tick)).count();
        let ticks = run.len() as u64;
        Self {
            ticks,
            missing: missing as u64,
            doubled: finished.saturating_sub(ticks),
            kills: kills_of(evidence),
            seconds: round(seconds),
            problems,
        }
    }

    /// Whether each tick was pushed once.
    pub(super) fn is_clean(&self) -> bool {
        self.missing == 0 && self.doubled == 0 && self.problems.is_empty()
    }
}

impl fmt::Display for ScheduleReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "ticks              {:>8}", self.ticks)?;
        writeln!(f, "missing            {:>8}", self.missing)?;
        writeln!(f, "doubled            {:>8}", self.doubled)?;
        writeln!(f, "kills              {:>8}", self.kills)?;
        writeln!(f, "seconds            {:>8.2}", self.seconds)?;
        self.problems.iter().try_for_each(|problem| writeln!(f, "problem: {problem}"))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::record::Recorder, *};

    /// The report of a demo from tick 10 to tick 100 whose workers ended these ticks.
    fn report(ticks: impl IntoIterator<Item = u64>, finished: u64) -> ScheduleReport {
        let folder = tempfile::tempdir().unwrap();
        let records = folder.path().join("records");
        let recorder = Recorder::create(&records).unwrap();
        ticks.into_iter().for_each(|tick| recorder.write(Kind::End, tick).unwrap());
        let at = |tick: i64| Timestamp::from_unix_ms(tick * 100);
        let evidence = [Evidence { records, was_killed: true }];
        ScheduleReport::of(&evidence, (at(10), at(100)), finished, 1.0)
    }

    #[test]
    fn a_report_tells_missing_and_doubled_ticks() {
        assert!(report(11..=100, 90).is_clean());
        assert!(report(11..=50, 40).is_clean(), "the last ones may be pushed late");
        assert!(
            report((11..=100).chain(20..=20), 90).is_clean(),
            "a job may run twice"
        );
        assert_eq!(report((11..=19).chain(21..=100), 89).missing, 1);
        assert_eq!(report(11..=100, 92).doubled, 2);
        assert_eq!(report(11..=100, 90).kills, 1);
    }
}
