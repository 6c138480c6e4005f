//! The jobs of one state: two orders, a search, and pages by cursor.

use std::convert::Infallible;

use axum::{extract::Path, response::Response};
use maud::{Markup, html};
use relq_core::{
    capabilities::Capability,
    operator::{JobState, JobView, PeekOrder, Places, StateDetail, Wanted},
};

use super::{
    layout::{self, Tab, time},
    payload::preview,
};
use crate::{
    cursor,
    fields::Fields,
    jobs::{Listed, Position, list, state},
    links::with_query,
    page_error::PageError,
    redact::ShownJob,
    text::{counted, one_line},
    view::{Opened, View},
};

/// How many characters of an error a list shows.
const ERROR: usize = 200;

pub(crate) async fn show(
    view: View,
    opened: Opened,
    Path((_, word)): Path<(String, String)>,
) -> Result<Response, PageError> {
    let state = state(&word).map_err(PageError::not_found)?;
    let wanted = wanted(&view.query)?;
    let from = position(&view.query, state, &opened)?;
    let listed =
        list(&*opened.queue, from.clone(), &wanted, &view.app.redaction).await?;
    let body = html! {
        h1 { (title(state)) }
        @if state == JobState::Dead {
            p { a href=(view.app.links.queue(&opened.name, "/dead")) { "Grouped by error" } }
        }
        (filter(&view, &opened, &from))
        (table(&view, &opened, &listed))
        (further(&view, &opened, &listed, wanted != Wanted::default()))
    };
    Ok(layout::of_queue(&view, &opened, tab(state), title(state), &body))
}

fn title(state: JobState) -> &'static str {
    match state {
        JobState::Ready => "Ready jobs",
        JobState::Scheduled => "Scheduled jobs",
        JobState::Leased => "Leased jobs",
        JobState::Dead => "Dead letters",
    }
}

fn tab(state: JobState) -> Tab {
    match state {
        JobState::Ready => Tab::Ready,
        JobState::Scheduled => Tab::Scheduled,
        JobState::Leased => Tab::Leased,
        JobState::Dead => Tab::Dead,
    }
}

/// The jobs that the filter selects.
fn wanted(query: &Fields) -> Result<Wanted, PageError> {
    let mut wanted = Wanted::default();
    if let Some(text) = query.get("text") {
        wanted = wanted.text(text.to_owned()).places(places(query.get("in")));
    }
    if let Some(worker) = query.read("worker")? {
        wanted = wanted.worker(worker);
    }
    if let Some(batch) = query.read("batch")? {
        wanted = wanted.batch(batch);
    }
    Ok(wanted)
}

fn places(word: Option<&str>) -> Places {
    let only = |place| word.is_none_or(|word| word == place);
    Places {
        payload: only("payload"),
        headers: only("headers"),
        errors: only("errors"),
    }
}

/// Where the listing begins.
fn position(
    query: &Fields,
    state: JobState,
    opened: &Opened,
) -> Result<Position, PageError> {
    let mut position = Position::begin(&*opened.queue, state);
    match query.get("order") {
        Some("newest") => position.order = PeekOrder::NewestFirst,
        Some("served") => position.order = PeekOrder::AsServed,
        _ => {}
    }
    position.after = query.read_with("after", cursor::decode)?;
    Ok(position)
}

/// The fields of a query that name a position.
pub(crate) fn order(position: &Position) -> &'static str {
    match position.order {
        PeekOrder::NewestFirst => "newest",
        PeekOrder::AsServed => "served",
    }
}

fn path(position: &Position) -> String {
    format!("/jobs/{}", position.state.as_str())
}

fn filter(view: &View, opened: &Opened, from: &Position) -> Markup {
    let value = |name| view.query.get(name).unwrap_or_default();
    let places = [
        ("", "anywhere"),
        ("payload", "the payload"),
        ("headers", "the headers"),
        ("errors", "the error"),
    ];
    let has_orders = opened.queue.capabilities().supports(Capability::Inspect);
    let has_batches = opened.queue.capabilities().supports(Capability::Batches);
    let action = view.app.links.queue(&opened.name, &path(from));
    html! {
        form.filter role="search" method="get" action=(action) {
            label { "Text " input name="text" value=(value("text")); }
            label {
                "in "
                select name="in" {
                    @for (word, name) in places {
                        option value=(word) selected[word == value("in")] { (name) }
                    }
                }
            }
            @if from.state == JobState::Leased {
                label { "Worker " input name="worker" value=(value("worker")); }
            }
            @if has_batches {
                label { "Batch " input name="batch" value=(value("batch")); }
            }
            @if has_orders { (order_choice(from)) }
            button type="submit" { "Show" }
        }
        form.filter method="get" action=(view.app.links.queue(&opened.name, "/job")) {
            label { "Job id " input name="id" required; }
            button type="submit" { "Find" }
        }
    }
}

