//! The proxy itself: what a suite starts, plans with, and asks.

use std::{
    collections::{BTreeSet, HashMap},
    fmt, io,
    os::unix::net::UnixListener as StdUnixListener,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use bytes::Bytes;
use relq_core::Clock;
use tempfile::TempDir;
use tokio::{
    net::{TcpListener, UnixListener},
    runtime::{Builder, Handle},
    sync::oneshot,
};

use super::{
    actor::{Actor, Life},
    afterlife::Afterlife,
    clock::VirtualClock,
    connection::serve,
    ledger::Ledger,
    patch::{Fitted, Patch},
    record::{Fault, StepRecord},
    request::Request,
    script::{Scripts, digest},
    server::Server,
    stream::{Address, Stream},
};

/// A proxy in front of a Redis server at which every command can be made to fail.
///
/// It runs on a thread of its own, so that an actor's runtime can end without it.
/// It ends when it is dropped, and with it every connection through it.
pub struct FaultProxy {
    shared: Arc<Shared>,
    runtime: Handle,
    /// Dropped to end the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    dir: TempDir,
}

/// What every connection of a proxy shares.
pub(crate) struct Shared {
    pub(crate) server: Server,
    pub(crate) clock: VirtualClock,
    pub(crate) ledger: Ledger,
    scripts: Mutex<Scripts>,
    actors: Mutex<HashMap<String, Endpoint>>,
    pub(crate) afterlife: Afterlife,
    listener: OnceLock<Listener>,
}

/// What is called with each request of each actor.
type Listener = Box<dyn Fn(&Request) + Send + Sync>;

/// How an actor reaches the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// A unix socket: `unix:///…`.
    Unix,
    /// A port of 127.0.0.1: `redis://127.0.0.1:…`.
    Tcp,
}

/// One actor's way to the server. Clones are the same.
#[derive(Debug, Clone)]
pub struct Endpoint {
    actor: Arc<Actor>,
    url: String,
}

impl Endpoint {
    /// What the actor connects to.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Completes once the actor is dead and the server has seen all its connections
    /// end, but for those that were frozen and those that wait for ghosts.
    pub async fn gone(&self) {
        self.actor.gone().await;
    }

    /// Completes once the server holds a blocking command of the actor's.
    pub async fn held(&self) {
        self.actor.held().await;
    }

    /// How many steps of the actor's were seen: the next is one more.
    pub fn steps(&self) -> u32 {
        self.actor.steps()
    }
}

