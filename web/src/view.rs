//! The properties of a request that its page depends on.

use std::{convert::Infallible, net::SocketAddr, sync::Arc};

use axum::{
    extract::{ConnectInfo, FromRequestParts, Path},
    http::{Extensions, StatusCode, request::Parts},
    response::{IntoResponse as _, Response},
};
use relq_core::{Queue, QueueName};

use crate::{access::Actor, app::App, fields::Fields, page_error::PageError};

/// The request of a page: who asks, with which query.
pub(crate) struct View {
    pub(crate) app: Arc<App>,
    pub(crate) actor: Option<Actor>,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) query: Fields,
}

impl FromRequestParts<Arc<App>> for View {
    type Rejection = Infallible;

    async fn from_request_parts(
        parts: &mut Parts,
        app: &Arc<App>,
    ) -> Result<Self, Infallible> {
        let query = parts.uri.query().unwrap_or_default();
        Ok(Self {
            app: app.clone(),
            actor: parts.extensions.get::<Actor>().cloned(),
            peer: peer(&parts.extensions),
            query: Fields::parse(query.as_bytes()),
        })
    }
}

/// The address of the visitor or of the proxy, if the server of the router tells it.
pub(crate) fn peer(extensions: &Extensions) -> Option<SocketAddr> {
    extensions.get().map(|ConnectInfo(peer)| *peer)
}

/// A queue of the source, opened.
pub(crate) struct Opened {
    pub(crate) name: QueueName,
    pub(crate) queue: Arc<dyn Queue>,
}

impl FromRequestParts<Arc<App>> for Opened {
    type Rejection = Response;

    async fn from_request_parts(
        parts: &mut Parts,
        app: &Arc<App>,
    ) -> Result<Self, Response> {
        let names =
            Path::<std::collections::HashMap<String, String>>::from_request_parts(
                parts, app,
            );
        let Path(names) = names.await.map_err(|error| {
            PageError::bad_request(error.body_text()).into_response()
        })?;
        let name = names.get("queue").map(String::as_str).unwrap_or_default();
        open(app, name).await.map_err(PageError::into_response)
    }
}

async fn open(app: &App, name: &str) -> Result<Opened, PageError> {
    let missing = || PageError::not_found(format!("there is no queue {name:?}"));
    let name = QueueName::new(name).map_err(|_| missing())?;
    let opened = app.source.open(&name).await;
    let queue = opened.map_err(|error| PageError::source(&error))?;
    Ok(Opened { queue: queue.ok_or_else(missing)?, name })
}

/// Sends the browser to another page, which it asks for with GET.
pub(crate) fn see_other(address: &str) -> Response {
    (StatusCode::SEE_OTHER, [("location", address)]).into_response()
}
