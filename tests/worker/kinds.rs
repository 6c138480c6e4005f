//! Tests that a router runs the handler of each job's kind, and what happens to jobs
//! that it has no handler for.

use std::{
    num::NonZeroU16,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use relq::{
    NewJob,
    operator::Selection,
    worker::{
        DEFAULT_PAUSED_DELAY, Enqueue, Failure, FromContext, FromRef, Job, JobContext,
        KIND_HEADER, RetryPolicy, Router, State, json, json_job,
    },
};
use serde::{Deserialize, Serialize};

use crate::fixture::{Fixture, Running};

#[derive(Serialize, Deserialize)]
pub(crate) struct SendEmail {
    to: String,
}

impl Job for SendEmail {
    const KIND: &'static str = "send-email";
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Resize {
    width: u32,
}

impl Job for Resize {
    const KIND: &'static str = "resize";

    fn options(&self, job: NewJob) -> NewJob {
        job.max_attempts(NonZeroU16::new(2).unwrap())
    }
}

pub(crate) fn email(to: &str) -> SendEmail {
    SendEmail { to: to.to_owned() }
}

pub(crate) fn once(payload: &'static str, kind: &str) -> NewJob {
    NewJob::new(payload).header(KIND_HEADER, kind).max_attempts(NonZeroU16::MIN)
}

/// The jobs that the handlers of a test have run, one line for each.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn add(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub(crate) fn sorted(&self) -> Vec<String> {
        let mut lines = self.0.lock().unwrap().clone();
        lines.sort();
        lines
    }
}

pub(crate) async fn log_email(
    email: SendEmail,
    State(log): State<Log>,
) -> Result<(), Failure> {
    log.add(format!("email to {}", email.to));
    Ok(())
}

pub(crate) async fn log_resize(
    resize: Resize,
    job: JobContext,
    State(log): State<Log>,
) -> Result<(), Failure> {
    log.add(format!("resize to {}, attempt {}", resize.width, job.attempt()));
    Ok(())
}

async fn last_error(fixture: &Fixture) -> String {
    fixture.until(|stats| stats.dead == 1).await;
    fixture.dead().await[0].last_error.clone().unwrap()
}

/// A job runs the handler of its kind, and a job without a kind runs the raw handler.
pub(crate) async fn each_job_runs_the_handler_of_its_kind(fixture: Fixture) {
    fixture.queue.enqueue(&email("anna")).await.unwrap();
    fixture.queue.enqueue(&Resize { width: 7 }).await.unwrap();
    fixture.push("hello").await;

    let log = Log::default();
    let raw = log.clone();
    let router = Router::new()
        .job(log_email)
        .job(log_resize)
        .raw(move |job: JobContext| {
            raw.add(format!("raw {:?}", job.payload()));
            async { Ok::<_, Failure>(()) }
        })
        .with_state(log.clone());
    let worker = fixture.start(router);
    worker.until(|summary| summary.done == 3).await;

    worker.stop().await;
    let ran = log.sorted();
    assert_eq!(ran, ["email to anna", "raw b\"hello\"", "resize to 7, attempt 1"]);
}

/// R3: a job of an unknown kind fails at each attempt, because a newer worker may know
/// the kind, and is then buried with its payload and the reason.
pub(crate) async fn unknown_kind_ends_dead_with_its_bytes(fixture: Fixture) {
    let job = once("{}", "make-thumbnail").max_attempts(NonZeroU16::new(2).unwrap());
    fixture.push(job).await;

    let router = Router::new().job(log_resize).job(log_email);
    let worker = fixture.start(router.with_state(Log::default()));
    let error = last_error(&fixture).await;

    let summary = worker.stop().await;
    assert_eq!((summary.done, summary.retried, summary.dead), (0, 1, 1));
    assert_eq!(&fixture.dead().await[0].payload[..], b"{}");
    let expected = "the kind \"make-thumbnail\" has no handler in this worker; its \
                    kinds are: resize, send-email";
    assert_eq!(error, expected);
}

/// A job keeps its kind when it is retried, buried and redriven.
pub(crate) async fn kind_survives_a_retry_and_a_redrive(fixture: Fixture) {
    fixture.queue.enqueue(&Resize { width: 7 }).await.unwrap();
    let is_repaired = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&is_repaired);

    let worker =
        fixture.start(Router::new().job(move |resize: Resize| {
            let is_repaired = flag.load(SeqCst);
            async move {
                if is_repaired { Ok(()) } else { Err(format!("no {}", resize.width)) }
            }
        }));
    let error = last_error(&fixture).await;
    let dead = fixture.dead().await;
    is_repaired.store(true, SeqCst);
    fixture.queue.redrive(&Selection::All).await.unwrap();
    worker.until(|summary| summary.done == 1).await;

    let summary = worker.stop().await;
    assert_eq!((summary.retried, summary.dead), (1, 1));
    assert_eq!(error, "no 7");
    assert_eq!(dead[0].headers.get(KIND_HEADER), Some("resize"));
}

