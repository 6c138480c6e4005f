//! The statistics of a queue count every job exactly once (R23).

mod counts;
mod random_calls;
mod records;