fn order_choice(from: &Position) -> Markup {
    let orders = [("newest", "last served first"), ("served", "as served")];
    html! {
        label {
            "Order "
            select name="order" {
                @for (word, name) in orders {
                    option value=(word) selected[word == order(from)] { (name) }
                }
            }
        }
    }
}

fn table(view: &View, opened: &Opened, listed: &Listed) -> Markup {
    if listed.jobs.is_empty() {
        let looked = counted(listed.looked_at as u64, "job was", "jobs were");
        return html! { p { "No job to show; " (looked) " looked at." } };
    }
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        @for head in ["Job", "Attempt", "State", "Payload", "Error"] {
                            th scope="col" { (head) }
                        }
                    }
                }
                tbody {
                    @for (shown, at) in &listed.jobs {
                        (row(view, opened, shown, at))
                    }
                }
            }
        }
    }
}

fn row(view: &View, opened: &Opened, shown: &ShownJob, at: &Position) -> Markup {
    let job = &shown.job;
    html! {
        tr {
            th.text scope="row" {
                @match &job.id {
                    Some(id) => a href=(job_link(view, opened, id.as_str(), Some(at))) {
                        (one_line(id.as_str(), 128))
                    }
                    None => span.quiet { "no id yet" }
                }
            }
            td.number { (job.attempt) " of " (job.max_attempts) }
            td { (detail(view, opened, job)) }
            td.text.wide { (preview(shown)) }
            td.text { (one_line(error(job), ERROR)) }
        }
    }
}

/// Why no worker can run the job, its last error, or why it is dead.
fn error(job: &JobView) -> &str {
    match (job.unreadable.as_ref().or(job.last_error.as_ref()), &job.detail) {
        (Some(error), _) => error,
        (None, StateDetail::Dead { reason, .. }) => reason,
        _ => "",
    }
}

/// The address of a job. `seen` is where it was listed, so that it is found there again.
pub(crate) fn job_link(
    view: &View,
    opened: &Opened,
    id: &str,
    seen: Option<&Position>,
) -> String {
    let after = seen.and_then(|seen| seen.after.as_ref()).map(cursor::encode);
    let query = [
        ("id", Some(id)),
        ("seen", seen.map(|seen| seen.state.as_str())),
        ("seen-order", seen.map(order)),
        ("seen-after", after.as_deref()),
    ];
    with_query(&view.app.links.queue(&opened.name, "/job"), &query)
}

/// The state of a job with its times.
pub(crate) fn detail(view: &View, opened: &Opened, job: &JobView) -> Markup {
    html! {
        @match &job.detail {
            StateDetail::Ready => {
                "ready"
                @if let Some(at) = job.enqueued_at { ", pushed " (time(at)) }
            }
            StateDetail::Scheduled { due } => { "due " (time(*due)) }
            StateDetail::Following { leader, .. } => {
                "follows " a href=(job_link(view, opened, leader.as_str(), None)) {
                    (one_line(leader.as_str(), 128))
                }
            }
            StateDetail::Leased { worker, since, until } => {
                "held by " (worker) " since " (time(*since)) ", lease until " (time(*until))
            }
            StateDetail::Dead { since, .. } => { "dead since " (time(*since)) }
        }
    }
}

/// The link to the next page, and how far a search is.
fn further(view: &View, opened: &Opened, listed: &Listed, is_search: bool) -> Markup {
    let Some(next) = &listed.next else {
        return html! { p.quiet { "This is the end of the list." } };
    };
    let after = next.after.as_ref().map(cursor::encode);
    let query = [
        ("text", view.query.get("text")),
        ("in", view.query.get("in")),
        ("worker", view.query.get("worker")),
        ("batch", view.query.get("batch")),
        ("order", Some(order(next))),
        ("after", after.as_deref()),
    ];
    let address = view.app.links.queue(&opened.name, &path(next));
    let looked = counted(listed.looked_at as u64, "job", "jobs");
    html! {
        @if is_search {
            p.quiet { "The search has looked at " (looked) " and has not ended." }
        }
        p {
            a href=(with_query(&address, &query)) rel="next" {
                @if is_search { "Continue the search" } @else { "Next page" }
            }
        }
    }
}

/// Where a job was seen, or where its search continues: `prefix` is `seen` or `from`.
pub(crate) fn position_of(
    query: &Fields,
    prefix: &str,
) -> Result<Option<Position>, PageError> {
    let Some(state) = query.read_with(prefix, state)? else { return Ok(None) };
    let read_order = |word: &str| {
        Ok::<_, Infallible>(if word == "newest" {
            PeekOrder::NewestFirst
        } else {
            PeekOrder::AsServed
        })
    };
    let order =
        query.read_with(&format!("{prefix}-order"), read_order)?.unwrap_or_default();
    let after = query.read_with(&format!("{prefix}-after"), cursor::decode)?;
    Ok(Some(Position { state, order, after }))
}
