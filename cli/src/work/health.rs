//! The answers to the probes of a supervisor: `relq work --health ADDRESS`.

use std::net::SocketAddr;

use axum::{
    Router, extract::State, http::StatusCode, routing::get, serve::Listener as _,
};
use relq::worker::Progress;

use crate::{
    bounded_listener::BoundedListener,
    failure::{CommandResult, Failure},
    message::say,
};

/// How many connections of probes are open at once. A probe is answered at once, and its
/// connection ends then.
const MOST_CONNECTIONS: usize = 16;

/// An address that probes can connect to, before the worker runs.
pub(super) struct Health(BoundedListener);

impl Health {
    pub(super) async fn listen(address: SocketAddr) -> CommandResult<Self> {
        let cannot = |error| {
            Failure::Failed(format!("cannot listen for probes on {address}: {error}"))
        };
        let listener = BoundedListener::bind(address, MOST_CONNECTIONS).await;
        let listener = listener.map_err(cannot)?;
        let bound = listener.local_addr().map_err(cannot)?;
        say(&format!("probes at http://{bound}/live and http://{bound}/ready"));
        Ok(Self(listener))
    }

    /// Answers in the background until the program ends. The answers come from the runtime
    /// of the worker, so a program that hangs gives none.
    pub(super) fn answer_from(self, progress: Progress) {
        let routes = Router::new()
            .route("/live", get(live))
            .route("/ready", get(ready))
            .with_state(progress);
        tokio::spawn(async move {
            if let Err(error) = axum::serve(self.0, routes).await {
                say(&format!("probes get no more answers: {error}"));
            }
        });
    }
}

async fn live(State(progress): State<Progress>) -> String {
    format!("{}\n", progress.state().as_str())
}

async fn ready(State(progress): State<Progress>) -> (StatusCode, String) {
    let state = progress.state();
    let code =
        if state.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (code, format!("{}\n", state.as_str()))
}
