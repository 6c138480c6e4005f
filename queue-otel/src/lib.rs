#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod headers;
mod observer;
mod send_span;
mod trace_context;

pub use observer::OtelObserver;
pub use send_span::send_span;
pub use trace_context::{WithTraceContext, add_trace_context};
