//! The help, the manual pages and the completion of all commands.

use crate::relq::Store;

/// The words of each command, found by the help of the commands above it.
fn commands(store: &Store) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut open = vec![Vec::new()];
    while let Some(words) = open.pop() {
        for name in subcommands(&help(store, &words)) {
            open.push([&words[..], &[name]].concat());
        }
        found.push(words);
    }
    found
}

fn help(store: &Store, words: &[String]) -> String {
    let line: Vec<_> = words.iter().map(String::as_str).chain(["--help"]).collect();
    store.relq_with(&line).ok()
}

/// The names in the part `Commands:` of a help text.
fn subcommands(help: &str) -> Vec<String> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = list.take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// The names of the options in a help text, such as `-o, --output <FORMAT>`.
fn options(help: &str) -> Vec<&str> {
    let lines = help.lines().map(str::trim_start);
    lines.filter(|line| line.starts_with('-') && line.contains("--")).collect()
}

#[test]
fn each_command_has_a_help_that_fits_a_terminal() {
    let store = Store::sqlite();
    let commands = commands(&store);
    assert!(commands.len() > 30, "{commands:?}");
    for words in commands {
        let help = help(&store, &words);
        let usage =
            format!("Usage: {}", [&["relq".to_owned()], &words[..]].concat().join(" "));
        assert!(help.contains(&usage), "{words:?}: {help}");
        let first = help.lines().next().unwrap();
        assert!(first.starts_with(|c: char| c.is_uppercase()), "{words:?}: {first}");
        let widest = help.lines().map(|line| line.chars().count()).max();
        assert!(
            widest <= Some(90),
            "{words:?} has a line of {widest:?} columns: {help}"
        );
    }
}

/// An option with a short name has the same one on every command.
#[test]
fn short_options_are_alike_on_all_commands() {
    let store = Store::sqlite();
    for words in commands(&store) {
        let help = help(&store, &words);
        for (long, short) in [
            ("--output <FORMAT>", "-o, "),
            ("--file <FILE>", "-f, "),
            ("--concurrency <N>", "-c, "),
            ("--limit <N>", "-n, "),
            ("--queue <NAME>", "-q, "),
        ] {
            let with = options(&help).into_iter().find(|option| option.contains(long));
            // The limit of a batch is no number of records.
            let is_other = words == ["batch", "alter"] && long == "--limit <N>";
            let is_short = with.is_none_or(|option| option.starts_with(short));
            assert!(is_short || is_other, "{words:?}: {with:?}");
        }
        let has = |name| options(&help).iter().any(|option| option.contains(name));
        assert_eq!(has("--json"), has("-o, --output"), "{words:?}");
    }
}

#[test]
fn other_words_for_a_command_go_on_to_work() {
    let store = Store::sqlite();
    store.create();
    assert_eq!(store.relq("list -o json").ok(), store.relq("peek --json").ok());
    store.relq("dead retry --all").ok();
    store.push("--id x --max-attempts 1 job");
    store.relq("work --until-empty -- false").fails(3);
    assert_eq!(store.relq("dead retry x").ok(), "1 ready again\n");
    store.relq("cron add nightly 0_3_*_*_* job").fails(2);
    store.relq_with(&["cron", "add", "nightly", "0 3 * * *", "job"]).ok();
    let next = store.relq("cron next nightly --count 2").ok();
    assert_eq!(next, store.relq("cron next nightly -n 2").ok());
    assert_eq!(next.lines().count(), 2);
}

#[test]
fn each_command_has_a_manual_page() {
    let store = Store::sqlite();
    let page = store.relq("man").ok();
    assert!(page.contains(".TH relq 1") && page.contains("RELQ_URL"), "{page}");
    let page = store.relq("man dead list").ok();
    assert!(page.contains(".TH relq-dead-list 1"), "{page}");
    assert!(page.contains("List dead jobs with the reason"), "{page}");

    std::fs::create_dir(store.file("man1")).unwrap();
    assert_eq!(store.relq("man --folder man1").ok(), "");
    let pages = std::fs::read_dir(store.file("man1")).unwrap();
    let mut pages: Vec<_> =
        pages.map(|page| page.unwrap().file_name().into_string().unwrap()).collect();
    let mut expected: Vec<_> = commands(&store)
        .into_iter()
        .map(|words| [&["relq".to_owned()], &words[..]].concat().join("-") + ".1")
        .collect();
    pages.sort();
    expected.sort();
    assert_eq!(pages, expected);
    let error = store.relq("man --folder no/such").fails(1);
    assert!(error.contains("the folder no/such cannot be written"), "{error}");
}

#[test]
fn each_shell_has_a_completion() {
    let store = Store::sqlite();
    for (shell, words) in [
        ("bash", "complete -F _relq"),
        ("zsh", "#compdef relq"),
        ("fish", "complete -c relq"),
        ("powershell", "Register-ArgumentCompleter"),
        ("elvish", "edit:completion"),
    ] {
        let script = store.relq(&format!("completion {shell}")).ok();
        assert!(script.contains(words), "{shell}: {script}");
        assert!(script.contains("dead"), "{shell}");
        assert!(!script.contains("lead-group"), "{shell} shows a hidden command");
    }
    let ended = store.relq("completion bash").start_without_output().end();
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
}
