//! The proxy as the suite uses it: start it, plan faults, and read the record of steps.

use std::{
    collections::{BTreeSet, HashMap},
    fmt, io,
    os::unix::net::UnixListener as StdUnixListener,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
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
    chance::Draws,
    clock::VirtualClock,
    connection::serve,
    gate::Gate,
    ledger::Ledger,
    patch::{Fitted, Patch},
    record::{Fault, StepRecord},
    request::Request,
    script::{Scripts, digest},
    server::Server,
    stream::{Address, Stream},
    traffic::Traffic,
};

/// How long `heal` waits for the command of a fault that was already sent.
const FINISHED_WITHIN: Duration = Duration::from_secs(20);

/// A proxy in front of a Redis server at which every command can be made to fail.
///
/// It runs on its own thread, so an actor's runtime can end without it. Dropping it
/// closes every connection through it.
pub struct FaultProxy {
    shared: Arc<Shared>,
    runtime: Handle,
    /// The proxy's thread ends when this sender is dropped.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    dir: TempDir,
}

/// The state that all connections of a proxy share.
pub(crate) struct Shared {
    pub(crate) server: Server,
    pub(crate) clock: VirtualClock,
    pub(crate) ledger: Ledger,
    pub(crate) traffic: Arc<Traffic>,
    /// The blocking commands that the server holds at the moment, in the order in which
    /// it began to hold them.
    held: Mutex<Vec<HeldCommand>>,
    /// How many commands the server has held so far.
    held_so_far: AtomicU64,
    pub(crate) gate: Gate,
    scripts: Mutex<Scripts>,
    actors: Mutex<HashMap<String, Endpoint>>,
    pub(crate) afterlife: Afterlife,
    listener: OnceLock<Listener>,
}

/// A callback that sees each request of each actor.
type Listener = Box<dyn Fn(&Request) + Send + Sync>;

/// A command that the server holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeldCommand {
    pub(crate) actor: String,
    pub(crate) command: String,
    /// A digest of its arguments.
    pub(crate) arguments: u64,
    /// The server's id of its connection.
    client: String,
}

/// How an actor reaches the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// A unix socket: `unix:///…`.
    Unix,
    /// A port of 127.0.0.1: `redis://127.0.0.1:…`.
    Tcp,
}

