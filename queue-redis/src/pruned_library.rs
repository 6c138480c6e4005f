//! Pruning a library: a script is sent with only those library functions that it uses.
//!
//! At each call the server runs a script from its first line, and creates every
//! function that is defined there. Creating a library of thirty functions costs more
//! than most of the commands in a script.

use std::collections::HashSet;

/// One definition at the top level of a library.
struct Definition<'a> {
    names: Vec<&'a str>,
    text: &'a str,
}

/// The definitions of `library` that `source` uses, directly or through other
/// definitions, in their order.
///
/// A definition begins with `local` at the beginning of a line and ends before the next
/// one, or before a comment or an empty line there. A name counts as used wherever it
/// occurs: an unneeded definition does no harm.
pub(crate) fn pruned_library(library: &str, source: &str) -> String {
    let definitions = definitions(library);
    let mut used = words(source);
    let mut is_kept = vec![false; definitions.len()];
    // A function can only call functions that are defined before it.
    for (at, definition) in definitions.iter().enumerate().rev() {
        is_kept[at] = definition.names.iter().any(|name| used.contains(name));
        if is_kept[at] {
            used.extend(words(definition.text));
        }
    }
    let kept = definitions.iter().zip(is_kept).filter(|(_, is_kept)| *is_kept);
    kept.map(|(definition, _)| definition.text).collect()
}

fn definitions(library: &str) -> Vec<Definition<'_>> {
    let mut begins: Vec<usize> = Vec::new();
    let mut ends: Vec<usize> = Vec::new();
    let mut at = 0;
    for line in library.split_inclusive('\n') {
        let begins_one = line.starts_with("local ");
        let is_between = line.trim_end().is_empty() || line.starts_with("--");
        if (begins_one || is_between) && ends.len() < begins.len() {
            ends.push(at);
        }
        if begins_one {
            begins.push(at);
        }
        at += line.len();
    }
    if ends.len() < begins.len() {
        ends.push(at);
    }
    let text = |(from, to)| &library[from..to];
    begins.into_iter().zip(ends).map(text).map(Definition::of).collect()
}

impl<'a> Definition<'a> {
    fn of(text: &'a str) -> Self {
        let head = text.lines().next().unwrap_or_default();
        let head = head.trim_start_matches("local ").trim_start_matches("function ");
        let names = head.split(['(', '=']).next().unwrap_or_default();
        Self { names: names.split(',').map(str::trim).collect(), text }
    }
}

fn words(text: &str) -> HashSet<&str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBRARY: &str = "\
-- Numbers.
local ONE, TWO = 1, 2

local THREE = TWO
  + ONE

-- Says a number.
local function say(number)
  return 'it is ' .. number
end
local function say_three()
  return say(THREE)
end
";

    #[test]
    fn what_is_not_used_stays_away() {
        assert_eq!(pruned_library(LIBRARY, "return 'one'"), "");
        let say = "local function say(number)\n  return 'it is ' .. number\nend\n";
        assert_eq!(pruned_library(LIBRARY, "return say(5)"), say);
    }

    #[test]
    fn what_is_used_brings_what_it_uses_in_order() {
        let whole = LIBRARY.replace("-- Numbers.\n", "").replace("\n\n", "\n");
        let whole = whole.replace("-- Says a number.\n", "");
        assert_eq!(pruned_library(LIBRARY, "return say_three()"), whole);
    }
}
