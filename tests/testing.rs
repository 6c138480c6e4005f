//! The queue for tests of an application, and the messages of its assertions.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    num::NonZeroU16,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use relq::{
    ClaimRequest, JobId, NewJob, Priority, PushToken, QueueName, ReliableQueueExt as _,
    WorkerId,
    outcome::Pushed,
    results::JobResult,
    testing::{MAX_RUNS, Outcome, TestQueue},
    unique::UniqueKey,
    worker::{
        Enqueue as _, Failure, Job, JobContext, RetryPolicy, Router, State, Worker,
    },
};
use serde::{Deserialize, Serialize};

const HOUR: Duration = Duration::from_secs(3600);

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct SendEmail {
    to: String,
}

impl Job for SendEmail {
    const KIND: &'static str = "send-email";
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct DeleteUser(u64);

impl Job for DeleteUser {
    const KIND: &'static str = "delete-user";
}

fn email(to: &str) -> SendEmail {
    SendEmail { to: to.to_owned() }
}

async fn succeed(_job: JobContext) -> Result<(), Failure> {
    Ok(())
}

async fn fail(_job: JobContext) -> Result<(), Failure> {
    Err(Failure::retry("busy"))
}

async fn push(queue: &TestQueue, jobs: impl IntoIterator<Item = NewJob>) {
    for job in jobs {
        queue.queue().push_one(job).await.unwrap();
    }
}

/// The payloads of the attempts, in the order in which they ran.
async fn drained(queue: &TestQueue) -> Vec<String> {
    let drained = queue.drain(succeed).await;
    drained.assert_all_done();
    let text = |payload: &[u8]| String::from_utf8_lossy(payload).into_owned();
    drained.ran.iter().map(|ran| text(&ran.payload)).collect()
}

/// The message with which a call panics.
fn panic_of(call: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(call)).unwrap_err();
    panic.downcast_ref::<String>().unwrap().clone()
}

#[tokio::test]
async fn due_jobs_run_in_the_order_of_the_queue() {
    let queue = TestQueue::new();
    let low = NewJob::new("low").priority(Priority::LOWEST);
    let high = NewJob::new("high").priority(Priority::HIGHEST);
    let later = NewJob::new("later").delay(HOUR);
    push(&queue, [low, later, "1".into(), "2".into(), high]).await;

    assert_eq!(drained(&queue).await, ["high", "1", "2", "low"]);
    assert_eq!(drained(&queue).await, [""; 0]);
}

/// R14: time stands still between two advances.
#[tokio::test]
async fn a_delayed_job_runs_when_the_clock_reaches_it() {
    let queue = TestQueue::new();
    push(&queue, [NewJob::new("2").delay(HOUR * 2), NewJob::new("1").delay(HOUR)])
        .await;

    queue.advance(HOUR - Duration::from_millis(1));
    assert_eq!(drained(&queue).await, [""; 0]);
    queue.advance(Duration::from_millis(1));
    assert_eq!(drained(&queue).await, ["1"]);
    queue.advance(HOUR);
    assert_eq!(drained(&queue).await, ["2"]);
    queue.assert_nothing_waits();
}

/// R27: code that drops old jobs is tested by the clock of the queue.
#[tokio::test]
async fn a_handler_sees_the_age_of_a_job_by_the_clock_of_the_test() {
    let queue = TestQueue::new();
    let start = queue.now();
    push(&queue, ["early".into()]).await;
    queue.advance(HOUR);
    push(&queue, ["late".into()]).await;

    let pushed: Vec<_> = queue.waiting().iter().map(|job| job.enqueued_at).collect();
    let clock = queue.clone();
    let drained =
        queue
            .drain(move |job: JobContext| {
                let age = clock.now().since(job.enqueued_at().unwrap());
                async move {
                    if age < HOUR { Ok(()) } else { Err(Failure::discard("too old")) }
                }
            })
            .await;

    assert_eq!(pushed, [Some(start), Some(start.plus(HOUR))]);
    let outcomes: Vec<_> = drained.ran.iter().map(|ran| &ran.outcome).collect();
    assert_eq!(outcomes, [&Outcome::Discarded, &Outcome::Done]);
}

