//! The page of a queue: its counts, the last hour, pause and resume.

use axum::response::Response;
use maud::{Markup, html};
use relq_core::{QueueName, Stats};

use super::{
    confirm::button,
    layout::{self, Tab},
    overview::charts,
};
use crate::{
    action::Action,
    page_error::PageError,
    text::{duration, number, visible},
    view::{Opened, View},
};

pub(crate) async fn show(view: View, opened: Opened) -> Result<Response, PageError> {
    let stats = opened.queue.stats().await?;
    let known = view.app.sampler.known(&opened.name);
    let body = html! {
        h1 { (visible(opened.name.as_str())) }
        (state(&view, &opened, &stats))
        div.tiles {
            (tile(&opened.name, "Ready", "ready", stats.ready))
            (tile(&opened.name, "Scheduled", "scheduled", stats.scheduled))
            (tile(&opened.name, "Leased", "leased", stats.leased))
            (tile(&opened.name, "Dead", "dead", stats.dead))
        }
        @if let Some(known) = &known {
            h2 { "The last hour" }
            div.charts {
                @for chart in charts(known) { (chart.figure()) }
            }
            p.quiet {
                "From samples that this page keeps in memory while it runs. "
                "Now " span data-queue=(opened.name) data-count="rate" {
                    (crate::live::rate(known))
                } " jobs end."
            }
        }
        h2 { "Since the queue was created or purged" }
        (details(&opened, &stats))
    };
    Ok(layout::of_queue(&view, &opened, Tab::Queue, "Queue", &body))
}

fn state(view: &View, opened: &Opened, stats: &Stats) -> Markup {
    let action = if stats.paused { Action::Resume } else { Action::Pause };
    html! {
        p {
            @if stats.paused {
                span.bad { "Paused" } ": workers claim no jobs."
            } @else {
                span.good { "Running" } ": workers can claim jobs."
            }
        }
        div.actions { (button(view, opened, &action)) }
    }
}

fn tile(queue: &QueueName, name: &str, count: &str, value: u64) -> Markup {
    html! {
        div.tile {
            b data-queue=(queue) data-count=(count) { (number(value)) }
            span.quiet { (name) }
        }
    }
}

fn details(opened: &Opened, stats: &Stats) -> Markup {
    let counts = [
        ("Done", stats.finished),
        ("Discarded", stats.discarded),
        ("Cancelled", stats.cancelled),
        ("Leases that have expired", stats.overdue),
    ];
    html! {
        dl {
            @for (name, value) in counts {
                dt { (name) } dd { (number(value)) }
            }
            dt { "Oldest ready job" }
            dd { (stats.oldest_ready_age.map_or_else(|| "–".to_owned(), duration)) }
            dt { "Next scheduled job" }
            dd {
                @match stats.next_due_in {
                    Some(left) if left.is_zero() => "due",
                    Some(left) => { "in " (duration(left)) }
                    None => "–",
                }
            }
            dt { "Backend" }
            dd { (opened.queue.capabilities().backend) }
        }
    }
}
