//! A push can be repeated: by the job's id, or by the call's token (R4).

mod ids;
mod tokens;

use std::time::Duration;

use relq_core::NewJob;

use crate::checks::id;

pub(crate) use ids::*;
pub(crate) use tokens::*;

/// The window in which an ended job's id and a call's token are known.
const WINDOW: Duration = Duration::from_secs(300);
const PAST_WINDOW: Duration = Duration::from_secs(303);

fn mine() -> NewJob {
    NewJob::new("first").id(id("mine"))
}
