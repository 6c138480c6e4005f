//! The store of one case, and the clock that it uses.

use std::{
    future::Future,
    panic::Location,
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use relq_core::environment::Clock;
use tempfile::TempDir;
use tokio::time::sleep;

use crate::{
    Profile,
    harness::{
        call_log::CallLog,
        clock::{HeldSleeps, MovableClock},
        times::{WOKEN, WOKEN_IN_REAL_TIME},
    },
    proxy::{FaultProxy, VirtualClock},
    server::Server,
};

/// How long no command may reach the proxy before the clock is advanced.
const QUIET: Duration = Duration::from_millis(25);

/// How long the suite sleeps to let a call begin its wait, where it cannot observe
/// that.
const ASLEEP: Duration = Duration::from_millis(150);

/// The time limit of a waiting call is divided into at least this many parts, so that
/// one moment in which the machine is busy elsewhere does not use up the whole limit.
const PARTS: u32 = 24;

/// For how long, by the clock of the machine, the last part of a time limit does not pass.
/// The virtual clock may reach the last part before a call on a starved thread has gone on.
const STARVED: Duration = Duration::from_secs(10);

/// The private server or directory of a case. It is removed when this is dropped.
#[derive(Debug)]
pub(crate) enum StoreSite {
    /// A server behind the proxy. The fields are dropped in order, because the proxy
    /// must end before the server does.
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
            // The clock of a server without the proxy cannot be advanced.
            Self::Bare { .. } => sleep(duration).await,
            Self::Embedded { clock, .. } => clock.advance(duration),
        }
    }

    /// Sets the store's clock back. Sleeps and durations go on as before.
    pub(crate) fn set_clock_back(&self, by: Duration) {
        match self {
            Self::Proxied { clock, .. } => clock.set_back(by),
            Self::Bare { .. } => {
                panic!("the clock of a server without the proxy cannot be set")
            }
            Self::Embedded { clock, .. } => clock.set_back(by),
        }
    }

    /// Makes the clock of an embedded store stand still until it is advanced. The clock
    /// of a server behind the proxy always does, and that of a server without the proxy
    /// cannot be stopped.
    pub(crate) fn stop_clock(&self) {
        if let Self::Embedded { clock, .. } = self {
            clock.stop_wall_clock();
        }
    }

    /// Lets no sleep of an actor on an embedded store end until the returned value is
    /// dropped. Elsewhere the sleeps end.
    pub(crate) fn hold_sleeps(&self) -> Option<HeldSleeps> {
        match self {
            Self::Embedded { clock, .. } => Some(clock.hold_sleeps()),
            Self::Proxied { .. } | Self::Bare { .. } => None,
        }
    }

    /// The longest time in which a claim counts as woken, or a call as returning at once.
    pub(crate) fn response_limit(&self) -> Duration {
        match self {
            Self::Proxied { .. } => WOKEN,
            Self::Bare { .. } | Self::Embedded { .. } => WOKEN_IN_REAL_TIME,
        }
    }

    /// Waits for `call`, and advances the clock meanwhile by up to `limit`. Returns the
    /// call's result, and how long it took by the store's clock.
    ///
    /// Behind the proxy the clock stands still while anything is sent. It jumps from
    /// the end of one sleep to the end of the next, and only when all actors are idle. It
    /// does not reach the limit before [`STARVED`].
    ///
    /// If the limit passes, the message names the place of the test that waits, and the
    /// calls in `calls`.
    #[track_caller]
    pub(crate) fn within<T>(
        &self,
        limit: Duration,
        calls: &CallLog,
        call: impl Future<Output = T>,
    ) -> impl Future<Output = (T, Duration)> {
        self.until(limit, calls, call, Location::caller())
    }

    async fn until<T>(
        &self,
        limit: Duration,
        calls: &CallLog,
        call: impl Future<Output = T>,
        test: &Location<'_>,
    ) -> (T, Duration) {
        let (clock, mut call) = (self.clock(), pin!(call));
        let (start, began) = (clock.elapsed(), Instant::now());
        loop {
            tokio::select! {
                biased;
                answer = &mut call => {
                    return (answer, clock.elapsed().saturating_sub(start));
                }
                () = self.quiet() => {}
            }
            let passed = clock.elapsed().saturating_sub(start);
            assert!(
                passed < limit,
                "HANG, R21: the call waits for more than {limit:?} of the store's time, in \
                 the test at {test}; {}",
                calls.in_progress(),
            );
            // The time is virtual only behind the proxy. Elsewhere real time passes.
            if let Self::Proxied { clock, .. } = self
                && let Some(next) = clock.next_in()
            {
                let part = next.min(limit / PARTS);
                if passed + part < limit || began.elapsed() >= STARVED {
                    clock.advance(part);
                }
            }
        }
    }

    /// Completes when the calls in progress have begun to wait, as far as the suite can
    /// see that.
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

    /// Completes once nothing was sent through the proxy for [`QUIET`].
    async fn quiet(&self) {
        match self {
            Self::Proxied { proxy, .. } => proxy.quiet(QUIET).await,
            Self::Bare { .. } | Self::Embedded { .. } => sleep(QUIET).await,
        }
    }
}
