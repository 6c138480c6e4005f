//! Tests that inspect the plan that SQLite makes for every statement.

use std::{fs, path::Path};

use rusqlite::Connection;

use super::{
    rows::{ForRows, MARK},
    sql,
};
use crate::schema::VERSIONS;

/// The prefix of the names of statements that may read whole tables.
const READS_EVERYTHING: &str = "audit";
/// The statement whose plan may contain a sort. It sorts at most one page of rows, which
/// it found with an index.
const SORTS_A_PAGE: &str = "due_promote.sql";

fn plan(conn: &Connection, sql: &str) -> String {
    let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let mut rows = statement.raw_query();
    let mut lines = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        lines.push(row.get::<_, String>("detail").unwrap());
    }
    lines.join("\n")
}

/// The file name and the text of every statement in `sql/` except the schema.
fn statements() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql");
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .filter(|(name, _)| !name.starts_with("schema_"))
        .collect()
}

/// The text of a statement, and its text for many rows if it can handle several.
fn with_many_rows(sql: String) -> Vec<String> {
    let is_for_rows = sql.contains(MARK);
    // The plan does not depend on the numbers of the parameters.
    let many =
        is_for_rows.then(|| ForRows::new(&sql, 0).for_first_of(1000).0.to_owned());
    many.into_iter().chain([sql]).collect()
}

fn tables() -> Connection {
    let conn = Connection::open_in_memory().unwrap();
    for version in VERSIONS {
        conn.execute_batch(version).unwrap();
    }
    conn
}

/// The plan of every statement uses an index, so that the cost of a call grows only
/// with the logarithm of the number of jobs.
#[test]
fn no_statement_reads_a_whole_table_or_sorts_one() {
    let conn = tables();
    let all = statements();
    assert!(all.len() > 40, "the statements were found");

    let texts = all.into_iter().flat_map(|(name, sql)| {
        with_many_rows(sql).into_iter().map(move |sql| (name.clone(), sql))
    });
    for (name, sql) in texts {
        let plan = plan(&conn, &sql);
        let may_scan = name.starts_with(READS_EVERYTHING);
        let tables = [
            "jobs",
            "bodies",
            "ended_ids",
            "push_calls",
            "batches",
            "results",
            "followers",
            "relq_workers",
        ];
        let scans = tables.map(|table| format!("SCAN {table}"));
        let scanned = scans.iter().any(|scan| plan.contains(scan));
        let sorted = plan.contains("TEMP B-TREE");
        assert!(may_scan || !scanned, "{name} reads a whole table:\n{plan}");
        let may_sort = may_scan || name == SORTS_A_PAGE;
        assert!(may_sort || !sorted, "{name} sorts:\n{plan}");
    }
}

/// B4: a claim reads no batch without a ready piece or a free slot, however many there are.
#[test]
fn claims_find_batches_by_the_index_of_claimable_ones() {
    let conn = tables();
    for sql in [sql!("claim_look"), sql!("batch_claimable")] {
        let plan = plan(&conn, sql);
        assert!(plan.contains("batches USING INDEX batches_claimable"), "B4: {plan}");
    }
}

/// Every statement has a header that says what its parameters mean.
#[test]
fn every_statement_says_what_it_is_for() {
    for (name, sql) in statements() {
        assert!(sql.starts_with("-- "), "{name} has no header");
    }
}
