//! The lines that the page logs on the thread of a test.

use std::{cell::RefCell, io, sync::Once};

thread_local! {
    /// The lines that were logged on this thread, on which the page of a test runs.
    static LOG: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Writes to the log of the thread.
struct ThreadLog;

impl io::Write for ThreadLog {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        LOG.with_borrow_mut(|log| log.extend_from_slice(line));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Keeps what each thread logs. A subscriber of one thread would miss the events that
/// another thread logs first: `tracing` remembers that nothing listens to them.
pub(crate) fn keep() {
    static KEPT: Once = Once::new();

    KEPT.call_once(|| {
        let subscriber = tracing_subscriber::fmt().with_ansi(false);
        let subscriber = subscriber.with_writer(|| ThreadLog).finish();
        tracing::subscriber::set_global_default(subscriber)
            .expect("it is the only one");
    });
}

/// The first line of this thread's log that contains these words.
pub(crate) fn line_with(words: &str) -> Option<String> {
    let log = LOG.with_borrow(|log| String::from_utf8(log.clone()).unwrap());
    log.lines().find(|line| line.contains(words)).map(str::to_owned)
}
