//! Runs the checks on every mutant, and generates the tables of `MUTANTS.md`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    sync::{
        LazyLock, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use relq_conformance::{
    Case, Need, Scope,
    sweep::{self, Check},
};

use relq_core::capabilities::Capability;

use crate::{
    judge::{UNFIT, compare, compare_pairs, inject, judge, search},
    list::MUTANTS,
    mutant::{CaughtBy, HEALTHY, Mutant},
    races::RACES,
    traps::TRAPS,
    turn::{is_in_turn, is_whole},
};

/// How many checks run in parallel. Most of the time each waits for its server.
const AT_ONCE: usize = 4;

/// The backend that a check runs on: the index of a mutant in the list, or `None` for
/// the healthy backend.
type Who = Option<usize>;

/// The results of all checks on the mutants and on the healthy backend. In the maps,
/// `None` as a result means that the check passed.
pub(crate) struct Judged {
    /// The message of each case that was run on a mutant.
    cases: BTreeMap<(&'static str, Who), Option<String>>,
    /// The messages of all failures of a mutant in a scenario with faults at every
    /// step.
    acts: BTreeMap<(&'static str, Who), Vec<String>>,
    /// The first difference between each mutant and the model in random sequences of
    /// calls.
    sequences: BTreeMap<Who, Option<String>>,
    /// The first difference between each mutant and the model in the sequences that
    /// combine every two options.
    pairs: BTreeMap<Who, Option<String>>,
    /// The message of the search in each scene that was played on a mutant.
    orders: BTreeMap<(&'static str, Who), Option<String>>,
}

/// One check to run on one mutant.
enum Task {
    Act(&'static str, Who),
    Case(&'static str, Who),
    Sequences(Who),
    Pairs(Who),
    Orders(&'static str, Who),
}

/// The results of all checks. They are computed once for all tests of this program.
pub(crate) static JUDGED: LazyLock<Judged> = LazyLock::new(Judged::make);

impl Judged {
    fn make() -> Self {
        let judged = Mutex::new(Self {
            cases: BTreeMap::new(),
            acts: BTreeMap::new(),
            sequences: BTreeMap::new(),
            pairs: BTreeMap::new(),
            orders: BTreeMap::new(),
        });
        let tasks = tasks();
        in_parallel(tasks.len(), |at| match tasks[at] {
            Task::Act(act, who) => {
                let failures = inject(backend(who), act);
                judged.lock().unwrap().acts.insert((act, who), failures);
            }
            Task::Case(case, who) => {
                let words = judge(backend(who), case).err();
                judged.lock().unwrap().cases.insert((case, who), words);
            }
            Task::Sequences(who) => {
                let words = compare(backend(who)).err();
                judged.lock().unwrap().sequences.insert(who, words);
            }
            Task::Pairs(who) => {
                let words = compare_pairs(backend(who)).err();
                judged.lock().unwrap().pairs.insert(who, words);
            }
            Task::Orders(scene, who) => {
                let words = search(backend(who), scene).err();
                judged.lock().unwrap().orders.insert((scene, who), words);
            }
        });
        judged.into_inner().unwrap()
    }

    /// Whether the check catches the mutant, with the expected message.
    fn catches(&self, by: &CaughtBy, who: Who) -> bool {
        let says = |said: &Option<String>, words: &str| {
            said.as_ref().is_some_and(|it| it.contains(words) && !it.starts_with(UNFIT))
        };
        match by {
            CaughtBy::Case(case, words) => says(&self.cases[&(*case, who)], words),
            CaughtBy::Act(act, check) => {
                self.acts[&(*act, who)].iter().any(|failure| check.is_in(failure))
            }
            CaughtBy::Model(words) => says(&self.sequences[&who], words),
            CaughtBy::Pairs(words) => says(&self.pairs[&who], words),
            CaughtBy::Orders(scene, words) => says(&self.orders[&(*scene, who)], words),
        }
    }

    /// Returns the message of a check on a mutant, so that a failed test can print it.
    fn said(&self, by: &CaughtBy, who: Who) -> String {
        match by {
            CaughtBy::Case(case, _) => format!("{:?}", self.cases[&(*case, who)]),
            CaughtBy::Act(act, _) => format!("{:?}", self.acts[&(*act, who)]),
            CaughtBy::Model(_) => format!("{:?}", self.sequences[&who]),
            CaughtBy::Pairs(_) => format!("{:?}", self.pairs[&who]),
            CaughtBy::Orders(scene, _) => format!("{:?}", self.orders[&(*scene, who)]),
        }
    }

    /// Returns the checks that fail in each run with a fault on a mutant. The key names
    /// the run by its scenario, step and fault. These are the words before the first
    /// colon of a message.
    fn broken_checks(&self, mutant: usize) -> BTreeMap<&str, BTreeSet<Check>> {
        let of_it = self.acts.iter().filter(|((_, who), _)| *who == Some(mutant));
        let mut broken = BTreeMap::<_, BTreeSet<_>>::new();
        for failure in of_it.flat_map(|(_, failures)| failures) {
            let run = failure.split(": ").next().unwrap_or_default();
            let checks = Check::ALL.into_iter().filter(|check| check.is_in(failure));
            broken.entry(run).or_default().extend(checks);
        }
        broken
    }
}

/// Returns all checks to run.
fn tasks() -> Vec<Task> {
    let everybody = || [None].into_iter().chain((0..MUTANTS.len()).map(Some));
    let acts = acts().into_iter().flat_map(|act| {
        let has_fault = move |who: &Who| names(*who, act);
        everybody().filter(has_fault).map(move |who| Task::Act(act, who))
    });
    let cases = cases().into_iter().flat_map(|case| {
        let is_judged = move |who: &Who| meets(*who, case);
        everybody().filter(is_judged).map(move |who| Task::Case(case, who))
    });
    let sequences = everybody().filter(|who| names_the_model(*who));
    let alone = is_whole().then(for_the_model_alone).into_iter().flatten();
    let sequences = sequences.map(Task::Sequences).chain(alone);
    let pairs = everybody().filter(|who| names_the_pairs(*who)).map(Task::Pairs);
    let orders = everybody().flat_map(|who| {
        scenes(who).into_iter().map(move |scene| Task::Orders(scene, who))
    });
    sequences.chain(pairs).chain(orders).chain(acts).chain(cases).collect()
}

/// The need of cases that use batches. The mutants are made from zset, which does not
/// support batches and so cannot run these cases.
const BATCHES: Need = Need::Option(Capability::Batches);

/// Returns all test cases and scenarios that zset can run, for each mutant that only
/// the reference model may catch.
fn for_the_model_alone() -> impl Iterator<Item = Task> {
    let alone = (0..MUTANTS.len()).filter(|at| MUTANTS[*at].is_for_the_model_alone());
    alone.flat_map(|at| {
        let concerned = relq_conformance::cases().iter();
        let is_of_zset = |case: &&Case| {
            case.scope != Scope::Embedded && !case.needs.contains(&BATCHES)
        };
        let concerned = concerned.filter(is_of_zset);
        let cases = concerned.map(move |case| Task::Case(case.id, Some(at)));
        let acts = sweep::names_without(Capability::Batches);
        acts.map(move |act| Task::Act(act, Some(at))).chain(cases)
    })
}

pub(crate) fn in_parallel(count: usize, work: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed))
                    && at < count
                {
                    work(at);
                }
            });
        }
    });
}

