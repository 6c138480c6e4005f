//! The layer in front of all pages.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode},
    middleware::Next,
    response::{IntoResponse as _, Response},
};
use tokio::{sync::OwnedMutexGuard, time::sleep};

use super::{Access, Actor, Credentials, Kind, attempts::Attempts, host, origin};
use crate::{app::App, page_error::PageError, pages::sign_in, view};

/// How long the next attempt from an address waits after one that failed. They are checked
/// one after the other, so this bounds the number of guesses.
const AFTER_FAILURE: Duration = Duration::from_millis(250);

/// The rule of access to the page, and the attempts to sign in.
#[derive(Debug)]
pub(crate) struct Guarded {
    pub(crate) access: Access,
    attempts: Attempts,
}

impl Guarded {
    pub(crate) fn new(access: Access) -> Self {
        Self { access, attempts: Attempts::default() }
    }

    /// The visitor to whom the credentials belong; `None` if they are wrong. `peer` is the
    /// address that gives them.
    ///
    /// # Errors
    /// If too many attempts from this address wait for their check.
    pub(crate) async fn check(
        &self,
        peer: Option<SocketAddr>,
        given: &Credentials,
    ) -> Result<Option<Actor>, PageError> {
        let attempt = self.attempts.begin(peer).await.ok_or_else(too_many)?;
        let actor = self.access.check(given);
        if actor.is_none() {
            tracing::warn!("a wrong token or password was given to the web page");
            pause(attempt).await;
        }
        Ok(actor)
    }
}

fn too_many() -> PageError {
    let why =
        "too many attempts to sign in come from this address: try again in 5 seconds";
    PageError::new(StatusCode::TOO_MANY_REQUESTS, why)
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
    let (headers, peer) = (request.headers().clone(), view::peer(request.extensions()));
    let signed_in = match sign_in_of(&app, headers, known, peer).await {
        Ok(signed_in) => signed_in,
        Err(refused) => return refused.into_response(),
    };
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

/// The name of the visitor, and how it is known. `known` is the visitor that the
/// application has named.
async fn sign_in_of(
    app: &App,
    headers: HeaderMap,
    known: Option<Actor>,
    peer: Option<SocketAddr>,
) -> Result<Option<(Actor, By)>, PageError> {
    if let Kind::CheckedByCaller = app.guarded.access.0 {
        let actor = known.unwrap_or_else(|| Actor("not signed in".to_owned()));
        return Ok(Some((actor, By::Caller)));
    }
    if let Some(actor) = app.sessions.actor(&headers) {
        return Ok(Some((actor, By::Session)));
    }
    let Some(given) = Credentials::of_header(&headers) else {
        return Ok(None);
    };
    let actor = app.guarded.check(peer, &given).await?;
    Ok(actor.map(|actor| (actor, By::Header)))
}

/// Whether the visitor came by HTTPS, by the settings or by the word of a proxy. The word
/// of anybody else only makes the cookie of that visitor stricter.
pub(crate) fn is_https(app: &App, headers: &HeaderMap) -> bool {
    let told = headers.get("x-forwarded-proto");
    app.is_https || told.is_some_and(|it| it.as_bytes().eq_ignore_ascii_case(b"https"))
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;
    use tokio::time::{Instant, timeout};

    use super::*;
    use crate::access::attempts::MOST;

    const TOKEN: &str = "0123456789abcdef";

    fn given(secret: &str) -> Credentials {
        Credentials { user: String::new(), secret: secret.to_owned() }
    }

    fn guarded() -> Guarded {
        Guarded::new(Access::token(TOKEN).unwrap())
    }

    fn peer(ip: &str) -> Option<SocketAddr> {
        Some(SocketAddr::new(ip.parse().unwrap(), 1))
    }

    fn owner() -> Actor {
        Actor("token".to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn the_pause_after_a_guess_outlives_its_request() {
        let (guarded, guess) = (guarded(), given("wrong"));
        let began = Instant::now();
        let guessing = guarded.check(None, &guess);
        assert!(timeout(Duration::from_millis(1), guessing).await.is_err());

        let actor = guarded.check(None, &given(TOKEN)).await.unwrap();

        assert_eq!(actor, Some(owner()));
        assert!(began.elapsed() >= AFTER_FAILURE, "{:?}", began.elapsed());
    }

    /// Everybody can guess, and must not keep those out who know the secret.
    #[tokio::test(start_paused = true)]
    async fn guesses_from_one_address_do_not_delay_another() {
        let (guarded, guess, right) = (guarded(), given("wrong"), given(TOKEN));
        let began = Instant::now();
        let guesses =
            join_all((0..MOST).map(|_| guarded.check(peer("192.0.2.1"), &guess)));
        let visit =
            async { (guarded.check(peer("192.0.2.2"), &right).await, began.elapsed()) };

        let (guessed, (actor, waited)) = tokio::join!(guesses, visit);

        assert_eq!((actor.unwrap(), waited), (Some(owner()), Duration::ZERO));
        assert!(guessed.into_iter().all(|it| it.unwrap().is_none()));
    }

    /// A visitor who shares the address of a guesser, as behind a proxy, waits a few seconds
    /// at most.
    #[tokio::test(start_paused = true)]
    async fn an_attempt_behind_many_others_is_refused_at_once() {
        let (guarded, guess, right) = (guarded(), given("wrong"), given(TOKEN));
        let (address, began) = (peer("192.0.2.1"), Instant::now());
        let guesses = join_all((0..MOST).map(|_| guarded.check(address, &guess)));
        let one_more =
            async { (guarded.check(address, &right).await, began.elapsed()) };

        let (guessed, (refused, waited)) = tokio::join!(guesses, one_more);

        let status = refused.unwrap_err().status;
        assert_eq!((status, waited), (StatusCode::TOO_MANY_REQUESTS, Duration::ZERO));
        assert!(guessed.into_iter().all(|it| it.unwrap().is_none()));
        let later = guarded.check(address, &right).await.unwrap();
        assert_eq!(later, Some(owner()));
    }
}
