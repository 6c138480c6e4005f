//! The end of a wait for a store that does not reply.

use std::time::Duration;

use crate::failure::{CommandResult, Failure};

/// How long after the end of a wait the reply to its last call may arrive. A store that is
/// up replies sooner, and the time limits of a connection are longer.
const GRACE: Duration = Duration::from_secs(2);

/// Makes a call that only reads. Fails if it takes longer than `left` and [`GRACE`]; `None`
/// means no limit.
pub(crate) async fn within<T>(
    left: Option<Duration>,
    call: impl Future<Output = T>,
) -> CommandResult<T> {
    let limit = left.map_or(Duration::MAX, |left| left.saturating_add(GRACE));
    let answer = tokio::time::timeout(limit, call).await;
    answer.map_err(|_| {
        Failure::Failed(
            "the store did not reply in the time of the wait; check that it is up and can \
             be reached"
                .to_owned(),
        )
    })
}
