//! An operator finds a job by its id, and lists jobs newest first (R31).

mod ended;
mod finding;
mod listing;
mod outlines;
mod owners;
mod searching;
mod shifting;
