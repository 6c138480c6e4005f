//! The commands and options that the prose names.

use std::{
    collections::BTreeMap,
    process::{Command, Stdio},
};

use crate::{blocks, pages, reader};

/// Pages about the past name commands that are gone.
const OF_THE_PAST: &[&str] = &["CHANGELOG.md", "docs/renames.md"];

/// The pages on which an option that stands alone is one of the program.
const OF_THE_PROGRAM: &[&str] = &[
    "README.md",
    "docs/followers.md",
    "docs/operations.md",
    "docs/producers.md",
    "docs/results.md",
    "docs/scale.md",
    "docs/schedules.md",
    "docs/shell.md",
    "docs/top.md",
    "docs/urls.md",
    "web/README.md",
];

/// Options of other programs on these pages.
const OF_CARGO: &[&str] = &["--features", "--example", "--all-features", "--no-deps"];

/// The help of a command.
struct Help {
    text: String,
    commands: BTreeMap<String, Self>,
}

impl Help {
    fn of(words: &[String]) -> Self {
        let mut call = Command::new(env!("CARGO_BIN_EXE_relq"));
        let printed = call.args(words).arg("--help").output().unwrap();
        assert!(printed.status.success(), "relq {} --help", words.join(" "));
        let text = String::from_utf8(printed.stdout).unwrap();
        let mut commands = BTreeMap::new();
        for (name, aliases) in commands_in(&text) {
            for word in aliases.iter().chain([&name]) {
                let below = [words, std::slice::from_ref(&name)].concat();
                commands.insert(word.clone(), Self::of(&below));
            }
        }
        Self { text, commands }
    }

    /// The help of the command that these words begin with, without global options.
    fn find(&self, words: &[&str]) -> &Self {
        match words {
            ["--url" | "-q" | "--queue", _, rest @ ..] => self.find(rest),
            [first, rest @ ..] => {
                self.commands.get(*first).map_or(self, |it| it.find(rest))
            }
            [] => self,
        }
    }

    /// Whether the command or one below it has the option.
    fn has(&self, option: &str) -> bool {
        let own =
            self.text.split(|it: char| !(it.is_ascii_alphanumeric() || it == '-'));
        own.into_iter().any(|word| word == option)
            || self.commands.values().any(|command| command.has(option))
    }
}

/// The commands in a help text, each with its other names.
fn commands_in(help: &str) -> Vec<(String, Vec<String>)> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let list: Vec<_> = list.take_while(|line| !line.is_empty()).collect();
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for line in list {
        if !line.starts_with("   ") {
            let name = line.split_whitespace().next().unwrap();
            found.push((name.to_owned(), Vec::new()));
        }
        let aliases =
            line.split_once("[aliases: ").or_else(|| line.split_once("[alias: "));
        if let Some((_, aliases)) = aliases {
            let aliases = aliases.trim_end_matches(']').split(", ");
            found.last_mut().unwrap().1.extend(aliases.map(str::to_owned));
        }
    }
    found.retain(|(name, _)| name != "help");
    found
}

/// The text of each `span` of the prose, on one line.
pub(crate) fn spans(text: &str) -> Vec<String> {
    let prose = blocks::prose(text);
    let inside = prose.split('`').skip(1).step_by(2);
    inside.map(|span| span.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// The words behind each `relq` of a command line, up to the end of that command. What is
/// in quotes is one word.
fn calls(line: &str) -> Vec<Vec<String>> {
    let mut calls = Vec::new();
    let bare: String = line
        .split(['\'', '"'])
        .enumerate()
        .map(|(at, part)| if at % 2 == 0 { part } else { "QUOTED" })
        .collect();
    let parts = bare.split(['|', ';', '(', ')', '&', '\n']);
    // In a call of cargo, `relq` is the name of a package.
    for part in parts.filter(|part| !part.contains("cargo ")) {
        let words = part.split_whitespace().skip_while(|word| *word != "relq").skip(1);
        // The words behind the dashes belong to another program.
        let own: Vec<_> = words.take_while(|word| *word != "--").collect();
        // The marker of a queue is a name and a number: `relq 4 zset`.
        let is_marker = own.first().is_none_or(|it| it.parse::<u32>().is_ok());
        if !is_marker {
            calls.push(own.into_iter().map(str::to_owned).collect());
        }
    }
    calls
}

/// The options among these words, without their values.
fn options<'a>(words: impl Iterator<Item = &'a str>) -> impl Iterator<Item = &'a str> {
    let names = words.filter(|word| word.starts_with("--") && word.len() > 2);
    names.map(|word| word.split(['=', '…', ']']).next().unwrap())
}

