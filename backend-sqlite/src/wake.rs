//! Wakes waiting claims of this process at once, also those of other handles on the
//! same file and queue.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
};

use relq_core::QueueName;
use tokio::sync::watch;

/// A notifier that all handles of one queue on one file share. It counts notifications.
/// So a claim does not miss one that arrives after it looked for jobs and before it
/// waits.
#[derive(Debug, Clone)]
pub(crate) struct Notifier(Arc<watch::Sender<u64>>);

type Notifiers = HashMap<(PathBuf, QueueName), Weak<watch::Sender<u64>>>;

/// The notifiers of this process, by file and queue. The list is global, because the
/// handle that pushes and the handle that claims may belong to different libraries.
static NOTIFIERS: OnceLock<Mutex<Notifiers>> = OnceLock::new();

impl Notifier {
    /// Creates a notifier that is not in the global list. A store in memory uses it.
    pub(crate) fn alone() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    /// Returns the notifier of the given queue on the file with the given canonical
    /// path.
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

    /// Wakes all claims that listen.
    pub(crate) fn notify(&self) {
        self.0.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Returns a receiver of all notifications that are sent from now on.
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
