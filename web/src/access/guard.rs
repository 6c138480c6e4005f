//! The layer in front of all pages.

use std::{sync::Arc, time::Duration};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use tokio::{
    sync::{Mutex, OwnedMutexGuard},
    time::sleep,
};

use super::{Access, Actor, Credentials, Kind, host, origin};
use crate::{app::App, page_error::PageError, pages::sign_in};

/// How long the next attempt waits after one that failed. Attempts are checked one after
/// the other, so this bounds the number of guesses.
const AFTER_FAILURE: Duration = Duration::from_millis(250);

/// Who may use the page, and the attempts to sign in.
#[derive(Debug)]
pub(crate) struct Guarded {
    pub(crate) access: Access,
    attempt: Arc<Mutex<()>>,
}

impl Guarded {
    pub(crate) fn new(access: Access) -> Self {
        Self { access, attempt: Arc::default() }
    }

    /// The visitor to whom the credentials belong.
    pub(crate) async fn check(&self, given: &Credentials) -> Option<Actor> {
        let attempt = Arc::clone(&self.attempt).lock_owned().await;
        let actor = self.access.check(given);
        if actor.is_none() {
            tracing::warn!("a wrong token or password was given to the web page");
            pause(attempt).await;
        }
        actor
    }
}

/// Ends the attempt after a pause. A task of its own waits, because the request of a visitor
/// who hangs up is dropped: a guesser who does so would be free of the pause.
async fn pause(attempt: OwnedMutexGuard<()>) {
    let pause = tokio::spawn(async move {
        sleep(AFTER_FAILURE).await;
        drop(attempt);
    });
    let _ = pause.await;
}

/// How a visitor has signed in.
#[derive(PartialEq)]
enum By {
    Header,
    Session,
    /// The caller of the library has checked the visitor.
    Caller,
}

/// Serves the request if it passes the checks of [`super`].
pub(crate) async fn guard(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(authority) = host::authority(request.headers(), request.uri())
        .filter(|authority| app.hosts.has(authority))
        .map(str::to_owned)
    else {
        let status = StatusCode::MISDIRECTED_REQUEST;
        let why =
            "this host name is not served: name it with --host, or with WebPage::hosts";
        return PageError::new(status, why).into_response();
    };
    // The files and the sign-in are the same for all visitors.
    let path = request.uri().path();
    let is_public = path.starts_with("/static/") || path == "/sign-in";
    let known = request.extensions().get().cloned();
    let signed_in = sign_in_of(&app, request.headers().clone(), known).await;
    let by_header = matches!(signed_in, Some((_, By::Header)));
    if let Some(why) = refusal(&app, &request, &authority, by_header) {
        return PageError::forbidden(why).into_response();
    }
    match signed_in {
        Some((actor, _)) => {
            request.extensions_mut().insert(actor);
        }
        None if !is_public => {
            let asked = request.uri().path_and_query();
            let page = asked.filter(|_| request.method() == Method::GET);
            return sign_in::page(&app, page.map_or("/", |it| it.as_str()), None);
        }
        None => {}
    }
    next.run(request).await
}

/// Why a request that changes something is refused. `None` if it is allowed, or changes
/// nothing.
fn refusal(
    app: &App,
    request: &Request,
    authority: &str,
    by_header: bool,
) -> Option<&'static str> {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return None;
    }
    let is_session = matches!(request.uri().path(), "/sign-in" | "/sign-out");
    let is_refused = app.is_read_only && !is_session;
    origin::refusal(request.headers(), authority, by_header)
        .or(is_refused.then_some("this page is read-only"))
}

/// Who the visitor is, and how that is known. `known` is the visitor that the application
/// has named.
async fn sign_in_of(
    app: &App,
    headers: HeaderMap,
    known: Option<Actor>,
) -> Option<(Actor, By)> {
    if let Kind::CheckedByCaller = app.guarded.access.0 {
        let actor = known.unwrap_or_else(|| Actor("not signed in".to_owned()));
        return Some((actor, By::Caller));
    }
    if let Some(actor) = app.sessions.actor(&headers) {
        return Some((actor, By::Session));
    }
    let given = Credentials::of_header(&headers)?;
    Some((app.guarded.check(&given).await?, By::Header))
}

/// Whether the visitor came by HTTPS, by the settings or by the word of a proxy. The word
/// of anybody else only makes the cookie of that visitor stricter.
pub(crate) fn is_https(app: &App, headers: &HeaderMap) -> bool {
    let told = headers.get("x-forwarded-proto");
    app.is_https || told.is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(b"https"))
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, timeout};

    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn given(secret: &str) -> Credentials {
        Credentials { user: String::new(), secret: secret.to_owned() }
    }

    #[tokio::test(start_paused = true)]
    async fn the_pause_after_a_guess_outlives_its_request() {
        let guarded = Guarded::new(Access::token(TOKEN).unwrap());
        let (began, guess) = (Instant::now(), given("wrong"));
        timeout(Duration::from_millis(1), guarded.check(&guess)).await.unwrap_err();

        let actor = guarded.check(&given(TOKEN)).await;

        assert_eq!(actor, Some(Actor("token".to_owned())));
        assert!(began.elapsed() >= AFTER_FAILURE, "{:?}", began.elapsed());
    }
}
