//! `relq ping`: checks that the store of a queue can be read.

mod server;

use std::{
    fmt,
    time::{Duration, Instant},
};

use serde::Serialize;

use crate::{failure::CommandResult, format::Format, store_url, target::Target};
use server::Server;

/// Check that the store can be reached and read, and print what it is and how fast it answers
///
/// Connects, which also checks the version, the rights and the backend of the queue, and
/// counts the jobs of the queue, which is the round trip. Then reads the name and the version
/// of the server, and whether it has an append-only file. Changes nothing and creates no
/// file, so it does not notice a store that refuses writes, such as a replica. Exits with 1
/// and the reason when the store cannot be read.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    format: Format,
}

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        let began = Instant::now();
        let queue = target.open_existing().await?;
        let connect = began.elapsed();
        let asked = Instant::now();
        queue.stats().await?;
        let round_trip = asked.elapsed();
        let url = target.url()?;
        let server = server::read(&url, &target.queue).await?;
        self.format.show(&Report {
            url: store_url::without_password(&url),
            queue: target.queue.as_str(),
            backend: queue.capabilities().backend,
            server,
            connect_ms: in_ms(connect),
            round_trip_ms: in_ms(round_trip),
            place: queue.to_string(),
        })
    }
}

#[derive(Serialize)]
struct Report<'a> {
    url: String,
    queue: &'a str,
    backend: &'static str,
    server: Server,
    connect_ms: f64,
    round_trip_ms: f64,
    /// The backend, the queue and the address of its store.
    #[serde(skip)]
    place: String,
}

/// Milliseconds with three digits after the point.
fn in_ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, server, connect_ms, round_trip_ms, .. } = self;
        writeln!(
            f,
            "{place}: {server}, connected in {connect_ms} ms, round trip {round_trip_ms} ms"
        )
    }
}
