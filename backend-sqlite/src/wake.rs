//! Waking the claims that wait, at once, for all queues of this process that are on
//! the same file.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError, Weak},
};

use queue_core::QueueName;
use tokio::sync::watch;

/// A bell that all handles of one queue on one file share. It counts its strokes, so
/// none is missed between a look and the wait that follows it.
#[derive(Debug, Clone)]
pub(crate) struct Bell(Arc<watch::Sender<u64>>);

type Bells = HashMap<(PathBuf, QueueName), Weak<watch::Sender<u64>>>;

/// The bells of this process. It has to be one list for all handles: a library that
/// pushes and one that works need not know of each other.
static BELLS: OnceLock<Mutex<Bells>> = OnceLock::new();

impl Bell {
    /// A bell of its own.
    pub(crate) fn alone() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    /// The bell of that queue on that file, which is named by its canonical path.
    pub(crate) fn of(file: &Path, queue: &QueueName) -> Self {
        let bells = BELLS.get_or_init(Mutex::default);
        let mut bells = bells.lock().unwrap_or_else(PoisonError::into_inner);
        bells.retain(|_, bell| bell.strong_count() > 0);
        let key = (file.to_owned(), queue.clone());
        if let Some(bell) = bells.get(&key).and_then(Weak::upgrade) {
            return Self(bell);
        }
        let bell = Self::alone();
        bells.insert(key, Arc::downgrade(&bell.0));
        bell
    }

    /// Wakes all that listen.
    pub(crate) fn ring(&self) {
        self.0.send_modify(|strokes| *strokes = strokes.wrapping_add(1));
    }

    /// Hears every stroke from now on.
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
    fn handles_of_one_queue_share_a_bell() {
        let (one, two) = (
            Bell::of(Path::new("/f"), &name("q")),
            Bell::of(Path::new("/f"), &name("q")),
        );
        let other = Bell::of(Path::new("/f"), &name("r"));
        let (heard, unheard) = (two.listen(), other.listen());

        one.ring();

        assert!(heard.has_changed().unwrap());
        assert!(!unheard.has_changed().unwrap());
    }

    #[test]
    fn bells_that_nobody_holds_are_forgotten() {
        let path = Path::new("/forgotten");
        drop(Bell::of(path, &name("q")));
        let _sweeps = Bell::of(Path::new("/other"), &name("q"));

        let bells = BELLS.get().unwrap().lock().unwrap();

        assert!(!bells.contains_key(&(path.to_owned(), name("q"))));
    }
}
