//! Tests of workers of two versions of an application: the jobs of one run on the other,
//! or wait for a worker that knows them.

use std::time::Duration;

use relq::worker::{Enqueue, Failure, Job, Router, State};
use serde::{Deserialize, Serialize};

use crate::{
    fixture::Fixture,
    kinds::{Log, SendEmail, email, log_email, log_resize, once},
};

/// The type of `send-email` in the next version of the application.
#[derive(Serialize, Deserialize)]
struct NextSendEmail {
    #[serde(alias = "to")]
    recipient: String,
    #[serde(default)]
    copies: Vec<String>,
}

impl Job for NextSendEmail {
    const KIND: &'static str = "send-email";
}

/// The same work with fields that the old ones cannot become.
#[derive(Serialize, Deserialize)]
struct SendEmailToUser {
    user: u64,
}

impl Job for SendEmailToUser {
    const KIND: &'static str = "send-email-to-user";
}

/// The router of the next version.
fn next_router() -> Router<Log> {
    Router::new()
        .job(async |email: NextSendEmail, State(log): State<Log>| {
            log.add(format!("{} {:?}", email.recipient, email.copies));
            Ok::<_, Failure>(())
        })
        .job(async |email: SendEmailToUser, State(log): State<Log>| {
            log.add(format!("user {}", email.user));
            Ok::<_, Failure>(())
        })
}

/// Jobs that an older version pushed run after a field was renamed, after one was
/// added, and beside a new kind that replaces theirs.
#[tokio::test]
async fn next_version_runs_the_jobs_of_the_last_one() {
    let fixture = Fixture::sqlite().await;
    fixture.queue.enqueue(&email("anna")).await.unwrap();
    let copies = vec!["eve".to_owned()];
    let next = NextSendEmail { recipient: "ben".to_owned(), copies };
    fixture.queue.enqueue(&next).await.unwrap();
    fixture.queue.enqueue(&SendEmailToUser { user: 7 }).await.unwrap();

    let log = Log::default();
    let worker = fixture.start(next_router().with_state(log.clone()));
    worker.until(|summary| summary.done == 3).await;

    worker.stop().await;
    assert_eq!(log.sorted(), ["anna []", "ben [\"eve\"]", "user 7"]);
}

/// The next version of `send-email` after it got a field with a default.
#[derive(Serialize, Deserialize)]
struct SendEmailWithCopies {
    to: String,
    #[serde(default)]
    copies: Vec<String>,
}

impl Job for SendEmailWithCopies {
    const KIND: &'static str = "send-email";
}

/// A worker of the last version ignores a field that it does not know.
#[tokio::test]
async fn last_version_runs_jobs_with_a_new_field() {
    let fixture = Fixture::sqlite().await;
    let copies = vec!["eve".to_owned()];
    let next = SendEmailWithCopies { to: "ben".to_owned(), copies };
    fixture.queue.enqueue(&next).await.unwrap();

    let log = Log::default();
    let old = fixture.start(Router::new().job(log_email).with_state(log.clone()));
    old.until(|summary| summary.done == 1).await;

    old.stop().await;
    assert_eq!(log.sorted(), ["email to ben"]);
}

/// R26: a router can leave jobs of unknown kinds to workers that know them. No attempt
/// is counted, also not the last one.
#[tokio::test]
async fn unknown_kind_can_wait_for_a_worker_that_knows_it() {
    let fixture = Fixture::sqlite().await;
    fixture.push(once("{\"width\":7}", "resize")).await;

    let log = Log::default();
    let old = Router::new().job(log_email).with_state(log.clone());
    let old = fixture.start(old.postpone_unknown(Duration::from_millis(5)));
    old.until(|summary| summary.postponed > 3).await;
    let new = fixture.start(Router::new().job(log_resize).with_state(log.clone()));
    new.until(|summary| summary.done == 1).await;

    assert_eq!(old.stop().await.retried, 0);
    assert_eq!(new.stop().await.dead, 0);
    assert_eq!(log.sorted(), ["resize to 7, attempt 1"]);
}

/// R26: the jobs that a router postpones are the same if its state is set last.
#[tokio::test]
async fn state_of_a_router_may_be_set_last() {
    let fixture = Fixture::sqlite().await;
    fixture.queue.enqueue(&email("anna")).await.unwrap();
    let (log, soon) = (Log::default(), Duration::from_millis(5));

    let router: Router<Log> =
        Router::new().job(log_email).postpone_unknown(soon).postpone_paused(soon);
    let paused = router.paused_kinds();
    paused.pause(SendEmail::KIND);
    let worker = fixture.start(router.with_state(log.clone()));
    worker.until(|summary| summary.postponed > 0).await;
    paused.resume(SendEmail::KIND);
    worker.until(|summary| summary.done == 1).await;
    let of_the_paused = worker.progress.summary().postponed;
    fixture.push(once("{\"width\":7}", "resize")).await;
    worker.until(|summary| summary.postponed > of_the_paused).await;

    let summary = worker.stop().await;
    assert_eq!((summary.retried, summary.dead), (0, 0));
    assert_eq!(log.sorted(), ["email to anna"]);
}

/// R26: a router can leave payloads that do not fit their types, here with a renamed field,
/// to workers of the next version. No attempt is counted, also not the last one.
#[tokio::test]
async fn undecodable_payload_can_wait_for_a_worker_that_decodes_it() {
    let fixture = Fixture::sqlite().await;
    fixture.push(once("{\"recipient\":\"ben\"}", SendEmail::KIND)).await;

    let log = Log::default();
    let old = Router::new().job(log_email).with_state(log.clone());
    let old = fixture.start(old.postpone_undecodable(Duration::from_millis(5)));
    old.until(|summary| summary.postponed > 3).await;
    let next = fixture.start(next_router().with_state(log.clone()));
    next.until(|summary| summary.done == 1).await;

    assert_eq!(old.stop().await.retried, 0);
    assert_eq!(next.stop().await.dead, 0);
    assert_eq!(log.sorted(), ["ben []"]);
}
