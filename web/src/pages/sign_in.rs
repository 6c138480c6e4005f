//! The sign-in, and the end of a session.

use std::sync::Arc;

use axum::{
    extract::{RawForm, State},
    http::{HeaderMap, StatusCode, header::SET_COOKIE},
    response::{IntoResponse as _, Response},
};
use maud::html;

use super::layout::{Frame, frame};
use crate::{
    access::{Cookie, Credentials, is_https},
    app::App,
    fields::Fields,
    page_error::PageError,
    view::{View, see_other},
};

/// The form. `next` is the path, below the base path, of the page that was asked for.
pub(crate) fn page(app: &App, next: &str, failure: Option<&str>) -> Response {
    let has_user = app.guarded.access.has_user();
    let name = if has_user { "Password" } else { "Token" };
    let body = html! {
        h1 { "Sign in" }
        @if let Some(failure) = failure {
            p.notice.warning role="alert" { (failure) }
        }
        form.filter method="post" action=(app.links.to("/sign-in")) {
            input type="hidden" name="next" value=(next);
            @if has_user {
                label { "User " input name="user" autocomplete="username" required; }
            }
            label {
                (name) " "
                input type="password" name="secret" autocomplete="current-password" required;
            }
            button.main type="submit" { "Sign in" }
        }
    };
    let status = StatusCode::UNAUTHORIZED;
    let page = frame(app, &Frame { title: "Sign in", live: None, actor: None }, &body);
    (status, page).into_response()
}

/// Shows the form.
pub(crate) async fn show(State(app): State<Arc<App>>) -> Response {
    page(&app, "/", None)
}

/// Begins a session.
pub(crate) async fn begin(
    view: View,
    headers: HeaderMap,
    RawForm(form): RawForm,
) -> Result<Response, PageError> {
    let app = &view.app;
    let form = Fields::parse(&form);
    let field = |name| form.get(name).unwrap_or_default().to_owned();
    let next = path_here(&field("next"));
    let given = Credentials { user: field("user"), secret: field("secret") };
    let Some(actor) = app.guarded.check(view.peer, &given).await? else {
        return Ok(page(app, &next, Some("That is not right.")));
    };
    tracing::info!(actor = actor.0, "signed in on the web page");
    let session = app.sessions.begin(actor);
    let cookie = cookie(app, &headers).set(&session);
    let home = if next == "/" { app.links.home() } else { app.links.to(&next) };
    Ok(([(SET_COOKIE, cookie)], see_other(&home)).into_response())
}

/// Ends the session.
pub(crate) async fn end(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    app.sessions.end(&headers);
    let cookie = cookie(&app, &headers).remove();
    ([(SET_COOKIE, cookie)], see_other(&app.links.home())).into_response()
}

fn cookie<'a>(app: &'a App, headers: &HeaderMap) -> Cookie<'a> {
    app.sessions.cookie(app.links.base(), is_https(app, headers))
}

/// The path if it leads to a page of this host, else that of the overview. Browsers read a
/// backslash as a slash, and two slashes as the begin of a host name.
fn path_here(path: &str) -> String {
    let is_here = path.starts_with('/')
        && !path[1..].starts_with('/')
        && !path.contains('\\')
        && path.bytes().all(|byte| byte.is_ascii_graphic());
    if is_here { path.to_owned() } else { "/".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::path_here;

    #[test]
    fn a_sign_in_leads_to_a_page_of_this_host() {
        for path in ["/", "/queue/a/jobs/ready?q=b%2F"] {
            assert_eq!(path_here(path), path);
        }
        for path in ["", "//evil.example", "/\\evil.example", "https://a", "/a\r\nb"] {
            assert_eq!(path_here(path), "/", "{path:?}");
        }
    }
}
