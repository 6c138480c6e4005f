//! Keeps the end of a command's standard error, for the last error of its job.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

/// The number of bytes kept: with the text around them they fit into a job's last
/// error.
const KEPT: usize = 3 << 10;

/// The end of a command's standard error.
#[derive(Debug, Default)]
pub(super) struct StderrTail(Mutex<VecDeque<u8>>);

impl StderrTail {
    /// Adds output, and drops the beginning of what is too long.
    pub(super) fn keep(&self, output: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(output);
        let surplus = kept.len().saturating_sub(KEPT);
        kept.drain(..surplus);
    }

    /// The end of the output so far, as text.
    pub(super) fn text(&self) -> String {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(kept.make_contiguous()).trim().to_owned()
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
