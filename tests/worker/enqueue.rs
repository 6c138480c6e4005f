//! Tests that jobs of a kind are stored with the options of the kind.

use std::{num::NonZeroU16, time::Duration};

use relq::{
    Delivery, Error, JobId, NewJob, Priority, ReliableQueueExt,
    error::{ErrorContext, Operation},
    operator::{JobState, JobView, PeekRequest},
    outcome::Pushed,
    unique::{OnDuplicate, UniqueKey},
    worker::{Enqueue, EnqueueError, Job},
};
use serde::{Deserialize, Serialize};

use crate::fixture::Fixture;

const HOUR: Duration = Duration::from_secs(3600);

async fn ready(fixture: &Fixture) -> Vec<JobView> {
    let all = PeekRequest::new(JobState::Ready, 100.try_into().unwrap());
    fixture.queue.peek(&all).await.unwrap().jobs
}

#[derive(Serialize, Deserialize)]
struct Bill {
    customer: String,
}

impl Job for Bill {
    const KIND: &'static str = "bill";

    fn options(&self, job: NewJob) -> NewJob {
        job.priority(Priority::HIGHEST)
            .max_attempts(NonZeroU16::new(3).unwrap())
            .lease(HOUR)
            .expires_in(HOUR)
            .header("customer", &self.customer)
    }

    fn unique(&self) -> Option<String> {
        Some(self.customer.clone())
    }
}

fn bill(customer: &str) -> Bill {
    Bill { customer: customer.to_owned() }
}