#[test]
fn each_option_of_a_command_exists() {
    let relq = Help::of(&[]);
    let mut wrong = Vec::new();
    for (path, text) in current_pages() {
        let lines = spans(&text).into_iter().chain(blocks::commands_of_page(&text));
        for words in lines.flat_map(|line| calls(&line)) {
            let words: Vec<_> = words.iter().map(String::as_str).collect();
            let command = relq.find(&words);
            for option in options(words.iter().copied()).filter(|it| !command.has(it)) {
                wrong.push(format!("{path}: no {option} in relq {}", words.join(" ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn each_option_that_stands_alone_exists() {
    let relq = Help::of(&[]);
    let mut wrong = Vec::new();
    for path in OF_THE_PROGRAM {
        let spans = spans(&pages::text_of(path));
        for span in spans.iter().filter(|span| span.starts_with("--")) {
            let names = options(span.split_whitespace());
            let unknown = names.filter(|it| !OF_CARGO.contains(it) && !relq.has(it));
            wrong.extend(unknown.map(|option| format!("{path}: {option}")));
        }
    }
    assert!(wrong.is_empty(), "no command has {wrong:#?}");
}

/// The calls of the prose are accepted up to the store, which does not exist.
#[test]
fn each_command_of_the_prose_can_be_parsed() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (path, text) in current_pages() {
        for span in spans(&text).iter().filter(|span| span.starts_with("relq ")) {
            let is_shortened = span.contains(['…', '\'', '"', '$', '<']);
            for words in calls(span).iter().filter(|_| !is_shortened) {
                count += 1;
                let said = errors_of(words);
                if BAD_WORDS.iter().any(|bad| said.contains(bad))
                    && !is_placeholder(&said)
                {
                    wrong.push(format!("{path}: relq {}: {said}", words.join(" ")));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 50, "only {count} commands were found");
}

const BAD_WORDS: &[&str] = &[
    "unexpected argument",
    "invalid value",
    "unrecognized subcommand",
    "cannot be used with",
];

/// Whether the program refuses a value that the reader has to choose, such as ADDRESS.
fn is_placeholder(said: &str) -> bool {
    let value =
        said.split("invalid value '").nth(1).and_then(|it| it.split('\'').next());
    value.is_some_and(|it| it.bytes().all(|it| it.is_ascii_uppercase()))
}

/// The message of the program about these words, when its store has an unknown scheme.
fn errors_of(words: &[String]) -> String {
    let mut call = Command::new(env!("CARGO_BIN_EXE_relq"));
    call.args(words).env("RELQ_URL", "nothing:at-all").env_remove("RELQ_QUEUE");
    call.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = call.spawn().unwrap();
    let mut errors = child.stderr.take().unwrap();
    reader::end(child);
    std::io::read_to_string(&mut errors).unwrap()
}

/// The files for servers call the program with options that exist.
#[test]
fn the_options_of_the_deployment_exist() {
    let relq = Help::of(&[]);
    let work = relq.find(&["work"]);
    let unit = pages::text_of("deploy/relq-worker@.service");
    let unit = unit.lines().find(|line| line.starts_with("ExecStart=")).unwrap();
    let (unit, _) = unit.split_once(" -- ").unwrap();
    let manifest = pages::text_of("deploy/kubernetes.yaml");
    let manifest = manifest.lines().filter_map(|line| line.trim().strip_prefix("- --"));
    let manifest: Vec<_> = manifest.map(|option| format!("--{option}")).collect();
    let words = unit.split_whitespace().chain(manifest.iter().map(String::as_str));
    let named: Vec<_> = options(words).collect();
    assert!(named.len() >= 5, "{named:?}");
    for option in named {
        assert!(work.has(option), "relq work has no {option}");
    }
}

/// The image can open the URL of the manifest. A program without the feature `tls` refuses a
/// `rediss` URL, so the pods would end and start again for ever.
#[test]
fn the_image_can_open_the_url_of_the_manifest() {
    let dockerfile = pages::text_of("deploy/Dockerfile");
    let manifest = pages::text_of("deploy/kubernetes.yaml");

    let build = dockerfile.lines().find(|line| line.contains("cargo build")).unwrap();
    let url = manifest.lines().find(|line| line.contains("RELQ_URL")).unwrap();

    let is_encrypted = url.contains("rediss://");
    assert_eq!(build.ends_with("--features tls"), is_encrypted, "{build}, {url}");
}

/// The pages that are not about the past.
pub(crate) fn current_pages() -> Vec<(String, String)> {
    let mut pages = pages::all();
    pages.retain(|(path, _)| !OF_THE_PAST.contains(&path.as_str()));
    pages
}

#[test]
fn calls_are_found_in_a_line() {
    let found =
        calls("id=$(relq push 'a b' --wait=3s) && relq work -c 2 -- sh --login | x");
    assert_eq!(found, [vec!["push", "QUOTED", "--wait=3s"], vec!["work", "-c", "2"]]);
}
