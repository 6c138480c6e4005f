//! The pages of the guide, run: each command of each block for a shell runs as a reader
//! would type it, in the order of the page, and the options and files that the pages name
//! exist.
//!
//! [`table`] says of each command what it prints, or why it is not run. A command that it
//! does not have fails the tests.

#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

mod blocks;
mod files;
mod options;
mod pages;
mod reader;
mod table;

use std::collections::BTreeSet;

use table::{NOT_RUN, PAGES, Page};

/// Each command of a block for a shell has its row in the table, in the order of the page.
#[test]
fn each_command_of_a_page_is_run_or_listed_with_a_reason() {
    let mut wrong = Vec::new();
    for (path, text) in pages::all() {
        let known = PAGES.iter().find(|page| page.path == path);
        let mut rows = known.map_or(&[][..], |page| page.rows).iter();
        for command in blocks::commands_of_page(&text) {
            if is_left_out(&command) {
                continue;
            }
            match rows.next() {
                Some(row) if command.starts_with(row.begins()) => {}
                row => wrong.push(format!(
                    "{path}: `{command}` is where the table has {:?}",
                    row.map(table::Row::begins)
                )),
            }
        }
        let left: Vec<_> = rows.map(table::Row::begins).collect();
        if !left.is_empty() {
            wrong.push(format!("{path}: the page does not have the rows {left:?}"));
        }
    }
    assert!(wrong.is_empty(), "cli/tests/guide/table:\n{}", wrong.join("\n"));
}

/// A row, a page or a reason that nothing needs is removed.
#[test]
fn the_table_has_nothing_that_no_page_has() {
    let pages = pages::all();
    let paths: BTreeSet<_> = pages.iter().map(|(path, _)| path.as_str()).collect();
    for page in PAGES {
        assert!(paths.contains(page.path), "there is no page {}", page.path);
    }
    let commands: Vec<_> =
        pages.iter().flat_map(|(_, text)| blocks::commands_of_page(text)).collect();
    for (begins, _) in NOT_RUN {
        let is_used = commands.iter().any(|command| command.starts_with(begins));
        assert!(is_used, "no command begins with {begins}");
    }
}

macro_rules! pages_that_run {
    ($($name:ident: $path:literal,)*) => {
        $(#[test] fn $name() { reader::follow(page($path)); })*

        #[test]
        fn each_page_of_the_table_has_a_test() {
            let tested = BTreeSet::from([$($path),*]);
            let listed: BTreeSet<_> = PAGES.iter().map(|page| page.path).collect();
            assert_eq!(tested, listed);
        }
    };
}

pages_that_run! {
    the_readme: "README.md",
    followers: "docs/followers.md",
    measurements: "docs/measurements.md",
    producers: "docs/producers.md",
    results: "docs/results.md",
    scale: "docs/scale.md",
    schedules: "docs/schedules.md",
    the_program: "docs/shell.md",
    the_web_page: "web/README.md",
}

/// Whether no page runs a command that begins like this one.
fn is_left_out(command: &str) -> bool {
    NOT_RUN.iter().any(|(begins, _)| command.starts_with(begins))
}

fn page(path: &str) -> &'static Page {
    PAGES.iter().find(|page| page.path == path).unwrap()
}
