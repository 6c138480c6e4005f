//! The network between the servers of a soak: a TCP proxy in front of each port.
//!
//! ```text
//!  client   127.0.0.1 ─────┐                      ┌───────────▶ server 1
//!                          ├─▶ announced port of ─┤ from PROXY
//!  server 2 127.0.2.3 ─────┘   server 1           └─ held while 1 or 2 is cut off
//! ```
//!
//! Every server announces the ports of its proxies, so that the other servers and the
//! clients connect to these. Each server sends from a loopback address of its own, by
//! which a proxy recognises it. While a server is cut off, the proxies hold all bytes
//! between it and the other servers. They close nothing, as a network that drops packets
//! does. Bytes of clients always pass.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpSocket, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::watch,
};

/// The address from which the proxies connect to the servers. A client connection from
/// any other address has bypassed them.
pub(super) const PROXY: Ipv4Addr = Ipv4Addr::new(127, 0, 1, 1);

/// The address from which the server with that index connects to others.
pub(super) fn source_of(server: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 2, server + 1)
}

/// A port of 127.0.0.1 that is reserved for the proxy of a server.
pub(super) struct Port(std::net::TcpListener);

impl Port {
    pub(super) fn reserve() -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        Ok(Self(listener))
    }

    pub(super) fn number(&self) -> io::Result<u16> {
        Ok(self.0.local_addr()?.port())
    }
}

/// All proxies, and which server is cut off.
pub(in crate::soak) struct Links {
    cut_off: watch::Sender<Option<Ipv4Addr>>,
}

impl Links {
    pub(super) fn new() -> Self {
        Self { cut_off: watch::Sender::new(None) }
    }

    /// Starts the proxy that carries the connections of `port` to `target`, a port of
    /// the server that sends from `server`.
    pub(super) fn carry(
        &self,
        port: Port,
        server: Ipv4Addr,
        target: u16,
    ) -> io::Result<()> {
        let listener = TcpListener::from_std(port.0)?;
        let cut_off = self.cut_off.subscribe();
        tokio::spawn(async move {
            while let Ok((client, from)) = listener.accept().await {
                let gate =
                    Gate { from: from.ip(), to: server, cut_off: cut_off.clone() };
                // A connection that fails is closed at both ends, which is all that
                // they can see of a network.
                tokio::spawn(async move { drop(carry(client, target, gate).await) });
            }
        });
        Ok(())
    }

    /// Separates the server that sends from `server` from all other servers.
    pub(super) fn cut_off(&self, server: Ipv4Addr) {
        self.cut_off.send_replace(Some(server));
    }

    /// Lets the held bytes pass.
    pub(super) fn heal(&self) {
        self.cut_off.send_replace(None);
    }
}

/// Decides whether bytes between two servers pass at the moment.
#[derive(Clone)]
struct Gate {
    from: IpAddr,
    to: Ipv4Addr,
    cut_off: watch::Receiver<Option<Ipv4Addr>>,
}

impl Gate {
    /// Waits until the bytes of this connection may pass. Fails when the soak has ended.
    async fn wait(&mut self) -> io::Result<()> {
        let (from, to) = (self.from, self.to);
        let is_open = |cut_off: &Option<Ipv4Addr>| match *cut_off {
            Some(server) if from != IpAddr::V4(Ipv4Addr::LOCALHOST) => {
                from != IpAddr::V4(server) && to != server
            }
            _ => true,
        };
        self.cut_off.wait_for(is_open).await.map(drop).map_err(io::Error::other)
    }
}

async fn carry(client: TcpStream, target: u16, mut gate: Gate) -> io::Result<()> {
    gate.wait().await?;
    let socket = TcpSocket::new_v4()?;
    socket.bind((PROXY, 0).into())?;
    let server =
        socket.connect(SocketAddr::from((Ipv4Addr::LOCALHOST, target))).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::try_join!(
        pump(from_client, to_server, gate.clone()),
        pump(from_server, to_client, gate)
    )
    .map(drop)
}

/// Copies bytes until the sender closes its direction, and then closes the other end.
async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut gate: Gate,
) -> io::Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let count = from.read(&mut buffer).await?;
        gate.wait().await?;
        if count == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..count]).await?;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const SHORT: Duration = Duration::from_millis(100);

    /// Connects from that address and sends a byte.
    async fn send_from(address: Ipv4Addr, port: u16) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((address, 0).into()).unwrap();
        let mut stream =
            socket.connect((Ipv4Addr::LOCALHOST, port).into()).await.unwrap();
        stream.write_all(b"x").await.unwrap();
        stream
    }

    async fn receive(listener: &TcpListener) -> u8 {
        let (mut stream, from) = listener.accept().await.unwrap();
        assert_eq!(from.ip(), IpAddr::V4(PROXY));
        stream.read_u8().await.unwrap()
    }

    /// A server that is cut off gets bytes of clients, and those of other servers only
    /// after the network is healed.
    #[tokio::test]
    async fn only_servers_are_cut_off() {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let (links, port) = (Links::new(), Port::reserve().unwrap());
        let (entry, target) =
            (port.number().unwrap(), server.local_addr().unwrap().port());
        links.carry(port, source_of(0), target).unwrap();

        links.cut_off(source_of(0));
        let other = send_from(source_of(1), entry).await;
        assert!(timeout(SHORT, receive(&server)).await.is_err());
        let client = send_from(Ipv4Addr::LOCALHOST, entry).await;
        assert_eq!(receive(&server).await, b'x');

        links.heal();
        assert_eq!(receive(&server).await, b'x');
        drop((other, client));
    }
}
