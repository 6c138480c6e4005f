//! Results and progress of jobs: what became of a job is there in the step that ends it,
//! and for the time that its producer asked for (R29).

mod ending;
mod fencing;
mod fixture;
mod independent;
mod keeping;
mod options;
mod pieces;
mod progress;
mod repeated;
mod sizes;
mod waiting;
