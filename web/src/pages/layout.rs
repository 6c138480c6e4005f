//! The parts of all pages: the head, the navigation, the notice of what was done.

use axum::response::{Html, IntoResponse as _, Response};
use maud::{DOCTYPE, Markup, html};
use relq_core::{capabilities::Capability, environment::Timestamp};

use crate::{
    app::App,
    links::with_query,
    page_error::PageError,
    text,
    view::{Opened, View},
};

/// The pages of a queue, as the navigation lists them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tab {
    Queue,
    Ready,
    Scheduled,
    Leased,
    Dead,
    Workers,
    Batches,
    Schedules,
}

impl Tab {
    const ALL: [Self; 8] = [
        Self::Queue,
        Self::Ready,
        Self::Scheduled,
        Self::Leased,
        Self::Dead,
        Self::Workers,
        Self::Batches,
        Self::Schedules,
    ];

    /// The name of the page, and its path below that of the queue.
    fn name_and_path(self) -> (&'static str, &'static str) {
        match self {
            Self::Queue => ("Queue", ""),
            Self::Ready => ("Ready", "/jobs/ready"),
            Self::Scheduled => ("Scheduled", "/jobs/scheduled"),
            Self::Leased => ("Leased", "/jobs/leased"),
            Self::Dead => ("Dead letters", "/dead"),
            Self::Workers => ("Workers", "/workers"),
            Self::Batches => ("Batches", "/batches"),
            Self::Schedules => ("Schedules", "/schedules"),
        }
    }

    /// Whether the backend of the queue has what the page shows.
    fn is_there(self, opened: &Opened) -> bool {
        let capabilities = opened.queue.capabilities();
        match self {
            Self::Batches => capabilities.supports(Capability::Batches),
            Self::Schedules => capabilities.supports(Capability::Schedules),
            _ => true,
        }
    }
}

/// The page of a queue.
pub(crate) fn of_queue(
    view: &View,
    opened: &Opened,
    tab: Tab,
    title: &str,
    body: &Markup,
) -> Response {
    let queue = opened.name.as_str();
    let live = with_query(&view.app.links.to("/live"), &[("queue", Some(queue))]);
    let whole = html! {
        p.quiet {
            "Queue " a href=(view.app.links.queue(&opened.name, "")) { (text::visible(queue)) }
        }
        nav aria-label="Queue" {
            ul {
                @for item in Tab::ALL.into_iter().filter(|item| item.is_there(opened)) {
                    @let (name, path) = item.name_and_path();
                    @let here = (item == tab).then_some("page");
                    li {
                        a href=(view.app.links.queue(&opened.name, path)) aria-current=[here] {
                            (name)
                        }
                    }
                }
            }
        }
        (body)
    };
    page(view, &format!("{title} – {queue}"), Some(&live), &whole)
}

/// A page. `live` is the address of its live counts.
pub(crate) fn page(
    view: &View,
    title: &str,
    live: Option<&str>,
    body: &Markup,
) -> Response {
    let notice = view.query.get("notice").and_then(|name| view.app.notices.take(name));
    let actor = view.actor.as_ref().map(|actor| actor.0.as_str());
    let content = html! {
        @if let Some(notice) = notice {
            p.notice role="status" { (text::visible(&notice)) }
        }
        @if view.app.is_read_only {
            p.quiet { "This page is read-only." }
        }
        (body)
        footer {
            p #live role="status" {
                @if live.is_some() {
                    "The counts are those of the moment when the page was loaded."
                }
            }
        }
    };
    frame(&view.app, &Frame { title, live, actor }, &content)
}

/// The page of an error.
pub(crate) fn error(app: &App, error: &PageError) -> Response {
    let title = error.status.canonical_reason().unwrap_or("Error");
    let body = html! {
        h1 { (title) }
        p.notice.warning role="alert" { (text::visible(&error.message)) }
        p { a href=(app.links.home()) { "All queues" } }
    };
    let frame = frame(app, &Frame { title, live: None, actor: None }, &body);
    (error.status, frame).into_response()
}

/// The title of a page, the address of its live counts, and the visitor who is signed in.
pub(crate) struct Frame<'a> {
    pub(crate) title: &'a str,
    pub(crate) live: Option<&'a str>,
    pub(crate) actor: Option<&'a str>,
}

pub(crate) fn frame(app: &App, frame: &Frame<'_>, content: &Markup) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (text::visible(frame.title)) " – relq" }
                link rel="stylesheet" href=(app.links.to("/static/relq.css"));
                link rel="icon" type="image/svg+xml" href=(app.links.to("/static/icon.svg"));
                @if frame.live.is_some() {
                    script src=(app.links.to("/static/live.js")) defer {}
                }
            }
            body data-live=[frame.live] {
                a.skip href="#content" { "Skip to the content" }
                header {
                    a.brand href=(app.links.home()) { "relq" }
                    a href=(app.links.home()) { "All queues" }
                    @if let Some(actor) = frame.actor {
                        (signed_in(app, actor))
                    }
                }
                main #content { (content) }
            }
        }
    };
    Html(page.into_string()).into_response()
}

fn signed_in(app: &App, actor: &str) -> Markup {
    html! {
        div.actor {
            @if app.guarded.access.has_sign_in() {
                span.quiet { (text::visible(actor)) }
                form method="post" action=(app.links.to("/sign-out")) {
                    button type="submit" { "Sign out" }
                }
            }
        }
    }
}

/// A time in UTC, and how far it is from now.
pub(crate) fn time(at: Timestamp) -> Markup {
    html! {
        time datetime=(text::time(at)) { (text::time(at)) }
        span.quiet { " (" (text::distance(at)) ")" }
    }
}
