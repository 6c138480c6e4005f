//! Posts the events of an application to the hooks that are registered for them.
//!
//! ```sh
//! python3 -m http.server 8000 &   # refuses every post, so the job dies
//! cargo run --features json,sqlite --example webhook_dispatcher -- \
//!   billing=http://127.0.0.1:8000/hook
//! relq peek -q events --state dead
//! ```
//!
//! A job of the kind `event` names an event. Its handler pushes a job of the kind
//! `post-webhook` for each hook of this event. So each hook has retries of its own, and a
//! hook that is down does not hold up the others. A receiver that is down or busy gets the
//! request again later, and a receiver that refuses it makes the job a dead letter, which
//! `relq dead redrive -q events --all` sends again.
//!
//! A receiver may get a request twice: its header `webhook-id` is the same then.

use std::{
    collections::BTreeMap, error::Error, num::NonZeroU16, sync::Arc, time::Duration,
};

use relq::{
    JobId, NewJob, Queue, QueueName, ReliableQueueExt,
    worker::{Enqueue, Failure, Job, JobContext, RetryPolicy, Router, State, Worker},
};
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;

/// How long a receiver may take. The HTTP client enforces it: a time-out of the worker
/// would drop the future that waits for the thread, but not stop the thread.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);

/// Something happened in the application.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) body: String,
}

impl Job for Event {
    const KIND: &'static str = "event";
}

/// A request to one hook.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PostWebhook {
    pub(crate) url: String,
    pub(crate) event: Event,
}

impl Job for PostWebhook {
    const KIND: &'static str = "post-webhook";

    fn options(&self, job: NewJob) -> NewJob {
        job.max_attempts(NonZeroU16::new(8).expect("not zero"))
    }

    fn retry_policy() -> Option<RetryPolicy> {
        // Up to 10 s after the first attempt, then doubled: at most 21 minutes in total.
        RetryPolicy::exponential(Duration::from_secs(10), Duration::from_secs(3600))
            .ok()
    }
}

/// The hooks of each event: the address of each hook by the hook's id.
pub(crate) type Hooks = BTreeMap<String, BTreeMap<String, String>>;

/// The state that the handlers share.
#[derive(Clone)]
struct Dispatcher {
    queue: Arc<dyn Queue>,
    hooks: Arc<Hooks>,
    client: ureq::Agent,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let hooks: BTreeMap<_, _> = std::env::args()
        .skip(1)
        .filter_map(|hook| {
            hook.split_once('=').map(|(id, url)| (id.into(), url.into()))
        })
        .collect();
    if hooks.is_empty() {
        return Err("name at least one hook, as billing=http://127.0.0.1:8000/".into());
    }
    let queue = relq::connect("sqlite:relq.db", &QueueName::new("events")?).await?;
    let event = Event { name: "order.paid".into(), body: r#"{"order":7}"#.into() };
    queue.enqueue(&event).await?;

    let hooks = Hooks::from([(event.name, hooks)]);
    let summary = Worker::new(queue.clone())
        .handle_signals()
        .run_until_empty(queue.clone(), Duration::MAX, router(queue, hooks))
        .await?;
    println!("{summary:?}");
    Ok(())
}

/// The handlers of both kinds.
pub(crate) fn router(queue: Arc<dyn Queue>, hooks: Hooks) -> Router {
    let client = ureq::Agent::config_builder()
        .timeout_global(Some(REQUEST_LIMIT))
        .max_redirects(0)
        .http_status_as_error(false)
        .build()
        .into();
    Router::new().job(fan_out).job(post).with_state(Dispatcher {
        queue,
        hooks: Arc::new(hooks),
        client,
    })
}

/// Pushes a job for each hook of an event. The ids of these jobs follow from the event's
/// job and the hook. So if this handler runs again, no hook gets a second job (R4).
async fn fan_out(
    event: Event,
    State(Dispatcher { queue, hooks, .. }): State<Dispatcher>,
    job: JobContext,
) -> Result<(), Failure> {
    let Some(hooks) = hooks.get(&event.name) else { return Ok(()) };
    let mut jobs = Vec::new();
    for (hook, url) in hooks {
        let Event { name, body } = &event;
        let event = Event { name: name.clone(), body: body.clone() };
        let id = JobId::new(format!("{}-{hook}", job.id()))?;
        jobs.push(PostWebhook { url: url.clone(), event }.to_new_job()?.id(id));
    }
    queue.push_all(&jobs).await.map_err(|(error, _stored)| error)?;
    Ok(())
}

/// Posts an event to one hook. The client blocks, so it runs on a thread for such work.
async fn post(
    post: PostWebhook,
    State(Dispatcher { client, .. }): State<Dispatcher>,
    job: JobContext,
) -> Result<(), Failure> {
    let url = post.url.clone();
    let send = move || {
        client
            .post(&post.url)
            .header("webhook-id", job.id().as_str())
            .header("webhook-event", &post.event.name)
            .content_type("application/json")
            .send(&post.event.body)
    };
    let status = spawn_blocking(send).await??.status();
    match status.as_u16() {
        200..300 => Ok(()),
        // The receiver is busy or down, which passes.
        408 | 425 | 429 | 500 | 502..=504 => {
            Err(Failure::retry(format!("{url}: {status}")))
        }
        _ => Err(Failure::dead(format!("{url}: {status}"))),
    }
}
