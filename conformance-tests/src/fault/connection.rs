//! One connection of an actor, and its own connection to the server.

use std::{io, sync::Arc, time::Duration};

use tokio::{sync::watch, time::timeout};

use super::{
    actor::{Actor, Life},
    frame::Malformed,
    gate::Shared,
    inbound::{Ended, Inbound, Requests},
    outbound::{Outbound, Replies, Stopped},
    request::Request,
    rewrite::{self, Session},
    stream::{Stream, Writer},
    wire::Wire,
};

/// How long a server may take to see that a connection was closed.
const CLOSE_LIMIT: Duration = Duration::from_secs(10);

/// The gate's connection to the server, for one of a client's.
pub(crate) struct Upstream {
    pub(crate) replies: Replies,
    pub(crate) writer: Writer,
}

impl Upstream {
    async fn open(shared: &Shared) -> io::Result<Self> {
        let (reader, writer) = Stream::connect(&shared.server.address).await?.split();
        Ok(Self { replies: Replies::new(reader), writer })
    }

    /// Closes it and waits until the server has seen it: whatever was sent has run
    /// by then, or never will.
    pub(crate) async fn close(mut self) -> io::Result<()> {
        // A server that is gone has closed it already.
        if self.writer.finish().await.is_err() {
            return Ok(());
        }
        match timeout(CLOSE_LIMIT, self.replies.drain()).await {
            Ok(Ok(()) | Err(_)) => Ok(()),
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// A dead actor's connection on which commands are still to run.
pub(crate) struct Ghost {
    pub(crate) upstream: Upstream,
    pub(crate) session: Session,
    pub(crate) requests: Vec<Request>,
}

impl Ghost {
    /// Runs what was on its way, and closes the connection.
    pub(crate) async fn run(mut self, shared: &Shared) -> io::Result<usize> {
        use super::command::Kind;
        for request in &self.requests {
            let kind = Kind::of(request);
            let (pieces, _) =
                rewrite::for_server(shared, &mut self.session, kind, request);
            self.upstream.writer.send(&pieces).await?;
        }
        self.upstream.close().await?;
        Ok(self.requests.len())
    }
}

/// How a connection came to its end.
enum End {
    Inbound(Ended),
    Outbound(Stopped),
    /// The actor was killed, here or on another connection of its.
    Killed(Life),
}

/// Serves one connection of an actor to its end.
pub(crate) async fn serve(shared: Arc<Shared>, actor: Arc<Actor>, client: Stream) {
    let mut life = actor.life();
    if *life.borrow_and_update() != Life::Alive {
        return;
    }
    let _open = actor.opens();
    let connection = actor.next_connection();
    // A server that is down shows to the client as a connection that closes.
    let Ok(mut upstream) = Upstream::open(&shared).await else { return };
    let (reader, mut client) = client.split();
    let mut requests = Requests::new(reader);
    let (wire, mut session) = (Wire::new(), Session::default());
    let end = {
        let inbound = Inbound {
            shared: &shared,
            actor: &actor,
            connection,
            requests: &mut requests,
            server: &mut upstream.writer,
            wire: &wire,
            session: &mut session,
        };
        let outbound = Outbound::new(&mut upstream.replies, &mut client, &wire);
        both_ways(inbound, outbound, &mut life).await
    };
    let closed = match end {
        End::Inbound(Ended::Dies(life, late)) => {
            let closed = shared.bury(upstream, session, life, late);
            actor.set_life(life);
            drop((requests, client));
            closed
        }
        End::Killed(Life::Silent) => {
            drop((requests, client));
            shared.freeze(upstream);
            None
        }
        end => {
            say_goodbye(&shared, &actor, end, &mut client).await;
            drop((requests, client));
            Some(upstream)
        }
    };
    if let Some(upstream) = closed
        && let Err(error) = upstream.close().await
    {
        shared.trouble(&format!("{}: the server did not close: {error}", actor.name));
    }
}

async fn both_ways(
    mut inbound: Inbound<'_>,
    mut outbound: Outbound<'_>,
    life: &mut watch::Receiver<Life>,
) -> End {
    let mut back = std::pin::pin!(outbound.run());
    let ended = tokio::select! {
        biased;
        () = death(life) => return End::Killed(*life.borrow()),
        stopped = &mut back => return End::Outbound(stopped),
        ended = inbound.run() => ended,
    };
    if !matches!(ended, Ended::ClientLeft) {
        return End::Inbound(ended);
    }
    // What the client asked before it left is still answered.
    tokio::select! {
        () = death(life) => End::Killed(*life.borrow()),
        stopped = back => End::Outbound(stopped),
    }
}

/// Completes when the life changes: a new life is the end of the old one.
async fn death(life: &mut watch::Receiver<Life>) {
    // The sender lives as long as the actor.
    let _ = life.changed().await;
}

async fn say_goodbye(shared: &Shared, actor: &Actor, end: End, client: &mut Writer) {
    let said = match end {
        End::Inbound(Ended::Malformed(Malformed(why))) => {
            let error = format!("-ERR Protocol error: {why}\r\n");
            match client.send(&[error.into()]).await {
                Ok(()) => client.flush().await,
                Err(gone) => Err(gone),
            }
        }
        End::Inbound(Ended::Cut) => client.reset_on_close(),
        End::Outbound(Stopped::Malformed(Malformed(why))) => {
            shared.trouble(&format!("{}: the server sent {why}", actor.name));
            Ok(())
        }
        _ => client.flush().await,
    };
    // A client that is gone hears no goodbye.
    drop(said);
}
