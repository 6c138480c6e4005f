//! How long an answer is waited for.

use std::{future::Future, pin::pin, time::Duration};

use tokio::time::{error::Elapsed, timeout};

/// How long an answer may lie unread. Where handlers kept every thread busy, the time is
/// up before anybody has looked at the connection.
const UNREAD: Duration = Duration::from_millis(100);

/// What is answered within `limit`, by whoever hears of it.
pub(crate) async fn within<T>(
    limit: Duration,
    answer: impl Future<Output = T>,
) -> Result<T, Elapsed> {
    let mut answer = pin!(answer);
    match timeout(limit, &mut answer).await {
        Ok(answer) => Ok(answer),
        Err(_) => timeout(UNREAD, answer).await,
    }
}
