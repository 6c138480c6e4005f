//! The picture of a run as SVG, for a browser.

use std::fmt::Write as _;

use super::{cell, columns, head, lines};
use crate::{
    explore::{choice::Choice, scene::Scene, world::Event},
    spec::operation::Who,
};

/// The width of an actor's column, the width of the column of jobs, and the height of a
/// line of text, in pixels.
const COLUMN: usize = 230;
const JOBS: usize = 520;
const LINE: usize = 18;

/// The most characters of a column's text, so that it stays in the column.
const COLUMN_TEXT: usize = 32;
const JOBS_TEXT: usize = 80;

/// The space above the first row: the title, the setup, and the names of the actors.
const TOP: usize = 84;

/// Draws the events of a run: a box for each command, the reply of each call below it,
/// and the place of each job beside it. Faults are red.
pub(in super::super) fn svg(scene: &Scene, events: &[Event], title: &str) -> String {
    let actors = columns(scene);
    let width = actors.len() * COLUMN + JOBS;
    let (mut body, mut y) = (String::new(), TOP);
    for event in events {
        let at = actors.iter().position(|who| *who == event.choice.who()).unwrap_or(0);
        let x = at * COLUMN;
        let _ = write!(
            body,
            "<rect x='{}' y='{y}' width='{}' height='{}' rx='3' class='{}'/>",
            x + 6,
            COLUMN - 12,
            LINE + 4,
            class(event.choice),
        );
        text(&mut body, (x + 12, y + 15), "", &cut(&cell(event), COLUMN_TEXT));
        let jobs = cut(&event.jobs, JOBS_TEXT);
        text(&mut body, (actors.len() * COLUMN + 8, y + 15), "jobs", &jobs);
        y += LINE + 6;
        for (who, reply) in &event.returned {
            let at = actors.iter().position(|known| known == who).unwrap_or(0);
            let reply = cut(reply, JOBS_TEXT);
            text(&mut body, (at * COLUMN + 12, y + 12), "reply", &format!("= {reply}"));
            y += LINE;
        }
    }
    let height = y + LINE;
    let mut heads = heads(&actors, height);
    text(&mut heads, (12, 22), "head", &cut(title.lines().next().unwrap_or(""), 150));
    let setup = format!("scene {}, setup: {}", scene.name, lines(scene));
    text(&mut heads, (12, 44), "jobs", &cut(&setup, 150));
    format!(
        "<svg xmlns='http://www.w3.org/2000/svg' width='{width}' height='{height}'>\
         <style>{STYLE}</style>{heads}{body}</svg>\n"
    )
}

/// Draws the name of each actor above its column, and its line down to `height`.
fn heads(actors: &[Who], height: usize) -> String {
    let mut heads = String::new();
    for (at, who) in actors.iter().enumerate() {
        let x = at * COLUMN;
        text(&mut heads, (x + 12, TOP - 10), "head", &head(*who));
        let middle = x + COLUMN / 2;
        let _ = write!(heads, "<path d='M{middle} {TOP}V{height}' class='life'/>");
    }
    text(&mut heads, (actors.len() * COLUMN + 8, TOP - 10), "head", "jobs");
    heads
}

const STYLE: &str = "svg{background:#fff}\
    text{font:12px monospace;fill:#222}\
    .head{font-weight:bold;font-size:13px}\
    .jobs{fill:#555}\
    .reply{fill:#06c}\
    .life{stroke:#ddd;fill:none}\
    .step{fill:#eef3fa;stroke:#8aa5c8}\
    .time{fill:#f6f1de;stroke:#c8b26a}\
    .fault{fill:#fde4e1;stroke:#d0564a}";

fn class(choice: Choice) -> &'static str {
    match choice {
        Choice::Pass(_) => "step",
        Choice::Time => "time",
        _ => "fault",
    }
}

fn text(into: &mut String, (x, y): (usize, usize), class: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = write!(into, "<text x='{x}' y='{y}' class='{class}'>{text}</text>");
}

fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_decision_has_a_box_and_each_reply_a_line() {
        let scene = Scene::read("x", "p push j | a claim 1 l0 | b claim 1 l0").unwrap();
        let event = |choice, returned| Event {
            choice,
            command: "claim <1>".to_owned(),
            returned,
            jobs: "job 1 leased".to_owned(),
        };
        let events = [
            event(
                Choice::Pass((Who::WorkerA, 0)),
                vec![(Who::WorkerA, "1 & 2".into())],
            ),
            event(Choice::Die(Who::WorkerB), Vec::new()),
        ];

        let drawn = svg(&scene, &events, "LOST: job 1");

        assert_eq!(drawn.matches("<rect").count(), 2);
        assert!(drawn.contains("LOST: job 1") && drawn.contains("= 1 &amp; 2"));
        assert!(drawn.contains("class='fault'") && drawn.contains("dies before"));
        assert!(drawn.contains("claim &lt;1&gt;"));
    }
}
