//! The output of each command of the guide, or why the command is not run.
//!
//! A page has a row for each of its commands, in their order. The fields of a row say in
//! which way the test differs from what a reader types.

/// The beginnings of commands that no page runs, and why.
pub(crate) const NOT_RUN: &[(&str, &str)] = &[
    ("cargo ", "it builds the repository, or changes an application of the reader"),
    ("CARGO_PROFILE_RELEASE_DEBUG=false cargo ", "it builds the repository"),
    ("RELQ_WRITE_ACL=1 scripts/test", "it runs the tests"),
    ("./scripts/test", "it runs the tests"),
    ("scripts/", "a script of the repository; .ci/run runs most of them"),
    (".ci/run", "it runs the tests"),
    ("relq top", "it needs a terminal; cli/tests/program/top runs it in one"),
];

/// A page whose commands are run, in one shell and one folder.
pub(crate) struct Page {
    pub(crate) path: &'static str,
    pub(crate) servers: Servers,
    pub(crate) rows: &'static [Row],
}

/// The servers of a page. All pages have SQLite.
#[derive(Clone, Copy)]
pub(crate) enum Servers {
    None,
    /// `$REDIS` is the URL of a server.
    Redis,
    /// `$CLUSTER` is the address of a node that has all slots of a cluster.
    Cluster,
}

pub(crate) enum Row {
    Run(Run),
    /// A command that is not run, and why.
    Not(&'static str, #[expect(dead_code, reason = "people read it")] &'static str),
}

pub(crate) struct Run {
    pub(crate) begins: &'static str,
    /// Words of the page, and those of this machine.
    pub(crate) with: &'static [(&'static str, &'static str)],
    /// The steps of the reader before it.
    pub(crate) before: &'static str,
    /// When a command that does not end by itself is stopped. OUTPUT is the file of its
    /// output.
    pub(crate) until: &'static str,
    pub(crate) exits: i32,
    pub(crate) prints: Prints,
}

#[derive(Clone, Copy)]
pub(crate) enum Prints {
    Exactly(&'static str),
    /// The lines of the text.
    InAnyOrder(&'static str),
    /// Text that depends on times, random ids or the machine is left out.
    Having(&'static [&'static str]),
}

use Prints::{Exactly, Having, InAnyOrder};

impl Row {
    pub(crate) fn begins(&self) -> &'static str {
        match self {
            Self::Run(run) => run.begins,
            Self::Not(begins, _) => begins,
        }
    }

    const fn run(begins: &'static str, prints: Prints) -> Self {
        Self::Run(Run { begins, with: &[], before: "", until: "", exits: 0, prints })
    }

    const fn with(self, with: &'static [(&'static str, &'static str)]) -> Self {
        match self {
            Self::Run(run) => Self::Run(Run { with, ..run }),
            Self::Not(..) => self,
        }
    }

    const fn before(self, before: &'static str) -> Self {
        match self {
            Self::Run(run) => Self::Run(Run { before, ..run }),
            Self::Not(..) => self,
        }
    }

    const fn until(self, until: &'static str) -> Self {
        match self {
            Self::Run(run) => Self::Run(Run { until, ..run }),
            Self::Not(..) => self,
        }
    }
}

/// The command of a worker that the page leaves to the reader.
const RUN_JOB: &str = "printf '#!/bin/sh\ncat\necho\n' >run-job; chmod +x run-job";
/// The result of the last job may be told before the jobs beside it have ended.
const ALL_ARE_FINISHED: &str =
    "until relq stats | grep -q 'finished   101'; do sleep 0.05; done";
const A_WORKER_RUNS: &str = "relq workers --json | grep -q host";
const STOP_THE_WORKER: &str = "kill $!; wait $!";