/// Each job of a kind has the options that the kind sets, and its kind as a header.
#[tokio::test]
async fn options_of_a_kind_reach_the_stored_job() {
    let fixture = Fixture::sqlite().await;
    fixture.queue.enqueue(&bill("acme")).await.unwrap();

    let view = ready(&fixture).await.remove(0);
    let delivery = fixture.claim_one().await.unwrap();

    assert_eq!(&view.payload[..], br#"{"customer":"acme"}"#);
    assert_eq!((view.priority, view.max_attempts.get()), (Priority::HIGHEST, 3));
    assert_eq!(view.unique, Some(UniqueKey::new("bill:acme").unwrap()));
    assert!(view.expires_at.is_some());
    let headers: Vec<_> = view.headers.iter().collect();
    assert_eq!(headers, [("customer", "acme"), ("kind", "bill")]);
    assert_eq!(delivery.lease, HOUR);
}

/// An option that a call sets replaces that of the kind.
#[tokio::test]
async fn one_job_can_have_other_options() {
    let fixture = Fixture::sqlite().await;
    let job = bill("acme").to_new_job().unwrap().priority(Priority::LOWEST);
    fixture.queue.push_one(job).await.unwrap();

    assert_eq!(ready(&fixture).await[0].priority, Priority::LOWEST);
}

#[derive(Serialize, Deserialize)]
struct Remind {
    customer: String,
}

impl Job for Remind {
    const KIND: &'static str = "remind";
    const ON_DUPLICATE: OnDuplicate = OnDuplicate::Reschedule;

    fn options(&self, job: NewJob) -> NewJob {
        job.delay(HOUR)
    }

    fn unique(&self) -> Option<String> {
        Some(self.customer.clone())
    }
}

fn remind(customer: &str) -> Remind {
    Remind { customer: customer.to_owned() }
}

/// R16: a second unfinished job of one kind with the same text is a duplicate, and a job
/// of another kind with that text is not.
#[tokio::test]
async fn unique_text_is_unique_within_its_kind() {
    let fixture = Fixture::sqlite().await;
    let first = fixture.queue.enqueue(&bill("acme")).await.unwrap();
    let second = fixture.queue.enqueue(&bill("acme")).await.unwrap();
    let other_text = fixture.queue.enqueue(&bill("globex")).await.unwrap();
    let other_kind = fixture.queue.enqueue(&remind("acme")).await.unwrap();

    assert!(matches!(second, Pushed::Duplicate { .. }), "{second:?}");
    assert_eq!(second.job(), first.job());
    assert!(matches!(other_text, Pushed::Stored(_)), "{other_text:?}");
    assert!(matches!(other_kind, Pushed::Stored(_)), "{other_kind:?}");
}

#[derive(Serialize, Deserialize)]
struct ChangeUser(String);

impl Job for ChangeUser {
    const KIND: &'static str = "user";

    fn unique(&self) -> Option<String> {
        Some(self.0.clone())
    }
}

#[derive(Serialize, Deserialize)]
struct DeleteUser(String);

impl Job for DeleteUser {
    const KIND: &'static str = "user:delete";

    fn unique(&self) -> Option<String> {
        Some(self.0.clone())
    }
}

/// R16: the jobs of two kinds are no duplicates of each other, also if the name of one
/// kind and a colon begin the name of the other.
#[tokio::test]
async fn colons_of_a_kind_and_of_a_text_are_told_apart() {
    let fixture = Fixture::sqlite().await;
    let change = ChangeUser("delete:7".to_owned());
    let delete = DeleteUser("7".to_owned());

    let first = fixture.queue.enqueue(&change).await.unwrap();
    let other_kind = fixture.queue.enqueue(&delete).await.unwrap();
    let same_kind = fixture.queue.enqueue(&delete).await.unwrap();

    assert!(matches!(first, Pushed::Stored(_)), "{first:?}");
    assert!(matches!(other_kind, Pushed::Stored(_)), "{other_kind:?}");
    assert!(matches!(same_kind, Pushed::Duplicate { .. }), "{same_kind:?}");
}

/// R30: a job of one kind follows a job of another one.
#[tokio::test]
async fn job_of_a_kind_follows_one_of_another() {
    let fixture = Fixture::sqlite().await;
    let leader = JobId::new("bill-of-acme").unwrap();
    let with_id = |job: NewJob| job.id(leader.clone());
    fixture.queue.enqueue_with(&bill("acme"), with_id).await.unwrap();
    let after = |job: NewJob| job.after(leader.clone()).delay(Duration::ZERO);
    fixture.queue.enqueue_with(&remind("acme"), after).await.unwrap();
    let stats = fixture.stats().await;
    assert_eq!((stats.ready, stats.scheduled, stats.next_due_in), (1, 1, None));

    let first = fixture.claim_one().await.unwrap();
    fixture.queue.ack(&first.receipt).await.unwrap();
    let second = fixture.claim_one().await.unwrap();

    let kind = |job: &Delivery| job.headers.get("kind").map(str::to_owned);
    assert_eq!(kind(&first).as_deref(), Some("bill"));
    assert_eq!(kind(&second).as_deref(), Some("remind"));
}

/// R16: a kind can say that a duplicate moves the time of the scheduled job.
#[tokio::test]
async fn duplicate_reschedules_if_its_kind_says_so() {
    let fixture = Fixture::sqlite().await;
    let reminder = remind("acme");
    let soon = reminder.to_new_job().unwrap().delay(HOUR / 4);
    fixture.queue.push_one(soon).await.unwrap();

    fixture.queue.enqueue(&reminder).await.unwrap();

    let stats = fixture.stats().await;
    assert_eq!(stats.scheduled, 1);
    assert!(stats.next_due_in > Some(HOUR / 2), "{stats:?}");
}

/// A unique text that cannot be a key is an error, and nothing is pushed.
#[tokio::test]
async fn unique_text_that_is_no_key_is_refused() {
    let fixture = Fixture::sqlite().await;
    for customer in [String::new(), "two\nlines".to_owned(), "x".repeat(251)] {
        let error = fixture.queue.enqueue(&bill(&customer)).await.unwrap_err();
        assert!(
            matches!(error, EnqueueError::UniqueKey { kind: "bill", .. }),
            "{error}"
        );
    }
    fixture.queue.enqueue(&bill(&"x".repeat(250))).await.unwrap();

    assert_eq!(fixture.stats().await.ready, 1);
}

/// A job whose header has as many bytes as its value says.
#[derive(Serialize, Deserialize)]
struct Letter {
    header_bytes: usize,
}

impl Job for Letter {
    const KIND: &'static str = "letter";

    fn options(&self, job: NewJob) -> NewJob {
        job.header("padding", "x".repeat(self.header_bytes))
    }
}

fn letters(count: usize, last: Letter) -> Vec<Letter> {
    (1..count).map(|_| Letter { header_bytes: 0 }).chain([last]).collect()
}

/// R5: one job that the backend refuses keeps all jobs of its call out of the queue.
#[tokio::test]
async fn jobs_of_one_call_are_stored_together_or_not_at_all() {
    let fixture = Fixture::sqlite().await;
    let too_large = Letter { header_bytes: 1 << 20 };

    let error = fixture.queue.enqueue_all(&letters(3, too_large)).await.unwrap_err();

    assert!(matches!(error, EnqueueError::Push { stored: 0, .. }), "{error}");
    assert_eq!(fixture.stats().await.unfinished(), 0);
}

/// More jobs than one call takes are pushed in several calls. If one fails, the error
/// says how many jobs are stored.
#[tokio::test]
async fn many_jobs_are_pushed_in_several_calls() {
    let fixture = Fixture::sqlite().await;
    let fitting = letters(1500, Letter { header_bytes: 0 });
    let failing = letters(1500, Letter { header_bytes: 1 << 20 });

    let pushed = fixture.queue.enqueue_all(&fitting).await.unwrap();
    let error = fixture.queue.enqueue_all(&failing).await.unwrap_err();

    assert_eq!(pushed.len(), 1500);
    assert!(matches!(error, EnqueueError::Push { stored: 1000, .. }), "{error}");
    assert_eq!(fixture.stats().await.ready, 2500);
}

/// R21: if the reply to a push is lost, its jobs may be stored. The message must not say that
/// they are not, because a push that is repeated would store them twice.
#[test]
fn message_of_a_lost_reply_says_that_jobs_may_be_stored() {
    let at = ErrorContext { backend: "zset", operation: Operation::Push };
    let message = |source| EnqueueError::Push { stored: 0, source }.to_string();

    let lost = message(Error::Interrupted { at, source: "lost".into() });
    let full = message(Error::Full { at, source: "full".into() });

    let stored = "jobs cannot be pushed; 0 of them are certainly stored";
    assert_eq!(lost, format!("{stored}, and others may be"));
    assert_eq!(full, stored);
}

#[derive(Serialize, Deserialize)]
struct Shout(String);

impl Job for Shout {
    const KIND: &'static str = "shout";

    fn unique(&self) -> Option<String> {
        Some(self.0.clone())
    }
}

/// All jobs are encoded before the first one is pushed.
#[tokio::test]
async fn job_that_cannot_be_made_stops_the_push_of_all() {
    let fixture = Fixture::sqlite().await;
    let mut shouts: Vec<_> = (0..1500).map(|n| Shout(n.to_string())).collect();
    shouts.push(Shout(String::new()));

    let error = fixture.queue.enqueue_all(&shouts).await.unwrap_err();

    assert!(matches!(error, EnqueueError::UniqueKey { kind: "shout", .. }), "{error}");
    assert_eq!(fixture.stats().await.unfinished(), 0);
}
