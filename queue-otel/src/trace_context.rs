//! Puts the trace context of a producer into its jobs.

use opentelemetry::{Context, trace::TraceContextExt};
use relq_core::NewJob;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

use crate::headers;

/// Adds the current trace context to `job`, as
/// [`with_trace_context`](WithTraceContext::with_trace_context) does. A job that has the
/// header `traceparent` already keeps its context.
///
/// It is made for the `Producer` of `relq-worker`, which then adds the context to every
/// job that it pushes. The current span is that in which the call of the producer is
/// awaited:
///
/// ```
/// use relq_core::QueueName;
/// use relq_otel::{add_trace_context, send_span};
/// use relq_worker::{EnqueueError, Job, Producer};
/// use tracing::Instrument;
///
/// fn traced(producer: Producer) -> Producer {
///     producer.prepare(add_trace_context)
/// }
///
/// async fn send(
///     producer: &Producer,
///     name: &QueueName,
///     email: impl Job,
/// ) -> Result<(), EnqueueError> {
///     producer.enqueue(&email).instrument(send_span(name)).await?;
///     Ok(())
/// }
/// ```
#[must_use]
pub fn add_trace_context(job: NewJob) -> NewJob {
    let has_one = job.headers.get("traceparent").is_some();
    if has_one { job } else { job.with_trace_context() }
}

/// Puts a trace context into a job that is pushed.
///
/// A job of a kind is made by `Job::to_new_job` and then given its context:
/// `queue.push_one(email.to_new_job()?.with_trace_context())`.
pub trait WithTraceContext {
    /// Sets the headers `traceparent` and `tracestate` to the current trace context: that
    /// of OpenTelemetry's current context, or else that of the current span of `tracing`.
    /// Changes nothing if there is neither.
    #[must_use]
    fn with_trace_context(self) -> Self;

    /// Sets the headers `traceparent` and `tracestate` to the context of `span`. Changes
    /// nothing if the span is not exported.
    #[must_use]
    fn with_trace_context_of(self, span: &Span) -> Self;
}

impl WithTraceContext for NewJob {
    fn with_trace_context(mut self) -> Self {
        let current = Context::current();
        if current.span().span_context().is_valid() {
            headers::write(&current, &mut self.headers);
            return self;
        }
        self.with_trace_context_of(&Span::current())
    }

    fn with_trace_context_of(mut self, span: &Span) -> Self {
        headers::write(&span.context(), &mut self.headers);
        self
    }
}
