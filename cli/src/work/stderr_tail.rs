//! Keeps the last bytes of a command's standard error, for the last error of its job.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use super::forward::KeepsOutput;

/// How many of the last bytes of a command's standard error are kept. With the text
/// that relq adds, they fit into a job's last error.
const KEPT: usize = 3 << 10;

/// The last bytes that a command wrote to its standard error.
#[derive(Debug, Default)]
pub(super) struct StderrTail(Mutex<VecDeque<u8>>);

impl StderrTail {
    /// The kept bytes as text.
    pub(super) fn text(&self) -> String {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(kept.make_contiguous()).trim().to_owned()
    }
}

impl KeepsOutput for StderrTail {
    /// Appends output, and drops the oldest bytes beyond the limit.
    fn keep(&self, output: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(output);
        let surplus = kept.len().saturating_sub(KEPT);
        kept.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_and_the_beginning_goes() {
        let tail = StderrTail::default();
        tail.keep(&vec![b'a'; KEPT]);
        tail.keep(b"bc");
        let text = tail.text();
        assert_eq!(text.len(), KEPT);
        assert!(text.ends_with("abc"));
    }
}
