//! Pruning a library: a script is sent with only those library functions that it uses.
//!
//! At each call the server runs a script from its first line, and creates every
//! function that is defined there. Creating a library of thirty functions costs more
//! than most of the commands in a script.
//!
//! A library file is a list of definitions. A definition begins with `local` at the
//! beginning of a line. It ends before the next one, or before an empty line or a
//! comment at the beginning of a line. Nothing else stands in the file.
//!
//! A script has a line such as `-- Library: entry, moves` in its head. It names the
//! files whose definitions the script uses itself. Definitions that those use are
//! added.

use std::collections::{HashMap, HashSet};

#[cfg(test)]
mod tests;

/// The beginning of the line in which a script names the library files that it uses.
const HEAD: &str = "-- Library: ";

/// A file of Lua definitions. Several files may have one name: a script that names it may use
/// the definitions of all of them.
#[derive(Debug, Clone, Copy)]
pub struct LibraryFile {
    /// The name by which scripts refer to the file.
    pub name: &'static str,
    /// The Lua text of the file.
    pub text: &'static str,
}

/// The definitions that the scripts of a backend share, from all its library files.
///
/// A connection asks the server about every script, so each process puts all their texts
/// together. It finds the definitions once, and not again for each script.
#[derive(Debug, Clone)]
pub struct Library {
    definitions: Vec<Definition>,
    /// For each name that is defined, the names of the files that define it.
    files: HashMap<&'static str, Vec<&'static str>>,
}

/// One definition of a library file, which may define several names.
#[derive(Debug, Clone)]
struct Definition {
    file: &'static str,
    names: Vec<&'static str>,
    text: &'static str,
    /// The names of the library in its text.
    uses: HashSet<&'static str>,
}

impl Library {
    /// Reads the definitions. A file's may use those of the files before it.
    ///
    /// # Panics
    /// When a file contains more than definitions.
    pub fn new(files: impl IntoIterator<Item = LibraryFile>) -> Self {
        Self::read(files).unwrap_or_else(|error| panic!("{error}"))
    }

    fn read(files: impl IntoIterator<Item = LibraryFile>) -> Result<Self, String> {
        let mut library = Self { definitions: Vec::new(), files: HashMap::new() };
        for file in files {
            library.definitions.extend(definitions_of(file)?);
        }
        for Definition { file, names, .. } in &library.definitions {
            for name in names {
                library.files.entry(name).or_default().push(file);
            }
        }
        for definition in &mut library.definitions {
            let is_defined = |name: &&str| library.files.contains_key(name);
            definition.uses = words(definition.text).filter(is_defined).collect();
        }
        Ok(library)
    }

    /// The definitions that the script uses, directly or through other definitions, in the
    /// order of the library.
    ///
    /// # Errors
    /// When the head of the script does not name the library files that the script uses
    /// itself.
    pub(crate) fn pruned(&self, script: &str) -> Result<String, String> {
        let is_defined = |name: &&str| self.files.contains_key(name);
        let mut used: HashSet<&str> = words(script).filter(is_defined).collect();
        self.check_head(script, &used)?;
        let mut kept = Vec::new();
        // Go backwards: a function can only call functions that are defined before it.
        for definition in self.definitions.iter().rev() {
            if definition.names.iter().any(|name| used.contains(name)) {
                used.extend(&definition.uses);
                kept.push(definition.text);
            }
        }
        kept.reverse();
        Ok(kept.concat())
    }

    /// Checks that the script's head names the library files whose definitions it uses,
    /// and no others. A definition of a name that several files define may come from any
    /// of them.
    fn check_head(&self, script: &str, used: &HashSet<&str>) -> Result<(), String> {
        let head = script.lines().find_map(|line| line.strip_prefix(HEAD));
        let named: Vec<_> =
            head.map_or_else(Vec::new, |files| files.split(", ").collect());
        for name in used {
            let files = &self.files[name];
            if !files.iter().any(|file| named.contains(file)) {
                let file = files[0];
                return Err(format!("uses `{name}`: add {file} to the line `{HEAD}…`"));
            }
        }
        let is_used = |file: &&str| used.iter().any(|it| self.files[it].contains(file));
        match named.into_iter().find(|file| !is_used(file)) {
            Some(file) => {
                Err(format!("names the library file {file} but does not use it"))
            }
            None => Ok(()),
        }
    }
}

fn definitions_of(file: LibraryFile) -> Result<Vec<Definition>, String> {
    let LibraryFile { name, text } = file;
    let (mut definitions, mut begin, mut at) = (Vec::new(), None, 0);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let begins_one = line.starts_with("local ");
        let is_between = line.trim_end().is_empty() || line.starts_with("--");
        if (begins_one || is_between)
            && let Some(begin) = begin.take()
        {
            definitions.push(Definition::of(name, &text[begin..at]));
        }
        if begins_one {
            begin = Some(at);
        } else if !is_between && begin.is_none() {
            return Err(format!(
                "line {} of the library file {name} is part of no definition: one \
                 begins with `local`, and has no empty line and no comment at the \
                 beginning of a line",
                number + 1
            ));
        }
        at += line.len();
    }
    if !text.ends_with('\n') {
        return Err(format!("the library file {name} has no line break at its end"));
    }
    let last = begin.map(|begin| Definition::of(name, &text[begin..]));
    Ok(definitions.into_iter().chain(last).collect())
}

impl Definition {
    fn of(file: &'static str, text: &'static str) -> Self {
        let head = text.lines().next().unwrap_or_default();
        let head = head.trim_start_matches("local ").trim_start_matches("function ");
        let names = head.split(['(', '=']).next().unwrap_or_default();
        let names = names.split(',').map(str::trim).collect();
        Self { file, names, text, uses: HashSet::new() }
    }
}

/// The names in a Lua text: its words without comments, strings and fields.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    let code = text.lines().filter_map(|line| line.split("--").next());
    let code = code.flat_map(|line| line.split('\'').step_by(2));
    let is_of_path = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let paths = code.flat_map(move |part| part.split(move |c| !is_of_path(c)));
    // A name after `..`, the operator that joins texts, is not a field.
    let names = paths.flat_map(|path| path.split(".."));
    names.filter_map(|path| path.split('.').next())
}