fn backend(who: Who) -> Mutant {
    who.map_or(HEALTHY, |at| MUTANTS[at])
}

/// Whether the scenario `act` runs with faults on this backend: on each mutant that names
/// it, and in a whole run on the healthy backend.
fn names(who: Who, act: &str) -> bool {
    let names = |by: &CaughtBy| matches!(by, CaughtBy::Act(named, _) if *named == act);
    who.map_or_else(is_whole, |at| MUTANTS[at].caught_by.iter().any(names))
}

/// Whether this backend is compared with the reference model in random sequences: each
/// mutant that names the model and whose turn it is, and in a whole run the healthy backend.
fn names_the_model(who: Who) -> bool {
    let names = |by: &CaughtBy| matches!(by, CaughtBy::Model(_));
    let is_caught = |at: usize| MUTANTS[at].caught_by.iter().any(names);
    who.map_or_else(is_whole, |at| is_in_turn(at) && is_caught(at))
}

/// Whether this backend is compared with the reference model in sequences that combine
/// every two options: each mutant that names these sequences, and in a whole run the
/// healthy backend.
fn names_the_pairs(who: Who) -> bool {
    let names = |by: &CaughtBy| matches!(by, CaughtBy::Pairs(_));
    who.map_or_else(is_whole, |at| MUTANTS[at].caught_by.iter().any(names))
}