/// R29: a test sees the result that a handler sets, as its producer does, and how long it
/// is kept.
#[tokio::test]
async fn a_result_is_told_and_kept_by_the_clock_of_the_test() {
    let tested = TestQueue::new();
    let queue = tested.queue();
    let kept = NewJob::new("four").keep_result(HOUR);
    let id = queue.push_one(kept).await.unwrap().job().clone();
    push(&tested, ["plain".into()]).await;
    let count = async |job: JobContext| job.set_result(job.payload().len().to_string());

    let drained = tested.drain(count).await;

    let results: Vec<_> = drained.ran.iter().map(|ran| ran.result.as_deref()).collect();
    assert_eq!(results, [Some(&b"4"[..]), None]);
    let handle = queue.job_handle(&id).unwrap();
    let done = JobResult::Done { result: "4".into() };
    assert_eq!(handle.result().await.unwrap(), Some(done));
    tested.advance(HOUR + Duration::from_millis(1));
    assert_eq!(handle.result().await.unwrap(), None);
}

/// R29: a job that is done without a result has an empty one, and a failed attempt has none.
#[tokio::test]
async fn a_result_is_that_of_an_attempt_that_is_done() {
    let queue = TestQueue::new();
    let kept = |name: &'static str| NewJob::new(name).keep_result(HOUR);
    push(&queue, ["silent", "failed"].map(kept)).await;

    let drained = queue
        .drain(async |job: JobContext| {
            if job.payload() == "silent" {
                return Ok(());
            }
            job.set_result("half")?;
            Err(Failure::dead("broken"))
        })
        .await;

    let results: Vec<_> = drained.ran.iter().map(|ran| ran.result.as_deref()).collect();
    assert_eq!(results, [Some(&b""[..]), None], "of the silent and the failed job");
}

#[tokio::test]
async fn a_retry_runs_when_it_is_due_until_its_last_attempt() {
    let queue = TestQueue::new();
    push(&queue, [NewJob::new("7").max_attempts(NonZeroU16::new(2).unwrap())]).await;
    let second = Duration::from_secs(1);

    let first = queue.drain(fail).await.ran;
    let none = queue.drain(fail).await.ran;
    queue.advance(second);
    let last = queue.drain(fail).await.ran;

    let retried = Outcome::Retried { after: second, error: "busy".into() };
    assert_eq!((first[0].attempt, &first[0].outcome), (1, &retried));
    assert_eq!(none, []);
    let buried = Outcome::Buried { error: "busy".into() };
    assert_eq!((last[0].attempt, &last[0].outcome), (2, &buried));
    assert_eq!(queue.dead()[0].last_error.as_deref(), Some("busy"));
}

/// R14: a failed job waits longer after each attempt, so that a handler that keeps failing
/// does not keep its store busy.
#[tokio::test]
async fn each_retry_waits_twice_as_long_as_the_one_before() {
    let queue = TestQueue::new();
    push(&queue, ["7".into()]).await;

    let mut waits = Vec::new();
    for _ in 0..3 {
        let ran = queue.drain(fail).await.ran;
        let Outcome::Retried { after, .. } = ran[0].outcome else { panic!("{ran:?}") };
        waits.push(after);
        queue.advance(HOUR);
    }

    assert_eq!(waits, [1, 2, 4].map(Duration::from_secs));
}

#[tokio::test]
async fn a_retry_that_is_due_at_once_runs_in_the_same_drain() {
    let queue = TestQueue::new();
    push(&queue, ["7".into()]).await;

    let drained = queue
        .drain(async |job: JobContext| match job.attempt() {
            1 => Err(Failure::retry_after(Duration::ZERO, "once more")),
            _ => Ok(()),
        })
        .await;

    let attempts: Vec<_> = drained.ran.iter().map(|ran| ran.attempt).collect();
    assert_eq!(attempts, [1, 2]);
}

#[tokio::test]
async fn jobs_that_a_handler_pushes_run_too() {
    async fn delete(
        DeleteUser(user): DeleteUser,
        State(queue): State<TestQueue>,
    ) -> Result<(), Failure> {
        queue.queue().enqueue(&email(&format!("user {user}"))).await?;
        Ok(())
    }
    let queue = TestQueue::new();
    let router = Router::new()
        .job(delete)
        .job(async |_: SendEmail| Ok::<_, Failure>(()))
        .with_state(queue.clone());
    queue.queue().enqueue(&DeleteUser(7)).await.unwrap();

    let drained = queue.drain(router).await;

    drained.assert_all_done();
    let kinds: Vec<_> = drained.ran.iter().map(|ran| ran.kind.as_deref()).collect();
    assert_eq!(kinds, [Some("delete-user"), Some("send-email")]);
}

