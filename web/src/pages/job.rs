//! The page of one job: its whole record, and what can be done with it.

use axum::response::Response;
use maud::{Markup, html};
use relq_core::{
    Headers, JobId, Queue,
    batch::BatchId,
    operator::{JobState, JobView, StateDetail},
    results::JobResult,
};

use super::{
    confirm::button,
    jobs::{detail, job_link, order, position_of},
    layout::{self, Tab, time},
    payload,
};
use crate::{
    action::Action,
    cursor,
    jobs::{Found, Position, find},
    links::with_query,
    page_error::PageError,
    redact::ShownJob,
    text::{beginning, counted, duration, number, one_line, visible},
    view::{Opened, View},
};

pub(crate) async fn show(view: View, opened: Opened) -> Result<Response, PageError> {
    let id = view.query.need::<JobId>("id")?;
    let seen = position_of(&view.query, "seen")?;
    let from = position_of(&view.query, "from")?;
    let redaction = &view.app.redaction;
    let found = find(&*opened.queue, &id, seen, from, redaction).await?;
    let result = result(&*opened.queue, &id).await?;
    let heading = html! { h1 { "Job " (one_line(id.as_str(), 128)) } };
    let (tab, body) = match &found {
        Found::Stored(stored) => {
            let (shown, followers) = &**stored;
            let body = html! {
                (heading)
                (actions(&view, &opened, &id, &shown.job))
                (record(&view, &opened, shown, followers))
                (errors(&shown.job))
                h2 { "Payload" }
                (payload::whole(&view.app, shown))
            };
            (tab(shown.job.detail.state()), body)
        }
        Found::Searching { looked_at, next } => (
            Tab::Queue,
            html! { (heading) (searching(&view, &opened, &id, *looked_at, next)) },
        ),
        Found::Ended { was_done } => {
            (Tab::Queue, html! { (heading) p { (how_it_ended(*was_done)) } })
        }
        Found::Unknown => (Tab::Queue, html! { (heading) p { (NOT_FOUND) } }),
    };
    let whole = html! {
        (body)
        @if let Some(result) = &result {
            (became(&view, result))
        }
    };
    Ok(layout::of_queue(&view, &opened, tab, "Job", &whole))
}

/// How many headers the page shows at most.
const MAX_HEADERS: usize = 200;

const NOT_FOUND: &str = "No stored job has this id. It may have ended, or have moved from \
                         one state to another during the search.";

