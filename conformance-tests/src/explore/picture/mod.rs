//! A picture of a run: one column for each actor, one row for each decision.

mod svg;

use std::fmt::Write as _;

pub(super) use self::svg::svg;
use super::{scene::Scene, world::Event};
use crate::spec::operation::Who;

/// The width of a column in characters.
const WIDTH: usize = 26;

/// Draws the events of a run for a terminal.
pub(super) fn text(scene: &Scene, events: &[Event]) -> String {
    let mut picture = format!("setup: {}\n\n", lines(scene));
    let actors = columns(scene);
    let heads: Vec<_> = actors.iter().map(|who| head(*who)).collect();
    let _ = writeln!(picture, "{}  jobs", row(&heads));
    for event in events {
        let cells: Vec<_> =
            actors
                .iter()
                .map(|who| {
                    if event.choice.who() == *who { cell(event) } else { String::new() }
                })
                .collect();
        let _ = writeln!(picture, "{}  {}", row(&cells), event.jobs);
        for returned in &event.returned {
            let text: String = returned.1.chars().take(100).collect();
            let at = actors.iter().position(|who| *who == returned.0).unwrap_or(0);
            let _ = writeln!(picture, "{}  = {text}", " ".repeat(at * (WIDTH + 1)));
        }
    }
    picture
}

/// Returns the actors that have a column. The last column is that of time.
fn columns(scene: &Scene) -> Vec<Who> {
    let mut actors: Vec<_> = scene.programs.keys().copied().collect();
    if !actors.contains(&Who::Nobody) {
        actors.push(Who::Nobody);
    }
    actors
}

fn lines(scene: &Scene) -> String {
    scene.setup.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn head(who: Who) -> String {
    match who {
        Who::Nobody => "time".to_owned(),
        who => format!("{who:?}"),
    }
}

fn cell(event: &Event) -> String {
    format!("{}{}", event.choice.label(), event.command)
}

fn row(cells: &[String]) -> String {
    let cells = cells.iter().map(|cell| {
        let cell: String = cell.chars().take(WIDTH).collect();
        format!("{cell:<WIDTH$}")
    });
    cells.collect::<Vec<_>>().join(" ")
}
