//! Wakes waiting claims at once, for all queues of this process that are on the same
//! file.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
};

use relq_core::QueueName;
use tokio::sync::watch;

/// A notifier that all handles of one queue on one file share. It counts its
/// notifications, so that none is missed between a look and the wait after it.
#[derive(Debug, Clone)]
pub(crate) struct Notifier(Arc<watch::Sender<u64>>);

type Notifiers = HashMap<(PathBuf, QueueName), Weak<watch::Sender<u64>>>;

/// The notifiers of this process. All handles share this list, because a library that
/// pushes and one that works need not know of each other.
static NOTIFIERS: OnceLock<Mutex<Notifiers>> = OnceLock::new();

impl Notifier {
    /// A notifier that no other handle shares.
    pub(crate) fn alone() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    /// The notifier of that queue on the file with that canonical path.
    pub(crate) fn of(file: &Path, queue: &QueueName) -> Self {
        let notifiers = NOTIFIERS.get_or_init(Mutex::default);
        let mut notifiers = notifiers.lock().unwrap_or_else(PoisonError::into_inner);
        notifiers.retain(|_, notifier| notifier.strong_count() > 0);
        let key = (file.to_owned(), queue.clone());
        if let Some(notifier) = notifiers.get(&key).and_then(Weak::upgrade) {
            return Self(notifier);
        }
        let notifier = Self::alone();
        notifiers.insert(key, Arc::downgrade(&notifier.0));
        notifier
    }

    /// Wakes all listeners.
    pub(crate) fn notify(&self) {
        self.0.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Receives every notification from now on.
    pub(crate) fn listen(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> QueueName {
        QueueName::new(text).unwrap()
    }

    #[test]
    fn handles_of_one_queue_share_a_notifier() {
        let (one, two) = (
            Notifier::of(Path::new("/f"), &name("q")),
            Notifier::of(Path::new("/f"), &name("q")),
        );
        let other = Notifier::of(Path::new("/f"), &name("r"));
        let (heard, unheard) = (two.listen(), other.listen());

        one.notify();

        assert!(heard.has_changed().unwrap());
        assert!(!unheard.has_changed().unwrap());
    }

    #[test]
    fn notifiers_that_nobody_holds_are_forgotten() {
        let path = Path::new("/forgotten");
        drop(Notifier::of(path, &name("q")));
        let _sweeps = Notifier::of(Path::new("/other"), &name("q"));

        let notifiers = NOTIFIERS.get().unwrap().lock().unwrap();

        assert!(!notifiers.contains_key(&(path.to_owned(), name("q"))));
    }
}
