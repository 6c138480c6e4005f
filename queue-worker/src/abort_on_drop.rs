//! A guard that aborts a task when it is dropped.

use tokio::task::AbortHandle;

/// Aborts the worker's task when the future of [`Worker::run`](crate::Worker::run) is
/// dropped. tokio-util has such a type in its feature `rt`, but that feature compiles more
/// code than all else that relq uses of tokio-util.
pub(crate) struct AbortOnDrop(pub(crate) AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