/// Returns the scenes in which every order of the commands is tried on this backend:
/// those that a mutant names if it is its turn, and all of these on the healthy backend.
fn scenes(who: Who) -> BTreeSet<&'static str> {
    let mutants = MUTANTS.iter().enumerate();
    let is_concerned = |at| who.is_none_or(|who| who == at) && is_in_turn(at);
    let concerned = mutants.filter(|(at, _)| is_concerned(*at));
    let checks = concerned.flat_map(|(_, mutant)| mutant.caught_by);
    checks
        .filter_map(|by| match by {
            CaughtBy::Orders(scene, _) => Some(*scene),
            _ => None,
        })
        .collect()
}

/// Whether the test case runs on this backend. A mutant whose turn it is runs the cases that
/// it names. In a whole run, the healthy backend and most mutants run every case that any
/// mutant names; narrow mutants and overrides do not.
fn meets(who: Who, case: &str) -> bool {
    let names =
        |by: &CaughtBy| matches!(by, CaughtBy::Case(named, _) if *named == case);
    who.map_or_else(is_whole, |at| {
        let is_broad = !MUTANTS[at].is_narrow && MUTANTS[at].overrides.is_none();
        is_whole() && is_broad && !MUTANTS[at].is_for_the_model_alone()
            || is_in_turn(at) && MUTANTS[at].caught_by.iter().any(names)
    })
}

fn acts() -> BTreeSet<&'static str> {
    let all = MUTANTS.iter().flat_map(|mutant| mutant.caught_by);
    all.filter_map(|by| match by {
        CaughtBy::Act(act, _) => Some(*act),
        _ => None,
    })
    .collect()
}

fn cases() -> BTreeSet<&'static str> {
    let all = MUTANTS.iter().flat_map(|mutant| mutant.caught_by);
    all.filter_map(|by| match by {
        CaughtBy::Case(case, _) => Some(*case),
        _ => None,
    })
    .collect()
}

#[test]
fn each_mutant_is_caught_by_the_checks_that_it_names() {
    let survivors: Vec<_> = MUTANTS
        .iter()
        .enumerate()
        .flat_map(|(at, mutant)| mutant.caught_by.iter().map(move |by| (at, by)))
        .filter(|(at, by)| by.is_of_each_day() || is_in_turn(*at))
        .filter(|(at, by)| !JUDGED.catches(by, Some(*at)))
        .map(|(at, by)| {
            format!("{} by {by}: {}", MUTANTS[at].name, JUDGED.said(by, Some(at)))
        })
        .collect();

    assert_eq!(survivors, [""; 0]);
}

#[test]
fn the_healthy_backend_is_right_in_every_order() {
    let found: Vec<_> = scenes(None)
        .into_iter()
        .filter_map(|scene| JUDGED.orders[&(scene, None)].clone())
        .collect();

    assert_eq!(found, [""; 0]);
}

