//! The source files that the prose names.

use std::path::Path;

use crate::{options, pages};

/// A page may name a file by the end of its path. A file that was moved or renamed leaves its
/// old path on the pages.
#[test]
fn each_source_file_of_the_prose_exists() {
    let files = pages::files();
    let exists =
        |named: &str| files.iter().any(|file| Path::new(file).ends_with(named));
    let mut wrong = Vec::new();
    let mut count = 0;
    for (path, text) in options::current_pages() {
        for named in options::spans(&text).iter().filter(|span| is_source(span)) {
            count += 1;
            if !exists(named) {
                wrong.push(format!("{path}: {named}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 50, "only {count} files were found");
}

/// Whether this is the path of one file. `src/cases/TOPIC.rs` stands for many.
fn is_source(span: &str) -> bool {
    let is_name = |it: char| {
        it.is_ascii_lowercase() || it.is_ascii_digit() || "_-./".contains(it)
    };
    let has_end = |end: &str| span.ends_with(end);
    span.contains('/')
        && span.chars().all(is_name)
        && [".rs", ".lua", ".sql"].into_iter().any(has_end)
}
