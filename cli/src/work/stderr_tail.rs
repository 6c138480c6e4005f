//! Forwards a command's standard error and keeps its end.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::ChildStderr,
    task::JoinHandle,
    time::timeout,
};

/// The number of bytes kept: with the text around them they fit into a job's last
/// error.
const KEPT: usize = 3 << 10;

/// How long to wait for the last output of a command that has ended. A process that it
/// left running may hold the pipe open for ever.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Forwards a command's standard error as long as a process writes to it.
#[derive(Debug)]
pub(super) struct StderrTail {
    kept: Arc<Mutex<VecDeque<u8>>>,
    pump: JoinHandle<()>,
}

impl StderrTail {
    pub(super) fn of(stderr: ChildStderr) -> Self {
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        let pump = tokio::spawn(pump(stderr, Arc::clone(&kept)));
        Self { kept, pump }
    }

    /// The end of the output, as text.
    pub(super) async fn text(self) -> String {
        // Late output is still forwarded, because the pump is not stopped.
        let _ = timeout(LAST_WORDS, self.pump).await;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(kept.make_contiguous()).trim().to_owned()
    }
}

async fn pump(mut from: ChildStderr, kept: Arc<Mutex<VecDeque<u8>>>) {
    let mut to = tokio::io::stderr();
    let mut chunk = vec![0; 4 << 10];
    loop {
        let read = match from.read(&mut chunk).await {
            Ok(0) => return,
            Ok(length) => &chunk[..length],
            Err(error) => {
                tracing::warn!("a command's standard error cannot be read: {error}");
                return;
            }
        };
        keep(&mut kept.lock().unwrap_or_else(PoisonError::into_inner), read);
        // The command must not fail when relq's own standard error is closed.
        let _ = to.write_all(read).await;
        let _ = to.flush().await;
    }
}

fn keep(kept: &mut VecDeque<u8>, read: &[u8]) {
    kept.extend(read);
    let surplus = kept.len().saturating_sub(KEPT);
    kept.drain(..surplus);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_and_the_beginning_goes() {
        let mut kept = VecDeque::new();
        keep(&mut kept, &vec![b'a'; KEPT]);
        keep(&mut kept, b"bc");
        assert_eq!(kept.len(), KEPT);
        assert!(kept.iter().rev().take(3).eq(b"cba"));
    }
}
