//! The page of each backend: all changes of its scripts. It is made by hand, and checked in
//! each run.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    fs,
    path::PathBuf,
};

use crate::{
    change::{Change, Scope},
    code::Code,
    judge::{self, Known, Tried},
};

/// Why changes are caught by no test case, or why test cases catch no change: each reason
/// with the names to which it applies.
pub(crate) type Reasons = &'static [(&'static str, &'static [&'static str])];

/// The names that have a reason, each with it.
pub(crate) fn named(
    reasons: Reasons,
) -> impl Iterator<Item = (&'static str, &'static str)> {
    reasons.iter().flat_map(|(why, names)| names.iter().map(move |name| (*name, *why)))
}

/// The text in the row of a change that no test case catches and that has no reason
/// yet.
const OPEN: &str = "not looked at yet";

/// The content of the page of a backend, and how it is made.
pub(crate) struct Page {
    /// The name of the backend.
    pub(crate) backend: &'static str,
    pub(crate) code: Code,
    pub(crate) has_batches: bool,
    /// How many test cases must catch a change. Afterwards only cases that have caught no
    /// change yet are tried on it.
    pub(crate) enough: usize,
    /// The changes that no test case catches, each with its reason.
    pub(crate) survivors: Reasons,
    /// Whether the page says what each test case catches. Then each case that has caught
    /// nothing is tried on all changes.
    pub(crate) lists_cases: bool,
    /// The test cases that catch no change.
    pub(crate) other_cases: Reasons,
}

