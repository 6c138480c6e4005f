//! Generates every small change that the tests make to the statements of SQLite, one at a
//! time.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    ops::Range,
    path::Path,
};

use crate::{
    change::{Change, number_those_alike},
    source::Source,
};

/// Each condition, with the one that means the opposite. A longer one comes before those
/// that it contains.
const TURNED: [(&str, &str); 12] = [
    (" IS NOT NULL", " IS NULL"),
    (" IS NULL", " IS NOT NULL"),
    (" NOT IN (", " IN ("),
    (" IN (", " NOT IN ("),
    ("NOT EXISTS (", "EXISTS ("),
    ("EXISTS (", "NOT EXISTS ("),
    (" = ", " <> "),
    (" <> ", " = "),
    (" < ", " >= "),
    (" >= ", " < "),
    (" > ", " <= "),
    (" <= ", " > "),
];

/// The words that end the clause before them.
const NEXT_CLAUSE: [&str; 10] = [
    "FROM",
    "WHERE",
    "GROUP",
    "HAVING",
    "ORDER",
    "LIMIT",
    "RETURNING",
    "UNION",
    "ON CONFLICT",
    "WINDOW",
];

/// Statements that no test case can judge. `audit` looks for damage, and relq-sqlite's own
/// tests damage the file; the others belong to calls that only SQLite has.
const OF_NO_CASE: [&str; 4] =
    ["audit", "lock_take", "queue_list", "temporary_namesake"];

/// The schema version that creates the triggers which run today. The other versions create
/// tables, or triggers that this one replaces.
const SCHEMA: &str = "schema_9";

/// Every change of the statements in `sql/`.
pub(crate) fn all() -> Vec<Change> {
    files().iter().flat_map(|(name, text)| of_file(name, text)).collect()
}

/// Returns the text of each statement that is changed, by its name.
pub(crate) fn files() -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../backend-sqlite/sql");
    let mut files = BTreeMap::new();
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let is_schema = name.starts_with("schema_");
        if !OF_NO_CASE.contains(&name) && (!is_schema || name == SCHEMA) {
            files.insert(name.to_owned(), fs::read_to_string(&path).unwrap());
        }
    }
    files
}

/// A piece of text, what replaces it, and the name of the change.
type Spot = (Range<usize>, String, String);

fn of_file(file: &str, text: &str) -> Vec<Change> {
    let sql = Sql { text, source: Source::read(text) };
    let mut spots = sql.turned_conditions();
    spots.extend(sql.conditions_left_out());
    spots.extend(sql.assignments_left_out());
    spots.extend(sql.orders_reversed());
    spots.extend(sql.write_left_out());
    spots.sort_by_key(|(range, ..)| (range.start, range.end));
    let change = |(range, to, what): Spot| Change {
        name: format!("{file}: {what}"),
        from: text.to_owned(),
        to: [&text[..range.start], &to, &text[range.end..]].concat(),
        scripts: BTreeSet::from([file.to_owned()]),
    };
    number_those_alike(spots.into_iter().map(change).collect())
}

struct Sql<'a> {
    text: &'a str,
    source: Source<'a>,
}

