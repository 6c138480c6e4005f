//! The Markdown files of the repository.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The folder of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// The path of each file below the root.
pub(crate) fn files() -> Vec<String> {
    let root = root();
    let mut found = Vec::new();
    find(&root, &mut found);
    found.sort();
    let below =
        |file: &PathBuf| file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
    found.iter().map(below).collect()
}

/// The path of each page below the root, and its text.
pub(crate) fn all() -> Vec<(String, String)> {
    let pages = files().into_iter().filter(|path| path.ends_with(".md"));
    let with_text = pages.map(|path| {
        let text = text_of(&path);
        (path, text)
    });
    let pages: Vec<_> = with_text.collect();
    assert!(pages.len() > 30, "only {} pages in {}", pages.len(), root().display());
    pages
}

pub(crate) fn text_of(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

fn find(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
        let is_folder = entry.file_type().unwrap().is_dir();
        if is_folder && !name.starts_with('.') && name != "target" {
            find(&path, found);
        } else if !is_folder {
            found.push(path);
        }
    }
}
