#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod buckets;
mod kinds;
mod names;
mod observer;
mod queue_stats;

pub use buckets::DURATION_BUCKETS;
pub use kinds::{MOST_KINDS, OTHER_KIND};
pub use observer::MetricsObserver;
pub use queue_stats::record_stats;
