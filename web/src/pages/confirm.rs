//! The buttons, the page that asks before a change that cannot be undone, and the change.

use axum::{
    extract::{Path, RawForm},
    http::StatusCode,
    response::Response,
};
use maud::{Markup, html};
use tracing::Instrument as _;

use super::layout::{self, Tab};
use crate::{
    action::{Action, Done},
    fields::Fields,
    links::with_query,
    page_error::PageError,
    text::visible,
    view::{Opened, View, see_other},
};

/// The field that says that the visitor was asked.
const CONFIRMED: &str = "confirmed";

/// A button. It changes the state at once only if the change can be undone, and is left out
/// of a read-only page.
pub(crate) fn button(view: &View, opened: &Opened, action: &Action) -> Markup {
    if view.app.is_read_only {
        return html! {};
    }
    let page = if action.can_be_undone() { "do" } else { "confirm" };
    let path = format!("/{page}/{}", action.word());
    let method = if action.can_be_undone() { "post" } else { "get" };
    html! {
        form method=(method) action=(view.app.links.queue(&opened.name, &path)) {
            (hidden(action))
            button.danger[action.is_destructive()] type="submit" { (action.label()) }
        }
    }
}

fn hidden(action: &Action) -> Markup {
    html! {
        @if let Some((name, value)) = action.field() {
            input type="hidden" name=(name) value=(value);
        }
    }
}

/// The page that asks.
pub(crate) async fn ask(
    view: View,
    opened: Opened,
    Path((_, word)): Path<(String, String)>,
) -> Result<Response, PageError> {
    let action = Action::read(&word, &view.query)?;
    if view.app.is_read_only {
        return Err(PageError::forbidden("this page is read-only"));
    }
    let path = format!("/do/{word}");
    let back = back(&view, &opened, &action, None);
    let body = html! {
        h1 { (action.label()) "?" }
        p { (visible(&action.question(opened.queue.capabilities()))) }
        form method="post" action=(view.app.links.queue(&opened.name, &path)) {
            (hidden(&action))
            input type="hidden" name=(CONFIRMED) value="yes";
            div.actions {
                button.main type="submit" { "Yes: " (action.label().to_lowercase()) }
                a.button href=(back) { "No, go back" }
            }
        }
    };
    Ok(layout::of_queue(&view, &opened, Tab::Queue, action.label(), &body))
}

/// Does what the form asks for, and leads to the page that shows the result.
pub(crate) async fn act(
    view: View,
    opened: Opened,
    Path((_, word)): Path<(String, String)>,
    RawForm(form): RawForm,
) -> Result<Response, PageError> {
    let form = Fields::parse(&form);
    let action = Action::read(&word, &form)?;
    if !action.can_be_undone() && form.get(CONFIRMED) != Some("yes") {
        let path = format!("/confirm/{word}");
        let page = view.app.links.queue(&opened.name, &path);
        let field = action.field();
        let query: Vec<_> =
            field.iter().map(|(name, it)| (*name, Some(&**it))).collect();
        return Ok(see_other(&with_query(&page, &query)));
    }
    // The request of a visitor who hangs up is dropped. The change goes on in a task of its
    // own, so that it is complete and logged.
    let call = async move { change(&view, &opened, &action).await };
    let changed = tokio::spawn(call.in_current_span()).await;
    changed.unwrap_or_else(|error| {
        let why = format!("the change was broken off: {error}");
        Err(PageError::new(StatusCode::INTERNAL_SERVER_ERROR, why))
    })
}

/// Makes the change, logs it, and leads to the page that shows the result.
async fn change(
    view: &View,
    opened: &Opened,
    action: &Action,
) -> Result<Response, PageError> {
    let done = action.run(&*opened.queue).await;
    log(view, opened, action, &done);
    let notice = view.app.notices.keep(done?.message);
    Ok(see_other(&back(view, opened, action, Some(&notice))))
}

/// Logs who has changed which queue, and how.
fn log(view: &View, opened: &Opened, action: &Action, done: &Result<Done, PageError>) {
    let actor = view.actor.as_ref().map(|actor| actor.0.as_str()).unwrap_or_default();
    let peer = view.peer.map(|peer| peer.to_string());
    let (queue, word) = (opened.name.as_str(), action.word());
    let field = action.field();
    let subject = field.as_ref().map(|(_, it)| &**it);
    match done {
        Ok(done) => {
            let result = &done.message;
            tracing::info!(
                actor,
                peer,
                queue,
                action = word,
                subject,
                result,
                "a visitor of the web page changed a queue"
            );
        }
        Err(error) => {
            let error = &error.message;
            tracing::warn!(
                actor,
                peer,
                queue,
                action = word,
                subject,
                error,
                "a change by a visitor of the web page failed"
            );
        }
    }
}

/// The page to which an action returns.
fn back(view: &View, opened: &Opened, action: &Action, notice: Option<&str>) -> String {
    let (path, id) = action.page();
    let page = view.app.links.queue(&opened.name, &path);
    with_query(&page, &[("id", id), ("notice", notice)])
}
