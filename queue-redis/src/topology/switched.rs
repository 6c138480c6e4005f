//! Moves connections to the new master as soon as a sentinel announces it.
//!
//! ```text
//!  fail-over -> each sentinel publishes +switch-master -> this client closes its
//!  connections to any other server -> the calls on them end, the next ones reconnect
//! ```
//!
//! Without it a claim that waits on a master that was cut off would go on to wait there:
//! its connection does not break, and nothing is pushed to that server any more. Each
//! sentinel of the URL is listened to on a connection of its own, because one of them may
//! be cut off together with the master. Each runtime listens for itself, so that none
//! stays on the old master because another one is blocked or has ended. An announcement
//! that is wrong does no harm: each new connection asks all sentinels again.
//!
//! A network can drop a connection without telling the client, which would then listen for
//! ever to nothing. So the client asks the sentinel something every few seconds, and
//! subscribes again if there is no reply.

use std::{
    io,
    sync::{Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use futures_util::FutureExt as _;
use redis::{PushInfo, PushKind, RedisConnectionInfo, RedisError, RedisResult};
use tokio::{
    runtime::{self, Handle},
    sync::mpsc::{self, UnboundedReceiver, UnboundedSender},
    task::AbortHandle,
    time::timeout,
};

use super::{Address, Sentinels, Topology};
use crate::{
    RedisConfig,
    link::{Link, WeakLink},
};

const CHANNEL: &str = "+switch-master";

/// The pause before a sentinel that cannot be listened to is tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// How often a sentinel is asked something, to notice a connection that is dead.
const PROBE: Duration = Duration::from_secs(5);

/// The connections to the master, and the tasks that listen to the sentinels.
#[derive(Default)]
pub(super) struct Switches(Mutex<Followed>);

#[derive(Default)]
struct Followed {
    links: Vec<(Address, WeakLink)>,
    listeners: Vec<(runtime::Id, AbortHandle)>,
}

impl Switches {
    /// Closes the connection when a sentinel announces another master than `server`.
    /// Starts listening to the sentinels, unless the caller's runtime already does.
    pub(super) fn follow(
        &self,
        (server, link): (Address, &Link),
        listeners: impl Fn() -> Vec<AbortHandle>,
    ) {
        let mut followed = self.lock();
        followed.links.retain(|(_, link)| link.is_open());
        followed.links.push((server, link.downgrade()));
        // The tasks end together with the runtime that they are on.
        followed.listeners.retain(|(_, task)| !task.is_finished());
        let runtime = Handle::current().id();
        if followed.listeners.iter().all(|(id, _)| *id != runtime) {
            let tasks = listeners().into_iter().map(|task| (runtime, task));
            followed.listeners.extend(tasks);
        }
    }

    /// Closes the connections to all servers but the new master.
    fn announced(&self, master: &Address) {
        self.others(master, WeakLink::close);
    }

    /// Lets new calls use another connection if they are not on this master. The sentinel
    /// that names it may not know yet that another one was promoted, so no call may be
    /// broken off.
    fn named(&self, master: &Address) {
        self.others(master, WeakLink::retire);
    }

    /// Calls `leave` for each connection to another server than `master`.
    fn others(&self, master: &Address, leave: impl Fn(&WeakLink)) {
        let followed = self.lock();
        let others = followed.links.iter().filter(|(server, _)| server != master);
        others.for_each(|(_, link)| leave(link));
    }

    fn lock(&self) -> MutexGuard<'_, Followed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Switches {
    fn drop(&mut self) {
        for (_, listener) in &self.lock().listeners {
            listener.abort();
        }
    }
}

/// A sentinel that is listened to.
pub(super) struct Listener {
    sentinels: Weak<Sentinels>,
    sentinel: Address,
    service: String,
    settings: RedisConnectionInfo,
    /// How to connect. It must not hold the sentinels, which would then never be dropped.
    config: RedisConfig,
}

impl Listener {
    pub(super) fn new(
        sentinels: &Weak<Sentinels>,
        sentinel: &Address,
        (service, settings): (&str, RedisConnectionInfo),
        config: &RedisConfig,
    ) -> Self {
        let config = RedisConfig { topology: Topology::Server, ..config.clone() };
        Self {
            sentinels: sentinels.clone(),
            sentinel: sentinel.clone(),
            service: service.to_owned(),
            settings,
            config,
        }
    }

    /// Listens in a task of the current runtime until the task is aborted.
    pub(super) fn spawn(self) -> AbortHandle {
        tokio::spawn(self.run().boxed()).abort_handle()
    }

    async fn run(self) {
        loop {
            if let Err(error) = self.listen().await {
                let sentinel = &self.sentinel;
                tracing::debug!(%sentinel, %error, "cannot listen for a new master");
            }
            self.config.environment.clock().sleep(PAUSE).await;
        }
    }

    /// Subscribes, and passes on each announcement until the connection ends.
    async fn listen(&self) -> RedisResult<()> {
        let (sender, mut pushes) = mpsc::unbounded_channel();
        let subscribing = timeout(self.config.connect_timeout, self.subscribe(sender));
        let mut link = subscribing.await.map_err(io::Error::from)??;
        tokio::select! {
            () = self.pass_on(&mut pushes) => Ok(()),
            silence = self.probe(&mut link) => Err(silence),
        }
    }

    /// Subscribes, and passes on what was announced before the subscription.
    async fn subscribe(&self, pushes: UnboundedSender<PushInfo>) -> RedisResult<Link> {
        let Self { config, sentinel, settings, .. } = self;
        let mut link = Link::subscribing(config, sentinel, settings, pushes).await?;
        link.conn.subscribe(CHANNEL).await?;
        if let Some((host, port)) = self.ask(&mut link).await? {
            self.tell(&host, port, Switches::named);
        }
        Ok(link)
    }

    /// Asks the sentinel again and again until a request fails. Returns that error.
    ///
    /// The reply is not used. A sentinel that was cut off may name an old master for hours,
    /// and each such reply would make new calls open another connection.
    async fn probe(&self, link: &mut Link) -> RedisError {
        loop {
            self.config.environment.clock().sleep(PROBE).await;
            if let Err(error) = self.ask(link).await {
                return error;
            }
        }
    }

    /// Asks for the host and the port of the master. Every client may ask this, because
    /// each has found the master by it.
    async fn ask(&self, link: &mut Link) -> RedisResult<Option<(String, u16)>> {
        let mut asking = redis::cmd("SENTINEL");
        asking.arg("GET-MASTER-ADDR-BY-NAME").arg(&self.service);
        link.ask(&asking, self.config.connect_timeout).await
    }

    async fn pass_on(&self, pushes: &mut UnboundedReceiver<PushInfo>) {
        while let Some(push) = pushes.recv().await {
            match push.kind {
                PushKind::Message => {
                    let text =
                        push.data.last().map(redis::from_redis_value_ref::<String>);
                    let master = text
                        .and_then(Result::ok)
                        .and_then(|text| new_master(&self.service, &text));
                    if let Some((host, port)) = master {
                        self.tell(&host, port, Switches::announced);
                    }
                }
                PushKind::Disconnection => return,
                _ => {}
            }
        }
    }

    fn tell(&self, host: &str, port: u16, tell: fn(&Switches, &Address)) {
        if let Some(sentinels) = self.sentinels.upgrade() {
            let master = Address::told(host, port, &self.sentinel);
            tell(&sentinels.switches, &master);
        }
    }
}

/// Reads the announcement `SERVICE OLD-HOST OLD-PORT HOST PORT`. `None` for another
/// service.
fn new_master(service: &str, text: &str) -> Option<(String, u16)> {
    let mut words = text.split(' ');
    if words.next()? != service {
        return None;
    }
    let host = words.nth(2)?.to_owned();
    Some((host, words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_new_master_of_the_own_service_counts() {
        let told = |text| new_master("main", text);
        assert_eq!(told("main old 1 new 2"), Some(("new".to_owned(), 2)));
        for text in
            ["main-cache old 1 new 2", "cache old 1 new 2", "main old 1 new", ""]
        {
            assert_eq!(told(text), None, "{text}");
        }
    }
}
