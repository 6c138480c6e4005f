//! A push can be repeated safely: by the job's id, or by the call's token (R4).

mod ids;
mod tokens;

use std::time::Duration;

use relq_core::NewJob;

use crate::harness::checks::id;

/// How long the id of an ended job and the token of a call are remembered.
const WINDOW: Duration = Duration::from_secs(300);
const PAST_WINDOW: Duration = Duration::from_secs(303);

fn mine() -> NewJob {
    NewJob::new("first").id(id("mine"))
}