#[test]
#[ignore = "the conformance tests of zset run the same checks; here with MUTANTS=check"]
fn the_healthy_backend_passes_each_of_these_checks() {
    assert!(is_whole(), "MUTANTS=check is not set");
    let cases = cases().into_iter().filter_map(|case| {
        JUDGED.cases[&(case, None)].as_ref().map(|words| format!("{case}: {words}"))
    });
    let acts = acts().into_iter().flat_map(|act| JUDGED.acts[&(act, None)].clone());
    let sequences = JUDGED.sequences[&None].iter().chain(&JUDGED.pairs[&None]).cloned();
    let caught: Vec<_> = cases.chain(acts).chain(sequences).collect();

    assert_eq!(caught, [""; 0]);
}

/// Proves that the reference model is needed: it catches mutants that no test case and
/// no scenario with faults catches.
#[test]
#[ignore = "takes a minute; run it with MUTANTS=check"]
fn a_mutant_for_the_model_alone_passes_every_case_and_act() {
    let alone = |who: &Who| who.is_some_and(|at| MUTANTS[at].is_for_the_model_alone());
    let cases = JUDGED.cases.iter().filter(|((_, who), _)| alone(who));
    let acts = JUDGED.acts.iter().filter(|((_, who), _)| alone(who));
    assert!(cases.clone().count() > 300 && acts.clone().count() > 30);

    let by_case = cases.filter_map(|((case, _), words)| Some((*case, words.clone()?)));
    let by_act = acts.flat_map(|((act, _), failures)| {
        failures.iter().map(|failure| (*act, failure.clone()))
    });
    let caught: Vec<_> = by_case.chain(by_act).collect();

    assert_eq!(caught, []);
}

/// The only mutant that the search cannot find. It shows when the server refuses a command,
/// and the search does not make the server refuse commands.
const BEYOND_THE_SEARCH: &str = "a call done in part is told as not done";

/// A random sequence, or a race between threads, catches a mutant by chance. The search
/// through every order of the commands must find it too, where no chance is involved.
#[test]
fn a_mutant_caught_by_chance_is_found_by_the_search() {
    let is_by_chance = |mutant: &&Mutant| {
        let models = |by: &CaughtBy| matches!(by, CaughtBy::Model(_));
        mutant.is_racing || mutant.caught_by.iter().any(models)
    };
    let is_searched = |mutant: &&Mutant| {
        let orders = |by: &CaughtBy| matches!(by, CaughtBy::Orders(..));
        let is_race = RACES.iter().any(|(name, _)| *name == mutant.name);
        is_race || mutant.caught_by.iter().any(orders)
    };
    let by_chance: Vec<_> = MUTANTS.iter().filter(is_by_chance).collect();
    let missed: Vec<_> =
        by_chance.iter().copied().filter(|one| !is_searched(one)).collect();

    assert!(by_chance.len() > 4, "{by_chance:?}");
    assert_eq!(
        missed.iter().map(|one| one.name).collect::<Vec<_>>(),
        [BEYOND_THE_SEARCH]
    );
}

/// Proves that each check of the fault sweeps is needed: for each check there is a
/// mutant that fails only this check in some run with a fault.
#[test]
fn each_check_of_an_act_with_faults_catches_a_mutant_that_no_other_does() {
    let needed: BTreeSet<_> = (0..MUTANTS.len())
        .flat_map(|at| JUDGED.broken_checks(at).into_values())
        .flat_map(|broken| {
            let is_needed =
                |check: &Check| broken.len() == 1 || check.is_of_the_suite();
            broken.iter().copied().filter(is_needed).collect::<Vec<_>>()
        })
        .collect();
    let idle: Vec<_> =
        Check::ALL.into_iter().filter(|check| !needed.contains(check)).collect();

    assert_eq!(idle, []);
}

