//! A store for the tests of the state and of the drawing, with the same counts and jobs
//! each time.

use std::{
    num::NonZeroU16,
    time::{Duration, Instant},
};

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use relq::{
    JobId, QueueName, Stats, WorkerId,
    environment::Timestamp,
    operator::{JobRecord, JobState, JobView, PageCursor, StateDetail, WorkerView},
};

use super::{
    asks::{
        Answer, Completeness, Effect, Found, Group, JobsPage, PageOf, Position, Read,
        Sample, WorkerRow,
    },
    state::{Event, Settings, State},
};

/// The time of the scene, by the clock of the store.
pub(super) const NOW: Timestamp = Timestamp::from_unix_ms(1_790_000_000_000);

const WORKER_A: &str = "mail-1.example.org:4711:k3xq8v2d";
const WORKER_B: &str = "mail-2.example.org:815:a7h2m9sw";

/// A state with its clock.
pub(super) struct Scene {
    pub(super) state: State,
    pub(super) now: Instant,
}

impl Scene {
    /// A view of three queues that were sampled for five minutes.
    pub(super) fn new() -> Self {
        Self::with(Settings {
            store: "redis://queues.example.org:6379/0".to_owned(),
            is_read_only: false,
            has_colours: true,
        })
    }

    pub(super) fn with(settings: Settings) -> Self {
        let state = State::new(settings, Duration::from_secs(2));
        let mut scene = Self { state, now: Instant::now() };
        for at in 0..=60 {
            scene.now += Duration::from_secs(5);
            scene.answer(Answer::Sampled(Ok(sample(at))));
        }
        scene
    }

    pub(super) fn answer(&mut self, answer: Answer) -> Vec<Effect> {
        self.state.update(Event::Answer(answer), self.now)
    }

    pub(super) fn tick(&mut self) -> Vec<Effect> {
        self.state.update(Event::Tick, self.now)
    }

    pub(super) fn press(&mut self, code: KeyCode) -> Vec<Effect> {
        let key = KeyEvent::new(code, KeyModifiers::NONE);
        self.state.update(Event::Key(key), self.now)
    }

    pub(super) fn control(&mut self, letter: char) -> Vec<Effect> {
        let key = KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
        self.state.update(Event::Key(key), self.now)
    }

    /// Presses the keys of these characters. Returns the effects of the last one.
    pub(super) fn keys(&mut self, keys: &str) -> Vec<Effect> {
        let pressed = keys.chars().map(|key| self.press(KeyCode::Char(key)));
        pressed.last().unwrap_or_default()
    }

    /// Opens the first queue, and answers what is asked.
    pub(super) fn open(&mut self) {
        let effects = self.press(KeyCode::Enter);
        self.serve(&effects);
    }

    /// Answers the questions among the effects.
    pub(super) fn serve(&mut self, effects: &[Effect]) {
        for effect in effects {
            if let Effect::Read(read) = effect {
                let found = Ok(found(read));
                self.answer(Answer::Read { number: read.number, found });
            }
        }
    }
}