impl Sql<'_> {
    fn turned_conditions(&self) -> Vec<Spot> {
        let assigned: Vec<_> =
            self.assignments().into_iter().map(|it| it.sign).collect();
        let mut spots: Vec<Spot> = Vec::new();
        for (from, to) in TURNED {
            for at in self.source.find(from) {
                let range = at..at + from.len();
                let is_part = |(known, ..): &Spot| known.contains(&at);
                if assigned.contains(&at) || spots.iter().any(is_part) {
                    continue;
                }
                let line = self.text[..at].rfind('\n').map_or(0, |at| at + 1);
                let line = self.text[line..].lines().next().unwrap().trim();
                let what = format!("`{}` for `{}` in `{line}`", to.trim(), from.trim());
                spots.push((range, to.to_owned(), what));
            }
        }
        spots
    }

    /// One condition less. It stays in the text, so that the parameters keep their numbers.
    fn conditions_left_out(&self) -> Vec<Spot> {
        let clauses = self.words("WHERE").into_iter();
        let conditions = clauses.flat_map(|at| self.split(at + 5, "AND "));
        let left_out = conditions.map(|range| {
            let condition = &self.text[range.clone()];
            let what = format!("without `{}`", on_one_line(condition));
            (range.clone(), format!("({condition}\nOR 1)"), what)
        });
        left_out.collect()
    }

    fn assignments_left_out(&self) -> Vec<Spot> {
        let left_out = self.assignments().into_iter().map(|one| {
            let value = &self.text[one.value.clone()];
            let to = format!("iif(1, {}.{}, {value})", one.table, one.column);
            let what = format!("without `{} = {}`", one.column, on_one_line(value));
            (one.value, to, what)
        });
        left_out.collect()
    }

    fn orders_reversed(&self) -> Vec<Spot> {
        let clauses = self.words("ORDER BY").into_iter();
        let terms = clauses.flat_map(|at| self.split(at + 8, ","));
        let reversed = terms.map(|range| {
            let term = &self.text[range.clone()];
            let to = match term.strip_suffix(" DESC") {
                Some(term) => term.to_owned(),
                None => format!("{term} DESC"),
            };
            let what = format!("`{to}` for `{term}` in an order");
            (range, to, what)
        });
        reversed.collect()
    }

    /// The statement changes no row.
    fn write_left_out(&self) -> Option<Spot> {
        let what = "without the write".to_owned();
        let is_one = |word: &&str| self.words(word).contains(&self.start());
        let kind = ["INSERT", "UPDATE", "DELETE"].into_iter().find(is_one)?;
        let outside = |at: &usize| self.depth(*at) == 0;
        if let Some(at) = self.words("WHERE").into_iter().find(outside) {
            return Some((at..at + 5, "WHERE 0 AND".to_owned(), what));
        }
        let values = self.words("VALUES").into_iter().find(outside)?;
        let values = self.split(values, "\0").remove(0);
        let rows = format!("SELECT * FROM ({}) WHERE 0", &self.text[values.clone()]);
        (kind == "INSERT").then_some((values, rows, what))
    }

    /// Where the statement begins, behind its comment.
    fn start(&self) -> usize {
        let is_code = |at: &usize| {
            self.source.is_code(*at) && self.text.as_bytes()[*at].is_ascii_alphabetic()
        };
        (0..self.text.len()).find(is_code).unwrap()
    }

    /// In how many brackets this offset is.
    fn depth(&self, at: usize) -> i32 {
        let code = (0..at).filter(|at| self.source.is_code(*at));
        let sign = |at| match self.text.as_bytes()[at] {
            b'(' => 1,
            b')' => -1,
            _ => 0,
        };
        code.map(sign).sum()
    }

    /// The offsets at which these words occur as whole words of code.
    fn words(&self, words: &str) -> Vec<usize> {
        let found = self.source.find(words).into_iter();
        found.filter(|at| self.is_word(*at, words)).collect()
    }

    fn is_word(&self, at: usize, words: &str) -> bool {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let bytes = self.text.as_bytes();
        let behind = bytes.get(at + words.len());
        self.text[at..].starts_with(words)
            && (at == 0 || !is_name(bytes[at - 1]))
            && !behind.is_some_and(|byte| is_name(*byte))
    }

    /// Splits a clause from this offset on at each separator that is outside of brackets.
    fn split(&self, start: usize, separator: &str) -> Vec<Range<usize>> {
        let bytes = self.text.as_bytes();
        let (mut parts, mut begin, mut depth, mut at) = (Vec::new(), start, 0, start);
        while at < bytes.len() {
            if self.source.is_code(at) {
                match bytes[at] {
                    b')' if depth == 0 => break,
                    b';' => break,
                    b'(' => depth += 1,
                    b')' => depth -= 1,
                    _ if depth > 0 => {}
                    _ if NEXT_CLAUSE.iter().any(|word| self.is_word(at, word)) => break,
                    _ if self.text[at..].starts_with(separator) => {
                        parts.push(begin..at);
                        begin = at + separator.len();
                    }
                    _ => {}
                }
            }
            at += 1;
        }
        parts.push(begin..at);
        let trimmed = parts.into_iter().map(|range| {
            let text = &self.text[range.clone()];
            let start = range.end - text.trim_start().len();
            start..start + text.trim().len()
        });
        trimmed.collect()
    }

    fn assignments(&self) -> Vec<Assignment> {
        let clauses = self.words("SET").into_iter();
        let all = clauses.flat_map(|at| {
            let parts = self.split(at + 3, ",").into_iter();
            parts.filter_map(move |range| self.assignment(at, range))
        });
        all.collect()
    }

    fn assignment(&self, set: usize, range: Range<usize>) -> Option<Assignment> {
        let (column, _) = self.text[range.clone()].split_once(" = ")?;
        let sign = range.start + column.len();
        let before = self.text[..set].replace("OR FAIL ", "");
        let words: Vec<_> = before.split_whitespace().collect();
        let mut pairs = words.windows(2).rev();
        let names_table = |pair: &&[&str]| ["UPDATE", "INTO"].contains(&pair[0]);
        let table = pairs.find(names_table)?[1].to_owned();
        let value = sign + 3..range.end;
        Some(Assignment { column: column.to_owned(), table, sign, value })
    }
}

