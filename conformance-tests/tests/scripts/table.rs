//! Generates `SCRIPT_MUTANTS.md`, the table of all changes of scripts, and checks it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    fs,
};

use crate::{
    change::{self, Change},
    judge::{self, Known, Tried},
    survivors::{OTHERS, SURVIVORS},
};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/SCRIPT_MUTANTS.md");

/// The text in the row of a change that no test case catches and that has no reason
/// yet.
const OPEN: &str = "NOT LOOKED AT";

const HEAD: &str = "\
# Mutants of the scripts

Small changes of zset's Lua scripts, and the cases that catch each. A change leaves out
one write, inverts one comparison or one `not`, or leaves out one call of a function.
Only the functional cases judge it. The step sweeps, the model and the mutants of
`MUTANTS.md` do not.

A change is tried on the cases that may run it, until three have caught it. A case that
has caught nothing by then is tried on all other changes. This command makes the page:
`cargo test -p relq-conformance --test scripts -- --ignored`.

";

/// Tries all changes, and writes the table.
#[test]
#[ignore = "takes a quarter of an hour"]
fn the_table_is_made() {
    std::panic::set_hook(Box::new(|_| {}));
    let changes = change::all();
    let is_more = std::env::var("SCRIPT_MUTANTS").is_ok_and(|what| what == "more");
    let known = if is_more { caught_before() } else { Known::new() };
    let tried = judge::all(&changes, &known);
    fs::write(PATH, table(&changes, &tried)).unwrap();
}

/// Reads from the existing table which cases fail for which changes of the scripts. A
/// change that no case notices, and for which no reason is given yet, is left out, so
/// that it is tried again.
fn caught_before() -> Known {
    let table = fs::read_to_string(PATH).unwrap();
    let told = rows_of(&table);
    let is_settled = |row: &&Row| !row.is_open;
    let settled = told.iter().filter(is_settled).map(|row| row.change.clone());
    let mut known: Known = settled.map(|name| (name, BTreeSet::new())).collect();
    for case in judge::functional() {
        let start = format!("\n| `{case}` | ");
        let row = table.split_once(&start).map_or("", |(_, rest)| rest);
        let row = row.lines().next().unwrap_or_default().trim_end_matches(" |");
        for number in row.split(", ") {
            let number = number.trim_end_matches('!').parse::<usize>();
            if let Some(row) = number.ok().and_then(|it| told.get(it - 1)) {
                known.entry(row.change.clone()).or_default().insert(case);
            }
        }
    }
    known
}

fn table(changes: &[Change], tried: &[Tried]) -> String {
    let caught: Vec<_> = tried.iter().map(Tried::caught).collect();
    let mut by_case = BTreeMap::<&str, Vec<String>>::new();
    for (at, cases) in caught.iter().enumerate() {
        let is_alone = cases.len() == 1;
        for case in cases {
            let sign = if is_alone { "!" } else { "" };
            by_case.entry(case).or_default().push(format!("{}{sign}", at + 1));
        }
    }
    let mut made = HEAD.to_owned();
    let survive = caught.iter().filter(|cases| cases.is_empty()).count();
    let all = changes.len();
    writeln!(made, "{} of {all} changes are caught.\n", all - survive).unwrap();
    made += "## What each case catches\n\n";
    made += "By the numbers of the changes below; with `!`, what no other case catches.\n\n";
    made += "| case | changes |\n|---|---|\n";
    for case in judge::functional() {
        let none = || format!("none: {}", reason(OTHERS, case));
        let catches = by_case.get(case).map_or_else(none, |all| all.join(", "));
        writeln!(made, "| `{case}` | {catches} |").unwrap();
    }
    made +=
        "\n## What catches each change\n\n| | change | caught by |\n|--:|---|---|\n";
    for (at, (change, cases)) in changes.iter().zip(&caught).enumerate() {
        let name = escaped(&change.name);
        let first: Vec<_> =
            cases.iter().take(4).map(|case| format!("`{case}`")).collect();
        let by = if first.is_empty() {
            format!("none: {}", reason(SURVIVORS, &change.name))
        } else {
            first.join(", ")
        };
        writeln!(made, "| {} | {name} | {by} |", at + 1).unwrap();
    }
    made
}

fn reason(reasons: &[(&str, &'static str)], of: &str) -> &'static str {
    let known = reasons.iter().find(|(name, _)| *name == of);
    known.map_or(OPEN, |(_, why)| why)
}

fn escaped(name: &str) -> String {
    name.replace('|', "\\|")
}

/// A row of the table, for one change.
struct Row {
    change: String,
    survives: bool,
    /// Whether no test case catches the change, and no reason is given for that yet.
    is_open: bool,
}

/// Returns the rows of the table, in the order of the table.
fn rows_of(table: &str) -> Vec<Row> {
    let rows = table.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.splitn(2, " | ");
        cells.next()?.parse::<usize>().ok()?;
        let (change, by) = cells.next()?.rsplit_once(" | ")?;
        let (survives, is_open) = (by.starts_with("none: "), by.contains(OPEN));
        Some(Row { change: change.replace("\\|", "|"), survives, is_open })
    });
    rows.collect()
}

/// The table must list the changes of the current scripts.
#[test]
fn the_table_has_every_change() {
    let told = rows_of(&fs::read_to_string(PATH).unwrap());
    let told: BTreeSet<_> = told.into_iter().map(|row| row.change).collect();
    let made: BTreeSet<_> = change::all().into_iter().map(|one| one.name).collect();

    let different: Vec<_> = told.symmetric_difference(&made).collect();

    assert_eq!(different, [""; 0], "cargo test --test scripts -- --ignored");
}

/// The table must list the current cases.
#[test]
fn the_table_has_every_case() {
    let table = fs::read_to_string(PATH).unwrap();

    let missing: Vec<_> = judge::functional()
        .into_iter()
        .filter(|case| !table.contains(&format!("\n| `{case}` | ")))
        .collect();

    assert_eq!(missing, [""; 0], "cargo test --test scripts -- --ignored");
}

/// Each change that no test case catches has exactly one reason, and so has each test
/// case that catches no change.
#[test]
fn all_that_is_not_caught_has_a_reason() {
    let table = fs::read_to_string(PATH).unwrap();
    let survive: BTreeSet<_> = rows_of(&table)
        .into_iter()
        .filter(|row| row.survives)
        .map(|row| row.change)
        .collect();
    let reasons: BTreeSet<_> =
        SURVIVORS.iter().map(|(name, _)| (*name).to_owned()).collect();

    let different: Vec<_> = survive.symmetric_difference(&reasons).collect();

    assert_eq!(different, [""; 0]);
    assert!(!table.contains(OPEN), "everything has a reason");
}

/// The reason why a test case catches no change may refer to `MUTANTS.md`. Then that
/// file must list the test case.
#[test]
fn a_case_that_catches_no_change_catches_a_mutant() {
    let mutants = include_str!("../../MUTANTS.md");

    let idle: Vec<_> = OTHERS
        .iter()
        .filter(|(case, why)| {
            why.contains("MUTANTS.md") && !mutants.contains(&format!("\n| `{case}` | "))
        })
        .collect();

    assert_eq!(idle, [] as [&(&str, &str); 0]);
}
