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

use std::{borrow::Cow, collections::HashSet};

#[cfg(test)]
mod tests;

/// The beginning of the line in which a script names the library files that it uses.
const HEAD: &str = "-- Library: ";

/// A file of Lua definitions. Two files with the same name count as one.
#[derive(Debug, Clone)]
pub struct LibraryFile {
    /// The name by which scripts refer to the file.
    pub name: &'static str,
    /// The Lua text of the file.
    pub text: Cow<'static, str>,
}

/// One definition of a library file, which may define several names.
struct Definition<'a> {
    file: &'static str,
    names: Vec<&'a str>,
    text: &'a str,
}

/// The definitions of `library` that the script uses, directly or through other
/// definitions, in the order of the library.
///
/// # Errors
/// When a library file or the head of the script breaks a rule of this module's
/// documentation.
pub(crate) fn pruned_library(
    library: &[LibraryFile],
    script: &str,
) -> Result<String, String> {
    let mut definitions = Vec::new();
    for file in library {
        definitions.extend(definitions_of(file)?);
    }
    let mut used = words(script);
    check_head(script, &definitions, &used)?;
    let mut kept = Vec::new();
    // Go backwards: a function can only call functions that are defined before it.
    for definition in definitions.iter().rev() {
        if definition.names.iter().any(|name| used.contains(name)) {
            used.extend(words(definition.text));
            kept.push(definition.text);
        }
    }
    kept.reverse();
    Ok(kept.concat())
}

fn definitions_of(file: &LibraryFile) -> Result<Vec<Definition<'_>>, String> {
    let (mut definitions, mut begin, mut at) = (Vec::new(), None, 0);
    for (number, line) in file.text.split_inclusive('\n').enumerate() {
        let begins_one = line.starts_with("local ");
        let is_between = line.trim_end().is_empty() || line.starts_with("--");
        if (begins_one || is_between)
            && let Some(begin) = begin.take()
        {
            definitions.push(Definition::of(file.name, &file.text[begin..at]));
        }
        if begins_one {
            begin = Some(at);
        } else if !is_between && begin.is_none() {
            let (name, number) = (file.name, number + 1);
            return Err(format!(
                "line {number} of the library file {name} is part of no definition: one \
                 begins with `local`, and has no empty line and no comment at the \
                 beginning of a line"
            ));
        }
        at += line.len();
    }
    if !file.text.ends_with('\n') {
        return Err(format!(
            "the library file {} has no line break at its end",
            file.name
        ));
    }
    let last = begin.map(|begin| Definition::of(file.name, &file.text[begin..]));
    Ok(definitions.into_iter().chain(last).collect())
}

impl<'a> Definition<'a> {
    fn of(file: &'static str, text: &'a str) -> Self {
        let head = text.lines().next().unwrap_or_default();
        let head = head.trim_start_matches("local ").trim_start_matches("function ");
        let names = head.split(['(', '=']).next().unwrap_or_default();
        Self { file, names: names.split(',').map(str::trim).collect(), text }
    }
}

/// Checks that the script's head names the library files whose definitions it uses, and
/// no others. A definition of a name that several files define may come from any of
/// them.
fn check_head(
    script: &str,
    definitions: &[Definition<'_>],
    used: &HashSet<&str>,
) -> Result<(), String> {
    let head = script.lines().find_map(|line| line.strip_prefix(HEAD));
    let named: Vec<_> = head.map_or_else(Vec::new, |files| files.split(", ").collect());
    let files = |of: &dyn Fn(&Definition<'_>) -> bool| -> Vec<_> {
        definitions.iter().filter(|it| of(it)).map(|it| it.file).collect()
    };
    for name in used {
        let of_name = files(&|it| it.names.contains(name));
        if !of_name.is_empty() && !of_name.iter().any(|file| named.contains(file)) {
            let file = of_name[0];
            return Err(format!("uses `{name}`: add {file} to the line `{HEAD}…`"));
        }
    }
    let of_used = files(&|it| it.names.iter().any(|name| used.contains(name)));
    match named.into_iter().find(|file| !of_used.contains(file)) {
        Some(file) => Err(format!("names the library file {file} but does not use it")),
        None => Ok(()),
    }
}

/// The names in a Lua text: its words without comments, strings and fields.
pub(crate) fn words(text: &str) -> HashSet<&str> {
    let code = text.lines().filter_map(|line| line.split("--").next());
    let code = code.flat_map(|line| line.split('\'').step_by(2));
    let is_of_path = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let paths = code.flat_map(move |part| part.split(move |c| !is_of_path(c)));
    // A name after `..`, the operator that joins texts, is not a field.
    let names = paths.flat_map(|path| path.split(".."));
    names.filter_map(|path| path.split('.').next()).collect()
}
