//! The dead letters of a queue, grouped by their errors.

use std::{
    num::NonZeroU32,
    time::{Duration, Instant},
};

use axum::response::Response;
use maud::{Markup, html};
use relq_core::{
    Queue,
    operator::{DeadGroup, DeadGroups},
};

use super::{
    confirm::button,
    layout::{self, Tab, time},
};
use crate::{
    action::Action,
    group_name::GroupName,
    links::with_query,
    page_error::PageError,
    text::{counted, one_line},
    view::{Opened, View},
};

/// How many dead letters are grouped.
pub(crate) const GROUPED: NonZeroU32 = NonZeroU32::new(10_000).expect("not zero");

/// After which time the page reads no further dead letters.
const READ_FOR: Duration = Duration::from_millis(100);

/// How many groups are shown.
const MOST_GROUPS: usize = 100;

pub(crate) async fn show(view: View, opened: Opened) -> Result<Response, PageError> {
    if view.app.redaction.hides_errors() {
        return Ok(hidden(&view, &opened));
    }
    let (groups, is_cut) = read(&*opened.queue).await?;
    let grouped: usize = groups.iter().map(|group| group.jobs.len()).sum();
    let body = html! {
        h1 { "Dead letters" }
        (whole(&view, &opened))
        h2 { "By error" }
        @if is_cut {
            p.notice {
                "There are more dead letters than were read for this page: the groups are of "
                (counted(grouped as u64, "of them", "of them")) "."
            }
        }
        @if groups.is_empty() { p { "There are no dead letters." } } @else {
            (table(&view, &opened, &groups))
        }
        @if groups.len() > MOST_GROUPS { p { "Only the largest " (MOST_GROUPS) " groups are shown." } }
    };
    Ok(layout::of_queue(&view, &opened, Tab::Dead, "Dead letters", &body))
}

/// The page for visitors who may not see errors.
fn hidden(view: &View, opened: &Opened) -> Response {
    let body = html! {
        h1 { "Dead letters" }
        p { "Errors are hidden by a rule, so there are no groups." }
        (whole(view, opened))
    };
    layout::of_queue(view, opened, Tab::Dead, "Dead letters", &body)
}

/// The groups of the dead letters that are read, and whether there are more than were read.
async fn read(queue: &dyn Queue) -> Result<(Vec<DeadGroup>, bool), PageError> {
    let (mut dead, began) = (DeadGroups::new(GROUPED), Instant::now());
    while dead.read_page(queue).await? {
        if began.elapsed() > READ_FOR {
            return Ok((dead.groups(), true));
        }
    }
    Ok((dead.groups(), dead.is_cut()))
}

fn whole(view: &View, opened: &Opened) -> Markup {
    html! {
        p { a href=(view.app.links.queue(&opened.name, "/jobs/dead")) { "List them one by one" } }
        div.actions {
            (button(view, opened, &Action::RetryAll))
            (button(view, opened, &Action::PurgeAll))
        }
    }
}

fn table(view: &View, opened: &Opened, groups: &[DeadGroup]) -> Markup {
    html! {
        div.scroll {
            table.stack {
                thead {
                    tr {
                        @for head in ["Error", "Jobs", "First died", "Last died", "All of the group"] {
                            th scope="col" { (head) }
                        }
                    }
                }
                tbody {
                    @for group in groups.iter().take(MOST_GROUPS) {
                        (row(view, opened, group))
                    }
                }
            }
        }
    }
}

fn row(view: &View, opened: &Opened, group: &DeadGroup) -> Markup {
    let list = view.app.links.queue(&opened.name, "/jobs/dead");
    let (part, name) = (longest_part(&group.error), GroupName(group.error.clone()));
    let query = [("text", part), ("in", part.map(|_| "errors"))];
    html! {
        tr {
            th.text.wide scope="row" {
                a href=(with_query(&list, &query)) { (one_line(name.shown(), 200)) }
            }
            td.number data-label="Jobs" { (counted(group.jobs.len() as u64, "job", "jobs")) }
            td data-label="First died" { (time(group.first)) }
            td data-label="Last died" { (time(group.last)) }
            td {
                div.actions {
                    (button(view, opened, &Action::RetryGroup(name.clone())))
                    (button(view, opened, &Action::PurgeGroup(name)))
                }
            }
        }
    }
}

/// The longest part of a group's name that each of its errors has.
fn longest_part(name: &str) -> Option<&str> {
    let parts = name.split('#').flat_map(|part| part.split("; "));
    parts.map(str::trim).max_by_key(|part| part.len()).filter(|part| !part.is_empty())
}
