//! Tests of the traces of jobs, with an exporter that keeps spans in memory.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::BTreeSet,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use opentelemetry::{
    Context,
    trace::{
        SpanContext, SpanId, SpanKind, Status, TraceContextExt, TraceFlags, TraceId,
        TraceState, TracerProvider,
    },
};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use relq::{
    NewJob, Queue, QueueName, ReliableQueueExt,
    otel::{OtelObserver, WithTraceContext, add_trace_context, send_span},
    worker::{
        Failure, Handler, Job, JobContext, Producer, RetryPolicy, Router, Summary,
        Worker,
    },
};
use serde::{Deserialize, Serialize};
use tracing::{Instrument, subscriber::DefaultGuard};
use tracing_subscriber::layer::SubscriberExt;

/// The time limit of an attempt. Only a handler that never ends reaches it.
const LIMIT: Duration = Duration::from_millis(100);

const README: &str = include_str!("../queue-otel/README.md");

/// A queue in memory. The spans of this thread are exported to a list.
struct Traced {
    queue: Arc<dyn Queue>,
    name: QueueName,
    exporter: InMemorySpanExporter,
    _subscriber: DefaultGuard,
}

impl Traced {
    async fn new() -> Self {
        let exporter = InMemorySpanExporter::default();
        let provider =
            SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
        let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
        let subscriber = tracing_subscriber::registry().with(layer);
        let _subscriber = tracing::subscriber::set_default(subscriber);
        let (queue, name) = queue().await;
        Self { queue, name, exporter, _subscriber }
    }

    /// Pushes `job` in a span of its producer.
    async fn send(&self, job: NewJob) {
        let span = send_span(&self.name);
        let job = job.with_trace_context_of(&span);
        self.queue.push_one(job).instrument(span).await.unwrap();
    }

    async fn work(&self, handler: impl Handler) -> Summary {
        work(&self.queue, &self.name, handler).await
    }

