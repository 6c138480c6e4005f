//! The drawing on a terminal in memory: what is on the screen in each size, and the
//! pictures of `docs/pictures`.

use std::{env, fs, path::Path};

use ratatui::{
    Terminal, TerminalOptions, Viewport, backend::CrosstermBackend,
    crossterm::event::KeyCode, layout::Rect,
};
use vt100::{Cell, Color, Parser, Screen};

use crate::top::{
    asks::Answer,
    scene::{NOW, Scene},
};

/// The screen of a terminal of this size after the scene was drawn on it.
fn shown(scene: &mut Scene, (columns, lines): (u16, u16)) -> Screen {
    scene.state.size = (columns, lines);
    let viewport = Viewport::Fixed(Rect::new(0, 0, columns, lines));
    let mut bytes = Vec::new();
    let backend = CrosstermBackend::new(&mut bytes);
    let mut terminal =
        Terminal::with_options(backend, TerminalOptions { viewport }).unwrap();
    let mut status_lines = 1;
    let drawn = terminal.draw(|frame| {
        status_lines = super::draw(frame, &scene.state, scene.now, NOW);
    });
    drawn.unwrap();
    scene.state.status_lines = status_lines;
    drop(terminal);
    let mut parser =
        Parser::new(lines.try_into().unwrap(), columns.try_into().unwrap(), 0);
    parser.process(&bytes);
    parser.screen().clone()
}

fn text(scene: &mut Scene, size: (u16, u16)) -> String {
    shown(scene, size).contents()
}

#[test]
fn the_queues_are_shown_with_their_counts() {
    let shown = text(&mut Scene::new(), (100, 24));
    for words in
        ["QUEUE", "emails", "pictures", "reports", "paused", "2h13m", "3 queues"]
    {
        assert!(shown.contains(words), "{words} in\n{shown}");
    }
    let emails = shown.lines().find(|line| line.contains("emails")).unwrap();
    let words: Vec<_> = emails.split_whitespace().collect();
    assert_eq!(words[1..7], ["zset", "40", "4s", "12", "8", "143"], "{emails}");
}

#[test]
fn every_screen_fits_every_size() {
    for size in [(80, 24), (120, 40), (40, 12), (20, 6), (5, 3), (1, 1)] {
        for keys in ["", "?", "/abc"] {
            let mut scene = Scene::new();
            scene.keys(keys);
            shown(&mut scene, size);
        }
        for tab in ["1", "2", "3", "4", "5", "6"] {
            let mut scene = Scene::new();
            scene.open();
            let asked = scene.keys(tab);
            scene.serve(&asked);
            shown(&mut scene, size);
            scene.keys("x");
            shown(&mut scene, size);
            scene.keys("n");
            scene.open();
            shown(&mut scene, size);
        }
    }
}

#[test]
fn a_narrow_screen_keeps_the_most_important_columns() {
    let shown = text(&mut Scene::new(), (44, 24));
    for words in ["QUEUE", "READY", "DEAD", "emails"] {
        assert!(shown.contains(words), "{words} in\n{shown}");
    }
    assert!(!shown.contains("BACKEND"), "{shown}");
}

#[test]
fn the_selected_row_is_always_on_the_screen() {
    let mut scene = Scene::new();
    scene.open();
    for key in [KeyCode::End, KeyCode::Home, KeyCode::PageDown] {
        scene.press(key);
        let selected = scene.state.queue.as_ref().unwrap().selected_job().cloned();
        let id = selected.unwrap().id.unwrap().to_string();
        let screen = shown(&mut scene, (80, 24));
        let is_selected = |line: &String| line.contains(&format!(" {id} "));
        let row = screen.rows(0, 80).position(|line| is_selected(&line));
        let row = u16::try_from(row.unwrap()).unwrap();
        let colour = screen.cell(row, 1).unwrap().bgcolor();
        assert_ne!(colour, Color::Default, "{id}");
    }
}