fn how_it_ended(was_done: bool) -> &'static str {
    if was_done {
        "The job is done."
    } else {
        "The job has ended and is not done: it was discarded, cancelled, dropped or purged."
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

/// The result of the job or its progress so far, if the job keeps a result.
async fn result(queue: &dyn Queue, id: &JobId) -> Result<Option<JobResult>, PageError> {
    let Some(results) = queue.result_queue() else { return Ok(None) };
    let mut found = results.read_results(std::slice::from_ref(id)).await?;
    Ok(found.pop().flatten())
}

/// The buttons for what the state of the job allows.
fn actions(view: &View, opened: &Opened, id: &JobId, job: &JobView) -> Markup {
    let can_run = opened.queue.inspect_queue().is_some();
    let cancel = Action::Cancel(id.clone());
    let allowed = match &job.detail {
        StateDetail::Scheduled { .. } if can_run => {
            vec![Action::RunNow(id.clone()), cancel]
        }
        StateDetail::Dead { .. } => {
            vec![Action::Retry(id.clone()), Action::Purge(id.clone())]
        }
        _ => vec![cancel],
    };
    html! {
        div.actions {
            @for action in &allowed { (button(view, opened, action)) }
        }
    }
}

fn record(
    view: &View,
    opened: &Opened,
    shown: &ShownJob,
    followers: &[JobId],
) -> Markup {
    let job = &shown.job;
    html! {
        dl {
            dt { "State" } dd { (job.detail.state().as_str()) ": " (detail(view, opened, job)) }
            dt { "Attempt" } dd { (job.attempt) " of " (job.max_attempts) }
            dt { "Priority" } dd { (job.priority) }
            @if let Some(at) = job.enqueued_at { dt { "Pushed" } dd { (time(at)) } }
            @if let Some(at) = job.expires_at { dt { "Expires" } dd { (time(at)) } }
            @if let Some(key) = &job.unique {
                dt { "Unique key" } dd { (visible(key.as_str())) }
            }
            @if let Some(lease) = job.lease { dt { "Lease" } dd { (duration(lease)) } }
            @if let Some(kept) = job.keep_result {
                dt { "Result kept for" } dd { (duration(kept)) }
            }
            @if let Some(batch) = &job.batch {
                dt { "Batch" } dd { (batch_link(view, opened, batch)) }
            }
            @if let StateDetail::Following { delay, .. } = &job.detail {
                dt { "Delay after the leader" } dd { (duration(*delay)) }
            }
            @if let Some(why) = &job.unreadable {
                dt { "Unreadable" } dd { (visible(why)) }
            }
            (headers(&job.headers, view.app.max_shown))
            @if !followers.is_empty() {
                dt { "Followers" }
                dd { (follower_links(view, opened, followers)) }
            }
        }
    }
}

/// The first headers, up to `max_shown` bytes of them. Another client may have pushed more,
/// and longer ones, than a backend takes.
fn headers(headers: &Headers, max_shown: usize) -> Markup {
    let (mut left, mut rows) = (max_shown, Vec::new());
    for (name, value) in headers.iter().take(MAX_HEADERS) {
        let texts = [name, value].map(|text| {
            let (shown, is_cut) = beginning(text.as_bytes(), left);
            left = left.saturating_sub(text.len());
            if is_cut { shown + "…" } else { shown }
        });
        rows.push(texts);
        if left == 0 {
            break;
        }
    }
    let all = headers.iter().count();
    let is_cut = rows.len() < all || headers.total_bytes() > max_shown;
    html! {
        @for [name, value] in &rows { dt { "Header " (name) } dd { (value) } }
        @if is_cut {
            dt { "All headers" }
            dd {
                (number(all as u64)) " of " (number(headers.total_bytes() as u64))
                " bytes: the page shows the beginning"
            }
        }
    }
}

fn batch_link(view: &View, opened: &Opened, batch: &BatchId) -> Markup {
    let page = view.app.links.queue(&opened.name, &format!("/batch/{batch}"));
    html! { a href=(page) { (batch) } }
}

fn follower_links(view: &View, opened: &Opened, followers: &[JobId]) -> Markup {
    html! {
        @for follower in followers {
            a href=(job_link(view, opened, follower.as_str(), None)) {
                (one_line(follower.as_str(), 128))
            } " "
        }
    }
}

fn errors(job: &JobView) -> Markup {
    html! {
        @if let StateDetail::Dead { reason, .. } = &job.detail {
            h2 { "Why it is dead" }
            pre tabindex="0" { (visible(reason)) }
        }
        @if let Some(error) = &job.last_error {
            h2 { "Error of the last attempt" }
            pre tabindex="0" { (visible(error)) }
        }
    }
}

fn became(view: &View, result: &JobResult) -> Markup {
    html! {
        @match result {
            JobResult::Unfinished { progress: Some(progress) } => {
                h2 { "Progress" }
                (payload::redacted(&view.app, progress))
            }
            JobResult::Done { result } => {
                h2 { "Result" }
                (payload::redacted(&view.app, result))
            }
            JobResult::Cancelled { leader: Some(leader) } => {
                p { "It was cancelled because " (visible(leader.as_str())) " was not done." }
            }
            _ => {}
        }
    }
}

fn searching(
    view: &View,
    opened: &Opened,
    id: &JobId,
    looked_at: usize,
    next: &Position,
) -> Markup {
    let after = next.after.as_ref().map(cursor::encode);
    let query = [
        ("id", Some(id.as_str())),
        ("from", Some(next.state.as_str())),
        ("from-order", Some(order(next))),
        ("from-after", after.as_deref()),
    ];
    let address = view.app.links.queue(&opened.name, "/job");
    html! {
        p {
            "The search has looked at " (counted(looked_at as u64, "job", "jobs"))
            " and has not found it: this backend has no index of these jobs."
        }
        p { a href=(with_query(&address, &query)) { "Continue the search" } }
    }
}