/// The tables in `MUTANTS.md` must match the generated ones. `MUTANTS=write` writes
/// them. The table of what each check catches alone needs a whole run.
#[test]
fn the_tables_are_true() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/MUTANTS.md");
    let made = if is_whole() { tables() + &table_of_alone() } else { tables() };
    println!("{made}");
    if std::env::var("MUTANTS").is_ok_and(|what| what == "write") {
        std::fs::write(path, &made).expect("the tables can be written");
    }

    let kept = std::fs::read_to_string(path).unwrap_or_default();
    let kept =
        if is_whole() { &kept } else { kept.split(ALONE).next().unwrap_or_default() };

    assert_eq!(
        kept, made,
        "MUTANTS=write cargo test -p relq-conformance --test mutants"
    );
}

const HEAD: &str = "\
# Mutants

The suite is itself tested: each of these small broken backends is caught by the checks
that it names, in the words of the check, and the healthy backend passes the same checks
in the same place. Most are the zset backend with one script changed on its way to the
server. Made by `tests/mutants.rs`, which fails when a table is not true any more. The
last table needs all checks on all mutants, so only `MUTANTS=check` compares it.

";

const EXPLORED: &str = "
## What every order of the commands catches

Each of these mutants has a race between the commands of two calls, which random
sequences of calls do not show. `tests/explore` finds each in the scene that it names.
`backend-sqlite/tests/explore` has three more, with races between transactions.

| mutant | found in the scene |
|---|---|
";

fn tables() -> String {
    let mut made = HEAD.to_owned();
    made += "## What catches each mutant\n\n| mutant | caught by |\n|---|---|\n";
    for mutant in MUTANTS.iter() {
        let by: Vec<_> = mutant.caught_by.iter().map(ToString::to_string).collect();
        writeln!(made, "| {} | {} |", mutant.name, by.join(", ")).unwrap();
    }
    for (pattern, mutants) in TRAPS {
        writeln!(made, "\n## Traps of {pattern}\n\n| mutant | caught by |\n|---|---|")
            .unwrap();
        for mutant in *mutants {
            let by: Vec<_> = mutant.caught_by.iter().map(ToString::to_string).collect();
            writeln!(made, "| {} | {} |", mutant.name, by.join(", ")).unwrap();
        }
    }
    made += EXPLORED;
    for (mutant, scene) in RACES {
        writeln!(made, "| {mutant} | `{scene}` |").unwrap();
    }
    made
}

const ALONE: &str = "
## What each check catches when it runs alone

";

fn table_of_alone() -> String {
    let mut made =
        ALONE.to_owned() + "| check | mutants that it catches |\n|---|---|\n";
    for (check, caught) in alone() {
        writeln!(made, "| {check} | {} |", caught.join(", ")).unwrap();
    }
    made
}

/// Lists, for each check, the mutants that it catches. A check whose result may differ
/// from run to run gets only the mutants that name it.
fn alone() -> Vec<(String, Vec<&'static str>)> {
    let at_all = 0..MUTANTS.len();
    let named = |at: usize, row: &str| {
        MUTANTS[at].caught_by.iter().any(|by| by.to_string().contains(row))
    };
    let cases = cases().into_iter().map(|case| {
        let row = format!("`{case}`");
        let is_caught = |at: &usize| {
            let is_sure = !MUTANTS[*at].is_racing && !case.contains("rac");
            named(*at, &row) || {
                let judged = JUDGED.cases.get(&(case, Some(*at)));
                is_sure && judged.is_some_and(Option::is_some)
            }
        };
        let caught = at_all.clone().filter(is_caught).map(|at| MUTANTS[at].name);
        (row.clone(), caught.collect())
    });
    let checks = Check::ALL.into_iter().map(|check| {
        let is_caught = |at: &usize| {
            let names =
                |by: &CaughtBy| matches!(by, CaughtBy::Act(_, c) if *c == check);
            MUTANTS[*at].caught_by.iter().any(names)
        };
        let caught = at_all.clone().filter(is_caught).map(|at| MUTANTS[at].name);
        (format!("{check}, in acts with faults"), caught.collect())
    });
    let caught = at_all.clone().filter(|at| names_the_model(Some(*at)));
    let model = ("the model".to_owned(), caught.map(|at| MUTANTS[at].name).collect());
    checks.chain(cases).chain([model]).collect()
}
