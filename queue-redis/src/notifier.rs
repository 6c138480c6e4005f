//! Waiting without polling: a connection with a blocking command under way.
//!
//! ```text
//!  claim finds nothing -> listen() -> the notifier's task sends its blocking command
//!  something is pushed -> the command returns -> one listener is woken
//! ```
//!
//! The command must be **level-triggered**: it returns at once if a job is ready
//! already, so that no push between the claim and the command is missed. It must not
//! remove a job either: a client that dies after the command returned has then lost
//! nothing.
//!
//! One reply wakes one listener. If no listener is left (it gave up, or found a job by
//! other means, while the command was under way), the reply is **passed on**: the
//! backend makes another worker's notifier receive it instead.

use std::{
    collections::VecDeque,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use futures_util::FutureExt as _;
use redis::{Cmd, Value};
use relq_core::{Error, environment::Environment};
use tokio::{
    sync::{Notify, oneshot},
    task::JoinHandle,
};

use crate::{Conn, link::Link};

/// How much longer than `block`, the time limit of the server, the client waits for the
/// reply. After that the client treats the connection as dead.
const GRACE: Duration = Duration::from_secs(5);

/// The pause before the first attempt to reopen a lost connection, and the longest
/// pause between later attempts.
const BACKOFF: (Duration, Duration) =
    (Duration::from_millis(50), Duration::from_secs(2));

type PassOn = Box<
    dyn Fn() -> Pin<Box<dyn Future<Output = Result<(), Error>> + Send>> + Send + Sync,
>;

/// Sends a blocking command on a connection of its own while there are listeners, and
/// wakes one listener for each result.
pub struct Notifier {
    shared: Arc<Shared>,
    task: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    name: &'static str,
    conn: Conn,
    cmd: Cmd,
    block: Duration,
    pass_on: PassOn,
    listeners: Mutex<VecDeque<oneshot::Sender<()>>>,
    /// Wakes the notifier's own task when a listener registers, or when a notification
    /// found no listener.
    stirred: Notify,
    unheard: Mutex<bool>,
}

/// A listener: a handle that waits for the next notification.
#[derive(Debug)]
pub struct Notification {
    notified: oneshot::Receiver<()>,
    notifier: Weak<Shared>,
    is_heard: bool,
}

impl Notifier {
    /// Creates a notifier that wakes a listener when `cmd` returns a result. The server
    /// holds `cmd` for at most `block`. If there is no listener then, the notifier
    /// calls `pass_on`.
    pub fn new<F>(
        name: &'static str,
        conn: Conn,
        cmd: Cmd,
        block: Duration,
        pass_on: impl Fn() -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<(), Error>> + Send + 'static,
    {
        let shared = Shared {
            name,
            conn,
            cmd,
            block,
            pass_on: Box::new(move || Box::pin(pass_on())),
            listeners: Mutex::default(),
            stirred: Notify::new(),
            unheard: Mutex::new(false),
        };
        Self { shared: Arc::new(shared), task: Mutex::new(None) }
    }

    /// Registers a listener for the next notification. The notifier's task runs on the
    /// runtime of the caller.
    pub fn listen(&self) -> Notification {
        let (notify, notified) = oneshot::channel();
        let mut listeners = lock(&self.shared.listeners);
        listeners.retain(|listener| !listener.is_closed());
        listeners.push_back(notify);
        drop(listeners);
        self.ensure_running();
        self.shared.stirred.notify_one();
        Notification {
            notified,
            notifier: Arc::downgrade(&self.shared),
            is_heard: false,
        }
    }

    fn ensure_running(&self) {
        let mut task = lock(&self.task);
        if task.as_ref().is_none_or(JoinHandle::is_finished) {
            *task = Some(tokio::spawn(run(Arc::clone(&self.shared)).boxed()));
        }
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        if let Some(task) = lock(&self.task).take() {
            task.abort();
        }
    }
}

impl fmt::Debug for Notifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Notifier({})", self.shared.name)
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Notifier({})", self.name)
    }
}

impl Notification {
    /// Waits until this listener is notified.
    pub async fn notified(mut self) {
        // The notifier was dropped together with its queue, so this listener will not
        // be notified. The caller's own time limit ends the wait.
        if (&mut self.notified).await.is_err() {
            std::future::pending::<()>().await;
        }
        self.is_heard = true;
    }
}

impl Drop for Notification {
    /// Passes a notification that the dropped listener has not read to the next
    /// listener.
    fn drop(&mut self) {
        if !self.is_heard
            && self.notified.try_recv().is_ok()
            && let Some(notifier) = self.notifier.upgrade()
        {
            notifier.notify();
        }
    }
}

impl Shared {
    /// Wakes the listener that has waited longest. If there is none, notes that the
    /// notification was not received.
    fn notify(&self) {
        let mut listeners = lock(&self.listeners);
        while let Some(listener) = listeners.pop_front() {
            if listener.send(()).is_ok() {
                return;
            }
        }
        *lock(&self.unheard) = true;
        self.stirred.notify_one();
    }

    fn has_listener(&self) -> bool {
        lock(&self.listeners).iter().any(|listener| !listener.is_closed())
    }

    fn take_unheard(&self) -> bool {
        std::mem::take(&mut *lock(&self.unheard))
    }

    fn environment(&self) -> &Environment {
        self.conn.environment()
    }
}

async fn run(shared: Arc<Shared>) {
    let mut link = None;
    let mut backoff = BACKOFF.0;
    loop {
        if shared.take_unheard()
            && let Err(error) = (shared.pass_on)().await
        {
            tracing::debug!(notifier = shared.name, %error, "a wake-up was not passed on");
        }
        if !shared.has_listener() {
            shared.stirred.notified().await;
            continue;
        }
        match wait_for_answer(&shared, &mut link).await {
            Ok(true) => shared.notify(),
            Ok(false) => {}
            Err(error) => {
                tracing::debug!(notifier = shared.name, %error, "cannot wait");
                link = None;
                pause(shared.environment(), &mut backoff).await;
                continue;
            }
        }
        backoff = BACKOFF.0;
    }
}

/// Sends the blocking command. Returns whether its reply is a result, and not nil,
/// which it is after the time limit.
async fn wait_for_answer(
    shared: &Shared,
    link: &mut Option<Link>,
) -> Result<bool, relq_core::error::BoxError> {
    let link = match link {
        Some(link) => link,
        None => link.insert(shared.conn.open_blocking().await?),
    };
    let answer: Value = link.ask(&shared.cmd, shared.block + GRACE).await?;
    Ok(answer != Value::Nil)
}

async fn pause(environment: &Environment, backoff: &mut Duration) {
    let jitter = 0.5 + environment.random().fraction() / 2.0;
    environment.clock().sleep(backoff.mul_f64(jitter)).await;
    *backoff = (*backoff * 2).min(BACKOFF.1);
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use relq_conformance::server::Server;

    use super::*;
    use crate::{RedisConfig, command};

    /// A listener whose wait ended by its time limit takes no memory for long.
    #[tokio::test]
    async fn dropped_listeners_are_removed() {
        let server = Server::start();
        let config = RedisConfig::new(&server.url()).unwrap();
        let conn = Conn::open("test", config).await.unwrap();
        let (ping, block) = (command("PING"), Duration::ZERO);
        let notifier = Notifier::new("pings", conn, ping, block, async || Ok(()));

        for _ in 0..100 {
            drop(notifier.listen());
        }
        let _listening = notifier.listen();

        assert_eq!(lock(&notifier.shared.listeners).len(), 1);
    }
}
