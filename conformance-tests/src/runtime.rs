//! The runtimes that cases run on, and what panics on their threads.
//!
//! A task that a backend spawned and never joins dies unheard when it panics: its work
//! is not done, and the case may pass all the same, as somebody else does it later. So
//! what panics on the threads of a case is kept, and is a failure. Threads that a
//! backend starts by itself are not seen.

use std::{
    cell::RefCell,
    io,
    panic::PanicHookInfo,
    sync::{Arc, Mutex, MutexGuard, Once, PoisonError},
};

use tokio::runtime::{Builder, Runtime};

thread_local! {
    /// Whom a panic of this thread is told.
    static LISTENING: RefCell<Option<Panics>> = const { RefCell::new(None) };
}

/// The panics of the threads that are listened to, each with its place.
#[derive(Debug, Clone, Default)]
pub(crate) struct Panics(Arc<Mutex<Vec<String>>>);

impl Panics {
    /// Those of whoever runs this thread; without one, they are listened to by the
    /// caller alone.
    pub(crate) fn here() -> Self {
        // A thread that ends may panic after its own memory is gone.
        LISTENING.try_with(|it| it.borrow().clone()).ok().flatten().unwrap_or_default()
    }

    /// What panicked since the last time that this was asked.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.all())
    }

    /// Runs `work`, and all that it spawns, on this thread; what is still under way when
    /// `work` is over is dropped.
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

    /// The same on two threads beside this one.
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

    /// Listens to this thread meanwhile.
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
        let words = panic.payload_as_str().unwrap_or("it panicked without a word");
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        self.all().push(format!("{words} ({place})"));
    }

    fn all(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who was listening before.
struct Listening(Option<Panics>);

impl Drop for Listening {
    fn drop(&mut self) {
        listen(self.0.take());
    }
}

fn listen(to: Option<Panics>) {
    LISTENING.set(to);
}

/// What panics while the rest is dropped counts, too.
fn finish<T>(runtime: Runtime, work: impl Future<Output = T>) -> T {
    let done = runtime.block_on(work);
    drop(runtime);
    done
}

/// Runs a test's work on threads of its own.
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

    /// As when a task notices that its runtime is gone.
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
