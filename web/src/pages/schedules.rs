//! The schedules of a queue.

use axum::response::Response;
use maud::{Markup, html};
use relq_core::{environment::Timestamp, schedule::Schedule};
use relq_schedule::ScheduleSpec;

use super::{
    layout::{self, Tab, time},
    payload::preview,
};
use crate::{
    page_error::PageError,
    text::visible,
    view::{Opened, View},
};

/// How many schedules are shown.
const MOST: usize = 500;

pub(crate) async fn show(view: View, opened: Opened) -> Result<Response, PageError> {
    let missing =
        || PageError::not_found(opened.queue.capabilities().why_no_schedules());
    let found = opened.queue.schedule_queue().ok_or_else(missing)?.schedules().await?;
    let shown = &found.schedules[..found.schedules.len().min(MOST)];
    let body = html! {
        h1 { "Schedules" }
        @if shown.is_empty() { p { "The queue has no schedules." } } @else {
            (table(&view, shown, found.now))
        }
        @if found.schedules.len() > MOST { p { "Only the first " (MOST) " are shown." } }
        @for entry in &found.unreadable {
            p.bad { "Not a schedule: " (visible(entry)) }
        }
        p.quiet {
            "A tick in the past is pushed by the next scheduler that runs. The program "
            "removes a schedule with " code { "relq cron remove" } "."
        }
    };
    Ok(layout::of_queue(&view, &opened, Tab::Schedules, "Schedules", &body))
}

fn table(view: &View, schedules: &[Schedule], now: Timestamp) -> Markup {
    html! {
        div.scroll {
            table {
                thead {
                    tr {
                        @for head in ["Schedule", "Times", "Missed ticks", "Last tick", "Next tick", "Payload"] {
                            th scope="col" { (head) }
                        }
                    }
                }
                tbody {
                    @for schedule in schedules {
                        tr {
                            th.text scope="row" { (schedule.name) }
                            (cells(view, schedule, now))
                        }
                    }
                }
            }
        }
    }
}

fn cells(view: &View, schedule: &Schedule, now: Timestamp) -> Markup {
    let spec = match ScheduleSpec::from_definition(&schedule.definition) {
        Ok(spec) => spec,
        Err(error) => {
            return html! { td.bad colspan="5" { (visible(&error.to_string())) } };
        }
    };
    let due = spec.due(schedule.last_tick, now);
    let next = due.ticks.first().copied().or(due.next);
    let detail = relq_core::operator::StateDetail::Ready;
    let job =
        relq_core::operator::JobView::new(None, spec.job().payload.clone(), detail);
    html! {
        td.text { (visible(&spec.times().to_string())) }
        td { (spec.missed_ticks()) }
        td { (time(schedule.last_tick)) }
        td { @match next { Some(next) => (time(next)), None => "never" } }
        td.text.wide { (preview(&view.app.redaction.apply(job))) }
    }
}
