//! A TCP proxy that can let connections die without a word, as a firewall does that
//! forgets them.

use std::net::SocketAddr;

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// Passes bytes on to a server. The connections of a silenced proxy stay open and carry
/// nothing any more, and new ones work.
pub(crate) struct Silencer {
    address: SocketAddr,
    silenced: watch::Sender<()>,
}

impl Silencer {
    pub(crate) async fn before(server: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, silenced) =
            (listener.local_addr().unwrap(), watch::Sender::new(()));
        let told = silenced.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, server.clone(), told.subscribe()));
            }
        });
        Self { address, silenced }
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Lets every connection die that is open now.
    pub(crate) fn silence(&self) {
        self.silenced.send_replace(());
    }
}

async fn carry(
    mut client: TcpStream,
    server: String,
    mut silenced: watch::Receiver<()>,
) {
    let mut server = TcpStream::connect(server).await.unwrap();
    tokio::select! {
        _ = copy_bidirectional(&mut client, &mut server) => {}
        _ = silenced.changed() => std::future::pending().await,
    }
}