impl Page {
    fn path(&self) -> PathBuf {
        let name = format!("script-mutants/{}.md", self.backend);
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path()).unwrap()
    }

    /// The command that makes the page.
    fn command(&self) -> String {
        let test = self.backend.replace('-', "_");
        format!("cargo test -p relq-conformance --test scripts -- --ignored {test}")
    }

    /// Tries all changes, and writes the page.
    pub(crate) fn make(&self) {
        std::panic::set_hook(Box::new(|_| {}));
        let changes = self.code.changes();
        let known = match std::env::var("SCRIPT_MUTANTS").as_deref() {
            Ok("more") => self.caught_before(|row| !row.is_open),
            Ok("new") => self.caught_before(|_| true),
            _ => Known::new(),
        };
        let tried = judge::all(self, &changes, &known);
        fs::write(self.path(), self.table(&changes, &tried)).unwrap();
    }

    /// Reads from the existing page which cases fail for which changes. A change whose row is
    /// not settled is left out, so that it is tried again.
    fn caught_before(&self, is_settled: fn(&Row) -> bool) -> Known {
        let cases = judge::functional(self);
        let settled = rows_of(&self.text()).into_iter().filter(is_settled);
        let known = settled.map(|row| {
            let by = cases.iter().filter(|case| row.by.contains(&format!("`{case}`")));
            (row.change, by.copied().collect())
        });
        let mut known: Known = known.collect();
        self.add_listed(&mut known);
        known
    }

    /// Adds what the table of the cases says: the table of the changes names at most four
    /// cases for each.
    fn add_listed(&self, known: &mut Known) {
        let text = self.text();
        let rows = rows_of(&text);
        for case in judge::functional(self) {
            let start = format!("\n| `{case}` | ");
            let row = text.split_once(&start).map_or("", |(_, rest)| rest);
            let row = row.lines().next().unwrap_or_default().trim_end_matches(" |");
            for number in row.split(", ") {
                let number = number.trim_end_matches('!').parse::<usize>();
                if let Some(row) = number.ok().and_then(|it| rows.get(it - 1)) {
                    known.entry(row.change.clone()).or_default().insert(case);
                }
            }
        }
    }

    fn head(&self) -> String {
        let backend = self.backend;
        let (title, what, changes) = match self.code {
            Code::Lua { changes, .. } => {
                let (what, left_out) = match changes {
                    Scope::All => (format!("{backend}'s Lua scripts"), ""),
                    Scope::Own => (
                        format!("the Lua code that {backend} has beside zset's"),
                        "Calls of functions that check the\ntypes of keys are left \
                         out, which the server faults try.\n",
                    ),
                    Scope::OwnAndUnnoticed => (
                        format!("the Lua code that {backend} runs"),
                        "What a case catches\non zset is left out, and so are calls of \
                         functions that check the types of keys, which the\nserver faults \
                         try. ",
                    ),
                };
                let changes = format!(
                    "A change leaves out one write, inverts one comparison or one `not`, or \
                     leaves out one call\nof a function. {left_out}"
                );
                ("scripts", what, changes)
            }
            Code::Sql => (
                "statements",
                format!("{backend}'s SQL statements"),
                "A change leaves out one condition, one assignment or the whole write, inverts \
                 one condition,\nor reverses one term of an order. The triggers of the schema \
                 are changed in the same way.\n"
                    .to_owned(),
            ),
        };
        let cases = match (self.enough, self.lists_cases) {
            (1, _) => "until one has caught it.",
            (_, false) => "until three have caught it.",
            (_, true) => {
                "until three have caught it.\nA case that has caught nothing by then is tried \
                 on all other changes."
            }
        };
        let command = self.command();
        format!(
            "\
# Mutants of {backend}'s {title}

Small changes of {what}, and the cases that catch each.
{changes}Only the functional cases judge it. The step sweeps, the model and
the mutants of [MUTANTS.md](../MUTANTS.md) do not.

A change is tried on the cases that may run it, {cases}
This command makes the page:
`{command}`.

"
        )
    }

    fn table(&self, changes: &[Change], tried: &[Tried]) -> String {
        let caught: Vec<_> = tried.iter().map(Tried::caught).collect();
        let mut made = self.head();
        let survive = caught.iter().filter(|cases| cases.is_empty()).count();
        let all = changes.len();
        writeln!(made, "{} of {all} changes are caught.\n", all - survive).unwrap();
        if self.lists_cases {
            made += &self.table_of_cases(&caught);
        }
        made +=
            "## What catches each change\n\n| | change | caught by |\n|--:|---|---|\n";
        for (at, (change, cases)) in changes.iter().zip(&caught).enumerate() {
            let name = escaped(&change.name);
            let first: Vec<_> =
                cases.iter().take(4).map(|case| format!("`{case}`")).collect();
            let by = if first.is_empty() {
                format!("none: {}", reason(self.survivors, &change.name))
            } else {
                first.join(", ")
            };
            writeln!(made, "| {} | {name} | {by} |", at + 1).unwrap();
        }
        made
    }

    fn table_of_cases(&self, caught: &[BTreeSet<&str>]) -> String {
        let mut by_case = BTreeMap::<&str, Vec<String>>::new();
        for (at, cases) in caught.iter().enumerate() {
            let is_alone = cases.len() == 1;
            for case in cases {
                let sign = if is_alone { "!" } else { "" };
                by_case.entry(case).or_default().push(format!("{}{sign}", at + 1));
            }
        }
        let mut made = "\
## What each case catches

By the numbers of the changes below; with `!`, what no other case catches.

| case | changes |
|---|---|
"
        .to_owned();
        for case in judge::functional(self) {
            let none = || format!("none: {}", reason(self.other_cases, case));
            let catches = by_case.get(case).map_or_else(none, |all| all.join(", "));
            writeln!(made, "| `{case}` | {catches} |").unwrap();
        }
        made.push('\n');
        made
    }

    /// The page must list the changes of the current scripts.
    pub(crate) fn check_changes(&self) {
        let told: BTreeSet<_> =
            rows_of(&self.text()).into_iter().map(|row| row.change).collect();
        let made: BTreeSet<_> =
            self.code.changes().into_iter().map(|change| change.name).collect();

        let different: Vec<_> = told.symmetric_difference(&made).collect();

        assert_eq!(different, [""; 0], "{}", self.command());
    }

    /// The page must list the current cases.
    pub(crate) fn check_cases(&self) {
        let text = self.text();

        let missing: Vec<_> = judge::functional(self)
            .into_iter()
            .filter(|case| {
                self.lists_cases && !text.contains(&format!("\n| `{case}` | "))
            })
            .collect();

        assert_eq!(missing, [""; 0], "{}", self.command());
    }

    /// Each reason belongs to a change that no test case catches, and is on the page. No such
    /// change, and no test case that catches none, is without a reason.
    pub(crate) fn check_reasons(&self) {
        let text = self.text();
        let survive: BTreeSet<_> = rows_of(&text)
            .into_iter()
            .filter(|row| row.by.starts_with("none: ") && !row.is_open)
            .map(|row| row.change)
            .collect();
        let reasons: BTreeSet<_> =
            named(self.survivors).map(|(name, _)| name.to_owned()).collect();

        let different: Vec<_> = survive.symmetric_difference(&reasons).collect();

        assert_eq!(different, [""; 0]);
        assert!(!text.contains(OPEN), "a change has no reason yet");
    }

    /// The reason why a test case catches no change may refer to `MUTANTS.md`. Then that
    /// file must list the test case.
    pub(crate) fn check_idle_cases(&self) {
        let mutants = include_str!("../../MUTANTS.md");

        let idle: Vec<_> = named(self.other_cases)
            .filter(|(case, why)| {
                why.contains("MUTANTS.md")
                    && !mutants.contains(&format!("\n| `{case}` | "))
            })
            .collect();

        assert_eq!(idle, []);
    }
}

fn reason(reasons: Reasons, of: &str) -> &'static str {
    let known = named(reasons).find(|(name, _)| *name == of);
    known.map_or(OPEN, |(_, why)| why)
}

fn escaped(name: &str) -> String {
    name.replace('|', "\\|")
}

/// A row of the table of changes.
struct Row {
    change: String,
    /// The test cases that catch the change, or why none does.
    by: String,
    /// Whether no test case catches the change and nobody has said why.
    is_open: bool,
}

/// Returns the rows of the table of changes, in its order.
fn rows_of(page: &str) -> Vec<Row> {
    let rows = page.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.splitn(2, " | ");
        cells.next()?.parse::<usize>().ok()?;
        let (change, by) = cells.next()?.rsplit_once(" | ")?;
        let is_open = by.contains(OPEN);
        Some(Row { change: change.replace("\\|", "|"), by: by.to_owned(), is_open })
    });
    rows.collect()
}
