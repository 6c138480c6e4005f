//! Keeps the last bytes of a command's standard error, for the last error of its job.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use super::forward::KeepsOutput;

/// How many of the last bytes of a command's standard error are kept. The text that is made
/// of them has at most as many bytes. So it fits into a job's last error, with the words that
/// relq adds.
const KEPT: usize = 3 << 10;

/// The last bytes that a command wrote to its standard error.
#[derive(Debug, Default)]
pub(super) struct StderrTail(Mutex<VecDeque<u8>>);

impl StderrTail {
    /// The kept bytes as text. A byte that is not UTF-8 becomes a character of three bytes,
    /// and then the beginning of the text is cut off.
    pub(super) fn text(&self) -> String {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(kept.make_contiguous());
        let start = text.ceil_char_boundary(text.len().saturating_sub(KEPT));
        text[start..].trim().to_owned()
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

    /// The worker keeps the beginning of an error that is too long, so a longer text would
    /// lose its end.
    #[test]
    fn bytes_that_are_not_text_leave_the_end() {
        let tail = StderrTail::default();
        tail.keep(&[0xe9; KEPT]);
        tail.keep(b"the reason\n");
        let text = tail.text();
        assert!(text.len() <= KEPT, "{}", text.len());
        assert!(text.ends_with("\u{fffd}the reason"), "{text}");
    }
}
