//! The runtimes that cases run on, and the panics on their threads.
//!
//! If a task that a backend spawned and never joins panics, nothing reports it. The
//! task's work is not done, and the case may still pass because another call does the
//! work later. So the suite collects all panics on the threads of a case, and each of
//! them fails the case. It does not see panics on threads that a backend starts itself.

use std::{
    cell::RefCell,
    io,
    panic::PanicHookInfo,
    sync::{Arc, Mutex, MutexGuard, Once, PoisonError},
};

use tokio::runtime::{Builder, Runtime};

thread_local! {
    /// The list that collects the panics of this thread, if there is one.
    static LISTENING: RefCell<Option<Panics>> = const { RefCell::new(None) };
}

/// The panics of the observed threads, each with its source location.
#[derive(Debug, Clone, Default)]
pub(crate) struct Panics(Arc<Mutex<Vec<String>>>);

impl Panics {
    /// Returns the list that collects this thread's panics. If there is none, returns a
    /// new list, which only the caller reads.
    pub(crate) fn here() -> Self {
        // There may be no list: a thread may panic while it ends, when its thread-local
        // storage is already gone.
        LISTENING.try_with(|it| it.borrow().clone()).ok().flatten().unwrap_or_default()
    }

    /// Returns the panics since the previous call of this method.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.all())
    }

    /// Runs `work`, and all tasks that it spawns, on this thread. Tasks that have not
    /// ended when `work` ends are dropped.
    ///
    /// # Errors
    /// When the operating system gives no runtime.
    pub(crate) fn on_this_thread<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> io::Result<T> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(self.during(|| finish(runtime, work)))
    }

    /// Does the same as [`Self::on_this_thread`], but tasks run on two more threads.
    ///
    /// # Errors
    /// When the operating system gives no runtime.
    pub(crate) fn on_threads<T>(&self, work: impl Future<Output = T>) -> io::Result<T> {
        let heard = self.clone();
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .on_thread_start(move || listen(Some(heard.clone())))
            .build()?;
        Ok(self.during(|| finish(runtime, work)))
    }

    /// Collects the panics of this thread while `run` runs.
    fn during<T>(&self, run: impl FnOnce() -> T) -> T {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                Self::here().add(panic);
                before(panic);
            }));
        });
        let _others = Listening(LISTENING.replace(Some(self.clone())));
        run()
    }

    fn add(&self, panic: &PanicHookInfo<'_>) {
        let words = panic.payload_as_str().unwrap_or("it panicked without a message");
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        self.all().push(format!("{words} ({place})"));
    }

    fn all(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When it is dropped, the thread's panics go to the previous list again.
struct Listening(Option<Panics>);

impl Drop for Listening {
    fn drop(&mut self) {
        listen(self.0.take());
    }
}

fn listen(to: Option<Panics>) {
    LISTENING.set(to);
}

/// Runs `work` and then drops the runtime, so that panics of tasks that are dropped
/// with it are collected too.
fn finish<T>(runtime: Runtime, work: impl Future<Output = T>) -> T {
    let done = runtime.block_on(work);
    drop(runtime);
    done
}

/// Runs the work of one of the suite's own tests on a runtime with several threads.
///
/// # Panics
/// When the operating system gives no runtime, and when something panicked in the
/// background.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    let panics = Panics::default();
    let done = panics.on_threads(work).expect("the system gives a runtime");
    assert_eq!(panics.take(), [""; 0], "in the background");
    done
}

/// Runs the work of one of the suite's own tests on this thread. That takes less time than
/// [`block_on`] for work that makes one call after the other.
///
/// # Panics
/// In the same cases as [`block_on`].
pub(crate) fn block_on_this_thread<T>(work: impl Future<Output = T>) -> T {
    let panics = Panics::default();
    let done = panics.on_this_thread(work).expect("the system gives a runtime");
    assert_eq!(panics.take(), [""; 0], "in the background");
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn spawn_what_panics() {
        let spawned = tokio::spawn(async { panic!("nobody asks") });
        assert!(spawned.await.is_err());
    }

    #[test]
    fn a_task_that_panics_is_heard_on_any_thread() {
        let panics = Panics::default();

        panics.on_this_thread(spawn_what_panics()).unwrap();
        panics.on_threads(spawn_what_panics()).unwrap();

        let heard = panics.take();
        assert_eq!(heard.len(), 2, "{heard:?}");
        assert!(heard.iter().all(|one| one.starts_with("nobody asks (")), "{heard:?}");
        assert_eq!(panics.take(), [""; 0]);
    }

    /// If a task panics when it is dropped with its runtime, the panic is collected.
    #[test]
    fn a_task_that_panics_when_it_is_dropped_is_heard() {
        struct Fragile;
        impl Drop for Fragile {
            fn drop(&mut self) {
                panic!("dropped");
            }
        }
        let panics = Panics::default();

        let spawning = async {
            tokio::spawn(async {
                let _fragile = Fragile;
                std::future::pending::<()>().await;
            });
            tokio::task::yield_now().await;
        };
        panics.on_this_thread(spawning).unwrap();

        assert_eq!(panics.take().len(), 1);
    }

    #[test]
    fn a_thread_of_another_runtime_is_not_heard() {
        let (mine, others) = (Panics::default(), Panics::default());

        let listening = async {
            let other = std::thread::spawn(move || {
                others.on_this_thread(spawn_what_panics()).unwrap();
                others.take().len()
            });
            assert_eq!(other.join().unwrap(), 1);
        };
        mine.on_this_thread(listening).unwrap();

        assert_eq!(mine.take(), [""; 0]);
    }
}