/// The address at which one actor reaches the proxy. Clones stand for the same actor.
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
    /// end, except those that are kept open or that still have commands to run late.
    pub async fn gone(&self) {
        self.actor.gone().await;
    }

    /// Completes once the server holds a blocking command of this actor.
    pub async fn held(&self) {
        self.actor.held().await;
    }

    /// Returns a digest of all replies since [`Endpoint::forget_replies`]. The replies
    /// since the previous call count as sent at the moment `now`.
    pub(crate) fn replies(&self, now: Duration) -> u64 {
        self.actor.replies(now)
    }

    pub(crate) fn forget_replies(&self) {
        self.actor.forget_replies();
    }

    /// How many steps the actor has taken. Steps are numbered from 1.
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
            // The proxy was dropped if this is an error, and the thread ends either
            // way.
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

    /// Starts a proxy on the runtime of the caller, which must run on one thread. Then
    /// [`FaultProxy::idle`] tells exactly when its clients wait.
    pub(crate) fn start_here(
        upstream: impl Into<Address>,
        clock: VirtualClock,
    ) -> io::Result<Self> {
        let shared = Shared::new(Server::new(upstream.into()), clock);
        shared.gate.close();
        Ok(Self {
            shared: Arc::new(shared),
            runtime: Handle::current(),
            stop: None,
            thread: None,
            dir: tempfile::Builder::new().prefix("proxy-").tempdir()?,
        })
    }

    /// Completes once all clients wait: for the decision about a parked step, for a
    /// command that the server holds, or for the clock. Only for a proxy that was
    /// started with [`FaultProxy::start_here`].
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub(crate) async fn idle(&self) -> io::Result<()> {
        loop {
            self.shared.traffic.ceases().await;
            if !self.held().is_empty() {
                // The server replies to a held command right after the reply to the
                // command that served it, and before the reply to this one.
                self.shared.server.ask(&["PING"]).await?;
                self.shared.traffic.ceases().await;
            }
            if !self.shared.gate.let_one_through() {
                return Ok(());
            }
        }
    }

    /// Completes once all commands have their replies, except those that the server
    /// holds, and no client has sent anything for `period` of real time.
    pub(crate) async fn quiet(&self, period: Duration) {
        self.shared.traffic.pauses(period).await;
    }

    /// The commands that the server holds, those that it held first before others.
    pub(crate) fn held(&self) -> Vec<HeldCommand> {
        lock(&self.shared.held).clone()
    }

    /// The endpoint of the actor of that name, on a unix socket.
    ///
    /// # Errors
    /// When the operating system cannot create a socket.
    pub fn actor(&self, name: &str) -> io::Result<Endpoint> {
        self.actor_on(name, Transport::Unix)
    }

    /// The endpoint of the actor of that name. The first call for a name determines its
    /// transport.
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

    /// The planned faults that have not fired, each with its actor and step.
    pub fn unfired(&self) -> Vec<(String, u32, Fault)> {
        self.shared.ledger.unfired()
    }

    /// From now on every step waits at the proxy until [`FaultProxy::pass`] or
    /// [`FaultProxy::inject`] decides on it. Planned faults do not fire any more.
    pub fn park(&self) {
        self.shared.ledger.park();
    }

    /// Completes once `count` steps wait for a decision, and returns them sorted by
    /// actor and number, so the order is the same in each run.
    pub async fn parked(&self, count: usize) -> Vec<StepRecord> {
        self.shared.ledger.parked(count).await
    }

    /// Sends a parked step on to the server. Returns whether the step was parked.
    pub fn pass(&self, actor: &str, step: u32) -> bool {
        self.shared.ledger.decide(actor, step, None)
    }

    /// Returns the draws that lead to different answers of a parked step.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub(crate) async fn draws(&self, actor: &str, step: u32) -> io::Result<Vec<Draws>> {
        match self.shared.ledger.request(actor, step) {
            Some(request) => self.shared.draws(&request).await,
            None => Ok(Vec::new()),
        }
    }

    /// Sends a parked step on to the server, which makes these draws. Returns whether the
    /// step was parked.
    pub(crate) fn pass_drawing(&self, actor: &str, step: u32, draws: Draws) -> bool {
        self.shared.scripts().draw(draws);
        self.pass(actor, step)
    }

    /// Injects a fault at a parked step. Returns whether the step was parked.
    pub fn inject(&self, actor: &str, step: u32, fault: Fault) -> bool {
        self.shared.ledger.decide(actor, step, Some(fault))
    }

    /// All steps of all actors so far, in the order in which they arrived at the proxy.
    pub fn steps(&self) -> Vec<StepRecord> {
        self.shared.ledger.steps()
    }

    /// The errors of the proxy itself. A run in which the proxy failed tests nothing.
    pub fn troubles(&self) -> Vec<String> {
        self.shared.ledger.troubles()
    }

    /// Sets the name of a script in the record. The default is the script's first
    /// comment and the beginning of its digest.
    pub fn name_script(&self, source: &str, name: &str) {
        self.shared.scripts().name(&digest(source.as_bytes()), name);
    }

    /// The names of all scripts that were loaded or run, as the record of steps has
    /// them.
    pub fn scripts(&self) -> BTreeSet<String> {
        self.shared.scripts().all_labels().into_iter().collect()
    }

    /// From now on the entries that clients add to streams get ids made from the
    /// proxy's time in place of the server's, so that the ids of two runs are equal.
    /// Keys and members that the server draws at random are those of
    /// [`FaultProxy::pass_drawing`], or in sorted order.
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

    /// Replaces a text in every script that contains it, for code that scripts share.
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

    /// Kills an actor whose connections stay open and unread: the server does not notice
    /// until [`FaultProxy::heal`]. Completes once its clients get nothing more.
    pub(crate) async fn freeze(&self, endpoint: &Endpoint) {
        endpoint.actor.set_life(Life::Silent);
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
        self.shared.gate.open();
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
            traffic: Arc::new(Traffic::new()),
            held: Mutex::default(),
            held_so_far: AtomicU64::new(0),
            gate: Gate::default(),
            scripts: Mutex::default(),
            actors: Mutex::default(),
            afterlife: Afterlife::default(),
            listener: OnceLock::new(),
        }
    }

    /// Lists a command that the server holds, until the value is dropped.
    pub(crate) fn holds(
        &self,
        actor: &str,
        request: &Request,
        client: &str,
    ) -> Holds<'_> {
        let held = HeldCommand {
            actor: actor.to_owned(),
            command: request.word(0),
            arguments: request.digest(),
            client: client.to_owned(),
        };
        let number = self.held_so_far.fetch_add(1, Ordering::Relaxed);
        lock(&self.held).push(held);
        self.traffic.ends(1);
        Holds { shared: self, client: client.to_owned(), number }
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

