//! The pages, one file each.

pub(crate) mod batches;
pub(crate) mod confirm;
pub(crate) mod dead;
pub(crate) mod job;
pub(crate) mod jobs;
pub(crate) mod layout;
pub(crate) mod overview;
pub(crate) mod payload;
pub(crate) mod queue;
pub(crate) mod schedules;
pub(crate) mod sign_in;
pub(crate) mod workers;