#[test]
fn the_lists_of_a_queue_show_what_matters() {
    let mut scene = Scene::new();
    scene.open();
    for (tab, words) in [
        ("1", &["Ready-1", "PAYLOAD", r#"{"to":"user-1@example.org""#][..]),
        ("2", &["Leased-2", "LEFT", "28s", "mail-1.example.org 4711"]),
        ("3", &["Scheduled-2", "DUE IN", "3m10s"]),
        ("4", &["Dead-3", "5/5", "no such mailbox: user-3"]),
        ("5", &["14", "connection to smtp-#.example.org:# timed out", "not all"]),
        ("6", &["mail-2.example.org", "815", "no report", "Leased-1", "2h30m"]),
    ] {
        let asked = scene.keys(tab);
        scene.serve(&asked);
        let shown = text(&mut scene, (100, 30));
        for words in words {
            assert!(shown.contains(words), "{words} in\n{shown}");
        }
        assert!(shown.contains('█'), "a chart in\n{shown}");
    }
}

#[test]
fn a_job_is_shown_with_all_that_is_stored() {
    let mut scene = Scene::new();
    scene.open();
    let asked = scene.keys("4");
    scene.serve(&asked);
    scene.open();
    let shown = text(&mut scene, (80, 24));
    for words in
        ["Dead-1", "5 of 5", "kind=welcome", "follower-1", "user-1@example.org"]
    {
        assert!(shown.contains(words), "{words} in\n{shown}");
    }
    scene.state.queue.as_mut().unwrap().job.as_mut().unwrap().gone =
        Some("the job is done".to_owned());
    assert!(text(&mut scene, (80, 24)).contains("the job is done"));
}

#[test]
fn the_help_fits_a_small_terminal() {
    let mut scene = Scene::new();
    scene.keys("?");
    let shown = text(&mut scene, (80, 24));
    for (keys, what) in crate::top::keys::HELP {
        let line = shown.lines().find(|line| line.contains(what));
        assert!(line.is_some_and(|line| line.contains(keys)), "{keys} in\n{shown}");
    }
    assert!(shown.contains("only y says yes"), "{shown}");
}

#[test]
fn the_status_says_what_is_wrong() {
    let mut scene = Scene::new();
    scene.tick();
    scene.now += std::time::Duration::from_secs(5);
    assert!(text(&mut scene, (80, 24)).contains("waiting for the store for 5s"));
    scene.answer(Answer::Sampled(Err("connection refused".to_owned())));
    scene.now += std::time::Duration::from_secs(65);
    let shown = text(&mut scene, (80, 24));
    assert!(shown.contains("cannot be read for 1m05s: connection refused"), "{shown}");
    assert!(shown.contains("emails"), "the last counts stay: {shown}");
}

#[test]
fn a_long_reason_takes_as_many_lines_as_there_is_room_for() {
    let mut scene = Scene::new();
    let why = format!("no route: {}the end", "abcdefghi ".repeat(20));
    scene.answer(Answer::Sampled(Err(why)));
    let shown = text(&mut scene, (80, 24));
    assert!(shown.contains("the end"), "{shown}");
    assert!(shown.contains("emails") && shown.contains("Enter"), "{shown}");
    let shown = text(&mut scene, (80, 12));
    assert!(shown.contains("abcdefghi") && shown.contains('…'), "{shown}");
    assert!(shown.contains("emails") && shown.contains("Enter"), "{shown}");
}

#[test]
fn without_colours_there_are_none() {
    let mut scene = Scene::new();
    let has_colour = |screen: &Screen| {
        cells(screen).any(|cell| {
            cell.fgcolor() != Color::Default || cell.bgcolor() != Color::Default
        })
    };
    assert!(has_colour(&shown(&mut scene, (80, 24))));
    scene.state.settings.has_colours = false;
    assert!(!has_colour(&shown(&mut scene, (80, 24))));
    scene.open();
    assert!(!has_colour(&shown(&mut scene, (80, 24))));
}

fn cells(screen: &Screen) -> impl Iterator<Item = &Cell> {
    let (lines, columns) = screen.size();
    let places =
        (0..lines.get()).flat_map(move |y| (0..columns.get()).map(move |x| (y, x)));
    places.filter_map(|(y, x)| screen.cell(y, x))
}

/// The pictures of the documentation show the present drawing. `RELQ_WRITE_PICTURES=1`
/// writes them.
#[test]
fn the_pictures_are_those_of_this_version() {
    let size = (96, 24);
    let mut scene = Scene::new();
    check_picture("relq-top-queues", &shown(&mut scene, size));
    scene.open();
    let asked = scene.keys("4");
    scene.serve(&asked);
    check_picture("relq-top-queue", &shown(&mut scene, size));
    scene.open();
    check_picture("relq-top-job", &shown(&mut scene, size));
}

fn check_picture(name: &str, screen: &Screen) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/pictures");
    let file = folder.join(name).with_extension("svg");
    let picture = super::svg::picture(screen);
    if env::var_os("RELQ_WRITE_PICTURES").is_some() {
        fs::write(&file, &picture).unwrap();
    }
    let stored = fs::read_to_string(&file).unwrap_or_default();
    let file = file.display();
    assert!(stored == picture, "{file} is old: RELQ_WRITE_PICTURES=1 writes it anew");
}
