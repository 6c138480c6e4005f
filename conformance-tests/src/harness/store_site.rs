//! The store of one case, and the clock that it uses.

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use relq_core::environment::Clock;
use tempfile::TempDir;
use tokio::time::sleep;

use crate::{
    Profile,
    harness::clock::MovableClock,
    proxy::{FaultProxy, VirtualClock},
    server::Server,
};

/// How long the proxy must receive nothing before the clock is advanced.
const QUIET: Duration = Duration::from_millis(25);

/// How long to wait until a claim surely waits, if the suite cannot observe it.
const ASLEEP: Duration = Duration::from_millis(150);

/// The time limit of a waiting call is divided into at least this many parts, so that
/// one moment in which the machine is busy elsewhere does not use up the whole limit.
const PARTS: u32 = 24;

/// A private server or directory, which is removed when this is dropped.
#[derive(Debug)]
pub(crate) enum StoreSite {
    /// The fields are dropped in order: the proxy must end before the server does.
    Proxied {
        proxy: FaultProxy,
        clock: VirtualClock,
        _server: Server,
    },
    Bare {
        server: Server,
        clock: MovableClock,
    },
    Embedded {
        directory: TempDir,
        clock: MovableClock,
    },
}

impl StoreSite {
    pub(crate) fn start(profile: Profile) -> Self {
        match profile {
            Profile::Redis => Self::proxied(),
            Profile::Bare => {
                Self::Bare { server: Server::start(), clock: MovableClock::new() }
            }
            Profile::Embedded => Self::Embedded {
                directory: TempDir::new().expect("a temporary directory"),
                clock: MovableClock::new(),
            },
        }
    }

    fn proxied() -> Self {
        let (server, clock) = (Server::start(), VirtualClock::new());
        let proxy = FaultProxy::start(server.address(), clock.clone());
        let proxy = proxy.expect("the system gives the proxy its sockets");
        Self::Proxied { proxy, clock, _server: server }
    }

    /// The address that an actor of that name connects to.
    pub(crate) fn endpoint(&self, actor: &str) -> String {
        match self {
            Self::Proxied { proxy, .. } => {
                let endpoint = proxy.actor(actor).expect("the system gives a socket");
                endpoint.url().to_owned()
            }
            Self::Bare { server, .. } => server.url(),
            Self::Embedded { directory, .. } => directory.path().display().to_string(),
        }
    }

    /// The clock that actors use.
    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        match self {
            Self::Proxied { clock, .. } => Arc::new(clock.clone()),
            Self::Bare { clock, .. } | Self::Embedded { clock, .. } => {
                Arc::new(clock.clone())
            }
        }
    }

    /// Advances the store's clock.
    pub(crate) async fn advance(&self, duration: Duration) {
        match self {
            Self::Proxied { clock, .. } => clock.advance(duration),
            // A server's own clock cannot be advanced, so wait.
            Self::Bare { .. } => sleep(duration).await,
            Self::Embedded { clock, .. } => clock.advance(duration),
        }
    }

    /// Stops the store's clock between advances, where the suite controls it. Behind
    /// the proxy it stands still anyway.
    pub(crate) fn stop_clock(&self) {
        if let Self::Embedded { clock, .. } = self {
            clock.stop_wall_clock();
        }
    }

    /// Lets time pass while `call` waits, up to `limit`. Returns the call's result and
    /// how long it took by the store's clock.
    ///
    /// Behind the proxy the clock stands still while anything is sent. It jumps from
    /// the end of one sleep to the end of the next, and only when all actors are idle.
    pub(crate) async fn within<T>(
        &self,
        limit: Duration,
        call: impl Future<Output = T>,
    ) -> (T, Duration) {
        let (clock, mut call) = (self.clock(), pin!(call));
        let start = clock.elapsed();
        loop {
            tokio::select! {
                biased;
                answer = &mut call => {
                    return (answer, clock.elapsed().saturating_sub(start));
                }
                () = self.quiet() => {}
            }
            let passed = clock.elapsed().saturating_sub(start);
            assert!(passed < limit, "the call waits for more than {limit:?}");
            self.pass_at_most(limit / PARTS);
        }
    }

    /// Completes when calls that are about to wait are waiting, as far as the suite can
    /// see it.
    pub(crate) async fn settled(&self) {
        match self {
            Self::Proxied { .. } => self.quiet().await,
            Self::Bare { .. } | Self::Embedded { .. } => sleep(ASLEEP).await,
        }
    }

    /// Sends a client's command to the server, past the proxy. Returns the server's
    /// reply.
    pub(crate) async fn tell(&self, words: &[Vec<u8>]) -> Vec<u8> {
        let words: Vec<_> = words.iter().map(Vec::as_slice).collect();
        match self {
            Self::Proxied { proxy, .. } => {
                proxy.tell(&words).await.expect("the server takes it").into()
            }
            Self::Bare { server, .. } => {
                let answer = server.command(&words);
                assert_ne!(answer.first(), Some(&b'-'), "{}", answer.escape_ascii());
                answer
            }
            Self::Embedded { .. } => panic!("an embedded store has no plain clients"),
        }
    }

    /// Completes once nothing was sent for a while.
    async fn quiet(&self) {
        let Self::Proxied { proxy, .. } = self else { return sleep(QUIET).await };
        let mut seen = None;
        loop {
            let steps = proxy.step_count();
            if seen == Some(steps) {
                return;
            }
            seen = Some(steps);
            sleep(QUIET).await;
        }
    }

    fn pass_at_most(&self, longest: Duration) {
        // Only behind the proxy is the time virtual. Elsewhere real time passes.
        if let Self::Proxied { clock, .. } = self
            && let Some(next) = clock.next_in()
        {
            clock.advance(next.min(longest));
        }
    }
}
