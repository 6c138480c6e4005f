//! The batches of a queue, their progress and their limits.

use std::num::NonZeroU32;

use axum::{extract::Path, response::Response};
use maud::{Markup, html};
use relq_core::batch::{BatchId, BatchQueue, BatchStatus};

use super::{
    confirm::button,
    layout::{self, Tab, time},
    payload,
};
use crate::{
    action::Action,
    links::with_query,
    page_error::PageError,
    text::number,
    view::{Opened, View},
};

/// How many batches one page has.
const PAGE: NonZeroU32 = NonZeroU32::new(50).expect("not zero");

pub(crate) async fn list(view: View, opened: Opened) -> Result<Response, PageError> {
    let after = view.query.read::<BatchId>("after")?;
    let page = batches(&opened)?.list_batches(after.as_ref(), PAGE).await?;
    let is_full = page.len() >= PAGE.get() as usize;
    let body = html! {
        h1 { "Batches" }
        @if page.is_empty() { p { "There is no batch here." } } @else {
            (table(&view, &opened, &page))
        }
        @if let Some(last) = page.last().filter(|_| is_full) {
            @let address = view.app.links.queue(&opened.name, "/batches");
            @let query = [("after", Some(last.id.as_str()))];
            p { a href=(with_query(&address, &query)) rel="next" { "Next page" } }
        }
    };
    Ok(layout::of_queue(&view, &opened, Tab::Batches, "Batches", &body))
}

pub(crate) fn batches(opened: &Opened) -> Result<&dyn BatchQueue, PageError> {
    let missing = || PageError::not_found("the backend of this queue has no batches");
    opened.queue.batch_queue().ok_or_else(missing)
}

fn table(view: &View, opened: &Opened, page: &[BatchStatus]) -> Markup {
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        @for head in ["Batch", "State", "Progress", "Ended", "Failed", "Created"] {
                            th scope="col" { (head) }
                        }
                    }
                }
                tbody {
                    @for batch in page {
                        tr {
                            th.text scope="row" {
                                a href=(link(view, opened, &batch.id)) { (batch.id) }
                            }
                            td { (batch.state) }
                            td { (bar(batch)) }
                            td.number { (number(batch.ended())) " of " (number(batch.total)) }
                            td.number { (number(batch.failed)) }
                            td { (time(batch.created_at)) }
                        }
                    }
                }
            }
        }
    }
}

fn link(view: &View, opened: &Opened, batch: &BatchId) -> String {
    view.app.links.queue(&opened.name, &format!("/batch/{batch}"))
}

fn bar(batch: &BatchStatus) -> Markup {
    let ended = batch.ended();
    html! {
        progress value=(ended) max=(batch.total.max(1))
            aria-label=(format!("{ended} of {} pieces ended", batch.total)) {}
    }
}

pub(crate) async fn show(
    view: View,
    opened: Opened,
    Path((_, id)): Path<(String, String)>,
) -> Result<Response, PageError> {
    let missing = || PageError::not_found(format!("there is no batch {id:?}"));
    let id = BatchId::new(&id).map_err(|_| missing())?;
    let batch = batches(&opened)?.batch(&id).await?.ok_or_else(missing)?;
    let is_open = !batch.state.is_completed();
    let body = html! {
        h1 { "Batch " (batch.id) }
        @if is_open {
            div.actions { (button(&view, &opened, &Action::CancelBatch(batch.id.clone()))) }
        }
        (bar(&batch))
        (record(&view, &opened, &batch))
        h2 { "Metadata" }
        (payload::redacted(&view.app, &batch.metadata))
    };
    Ok(layout::of_queue(&view, &opened, Tab::Batches, "Batch", &body))
}

fn record(view: &View, opened: &Opened, batch: &BatchStatus) -> Markup {
    let counts = [
        ("Pieces", batch.total),
        ("Done", batch.done),
        ("Failed", batch.failed),
        ("Dropped", batch.dropped),
        ("Leased", batch.leased),
        ("Waiting", batch.waiting),
    ];
    let times = [
        ("Created", Some(batch.created_at)),
        ("Sealed", batch.sealed_at),
        ("Completed", batch.completed_at),
    ];
    html! {
        dl {
            dt { "State" } dd { (batch.state) }
            @for (name, count) in counts { dt { (name) } dd { (number(count)) } }
            dt { "Priority" } dd { (batch.priority) }
            dt { "Pieces leased at once" }
            dd { @match batch.limit { Some(limit) => { "at most " (limit) } None => "no limit" } }
            @for (name, at) in times {
                @if let Some(at) = at { dt { (name) } dd { (time(at)) } }
            }
            dt { "Its jobs" }
            dd {
                @for state in ["ready", "scheduled", "leased", "dead"] {
                    @let page = view.app.links.queue(&opened.name, &format!("/jobs/{state}"));
                    a href=(with_query(&page, &[("batch", Some(batch.id.as_str()))])) { (state) }
                    " "
                }
            }
        }
    }
}
