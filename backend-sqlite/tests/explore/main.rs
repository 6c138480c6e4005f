//! Tests of the search that tries every order in which the statements of several
//! processes can run. It must find races, and must reach every possible state.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod flaws;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use relq_conformance::{
    Case, Profile, Scope, Subject, async_trait, cases, explore, judge_case,
    overrides::{OverriddenQueue, Override, Right},
    own::{
        Sqlite,
        sqlite::{SQLITE, open},
    },
    spec,
    sweep::processes::{Embedded, Open, Watch},
};
use relq_core::{Error, Queue, QueueName, environment::Environment};
use relq_sqlite::{Durability, SqliteConfig, SqliteQueue};

use flaws::{
    PromotesInTwoTransactions, RecoversInTwoTransactions, SettlesInTwoTransactions,
    Transaction,
};

/// A SQLite queue with a race: one of its calls reads in one transaction and writes in
/// the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mutant {
    Settles,
    Promotes,
    Recovers,
}

const MUTANTS: [(Mutant, &str, &str); 3] = [
    (Mutant::Settles, "settle_against_recover", "b settle 0D"),
    (Mutant::Promotes, "cancel_against_promotion", "claim 1 l0"),
    (Mutant::Recovers, "extend_against_recover", "a settle 0D"),
];

impl Mutant {
    /// Opens the broken queue for the search. The test's hook is called at each
    /// statement.
    async fn open(
        self,
        folder: PathBuf,
        queue: QueueName,
        environment: Environment,
        watch: Option<Watch>,
    ) -> Result<Arc<dyn Queue>, Error> {
        let own = Transaction::on(&folder, &queue, watch.clone());
        let healthy = open(folder, queue, environment.clone(), watch).await?;
        Ok(self.breaks(healthy, environment, own))
    }

    fn breaks(
        self,
        healthy: SqliteQueue,
        environment: Environment,
        own: Transaction,
    ) -> Arc<dyn Queue> {
        let right = Right { queue: Arc::new(healthy), environment };
        let overrides: Arc<dyn Override> = match self {
            Self::Settles => Arc::new(SettlesInTwoTransactions(own)),
            Self::Promotes => Arc::new(PromotesInTwoTransactions(own)),
            Self::Recovers => Arc::new(RecoversInTwoTransactions(own)),
        };
        Arc::new(OverriddenQueue::new(right, overrides))
    }
}

#[async_trait]
impl Subject for Mutant {
    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        let folder = Path::new(endpoint);
        let config = SqliteConfig::file(folder.join("jobs.db"))
            .durability(Durability::Normal)
            .environment(environment.clone());
        let healthy = SqliteQueue::open(config, queue.clone()).await?;
        let own = Transaction::on(folder, queue, None);
        Ok(self.breaks(healthy, environment.clone(), own))
    }

    fn processes(&self) -> Option<Embedded> {
        let open: Open = match self {
            Self::Settles => |f, q, e, w| Box::pin(Self::Settles.open(f, q, e, w)),
            Self::Promotes => |f, q, e, w| Box::pin(Self::Promotes.open(f, q, e, w)),
            Self::Recovers => |f, q, e, w| Box::pin(Self::Recovers.open(f, q, e, w)),
        };
        Some(Embedded { open, ..SQLITE })
    }
}

/// The search finds each mutant. The failure prints the order of the statements as decisions,
/// and a replay of these decisions fails in the same way.
#[test]
#[ignore = "takes a minute and tests the search itself: `.ci/run` runs it in turn"]
fn each_mutant_is_found_in_its_scene() {
    for (mutant, scene, words) in MUTANTS {
        let subject: Arc<dyn Subject> = Arc::new(mutant);

        let explored = explore::explore(&subject, scene, 0).unwrap().unwrap();

        let failure = explored.failure.unwrap_or_else(|| panic!("missed in {scene}"));
        assert!(failure.contains(words), "{scene}: {failure}");
        assert!(failure.contains("BEGIN IMMEDIATE"), "{scene}: {failure}");
        let decisions = failure.rsplit('\'').nth(1).unwrap();
        let again = explore::replay(&subject, scene, decisions).unwrap_err();
        assert_eq!(again.lines().next(), failure.lines().next());
    }
}

/// The search tries every order of the statements of two workers, an operator and a
/// reaper. In each order, one process may also die at any statement. No rule is broken.
#[test]
fn every_order_of_all_roles_keeps_the_rules() {
    let subject: Arc<dyn Subject> = Arc::new(Sqlite);
    let scene = "p push j; a claim 1 l0; - advance 3 | a settle 0D | r recover 5 | \
                 o stats | b claim 1 l0";

    let explored = explore::explore(&subject, scene, 1).unwrap().unwrap();

    assert_eq!(explored.failure, None);
    assert!(explored.runs > 100, "{explored:?}");
}

/// The search skips orders that cannot lead to a new state. It still finds every final
/// state that a search without these shortcuts finds.
#[test]
#[ignore = "takes a minute and tests the search itself: `.ci/run` runs it in turn"]
fn a_pruned_search_finds_the_same_ends() {
    let subject: Arc<dyn Subject> = Arc::new(Sqlite);
    for (scene, deaths) in [
        ("p push j | o pause | r resume | a stats", 0),
        ("p push j | o pause | a stats | - advance 1", 0),
        ("p push j | o pause | a stats", 1),
    ] {
        let [pruned, whole] =
            explore::ends(&subject, scene, explore::Faults::deaths(deaths)).unwrap();

        assert!(pruned.runs < whole.runs, "{scene}: {pruned:?}, {whole:?}");
        assert!(pruned.ends.len() > 1, "{scene}: {pruned:?}");
        assert_eq!(pruned.ends, whole.ends, "{scene}");
    }
}

/// The cases of the suite and its random sequences of calls do not find these mutants,
/// so the search is needed.
#[test]
#[ignore = "takes minutes; it shows that the mutants need the search"]
fn no_other_test_finds_the_mutants() {
    for (mutant, scene, _) in MUTANTS {
        let random = spec::judge_random(Arc::new(mutant), Profile::Embedded);
        random.unwrap_or_else(|found| panic!("{scene}: {found}"));
        let apply = |case: &&Case| !matches!(case.scope, Scope::Redis);
        for case in cases().iter().filter(apply) {
            let judged = judge_case(mutant, Profile::Embedded, case.id);
            judged.unwrap_or_else(|found| panic!("{scene}, {}: {found}", case.id));
        }
    }
}