#[tokio::test]
async fn every_outcome_is_reported() {
    let queue = TestQueue::new();
    let names = ["discard", "postpone", "die", "panic"];
    push(&queue, names.map(NewJob::new)).await;

    let drained = queue
        .drain(async |job: JobContext| -> Result<(), Failure> {
            Err(match &job.payload()[..] {
                b"discard" => Failure::discard("not needed"),
                b"postpone" => Failure::postpone(HOUR, "not now"),
                b"die" => Failure::dead("never"),
                _ => panic!("a failed assertion"),
            })
        })
        .await;

    let outcomes: Vec<_> = drained.ran.iter().map(|ran| &ran.outcome).collect();
    assert_eq!(*outcomes[0], Outcome::Discarded);
    assert_eq!(*outcomes[1], Outcome::Postponed { after: HOUR });
    assert_eq!(*outcomes[2], Outcome::Buried { error: "never".into() });
    let Outcome::Retried { error, .. } = outcomes[3] else { panic!("{outcomes:?}") };
    assert!(error.contains("a failed assertion"), "{error}");
}

/// An attempt whose job was cancelled meanwhile is not settled.
#[tokio::test]
async fn an_attempt_without_a_lease_is_not_settled() {
    let queue = TestQueue::new();
    push(&queue, ["unwanted".into()]).await;
    let operator = queue.queue();

    let drained = queue
        .drain(move |job: JobContext| {
            let operator = operator.clone();
            async move { operator.cancel(job.id()).await.map(drop) }
        })
        .await;

    let outcomes: Vec<_> = drained.ran.iter().map(|ran| &ran.outcome).collect();
    assert_eq!(outcomes, [&Outcome::NotSettled("lost")]);
    queue.assert_nothing_waits();
}

/// R17: an expired job is buried, and does not hold up the drain.
#[tokio::test]
async fn an_expired_job_does_not_run() {
    let queue = TestQueue::new();
    push(&queue, [NewJob::new("7").expires_in(HOUR)]).await;

    queue.advance(HOUR);

    assert_eq!(drained(&queue).await, [""; 0]);
    assert_eq!(queue.dead().len(), 1);
}

/// A job that the test has claimed stays with the test.
#[tokio::test]
async fn a_job_that_the_test_holds_does_not_hold_up_the_drain() {
    let queue = TestQueue::new();
    push(&queue, ["1".into(), "2".into()]).await;
    let ask = ClaimRequest::new(WorkerId::new("test").unwrap(), HOUR);
    let held = queue.queue().claim_one(&ask).await.unwrap().unwrap();

    assert_eq!(drained(&queue).await, ["2"]);
    queue.advance(HOUR);
    assert_eq!(drained(&queue).await, ["1"]);
    assert_eq!(&held.payload[..], b"1");
}

/// R4, R16: code that uses ids, tokens and unique keys runs as on other backends.
#[tokio::test]
async fn duplicates_are_reported_as_on_other_backends() {
    let queue = TestQueue::new();
    let keyed = || NewJob::new("1").unique(UniqueKey::new("key").unwrap());
    let named = || NewJob::new("2").id(JobId::new("id").unwrap());
    push(&queue, [keyed(), keyed(), named(), named()]).await;
    let token = PushToken::new("token").unwrap();
    let first = queue.queue().push(&["3".into()], Some(&token)).await.unwrap();
    let again = queue.queue().push(&["3".into()], Some(&token)).await.unwrap();

    assert_eq!(first, again);
    assert_eq!(drained(&queue).await, ["1", "2", "3"]);
    let repeated = queue.queue().push_one(named()).await.unwrap();
    assert!(matches!(repeated, Pushed::Duplicate { .. }), "{repeated:?}");
    queue.advance(HOUR);
    push(&queue, [keyed(), named()]).await;
    assert_eq!(drained(&queue).await, ["1", "2"]);
}

#[tokio::test]
async fn queues_of_one_store_share_the_clock_alone() {
    let queue = TestQueue::new();
    let other = queue.another(QueueName::new("other").unwrap());
    push(&other, [NewJob::new("7").delay(HOUR)]).await;

    queue.advance(HOUR);

    queue.assert_nothing_waits();
    assert_eq!(other.now(), queue.now());
    assert_eq!(drained(&other).await, ["7"]);
}

