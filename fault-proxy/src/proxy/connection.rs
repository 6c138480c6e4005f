//! An actor's connection to the proxy, and the connection from the proxy to the server
//! that belongs to it.

use std::{io, sync::Arc, time::Duration};

use tokio::{sync::watch, time::timeout};

use super::{
    actor::{Actor, Life},
    dead_connections::Ghost,
    frame::Malformed,
    inbound::{Ended, Inbound, Requests},
    outbound::{Outbound, Stopped},
    rewrite::Session,
    shared::Shared,
    stream::{Stream, Writer},
    upstream::Upstream,
    wire::Wire,
};

/// The time limit for sending a last error to a client before its connection is closed.
const ERROR_LIMIT: Duration = Duration::from_secs(5);

/// The reason why a connection ended.
enum End {
    Inbound(Ended),
    Outbound(Stopped),
    /// The actor was killed, on this connection or on another one.
    Killed(Life),
}

/// Serves one connection of an actor until it ends.
pub(crate) async fn serve(shared: Arc<Shared>, actor: Arc<Actor>, client: Stream) {
    let mut life = actor.life();
    if *life.borrow_and_update() != Life::Alive {
        return;
    }
    let begins = shared.traffic.begins();
    let _open = actor.opens();
    let number = actor.next_connection();
    // If the server is down, the proxy closes the client's connection.
    let Ok(mut upstream) = Upstream::open(&shared.server.address).await else { return };
    let Ok(id) = id_at_server(&mut upstream).await else { return };
    let wire = Wire::new(&shared.traffic);
    let mut connection = Connection::new(client, upstream, wire, Session::new(id));
    drop(begins);
    let end = connection.run(&shared, &actor, number, &mut life).await;
    let _ends = shared.traffic.begins();
    send_final_error(&shared, &actor, &end, &mut connection.client).await;
    connection.end(&shared, &actor, end).await;
}

/// The server's id of this connection. The proxy asks for it before the client
/// authenticates, because the client's user may not have the right to ask.
async fn id_at_server(upstream: &mut Upstream) -> io::Result<String> {
    let reply = upstream.ask(&["CLIENT", "ID"]).await?;
    Ok(String::from_utf8_lossy(&reply).trim_start_matches(':').trim().to_owned())
}

struct Connection {
    requests: Requests,
    client: Writer,
    upstream: Upstream,
    wire: Wire,
    session: Session,
}

impl Connection {
    fn new(client: Stream, upstream: Upstream, wire: Wire, session: Session) -> Self {
        let (reader, client) = client.split();
        let requests = Requests::new(reader);
        Self { requests, client, upstream, wire, session }
    }

    async fn run(
        &mut self,
        shared: &Arc<Shared>,
        actor: &Actor,
        connection: u32,
        life: &mut watch::Receiver<Life>,
    ) -> End {
        let Upstream { replies, writer: server } = &mut self.upstream;
        let at = (actor, connection);
        let client = &mut self.client;
        let outbound = Outbound::new(replies, client, &self.wire, at, &shared.traffic);
        let (requests, session) = (&mut self.requests, &mut self.session);
        let wire = &self.wire;
        let inbound =
            Inbound { shared, actor, connection, requests, server, wire, session };
        both_ways(inbound, outbound, life).await
    }

    async fn end(self, shared: &Shared, actor: &Actor, end: End) {
        let Self { requests, client, upstream, session, .. } = self;
        let shown = match end {
            End::Inbound(Ended::Dies(life, requests)) if !requests.is_empty() => {
                shared.dead_connections.keep_ghost(Ghost {
                    upstream,
                    session,
                    requests,
                });
                return actor.set_life(life);
            }
            End::Inbound(Ended::Cut) => {
                // The old connection is closed at the server first, so that it is gone
                // when the client connects again.
                close(shared, actor, upstream, Life::Closed).await;
                return client.reset();
            }
            End::Inbound(Ended::Dies(life, _)) => {
                actor.set_life(life);
                life
            }
            End::Killed(life) => life,
            End::Inbound(_) | End::Outbound(_) => Life::Closed,
        };
        drop((requests, client));
        close(shared, actor, upstream, shown).await;
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
    // A client that has closed its side for sending still gets the replies to the
    // requests that it sent before.
    tokio::select! {
        () = death(life) => End::Killed(*life.borrow()),
        stopped = back => End::Outbound(stopped),
    }
}

/// Completes when the actor dies or is revived. A revived actor has new connections
/// only.
async fn death(life: &mut watch::Receiver<Life>) {
    // The channel stays open, because its sender lives as long as the actor.
    let _ = life.changed().await;
}

/// Sends a client that is still connected the error that ended its connection.
async fn send_final_error(
    shared: &Shared,
    actor: &Actor,
    end: &End,
    client: &mut Writer,
) {
    let error = match end {
        End::Inbound(Ended::Malformed(Malformed(why))) => {
            format!("-ERR Protocol error: {why}\r\n")
        }
        End::Outbound(Stopped::Malformed(Malformed(why))) => {
            let what = format!("{}: protocol violation: {why}", actor.name);
            shared.ledger.trouble(&what);
            return;
        }
        End::Outbound(Stopped::ServerLeft) => String::new(),
        End::Inbound(_) | End::Outbound(_) | End::Killed(_) => return,
    };
    // A client that is gone, or that does not read, does not get the error.
    drop(timeout(ERROR_LIMIT, say(client, error)).await);
}

async fn say(client: &mut Writer, words: String) -> io::Result<()> {
    client.send(&[words.into()]).await?;
    client.flush().await
}

/// Closes the connection to the server, or keeps it open if the server must not notice
/// that the actor is dead.
async fn close(shared: &Shared, actor: &Actor, upstream: Upstream, shown: Life) {
    if shown == Life::Silent {
        shared.dead_connections.freeze(upstream);
    } else if let Err(error) = upstream.close().await {
        let what = format!("{}: the server did not close: {error}", actor.name);
        shared.ledger.trouble(&what);
    }
}