/// R3: a payload that does not fit its type fails and names the kind and the cause.
#[tokio::test]
async fn payload_that_does_not_fit_its_kind_ends_dead() {
    let fixture = Fixture::sqlite().await;
    fixture.push(once("{\"width\":\"x\"}", "resize")).await;

    let worker =
        fixture.start(Router::new().job(log_resize).with_state(Log::default()));
    let error = last_error(&fixture).await;

    worker.stop().await;
    let expected = "the payload does not fit the kind \"resize\": invalid type: string";
    assert!(error.starts_with(expected), "{error}");
    assert_eq!(&fixture.dead().await[0].payload[..], b"{\"width\":\"x\"}");
}

/// A job without a kind is not acknowledged by a router without a raw handler.
#[tokio::test]
async fn job_without_a_kind_fails_without_a_raw_handler() {
    let fixture = Fixture::sqlite().await;
    fixture.push(NewJob::new("hello").max_attempts(NonZeroU16::MIN)).await;

    let worker = fixture.start(Router::new().job(log_email).with_state(Log::default()));
    let error = last_error(&fixture).await;

    assert_eq!(worker.stop().await.done, 0);
    let expected = "the job has no header \"kind\", and this worker has no handler for \
                    such jobs; its kinds are: send-email";
    assert_eq!(error, expected);
}

/// A `json` handler as the raw handler runs the jobs that were pushed before the
/// application had kinds.
#[tokio::test]
async fn json_handler_can_be_the_raw_handler() {
    let fixture = Fixture::sqlite().await;
    fixture.push(json_job(&email("anna")).unwrap()).await;

    let log = Log::default();
    let old = log.clone();
    let router = Router::new().raw(json(move |email: SendEmail, _: JobContext| {
        old.add(email.to);
        async { Ok::<_, Failure>(()) }
    }));
    let worker = fixture.start(router);
    worker.until(|summary| summary.done == 1).await;

    worker.stop().await;
    assert_eq!(log.sorted(), ["anna"]);
}

struct Tenant(String);

impl<S> FromContext<S> for Tenant {
    fn from_context(job: &JobContext, _state: &S) -> Result<Self, Failure> {
        let tenant = job.headers().get("tenant");
        tenant
            .map(|name| Self(name.to_owned()))
            .ok_or_else(|| Failure::dead("no tenant"))
    }
}

struct App {
    log: Log,
    sender: &'static str,
}

impl FromRef<App> for Log {
    fn from_ref(app: &App) -> Self {
        app.log.clone()
    }
}

