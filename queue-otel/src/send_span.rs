//! The span of a push.

use relq_core::QueueName;
use tracing::Span;

/// A span for a push to the queue of this name, with the attributes of OpenTelemetry for a
/// producer. Push [in the span](tracing::Instrument::instrument), and give its context to
/// the jobs by [`with_trace_context_of`](crate::WithTraceContext::with_trace_context_of).
///
/// Its parent is the current span.
pub fn send_span(queue: &QueueName) -> Span {
    tracing::info_span!(
        "send",
        otel.name = format!("send {queue}"),
        otel.kind = "producer",
        messaging.system = "relq",
        messaging.destination.name = queue.as_str(),
        messaging.operation.name = "send",
        messaging.operation.r#type = "send",
    )
}
