//! Generates every small change that the tests make to the scripts, one at a time.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use crate::{page::named, source::Source, survivors::zset::SURVIVORS};

/// The Redis commands by which scripts write.
const WRITES: [&str; 28] = [
    "DEL",
    "EXPIRE",
    "HDEL",
    "HINCRBY",
    "HSET",
    "LMOVE",
    "LPOP",
    "LPUSH",
    "LREM",
    "LSET",
    "LTRIM",
    "MSETNX",
    "PERSIST",
    "RENAMENX",
    "RPUSH",
    "SADD",
    "SET",
    "SETNX",
    "SETRANGE",
    "SREM",
    "UNLINK",
    "XACK",
    "XADD",
    "XDEL",
    "XGROUP",
    "ZADD",
    "ZREM",
    "ZREMRANGEBYSCORE",
];

/// Each comparison operator of Lua, with the operator that means the opposite.
const TURNED: [(&str, &str); 6] = [
    (" == ", " ~= "),
    (" ~= ", " == "),
    (" < ", " >= "),
    (" >= ", " < "),
    (" > ", " <= "),
    (" <= ", " > "),
];

/// The folders with the scripts and the library files that all backends share, relative to
/// the workspace. The names of the files in a folder begin with the prefix beside it.
const SHARED: [(&str, &str); 3] = [
    ("queue-redis/lua", "queue-redis/"),
    ("queue-redis/lua/marker", MARKER),
    ("queue-redis/lua/bookkeeping", "bookkeeping/"),
];

/// The prefix of the marker's scripts. Their first comment contains their name.
const MARKER: &str = "marker/";

/// Scripts that no test case sends, so that none can catch a change of them. `relq
/// marker` sends `change` and `remove`, which `tests/owners.rs` of the package `relq`
/// tests. A queue with `replicas` sends `touch`, which its `tests/many_servers` tests.
const OF_NO_CALL: [&str; 3] = ["marker/change", "marker/remove", "marker/touch"];

/// Which changes a page lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Those of all code that the backend's scripts run.
    All,
    /// Those of code that zset's scripts do not run; without calls of functions that check
    /// types.
    Own,
    /// Those as well whose changes no case notices on zset.
    OwnAndUnnoticed,
}

/// One small change of one script or statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// The name of the change. It contains the changed line, and stays the same as long
    /// as the line does.
    pub(crate) name: String,
    /// The text before the change, and after it, as it occurs in scripts.
    pub(crate) from: String,
    pub(crate) to: String,
    /// The scripts that may run the changed code.
    pub(crate) scripts: BTreeSet<String>,
}

/// Every change of the script files of a backend.
pub(crate) fn all(backend: &str, scope: Scope) -> Vec<Change> {
    let files = files(backend);
    let mut changes: Vec<_> =
        files.iter().flat_map(|(name, text)| of_file(name, text)).collect();
    for change in &mut changes {
        change.scripts = scripts_of(change, &files);
        let file = change.name.split(':').next().unwrap();
        if is_library(file, &files[file]) {
            narrow(change);
        }
    }
    changes.retain(|change| !change.scripts.is_empty());
    if scope != Scope::All {
        let mut of_zset: BTreeSet<_> =
            all("zset", Scope::All).into_iter().map(|change| change.name).collect();
        if scope == Scope::OwnAndUnnoticed {
            for (survivor, _) in named(SURVIVORS) {
                of_zset.remove(survivor);
            }
        }
        changes.retain(|change| {
            !of_zset.contains(&change.name)
                && !change.name.contains(": without `check_")
        });
    }
    changes
}

/// Whether a file has only definitions. They are put before the scripts that use them.
fn is_library(name: &str, text: &str) -> bool {
    !text.starts_with("#!") && !name.starts_with(MARKER)
}

/// Reduces a change of a library file to the changed definition, because a script
/// contains only the definitions of the library that it uses.
fn narrow(change: &mut Change) {
    let Change { from, to, .. } = change;
    let at = from.bytes().zip(to.bytes()).position(|(a, b)| a != b);
    let at = at.unwrap_or(from.len());
    let start = from[..at].rfind("\nlocal ").map_or(0, |before| before + 1);
    let is_next = |line: &str| {
        line.is_empty() || ["--", "local "].iter().any(|it| line.starts_with(it))
    };
    let mut end = start;
    for (number, line) in from[start..].split_inclusive('\n').enumerate() {
        if number > 0 && is_next(line.trim_end()) {
            break;
        }
        end += line.len();
    }
    let rest = from.len() - end;
    *to = to[start..to.len() - rest].trim_end().to_owned();
    *from = from[start..end].trim_end().to_owned();
}

/// Returns the texts of all Lua files that a backend uses, by the names of the files.
fn files(backend: &str) -> BTreeMap<String, String> {
    let own = format!("backend-{backend}/lua");
    let own = [
        (own.clone(), format!("{backend}/")),
        (own + "/batch", format!("{backend}/batch/")),
    ];
    let shared = SHARED.map(|(folder, prefix)| (folder.to_owned(), prefix.to_owned()));
    let mut files = BTreeMap::new();
    for (folder, prefix) in shared.into_iter().chain(own) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder);
        if !folder.exists() {
            continue;
        }
        for file in fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|it| it == "lua") {
                let name = path.file_stem().unwrap().to_str().unwrap();
                let text = fs::read_to_string(&path).unwrap();
                files.insert(format!("{prefix}{name}"), text);
            }
        }
    }
    files.retain(|name, _| !OF_NO_CALL.contains(&name.as_str()));
    files
}

