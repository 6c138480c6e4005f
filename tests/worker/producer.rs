//! Tests of a producer of several queues: it pushes each job to the queue of its kind.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use relq::{
    NewJob, Priority, Queue, QueueName,
    operator::{JobState, JobView, PeekRequest},
    results::JobResult,
    worker::{
        Enqueue, EnqueueError, Failure, Job, JobContext, Producer, Queues, Router,
    },
};
use serde::{Deserialize, Serialize};

use crate::{
    fixture::{Fixture, Running},
    queues::{served, worker_on_several},
};

/// A kind whose jobs go to the queue `mail`.
#[derive(Serialize, Deserialize)]
struct SendEmail {
    to: String,
}

impl Job for SendEmail {
    const KIND: &'static str = "send-email";
    const QUEUE: Option<&'static str> = Some("mail");

    fn options(&self, job: NewJob) -> NewJob {
        job.header("to", &self.to)
    }
}

/// A kind without a queue of its own.
#[derive(Serialize, Deserialize)]
struct Reindex {
    user: u64,
}

impl Job for Reindex {
    const KIND: &'static str = "reindex";
}

fn email(to: &str) -> SendEmail {
    SendEmail { to: to.to_owned() }
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

async fn ready(queue: &dyn Queue) -> Vec<JobView> {
    let all = PeekRequest::new(JobState::Ready, 100.try_into().unwrap());
    queue.peek(&all).await.unwrap().jobs
}

/// The kinds of the jobs that are ready.
async fn kinds(queue: &dyn Queue) -> Vec<String> {
    let jobs = ready(queue).await;
    jobs.iter().map(|job| job.headers.get("kind").unwrap().to_owned()).collect()
}

/// The default queue of a fixture, and the queue `mail` on the same store.
async fn both(fixture: &Fixture) -> (Producer, Arc<dyn Queue>) {
    let mail = fixture.open_another("mail").await;
    let producer =
        Producer::new(fixture.queue.clone()).queue(name("mail"), mail.clone());
    (producer, mail)
}

/// The job of a kind is stored in the queue of the kind, and a router on both queues
/// runs it from there.
pub(crate) async fn each_kind_is_in_its_queue_and_runs(fixture: Fixture) {
    let (producer, mail) = both(&fixture).await;
    producer.enqueue(&email("anna")).await.unwrap();
    producer.enqueue(&Reindex { user: 7 }).await.unwrap();

    assert_eq!(kinds(&*mail).await, ["send-email"]);
    assert_eq!(kinds(&*fixture.queue).await, ["reindex"]);

    let ran = Arc::new(Mutex::new(Vec::new()));
    let (emails, users) = (Arc::clone(&ran), Arc::clone(&ran));
    let note = |ran: &Mutex<Vec<_>>, text: String, job: &JobContext| {
        ran.lock().unwrap().push(format!("{text} of {}", job.queue().unwrap()));
    };
    let router: Router = Router::new()
        .job(move |email: SendEmail, job: JobContext| {
            note(&emails, email.to, &job);
            async { Ok::<_, Failure>(()) }
        })
        .job(move |reindex: Reindex, job: JobContext| {
            note(&users, reindex.user.to_string(), &job);
            async { Ok::<_, Failure>(()) }
        });
    let queues = [served("work", fixture.queue.clone()), served("mail", mail)];
    let worker = Running::start(worker_on_several(Queues::strict(queues)), router);
    worker.until(|summary| summary.done == 2).await;
    worker.stop().await;

    ran.lock().unwrap().sort();
    assert_eq!(*ran.lock().unwrap(), ["7 of work", "anna of mail"]);
}

/// A kind whose queue the producer does not have is refused, and nothing is pushed to any
/// queue. The error names the kind, its queue, and the queues of the producer.
#[tokio::test]
async fn kind_of_an_unknown_queue_is_refused() {
    let fixture = Fixture::sqlite().await;
    let reports = fixture.open_another("reports").await;
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let producer = Producer::new(fixture.queue.clone())
        .queue(name("reports"), reports.clone())
        .prepare(move |job| {
            counted.fetch_add(1, SeqCst);
            job
        });

    let errors = [
        producer.enqueue(&email("anna")).await.unwrap_err(),
        producer.enqueue_with(&email("anna"), |job| job).await.unwrap_err(),
        producer.enqueue_all(&[email("anna"), email("ben")]).await.unwrap_err(),
        producer.enqueue_all::<SendEmail>(&[]).await.unwrap_err(),
        producer.queue_of::<SendEmail>().unwrap_err(),
    ];

    for error in errors {
        assert_eq!(
            error.to_string(),
            "jobs of the kind \"send-email\" go to the queue \"mail\", which this \
             producer does not have (it has: the default queue, \"reports\"); add it \
             with Producer::queue"
        );
        assert!(matches!(
            error,
            EnqueueError::UnknownQueue { kind: "send-email", queue: "mail", .. }
        ));
    }
    assert_eq!(calls.load(SeqCst), 0);
    assert_eq!(fixture.stats().await.unfinished(), 0);
    assert_eq!(reports.stats().await.unwrap().unfinished(), 0);
    assert!(producer.queue_of::<Reindex>().is_ok(), "it goes to the default queue");
}

/// A caller that names a queue itself, by `Enqueue`, overrules the queue of the kind.
#[tokio::test]
async fn queue_that_a_call_names_overrules_that_of_the_kind() {
    let fixture = Fixture::sqlite().await;
    let (_producer, mail) = both(&fixture).await;

    fixture.queue.enqueue(&email("anna")).await.unwrap();
    fixture.queue.enqueue_all(&[email("ben")]).await.unwrap();

    assert_eq!(kinds(&*fixture.queue).await, ["send-email", "send-email"]);
    assert!(kinds(&*mail).await.is_empty());
}

/// Sets an option in place of that of the kind, for one job.
#[tokio::test]
async fn options_of_a_call_replace_those_of_the_kind() {
    let fixture = Fixture::sqlite().await;
    let (producer, mail) = both(&fixture).await;
    let urgent = |job: NewJob| job.priority(Priority::HIGHEST).header("to", "ben");

    producer.enqueue_with(&email("anna"), urgent).await.unwrap();
    fixture.queue.enqueue_with(&email("anna"), urgent).await.unwrap();

    for queue in [mail, fixture.queue.clone()] {
        let job = ready(&*queue).await.remove(0);
        assert_eq!(
            (job.priority, job.headers.get("to")),
            (Priority::HIGHEST, Some("ben"))
        );
    }
}

/// R5: jobs of one call are of one kind and so go to one queue. One that the backend
/// refuses keeps all of them out of it.
#[tokio::test]
async fn jobs_of_one_call_are_in_one_queue_or_in_none() {
    let fixture = Fixture::sqlite().await;
    let (producer, mail) = both(&fixture).await;
    let too_long = "x".repeat(1 << 20);

    let error =
        producer.enqueue_all(&[email("anna"), email(&too_long)]).await.unwrap_err();
    assert!(matches!(error, EnqueueError::Push { stored: 0, .. }), "{error}");
    assert_eq!(mail.stats().await.unwrap().unfinished(), 0);

    let pushed = producer.enqueue_all(&[email("anna"), email("ben")]).await.unwrap();
    assert_eq!(pushed.len(), 2);
    assert_eq!(kinds(&*mail).await, ["send-email", "send-email"]);
    assert_eq!(fixture.stats().await.unfinished(), 0);
}

/// More jobs than one call takes are pushed in several calls. If one fails, the error says
/// how many jobs are stored.
#[tokio::test]
async fn failed_push_in_several_calls_tells_what_is_stored() {
    let fixture = Fixture::sqlite().await;
    let (producer, mail) = both(&fixture).await;
    let mut emails: Vec<_> = (1..1500).map(|_| email("anna")).collect();
    emails.push(email(&"x".repeat(1 << 20)));

    let error = producer.enqueue_all(&emails).await.unwrap_err();

    assert!(matches!(error, EnqueueError::Push { stored: 1000, .. }), "{error}");
    assert_eq!(mail.stats().await.unwrap().ready, 1000);
}

/// R29: the handle on a job reads its result from the queue of its kind.
#[tokio::test]
async fn handle_finds_a_job_in_the_queue_of_its_kind() {
    let fixture = Fixture::sqlite().await;
    let (producer, _mail) = both(&fixture).await;
    let kept = |job: NewJob| job.keep_result(Duration::from_secs(3600));

    let pushed = producer.enqueue_with(&email("anna"), kept).await.unwrap();
    let handle = producer.job_handle::<SendEmail>(pushed.job()).unwrap();

    let unfinished = JobResult::Unfinished { progress: None };
    assert_eq!(handle.look().await.unwrap(), Some(unfinished));
}

/// Each prepare function gets every job as the kind, the call and the earlier functions
/// have left it, and what it returns is stored.
#[tokio::test]
async fn each_job_is_prepared_before_it_is_pushed() {
    let fixture = Fixture::sqlite().await;
    let (producer, mail) = both(&fixture).await;
    let producer = producer
        .prepare(|job| {
            let to = job.headers.get("to").unwrap_or("nobody").to_owned();
            job.header("first", to)
        })
        .prepare(|job| {
            let first = job.headers.get("first").unwrap().to_owned();
            job.header("second", first + "!")
        });

    producer.enqueue(&email("anna")).await.unwrap();
    producer.enqueue_with(&email("x"), |job| job.header("to", "ben")).await.unwrap();
    producer.enqueue_all(&[email("carl"), email("dora")]).await.unwrap();
    producer.clone().enqueue(&Reindex { user: 7 }).await.unwrap();
    let made = producer.to_new_job(&email("eve")).unwrap();

    let mut seconds = Vec::new();
    for job in ready(&*mail).await.iter().chain(&ready(&*fixture.queue).await) {
        seconds.push(job.headers.get("second").unwrap().to_owned());
    }
    assert_eq!(seconds, ["anna!", "ben!", "carl!", "dora!", "nobody!"]);
    assert_eq!(made.headers.get("second"), Some("eve!"));
}

/// A prepare function runs when the future of a call is polled, and so within a span around it.
#[tokio::test]
async fn jobs_are_prepared_when_their_call_is_polled() {
    let fixture = Fixture::sqlite().await;
    let (producer, _mail) = both(&fixture).await;
    let prepared = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&prepared);
    let producer = producer.prepare(move |job| {
        counted.fetch_add(1, SeqCst);
        job
    });
    let (anna, ben) = (email("anna"), [email("ben")]);

    let (one, all) = (producer.enqueue(&anna), producer.enqueue_all(&ben));
    assert_eq!(prepared.load(SeqCst), 0);
    one.await.unwrap();
    all.await.unwrap();

    assert_eq!(prepared.load(SeqCst), 2);
}

/// Two queues of one name are an error of the program, which is found at its start.
#[tokio::test]
#[should_panic(expected = "the producer has two queues with the name \"mail\"")]
async fn name_of_two_queues_is_refused() {
    let fixture = Fixture::sqlite().await;
    let (producer, mail) = both(&fixture).await;
    drop(producer.queue(name("mail"), mail));
}
