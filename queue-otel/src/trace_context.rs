//! Puts the trace context of a producer into its jobs.

use opentelemetry::{Context, trace::TraceContextExt};
use relq_core::NewJob;
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

use crate::headers;

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
