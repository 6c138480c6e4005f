//! The span of an attempt, in which its handler logs.

use tracing::{Span, field::Empty};

use crate::{Failure, JobContext, MAX_KIND_BYTES, failure::Then};

/// Opens the span of an attempt at `job`. The fields of `otel` are empty, so that other
/// subscribers do not print them. An observer or a failure records them, and the crate
/// `tracing-opentelemetry` reads them.
pub(crate) fn open(job: &JobContext) -> Span {
    tracing::info_span!(
        "job",
        id = %job.id(),
        attempt = job.attempt(),
        kind = shown_kind(job),
        otel.name = Empty,
        otel.kind = Empty,
        otel.status_code = Empty,
        otel.status_description = Empty,
    )
}

/// The beginning of the job's kind. Each line that a handler logs repeats it, and another
/// client can push a kind of any length.
fn shown_kind(job: &JobContext) -> Option<&str> {
    job.kind().map(|kind| &kind[..kind.floor_char_boundary(MAX_KIND_BYTES)])
}

/// Marks the span of an attempt that failed. A job that is postponed or discarded did not
/// fail.
pub(crate) fn failed(span: &Span, failure: &Failure) {
    if !matches!(failure.then, Then::Postpone(_) | Then::Discard) {
        span.record("otel.status_code", "ERROR");
        span.record("otel.status_description", failure.message());
    }
}