/// The scripts that may run the changed code: the changed script itself, or all scripts
/// that call the changed function, directly or through other functions.
fn scripts_of(change: &Change, files: &BTreeMap<String, String>) -> BTreeSet<String> {
    let file = change.name.split(':').next().unwrap();
    let script = |name: &str| match name.strip_prefix(MARKER) {
        Some(name) => format!("{name}_marker"),
        None => name.split('/').next_back().unwrap().to_owned(),
    };
    if !is_library(file, &files[file]) {
        return BTreeSet::from([script(file)]);
    }
    let at = change.from.bytes().zip(change.to.bytes()).position(|(a, b)| a != b);
    let before = &change.from[..at.unwrap_or(change.from.len())];
    let (library, scripts): (Vec<_>, Vec<_>) =
        files.iter().partition(|(name, text)| is_library(name, text));
    let library: Vec<_> =
        library.iter().flat_map(|(_, text)| functions(text)).collect();
    let mut callers: BTreeSet<&str> = before
        .rmatch_indices("local function ")
        .next()
        .and_then(|(at, words)| before[at + words.len()..].split('(').next())
        .into_iter()
        .collect();
    loop {
        let known = callers.len();
        for (name, body) in &library {
            if callers.iter().any(|callee| body.contains(&format!("{callee}("))) {
                callers.insert(name);
            }
        }
        if callers.len() == known {
            break;
        }
    }
    let calls =
        |text: &str| callers.iter().any(|name| text.contains(&format!("{name}(")));
    let scripts = scripts.into_iter().filter(|(_, text)| calls(text));
    scripts.map(|(name, _)| script(name)).collect()
}

/// The functions of a library file, each with its body.
fn functions(text: &str) -> Vec<(&str, &str)> {
    let bodies = text.split("\nlocal function ").skip(1);
    bodies.filter_map(|body| Some((body.split('(').next()?, body))).collect()
}

/// Every change of one file, except in a script's first line, which is sent separately.
fn of_file(file: &str, text: &str) -> Vec<Change> {
    let is_script = text.starts_with("#!") || text.starts_with("-- ");
    let body = match text.split_once('\n') {
        Some((_, body)) if is_script => body,
        _ => text,
    };
    let body = body.trim_end();
    let lua = Source::read(body);
    let mut spots: Vec<(usize, usize, &str)> = Vec::new();
    for write in WRITES {
        for call in ["redis.call", "redis.pcall"] {
            for start in lua.find(&format!("{call}('{write}'")) {
                let end = lua.end_of_call(start).unwrap();
                let is_statement = lua.is_statement(start, end);
                spots.push((start, end, if is_statement { "do end" } else { "0" }));
            }
        }
    }
    for start in lua.calls() {
        if let Some(end) = lua.end_of_call(start)
            && lua.is_statement(start, end)
        {
            spots.push((start, end, "do end"));
        }
    }
    for (from, to) in TURNED {
        spots.extend(lua.find(from).into_iter().map(|at| (at, at + from.len(), to)));
    }
    spots.extend(lua.find("not ").into_iter().map(|at| (at, at + 4, "")));
    spots.sort_unstable();
    let changes =
        spots.into_iter().map(|(start, end, to)| change(file, body, start, end, to));
    number_those_alike(changes.collect())
}

fn change(file: &str, body: &str, start: usize, end: usize, to: &str) -> Change {
    let line = body[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = body[start..].find('\n').map_or(body.len(), |at| start + at);
    let from = body[start..end].split_whitespace().collect::<Vec<_>>().join(" ");
    let what = match to {
        "do end" => format!("without `{from}`"),
        "0" => format!("0 for `{from}`"),
        "" => format!("without `not` in `{}`", body[line..line_end].trim()),
        to => {
            let (from, to) = (from.trim(), to.trim());
            format!("`{to}` for `{from}` in `{}`", body[line..line_end].trim())
        }
    };
    let changed = [&body[..start], to, &body[end..]].concat();
    let (name, from) = (format!("{file}: {what}"), body.to_owned());
    Change { name, from, to: changed, scripts: BTreeSet::new() }
}

pub(crate) fn number_those_alike(mut changes: Vec<Change>) -> Vec<Change> {
    let names: Vec<_> = changes.iter().map(|change| change.name.clone()).collect();
    for (at, change) in changes.iter_mut().enumerate() {
        let before = names[..at].iter().filter(|name| **name == change.name).count();
        if before > 0 {
            change.name = format!("{} ({})", change.name, before + 1);
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(body: &str) -> Vec<String> {
        of_file("x", &format!("-- x\n{body}")).into_iter().map(|one| one.to).collect()
    }

    #[test]
    fn a_write_is_left_out_or_answers_nothing() {
        assert_eq!(changed("redis.call('HSET', key, f(1))"), ["do end"]);
        let counted = "local n = redis.call('ZREM', key, ')')";
        assert_eq!(changed(counted), ["local n = 0"]);
        assert_eq!(changed("local n = redis.call('HGET', key, id)"), [""; 0]);
    }

    #[test]
    fn a_call_of_its_own_is_left_out() {
        assert_eq!(changed("if a then notify(keys) end"), ["if a then do end end"]);
        assert_eq!(changed("local function notify(keys)"), [""; 0]);
        assert_eq!(changed("local a = notify(keys)"), [""; 0]);
    }

    #[test]
    fn a_comparison_is_turned_round_where_it_is_code() {
        assert_eq!(changed("if a == b then -- a == b"), ["if a ~= b then -- a == b"]);
        assert_eq!(changed("local a = ' < '"), [""; 0]);
        assert_eq!(changed("if not a then"), ["if a then"]);
    }
}
