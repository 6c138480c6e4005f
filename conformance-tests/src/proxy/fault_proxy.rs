//! The proxy itself: the suite starts it, plans faults with it, and reads its record.

use std::{
    collections::{BTreeSet, HashMap},
    fmt, io,
    os::unix::net::UnixListener as StdUnixListener,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use bytes::Bytes;
use relq_core::environment::Clock;
use tempfile::TempDir;
use tokio::{
    net::{TcpListener, UnixListener},
    runtime::{Builder, Handle},
    sync::oneshot,
    time::timeout,
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

/// The limit for the command of a fault that is under way when the faults end.
const FINISHED_WITHIN: Duration = Duration::from_secs(20);

/// A proxy in front of a Redis server at which every command can be made to fail.
///
/// It runs on its own thread, so an actor's runtime can end without it. Dropping it
/// closes every connection through it.
pub struct FaultProxy {
    shared: Arc<Shared>,
    runtime: Handle,
    /// Dropping this sender ends the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    dir: TempDir,
}

/// The state that all connections of a proxy share.
pub(crate) struct Shared {
    pub(crate) server: Server,
    pub(crate) clock: VirtualClock,
    pub(crate) ledger: Ledger,
    scripts: Mutex<Scripts>,
    actors: Mutex<HashMap<String, Endpoint>>,
    pub(crate) afterlife: Afterlife,
    listener: OnceLock<Listener>,
}

/// A callback for each request of each actor.
type Listener = Box<dyn Fn(&Request) + Send + Sync>;

/// How an actor reaches the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// A unix socket: `unix:///…`.
    Unix,
    /// A port of 127.0.0.1: `redis://127.0.0.1:…`.
    Tcp,
}

/// One actor's address at the proxy. Clones share the actor.
#[derive(Debug, Clone)]
pub struct Endpoint {
    actor: Arc<Actor>,
    url: String,
}

impl Endpoint {
    /// The URL that the actor connects to.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Completes once the actor is dead and the server has seen all its connections
    /// end, except for frozen ones and those that wait for ghosts.
    pub async fn gone(&self) {
        self.actor.gone().await;
    }

    /// Completes once the server holds a blocking command of the actor's.
    pub async fn held(&self) {
        self.actor.held().await;
    }

    /// A digest of all replies since [`Endpoint::forget_replies`].
    pub(crate) fn replies(&self) -> u64 {
        self.actor.replies()
    }

    pub(crate) fn forget_replies(&self) {
        self.actor.forget_replies();
    }

    /// The number of the actor's steps so far. The next step has the next number.
    pub fn steps(&self) -> u32 {
        self.actor.steps()
    }
}

impl FaultProxy {
    /// Starts a proxy in front of the server at `upstream`.
    ///
    /// # Errors
    /// When the operating system cannot create a thread, a directory or an event queue.
    pub fn start(
        upstream: impl Into<Address>,
        clock: VirtualClock,
    ) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new().name("proxy".to_owned()).spawn(
            // An error means that the proxy was dropped, which also ends the thread.
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
    /// When the operating system cannot create a socket.
    pub fn actor(&self, name: &str) -> io::Result<Endpoint> {
        self.actor_on(name, Transport::Unix)
    }

    /// The actor of that name. The first call for a name determines its transport.
    ///
    /// # Errors
    /// When the operating system cannot create a socket.
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

    /// The planned faults that have not fired.
    pub fn unfired(&self) -> Vec<(String, u32, Fault)> {
        self.shared.ledger.unfired()
    }

    /// From now on every step waits at the proxy for [`FaultProxy::pass`] or
    /// [`FaultProxy::inject`]. The plan is no longer used.
    pub fn park(&self) {
        self.shared.ledger.park();
    }

    /// Completes once `count` steps wait for a decision, and returns them sorted by
    /// actor and number, so the order is the same in each run.
    pub async fn parked(&self, count: usize) -> Vec<StepRecord> {
        self.shared.ledger.parked(count).await
    }

    /// Lets a parked step go through. Returns whether the step was parked.
    pub fn pass(&self, actor: &str, step: u32) -> bool {
        self.shared.ledger.decide(actor, step, None)
    }

    /// Injects a fault at a parked step. Returns whether the step was parked.
    pub fn inject(&self, actor: &str, step: u32, fault: Fault) -> bool {
        self.shared.ledger.decide(actor, step, Some(fault))
    }

    /// All steps so far, in the order of their arrival.
    pub fn steps(&self) -> Vec<StepRecord> {
        self.shared.ledger.steps()
    }

    /// The number of steps so far.
    pub fn step_count(&self) -> usize {
        self.shared.ledger.step_count()
    }

    /// The proxy's own errors. A run with such an error proves nothing.
    pub fn troubles(&self) -> Vec<String> {
        self.shared.ledger.troubles()
    }

    /// Sets the name of a script in the record. The default is the script's first
    /// comment and the beginning of its digest.
    pub fn name_script(&self, source: &str, name: &str) {
        self.shared.scripts().name(&digest(source.as_bytes()), name);
    }

    /// The names of all scripts that were loaded or run, as in the record.
    pub fn scripts(&self) -> BTreeSet<String> {
        self.shared.scripts().all_labels().into_iter().collect()
    }

    /// From now on the entries that clients add to streams get ids of the proxy's time,
    /// and not of the server's. Then the ids of two runs are equal.
    pub(crate) fn name_entries(&self) {
        self.shared.scripts().name_entries();
    }

    /// Changes a script on its way to the server: replaces `from` by `to` in the script
    /// whose first comment is `script`. The script must not have passed the proxy yet.
    /// If `from` does not occur exactly once, every call of the script fails, so a
    /// mutant never behaves like the original.
    pub fn patch_script(&self, script: &str, from: &str, to: &str) -> Fitted {
        let patch = Patch::new(script, from, to);
        let fitted = patch.fitted();
        self.shared.scripts().patch(patch);
        fitted
    }

    /// Changes a text in every script that contains it, for code that scripts share.
    /// The scripts must not have passed the proxy yet.
    pub fn patch_scripts(&self, from: &str, to: &str) -> Fitted {
        let patch = Patch::everywhere(from, to);
        let fitted = patch.fitted();
        self.shared.scripts().patch(patch);
        fitted
    }

    /// Kills an actor. The proxy closes its connections, and any new ones until
    /// [`FaultProxy::revive`]. Completes once the server has seen the connections end.
    pub async fn kill(&self, endpoint: &Endpoint) {
        endpoint.actor.set_life(Life::Closed);
        endpoint.gone().await;
    }

    /// Lets an actor connect again, like a restarted process.
    pub fn revive(&self, endpoint: &Endpoint) {
        endpoint.actor.set_life(Life::Alive);
    }

    /// Runs the commands that dead actors had sent and that were kept, connection by
    /// connection in the order of the deaths. Returns the number of commands.
    ///
    /// # Errors
    /// When the server does not accept the commands.
    pub async fn release_ghosts(&self) -> io::Result<usize> {
        let shared = Arc::clone(&self.shared);
        self.on_proxy(async move { shared.afterlife.release(&shared).await }).await
    }

    /// Calls `listener` with each request of each actor, including requests that are
    /// not steps. Only the first listener is called.
    pub(crate) fn listen(&self, listener: impl Fn(&Request) + Send + Sync + 'static) {
        self.shared.listener.get_or_init(|| Box::new(listener));
    }

    /// The address of the server behind the proxy.
    pub(crate) fn server(&self) -> &Address {
        &self.shared.server.address
    }

    /// Sends a command to the server directly, as another client would, and returns its
    /// reply.
    ///
    /// # Errors
    /// When the server cannot be reached or replies with an error.
    pub async fn tell<W: AsRef<[u8]>>(&self, words: &[W]) -> io::Result<Bytes> {
        let words: Vec<_> = words.iter().map(|word| word.as_ref().to_vec()).collect();
        let shared = Arc::clone(&self.shared);
        self.on_proxy(async move { shared.server.ask(&words).await }).await
    }

    /// Ends all faults: no planned fault fires any more, parked steps go through, and
    /// the server sees the end of frozen connections. Dead actors stay dead, and ghosts
    /// wait for [`FaultProxy::release_ghosts`].
    ///
    /// # Errors
    /// When the server does not close a frozen connection.
    pub async fn heal(&self) -> io::Result<()> {
        self.shared.ledger.heal();
        let shared = Arc::clone(&self.shared);
        self.on_proxy(async move {
            let finished = timeout(FINISHED_WITHIN, shared.ledger.finished()).await;
            finished.map_err(|_| io::Error::other("a fault's command has no reply"))?;
            shared.afterlife.thaw().await
        })
        .await
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

    /// Passes a request to the listener, if there is one.
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
