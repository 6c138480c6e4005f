//! Connects the spans of attempts to the spans of their producers.

use opentelemetry::{Context, trace::TraceContextExt};
use relq_core::QueueName;
use relq_worker::{
    JobContext,
    observer::{Observer, SpanOpened},
};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

use crate::headers;

/// An observer that connects the span of each attempt to the trace of the job's producer.
///
/// ```
/// # async fn example(
/// #     queue: std::sync::Arc<dyn relq_core::ReliableQueue>,
/// # ) -> Result<(), Box<dyn std::error::Error>> {
/// use relq_core::QueueName;
/// use relq_otel::OtelObserver;
/// use relq_worker::{Failure, JobContext, Worker};
///
/// let send = async |_: JobContext| Ok::<_, Failure>(());
/// let observer = OtelObserver::new(&QueueName::new("emails")?);
/// Worker::new(queue).observe(observer).run(send).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct OtelObserver {
    queue: String,
    span_name: String,
}

impl OtelObserver {
    /// An observer for a worker on the queue of this name.
    pub fn new(queue: &QueueName) -> Self {
        Self { queue: queue.to_string(), span_name: format!("process {queue}") }
    }

    fn describe(&self, span: &Span, job: &JobContext) {
        span.record("otel.name", self.span_name.as_str());
        span.record("otel.kind", "consumer");
        span.set_attribute("messaging.system", "relq");
        span.set_attribute("messaging.destination.name", self.queue.clone());
        span.set_attribute("messaging.operation.name", "process");
        span.set_attribute("messaging.operation.type", "process");
        span.set_attribute("messaging.message.id", job.id().to_string());
    }
}

impl Observer for OtelObserver {
    fn span_opened(&self, event: &SpanOpened<'_>) {
        let SpanOpened { job, span, .. } = *event;
        self.describe(span, job);
        let parent = match headers::read(job.headers()) {
            Some(producer) if job.is_redelivery() => {
                span.add_link(producer);
                Context::new()
            }
            Some(producer) => Context::new().with_remote_span_context(producer),
            None => Context::new(),
        };
        if let Err(error) = span.set_parent(parent) {
            tracing::trace!(%error, "the span of an attempt is not exported");
        }
    }
}
