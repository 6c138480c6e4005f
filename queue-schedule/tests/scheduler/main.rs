//! Schedulers on a queue in memory, by a clock that the test moves.

#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

mod changes;
mod clock;
mod errors;
mod logs;
mod meddled;
mod outages;
mod reads;
mod ticks;
mod world;
