//! A queue, its clock, and schedulers on it.

use std::{
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, Instant},
};

use relq_core::{
    NewJob, Operator, QueueName,
    environment::{Clock, Environment, OsRandomness, Timestamp},
    operator::{JobState, JobView, PeekRequest},
};
use relq_memory::MemoryStore;
use relq_schedule::{
    Cron, Every, Missed, SCHEDULE_HEADER, SCHEDULED_FOR_HEADER, ScheduleName,
    ScheduleQueue, ScheduleSpec, ScheduleStored, Scheduler, SchedulerError,
    SchedulerProgress, SchedulerSummary,
};
use tokio::task::JoinSet;

use crate::{
    clock::{MachineClock, VirtualClock},
    meddled::Meddled,
};

pub(crate) struct World {
    pub(crate) clock: Arc<VirtualClock>,
    pub(crate) queue: Arc<Meddled>,
    schedulers: JoinSet<Result<SchedulerSummary, SchedulerError>>,
    progress: Vec<SchedulerProgress>,
}

pub(crate) fn name(name: &str) -> ScheduleName {
    ScheduleName::new(name).unwrap()
}

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(crate) fn hours(hours: u64) -> Duration {
    seconds(hours * 3600)
}

/// A schedule with an interval, whose jobs have its text as payload.
pub(crate) fn every(interval: Duration, missed: Missed) -> ScheduleSpec {
    let job = NewJob::new(format!("every {interval:?}"));
    ScheduleSpec::new(Every::new(interval).unwrap(), job).unwrap().missed(missed)
}

pub(crate) fn cron(expression: &str, zone: &str) -> ScheduleSpec {
    let cron = Cron::new(expression).unwrap().zone(zone).unwrap();
    ScheduleSpec::new(cron, NewJob::new(expression.to_owned())).unwrap()
}

/// A time of RFC 3339 with whole seconds, in UTC.
pub(crate) fn at(time: &str) -> Timestamp {
    let headers = [(SCHEDULED_FOR_HEADER, time)].into_iter().collect();
    relq_schedule::scheduled_for(&headers).unwrap()
}

impl World {
    pub(crate) fn starting(time: &str) -> Self {
        let clock = Arc::new(VirtualClock::starting(at(time)));
        let environment =
            Environment::new(Arc::clone(&clock) as _, Arc::new(OsRandomness));
        let queue = QueueName::new("jobs").unwrap();
        let queue = MemoryStore::default().open(queue, environment);
        let queue = Arc::new(Meddled::new(queue));
        Self { clock, queue, schedulers: JoinSet::new(), progress: Vec::new() }
    }

    pub(crate) async fn put(
        &self,
        as_name: &str,
        spec: &ScheduleSpec,
    ) -> ScheduleStored {
        spec.put(&*self.queue, &name(as_name)).await.unwrap()
    }

    pub(crate) async fn remove(&self, as_name: &str) {
        assert!(self.queue.remove_schedule(&name(as_name)).await.unwrap());
    }

    /// A scheduler on a machine that does not know what time it is.
    pub(crate) fn scheduler(&self) -> Scheduler {
        let clock = Arc::new(MachineClock(Arc::clone(&self.clock)));
        let environment = Environment::new(clock, Arc::new(OsRandomness));
        Scheduler::new(Arc::clone(&self.queue) as _).environment(environment)
    }

    pub(crate) async fn start(&mut self, scheduler: Scheduler) {
        self.progress.push(scheduler.progress());
        self.schedulers.spawn(scheduler.run());
        self.settle().await;
    }

    pub(crate) async fn start_many(&mut self, count: usize) {
        for _ in 0..count {
            let scheduler = self.scheduler();
            self.progress.push(scheduler.progress());
            self.schedulers.spawn(scheduler.run());
        }
        self.settle().await;
    }

    /// Ends all schedulers, as a crash does.
    pub(crate) async fn stop_all(&mut self) {
        self.schedulers.shutdown().await;
    }

    /// Lets time pass. Every sleep ends at its time.
    pub(crate) async fn advance(&self, duration: Duration) {
        let end = self.clock.elapsed() + duration;
        loop {
            let next = self.clock.sleeps().into_iter().min();
            match next.filter(|next| *next <= end) {
                Some(next) => self.clock.set(next),
                None => break,
            }
            self.settle().await;
        }
        self.clock.set(end);
        self.settle().await;
    }

    /// Waits until all schedulers sleep.
    async fn settle(&self) {
        let start = Instant::now();
        while self.clock.sleeps().len() < self.schedulers.len() {
            assert!(start.elapsed() < seconds(60), "the schedulers do not go to sleep");
            tokio::task::yield_now().await;
        }
    }

    /// All jobs in the order of their pushes.
    pub(crate) async fn jobs(&self) -> Vec<JobView> {
        let page = NonZeroU32::new(1000).unwrap();
        let mut ask = PeekRequest::new(JobState::Ready, page);
        let mut jobs = Vec::new();
        loop {
            let page = self.queue.inner.peek(&ask).await.unwrap();
            jobs.extend(page.jobs);
            let Some(next) = page.next else { return jobs };
            ask = ask.after(next);
        }
    }

    /// The ticks of a schedule whose jobs are in the queue, in the order of their pushes.
    pub(crate) async fn pushed(&self, as_name: &str) -> Vec<String> {
        let jobs = self.jobs().await;
        let of_schedule =
            |job: &&JobView| job.headers.get(SCHEDULE_HEADER) == Some(as_name);
        let tick =
            |job: &JobView| job.headers.get(SCHEDULED_FOR_HEADER).unwrap().to_owned();
        jobs.iter().filter(of_schedule).map(tick).collect()
    }

    /// The counts of all schedulers together.
    pub(crate) fn summary(&self) -> SchedulerSummary {
        let mut sum = SchedulerSummary::default();
        for one in self.progress.iter().map(SchedulerProgress::summary) {
            sum.pushed += one.pushed;
            sum.duplicates += one.duplicates;
            sum.of_others += one.of_others;
            sum.failed_calls += one.failed_calls;
        }
        sum
    }
}

/// The ticks of a schedule after one time and up to another.
pub(crate) fn ticks(spec: &ScheduleSpec, after: &str, until: &str) -> Vec<String> {
    let next = |at: &Timestamp| spec.next_after(*at);
    let ticks = std::iter::successors(spec.next_after(at(after)), next);
    let ticks = ticks.take_while(|tick| *tick <= at(until));
    let of_tick = |tick| spec.job_of_tick(&name("any"), tick);
    ticks
        .map(|tick| of_tick(tick).headers.get(SCHEDULED_FOR_HEADER).unwrap().to_owned())
        .collect()
}
