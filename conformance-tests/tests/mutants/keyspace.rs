//! Mutants of relq-keyspace, each with a bug that its pattern makes easy.

use std::fmt;

use relq_conformance::sweep::Check;

use crate::{
    keyspace_judge::{
        a_lease_is_extended_behind_a_reapers_look, a_name_is_set_again_while_leased,
        inject, judge, judge_by,
    },
    mutant::Patch,
};

/// A mutant: the keyspace backend with one bug.
struct Broken {
    /// A short description of the bug.
    name: &'static str,
    patches: &'static [Patch],
    /// The checks that must catch the mutant, each of them on its own.
    caught_by: &'static [By],
}

/// A check that catches a mutant.
enum By {
    /// The case with this id must fail, with this text in its message.
    Case(&'static str, &'static str),
    /// The scenario of this name, with faults injected at every step, must fail in this
    /// check.
    Act(&'static str, Check),
    /// A check that only this pattern needs.
    Own(&'static str, fn(&'static [Patch]) -> Result<(), String>),
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Case(name, _) | Self::Own(name, _) => f.write_str(name),
            Self::Act(act, check) => write!(f, "{check} in steps::{act}"),
        }
    }
}

impl By {
    /// Runs the check on the backend with these patches. Returns the message of the
    /// failure, or `None` if the check passes.
    fn says(&self, patches: &'static [Patch]) -> Option<String> {
        match self {
            Self::Case(id, _) => judge(patches, id).err(),
            Self::Own(_, check) => check(patches).err(),
            Self::Act(act, check) => {
                let failures = inject(patches, act);
                failures.into_iter().find(|failure| check.is_in(failure))
            }
        }
    }

    /// Whether the message of a failed check is the expected one.
    fn is_meant(&self, words: &str) -> bool {
        match self {
            Self::Case(_, expected) => words.contains(expected),
            Self::Act(..) | Self::Own(..) => true,
        }
    }
}

const fn patch(script: &'static str, from: &'static str, to: &'static str) -> Patch {
    Patch { script, from, to }
}

const SET_AGAIN: By =
    By::Own("a name that is set again while its job is leased", |it| {
        judge_by(it, |judge| Box::pin(a_name_is_set_again_while_leased(judge)))
    });

const EXTENDED: By = By::Own("a lease that is extended behind a reaper's look", |it| {
    judge_by(it, |judge| Box::pin(a_lease_is_extended_behind_a_reapers_look(judge)))
});

const MUTANTS: &[Broken] = &[
    Broken {
        name: "recovery by RENAME onto a live key",
        patches: &[
            patch(
                "recover",
                "redis.call('RENAMENX', processing, ITEM .. free_id(item:sub(#ITEM + 1)))",
                "redis.call('RENAME', processing, item)",
            ),
            patch(
                "recover",
                "job.attempt < job.max_attempts and redis.call('EXISTS', item) == 0",
                "job.attempt < job.max_attempts",
            ),
        ],
        caught_by: &[SET_AGAIN],
    },
    Broken {
        name: "recovery that acts on what it saw before",
        patches: &[patch(
            "recover",
            "if lease_end and tonumber(lease_end) <= now_ms then",
            "if lease_end then",
        )],
        caught_by: &[EXTENDED],
    },
    Broken {
        name: "a pick without a lock",
        patches: &[patch(
            "claim",
            "if redis.call('RENAMENX', item, processing) == 0 then",
            "redis.call('SET', processing, value)\n  if false then",
        )],
        caught_by: &[
            By::Case("one_holder::a_held_job_is_not_given_again", "expected: []"),
            By::Act("claim", Check::DupBound),
        ],
    },
    Broken {
        name: "a draw that takes any key",
        patches: &[patch("pick", "and is_item(name) then", "then")],
        caught_by: &[By::Case(
            "waiting::no_wake_up_is_missed",
            "too many (+) or missing (-)",
        )],
    },
    Broken {
        name: "a sweep that takes any string",
        patches: &[patch(
            "sweep",
            "elseif is_item(name) then",
            "elseif redis.call('TYPE', name).ok == 'string' then",
        )],
        caught_by: &[By::Case(
            "no_loss::an_empty_queue_delivers_nothing",
            "the audit saw every job\nseen: 2\nexpected: 0",
        )],
    },
    Broken {
        name: "a purge by FLUSHDB",
        patches: &[patch(
            "purge",
            "return {removed, next_cursor == '0'",
            "redis.call('FLUSHDB')\nreturn {removed, next_cursor == '0'",
        )],
        caught_by: &[By::Case(
            "isolation::keys_of_others_are_left_alone",
            "expected: [[36, 50, 57",
        )],
    },
    Broken {
        name: "a claim that leaves jobs behind and notifies nobody",
        patches: &[patch(
            "claim",
            "if has_leased and left > foreign_keys then notify(keys) end",
            "",
        )],
        caught_by: &[By::Case(
            "waiting::one_push_wakes_as_many_as_it_feeds",
            "it was not woken",
        )],
    },
    Broken {
        name: "deliveries that are counted in the answer only",
        patches: &[patch(
            "claim",
            "redis.call('SETRANGE', processing, '6', struct.pack('>H', job.attempt + 1))",
            "",
        )],
        caught_by: &[By::Case("recovery::poison_is_buried", "(3, true)]")],
    },
    Broken {
        name: "a processing key without a lease",
        patches: &[patch(
            "claim",
            "redis.call('ZADD', keys.leased, end_ms, processing)",
            "",
        )],
        caught_by: &[By::Act("claim", Check::Conserve)],
    },
];

#[test]
fn each_keyspace_mutant_is_caught_by_the_checks_that_it_names() {
    let mut survivors = Vec::new();
    for mutant in MUTANTS {
        for by in mutant.caught_by {
            let words = by.says(mutant.patches);
            if !words.as_ref().is_some_and(|words| by.is_meant(words)) {
                survivors.push(format!("{} by {by}: {words:?}", mutant.name));
            }
        }
    }

    assert_eq!(survivors, [""; 0]);
}

#[test]
fn the_healthy_keyspace_passes_each_of_these_checks() {
    let checks = MUTANTS.iter().flat_map(|mutant| mutant.caught_by);
    let caught: Vec<_> = checks
        .filter_map(|by| by.says(&[]).map(|words| format!("{by}: {words}")))
        .collect();

    assert_eq!(caught, [""; 0]);
}