pub(crate) const PAGES: &[Page] = &[
    Page {
        path: "README.md",
        servers: Servers::None,
        rows: &[
            Row::run("seq 1 100 | relq push", Exactly("100\n")),
            Row::run("relq work --exec sh -c 'cat; echo' &", Exactly("")),
            Row::run("relq push --keep-result 1h --wait=30s", Exactly("hello\n")),
            Row::run("relq stats && relq peek", Having(&["finished   101"]))
                .before(ALL_ARE_FINISHED),
            Row::run("printf '4:one:two:three", Having(&["\n"]))
                .before(STOP_THE_WORKER),
            Row::run("relq work --exec sh -c 'echo", Having(&[": one\n", ": five\n"])),
            Row::run("relq batch wait ID", Having(&["done\n"]))
                .with(&[("ID", "\"$(head -n 1 out.4)\"")]),
            Row::run("relq cron add report", Having(&["report"])),
            Row::run("relq cron list", Having(&["report", "Europe/Berlin"])),
            Row::run("relq work --schedules --exec ./run-job", Having(&[]))
                .before(RUN_JOB)
                .until(A_WORKER_RUNS),
            Row::run("relq push --id upload-42", Having(&["upload-42\n"])),
        ],
    },
    Page {
        path: "docs/followers.md",
        servers: Servers::None,
        rows: &[
            Row::run("relq push --id upload-42", Exactly("upload-42\n")),
            Row::run("relq push --id check-42", Exactly("check-42\n")),
            Row::run("relq push --after check-42", Having(&["\n"])),
            Row::run("relq peek", Having(&["after upload-42", "after check-42"])),
            Row::run("relq work", Exactly("upload 42\ncheck 42\npublish 42\n")),
            Row::run("printf '0:page 1", Having(&["\n"])),
            Row::run("relq work", InAnyOrder("page 1\npage 2\npage 3\njoin\n")),
        ],
    },
    Page {
        path: "docs/measurements.md",
        servers: Servers::Redis,
        rows: &[
            Row::Not("redis-server --port 7390", "the test starts a server of its own"),
            Row::run("export RELQ_URL", Exactly(""))
                .with(&[("redis://localhost", "$REDIS")]),
            Row::run("seq 9500000 | relq push", Exactly("9500\n"))
                .with(&[("9500000", "9500")]),
            Row::run("seq 500000 | relq push", Exactly("500\n"))
                .with(&[("500000", "500")]),
            Row::run("/usr/bin/time -v relq audit", Having(&["10000"]))
                .with(&[("/usr/bin/time -v ", "")]),
        ],
    },
    Page {
        path: "docs/producers.md",
        servers: Servers::Redis,
        rows: &[
            Row::run("relq work -q emails", Exactly("hello\n"))
                .before("relq push -q emails --url $REDIS --quiet hello")
                .with(&[("redis://127.0.0.1:6379", "$REDIS")])
                .until("test -s OUTPUT"),
            Row::Not("redis-cli LPUSH emails", "scripts/producers runs it"),
            Row::Not("redis-cli XADD emails", "scripts/producers runs it"),
            Row::Not("redis-cli SET", "scripts/producers runs it"),
        ],
    },
    Page {
        path: "docs/results.md",
        servers: Servers::None,
        rows: &[
            Row::run("relq work -- wc -w &", Exactly("")),
            Row::run("relq push --keep-result 1h --wait=30s", Exactly("2\n")),
            Row::run("id=$(relq push", Exactly("")),
            Row::run("relq result --wait", Having(&[" done: 2\\n\n"])),
            Row::run("relq result --raw", Exactly("2\n")),
        ],
    },
    Page {
        path: "docs/scale.md",
        servers: Servers::Cluster,
        rows: &[
            Row::run("relq push -q emails", Having(&["\n"])).with(HOSTS),
            Row::run("relq work -q emails", Exactly("hello\n"))
                .before("printf '#!/bin/sh\ncat\necho\n' >send; chmod +x send")
                .with(HOSTS)
                .until("test -s OUTPUT"),
            Row::run("relq peek -q emails:2", Exactly("")).with(HOSTS),
        ],
    },
    Page {
        path: "docs/schedules.md",
        servers: Servers::None,
        rows: &[
            Row::run("relq cron add report", Having(&["report"])),
            Row::run("relq cron add poll", Having(&["poll"])),
            Row::run("relq cron list", Having(&["NEXT TICK", "report", "poll"])),
            Row::run("relq cron next report -n 3", Having(&["03:00:00"])),
            Row::run("relq work --schedules", Exactly("")).before(RUN_JOB),
            Row::run("relq cron remove poll", Having(&["poll"])),
        ],
    },
    Page {
        path: "docs/shell.md",
        servers: Servers::Redis,
        rows: &[
            Row::run("seq 1000 | relq push", Having(&["\n"])).before(
                "relq push --quiet --max-attempts 1 x\n\
                 relq work --until-empty -- sh -c \"echo timeout >&2; exit 1\"",
            ),
            Row::run("relq dead retry --error timeout", Exactly("1 ready again\n")),
            Row::run(
                "relq ping",
                Having(&["zset queue default", "the store can be read\n"]),
            )
            .with(&[("redis://example.org", "$REDIS")]),
            Row::run("relq completion bash", Exactly(""))
                .before("mkdir -p ~/.local/share/bash-completion/completions"),
            Row::run("relq man work", Having(&[".TH relq-work 1"]))
                .with(&[("man -l -", "cat")]),
            Row::run("relq pause -q emails", Having(&["paused"]))
                .before("relq push -q emails --quiet hello"),
            Row::run("relq export -q emails", Exactly("")),
            Row::run("relq import emails.jsonl", Having(&["1 "]))
                .with(&[("redis://127.0.0.1:6379", "$REDIS")]),
        ],
    },
    Page {
        path: "web/README.md",
        servers: Servers::Redis,
        rows: &[
            Row::run("relq serve", Exactly(""))
                .before("relq push --quiet hello")
                .with(&[("serve", "serve --listen 127.0.0.1:0")])
                .until(PAGE_IS_SERVED),
            Row::run("relq serve --url redis://127.0.0.1 --read-only", Exactly(""))
                .with(&[("redis://127.0.0.1", "$REDIS --listen 127.0.0.1:0")])
                .until(PAGE_IS_SERVED),
            Row::run("relq serve --listen 0.0.0.0:8088", Exactly(""))
                .before("echo 0123456789abcdef >token")
                .with(&[("0.0.0.0:8088", "127.0.0.1:0")])
                .until(PAGE_IS_SERVED),
        ],
    },
];

/// The servers of docs/scale.md.
const HOSTS: &[(&str, &str)] = &[("'", "\""), ("h1,h2,h3", "$CLUSTER")];
const PAGE_IS_SERVED: &str = "grep -q \"the web page is at http://\" ERRORS";
