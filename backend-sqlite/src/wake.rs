//! Wakes waiting calls of this process at once, also those of other handles on the same
//! file and queue: claims, and calls that wait for the end of a job.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    future::pending,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak},
};

use relq_core::{JobId, QueueName};
use tokio::sync::{oneshot, watch};

/// A notifier that all handles of one queue on one file share.
#[derive(Debug, Clone)]
pub(crate) struct Notifier(Arc<Waiting>);

/// The waiting calls of one queue.
#[derive(Debug)]
struct Waiting {
    /// The canonical path of the file, whose other queues have notifiers, too. `None` for a
    /// store in memory, which has one queue.
    file: Option<PathBuf>,
    /// Counts the notifications for claims. So a claim does not miss one that arrives
    /// after it looked for jobs and before it waits.
    claims: watch::Sender<u64>,
    /// The calls that wait for the end of a job, by its id. A producer may wait for many
    /// jobs, so an end wakes only the calls that wait for it.
    ends: Mutex<Ends>,
}

type Ends = HashMap<String, Vec<oneshot::Sender<()>>>;

type Notifiers = HashMap<(PathBuf, QueueName), Weak<Waiting>>;

/// The notifiers of this process, by file and queue. The list is global, because the
/// handle that pushes and the handle that claims may belong to different libraries.
static NOTIFIERS: OnceLock<Mutex<Notifiers>> = OnceLock::new();

/// The waiting calls that a transaction wakes once it is committed.
#[derive(Debug, Default)]
pub(crate) struct Wakes {
    /// Whether jobs may have become available, so that waiting claims look again.
    pub(crate) claims: Cell<bool>,
    /// The other queues of the file in which jobs may have become available.
    pub(crate) other_queues: RefCell<Vec<QueueName>>,
    /// The ids of jobs that have ended.
    pub(crate) ended: RefCell<Vec<String>>,
    /// Whether other jobs, too, may have ended.
    pub(crate) all_ended: Cell<bool>,
}

impl Notifier {
    /// Creates a notifier that is not in the global list. A store in memory uses it.
    pub(crate) fn alone() -> Self {
        Self::new(None)
    }

    fn new(file: Option<PathBuf>) -> Self {
        let (claims, ends) = (watch::Sender::new(0), Mutex::default());
        Self(Arc::new(Waiting { file, claims, ends }))
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
        let notifier = Self::new(Some(file.to_owned()));
        notifiers.insert(key, Arc::downgrade(&notifier.0));
        notifier
    }

    /// Wakes all waiting calls that a committed transaction may have served.
    pub(crate) fn notify(&self, wakes: Wakes) {
        if wakes.claims.get() {
            self.wake_claims();
        }
        if let Some(file) = &self.0.file {
            for queue in wakes.other_queues.into_inner() {
                Self::of(file, &queue).wake_claims();
            }
        }
        if wakes.all_ended.get() {
            wake(std::mem::take(&mut *self.0.ends()).into_values().flatten());
        }
        for job in wakes.ended.into_inner() {
            wake(self.0.ends().remove(&job).into_iter().flatten());
        }
    }

    fn wake_claims(&self) {
        self.0.claims.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Returns a receiver of all notifications for claims that are sent from now on.
    pub(crate) fn listen(&self) -> watch::Receiver<u64> {
        self.0.claims.subscribe()
    }

    /// The ids of the jobs for whose end calls wait.
    pub(crate) fn awaited(&self) -> Vec<String> {
        self.0.ends().keys().cloned().collect()
    }

    /// Begins to wait for the end of a job.
    pub(crate) fn listen_for_end(&self, job: &JobId) -> EndWaiter {
        let (wake, woken) = oneshot::channel();
        self.0.ends().entry(job.to_string()).or_default().push(wake);
        EndWaiter { waiting: Arc::clone(&self.0), job: job.clone(), woken }
    }
}

impl Waiting {
    fn ends(&self) -> MutexGuard<'_, Ends> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake(calls: impl Iterator<Item = oneshot::Sender<()>>) {
    for call in calls {
        // A call that does not wait any more needs no notification.
        let _ = call.send(());
    }
}

/// A call that waits for the end of a job.
#[derive(Debug)]
pub(crate) struct EndWaiter {
    waiting: Arc<Waiting>,
    job: JobId,
    woken: oneshot::Receiver<()>,
}

impl EndWaiter {
    /// Waits until the job may have ended.
    pub(crate) async fn woken(&mut self) {
        if (&mut self.woken).await.is_err() {
            pending::<()>().await;
        }
    }
}

impl Drop for EndWaiter {
    fn drop(&mut self) {
        self.woken.close();
        let mut ends = self.waiting.ends();
        if let Some(calls) = ends.get_mut(self.job.as_str()) {
            calls.retain(|call| !call.is_closed());
            if calls.is_empty() {
                ends.remove(self.job.as_str());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> QueueName {
        QueueName::new(text).unwrap()
    }

    fn job(id: &str) -> JobId {
        JobId::new(id).unwrap()
    }

    #[test]
    fn handles_of_one_queue_share_a_notifier() {
        let (one, two) = (
            Notifier::of(Path::new("/f"), &name("q")),
            Notifier::of(Path::new("/f"), &name("q")),
        );
        let other = Notifier::of(Path::new("/f"), &name("r"));
        let (heard, unheard) = (two.listen(), other.listen());

        one.notify(Wakes { claims: true.into(), ..Wakes::default() });

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

    #[test]
    fn an_end_wakes_the_calls_that_wait_for_it() {
        let notifier = Notifier::alone();
        let claims = notifier.listen();
        let [mut one, mut two, mut other] =
            ["a", "a", "b"].map(|id| notifier.listen_for_end(&job(id)));

        let ended = RefCell::new(vec!["a".to_owned(), "unknown".to_owned()]);
        notifier.notify(Wakes { ended, ..Wakes::default() });

        assert_eq!((one.woken.try_recv(), two.woken.try_recv()), (Ok(()), Ok(())));
        assert!(other.woken.try_recv().is_err());
        assert!(!claims.has_changed().unwrap());
        notifier.notify(Wakes { all_ended: true.into(), ..Wakes::default() });
        assert_eq!(other.woken.try_recv(), Ok(()));
    }

    #[test]
    fn calls_that_have_ended_their_wait_are_forgotten() {
        let notifier = Notifier::alone();
        let first = notifier.listen_for_end(&job("a"));
        let second = notifier.listen_for_end(&job("a"));

        drop(first);
        assert_eq!(notifier.0.ends()["a"].len(), 1);
        drop(second);
        assert!(notifier.0.ends().is_empty());
    }
}