    /// The first span with this name, as soon as it has ended. The thread of the heartbeats
    /// may drop its part of the worker's span a moment after the worker has ended.
    async fn ended_span(&self, name: &str) -> SpanData {
        let start = Instant::now();
        loop {
            if let Some(span) = self.spans(name).into_iter().next() {
                return span;
            }
            assert!(start.elapsed() < Duration::from_secs(20), "{name} does not end");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The ended spans of this name, in the order of their ends.
    fn spans(&self, name: &str) -> Vec<SpanData> {
        let spans = self.exporter.get_finished_spans().unwrap();
        spans.into_iter().filter(|span| span.name == name).collect()
    }
}

async fn queue() -> (Arc<dyn Queue>, QueueName) {
    let name = QueueName::new("emails").unwrap();
    (relq::connect("sqlite::memory:", &name).await.unwrap(), name)
}

async fn work(
    queue: &Arc<dyn Queue>,
    name: &QueueName,
    handler: impl Handler,
) -> Summary {
    let prompt = Duration::from_millis(1);
    Worker::new(queue.clone())
        .observe(OtelObserver::new(name))
        .timeout(LIMIT)
        .retry(RetryPolicy::exponential(prompt, prompt).unwrap())
        .run_until_empty(queue.clone(), Duration::MAX, handler)
        .await
        .unwrap()
}

async fn succeed(_: JobContext) -> Result<(), Failure> {
    Ok(())
}

/// Fails the first attempt, and succeeds in the second.
async fn fail_once(job: JobContext) -> Result<(), Failure> {
    if job.is_redelivery() { Ok(()) } else { Err(Failure::retry("no connection")) }
}

#[tokio::test]
async fn first_attempt_is_a_child_and_the_next_is_linked() {
    let traced = Traced::new().await;
    traced.send(NewJob::new("anna")).await;
    traced.work(fail_once).await;

    let producer = traced.spans("send emails").remove(0);
    let attempts = traced.spans("process emails");
    let [first, second] = &*attempts else { panic!("{attempts:#?}") };
    let sent = &producer.span_context;
    assert_eq!(first.span_context.trace_id(), sent.trace_id());
    assert_eq!(first.parent_span_id, sent.span_id());
    assert!(first.parent_span_is_remote && first.links.is_empty());
    assert_ne!(second.span_context.trace_id(), sent.trace_id());
    assert_eq!(second.parent_span_id, SpanId::INVALID, "the root of a trace");
    let linked = &second.links.links[0].span_context;
    assert_eq!(
        (linked.trace_id(), linked.span_id()),
        (sent.trace_id(), sent.span_id())
    );
}

/// The span around the worker lasts as long as the worker, so it is not the parent.
#[tokio::test]
async fn job_without_a_trace_context_is_a_root() {
    let traced = Traced::new().await;
    traced.queue.push_one(NewJob::new("anna")).await.unwrap();
    let invalid = NewJob::new("berta").header("traceparent", "not a trace context");
    traced.queue.push_one(invalid).await.unwrap();

    let summary = traced.work(succeed).instrument(tracing::info_span!("worker")).await;

    assert_eq!(summary.done, 2);
    let attempts = traced.spans("process emails");
    assert_eq!(attempts.len(), 2);
    let worker = traced.ended_span("worker").await.span_context.trace_id();
    for span in attempts {
        assert_eq!(span.parent_span_id, SpanId::INVALID, "{span:#?}");
        assert!(span.links.is_empty());
        assert_ne!(span.span_context.trace_id(), worker);
    }
}

/// The log lines and spans of a handler belong to the span of its attempt.
#[tokio::test]
async fn span_of_a_handler_is_a_child_of_its_attempt() {
    let traced = Traced::new().await;
    traced.send(NewJob::new("anna")).await;
    traced
        .work(async |_: JobContext| {
            tracing::info_span!("smtp").in_scope(|| ());
            Ok::<_, Failure>(())
        })
        .await;

    let (attempt, smtp) =
        (&traced.spans("process emails")[0], &traced.spans("smtp")[0]);
    assert_eq!(smtp.parent_span_id, attempt.span_context.span_id());
}

/// A producer may use the interface of OpenTelemetry without `tracing`.
#[tokio::test]
async fn current_context_of_opentelemetry_is_sent_with_its_state() {
    let traced = Traced::new().await;
    let state: TraceState = "vendor=value".parse().unwrap();
    let (trace, span) = (TraceId::from(7), SpanId::from(8));
    let sent = SpanContext::new(trace, span, TraceFlags::SAMPLED, false, state.clone());
    let job = {
        let _current = Context::new().with_remote_span_context(sent).attach();
        NewJob::new("anna").with_trace_context()
    };
    traced.queue.push_one(job).await.unwrap();
    traced.work(succeed).await;

    let attempt = &traced.spans("process emails")[0];
    assert_eq!(attempt.span_context.trace_id(), trace);
    assert_eq!(attempt.parent_span_id, span);
    assert_eq!(attempt.span_context.trace_state(), &state);
}

/// A producer that uses the interface of OpenTelemetry in a span of `tracing` means the context
/// that it has set last.
#[tokio::test]
async fn current_context_of_opentelemetry_counts_before_the_span() {
    let traced = Traced::new().await;
    let (trace, span) = (TraceId::from(7), SpanId::from(8));
    let state = TraceState::default();
    let sent = SpanContext::new(trace, span, TraceFlags::SAMPLED, false, state);
    let job = tracing::info_span!("request").in_scope(|| {
        let _current = Context::new().with_remote_span_context(sent).attach();
        NewJob::new("anna").with_trace_context()
    });
    traced.queue.push_one(job).await.unwrap();
    traced.work(succeed).await;

    let attempt = &traced.spans("process emails")[0];
    assert_eq!(attempt.span_context.trace_id(), trace, "not the trace of the span");
    assert_eq!(attempt.parent_span_id, span);
}

/// The current span of `tracing` is the producer.
#[tokio::test]
async fn current_span_is_sent() {
    let traced = Traced::new().await;
    let push = async {
        let job = NewJob::new("anna").with_trace_context();
        traced.queue.push_one(job).await.unwrap();
    };
    push.instrument(tracing::info_span!("request")).await;
    traced.work(succeed).await;

    let (request, attempts) =
        (&traced.spans("request")[0], traced.spans("process emails"));
    assert_eq!(attempts[0].parent_span_id, request.span_context.span_id());
}

#[derive(Serialize, Deserialize)]
struct SendEmail {
    to: String,
}

impl Job for SendEmail {
    const KIND: &'static str = "send-email";

    /// Carries on the trace of another system for some addresses.
    fn options(&self, job: NewJob) -> NewJob {
        if self.to == "elsewhere" { job.header("traceparent", ELSEWHERE) } else { job }
    }
}

const ELSEWHERE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn email(to: &str) -> SendEmail {
    SendEmail { to: to.to_owned() }
}

impl Traced {
    fn producer(&self) -> Producer {
        Producer::new(self.queue.clone()).prepare(add_trace_context)
    }

    async fn work_on_emails(&self) -> Summary {
        self.work(Router::new().job(async |_: SendEmail| Ok::<_, Failure>(()))).await
    }
}

/// A producer adds the context of the span in which a call is awaited to each of its jobs.
#[tokio::test]
async fn producer_adds_the_context_to_each_job() {
    let traced = Traced::new().await;
    let producer = traced.producer();
    let span = send_span(&traced.name);
    producer.enqueue(&email("anna")).instrument(span).await.unwrap();
    let many = async {
        producer.enqueue_all(&[email("ben"), email("carl")]).await.unwrap();
        producer.enqueue_with(&email("dora"), |job| job).await.unwrap();
    };
    many.instrument(tracing::info_span!("request")).await;

    assert_eq!(traced.work_on_emails().await.done, 4);

    let sent = traced.spans("send emails")[0].span_context.span_id();
    let request = traced.spans("request")[0].span_context.span_id();
    let attempts = traced.spans("process emails");
    let parents = |id| attempts.iter().filter(|span| span.parent_span_id == id).count();
    assert_eq!((parents(sent), parents(request)), (1, 3), "{attempts:#?}");
}

/// A trace context that the kind or the call has set is not replaced.
#[tokio::test]
async fn context_that_a_job_has_is_kept() {
    let traced = Traced::new().await;
    let producer = traced.producer();
    let own = tracing::info_span!("own");
    let push = async {
        let with_own = |job: NewJob| job.with_trace_context_of(&own);
        producer.enqueue(&email("elsewhere")).await.unwrap();
        producer.enqueue_with(&email("anna"), with_own).await.unwrap();
    };
    push.instrument(tracing::info_span!("request")).await;
    drop(own);

    assert_eq!(traced.work_on_emails().await.done, 2);

    let own = traced.spans("own")[0].span_context.span_id();
    let elsewhere = SpanId::from_hex("b7ad6b7169203331").unwrap();
    let mut parents: Vec<_> =
        traced.spans("process emails").iter().map(|span| span.parent_span_id).collect();
    let mut expected = vec![own, elsewhere];
    parents.sort_by_key(|id| id.to_bytes());
    expected.sort_by_key(|id| id.to_bytes());
    assert_eq!(parents, expected);
}

/// The attributes of an ended span that this crate documents, without those of `tracing`.
fn names(span: &SpanData) -> BTreeSet<String> {
    let names = span.attributes.iter().map(|attribute| attribute.key.to_string());
    let of_tracing = ["busy_ns", "idle_ns", "level", "target"];
    let is_ours = |name: &String| {
        !of_tracing.contains(&&**name)
            && !name.starts_with("code.")
            && !name.starts_with("thread.")
    };
    names.filter(is_ours).collect()
}

/// Reads a column of the table of attributes: the names that have a text there.
fn documented(column: usize) -> BTreeSet<String> {
    let table = README.split("| attribute |").nth(1).unwrap();
    let lines = table.lines().filter(|line| line.starts_with("| `"));
    lines
        .map(|line| line.split('|').map(str::trim).collect::<Vec<_>>())
        .filter(|cells| !cells[column].is_empty())
        .map(|cells| cells[1].trim_matches('`').to_owned())
        .collect()
}

#[tokio::test]
async fn attributes_are_those_that_are_documented() {
    let traced = Traced::new().await;
    let id = relq::JobId::new("of-anna").unwrap();
    traced.send(NewJob::new("anna").id(id).header("kind", "welcome")).await;
    traced.work(succeed).await;

    let (sent, attempt) =
        (&traced.spans("send emails")[0], &traced.spans("process emails")[0]);
    assert_eq!((&sent.span_kind, names(sent)), (&SpanKind::Producer, documented(2)));
    assert_eq!(
        (&attempt.span_kind, names(attempt)),
        (&SpanKind::Consumer, documented(3))
    );
    let has = |span: &SpanData, name: &str, value: &str| {
        let is_it =
            |attribute: &&opentelemetry::KeyValue| attribute.key.as_str() == name;
        let found = span.attributes.iter().find(is_it).unwrap();
        assert_eq!(found.value.as_str(), value, "{name}");
    };
    for (span, operation) in [(sent, "send"), (attempt, "process")] {
        has(span, "messaging.system", "relq");
        has(span, "messaging.destination.name", "emails");
        has(span, "messaging.operation.name", operation);
        has(span, "messaging.operation.type", operation);
    }
    has(attempt, "messaging.message.id", "of-anna");
    has(attempt, "id", "of-anna");
    has(attempt, "kind", "welcome");
}

/// The status of a span tells a failure, a panic and a time-out, and no postponement.
#[tokio::test]
async fn failed_attempt_has_the_status_of_an_error() {
    let traced = Traced::new().await;
    for name in ["failure", "panic", "time-out", "postponed", "discarded"] {
        traced.send(NewJob::new(name)).await;
    }
    let postponed = Arc::new(AtomicBool::new(false));
    traced
        .work(move |job: JobContext| {
            let postponed = Arc::clone(&postponed);
            async move {
                match &job.payload()[..] {
                    _ if job.is_redelivery() => Ok(()),
                    b"failure" => Err(Failure::retry("no connection")),
                    b"panic" => panic!("oh no"),
                    b"time-out" => pending().await,
                    b"discarded" => Err(Failure::discard("outdated")),
                    _ if postponed.swap(true, SeqCst) => Ok(()),
                    _ => Err(Failure::postpone(Duration::from_millis(1), "later")),
                }
            }
        })
        .await;

    let statuses: Vec<_> =
        traced.spans("process emails").into_iter().map(|span| span.status).collect();
    let count = |status: &Status| statuses.iter().filter(|is| *is == status).count();
    assert_eq!(statuses.len(), 9, "{statuses:?}");
    let timed_out = "the handler took longer than its limit of 100ms";
    for error in ["no connection", "the handler panicked: oh no", timed_out] {
        assert_eq!(count(&Status::error(error)), 1, "{error}: {statuses:?}");
    }
    assert_eq!(count(&Status::Unset), 6, "{statuses:?}");
}

/// Without a layer that exports spans, jobs are pushed and run as usual.
#[tokio::test]
async fn without_an_exporter_nothing_is_written() {
    let (queue, name) = queue().await;
    let job = NewJob::new("anna").with_trace_context();
    let job = job.with_trace_context_of(&send_span(&name));
    assert!(job.headers.is_empty());
    queue.push_one(job).await.unwrap();

    assert_eq!(work(&queue, &name, succeed).await.done, 1);
}