impl FaultProxy {
    /// Starts a proxy in front of the server at `upstream`.
    ///
    /// # Errors
    /// When the operating system gives no thread, directory or event queue.
    pub fn start(
        upstream: impl Into<Address>,
        clock: VirtualClock,
    ) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("proxy".to_owned()).spawn(
            // An error means that the proxy was dropped, which is the same.
            move || drop(runtime.block_on(stopped)),
        )?;
        Ok(Self {
            shared: Arc::new(Shared::new(Server::new(upstream.into()), clock)),
            runtime: handle,
            stop: Some(stop),
            thread: Some(thread),
            dir: tempfile::Builder::new().prefix("proxy-").tempdir()?,
        })
    }

    /// The actor of that name, on a unix socket.
    ///
    /// # Errors
    /// When the operating system gives no socket.
    pub fn actor(&self, name: &str) -> io::Result<Endpoint> {
        self.actor_on(name, Transport::Unix)
    }

    /// The actor of that name, on the transport given when it is first asked for.
    ///
    /// # Errors
    /// When the operating system gives no socket.
    pub fn actor_on(&self, name: &str, transport: Transport) -> io::Result<Endpoint> {
        let mut actors = lock(&self.shared.actors);
        if let Some(known) = actors.get(name) {
            return Ok(known.clone());
        }
        let actor = Arc::new(Actor::new(name));
        let url = match transport {
            Transport::Unix => self.listen_unix(actors.len(), &actor)?,
            Transport::Tcp => self.listen_tcp(&actor)?,
        };
        let endpoint = Endpoint { actor, url };
        actors.insert(name.to_owned(), endpoint.clone());
        Ok(endpoint)
    }

    /// Plans a fault for the step of that number (from 1) of the actor of that name.
    pub fn plan(&self, actor: &str, step: u32, fault: Fault) {
        self.shared.ledger.plan(actor, step, fault);
    }

    /// The faults that were planned and did not fire.
    pub fn unfired(&self) -> Vec<(String, u32, Fault)> {
        self.shared.ledger.unfired()
    }

    /// From now on every step waits at the proxy until [`FaultProxy::pass`] or
    /// [`FaultProxy::inject`] decides on it. The plan is looked at no more.
    pub fn park(&self) {
        self.shared.ledger.park();
    }

    /// Completes once so many steps wait for a decision, and says which: sorted by
    /// actor and number, so alike in each run.
    pub async fn parked(&self, count: usize) -> Vec<StepRecord> {
        self.shared.ledger.parked(count).await
    }

    /// Lets a parked step go through; answers whether it was there.
    pub fn pass(&self, actor: &str, step: u32) -> bool {
        self.shared.ledger.decide(actor, step, None)
    }

    /// Lets a fault fire at a parked step; answers whether it was there.
    pub fn inject(&self, actor: &str, step: u32, fault: Fault) -> bool {
        self.shared.ledger.decide(actor, step, Some(fault))
    }

    /// Every step seen, in the order in which they came.
    pub fn steps(&self) -> Vec<StepRecord> {
        self.shared.ledger.steps()
    }

    /// How many steps were seen.
    pub fn step_count(&self) -> usize {
        self.shared.ledger.step_count()
    }

    /// What went wrong at the proxy itself. A run with an entry here proves nothing.
    pub fn troubles(&self) -> Vec<String> {
        self.shared.ledger.troubles()
    }

    /// Says what a script is called in the record; else it is its first comment and
    /// the beginning of its digest.
    pub fn name_script(&self, source: &str, name: &str) {
        self.shared.scripts().name(&digest(source.as_bytes()), name);
    }

    /// Every script that was loaded or run, by what it is called in the record.
    pub fn scripts(&self) -> BTreeSet<String> {
        self.shared.scripts().all_labels().into_iter().collect()
    }

    /// Changes a script on its way to the server: in the one that calls itself
    /// `script`, in a comment before all else, `from` is replaced by `to`. It must not
    /// have come through yet. Where `from` is not in it exactly once, every call of
    /// the script fails: a mutant is never the original.
    pub fn patch_script(&self, script: &str, from: &str, to: &str) -> Fitted {
        let patch = Patch::new(script, from, to);
        let fitted = patch.fitted();
        self.shared.scripts().patch(patch);
        fitted
    }

    /// Changes a text wherever a script has it, on its way to the server: for what
    /// scripts have in common. They must not have come through yet.
    pub fn patch_scripts(&self, from: &str, to: &str) -> Fitted {
        let patch = Patch::everywhere(from, to);
        let fitted = patch.fitted();
        self.shared.scripts().patch(patch);
        fitted
    }

    /// Kills an actor: its connections are closed, and new ones too, until
    /// [`FaultProxy::revive`]. Completes once the server has seen it.
    pub async fn kill(&self, endpoint: &Endpoint) {
        endpoint.actor.set_life(Life::Closed);
        endpoint.gone().await;
    }

    /// Lets an actor connect again, as a process that was started again.
    pub fn revive(&self, endpoint: &Endpoint) {
        endpoint.actor.set_life(Life::Alive);
    }

    /// Runs what dead actors had on its way, connection by connection in the order
    /// of their deaths; answers how many commands that was.
    ///
    /// # Errors
    /// When the server does not take them.
    pub async fn release_ghosts(&self) -> io::Result<usize> {
        let shared = Arc::clone(&self.shared);
        self.on_proxy(async move { shared.afterlife.release(&shared).await }).await
    }

    /// Calls `listener` with each request of each actor, those that are no steps among
    /// them. Only the first listener is called.
    pub(crate) fn listen(&self, listener: impl Fn(&Request) + Send + Sync + 'static) {
        self.shared.listener.get_or_init(|| Box::new(listener));
    }

    /// Where the server is that the proxy stands before.
    pub(crate) fn server(&self) -> &Address {
        &self.shared.server.address
    }

    /// Says something to the server past the proxy, as a stranger would, and gets its
    /// answer.
    ///
    /// # Errors
    /// When the server cannot be reached or answers an error.
    pub async fn tell<W: AsRef<[u8]>>(&self, words: &[W]) -> io::Result<Bytes> {
        let words: Vec<_> = words.iter().map(|word| word.as_ref().to_vec()).collect();
        let shared = Arc::clone(&self.shared);
        self.on_proxy(async move { shared.server.ask(&words).await }).await
    }

    /// Ends all that is wrong: no planned fault fires any more, what is parked goes
    /// through, and the server sees the end of the connections that were frozen. The
    /// dead stay dead, and ghosts wait for [`FaultProxy::release_ghosts`].
    ///
    /// # Errors
    /// When the server does not close what was frozen.
    pub async fn heal(&self) -> io::Result<()> {
        self.shared.ledger.heal();
        let shared = Arc::clone(&self.shared);
        self.on_proxy(async move { shared.afterlife.thaw().await }).await
    }

    async fn on_proxy<T: Send + 'static>(
        &self,
        work: impl Future<Output = io::Result<T>> + Send + 'static,
    ) -> io::Result<T> {
        self.runtime.spawn(work).await.map_err(io::Error::other)?
    }

    fn listen_unix(&self, number: usize, actor: &Arc<Actor>) -> io::Result<String> {
        let path = self.dir.path().join(format!("{number}.sock"));
        let listener = StdUnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        let (shared, actor) = (Arc::clone(&self.shared), Arc::clone(actor));
        let _on_proxy = self.runtime.enter();
        let listener = UnixListener::from_std(listener)?;
        self.runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let client = Stream::Unix(client);
                tokio::spawn(serve(Arc::clone(&shared), Arc::clone(&actor), client));
            }
        });
        Ok(format!("unix://{}", path.display()))
    }

    fn listen_tcp(&self, actor: &Arc<Actor>) -> io::Result<String> {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (shared, actor) = (Arc::clone(&self.shared), Arc::clone(actor));
        let _on_proxy = self.runtime.enter();
        let listener = TcpListener::from_std(listener)?;
        self.runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if let Ok(client) = Stream::tcp(client) {
                    tokio::spawn(serve(
                        Arc::clone(&shared),
                        Arc::clone(&actor),
                        client,
                    ));
                }
            }
        });
        Ok(format!("redis://{address}"))
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !std::thread::panicking()
        {
            panic!("the proxy's thread panicked");
        }
    }
}

impl fmt::Debug for FaultProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "FaultProxy({:?}, {:?})",
            self.shared.server.address, self.shared.clock
        )
    }
}

impl Shared {
    fn new(server: Server, clock: VirtualClock) -> Self {
        Self {
            server,
            clock,
            ledger: Ledger::new(),
            scripts: Mutex::default(),
            actors: Mutex::default(),
            afterlife: Afterlife::default(),
            listener: OnceLock::new(),
        }
    }

    /// Shows a request to the listener, if there is one.
    pub(crate) fn show(&self, request: &Request) {
        if let Some(listener) = self.listener.get() {
            listener(request);
        }
    }

    pub(crate) fn scripts(&self) -> MutexGuard<'_, Scripts> {
        lock(&self.scripts)
    }

    pub(crate) fn deadline(&self, limit: Duration) -> Duration {
        self.clock.elapsed().saturating_add(limit)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
