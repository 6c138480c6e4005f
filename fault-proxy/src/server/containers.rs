//! A Redis server in a container. Most CI systems run Redis this way. It also allows
//! tests with other versions and with other servers that speak Redis's protocol.
//!
//! `RELQ_TEST_IMAGE` and `RELQ_TEST_TAG` choose the image.

use std::{
    env,
    net::{SocketAddr, ToSocketAddrs},
    sync::mpsc,
    thread::{self, JoinHandle},
};

use relq_core::error::BoxError;
use testcontainers::{
    ContainerAsync, GenericImage, ImageExt,
    core::{ContainerPort, IntoContainerPort},
    runners::AsyncRunner,
};

/// The image and the tag of the container, if the environment names none.
const DEFAULT_IMAGE: &str = "redis";
const DEFAULT_TAG: &str = "8";

/// The port on which the server listens inside its container.
const PORT: ContainerPort = ContainerPort::Tcp(6379);

type SuiteResult<T> = Result<T, BoxError>;

/// An instruction to the thread that controls the container.
enum Order {
    Kill,
    Restart,
}

/// A server in a container. Dropping it removes the container.
///
/// It has its own thread and runtime, so that tests on any runtime, or without one, can
/// start and stop it.
#[derive(Debug)]
pub(crate) struct Container {
    address: SocketAddr,
    /// The channel to the thread that controls the container. When the channel is
    /// closed, the thread removes the container.
    orders: Option<mpsc::Sender<(Order, mpsc::Sender<SuiteResult<()>>)>>,
    thread: Option<JoinHandle<()>>,
}

impl Container {
    /// Starts the chosen image. `arguments` are passed to the server.
    ///
    /// # Errors
    /// When Docker is not running, or cannot get the image.
    pub(crate) fn start(host_port: u16, arguments: &[&str]) -> SuiteResult<Self> {
        let command = server_command(arguments);
        let (orders, inbox) = mpsc::channel();
        let (started, start) = mpsc::channel();
        let thread = thread::spawn(move || {
            match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => {
                    runtime.block_on(live(host_port, command, &started, inbox));
                }
                Err(error) => drop(started.send(Err(error.into()))),
            }
        });
        let address = start.recv()??;
        Ok(Self { address, orders: Some(orders), thread: Some(thread) })
    }

    /// Returns the server's address on this machine, which a restart does not change.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Kills the server with SIGKILL.
    ///
    /// # Errors
    /// Errors of Docker.
    pub(crate) fn kill(&self) -> SuiteResult<()> {
        self.order(Order::Kill)
    }

    /// Starts the server again, with the files that it left.
    ///
    /// # Errors
    /// Errors of Docker.
    pub(crate) fn restart(&self) -> SuiteResult<()> {
        self.order(Order::Restart)
    }

    fn order(&self, order: Order) -> SuiteResult<()> {
        let (answer, answered) = mpsc::channel();
        let orders = self.orders.as_ref().ok_or("the container is being removed")?;
        orders.send((order, answer))?;
        answered.recv()?
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Some(Err(_)) = self.thread.take().map(JoinHandle::join) {
            eprintln!("a container could not be removed");
        }
    }
}

async fn live(
    host_port: u16,
    command: Vec<String>,
    started: &mpsc::Sender<SuiteResult<SocketAddr>>,
    inbox: mpsc::Receiver<(Order, mpsc::Sender<SuiteResult<()>>)>,
) {
    let container = match launch(host_port, command).await {
        Ok((container, address)) => {
            drop(started.send(Ok(address)));
            container
        }
        Err(error) => return drop(started.send(Err(error))),
    };
    // This blocks the thread until an order arrives. That harms nothing, because the
    // thread serves only this container.
    while let Ok((order, answer)) = inbox.recv() {
        let done = match order {
            Order::Kill => container.stop_with_timeout(Some(0)).await,
            Order::Restart => container.start().await,
        };
        drop(answer.send(done.map_err(Into::into)));
    }
    container.rm().await.expect("a container can be removed");
}

async fn launch(
    host_port: u16,
    command: Vec<String>,
) -> SuiteResult<(ContainerAsync<GenericImage>, SocketAddr)> {
    let chosen = |name, default: &str| env::var(name).unwrap_or(default.to_owned());
    let image = chosen("RELQ_TEST_IMAGE", DEFAULT_IMAGE);
    let tag = chosen("RELQ_TEST_TAG", DEFAULT_TAG);
    // A port that is chosen here, and not by Docker, stays the same after a restart.
    let container = GenericImage::new(image, tag)
        .with_mapped_port(host_port, PORT.as_u16().tcp())
        .with_cmd(command)
        .start()
        .await?;
    let host = container.get_host().await?.to_string();
    let address = (host.as_str(), host_port).to_socket_addrs()?;
    let address = address.into_iter().find(SocketAddr::is_ipv4);
    Ok((container, address.ok_or("Docker's host has no address")?))
}

fn server_command(arguments: &[&str]) -> Vec<String> {
    let port = PORT.as_u16().to_string();
    let own = ["redis-server", "--port", &port, "--protected-mode", "no"];
    own.iter().chain(arguments).map(ToString::to_string).collect()
}
