//! `relq queues`: lists the queues of a Redis database.

use std::collections::HashSet;

use relq::redis::{self, MarkedQueue};
use serde::Serialize;

use crate::{failure::CommandResult, format::Format, output::Output, target::Target};

/// List the queues of a database on Redis, each with its backend
///
/// The command finds queues by their markers, page by page, while the server serves
/// other clients. A queue has no marker before the first write of relq.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    format: Format,
}

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        if self.format.is_json() {
            let mut records = self.format.records()?;
            each(target, |queue| records.item(&Row::of(queue))).await?;
            return records.end();
        }
        let mut out = Output::new();
        each(target, |queue| {
            let Row { queue, url, .. } = Row::of(queue);
            let url = url.unwrap_or("(its marker cannot be read)");
            out.text(&format!("{queue:<20} {url}\n"))
        })
        .await?;
        out.flush()
    }
}

#[derive(Serialize)]
struct Row<'a> {
    queue: &'a str,
    marker: Option<String>,
    url: Option<&'a str>,
}

impl<'a> Row<'a> {
    fn of(queue: &'a MarkedQueue) -> Self {
        Self {
            queue: queue.name.as_str(),
            marker: queue.marker.as_ref().map(ToString::to_string),
            url: queue.url.as_deref(),
        }
    }
}

/// Reads the queues page by page, and prints each queue once.
async fn each(
    target: &Target,
    mut show: impl FnMut(&MarkedQueue) -> CommandResult,
) -> CommandResult {
    let url = target.url()?;
    let (mut shown, mut cursor) = (HashSet::new(), Some(0));
    while let Some(from) = cursor {
        let page = redis::queues(&url, from).await?;
        for queue in &page.queues {
            if shown.insert(queue.name.clone()) {
                show(queue)?;
            }
        }
        cursor = page.next;
    }
    Ok(())
}
