//! `relq dead list --group`: the dead jobs by their errors.

use std::num::NonZeroU32;

use relq::{
    Queue,
    operator::{DeadGroup, DeadGroups},
};
use serde::Serialize;

use crate::{
    failure::{CommandResult, unless_closed},
    message::say,
    peek::Listing,
    printable::printable,
    table::Table,
    view::{ids_of, time},
};

/// How many dead jobs are grouped at most.
const MOST: NonZeroU32 = NonZeroU32::new(10_000).expect("not zero");

/// A group as JSON.
#[derive(Serialize)]
struct GroupJson<'a> {
    error: &'a str,
    example: &'a str,
    jobs: usize,
    first_ms: i64,
    last_ms: i64,
    ids: Vec<&'a str>,
}

/// Groups the dead jobs of the queue, and prints the groups with the most jobs.
pub(super) async fn print(
    queue: &dyn Queue,
    is_exact: bool,
    listing: &Listing,
) -> CommandResult {
    let mut reading = DeadGroups::new(MOST);
    if is_exact {
        reading = reading.exact();
    }
    while reading.read_page(queue).await? {}
    let groups = reading.groups();
    let shown = groups.len().min(listing.limit.get() as usize);
    unless_closed(show(&groups[..shown], listing))?;
    if reading.is_cut() {
        let dead = queue.stats().await?.dead;
        let which = if queue.inspect_queue().is_some() { "newest" } else { "oldest" };
        say(&format!("only the {which} {MOST} of {dead} dead jobs were grouped"));
    }
    if shown < groups.len() {
        let (all, limit) = (groups.len(), listing.limit);
        say(&format!("there are {all} groups: --limit {all} shows more than {limit}"));
    }
    Ok(())
}

fn show(groups: &[DeadGroup], listing: &Listing) -> CommandResult {
    if listing.format.is_json() {
        return listing.format.print_records(groups.iter().map(GroupJson::of));
    }
    if groups.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(["JOBS", "FIRST", "LAST", "ERROR"]);
    for group in groups {
        let cells = [
            group.jobs.len().to_string(),
            time(group.first),
            time(group.last),
            printable(&group.error),
        ];
        let has_example = group.example != group.error;
        table.row(cells, has_example.then(|| printable(&group.example)));
    }
    table.print()
}

impl<'a> GroupJson<'a> {
    fn of(group: &'a DeadGroup) -> Self {
        Self {
            error: &group.error,
            example: &group.example,
            jobs: group.jobs.len(),
            first_ms: group.first.unix_ms(),
            last_ms: group.last.unix_ms(),
            ids: ids_of(&group.jobs),
        }
    }
}