/// A worker that the code under test starts has waits that end by themselves.
#[tokio::test]
async fn an_ordinary_worker_runs_on_the_queue() {
    let queue = TestQueue::new();
    push(&queue, ["7".into()]).await;

    let summary = Worker::new(queue.queue())
        .environment(queue.environment())
        .run_until_empty(queue.queue(), Duration::ZERO, succeed)
        .await
        .unwrap();

    assert_eq!(summary.done, 1);
}

#[tokio::test]
async fn settings_of_the_worker_hold_in_a_drain() {
    let queue = TestQueue::new();
    push(&queue, ["7".into()]).await;
    let policy = RetryPolicy::exponential(HOUR, HOUR).unwrap();

    let ran = queue.drain_with(fail, |worker| worker.retry(policy)).await.ran;

    let Outcome::Retried { after, .. } = ran[0].outcome else { panic!("{ran:?}") };
    assert_eq!(after, HOUR);
}

/// The order of the attempts is that of the queue, also with a worker of several slots.
#[tokio::test]
async fn jobs_run_one_after_the_other_whatever_the_settings() {
    let queue = TestQueue::new();
    push(&queue, (0..8).map(|number| NewJob::new(number.to_string()))).await;
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::default());
    let peak: Arc<AtomicUsize> = Arc::clone(&most);
    let handler = move |_: JobContext| {
        let (running, peak) = (Arc::clone(&running), Arc::clone(&peak));
        async move {
            peak.fetch_max(running.fetch_add(1, SeqCst) + 1, SeqCst);
            tokio::task::yield_now().await;
            running.fetch_sub(1, SeqCst);
            Ok::<_, Failure>(())
        }
    };

    let several = |worker: Worker| worker.concurrency(8.try_into().unwrap());
    let drained = queue.drain_with(handler, several).await;

    drained.assert_all_done();
    assert_eq!((drained.ran.len(), most.load(SeqCst)), (8, 1), "ran, and at once");
}