/// Removes a command from the list of commands that the server holds when it is
/// dropped.
pub(crate) struct Holds<'a> {
    shared: &'a Shared,
    client: String,
    /// How many commands the server had held before.
    pub(crate) number: u64,
}

impl Drop for Holds<'_> {
    fn drop(&mut self) {
        lock(&self.shared.held).retain(|held| held.client != self.client);
        self.shared.traffic.adds(1);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;

    use super::*;
    use crate::proxy::{
        command::Kind,
        request::{Request, RequestParser, encode},
        rewrite,
    };

    fn request(words: &[&str]) -> Request {
        let words: Vec<_> = words.iter().map(|word| word.as_bytes()).collect();
        let mut bytes = BytesMut::from(&encode(words.into_iter())[..]);
        RequestParser::default().next(&mut bytes).unwrap().unwrap()
    }

    /// Returns the draws that lead to different replies to the command. The database has
    /// two keys: a string, and a set of three members.
    async fn draws_of(words: &[&str]) -> Vec<String> {
        let server = crate::server::Server::start();
        let clock = VirtualClock::new();
        let proxy = FaultProxy::start_here(server.address(), clock).unwrap();
        proxy.name_entries();
        proxy.tell(&["SET", "string", "1"]).await.unwrap();
        proxy.tell(&["SADD", "set", "a", "b", "c"]).await.unwrap();

        let draws = proxy.shared.draws(&request(words)).await.unwrap();
        draws.iter().map(ToString::to_string).collect()
    }

    #[tokio::test]
    async fn each_order_of_the_members_is_an_answer() {
        const ALL: &str = "return redis.call('SRANDMEMBER', 'set', 3)";
        let reads = format!("#!lua flags=no-writes\n{ALL}");
        for words in [
            &["SRANDMEMBER", "set", "3"][..],
            &["SSCAN", "set", "0"],
            &["EVAL", &reads, "0"],
            &["EVAL", ALL, "0"],
        ] {
            let mut draws = draws_of(words).await;
            draws.sort();
            assert_eq!(draws, ["", "1", "1.2", "2", "2.1", "2.2"], "{words:?}");
        }
        assert_eq!(draws_of(&["SRANDMEMBER", "set"]).await, ["", "1", "2"]);
        assert_eq!(draws_of(&["SMEMBERS", "set"]).await, [""]);
    }

    /// The server measures idle times by its own clock, which differs in each run.
    #[tokio::test]
    async fn no_entry_is_idle() {
        let server = crate::server::Server::start();
        let clock = VirtualClock::new();
        let proxy = FaultProxy::start_here(server.address(), clock).unwrap();
        proxy.name_entries();
        for words in [
            &["XADD", "stream", "1-1", "field", "value"][..],
            &["XGROUP", "CREATE", "stream", "group", "0"],
            &["XREADGROUP", "GROUP", "group", "me", "STREAMS", "stream", ">"],
            &["XCLAIM", "stream", "group", "me", "0", "1-1", "IDLE", "5000"],
        ] {
            proxy.tell(words).await.unwrap();
        }

        let asked = request(&["XPENDING", "stream", "group", "-", "+", "9"]);
        let pieces = rewrite::timed(&proxy.shared, Kind::Plain, &asked);
        let replies = proxy.shared.server.ask_all(&pieces, 1).await.unwrap();

        let reply = String::from_utf8_lossy(&replies[0]);
        assert!(reply.contains("me\r\n:0\r\n:"), "{reply:?}");
    }

    #[tokio::test]
    async fn a_key_may_be_drawn_twice() {
        const TWO: &str = "#!lua flags=no-writes
            return {redis.call('RANDOMKEY'), redis.call('RANDOMKEY')}";

        let draws = draws_of(&["EVAL", TWO, "0"]).await;

        assert_eq!(draws, ["", "0", "1", "1.0"]);
    }
}
