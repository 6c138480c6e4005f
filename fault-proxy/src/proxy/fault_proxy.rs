//! The proxy as the suite uses it: start it, plan faults, and read the record of steps.

use std::{
    collections::BTreeSet, fmt, io, sync::Arc, thread::JoinHandle, time::Duration,
};

use bytes::Bytes;
use tempfile::TempDir;
use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
    time::timeout,
};

use super::{
    actor::{Actor, Life},
    chance::Draws,
    clock::VirtualClock,
    endpoint::{Endpoint, Transport},
    patch::{Fitted, Patch},
    record::{Fault, StepRecord},
    request::Request,
    script::digest,
    server::Server,
    shared::{HeldCommand, Shared, lock},
    stream::Address,
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
            // The proxy sends `stop` or drops it. The thread ends in both cases.
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
    ///
    /// # Errors
    /// When its directory cannot be created.
    pub fn start_here(
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
    pub async fn idle(&self) -> io::Result<()> {
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
    pub async fn quiet(&self, period: Duration) {
        self.shared.traffic.pauses(period).await;
    }

    /// The commands that the server holds, those that it held first before others.
    pub fn held(&self) -> Vec<HeldCommand> {
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
        let _on_proxy = self.runtime.enter();
        let (shared, actor) = (Arc::clone(&self.shared), Actor::new(name));
        let endpoint = match transport {
            Transport::Unix => {
                let path = self.dir.path().join(format!("{}.sock", actors.len()));
                Endpoint::on_unix(shared, actor, &path)?
            }
            Transport::Tcp => Endpoint::on_tcp(shared, actor)?,
        };
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
    pub async fn draws(&self, actor: &str, step: u32) -> io::Result<Vec<Draws>> {
        match self.shared.ledger.request(actor, step) {
            Some(request) => self.shared.draws(&request).await,
            None => Ok(Vec::new()),
        }
    }

    /// Sends a parked step on to the server, which makes these draws. Returns whether the
    /// step was parked.
    pub fn pass_drawing(&self, actor: &str, step: u32, draws: Draws) -> bool {
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

    /// How many steps all actors have taken so far.
    pub fn step_count(&self) -> usize {
        self.shared.ledger.step_count()
    }

    /// The steps of one actor so far, without a copy of those of the others.
    pub fn steps_by(&self, actor: &str) -> Vec<StepRecord> {
        self.shared.ledger.steps_by(actor)
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
    pub fn name_entries(&self) {
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
        endpoint.set_life(Life::Closed);
        endpoint.gone().await;
    }

    /// Kills an actor, but keeps its connections to the server open and unread, so that
    /// the server does not notice until [`FaultProxy::heal`]. Completes once the actor's
    /// clients get nothing more.
    pub async fn freeze(&self, endpoint: &Endpoint) {
        endpoint.set_life(Life::Silent);
        endpoint.gone().await;
    }

    /// Lets an actor connect again, like a restarted process.
    pub fn revive(&self, endpoint: &Endpoint) {
        endpoint.set_life(Life::Alive);
    }

    /// Runs the commands that dead actors had sent and that were kept, connection by
    /// connection in the order of the deaths. Returns the number of commands.
    ///
    /// # Errors
    /// When the server does not accept the commands.
    pub async fn release_ghosts(&self) -> io::Result<usize> {
        let shared = Arc::clone(&self.shared);
        self.on_proxy(async move { shared.dead_connections.release(&shared).await })
            .await
    }

    /// Calls `listener` with each request of each actor, including requests that are
    /// not steps. Only the first listener is called.
    pub fn listen(&self, listener: impl Fn(&Request) + Send + Sync + 'static) {
        self.shared.listener.get_or_init(|| Box::new(listener));
    }

    /// The address of the server behind the proxy.
    pub fn server(&self) -> &Address {
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
            shared.dead_connections.thaw().await
        })
        .await
    }

    async fn on_proxy<T: Send + 'static>(
        &self,
        work: impl Future<Output = io::Result<T>> + Send + 'static,
    ) -> io::Result<T> {
        self.runtime.spawn(work).await.map_err(io::Error::other)?
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
