//! Schedules: the job of each tick is pushed once, by any number of schedulers (R28).

mod dropping;
mod fixture;
mod independent;
mod jobs;
mod listing;
mod racing;
mod storing;
mod ticking;
