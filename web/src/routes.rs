//! The addresses of the pages.

use std::sync::Arc;

use axum::{
    Router,
    extract::DefaultBodyLimit,
    http::header::CONTENT_TYPE,
    middleware::from_fn_with_state,
    response::{IntoResponse, Response},
    routing::{MethodRouter, get, post},
};

use crate::{
    access,
    app::App,
    live,
    page_error::PageError,
    pages::{
        batches, confirm, dead, job, jobs, overview, queue, schedules, sign_in, workers,
    },
    response_headers,
};

/// The largest form, in bytes.
const MAX_FORM: usize = 64 * 1024;

pub(crate) fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/", get(overview::show))
        .route("/live", get(live::counts))
        .route("/sign-in", get(sign_in::show).post(sign_in::begin))
        .route("/sign-out", post(sign_in::end))
        .route("/queue/{queue}", get(queue::show))
        .route("/queue/{queue}/jobs/{state}", get(jobs::show))
        .route("/queue/{queue}/job", get(job::show))
        .route("/queue/{queue}/dead", get(dead::show))
        .route("/queue/{queue}/workers", get(workers::show))
        .route("/queue/{queue}/batches", get(batches::list))
        .route("/queue/{queue}/batch/{batch}", get(batches::show))
        .route("/queue/{queue}/schedules", get(schedules::show))
        .route("/queue/{queue}/confirm/{action}", get(confirm::ask))
        .route("/queue/{queue}/do/{action}", post(confirm::act))
        .route("/static/relq.css", file("text/css", include_str!("static/relq.css")))
        .route(
            "/static/live.js",
            file("text/javascript", include_str!("static/live.js")),
        )
        .route(
            "/static/icon.svg",
            file("image/svg+xml", include_str!("static/icon.svg")),
        )
        .fallback(missing)
        .layer(DefaultBodyLimit::max(MAX_FORM))
        .layer(from_fn_with_state(app.clone(), access::guard))
        .layer(from_fn_with_state(app.clone(), response_headers::add))
        .with_state(app)
}

fn file(kind: &'static str, text: &'static str) -> MethodRouter<Arc<App>> {
    get(move || async move { ([(CONTENT_TYPE, kind)], text) })
}

async fn missing() -> Response {
    PageError::not_found("there is no such page").into_response()
}
