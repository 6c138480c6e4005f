//! One connection of an actor, and its own connection to the server.

use std::{io, sync::Arc, time::Duration};

use tokio::{sync::watch, time::timeout};

use super::{
    actor::{Actor, Life},
    afterlife::Ghost,
    frame::Malformed,
    inbound::{Ended, Inbound, Requests},
    outbound::{Outbound, Stopped},
    proxy::Shared,
    rewrite::Session,
    stream::{Stream, Writer},
    upstream::Upstream,
    wire::Wire,
};

/// How long a client may take for the last words to it.
const GOODBYE_LIMIT: Duration = Duration::from_secs(5);

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
    let number = actor.next_connection();
    // A server that is down shows to the client as a connection that closes.
    let Ok(mut upstream) = Upstream::open(&shared.server.address).await else { return };
    let Ok(id) = id_at_server(&mut upstream).await else { return };
    let mut connection = Connection::new(client, upstream, Session::new(id));
    let end = connection.run(&shared, &actor, number, &mut life).await;
    say_goodbye(&shared, &actor, &end, &mut connection.client).await;
    connection.end(&shared, &actor, end).await;
}

/// How the server calls this connection. Only the proxy's own user is sure to be allowed
/// to ask, so it is asked before the client can say who it is.
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
    fn new(client: Stream, upstream: Upstream, session: Session) -> Self {
        let (reader, client) = client.split();
        let requests = Requests::new(reader);
        Self { requests, client, upstream, wire: Wire::new(), session }
    }

    async fn run(
        &mut self,
        shared: &Arc<Shared>,
        actor: &Actor,
        connection: u32,
        life: &mut watch::Receiver<Life>,
    ) -> End {
        let Upstream { replies, writer: server } = &mut self.upstream;
        let outbound = Outbound::new(replies, &mut self.client, &self.wire);
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
                shared.afterlife.haunt(Ghost { upstream, session, requests });
                return actor.set_life(life);
            }
            End::Inbound(Ended::Cut) => {
                // The client finds its old connection gone when it comes again.
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

/// Last words to a client that lives.
async fn say_goodbye(shared: &Shared, actor: &Actor, end: &End, client: &mut Writer) {
    let last_words = match end {
        End::Inbound(Ended::Malformed(Malformed(why))) => {
            format!("-ERR Protocol error: {why}\r\n")
        }
        End::Outbound(Stopped::Malformed(Malformed(why))) => {
            let what = format!("{}: not of the protocol: {why}", actor.name);
            shared.ledger.trouble(&what);
            return;
        }
        End::Outbound(Stopped::ServerLeft) => String::new(),
        End::Inbound(_) | End::Outbound(_) | End::Killed(_) => return,
    };
    // A client that is gone, or does not listen, hears no goodbye.
    drop(timeout(GOODBYE_LIMIT, say(client, last_words)).await);
}

async fn say(client: &mut Writer, words: String) -> io::Result<()> {
    client.send(&[words.into()]).await?;
    client.flush().await
}

/// Closes the server's side, or leaves it open where the server is not to know.
async fn close(shared: &Shared, actor: &Actor, upstream: Upstream, shown: Life) {
    if shown == Life::Silent {
        shared.afterlife.freeze(upstream);
    } else if let Err(error) = upstream.close().await {
        let what = format!("{}: the server did not close: {error}", actor.name);
        shared.ledger.trouble(&what);
    }
}