/// A column that a statement sets.
struct Assignment {
    column: String,
    table: String,
    /// The offset of ` = `.
    sign: usize,
    value: Range<usize>,
}

fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    fn changed(text: &str) -> Vec<String> {
        of_file("x", text).into_iter().map(|one| one.to).collect()
    }

    #[test]
    fn a_condition_is_turned_round_and_left_out() {
        assert_eq!(
            changed("-- a = b\nSELECT a FROM t WHERE a = ?1 AND b IS NULL"),
            [
                "-- a = b\nSELECT a FROM t WHERE (a = ?1\nOR 1) AND b IS NULL",
                "-- a = b\nSELECT a FROM t WHERE a <> ?1 AND b IS NULL",
                "-- a = b\nSELECT a FROM t WHERE a = ?1 AND (b IS NULL\nOR 1)",
                "-- a = b\nSELECT a FROM t WHERE a = ?1 AND b IS NOT NULL",
            ]
        );
    }

    #[test]
    fn an_assignment_is_left_out_and_so_is_the_write() {
        assert_eq!(
            changed("UPDATE t SET a = f(?1, a = ?2), b = ?3 WHERE c"),
            [
                "UPDATE t SET a = iif(1, t.a, f(?1, a = ?2)), b = ?3 WHERE c",
                "UPDATE t SET a = f(?1, a <> ?2), b = ?3 WHERE c",
                "UPDATE t SET a = f(?1, a = ?2), b = iif(1, t.b, ?3) WHERE c",
                "UPDATE t SET a = f(?1, a = ?2), b = ?3 WHERE 0 AND c",
                "UPDATE t SET a = f(?1, a = ?2), b = ?3 WHERE (c\nOR 1)",
            ]
        );
        assert_eq!(
            changed("INSERT INTO t (a) VALUES (?1) RETURNING a"),
            ["INSERT INTO t (a) SELECT * FROM (VALUES (?1)) WHERE 0 RETURNING a"]
        );
    }

    /// A case would catch a change that SQLite cannot prepare, whatever it tests.
    #[test]
    fn each_change_is_a_statement_with_the_same_parameters() {
        let conn = Connection::open_in_memory().unwrap();
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../backend-sqlite/sql");
        for version in 1..=9 {
            let schema = folder.join(format!("schema_{version}.sql"));
            conn.execute_batch(&fs::read_to_string(schema).unwrap()).unwrap();
        }
        let statements = all();
        let statements =
            statements.iter().filter(|change| change.from != files()[SCHEMA]);
        for change in statements {
            let parameters = |sql| conn.prepare(sql).map(|it| it.parameter_count());
            let made = parameters(&change.to);
            assert_eq!(
                made,
                parameters(&change.from),
                "{}\n{}",
                change.name,
                change.to
            );
        }
    }

    #[test]
    fn an_order_is_reversed() {
        assert_eq!(
            changed("SELECT a FROM t ORDER BY a DESC, b LIMIT ?1"),
            [
                "SELECT a FROM t ORDER BY a, b LIMIT ?1",
                "SELECT a FROM t ORDER BY a DESC, b DESC LIMIT ?1",
            ]
        );
    }
}