#[derive(Clone, Copy)]
struct Sender(&'static str);

impl FromRef<App> for Sender {
    fn from_ref(app: &App) -> Self {
        Self(app.sender)
    }
}

async fn send(
    email: SendEmail,
    Tenant(tenant): Tenant,
    job: JobContext,
    State(Sender(sender)): State<Sender>,
    State(log): State<Log>,
) -> Result<(), Failure> {
    let (to, attempt) = (email.to, job.attempt());
    log.add(format!("{tenant}: {sender} to {to}, attempt {attempt}"));
    Ok(())
}

/// A handler takes parts of the state and arguments of the application's own. If an
/// argument cannot be made, the attempt fails and the handler does not run.
#[tokio::test]
async fn handler_gets_the_arguments_that_it_names() {
    let fixture = Fixture::sqlite().await;
    let job = email("anna").to_new_job().unwrap();
    fixture.push(job.clone().header("tenant", "acme")).await;
    fixture.push(job).await;

    let log = Log::default();
    let app = App { log: log.clone(), sender: "shop" };
    let worker = fixture.start(Router::new().job(send).with_state(app));
    worker.until(|summary| summary.done == 1).await;

    assert_eq!(last_error(&fixture).await, "no tenant");
    worker.stop().await;
    assert_eq!(log.sorted(), ["acme: shop to anna, attempt 1"]);
}

#[derive(Serialize, Deserialize)]
struct Impatient;

impl Job for Impatient {
    const KIND: &'static str = "impatient";

    fn options(&self, job: NewJob) -> NewJob {
        job.max_attempts(NonZeroU16::MIN)
    }

    fn timeout() -> Option<Duration> {
        Some(Duration::from_millis(20))
    }
}

#[derive(Serialize, Deserialize)]
struct Patient;

impl Job for Patient {
    const KIND: &'static str = "patient";

    fn timeout() -> Option<Duration> {
        Some(Duration::MAX)
    }
}

/// The time-out of a kind counts, whether it is shorter or longer than the worker's.
#[tokio::test]
async fn kind_has_a_time_out_of_its_own() {
    let fixture = Fixture::sqlite().await;
    fixture.queue.enqueue(&Impatient).await.unwrap();
    fixture.queue.enqueue(&Patient).await.unwrap();

    let router = Router::new()
        .job(async |_: Impatient| std::future::pending::<Result<(), Failure>>().await)
        .job(async |_: Patient| {
            tokio::time::sleep(Duration::from_millis(150)).await;
            Ok::<_, Failure>(())
        });
    let worker = fixture.worker().timeout(Duration::from_millis(50));
    let worker = Running::start(worker, router);
    let error = last_error(&fixture).await;
    worker.until(|summary| summary.done == 1).await;

    worker.stop().await;
    assert_eq!(error, "the handler took longer than its limit of 20ms");
}

#[derive(Serialize, Deserialize)]
struct Hourly;

impl Job for Hourly {
    const KIND: &'static str = "hourly";

    fn retry_policy() -> Option<RetryPolicy> {
        let hour = Duration::from_secs(3600);
        Some(RetryPolicy::exponential(hour, hour).unwrap().at_least(hour).unwrap())
    }
}

/// R14: a failed job waits by the policy of its kind, and not by the worker's.
#[tokio::test]
async fn kind_has_a_retry_policy_of_its_own() {
    let fixture = Fixture::sqlite().await;
    fixture.queue.enqueue(&Hourly).await.unwrap();

    let router = Router::new().job(async |_: Hourly| Err::<(), _>("not now"));
    let worker = fixture.start(router);
    worker.until(|summary| summary.retried == 1).await;

    worker.stop().await;
    let due_in = fixture.stats().await.next_due_in.unwrap();
    assert!(due_in > Duration::from_secs(3500), "{due_in:?}");
}

/// R26: a job of a paused kind is claimed and postponed, which counts no attempt, until
/// the pause ends. Jobs of other kinds run.
pub(crate) async fn paused_kind_waits_and_counts_no_attempt(fixture: Fixture) {
    let log = Log::default();
    let router = Router::new().job(log_email).job(log_resize).with_state(log.clone());
    let router = router.postpone_paused(Duration::from_millis(5));
    let paused = router.paused_kinds();
    paused.pause(Resize::KIND);
    fixture.queue.enqueue(&Resize { width: 7 }).await.unwrap();
    fixture.queue.enqueue(&email("anna")).await.unwrap();

    let worker = fixture.start(router);
    worker.until(|summary| summary.postponed > 3 && summary.done == 1).await;
    assert_eq!(log.sorted(), ["email to anna"]);
    paused.resume(Resize::KIND);
    worker.until(|summary| summary.done == 2).await;

    let summary = worker.stop().await;
    assert_eq!((summary.retried, summary.dead), (0, 0));
    assert_eq!(log.sorted(), ["email to anna", "resize to 7, attempt 1"]);
}

/// A paused kind waits for the default delay, and the handle lists it.
#[tokio::test]
async fn pause_has_a_default_delay() {
    let fixture = Fixture::sqlite().await;
    fixture.queue.enqueue(&email("anna")).await.unwrap();

    let router = Router::new().job(log_email).with_state(Log::default());
    let paused = router.paused_kinds();
    paused.pause(SendEmail::KIND);
    let worker = fixture.start(router.clone());
    worker.until(|summary| summary.postponed == 1).await;

    worker.stop().await;
    let due_in = fixture.stats().await.next_due_in.unwrap();
    assert!(due_in > DEFAULT_PAUSED_DELAY / 2, "{due_in:?}");
    assert!(due_in <= DEFAULT_PAUSED_DELAY, "{due_in:?}");
    assert_eq!(router.paused_kinds().list(), ["send-email"]);
}

/// A kind with two handlers is an error of the program, which is found at its start.
#[test]
#[should_panic(expected = "the kind \"send-email\" has two handlers")]
fn kind_with_two_handlers_is_refused() {
    let _router: Router<Log> = Router::new().job(log_email).job(log_email);
}
