//! Writes a trace context into the headers of a job, and reads it from them.

use opentelemetry::{
    Context,
    propagation::{Extractor, Injector, TextMapPropagator},
    trace::{SpanContext, TraceContextExt},
};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use relq_core::Headers;

/// Writes the span of `context` into `headers`. Does nothing if there is no valid span.
pub(crate) fn write(context: &Context, headers: &mut Headers) {
    TraceContextPropagator::new().inject_context(context, &mut HeaderWriter(headers));
}

/// Returns the span whose context is in `headers`. `None` if there is none, or if it
/// cannot be read.
pub(crate) fn read(headers: &Headers) -> Option<SpanContext> {
    let reader = HeaderReader(headers);
    let context =
        TraceContextPropagator::new().extract_with_context(&Context::new(), &reader);
    let span = context.span().span_context().clone();
    span.is_valid().then_some(span)
}

struct HeaderWriter<'a>(&'a mut Headers);

impl Injector for HeaderWriter<'_> {
    /// Leaves out an empty value, as `tracestate` mostly is, unless it replaces another.
    fn set(&mut self, name: &str, value: String) {
        if !value.is_empty() || self.0.get(name).is_some() {
            self.0.set(name, value);
        }
    }
}

struct HeaderReader<'a>(&'a Headers);

impl Extractor for HeaderReader<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)
    }

    fn keys(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn context(traceparent: &str, tracestate: &str) -> Context {
        let headers = [("traceparent", traceparent), ("tracestate", tracestate)];
        let span = read(&headers.into_iter().collect()).unwrap();
        Context::new().with_remote_span_context(span)
    }

    #[test]
    fn a_context_is_read_as_it_was_written() {
        let mut headers = Headers::default();
        write(&context(SPAN, "vendor=value"), &mut headers);

        let all: Vec<_> = headers.iter().collect();
        assert_eq!(all, [("traceparent", SPAN), ("tracestate", "vendor=value")]);
    }

    #[test]
    fn an_empty_state_replaces_an_old_one_only() {
        let mut headers = Headers::default();
        write(&context(SPAN, ""), &mut headers);
        assert_eq!(headers.get("tracestate"), None);

        headers.set("tracestate", "vendor=old");
        write(&context(SPAN, ""), &mut headers);
        assert_eq!(headers.get("tracestate"), Some(""));
    }

    #[test]
    fn a_context_that_cannot_be_read_is_none() {
        let zeros = "00-00000000000000000000000000000000-0000000000000000-01";
        for invalid in ["", "x", "00-1-2-3-4", zeros, "ff-0af7-b7ad-01", "é-é-é-é"]
        {
            let headers = [("traceparent", invalid)].into_iter().collect();
            assert_eq!(read(&headers), None, "{invalid}");
        }
        assert_eq!(read(&Headers::default()), None);
    }

    #[test]
    fn a_context_without_a_span_writes_nothing() {
        let mut headers = Headers::default();
        write(&Context::new(), &mut headers);
        assert!(headers.is_empty());
    }
}