pub(super) fn queue(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

pub(super) fn job_id(name: &str) -> JobId {
    JobId::new(name).unwrap()
}

/// The counts at a time.
fn sample(at: u64) -> Sample {
    let counts = |[ready, scheduled, leased, dead, finished]: [u64; 5]| {
        let mut stats = Stats::new();
        (stats.ready, stats.scheduled, stats.leased) = (ready, scheduled, leased);
        (stats.dead, stats.finished) = (dead, finished);
        stats.oldest_ready_age =
            (ready > 0).then(|| Duration::from_millis(ready * 110));
        stats
    };
    let wave = [0, 4, 9, 17, 30, 41, 52, 47, 33, 20, 11, 5];
    let wave = wave[usize::try_from(at).unwrap() % wave.len()];
    let mut emails = counts([40 + wave, 12, 8, 140 + at / 20, at * 61]);
    (emails.discarded, emails.cancelled) = (2, 1);
    emails.next_due_in = Some(Duration::from_secs(95));
    let pictures = counts([(60 - at) * 3, 0, 4, 0, 900 + at * 9]);
    let mut reports = counts([7, 1, 0, 0, 31]);
    reports.paused = true;
    reports.oldest_ready_age = Some(Duration::from_secs(8000));
    let queues = [("emails", emails), ("pictures", pictures), ("reports", reports)];
    let queues = queues.map(|(name, stats)| (queue(name), Ok(("zset", stats))));
    Sample { all: 3, queues: queues.into() }
}

/// A time this many seconds before the scene.
fn before(seconds: i64) -> Timestamp {
    Timestamp::from_unix_ms(NOW.unix_ms() - seconds * 1000)
}

fn found(read: &Read) -> Found {
    match &read.page {
        PageOf::Jobs(at, filter) => {
            let mut page = jobs(at);
            page.jobs.retain(|job| filter.fits(job));
            Found::Jobs(page)
        }
        PageOf::Errors => Found::Errors(groups(), Completeness::Cut),
        PageOf::Workers => Found::Workers(workers(), Completeness::Whole),
        PageOf::Job(id, at) => {
            let is_it = |job: &JobView| job.id.as_ref() == Some(id);
            let Some(job) = jobs(at).jobs.into_iter().find(is_it) else {
                return Found::NoJob("the job is done".to_owned());
            };
            Found::Job(Box::new(JobRecord::new(job, vec![job_id("follower-1")])))
        }
    }
}

/// A page of 20 jobs. The first page has a next one.
fn jobs(at: &Position) -> JobsPage {
    let first = if at.after.is_none() { 1 } else { 21 };
    let jobs = (first..first + 20).map(|number| job(at.state, number)).collect();
    let next = at.after.is_none().then(|| PageCursor(vec![1].into()));
    JobsPage { jobs, looked_at: 20, next }
}

fn job(state: JobState, number: i64) -> JobView {
    let worker = workers().swap_remove(usize::try_from(number).unwrap() % 2).worker;
    let detail = match state {
        JobState::Ready => StateDetail::Ready,
        JobState::Scheduled => StateDetail::Scheduled { due: before(-95 * number) },
        JobState::Leased => StateDetail::Leased {
            worker,
            since: before(number),
            until: before(number - 30),
        },
        JobState::Dead => StateDetail::Dead {
            reason: "the handler failed 5 times".to_owned(),
            since: before(number * 47),
        },
    };
    let to = format!(r#"{{"to":"user-{number}@example.org","template":"welcome"}}"#);
    let mut job =
        JobView::new(Some(job_id(&format!("{state:?}-{number}"))), to, detail);
    job.enqueued_at = Some(before(number * 50));
    job.headers = [("kind", "welcome")].into_iter().collect();
    job.max_attempts = NonZeroU16::new(5).unwrap();
    if state == JobState::Dead {
        job.attempt = 5;
        job.last_error = Some(match number % 3 {
            0 => format!("no such mailbox: user-{number}@example.org"),
            _ => "connection to smtp-3.example.org:25 timed out after 30 s".to_owned(),
        });
    }
    job
}

/// The dead jobs of the first page by their errors.
fn groups() -> Vec<Group> {
    let group = |error: &str, numbers: &[i64]| Group {
        error: error.to_owned(),
        jobs: numbers.iter().map(|number| job_id(&format!("Dead-{number}"))).collect(),
        first: before(numbers[numbers.len() - 1] * 47),
        last: before(numbers[0] * 47),
    };
    let timed_out = [1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17, 19, 20];
    vec![
        group("connection to smtp-#.example.org:# timed out after # s", &timed_out),
        group("no such mailbox: user-#@example.org", &[3, 6, 9, 12, 15, 18]),
    ]
}

fn workers() -> Vec<WorkerRow> {
    let row = |name: &str, report: Option<WorkerView>, held: &[i64]| WorkerRow {
        worker: WorkerId::new(name).unwrap(),
        report,
        held: held
            .iter()
            .map(|number| (Some(job_id(&format!("Leased-{number}"))), before(*number)))
            .collect(),
    };
    let slots = std::num::NonZeroU32::new(4).unwrap();
    let view =
        |name| WorkerView::new(WorkerId::new(name).unwrap(), slots, before(9000));
    vec![row(WORKER_A, Some(view(WORKER_A)), &[2, 4]), row(WORKER_B, None, &[1])]
}