#[tokio::test]
async fn a_drain_takes_little_time() {
    let began = Instant::now();
    for _ in 0..20 {
        let queue = TestQueue::new();
        push(&queue, ["7".into()]).await;
        assert_eq!(drained(&queue).await, ["7"]);
    }
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_paused_queue_is_not_drained() {
    let queue = TestQueue::new();
    push(&queue, ["7".into()]).await;
    queue.queue().pause().await.unwrap();

    let draining = queue.clone();
    let panic = tokio::spawn(async move { draining.drain(succeed).await }).await;

    let panic = panic.unwrap_err().into_panic();
    let message = panic.downcast_ref::<&str>().unwrap();
    assert_eq!(*message, "the queue is paused, so no job runs; resume it first");
}

#[tokio::test]
async fn a_drain_without_an_end_fails() {
    let queue = TestQueue::new();
    push(&queue, ["7".into()]).await;

    let draining = queue.clone();
    let again = Arc::new(queue);
    let panic = tokio::spawn(async move {
        draining
            .drain(move |job: JobContext| {
                let again = Arc::clone(&again);
                async move {
                    push(&again, [job.payload().clone().into()]).await;
                    Ok::<_, Failure>(())
                }
            })
            .await
    })
    .await;

    let panic = panic.unwrap_err().into_panic();
    let message = panic.downcast_ref::<String>().unwrap();
    let beginning = format!("{MAX_RUNS} attempts ran, and due jobs are left");
    assert!(message.starts_with(&beginning), "{message}");
}

/// The limit is for a handler that never ends, so a drain that leaves no due job is done.
#[tokio::test]
async fn a_drain_may_run_as_many_jobs_as_its_limit() {
    let queue = TestQueue::new();
    push(&queue, ["1".into()]).await;
    let pushing = queue.clone();

    let drained = queue
        .drain(move |job: JobContext| {
            let queue = pushing.clone();
            async move {
                let number: usize = std::str::from_utf8(job.payload())?.parse()?;
                if number < MAX_RUNS {
                    push(&queue, [(number + 1).to_string().into()]).await;
                }
                Ok::<_, Failure>(())
            }
        })
        .await;

    assert_eq!(drained.ran.len(), MAX_RUNS);
}

#[tokio::test]
async fn a_missing_push_lists_the_jobs_that_wait() {
    let queue = TestQueue::new();
    let message = |queue: &TestQueue| panic_of(|| queue.assert_pushed("anna\n"));
    let none = message(&queue);
    push(&queue, ["ben".into()]).await;
    let one = message(&queue);
    let job = email("carl").to_new_job().unwrap().delay(HOUR);
    push(&queue, [job]).await;

    let begin = r#"no waiting job has the payload "anna\n"; "#;
    assert_eq!(none, format!("{begin}no job waits"));
    assert_eq!(one, format!("{begin}one job waits:\n  ready: \"ben\""));
    let two = "2 jobs wait:\n  ready: \"ben\"\n  scheduled of the kind \"send-email\": \
               \"{\\\"to\\\":\\\"carl\\\"}\", due in 3600s";
    assert_eq!(message(&queue), format!("{begin}{two}"));
}

#[tokio::test]
async fn a_long_list_is_cut() {
    let queue = TestQueue::new();
    push(&queue, (0..23).map(|number| NewJob::new(number.to_string()))).await;

    let message = panic_of(|| queue.assert_pushed("anna"));

    assert!(message.contains("; 23 jobs wait:\n"), "{message}");
    assert!(message.ends_with("  ready: \"19\"\n  and 3 more"), "{message}");
}

#[tokio::test]
async fn pushes_are_asserted_by_payload() {
    let queue = TestQueue::new();
    queue.assert_not_pushed("anna");
    push(&queue, ["anna".into()]).await;
    queue.assert_pushed("anna");

    let forbidden = panic_of(|| queue.assert_not_pushed("anna"));
    let left = panic_of(|| queue.assert_nothing_waits());

    let end = "; one job waits:\n  ready: \"anna\"";
    assert_eq!(forbidden, format!("a waiting job has the payload \"anna\"{end}"));
    assert_eq!(left, format!("the queue is not empty{end}"));
}

/// One call reads about 1 MiB of jobs, and an assertion looks at all of them.
#[tokio::test]
async fn large_pushes_are_asserted_too() {
    let queue = TestQueue::new();
    let large = |byte: u8| vec![byte; 600 << 10];
    push(&queue, [b'1', b'2', b'3'].map(|byte| NewJob::new(large(byte)))).await;

    let forbidden = panic_of(|| queue.assert_not_pushed(large(b'3')));

    assert!(forbidden.contains("; 3 jobs wait:\n"));
    assert_eq!(queue.waiting().len(), 3);
}

#[tokio::test]
async fn pushes_are_asserted_by_kind() {
    let queue = TestQueue::new();
    queue.queue().enqueue(&DeleteUser(7)).await.unwrap();
    queue.queue().enqueue(&email("anna")).await.unwrap();

    queue.assert_pushed_job(&email("anna"));
    assert_eq!(queue.pushed::<DeleteUser>(), [DeleteUser(7)]);
    let message = panic_of(|| queue.assert_pushed_job(&DeleteUser(8)));

    let listed = "no waiting job of the kind \"delete-user\" is DeleteUser(8); 2 jobs \
                  wait:\n  ready of the kind \"delete-user\": \"7\"\n  ready of the kind \
                  \"send-email\": \"{\\\"to\\\":\\\"anna\\\"}\"";
    assert_eq!(message, listed);
}

#[tokio::test]
async fn a_payload_of_a_wrong_form_is_not_passed_over() {
    let queue = TestQueue::new();
    push(&queue, [NewJob::new("{}").header("kind", "send-email")]).await;

    let message = panic_of(|| drop(queue.pushed::<SendEmail>()));

    let begin =
        "a waiting job of the kind \"send-email\" cannot be decoded: missing field";
    assert!(message.starts_with(begin), "{message}");
}

#[tokio::test]
async fn attempts_that_failed_are_listed() {
    let queue = TestQueue::new();
    push(&queue, ["1".into(), email("anna").to_new_job().unwrap()]).await;
    let some = async |job: JobContext| match job.kind() {
        Some(_) => Err(Failure::dead("no such address")),
        None => Ok(()),
    };

    let drained = queue.drain(some).await;

    let message = panic_of(|| drained.assert_all_done());
    let listed = "1 of 2 attempts were not done:\n  send-email b\"{\\\"to\\\":\\\"anna\\\"}\", \
                  attempt 1: Buried { error: \"no such address\" }";
    assert_eq!(message, listed);
}
