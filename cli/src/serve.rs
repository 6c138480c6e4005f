//! `relq serve`: serves a web page of the queues of a store.

mod access;
mod source;

use std::{net::SocketAddr, time::Duration};

use axum::{
    Router,
    response::Redirect,
    routing::get,
    serve::{Listener as _, ListenerExt as _},
};
use relq::QueueName;
use relq_web::{Redaction, WebPage};
use tokio::time::sleep;

use crate::{
    bounded_listener::BoundedListener,
    failure::{CommandResult, Failure},
    interrupts::Interrupts,
    message::say,
    source::StoreSource,
    target::Target,
    values::address,
};
use access::Visitors;

/// How long requests that have begun may take after a signal.
const GRACE: Duration = Duration::from_secs(5);

/// How many connections of visitors are open at once. A browser opens up to six.
const MOST_CONNECTIONS: usize = 256;

/// Serve a web page of the queues of the store, until a signal
///
/// The page shows queues, jobs, workers, batches, schedules and dead letters, and can
/// pause, run, cancel, retry and purge. It listens on this machine only, and answers only to
/// the names localhost, 127.0.0.1 and [::1]. Any other address or name needs a token or a
/// password, and the page has no TLS: put a proxy with TLS in front of it. With RELQ_LOG=info
/// it prints what was changed by whom.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The address to listen on
    #[arg(long, value_name = "ADDRESS", value_parser = address,
        default_value = "127.0.0.1:8088")]
    listen: SocketAddr,

    /// A host name to answer to, without port, instead of those of this machine; may be
    /// repeated
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,

    #[command(flatten)]
    visitors: Visitors,

    /// Show everything and change nothing
    #[arg(long)]
    read_only: bool,

    /// The path below which a proxy serves the page, such as /queues
    #[arg(long, value_name = "PATH", default_value = "", hide_default_value = true)]
    base: String,

    /// Hide parts of jobs: header:NAME, a JSON pointer such as /user/email, payload, or
    /// errors; may be repeated
    #[arg(long, value_name = "RULE")]
    redact: Vec<String>,

    /// Show only this queue; may be repeated. Without it, all queues of the store are listed
    /// every 30 seconds, which on Redis reads the names of all keys
    #[arg(long, value_name = "NAME")]
    only: Vec<QueueName>,
}

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        let access = self.visitors.access(self.listen, &self.hosts)?;
        let redaction = Redaction::default()
            .rules(&self.redact)
            .map_err(|error| Failure::Usage(error.to_string()))?;
        let source = StoreSource::open(target.url()?, self.only.clone()).await?;
        let interrupts = Interrupts::listen()?;
        let stop = interrupts.clone();
        let mut page = WebPage::new(source, access)
            .hosts(access::hosts(self.listen, &self.hosts))
            .base_path(&self.base)
            .map_err(|error| Failure::Usage(error.to_string()))?
            .redact(redaction)
            .stop_on(async move { stop.first().await });
        if self.read_only {
            page = page.read_only();
        }
        self.serve(mounted(page.router(), &self.base), interrupts).await
    }

    /// Serves until a signal.
    async fn serve(&self, page: Router, interrupts: Interrupts) -> CommandResult {
        let cannot = |error| {
            Failure::Failed(format!("cannot listen on {}: {error}", self.listen))
        };
        let listener = BoundedListener::bind(self.listen, MOST_CONNECTIONS).await;
        let listener = listener.map_err(cannot)?;
        let bound = listener.local_addr().map_err(cannot)?;
        say(&format!("the web page is at http://{bound}{}", self.base));
        let stop = interrupts.clone();
        let page = page.into_make_service_with_connect_info::<SocketAddr>();
        // axum tells the address of a visitor for its own listeners only, such as this one.
        let listener = listener.tap_io(|_| {});
        let serving = axum::serve(listener, page)
            .with_graceful_shutdown(async move { stop.first().await });
        tokio::select! {
            served = serving.into_future() => served.map_err(cannot),
            () = grace(&interrupts) => Ok(()),
        }
    }
}

/// Waits until the requests that have begun have had their time.
async fn grace(interrupts: &Interrupts) {
    interrupts.first().await;
    tokio::select! {
        () = sleep(GRACE) => {}
        () = interrupts.second() => {}
    }
}

/// The page below its path, for a proxy that passes the path on, and at the root for one
/// that removes it.
fn mounted(page: Router, base: &str) -> Router {
    if base.is_empty() {
        return page;
    }
    let home = base.to_owned();
    let to_home = get(async move || Redirect::permanent(&home));
    Router::new()
        .nest(base, page.clone())
        .route(&format!("{base}/"), to_home)
        .fallback_service(page)
}
