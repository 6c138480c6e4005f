//! Waiting for the completion of a batch.
//!
//! ```text
//!  read the record, and the id of the last completion of any batch
//!  XREAD BLOCK … STREAMS {Q}:batch:told LAST    wakes at any later completion
//!  read the record again right after it, in the same round trip
//! ```
//!
//! The stream only gives a hint: the record decides (B5). It holds one entry at most,
//! and reading does not remove it, so every waiter sees it.

use std::time::Duration;

use relq_core::{
    Error,
    batch::{BatchId, BatchStatus},
    error::Operation,
};
use relq_redis::{Cmd, WaitingConn, command};

use crate::scripts::{BatchSnapshot, Store};

/// The longest time that one XREAD blocks. After that, the waiter reads the batch's
/// record again, even if no batch has completed.
const BLOCK: Duration = Duration::from_secs(2);

/// How long a waiter sleeps before it reads the batch's record again, if it could not
/// open a connection for its blocking XREAD.
const DEAF: Duration = Duration::from_millis(500);

/// Waits until the batch completes, but at most for `timeout`. Returns its status at
/// that time, or `None` if there is no such batch.
pub(crate) async fn until_completed(
    store: &Store,
    batch: &BatchId,
    timeout: Duration,
) -> Result<Option<BatchStatus>, Error> {
    let clock = store.conn.environment().clock();
    let deadline = clock.elapsed() + timeout;
    let mut conn = None;
    let mut snapshot = store.read_batch(Operation::WaitBatch, batch).await?;
    loop {
        let left = deadline.saturating_sub(clock.elapsed());
        let is_over =
            snapshot.status.as_ref().is_none_or(|status| status.state.is_completed());
        if is_over || left.is_zero() {
            return Ok(snapshot.status);
        }
        snapshot = match listen(store, batch, &mut conn, (&snapshot, left)).await {
            Ok(heard) => heard,
            Err(error) => {
                tracing::debug!(%batch, %error, "cannot listen for a batch's completion");
                conn = None;
                clock.sleep(DEAF.min(left)).await;
                store.read_batch(Operation::WaitBatch, batch).await?
            }
        };
    }
}

/// Blocks until any batch of the queue completes, but at most for `BLOCK`. Then returns
/// the status of the batch `batch`, which may not have completed yet.
async fn listen(
    store: &Store,
    batch: &BatchId,
    conn: &mut Option<WaitingConn>,
    (snapshot, left): (&BatchSnapshot, Duration),
) -> Result<BatchSnapshot, Error> {
    let conn = match conn {
        Some(conn) => conn,
        None => conn.insert(WaitingConn::open(&store.conn).await?),
    };
    let block = left.min(BLOCK).max(Duration::from_millis(1));
    let held = told_after(store, &snapshot.last_told, block);
    let (told, read) =
        conn.wait_then(&held, &store.reading_batch(batch), block).await?;
    told?;
    BatchSnapshot::of(read?)
}

fn told_after(store: &Store, last: &str, block: Duration) -> Cmd {
    let mut cmd = command("XREAD");
    // `BLOCK 0` would wait without a limit. The caller passes at least 1 ms.
    cmd.arg("COUNT").arg(1).arg("BLOCK").arg(block.as_millis().to_string());
    cmd.arg("STREAMS").arg(store.keys.told()).arg(last);
    cmd
}
